// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/json.h"

#include <fstream>
#include <sstream>

#include "harness/facts/cursor.h"
#include "harness/facts/sha256.h"

namespace vabi::facts {
namespace {

// ---- reading ----

void ReadFormat(const Cursor& top) {
  int64_t format = top["format"].Int64();
  if (format != kFormat) {
    top["format"].Fail(
        "facts format " + std::to_string(kFormat) +
        (format > kFormat ? " (this file is of a newer verbs-abi: update this one)" : ""));
  }
}

struct Fields64And32 {
  std::vector<Field> x86_64, i386;
  bool differ = false;
};

Fields64And32 ReadFields(const Cursor& list);

std::vector<uint32_t> ReadDims(const Cursor& at) {
  std::vector<uint32_t> dims;
  for (size_t i = 0; i < at.Size(); ++i) {
    // null: [], 0: [0].
    dims.push_back(at.At(i).IsNull() ? 0 : at.At(i).Uint32());
    if (dims.back() == 0 && i > 0) at.At(i).Fail("a dimension of at least 1 after the first");
  }
  return dims;
}

// A member in both layouts.
void ReadField(const Cursor& at, Fields64And32& out) {
  at.AllowOnly({"n", "t", "o", "s", "d", "x", "b", "via", "arg", "f", "packed", "as", "i386"});
  Field field;
  if (at.Has("n")) field.name = at["n"].String();
  field.type = at["t"].String();
  field.offset = at["o"].Uint32();
  field.size = at["s"].Uint32();
  if (at.Has("d")) {
    Cursor dims = at["d"];
    field.dims = ReadDims(dims);
    field.flexible = !field.dims.empty() && field.dims[0] == 0;
    field.zero_length = field.flexible && !dims.At(0).IsNull();
  }
  if (at.Has("x")) field.dims_text = at["x"].String();
  if (at.Has("b")) {
    field.bit_offset = at["b"].At(0).Uint32();
    field.bit_width = at["b"].At(1).Uint32();
  }
  if (at.Has("via")) field.via = at["via"].String();
  if (at.Has("arg")) field.via_arg = at["arg"].String();
  if (at.Has("as")) field.same_type_as = at["as"].String();

  Field field32 = field;
  if (at.Has("i386")) {
    Cursor at32 = at["i386"];
    field32.offset = at32.At(0).Uint32();
    field32.size = at32.At(1).Uint32();
    if (at32.Size() > 2) field32.dims = ReadDims(at32.At(2));
    out.differ = true;
  }
  if (at.Has("f")) {
    Fields64And32 members = ReadFields(at["f"]);
    auto in_place = std::make_shared<Struct>();
    in_place->is_union = field.type.starts_with("union");
    if (size_t space = field.type.find(' '); space != std::string::npos) {
      in_place->name = field.type.substr(space + 1);
    }
    in_place->packed = at.Has("packed");
    uint32_t count = 1;
    for (uint32_t dim : field.dims) count *= dim;
    in_place->size = count ? field.size / count : 0;
    in_place->fields = members.x86_64;
    if (members.differ || field32.size != field.size) {
      auto in_place32 = std::make_shared<Struct>(*in_place);
      in_place32->size = count ? field32.size / count : 0;
      in_place32->fields = std::move(members.i386);
      in_place->i386 = in_place32;
      field32.record = in_place32;
      out.differ = true;
    } else {
      field32.record = in_place;
    }
    field.record = in_place;
  } else if (field.name.empty()) {
    at.Fail("a name (\"n\") or members (\"f\")");
  }
  out.x86_64.push_back(std::move(field));
  out.i386.push_back(std::move(field32));
}

Fields64And32 ReadFields(const Cursor& list) {
  Fields64And32 out;
  size_t count = list.Size();
  out.x86_64.reserve(count);
  out.i386.reserve(count);
  for (size_t i = 0; i < count; ++i) ReadField(list.At(i), out);
  return out;
}

Struct ReadStruct(const Cursor& at, const char* keyword) {
  at.AllowOnly({"struct", "union", "size", "align", "packed", "aligned", "i386", "fields"});
  Struct record;
  record.name = at[keyword].String();
  record.is_union = keyword[0] == 'u';
  record.size = at["size"].Uint32();
  record.align = at["align"].Uint32();
  record.packed = at.Has("packed");
  if (at.Has("aligned")) record.aligned = at["aligned"].Uint32();
  Fields64And32 fields = ReadFields(at["fields"]);
  record.fields = std::move(fields.x86_64);
  if (fields.differ || at.Has("i386")) {
    auto i386 = std::make_shared<Struct>(record);
    i386->fields = std::move(fields.i386);
    if (at.Has("i386")) {
      i386->size = at["i386"]["size"].Uint32();
      i386->align = at["i386"]["align"].Uint32();
    }
    record.i386 = std::move(i386);
  }
  return record;
}

Enum ReadEnum(const Cursor& at) {
  at.AllowOnly({"enum", "values"});
  Enum result;
  result.name = at["enum"].String();
  Cursor values = at["values"];
  size_t count = values.Size();
  result.values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Cursor pair = values.At(i);
    result.values.emplace_back(pair.At(0).String(), pair.At(1).Int64());
  }
  return result;
}

Macro ReadMacro(const Cursor& at) {
  at.AllowOnly({"macro", "params", "body", "value", "prelude", "i386"});
  Macro macro;
  macro.name = at["macro"].String();
  if (at.Has("params")) macro.params = at["params"].String();
  if (at.Has("body")) macro.body = at["body"].String();
  if (at.Has("value")) {
    macro.value = at["value"].Int64();
    macro.is_unsigned = at["value"].IsUnsignedBeyondInt64();
  }
  if (at.Has("i386")) macro.value_i386 = at["i386"].Int64();
  macro.needs_prelude = at.Has("prelude");
  return macro;
}

Typedef ReadTypedef(const Cursor& at) {
  at.AllowOnly({"typedef", "text", "size", "align", "i386"});
  Typedef result;
  result.name = at["typedef"].String();
  result.text = at["text"].String();
  result.size = result.size_i386 = at["size"].Uint32();
  result.align = result.align_i386 = at["align"].Uint32();
  if (at.Has("i386")) {
    result.size_i386 = at["i386"]["size"].Uint32();
    result.align_i386 = at["i386"]["align"].Uint32();
  }
  return result;
}

Decl ReadDecl(const Cursor& at) {
  if (at.Has("struct")) return ReadStruct(at, "struct");
  if (at.Has("union")) return ReadStruct(at, "union");
  if (at.Has("enum")) return ReadEnum(at);
  if (at.Has("macro")) return ReadMacro(at);
  if (at.Has("typedef")) return ReadTypedef(at);
  at.Fail("a declaration with one of the members struct, union, enum, macro, typedef");
}

// ---- writing ----

Json NumberOf(int64_t value, bool is_unsigned) {
  return is_unsigned ? Json(static_cast<uint64_t>(value)) : Json(value);
}

Json FieldJson(const Field& field, const Field& field32) {
  Json out;
  if (!field.name.empty()) out["n"] = field.name;
  out["t"] = field.type;
  out["o"] = field.offset;
  out["s"] = field.size;
  if (!field.dims.empty()) {
    out["d"] = field.dims;
    if (field.flexible && !field.zero_length) out["d"][0] = nullptr;
  }
  if (!field.dims_text.empty()) out["x"] = field.dims_text;
  if (field.is_bitfield()) out["b"] = {field.bit_offset, field.bit_width};
  if (!field.via.empty()) out["via"] = field.via;
  if (!field.via_arg.empty()) out["arg"] = field.via_arg;
  if (field.record) {
    if (field.record->packed) out["packed"] = 1;
    const Struct& record32 = field32.record ? *field32.record : *field.record;
    Json members = Json::array();
    for (size_t i = 0; i < field.record->fields.size(); ++i) {
      members.push_back(FieldJson(field.record->fields[i], record32.fields[i]));
    }
    out["f"] = std::move(members);
  }
  if (!field.same_type_as.empty()) out["as"] = field.same_type_as;
  if (field32.dims != field.dims) {
    out["i386"] = {field32.offset, field32.size, field32.dims};
  } else if (field32.offset != field.offset || field32.size != field.size) {
    out["i386"] = {field32.offset, field32.size};
  }
  return out;
}

Json DeclJson(const Struct& record) {
  const Struct& record32 = LayoutFor(record, Arch::kI386);
  Json out;
  out[record.is_union ? "union" : "struct"] = record.name;
  out["size"] = record.size;
  out["align"] = record.align;
  if (record.packed) out["packed"] = 1;
  if (record.aligned) out["aligned"] = record.aligned;
  if (record32.size != record.size || record32.align != record.align) {
    out["i386"] = {{"size", record32.size}, {"align", record32.align}};
  }
  Json fields = Json::array();
  for (size_t i = 0; i < record.fields.size(); ++i) {
    fields.push_back(FieldJson(record.fields[i], record32.fields[i]));
  }
  out["fields"] = std::move(fields);
  return out;
}

Json DeclJson(const Enum& e) {
  Json values = Json::array();
  for (const auto& [name, value] : e.values) values.push_back(Json::array({name, value}));
  Json out;
  out["enum"] = e.name;
  out["values"] = std::move(values);
  return out;
}

Json DeclJson(const Macro& macro) {
  Json out;
  out["macro"] = macro.name;
  if (!macro.params.empty()) out["params"] = macro.params;
  if (!macro.body.empty()) out["body"] = macro.body;
  if (macro.value) out["value"] = NumberOf(*macro.value, macro.is_unsigned);
  if (macro.needs_prelude) out["prelude"] = 1;
  if (macro.value_i386) out["i386"] = NumberOf(*macro.value_i386, macro.is_unsigned);
  return out;
}

Json DeclJson(const Typedef& t) {
  Json out;
  out["typedef"] = t.name;
  out["text"] = t.text;
  out["size"] = t.size;
  out["align"] = t.align;
  if (t.size_i386 != t.size || t.align_i386 != t.align) {
    out["i386"] = {{"size", t.size_i386}, {"align", t.align_i386}};
  }
  return out;
}

Result<std::string> ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return Error{path.string() + ": cannot be read"};
  return std::move(text).str();
}

}  // namespace

