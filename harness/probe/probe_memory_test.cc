// SPDX-License-Identifier: BSD-2-Clause
#include "harness/probe/probe_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace vabi::probe {
namespace {

Blob Filled(size_t size, char byte) {
  Part part;
  part.text.assign(size, byte);
  return {part};
}

unsigned char* At(const Memory& memory, const char* name, size_t offset = 0) {
  return reinterpret_cast<unsigned char*>(memory.Address(name, offset));
}

TEST(ProbeMemory, TellsNothingWhereNothingChanged) {
  Memory memory;
  ASSERT_EQ(memory.Define("r", Filled(8, '\xa5'), Place::kPlain, {}), "");
  EXPECT_EQ(memory.Changes({}), "");
}

TEST(ProbeMemory, TellsChangedRunsWithTheirOffset) {
  Memory memory;
  memory.Define("r", Filled(32, '\xa5'), Place::kPlain, {});
  *At(memory, "r", 4) = 0x01;
  *At(memory, "r", 30) = 0x02;
  EXPECT_EQ(memory.Changes({}), " r+4=01 r+30=02");
  EXPECT_EQ(memory.Changes({}), "") << "told once only";
}

TEST(ProbeMemory, WatchesTheBytesBehindAnObject) {
  Memory memory;
  memory.Define("r", Filled(8, '\xa5'), Place::kPlain, {});
  *At(memory, "r", 9) = 0x07;
  EXPECT_EQ(memory.Changes({}), " r+9=07");
}

TEST(ProbeMemory, WritesLongRunsOfZeroShort) {
  Memory memory;
  memory.Define("r", Filled(16, '\xa5'), Place::kPlain, {});
  std::memset(At(memory, "r"), 0, 12);
  *At(memory, "r") = 1;
  EXPECT_EQ(memory.Changes({}), " r+0=01,0*11,");
}

TEST(ProbeMemory, PrintsAMaskedFieldAsItsRuleHoweverItChanged) {
  Memory memory;
  const std::vector<Mask> masks = {{"key", "r", 4, 4}};
  for (uint32_t value : {1u, 0xa5a50001u, 0x00a5a5a5u}) {
    memory.Define("r", Filled(8, '\xa5'), Place::kPlain, {});
    std::memset(At(memory, "r"), 9, 4);
    std::memcpy(At(memory, "r", 4), &value, 4);
    EXPECT_EQ(memory.Changes(masks), " r+0=09090909[key]") << value;
  }
}

TEST(ProbeMemory, EndsAnEdgeObjectWhereTheMappingEnds) {
  Memory memory;
  memory.Define("e", Filled(12, 'x'), Place::kEdge, {});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(At(memory, "e", 12)) % 4096, 0u);
  EXPECT_DEATH(*At(memory, "e", 12) = 1, "");
}

TEST(ProbeMemory, KeepsOtherObjectsOutOfReachOfACallThatClaimsTooMuch) {
  Memory memory;
  for (const char* name : {"a", "b", "c", "d"})
    memory.Define(name, Filled(300, 'x'), Place::kPlain, {});
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (const char* name : {"a", "b", "c", "d"}) {
    for (size_t offset = 4096; offset <= (0x4000 + 64) * 8; offset += 4096) {
      ASSERT_EQ(write(ends[1], At(memory, name, 0) + offset, 1), -1) << name << '+' << offset;
      ASSERT_EQ(errno, EFAULT);
    }
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(ProbeMemory, ReadOnlyObjectsCannotBeWritten) {
  Memory memory;
  memory.Define("o", Filled(12, 'x'), Place::kReadOnly, {});
  EXPECT_EQ(*At(memory, "o", 3), 'x');
  EXPECT_DEATH(*At(memory, "o") = 1, "");
}

TEST(ProbeMemory, TellsNothingOfQuietObjects) {
  Memory memory;
  memory.Define("d", Filled(12, 'x'), Place::kQuiet, {});
  *At(memory, "d") = 1;
  EXPECT_EQ(memory.Changes({}), "");
}

TEST(ProbeMemory, PutsSymbolsAndAddressesIntoABlob) {
  Memory memory;
  memory.Define("r", Filled(8, '\xa5'), Place::kPlain, {});
  Part symbol{Part::Kind::kSymbol, "pd", 4}, address{Part::Kind::kAddress, "r", 2};
  std::string error;
  std::string bytes = memory.Bytes({symbol, address}, {{"pd", 0x01020304}}, &error);
  ASSERT_EQ(bytes.size(), 12u);
  EXPECT_EQ(bytes.substr(0, 4), "\x04\x03\x02\x01");
  uint64_t pointer = 0;
  std::memcpy(&pointer, bytes.data() + 4, 8);
  EXPECT_EQ(pointer, memory.Address("r", 2));
  EXPECT_EQ(error, "");
  memory.Bytes({symbol}, {}, &error);
  EXPECT_EQ(error, "nothing gave pd");
}

}  // namespace
}  // namespace vabi::probe
