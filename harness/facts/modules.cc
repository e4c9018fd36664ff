// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/modules.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "harness/facts/btf_types.h"
#include "harness/facts/elf_section.h"
#include "harness/facts/subprocess.h"
#include "harness/facts/temporary.h"

namespace vabi::facts {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBtfMagic("\x9f\xeb", 2);  // 0xeb9f, little-endian

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// How each kind of compressed file begins, and what unpacks it to standard output.
struct Packing {
  std::string_view magic;
  std::vector<std::string> program;
};
const std::vector<Packing>& Packings() {
  static const std::vector<Packing> kPackings = {
      {std::string_view("\xfd"
                        "7zXZ\0",
                        6),
       {"xz", "-qdc", "--single-stream"}},
      {std::string_view("\x28\xb5\x2f\xfd", 4), {"zstd", "-qdc"}},
      {std::string_view("\x1f\x8b\x08", 3), {"gzip", "-qdc"}},
      {std::string_view("\x02\x21\x4c\x18", 4), {"lz4", "-qdc"}},
  };
  return kPackings;
}

// `text` unpacked when it is compressed, else as it is. A kernel image's payload ends with its
// unpacked length, which some programs complain of after having unpacked all.
Result<std::string> Unpacked(std::string text, const std::string& what) {
  for (const Packing& packing : Packings()) {
    if (!text.starts_with(packing.magic)) continue;
    TemporaryFolder folder;
    fs::path packed = folder.path / "packed", plain = folder.path / "plain";
    std::ofstream(packed, std::ios::binary) << text;
    std::vector<std::string> command = {"sh",
                                        "-c",
                                        "in=$1 out=$2; shift 2; \"$@\" <\"$in\" >\"$out\"",
                                        "sh",
                                        packed.string(),
                                        plain.string()};
    command.insert(command.end(), packing.program.begin(), packing.program.end());
    auto ran = RunProcess(command);
    std::string out = ReadFile(plain);
    if (!ran || out.empty()) {
      return Error{what + ": cannot be unpacked with " + packing.program[0] +
                   (ran ? ": " + ran->output : ": " + ran.error())};
    }
    return out;
  }
  return text;
}

// The compressed kernel in a bzImage (Documentation/arch/x86/boot.rst: setup_sects at 0x1f1, HdrS
// at 0x202, payload_offset and payload_length at 0x248); empty when the image is none.
std::string_view Payload(std::string_view image) {
  if (image.size() < 0x260 || image.substr(0x202, 4) != "HdrS") return {};
  uint32_t offset = 0, length = 0;
  std::memcpy(&offset, image.data() + 0x248, 4);
  std::memcpy(&length, image.data() + 0x24c, 4);
  uint64_t sectors = static_cast<unsigned char>(image[0x1f1]);
  uint64_t start = ((sectors ? sectors : 4) + 1) * 512 + offset;
  if (start > image.size() || image.size() - start < length) return {};
  return image.substr(start, length);
}

bool IsModule(const fs::path& path) {
  std::string name = path.filename().string();
  for (const char* end : {".ko", ".ko.xz", ".ko.zst", ".ko.gz"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

std::string ModuleName(const fs::path& path) {
  std::string name = path.filename().string();
  return name.substr(0, name.find(".ko"));
}

// All files below a folder that `wanted` takes, sorted. Links to folders are not followed.
template <typename Wanted>
std::vector<fs::path> Find(const fs::path& dir, Wanted wanted) {
  std::vector<fs::path> found;
  std::error_code error;
  auto options = fs::directory_options::skip_permission_denied;
  for (auto it = fs::recursive_directory_iterator(dir, options, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_regular_file(error) && wanted(it->path())) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Modules of RDMA drivers; those outside infiniband/ (nvme-rdma, smc …) have no UAPI of it.
std::vector<fs::path> RdmaModules(const fs::path& dir) {
  std::vector<fs::path> all = Find(dir, IsModule), rdma;
  for (const fs::path& path : all) {
    if (path.string().find("/infiniband/") != std::string::npos) rdma.push_back(path);
  }
  return rdma.empty() ? all : rdma;
}

std::string Release(const std::vector<fs::path>& modules) {
  for (const fs::path& path : modules) {
    for (auto part = path.begin(); part != path.end(); ++part) {
      if (*part == "modules" && std::next(part) != path.end()) return std::next(part)->string();
    }
  }
  return "";
}

// /sys/kernel/btf: one file of raw BTF a module, and vmlinux.
bool IsBtfFolder(const fs::path& dir) {
  std::error_code error;
  fs::path vmlinux = dir / "vmlinux";
  if (!fs::is_regular_file(vmlinux, error)) return false;
  std::ifstream in(vmlinux, std::ios::binary);
  char magic[2] = {};
  return in.read(magic, 2) && std::string_view(magic, 2) == kBtfMagic;
}

std::optional<fs::path> FindImage(const fs::path& dir) {
  std::vector<fs::path> found = Find(dir, [](const fs::path& path) {
    std::string name = path.filename().string();
    return name.starts_with("vmlinuz") || name == "vmlinux" || name.starts_with("vmlinux-");
  });
  return found.empty() ? std::nullopt : std::optional(found.front());
}

class ModuleReader {
 public:
  ModuleReader(fs::path dir, fs::path image, const std::set<std::string>& names)
      : dir_(std::move(dir)), image_(std::move(image)), names_(names) {}

  Result<ModuleTypes> FromFolder() {
    std::vector<fs::path> modules = RdmaModules(dir_);
    if (modules.empty()) {
      return Error{dir_.string() +
                   ": has no kernel modules; expected lib/modules/RELEASE with *.ko below "
                   "infiniband/, or /sys/kernel/btf"};
    }
    ModuleTypes found;
    found.release = Release(modules);
    for (const fs::path& path : modules) {
      Result<std::string> text = Unpacked(ReadFile(path), path.string());
      if (!text) return Error{text.error()};
      if (auto error = AddModule(*text, ModuleName(path), found.types)) return std::move(*error);
    }
    return found;
  }

  Result<ModuleTypes> FromSys() {
    ModuleTypes found;
    if (image_.empty()) image_ = dir_ / "vmlinux";
    std::vector<fs::path> files = Find(dir_, [](const fs::path&) { return true; });
    for (const fs::path& path : files) {
      std::string name = path.filename().string();
      if (name == "vmlinux") continue;
      if (auto error = AddSplit(ReadFile(path), name, found.types)) return std::move(*error);
    }
    // What is built into the kernel.
    if (auto error = LoadBase()) return std::move(*error);
    AddBtfTypes(base_, names_, "vmlinux", found.types);
    found.types.files.emplace_back("vmlinux");
    return found;
  }

 private:
  std::optional<Error> AddModule(const std::string& image, const std::string& name,
                                 BinaryTypes& types) {
    auto own = ElfSection(image, ".BTF");
    if (!own) {
      if (!image.starts_with("\x7f"
                             "ELF"))
        return Error{name + ": is no kernel module: it is no ELF file"};
      types.files.push_back(name);
      types.silent.push_back(name);
      return std::nullopt;
    }
    // Newer kernels put what a module needs of its base beside it.
    if (auto distilled = ElfSection(image, ".BTF.base")) {
      auto base = ParseBtf(*distilled, nullptr);
      if (!base) return Error{name + ": " + base.error()};
      auto btf = ParseBtf(*own, *base);
      if (!btf) return Error{name + ": " + btf.error()};
      AddBtfTypes(*btf, names_, name, types);
      types.files.push_back(name);
      return std::nullopt;
    }
    return AddSplit(std::string(*own), name, types);
  }

  std::optional<Error> AddSplit(const std::string& bytes, const std::string& name,
                                BinaryTypes& types) {
    if (auto error = LoadBase()) return error;
    auto btf = ParseBtf(bytes, base_);
    if (!btf) return Error{name + ": " + btf.error()};
    AddBtfTypes(*btf, names_, name, types);
    types.files.push_back(name);
    return std::nullopt;
  }

  std::optional<Error> LoadBase() {
    if (base_) return std::nullopt;
    if (image_.empty()) {
      auto found = FindImage(dir_);
      if (!found) {
        return Error{dir_.string() +
                     ": modules refer to the BTF of their kernel, and there is no vmlinuz or "
                     "vmlinux here; name it with --base"};
      }
      image_ = *found;
    }
    auto bytes = KernelBtf(image_);
    if (!bytes) return Error{bytes.error()};
    auto base = ParseBtf(*bytes, nullptr);
    if (!base) return Error{image_.string() + ": " + base.error()};
    base_ = *base;
    return std::nullopt;
  }

  fs::path dir_, image_;
  const std::set<std::string>& names_;
  Btf base_;
};

// Only what is read here: a kernel package holds hundreds of megabytes.
Result<ModuleTypes> FromDeb(const fs::path& file, const fs::path& base,
                            const std::set<std::string>& names) {
  auto version = RunProcess({"dpkg-deb", "-f", file.string(), "Version"});
  if (!version || version->status != 0) {
    return Error{file.string() + ": is no Debian package" +
                 (version ? ": " + version->output : "")};
  }
  TemporaryFolder folder;
  const std::string script =
      "dpkg-deb --fsys-tarfile \"$1\" | tar -x -C \"$2\" --no-same-owner --wildcards "
      "'*/infiniband/*' '*/vmlinuz*' 2>/dev/null; :";
  auto unpacked = RunProcess({"sh", "-c", script, "sh", file.string(), folder.path.string()});
  if (!unpacked) return Error{file.string() + ": " + unpacked.error()};
  auto found = ModuleReader(folder.path, base, names).FromFolder();
  if (!found) {
    std::string text = found.error();
    if (size_t at = text.find(folder.path.string()); at != std::string::npos)
      text.replace(at, folder.path.string().size(), file.string());
    return Error{text};
  }
  std::string text = version->output;
  found->version = text.substr(0, text.find('\n'));
  return found;
}

}  // namespace

Result<std::string> KernelBtf(const fs::path& image) {
  std::string text = ReadFile(image);
  if (text.empty()) return Error{image.string() + ": cannot be read"};
  if (text.starts_with(kBtfMagic)) return text;
  if (std::string_view payload = Payload(text); !payload.empty()) {
    Result<std::string> kernel = Unpacked(std::string(payload), image.string());
    if (!kernel) return kernel;
    text = std::move(*kernel);
  }
  auto section = ElfSection(text, ".BTF");
  if (!section) {
    return Error{image.string() +
                 ": has no BTF; the kernel was built without CONFIG_DEBUG_INFO_BTF"};
  }
  return std::string(*section);
}

Result<ModuleTypes> ReadModules(const fs::path& source, const fs::path& base,
                                const std::set<std::string>& names) {
  std::error_code error;
  if (!fs::exists(source, error))
    return Error{source.string() + ": there is no such file or folder"};
  Result<ModuleTypes> found = Error{""};
  if (source.extension() == ".deb") {
    found = FromDeb(source, base, names);
  } else if (!fs::is_directory(source, error)) {
    return Error{source.string() + ": expected a folder with modules, a .deb or /sys/kernel/btf"};
  } else if (IsBtfFolder(source)) {
    found = ModuleReader(source, base, names).FromSys();
  } else {
    found = ModuleReader(source, base, names).FromFolder();
  }
  if (!found) return found;
  if (found->types.files.size() == found->types.silent.size()) {
    return Error{source.string() + ": none of its " + std::to_string(found->types.files.size()) +
                 " modules has BTF; the kernel was built without CONFIG_DEBUG_INFO_BTF_MODULES"};
  }
  return found;
}

}  // namespace vabi::facts
