// SPDX-License-Identifier: BSD-2-Clause
//
// libc calls on files that have nothing to do with RDMA: what the shim costs a program that it is
// only a guest of. Run bare, with the shim preloaded, and with another preloaded library for the
// record.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr char kPlain[] = "/etc/hostname";

void OpenClose(benchmark::State& state) {
  for (auto _ : state) {
    const int fd = open(kPlain, O_RDONLY | O_CLOEXEC);
    benchmark::DoNotOptimize(fd);
    close(fd);
  }
}
BENCHMARK(OpenClose);

void Stat(benchmark::State& state) {
  struct stat answer;
  for (auto _ : state) benchmark::DoNotOptimize(stat(kPlain, &answer));
}
BENCHMARK(Stat);

void Read(benchmark::State& state) {
  const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  char bytes[64];
  for (auto _ : state) benchmark::DoNotOptimize(read(fd, bytes, sizeof bytes));
  close(fd);
}
BENCHMARK(Read);

void Ioctl(benchmark::State& state) {
  int ends[2];
  if (pipe(ends) != 0) {
    state.SkipWithError("no pipe");
    return;
  }
  int waiting = 0;
  for (auto _ : state) benchmark::DoNotOptimize(ioctl(ends[0], FIONREAD, &waiting));
  close(ends[0]);
  close(ends[1]);
}
BENCHMARK(Ioctl);

}  // namespace

BENCHMARK_MAIN();
