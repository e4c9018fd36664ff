// SPDX-License-Identifier: BSD-2-Clause
#include "harness/facts/clang_parse.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>

#include "harness/facts/c_text.h"

namespace vabi::facts {
namespace {

std::string Take(CXString text) {
  const char* raw = clang_getCString(text);
  std::string copy = raw ? raw : "";
  clang_disposeString(text);
  return copy;
}

using Unit = std::unique_ptr<CXTranslationUnitImpl, decltype(&clang_disposeTranslationUnit)>;

// Where a location stands in the text, also when a macro made it.
unsigned Offset(CXSourceLocation location) {
  unsigned offset = 0;
  clang_getExpansionLocation(location, nullptr, nullptr, nullptr, &offset);
  return offset;
}
unsigned Start(CXCursor cursor) {
  return Offset(clang_getRangeStart(clang_getCursorExtent(cursor)));
}
unsigned End(CXCursor cursor) { return Offset(clang_getRangeEnd(clang_getCursorExtent(cursor))); }

void ForEachChild(CXCursor parent, const std::function<void(CXCursor)>& visit) {
  clang_visitChildren(
      parent,
      [](CXCursor child, CXCursor, CXClientData data) {
        (*static_cast<const std::function<void(CXCursor)>*>(data))(child);
        return CXChildVisit_Continue;
      },
      const_cast<std::function<void(CXCursor)>*>(&visit));
}

bool IsRecord(CXCursor cursor) {
  CXCursorKind kind = clang_getCursorKind(cursor);
  return kind == CXCursor_StructDecl || kind == CXCursor_UnionDecl;
}

std::string TagName(CXCursor decl) {
  return clang_Cursor_isAnonymous(decl) ? "" : Take(clang_getCursorSpelling(decl));
}

bool IsUnsigned(CXCursor enum_decl) {
  CXTypeKind kind = clang_getEnumDeclIntegerType(enum_decl).kind;
  return kind == CXType_UInt || kind == CXType_ULong || kind == CXType_ULongLong;
}

// The value as C sees it: libclang's signed getter extends the sign of an unsigned 32-bit one.
int64_t ValueOf(CXCursor enum_decl, CXCursor constant) {
  return IsUnsigned(enum_decl)
             ? static_cast<int64_t>(clang_getEnumConstantDeclUnsignedValue(constant))
             : clang_getEnumConstantDeclValue(constant);
}

// Turns the declarations of one translation unit's main file into the model.
class Reader {
 public:
  Reader(CXTranslationUnit unit, std::string_view text) : unit_(unit), text_(text) {}

  void Read(Header& header) {
    std::vector<std::pair<unsigned, Decl>> found;
    ForEachChild(clang_getTranslationUnitCursor(unit_), [&](CXCursor cursor) {
      if (!clang_Location_isFromMainFile(clang_getCursorLocation(cursor))) return;
      switch (clang_getCursorKind(cursor)) {
        case CXCursor_InclusionDirective:
          header.includes.push_back(Included(cursor));
          break;
        case CXCursor_MacroDefinition:
          found.emplace_back(Start(cursor), ReadMacro(cursor));
          break;
        case CXCursor_EnumDecl:
          if (clang_isCursorDefinition(cursor)) found.emplace_back(Start(cursor), ReadEnum(cursor));
          break;
        case CXCursor_StructDecl:
        case CXCursor_UnionDecl:
          if (clang_isCursorDefinition(cursor)) {
            found.emplace_back(Start(cursor), ReadRecord(cursor, Start(cursor)));
          }
          break;
        case CXCursor_TypedefDecl:
          found.emplace_back(Start(cursor), ReadTypedef(cursor));
          break;
        default:
          break;
      }
    });
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [offset, decl] : found) header.decls.push_back(std::move(decl));
  }

 private:
  std::string_view TextOf(CXCursor cursor) const {
    return text_.substr(Start(cursor), End(cursor) - Start(cursor));
  }

  // "<linux/types.h>", in the form that the directive has.
  std::string Included(CXCursor cursor) const {
    std::string name = Take(clang_getCursorSpelling(cursor));
    return TextOf(cursor).find('<') != std::string_view::npos ? "<" + name + ">"
                                                              : "\"" + name + "\"";
  }

