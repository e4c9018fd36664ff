// SPDX-License-Identifier: BSD-2-Clause
#include "shims/libc/preload_test_main.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/world/compile.h"
#include "harness/world/test_world.h"
#include "harness/world/write.h"

namespace vabi::libc {

namespace fs = std::filesystem;

const std::string& ScratchDir() {
  static const std::string dir = std::getenv("VABI_TEST_SCRATCH");
  return dir;
}

std::string MakeWorld(const std::string& name, const std::string& kernel,
                      std::initializer_list<const char*> overlays) {
  WorldSpec spec;
  spec.kernel = kernel;
  spec.devices = {{"mlx5", "", ""}, {"rxe", "", ""}};
  for (const char* overlay : overlays) spec.overlays.push_back(OverlaySpec::Parse(overlay));
  spec.run_dir = fs::path(ScratchDir()) / name;
  spec.trace = (fs::path(ScratchDir()) / (name + ".trace")).string();
  ChangeForWatch(&spec);
  WorldCompiler compiler(".");
  auto compiled = compiler.Compile(spec);
  if (!compiled) {
    std::fprintf(stderr, "%s\n", compiled.error().c_str());
    std::abort();
  }
  auto path = WriteWorld(*compiled, spec.run_dir, fs::path(ScratchDir()) / "cache");
  if (!path) {
    std::fprintf(stderr, "%s\n", path.error().c_str());
    std::abort();
  }
  return path->string();
}

std::vector<std::string> Environment(const std::vector<std::string>& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    bool changed = false;
    for (const std::string& change : changes) {
      changed |= text.substr(0, text.find('=')) == change.substr(0, change.find('='));
    }
    if (!changed) all.push_back(text);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) all.push_back(change);
  }
  return all;
}

Ran RunProgram(const std::vector<std::string>& command,
               const std::vector<std::string>& environment) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return {"no pipe", -1};
  std::vector<char*> argv, envp;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], 1);
    dup2(pipe_ends[1], 2);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    alarm(60);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  Ran ran;
  char buffer[4096];
  for (ssize_t size; (size = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) {
    ran.output.append(buffer, static_cast<size_t>(size));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return ran;
}

}  // namespace vabi::libc

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  if (std::getenv("VABI_TEST_SCRATCH") != nullptr) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  }
  for (int i = 1; i < argc; ++i) {
    // Listing needs no world.
    if (std::string(argv[i]).find("list_tests") == std::string::npos) continue;
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  }
  std::string scratch = (fs::temp_directory_path() / "vabi-preload-XXXXXX").string();
  if (mkdtemp(scratch.data()) == nullptr) return 1;
  setenv("VABI_TEST_SCRATCH", scratch.c_str(), 1);
  const std::string world =
      vabi::libc::MakeWorld("main", "debian-6.12.117", {"provider-abi@rxe0=unreadable"});
  fs::create_directories(scratch + "/elsewhere/dir");
  std::ofstream(scratch + "/elsewhere/dir/file") << "elsewhere\n";
  std::error_code error;
  fs::create_symlink("/lib/x86_64-linux-gnu/libm.so.6", scratch + "/elsewhere/libm.so", error);
  std::vector<std::string> command = {fs::canonical(argv[0]).string()};
  for (int i = 1; i < argc; ++i) command.emplace_back(argv[i]);
  const vabi::libc::Ran ran = vabi::libc::RunProgram(
      command,
      vabi::libc::Environment({"LD_PRELOAD=" VABI_SHIM, "VERBS_ABI_WORLD=" + world,
                               "VERBS_ABI_RECORD=" + scratch + "/record",
                               "VERBS_ABI_REDIRECT=/verbs-abi/nowhere=" + scratch + "/elsewhere"}));
  std::fputs(ran.output.c_str(), stdout);
  fs::remove_all(scratch, error);
  return ran.status == 0 ? 0 : 1;
}
