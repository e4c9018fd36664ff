# SPDX-License-Identifier: BSD-2-Clause
"""What mpi_exchange.py owes to MPI, with an MPI that tells."""

import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


class Window:
    """One rank's window. What is put into it is read at the fence, as MPI may (MPI 4.0, 12.3): the program must still hold it."""

    def __init__(self, size):
        self.memory, self.put, self.held = bytearray(size), None, True

    def Fence(self):
        if self.put is not None:
            # Beside the caller's own name: this attribute and the call's argument.
            self.held = sys.getrefcount(self.put) > 2
            self.put = None

    def Put(self, origin, _peer):
        self.put = origin

    def tomemory(self):
        return self.memory

    def Free(self):
        pass


def test_what_is_put_lives_until_the_fence(monkeypatch):
    window = Window(4096)
    win = types.SimpleNamespace(Allocate=lambda size, comm: window)
    mpi4py = types.ModuleType("mpi4py")
    mpi4py.MPI = types.SimpleNamespace(Win=win, COMM_WORLD=World())
    monkeypatch.setitem(sys.modules, "mpi4py", mpi4py)
    monkeypatch.delitem(sys.modules, "mpi_exchange", raising=False)
    import mpi_exchange

    window.memory[:] = mpi_exchange.text(4096, 91)[:4096]
    mpi_exchange.main()
    assert window.held


class World:
    """Rank 0 of two, whose peer sends what the program expects of it."""

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 2

    def Sendrecv(self, _mine, _peer, _tag, got, _source, _source_tag):
        import mpi_exchange

        turn = mpi_exchange.LENGTHS.index(len(got))
        got[:] = mpi_exchange.text(len(got), turn + 1)[: len(got)]

    def allreduce(self, _value):
        return 3

    def allgather(self, _value):
        return [0, 1]
