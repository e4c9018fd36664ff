// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/interceptable.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace vabi::libc {
namespace {

namespace fs = std::filesystem;

class InterceptableTest : public ::testing::Test {
 protected:
  InterceptableTest() {
    std::string name = (fs::temp_directory_path() / "vabi-elf-XXXXXX").string();
    dir_ = mkdtemp(name.data());
  }
  ~InterceptableTest() override { fs::remove_all(dir_); }

  std::string Write(const std::string& bytes) {
    const std::string path = (dir_ / "program").string();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path;
  }
  // A program of the ELF format, as far as headers go.
  static std::string Program(const char* loader, unsigned char elf_class = ELFCLASS64,
                             uint16_t machine = EM_X86_64) {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = elf_class;
    header.e_machine = machine;
    header.e_phoff = sizeof header;
    header.e_phnum = 1;
    Elf64_Phdr part = {};
    part.p_type = loader ? PT_INTERP : PT_LOAD;
    part.p_offset = sizeof header + sizeof part;
    part.p_filesz = loader ? std::strlen(loader) + 1 : 0;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.append(reinterpret_cast<const char*>(&part), sizeof part);
    if (loader) bytes.append(loader, std::strlen(loader) + 1);
    bytes.resize(512);
    return bytes;
  }
  Interceptable Verdict(const std::string& path) {
    return Judge(path.c_str(), detail_, sizeof detail_);
  }

  fs::path dir_;
  char detail_[256];
};

TEST_F(InterceptableTest, DynamicProgramsOfGlibcAre) {
  EXPECT_EQ(Verdict("/bin/ls"), Interceptable::kYes);
  EXPECT_EQ(Verdict(Write(Program("/lib64/ld-linux-x86-64.so.2"))), Interceptable::kYes);
}

TEST_F(InterceptableTest, StaticProgramsAreNot) {
  EXPECT_EQ(Verdict(Write(Program(nullptr))), Interceptable::kStatic);
}

TEST_F(InterceptableTest, ProgramsOfMuslAreNot) {
  EXPECT_EQ(Verdict(Write(Program("/lib/ld-musl-x86_64.so.1"))), Interceptable::kOtherLibc);
  EXPECT_STREQ(detail_, "/lib/ld-musl-x86_64.so.1");
}

TEST_F(InterceptableTest, OtherMachinesAreNot) {
  EXPECT_EQ(Verdict(Write(Program("/lib/ld-linux.so.2", ELFCLASS32, EM_386))),
            Interceptable::kOtherClass);
  EXPECT_EQ(Verdict(Write(Program("/lib/ld-linux-riscv64-lp64d.so.1", ELFCLASS64, EM_RISCV))),
            Interceptable::kOtherClass);
}

TEST_F(InterceptableTest, SetIdProgramsAreNot) {
  const std::string path = Write(Program("/lib64/ld-linux-x86-64.so.2"));
  ASSERT_EQ(chmod(path.c_str(), 04755), 0);
  EXPECT_EQ(Verdict(path), Interceptable::kSetId);
}

TEST_F(InterceptableTest, ScriptsNameTheirInterpreter) {
  EXPECT_EQ(Verdict(Write("#! /usr/bin/env python3\nprint()\n")), Interceptable::kScript);
  EXPECT_STREQ(detail_, "/usr/bin/env");
}

TEST_F(InterceptableTest, OtherFiles) {
  EXPECT_EQ(Verdict(Write("text")), Interceptable::kNotElf);
  EXPECT_EQ(Verdict(Write("")), Interceptable::kNotElf);
  EXPECT_EQ(Verdict((dir_ / "absent").string()), Interceptable::kUnreadable);
  EXPECT_EQ(Verdict(dir_.string()), Interceptable::kUnreadable);
}

}  // namespace
}  // namespace vabi::libc