  Macro ReadMacro(CXCursor cursor) const {
    Macro macro;
    macro.name = Take(clang_getCursorSpelling(cursor));
    std::string_view rest = TextOf(cursor).substr(macro.name.size());
    if (clang_Cursor_isMacroFunctionLike(cursor)) {
      size_t close = rest.find(')');
      macro.params = JoinTokens(rest.substr(0, close + 1));
      rest.remove_prefix(close + 1);
    }
    macro.body = JoinTokens(rest);
    // An include guard, from which the kernel's scripts/headers_install.sh takes this prefix.
    constexpr std::string_view kGuard = "_UAPI";
    if (macro.body.empty() && macro.name.starts_with(kGuard)) macro.name.erase(0, kGuard.size());
    return macro;
  }

  Enum ReadEnum(CXCursor cursor) const {
    Enum result;
    result.name = TagName(cursor);
    ForEachChild(cursor, [&](CXCursor child) {
      if (clang_getCursorKind(child) != CXCursor_EnumConstantDecl) return;
      result.values.emplace_back(Take(clang_getCursorSpelling(child)), ValueOf(cursor, child));
    });
    return result;
  }

  Typedef ReadTypedef(CXCursor cursor) const {
    Typedef result;
    CXType type = clang_getCursorType(cursor);
    result.name = Take(clang_getCursorSpelling(cursor));
    result.text = JoinTokens(TextOf(cursor));
    result.size = result.size_i386 =
        static_cast<uint32_t>(std::max(0LL, clang_Type_getSizeOf(type)));
    result.align = result.align_i386 =
        static_cast<uint32_t>(std::max(0LL, clang_Type_getAlignOf(type)));
    return result;
  }

  // `made_at` is where the record's text begins; all that a macro makes has the offset of the
  // macro.
  Struct ReadRecord(CXCursor decl, unsigned made_at) const {
    Struct record;
    CXType type = clang_getCursorType(decl);
    record.name = TagName(decl);
    record.is_union = clang_getCursorKind(decl) == CXCursor_UnionDecl;
    record.size = static_cast<uint32_t>(clang_Type_getSizeOf(type));
    record.align = static_cast<uint32_t>(clang_Type_getAlignOf(type));
    ForEachChild(decl, [&](CXCursor child) {
      CXCursorKind kind = clang_getCursorKind(child);
      if (kind == CXCursor_PackedAttr) record.packed = true;
      if (kind == CXCursor_AlignedAttr) record.aligned = record.align;
    });

    std::vector<CXCursor> fields;
    clang_Type_visitFields(
        type,
        [](CXCursor field, CXClientData data) {
          static_cast<std::vector<CXCursor>*>(data)->push_back(field);
          return CXVisit_Continue;
        },
        &fields);
    std::vector<CXCursor> in_place;  // per field: the type it defines, or a null cursor
    for (CXCursor cursor : fields) {
      // Bits without a name are padding.
      if (clang_Cursor_isBitField(cursor) && Take(clang_getCursorSpelling(cursor)).empty())
        continue;
      CXCursor defined = clang_getNullCursor();
      Field field = ReadField(decl, cursor, made_at, defined);
      if (field.record) {
        for (size_t i = 0; i < in_place.size(); ++i) {
          if (clang_equalCursors(in_place[i], defined)) {
            field.same_type_as = record.fields[i].name;
            break;
          }
        }
      }
      in_place.push_back(defined);
      record.fields.push_back(std::move(field));
    }
    return record;
  }

