// SPDX-License-Identifier: BSD-2-Clause
// Memory objects of a case, at addresses that the probe chooses, with what the kernel changed in
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/probe/probe_list.h"

namespace vabi::probe {

class Memory {
 public:
  // Makes the object, or gives it new contents. Symbols and addresses in the blob must be known.
  // Returns what is wrong, or an empty string.
  std::string Define(const std::string& name, const Blob& blob, Place place,
                     const std::map<std::string, uint64_t>& symbols);

  // Only the bytes of a blob. Unknown names are counted in `error`.
  std::string Bytes(const Blob& blob, const std::map<std::string, uint64_t>& symbols,
                    std::string* error) const;

  // Address of a byte of the object; 0 when there is none of that name. "null" is 0, "bad" is an
  // address that is not mapped, "kernel" one that belongs to the kernel.
  uint64_t Address(const std::string& name, uint64_t offset) const;

  // Little-endian number at that place; false when it is outside the object.
  bool Load(const std::string& name, size_t offset, size_t length, uint64_t* value) const;

  // What differs from the last Define, as " NAME+OFF=hex…" per changed run, masked bytes as
  // "[rule]". Afterwards the present contents are what the next call is compared with.
  std::string Changes(const std::vector<Mask>& masks);

 private:
  struct Object {
    unsigned char* at = nullptr;
    size_t size = 0;     // with the slack behind it
    size_t content = 0;  // without
    size_t capacity = 0;
    Place place = Place::kPlain;
    std::string before;
  };
  static bool Allocate(size_t content, Place place, Object* object);

  std::map<std::string, Object> objects_;
};

}  // namespace vabi::probe
