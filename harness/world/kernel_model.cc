// SPDX-License-Identifier: BSD-2-Clause
#include "harness/world/kernel_model.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "harness/world/json_file.h"

namespace vabi {
namespace {

using facts::Error;
using facts::Result;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kMaxGenerations = 64;

template <size_t kSize>
void SetText(char (&to)[kSize], std::string_view text) {
  const size_t length = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// What the headers tell: sizes, places, constants. Everything else starts as in the newest kernel.
void FillFromFacts(const facts::Snapshot& snapshot, facts::Arch arch, WorldImage* image) {
  std::memcpy(image->magic, kWorldMagic, sizeof kWorldMagic);
  image->tables_digest = TablesDigest();
  image->image_size = sizeof(WorldImage);
  image->page_size = snapshot.page_size();
  SetText(image->stack, snapshot.stack());
  SetText(image->arch, facts::ArchName(arch));

  for (size_t i = 0; i < StructNames().size(); ++i) {
    const facts::Struct* record = snapshot.FindStruct(StructNames()[i], arch);
    image->struct_size[i] = record == nullptr ? 0 : static_cast<uint16_t>(record->size);
  }
  for (size_t i = 0; i < FieldRows().size(); ++i) {
    const FieldRow& row = FieldRows()[i];
    image->field[i] = {-1, 0};
    const auto field = snapshot.FindField(row.structure_name, row.path, arch);
    if (field && field->bit_width == 0) {
      image->field[i] = {static_cast<int16_t>(field->offset), static_cast<uint16_t>(field->size)};
    }
  }
  for (size_t i = 0; i < ConstNames().size(); ++i) {
    const auto value = snapshot.Constant(ConstNames()[i], arch);
    image->constant[i] = {value.value_or(0), static_cast<uint8_t>(value.has_value())};
  }
  for (size_t i = 0; i < RuleRows().size(); ++i) {
    image->rule[i] = {static_cast<int16_t>(RuleRows()[i].error), 1, 0, KnownBy::kHeaders};
  }
  for (size_t i = 0; i < KnobRows().size(); ++i) image->knob[i] = KnobRows()[i].value;

  // Served by default: whatever the headers name. Kernel files say where a header came before its
  // method, or a method was held back.
  for (size_t i = 0; i < MethodRows().size(); ++i) {
    const MethodRow& row = MethodRows()[i];
    if (*row.name == '\0') continue;
    image->method_served[i] =
        image->constant[Index(row.object)].present && image->constant[Index(row.method)].present;
  }
  for (size_t i = 0; i < WriteNames().size(); ++i) {
    image->write_served[i] =
        snapshot.Constant(std::string("IB_USER_VERBS_CMD_") + WriteNames()[i], arch).has_value();
  }
  for (size_t i = 0; i < WriteExNames().size(); ++i) {
    image->write_ex_served[i] =
        snapshot.Constant(std::string("IB_USER_VERBS_EX_CMD_") + WriteExNames()[i], arch)
            .has_value();
  }
  std::memset(image->op_served, 1, sizeof image->op_served);
}

struct KernelFile {
  fs::path path;
  json value;
};

Result<KernelFile> ReadKernelFile(const fs::path& root, const std::string& name) {
  const fs::path dir = root / "matrix" / "kernels";
  const fs::path path = dir / (name + ".json");
  if (!fs::exists(path)) {
    const std::vector<std::string> names = JsonNames(dir);
    return Error{"unknown kernel \"" + name + "\"" + Nearest(name, names)};
  }
  auto value = ReadJsonFile(path);
  if (!value) return Error{value.error()};
  if (value->value("name", json()) != json(name)) {
    return At(path, "/name", "must be \"" + name + "\", as the file is called");
  }
  return KernelFile{path, std::move(*value)};
}

// Parts of the model ("core", a driver) that a real kernel has confirmed.
bool IsCalibrated(std::string_view rule, const std::set<std::string>& calibrated) {
  for (const DriverRow& driver : DriverRows()) {
    const std::string prefix = std::string(driver.name) + ".";
    if (rule.substr(0, prefix.size()) == prefix) return calibrated.count(driver.name) != 0;
  }
  return calibrated.count("core") != 0;
}

}  // namespace

Result<KernelModel> KernelModel::Load(const fs::path& root, const std::string& name,
                                      facts::Arch arch) {
  std::vector<KernelFile> chain;  // from the kernel to its oldest ancestor
  std::string headers;
  for (std::string next = name; !next.empty();) {
    if (chain.size() >= kMaxGenerations) {
      return At(chain.back().path, "/parent", "the chain of parents has no end");
    }
    auto file = ReadKernelFile(root, next);
    if (!file) {
      if (chain.empty()) return Error{file.error()};
      return At(chain.back().path, "/parent", file.error());
    }
    for (const char* key : {"parent", "headers", "known_by", "released"}) {
      if (file->value.contains(key) && !file->value[key].is_string()) {
        return At(file->path, std::string("/") + key, "must be a text");
      }
    }
    if (headers.empty()) headers = file->value.value("headers", "");
    next = file->value.value("parent", "");
    chain.push_back(std::move(*file));
  }
  const KernelFile& own = chain.front();
  if (headers.empty())
    return At(own.path, "/headers", "needs the name of a snapshot in reference-headers");

  auto snapshot = facts::Snapshot::Load(root / "reference-headers", headers);
  if (!snapshot) return At(own.path, "/headers", snapshot.error());

  KernelModel model;
  model.name_ = name;
  model.headers_ = headers;
  model.snapshot_ = std::make_shared<const facts::Snapshot>(std::move(*snapshot));
  model.image_ = std::make_shared<WorldImage>();
  std::memset(model.image_.get(), 0, sizeof(WorldImage));
  WorldImage* image = model.image_.get();
  FillFromFacts(*model.snapshot_, arch, image);
  SetText(image->kernel, name);
  for (bool& present : model.drivers_.present) present = true;

  const auto known_by = KnownByName(own.value.value("known_by", ""));
  if (!known_by) return At(own.path, "/known_by", "is calibrated, source or headers");
  image->known_by = *known_by;
  std::set<std::string> calibrated;
  for (const json& part : own.value.value("calibrated", json::array())) {
    calibrated.insert(part.get<std::string>());
  }
  for (size_t i = 0; i < RuleRows().size(); ++i) {
    image->rule[i].known_by =
        *known_by == KnownBy::kCalibrated && !IsCalibrated(RuleRows()[i].name, calibrated)
            ? KnownBy::kSource
            : *known_by;
  }

  for (auto file = chain.rbegin(); file != chain.rend(); ++file) {
    const json changes = file->value.value("changes", json::array());
    if (!changes.is_array()) return At(file->path, "/changes", "must be a list");
    for (size_t i = 0; i < changes.size(); ++i) {
      const std::string pointer = "/changes/" + std::to_string(i);
      auto applied = ApplyModelChange(changes[i], image, &model.drivers_);
      if (!applied) return At(file->path, pointer, applied.error());
      if (!*applied) return At(file->path, pointer, "names nothing that a kernel file can change");
      if (!changes[i].contains("why") || !changes[i]["why"].is_string()) {
        return At(file->path, pointer, "needs a \"why\": how this is known");
      }
    }
  }
  return model;
}

}  // namespace vabi