  Field ReadField(CXCursor parent, CXCursor cursor, unsigned made_at, CXCursor& defined) const {
    Field field;
    field.name = clang_Cursor_isAnonymous(cursor) ? "" : Take(clang_getCursorSpelling(cursor));
    auto bits = static_cast<uint32_t>(clang_Cursor_getOffsetOfField(cursor));
    field.offset = bits / 8;
    CXType type = clang_getCursorType(cursor);
    field.size = static_cast<uint32_t>(std::max(0LL, clang_Type_getSizeOf(type)));
    if (clang_Cursor_isBitField(cursor)) {
      field.bit_offset = bits;
      field.bit_width = static_cast<uint32_t>(clang_getFieldDeclBitWidth(cursor));
    }
    bool open = type.kind == CXType_IncompleteArray;
    for (; type.kind == CXType_ConstantArray || type.kind == CXType_IncompleteArray;
         type = clang_getArrayElementType(type)) {
      field.dims.push_back(static_cast<uint32_t>(std::max(0LL, clang_getArraySize(type))));
    }
    field.flexible = !field.dims.empty() && field.dims[0] == 0;
    field.zero_length = field.flexible && !open;
    if (field.flexible) field.size = 0;

    unsigned start = Start(cursor);
    std::string_view text = text_.substr(start);
    if (start != made_at) {
      MacroCall call = ReadMacroCall(text);
      if (call.arguments.size() >= 2 && call.name != "__attribute__") {
        field.via = call.name;
        field.via_arg = call.arguments[0];
      }
    }

    CXCursor decl = clang_getTypeDeclaration(type);
    bool inside = Start(decl) > Start(parent) && End(decl) <= End(parent);
    if (IsRecord(decl) && (inside || clang_Cursor_isAnonymous(decl))) {
      // Types without a name have no alignment in the files, so that both ways to a model agree.
      Struct record = ReadRecord(decl, start);
      record.align = 0;
      field.type = record.is_union ? "union" : "struct";
      if (!record.name.empty()) field.type += " " + record.name;
      field.record = std::make_shared<const Struct>(std::move(record));
      defined = decl;
    } else {
      field.type = TypeText(cursor, type, text);
    }
    if (field.via.empty() && !field.dims.empty() && start != made_at) {
      unsigned name_at = Offset(clang_getCursorLocation(cursor));
      field.dims_text = SymbolicDims(text_.substr(name_at + field.name.size()));
    }
    return field;
  }

  // __aligned_u64 and its kin are macros, which the compiler has replaced by a plain type and an
  // attribute.
  std::string TypeText(CXCursor cursor, CXType type, std::string_view text) const {
    std::string_view first = LeadingIdentifier(text);
    if (first.starts_with("__aligned_")) return std::string(first);
    std::string spelling = Take(clang_getTypeSpelling(type));
    bool aligned = false;
    ForEachChild(cursor, [&](CXCursor child) {
      aligned |= clang_getCursorKind(child) == CXCursor_AlignedAttr;
    });
    if (aligned && spelling.starts_with("__")) return "__aligned_" + spelling.substr(2);
    return spelling;
  }

  CXTranslationUnit unit_;
  std::string_view text_;
};

// The first error of a unit; false when there is none.
bool FirstError(CXTranslationUnit unit, Problem& problem) {
  unsigned count = clang_getNumDiagnostics(unit);
  for (unsigned i = 0; i < count; ++i) {
    CXDiagnostic diagnostic = clang_getDiagnostic(unit, i);
    bool is_error = clang_getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error;
    if (is_error) {
      CXFile file = nullptr;
      clang_getExpansionLocation(clang_getDiagnosticLocation(diagnostic), &file, &problem.line,
                                 nullptr, nullptr);
      problem.message = Take(clang_getDiagnosticSpelling(diagnostic));
      std::string in = file ? Take(clang_getFileName(file)) : "";
      if (!in.empty() && !in.ends_with(problem.header)) problem.message += " (in " + in + ")";
    }
    clang_disposeDiagnostic(diagnostic);
    if (is_error) return true;
  }
  return false;
}

}  // namespace

ClangParser::ClangParser(std::filesystem::path include_dir, Arch arch)
    : include_dir_(std::move(include_dir)), index_(clang_createIndex(0, 0)) {
  // The machine's own headers serve for what the tree does not have. asm/ is in the folder of the
  // machine's own architecture, whose headers are made for 32 bit as well.
  arguments_ = {"-xc",
                "-std=gnu11",
                "-ffreestanding",
                "-ferror-limit=0",
                "-w",
                "-D__user=",
                arch == Arch::kI386 ? "--target=i386-linux-gnu" : "--target=x86_64-linux-gnu",
                "-nostdinc",
                "-isystem",
                include_dir_.string(),
                "-idirafter",
                "/usr/include",
                "-idirafter",
                "/usr/include/x86_64-linux-gnu"};
}

ClangParser::~ClangParser() { clang_disposeIndex(index_); }

