// SPDX-License-Identifier: BSD-2-Clause
#include "harness/probe/probe_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace vabi::probe {
namespace {

// What lies behind an object stays unmapped for good: one at the edge ends there, and a call that
// claims more than the object has (up to 0x4000 words of 8 bytes) finds no other object there.
constexpr size_t kHole = 256 << 10;

void AppendHex(std::string* out, const unsigned char* at, size_t count) {
  static const char kDigits[] = "0123456789abcdef";
  for (size_t i = 0; i < count;) {
    size_t zeros = i;
    while (zeros < count && at[zeros] == 0) ++zeros;
    if (zeros - i >= 8) {  // long runs of zero, as the list itself writes them
      *out += ",0*" + std::to_string(zeros - i) + ",";
      i = zeros;
      continue;
    }
    *out += kDigits[at[i] >> 4];
    *out += kDigits[at[i] & 15];
    ++i;
  }
}

}  // namespace

bool Memory::Allocate(size_t content, Place place, Object* object) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t slack = place == Place::kEdge ? 0 : kSlack;
  size_t usable = (content + slack + page - 1) / page * page;
  usable = std::max(usable, page);
  void* map = mmap(nullptr, usable + kHole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED || mprotect(map, usable, PROT_READ | PROT_WRITE) != 0) return false;
  object->capacity = usable;
  object->place = place;
  object->content = content;
  object->size = content + slack;
  object->at = static_cast<unsigned char*>(map) + (place == Place::kEdge ? usable - content : 0);
  return true;
}

std::string Memory::Bytes(const Blob& blob, const std::map<std::string, uint64_t>& symbols,
                          std::string* error) const {
  std::string bytes;
  for (const Part& part : blob) {
    if (part.kind == Part::Kind::kBytes) {
      bytes += part.text;
      continue;
    }
    uint64_t value = 0;
    size_t width = 8;
    if (part.kind == Part::Kind::kAddress) {
      value = Address(part.text, part.number);
    } else {
      width = part.number;
      auto found = symbols.find(part.text);
      if (found == symbols.end()) {
        *error = "nothing gave " + part.text;
      } else {
        value = found->second;
      }
    }
    bytes.append(reinterpret_cast<const char*>(&value), width);
  }
  return bytes;
}

std::string Memory::Define(const std::string& name, const Blob& blob, Place place,
                           const std::map<std::string, uint64_t>& symbols) {
  std::string error;
  std::string bytes = Bytes(blob, symbols, &error);
  Object& object = objects_[name];
  if (object.at == nullptr || object.place != place || place != Place::kPlain ||
      bytes.size() + kSlack > object.capacity) {
    if (!Allocate(bytes.size(), place, &object)) return "no memory";
  }
  object.content = bytes.size();
  object.size = bytes.size() + (place == Place::kEdge ? 0 : kSlack);
  std::memcpy(object.at, bytes.data(), bytes.size());
  std::memset(object.at + bytes.size(), kUntouched, object.size - bytes.size());
  object.before.assign(reinterpret_cast<char*>(object.at), object.size);
  if (place == Place::kReadOnly && mprotect(object.at, object.capacity, PROT_READ) != 0) {
    return "mprotect failed";
  }
  return error;
}

uint64_t Memory::Address(const std::string& name, uint64_t offset) const {
  if (name == "null") return offset;
  if (name == "bad") return 0x1000 + offset;
  if (name == "kernel") return 0xffff888000000000u + offset;
  auto found = objects_.find(name);
  if (found == objects_.end()) return 0;
  return reinterpret_cast<uintptr_t>(found->second.at) + offset;
}

bool Memory::Load(const std::string& name, size_t offset, size_t length, uint64_t* value) const {
  auto found = objects_.find(name);
  if (found == objects_.end() || length > 8 || offset + length > found->second.size) return false;
  *value = 0;
  std::memcpy(value, found->second.at + offset, length);
  return true;
}

std::string Memory::Changes(const std::vector<Mask>& masks) {
  std::string out;
  for (auto& [name, object] : objects_) {
    if (object.place == Place::kReadOnly || object.place == Place::kQuiet) continue;
    size_t i = 0;
    while (i < object.size) {
      if (object.at[i] == static_cast<unsigned char>(object.before[i])) {
        ++i;
        continue;
      }
      // A changed run ends only where 8 bytes in a row are as before.
      size_t end = i, same = 0;
      for (size_t k = i; k < object.size && same < 8; ++k) {
        if (object.at[k] != static_cast<unsigned char>(object.before[k])) {
          end = k + 1;
          same = 0;
        } else {
          ++same;
        }
      }
      // Whole masked fields, so that a field whose first byte happens to be as before looks the
      // same.
      for (const Mask& mask : masks) {
        if (mask.object != name) continue;
        if (mask.offset < end && mask.offset + mask.length > end) end = mask.offset + mask.length;
        if (mask.offset < i && mask.offset + mask.length > i) i = mask.offset;
      }
      end = std::min(end, object.size);
      out += " " + name + "+" + std::to_string(i) + "=";
      size_t at = i;
      while (at < end) {
        const Mask* hit = nullptr;
        size_t next = end;
        for (const Mask& mask : masks) {
          if (mask.object != name) continue;
          if (mask.offset <= at && at < mask.offset + mask.length) hit = &mask;
          if (mask.offset > at) next = std::min(next, mask.offset);
        }
        if (hit != nullptr) {
          out += "[" + hit->rule + "]";
          at = std::min(hit->offset + hit->length, end);
        } else {
          AppendHex(&out, object.at + at, next - at);
          at = next;
        }
      }
      i = end;
    }
    object.before.assign(reinterpret_cast<char*>(object.at), object.size);
  }
  return out;
}

}  // namespace vabi::probe
