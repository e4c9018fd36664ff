# SPDX-License-Identifier: BSD-2-Clause
"""What two ranks of MPI say to each other: messages of many lengths, with every byte checked, and sums.

    mpirun -n 2 python3 -m mpi4py mpi_exchange.py

By "-m mpi4py" a rank that fails ends the others: without, it waits in MPI_Finalize for those that wait for it.
"""

from mpi4py import MPI

LENGTHS = (0, 1, 100, 5000, 70_000, 1_000_000)


def text(length, turn):
    """Bytes that depend on their place, the message's length and its turn."""
    return bytes((place * 7 + length + turn * 31) & 255 for place in range(256)) * (length // 256 + 1)


def main():
    world = MPI.COMM_WORLD
    rank, peer, moved = world.Get_rank(), 1 - world.Get_rank(), 0
    for turn, length in enumerate(LENGTHS):
        mine, got = bytearray(text(length, turn + rank)[:length]), bytearray(length)
        world.Sendrecv(mine, peer, 5, got, peer, 5)
        assert got == text(length, turn + peer)[:length], (rank, length)
        moved += length
    # One-sided: each writes into the other's window. What is put must stay until the fence: MPI reads it when it likes.
    window, given = MPI.Win.Allocate(4096, comm=world), bytearray(text(4096, 90 + rank)[:4096])
    window.Fence()
    window.Put(given, peer)
    window.Fence()
    assert bytes(window.tomemory()) == text(4096, 90 + peer)[:4096], rank
    window.Free()
    assert world.allreduce(rank + 1) == 3
    assert world.allgather(rank) == [0, 1]
    print(f"rank {rank} of {world.Get_size()} moved {moved}", flush=True)


if __name__ == "__main__":
    main()