std::optional<Header> ClangParser::Parse(const std::string& path, Problem& problem) {
  problem = {};
  problem.header = path;
  std::string file = (include_dir_ / path).string();
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  // Nothing to copy counts as a failure of the stream that it is written to.
  if (!in || (in.peek() != std::ifstream::traits_type::eof() && !(text << in.rdbuf()))) {
    problem.message = "cannot be read";
    return std::nullopt;
  }
  std::vector<const char*> arguments;
  for (const std::string& argument : arguments_) arguments.push_back(argument.c_str());
  CXTranslationUnit raw = nullptr;
  CXErrorCode code = clang_parseTranslationUnit2(
      index_, file.c_str(), arguments.data(), static_cast<int>(arguments.size()), nullptr, 0,
      CXTranslationUnit_DetailedPreprocessingRecord, &raw);
  Unit unit(raw, clang_disposeTranslationUnit);
  if (code != CXError_Success) {
    problem.message = "the compiler could not start on it";
    return std::nullopt;
  }
  if (FirstError(raw, problem)) return std::nullopt;

  Header header;
  header.path = path;
  std::string source = std::move(text).str();
  Reader(raw, source).Read(header);
  EvaluateMacros(header, "");
  // Names that the header leaves to whoever includes it, such as NLA_F_NESTED.
  EvaluateMacros(header, "#include <linux/netlink.h>\n");
  return header;
}

// One enumerator a line: an error on a line says that this macro is no integer constant.
void ClangParser::EvaluateMacros(Header& header, const std::string& prelude) {
  std::string program = prelude + "#include <" + header.path + ">\n";
  unsigned first_line = 1 + static_cast<unsigned>(std::count(program.begin(), program.end(), '\n'));
  std::vector<Macro*> macros;
  for (Decl& decl : header.decls) {
    auto* macro = std::get_if<Macro>(&decl);
    bool may_have_value =
        macro && macro->params.empty() && !macro->body.empty() && macro->body[0] != '"';
    if (!may_have_value || macro->value) continue;
    program += "enum { vabi_" + std::to_string(macros.size()) + " = (" + macro->name + ") };\n";
    macros.push_back(macro);
  }
  if (macros.empty()) return;

  constexpr char kName[] = "/vabi-macros.c";
  CXUnsavedFile file = {kName, program.data(), program.size()};
  std::vector<const char*> arguments;
  for (const std::string& argument : arguments_) arguments.push_back(argument.c_str());
  CXTranslationUnit raw = nullptr;
  clang_parseTranslationUnit2(index_, kName, arguments.data(), static_cast<int>(arguments.size()),
                              &file, 1, CXTranslationUnit_None, &raw);
  Unit unit(raw, clang_disposeTranslationUnit);
  if (!raw) return;

  std::vector<bool> failed(macros.size());
  unsigned count = clang_getNumDiagnostics(raw);
  for (unsigned i = 0; i < count; ++i) {
    CXDiagnostic diagnostic = clang_getDiagnostic(raw, i);
    if (clang_getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error) {
      unsigned line = 0;
      clang_getExpansionLocation(clang_getDiagnosticLocation(diagnostic), nullptr, &line, nullptr,
                                 nullptr);
      if (line >= first_line && line - first_line < failed.size()) failed[line - first_line] = true;
    }
    clang_disposeDiagnostic(diagnostic);
  }
  ForEachChild(clang_getTranslationUnitCursor(raw), [&](CXCursor cursor) {
    if (clang_getCursorKind(cursor) != CXCursor_EnumDecl ||
        !clang_Location_isFromMainFile(clang_getCursorLocation(cursor))) {
      return;
    }
    unsigned line = 0;
    clang_getExpansionLocation(clang_getCursorLocation(cursor), nullptr, &line, nullptr, nullptr);
    if (line < first_line || failed[line - first_line]) return;
    Macro& macro = *macros[line - first_line];
    ForEachChild(cursor, [&](CXCursor constant) {
      macro.value = ValueOf(cursor, constant);
      macro.is_unsigned = IsUnsigned(cursor) && *macro.value < 0;
      macro.needs_prelude = !prelude.empty();
    });
  });
}

}  // namespace vabi::facts
