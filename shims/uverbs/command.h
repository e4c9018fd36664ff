// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_COMMAND_H_
#define VABI_SHIMS_UVERBS_COMMAND_H_

#include <cstdint>
#include <memory>

#include "shims/uverbs/call.h"
#include "shims/uverbs/device.h"
#include "shims/uverbs/objects.h"
#include "shims/uverbs/uverbs_file.h"

// A write command as its handler sees it, whichever way it came: write(), extended write() or
// DEVICE.INVOKE_WRITE. The front ends have split core and driver data and checked sizes.

namespace vabi {

class IoctlCall;

struct Command {
  Command(Call& call, UdataIn in, UdataOut out, IoctlCall* ioctl = nullptr)
      : call(call),
        world(call.world),
        file(call.file),
        device(call.file.device()),
        in(in),
        out(out),
        ioctl(ioctl) {}

  Call& call;
  const World& world;
  UverbsFile& file;
  Device& device;
  UdataIn in;        // the core's request
  UdataOut out;      // the core's reply
  IoctlCall* ioctl;  // INVOKE_WRITE: the call around it

  bool Violates(RuleId rule, bool condition) const { return call.Violates(rule, condition); }
  int Refuse(RuleId rule) { return call.Refuse(rule); }
  Driver& driver() { return device.driver(); }

  // uverbs_request: copies what there is, zeroes the rest; a longer request must end in zeros.
  int Request(const Body& to);
  // uverbs_request_start … finish, for requests with an array behind the structure.
  int RequestStart(const Body& to);
  int RequestNext(void* to, size_t size);
  // Steps over `size` bytes and tells where in `in` they are.
  int RequestSkip(uint64_t size, size_t* offset);
  int RequestFinish();
  // uverbs_response: cut to the caller's buffer, whose rest is zeroed.
  int Respond(const void* from, size_t size);
  int Respond(const Body& from) { return Respond(from.base(), from.length()); }
  // The number for response_length fields.
  uint32_t ResponseLength(size_t size) const {
    return static_cast<uint32_t>(out.length() < size ? out.length() : size);
  }

  // ib_uverbs_get_ucontext
  int Context(vabi::Context** context);
  // uobj_get_obj_read
  template <typename T>
  int Read(uint64_t handle, T** object) {
    return Look(T::kType, handle, RuleId::handle_read_none, reinterpret_cast<Object**>(object));
  }
  // uobj_get_write, and the look-ups which tell a missing handle apart (uobj_get_read)
  template <typename T>
  int Write(uint64_t handle, T** object) {
    return Look(T::kType, handle, RuleId::handle_write_none, reinterpret_cast<Object**>(object));
  }
  // uobj_get_destroy / uobj_perform_destroy: destroys, and gives the dead object back for the
  // reply.
  template <typename T>
  int Destroy(uint64_t handle, std::unique_ptr<T>* dead = nullptr) {
    std::unique_ptr<Object> object;
    const int error = DestroyHandle(T::kType, handle, &object);
    if (error == 0 && dead != nullptr) dead->reset(static_cast<T*>(object.release()));
    return error;
  }
  // uobj_alloc: reserves a handle for a new object. Finish keeps the object or takes it down again.
  template <typename T>
  int New(T** object) {
    if (const int error = CheckNew(T::kType)) return error;
    auto made = std::make_unique<T>();
    *object = made.get();
    Adopt(std::move(made));
    return 0;
  }
  // The driver has made it: from here on a failure destroys it (uobj_finalize_uobj_create).
  void Created() { fresh_valid_ = true; }
  // The end of the command; `result` of its handler.
  int Finish(int result);

 private:
  int Look(ObjectType type, uint64_t handle, RuleId none, Object** object);
  int DestroyHandle(ObjectType type, uint64_t handle, std::unique_ptr<Object>* object);
  int CheckNew(ObjectType type);
  void Adopt(std::unique_ptr<Object> object);

  size_t iterator_ = 0;
  std::unique_ptr<Object> fresh_;
  bool fresh_valid_ = false;
};

// The rest of an object's birth that is the same for all: where it belongs.
void Introduce(Object& object, UverbsFile& file);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_COMMAND_H_