std::filesystem::path HeaderFile(const std::filesystem::path& dir, std::string_view path,
                                 std::string_view digest) {
  return dir / "headers" / (std::string(path) + "." + std::string(digest) + ".json");
}

Result<Header> ParseHeader(std::string_view text, const std::string& where) {
  try {
    Json json = ParseJson(text, where);
    Cursor top(json, where);
    ReadFormat(top);
    top.AllowOnly({"format", "header", "includes", "decls"});
    Header header;
    header.path = top["header"].String();
    header.digest = ShortDigest(text);
    Cursor includes = top["includes"];
    for (size_t i = 0; i < includes.Size(); ++i) header.includes.push_back(includes.At(i).String());
    Cursor decls = top["decls"];
    size_t count = decls.Size();
    header.decls.reserve(count);
    for (size_t i = 0; i < count; ++i) header.decls.push_back(ReadDecl(decls.At(i)));
    return header;
  } catch (const FormatError& error) {
    return Error{error.message};
  }
}

std::string WriteHeader(const Header& header) {
  Json head;
  head["format"] = kFormat;
  head["header"] = header.path;
  head["includes"] = header.includes;
  std::string out = head.dump();
  out.pop_back();
  out += ",\"decls\":[";
  const char* separator = "\n";
  for (const Decl& decl : header.decls) {
    out += separator;
    out += std::visit([](const auto& d) { return DeclJson(d).dump(); }, decl);
    separator = ",\n";
  }
  return out + "\n]}\n";
}

