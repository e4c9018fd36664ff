// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/header_tree.h"

#include <fstream>
#include <optional>

#include "harness/facts/subprocess.h"
#include "harness/facts/temporary.h"
#include "harness/facts/text.h"

namespace vabi::facts {
namespace {

namespace fs = std::filesystem;

// Where the folder that holds rdma/ may lie, in each kind of tree.
struct Place {
  const char* subdir;
  const char* kind;  // of the source; null: nothing better is known
};
constexpr Place kPlaces[] = {
    {"include/uapi", nullptr},        // a kernel tree
    {"kernel-headers", "rdma-core"},  // an rdma-core tree
    {"usr/include", nullptr},         // an unpacked package or root
    {"include", nullptr},             // a prefix
    {".", nullptr},                   // /usr/include
};

bool HasHeaders(const fs::path& include_dir) {
  std::error_code error;
  for (auto it = fs::directory_iterator(include_dir / "rdma", error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".h") return true;
  }
  return false;
}

std::string Trim(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// Standard output of a program that must succeed.
Result<std::string> Run(const std::vector<std::string>& arguments) {
  Result<ProcessResult> result = RunProcess(arguments);
  if (!result) return Error{result.error()};
  if (result->status != 0) {
    return Error{arguments[0] + " failed (status " + std::to_string(result->status) +
                 "): " + Trim(result->output)};
  }
  return result->output;
}

// The value of `NAME = value` in the kernel's Makefile, or of set(NAME "value") in a
// CMakeLists.txt.
std::string VariableIn(const fs::path& file, const std::string& before, const std::string& end) {
  std::ifstream in(file);
  std::string line;
  for (int i = 0; i < 200 && std::getline(in, line); ++i) {
    if (!line.starts_with(before)) continue;
    std::string value = line.substr(before.size());
    return Trim(value.substr(0, value.find(end)));
  }
  return "";
}

std::string KernelVersion(const fs::path& tree) {
  std::string version = VariableIn(tree / "Makefile", "VERSION = ", "\n");
  if (version.empty()) return "";
  for (const char* part : {"PATCHLEVEL = ", "SUBLEVEL = "}) {
    std::string value = VariableIn(tree / "Makefile", part, "\n");
    if (!value.empty()) version += "." + value;
  }
  return version;
}

// "44.0" and "v44.0" → "rdma-core-v44"; stable releases keep their minor number.
std::string ReleaseName(std::string version) {
  if (version.starts_with('v')) version.erase(0, 1);
  if (version.ends_with(".0")) version.resize(version.size() - 2);
  return "rdma-core-v" + version;
}

std::string Sanitized(std::string name) {
  for (char& c : name) {
    if (!MayNameSnapshots(c)) c = '-';
  }
  return name;
}

Result<HeaderTree> OpenFolder(const fs::path& dir) {
  std::string tried;
  for (const Place& place : kPlaces) {
    fs::path include_dir = (dir / place.subdir).lexically_normal();
    if (!HasHeaders(include_dir)) {
      AddItem(tried, (include_dir / "rdma").string());
      continue;
    }
    HeaderTree tree{include_dir, "", {{"kind", place.kind ? place.kind : "folder"}}, nullptr};
    if (place.kind) {
      std::string version = VariableIn(dir / "CMakeLists.txt", "set(PACKAGE_VERSION \"", "\"");
      tree.name = version.empty() ? "" : ReleaseName(version);
      if (!version.empty()) tree.source.emplace_back("version", version);
    } else if (std::string version = KernelVersion(dir); !version.empty()) {
      tree.name = "linux-" + version;
      tree.source.emplace_back("version", version);
    }
    fs::path named = fs::absolute(dir).lexically_normal();  // of "." too
    named = named.has_filename() ? named.filename() : named.parent_path().filename();
    if (tree.name.empty()) tree.name = Sanitized(named.string());
    return tree;
  }
  return Error{dir.string() + ": has no RDMA kernel headers; looked for rdma/*.h in " + tried};
}

Result<HeaderTree> OpenDeb(const fs::path& file) {
  auto folder = std::make_shared<TemporaryFolder>();
  auto fields = Run({"dpkg-deb", "-f", file.string(), "Package", "Version"});
  if (!fields) return Error{file.string() + ": is no Debian package: " + fields.error()};
  auto field = [&](const std::string& name) {
    size_t at = fields->find(name + ": ");
    if (at == std::string::npos) return std::string();
    at += name.size() + 2;
    return fields->substr(at, fields->find('\n', at) - at);
  };
  auto unpacked = Run({"dpkg-deb", "-x", file.string(), folder->path.string()});
  if (!unpacked) return Error{file.string() + ": cannot be unpacked: " + unpacked.error()};
  auto tree = OpenFolder(folder->path);
  if (!tree) {
    return Error{file.string() + ": package " + field("Package") +
                 " has no rdma headers; expected usr/include/rdma, as linux-libc-dev has"};
  }
  std::string version = field("Version");
  tree->name = "debian-" + Sanitized(version.substr(0, version.find('-')));
  tree->source = {{"kind", "debian"}, {"package", field("Package")}, {"version", version}};
  tree->unpacked = folder;
  return tree;
}

Result<HeaderTree> OpenRpm(const fs::path& file) {
  auto folder = std::make_shared<TemporaryFolder>();
  fs::path archive = folder->path / "package.cpio";
  // rpm2cpio writes to its standard output only; the shell gets the names as arguments, never as
  // text.
  auto unpacked =
      Run({"sh", "-c", "rpm2cpio \"$1\" > \"$2\" && cd \"$3\" && cpio -idm --quiet < \"$2\"", "sh",
           fs::absolute(file).string(), archive.string(), folder->path.string()});
  if (!unpacked) return Error{file.string() + ": cannot be unpacked: " + unpacked.error()};
  // kernel-devel keeps a whole tree in usr/src/kernels/VERSION.
  fs::path root = folder->path;
  std::error_code error;
  for (auto it = fs::directory_iterator(root / "usr/src/kernels", error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    root = it->path();
    break;
  }
  auto tree = OpenFolder(root);
  if (!tree)
    return Error{file.string() +
                 ": has no rdma headers; expected a kernel-headers or kernel-devel package"};
  tree->name = Sanitized(file.stem().string());
  tree->source = {{"kind", "rpm"}, {"package", file.filename().string()}};
  tree->unpacked = folder;
  return tree;
}

Result<HeaderTree> OpenGit(const std::string& spec) {
  size_t at = spec.rfind('@');
  if (at == std::string::npos || at + 1 == spec.size()) {
    return Error{"git:" + spec + ": expected git:PATH@REVISION, for example git:linux@v6.12"};
  }
  std::string path = spec.substr(0, at), revision = spec.substr(at + 1);
  if (revision.starts_with('-')) return Error{"git:" + spec + ": a revision cannot start with '-'"};
  auto commit =
      Run({"git", "-C", path, "rev-parse", "--verify", "--quiet", revision + "^{commit}"});
  if (!commit)
    return Error{"git:" + spec + ": no commit '" + revision + "' in " + path + " (" +
                 commit.error() + ")"};

  auto folder = std::make_shared<TemporaryFolder>();
  fs::path archive = folder->path / "tree.tar";
  std::string tried;
  for (const Place& place : kPlaces) {
    const std::string below =
        std::string(place.subdir) == "." ? "rdma" : std::string(place.subdir) + "/rdma";
    auto listed = Run({"git", "-C", path, "archive", "-o", archive.string(), revision, below});
    if (!listed) {
      AddItem(tried, below);
      continue;
    }
    auto unpacked = Run({"tar", "-xf", archive.string(), "-C", folder->path.string()});
    if (!unpacked) return Error{"git:" + spec + ": " + unpacked.error()};
    auto tree = OpenFolder(folder->path);
    if (!tree)
      return Error{std::string("git:").append(spec).append(": no header in ").append(below)};
    bool release = place.kind && revision.starts_with('v');
    tree->name = release ? ReleaseName(revision)
                         : Sanitized((place.kind ? "rdma-core-" : "linux-") + revision);
    tree->source = {{"kind", place.kind ? place.kind : "git"}};
    if (release) tree->source.emplace_back("tag", revision);
    tree->source.emplace_back("commit", Trim(*commit).substr(0, 12));
    tree->unpacked = folder;
    return tree;
  }
  return Error{"git:" + spec + ": this revision has no RDMA kernel headers; looked for " + tried};
}

}  // namespace

bool MayNameSnapshots(char c) {
  return isalnum(static_cast<unsigned char>(c)) ||
         std::string_view(".-_+~").find(c) != std::string_view::npos;
}

Result<HeaderTree> OpenHeaders(const std::string& spec) {
  if (spec.starts_with("git:")) return OpenGit(spec.substr(4));
  std::error_code error;
  fs::path path(spec);
  if (!fs::exists(path, error)) return Error{spec + ": there is no such file or folder"};
  if (path.extension() == ".deb") return OpenDeb(path);
  if (path.extension() == ".rpm") return OpenRpm(path);
  if (fs::is_directory(path, error)) return OpenFolder(path);
  return Error{spec + ": expected a folder, a .deb, a .rpm or git:PATH@REVISION"};
}

}  // namespace vabi::facts