// Reads what json.h promises into the private parts of a snapshot.
class SnapshotReader {
 public:
  static Result<Snapshot> Read(const std::filesystem::path& dir, const std::string& name) {
    std::filesystem::path file = dir / (name + ".json");
    std::string where = file.string();
    Result<std::string> text = ReadFile(file);
    if (!text) {
      return Error{where + ": cannot be read; expected the file of snapshot '" + name + "' (" +
                   NearNames(dir) + ")"};
    }
    Json json = ParseJson(*text, where);
    Cursor top(json, where);
    ReadFormat(top);
    top.AllowOnly({"format", "name", "stack", "arch", "page_size", "source", "headers"});
    Snapshot snapshot;
    snapshot.name_ = top["name"].String();
    if (snapshot.name_ != name) top["name"].Fail("the name of the file, \"" + name + "\"");
    snapshot.stack_ = top["stack"].String();
    snapshot.page_size_ = top["page_size"].Uint32();
    snapshot.archs_.clear();
    Cursor archs = top["arch"];
    for (size_t i = 0; i < archs.Size(); ++i) snapshot.archs_.push_back(ReadArch(archs.At(i)));
    Cursor source = top["source"];
    source["kind"].String();
    for (auto it = source.json().begin(); it != source.json().end(); ++it) {
      snapshot.source_.emplace_back(it.key(),
                                    it->is_string() ? it->get<std::string>() : it->dump());
    }
    std::vector<Header> headers;
    Cursor list = top["headers"];
    if (!list.json().is_object()) list.Fail("an object of header path: digest");
    headers.reserve(list.json().size());
    for (auto it = list.json().begin(); it != list.json().end(); ++it) {
      const std::string& path = it.key();
      std::string digest = list[path.c_str()].String();
      headers.push_back(ReadOneHeader(dir, path, digest, where));
    }
    snapshot.headers_ = std::make_shared<const std::vector<Header>>(std::move(headers));
    if (auto error = snapshot.Index()) return Error{where + ": " + error->message};
    return snapshot;
  }

 private:
  static Arch ReadArch(const Cursor& at) {
    std::string name = at.String();
    for (Arch arch : {Arch::kX86_64, Arch::kI386}) {
      if (name == ArchName(arch)) return arch;
    }
    at.Fail("one of x86_64, i386");
  }

  static Header ReadOneHeader(const std::filesystem::path& dir, const std::string& path,
                              const std::string& digest, const std::string& where) {
    std::filesystem::path file = HeaderFile(dir, path, digest);
    Result<std::string> text = ReadFile(file);
    if (!text) {
      throw FormatError(where + ": at /headers/" + path +
                        ": expected the facts of this header in " + file.string() +
                        ", which cannot be read");
    }
    Result<Header> header = ParseHeader(*text, file.string());
    if (!header) throw FormatError(header.error());
    if (header->path != path) {
      throw FormatError(file.string() + ": at /header: expected \"" + path + "\", found \"" +
                        header->path + "\"");
    }
    if (header->digest != digest) {
      throw FormatError(
          file.string() + ": expected content with digest " + digest + " as its name says, found " +
          header->digest +
          ": the file was changed; extract the facts again, or rename it and its entry in " +
          where);
    }
    return std::move(*header);
  }

  static std::string NearNames(const std::filesystem::path& dir) {
    std::vector<std::string> names = ListSnapshots(dir);
    if (names.empty()) return "this folder has no snapshot";
    return "this folder has " + std::to_string(names.size()) + ", from " + names.front() + " to " +
           names.back();
  }
};

Result<Snapshot> Snapshot::Load(const std::filesystem::path& dir, const std::string& name) {
  try {
    return SnapshotReader::Read(dir, name);
  } catch (const FormatError& error) {
    return Error{error.message};
  }
}

std::string WriteSnapshot(const Snapshot& snapshot) {
  Json head, source;
  head["format"] = kFormat;
  head["name"] = snapshot.name();
  head["stack"] = snapshot.stack();
  head["arch"] = Json::array();
  for (Arch arch : snapshot.archs()) head["arch"].push_back(ArchName(arch));
  head["page_size"] = snapshot.page_size();
  for (const auto& [key, value] : snapshot.source()) source[key] = value;
  std::string out = head.dump();
  out.pop_back();
  out += ",\n\"source\":" + source.dump() + ",\n\"headers\":{";
  const char* separator = "\n";
  for (const Header& header : snapshot.headers()) {
    out += separator + Json(header.path).dump() + ":" + Json(header.digest).dump();
    separator = ",\n";
  }
  return out + "\n}}\n";
}

Result<std::filesystem::path> SaveSnapshot(const Snapshot& snapshot,
                                           const std::filesystem::path& dir) {
  auto write = [](const std::filesystem::path& file, const std::string& text) {
    std::error_code ignored;
    std::filesystem::create_directories(file.parent_path(), ignored);
    std::ofstream out(file, std::ios::binary);
    return bool(out << text << std::flush);
  };
  for (const Header& header : snapshot.headers()) {
    std::filesystem::path file = HeaderFile(dir, header.path, header.digest);
    if (std::filesystem::exists(file)) continue;
    if (!write(file, WriteHeader(header))) return Error{file.string() + ": cannot be written"};
  }
  std::filesystem::path file = dir / (snapshot.name() + ".json");
  if (!write(file, WriteSnapshot(snapshot))) return Error{file.string() + ": cannot be written"};
  return file;
}

}  // namespace vabi::facts
