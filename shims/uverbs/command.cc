// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/command.h"

#include <cerrno>

#include "shims/uverbs/destroy.h"
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/object_table.h"

namespace vabi {

void Introduce(Object& object, UverbsFile& file) {
  object.file = &file;
  object.device = &file.device();
}

// uverbs_cmd.c:uverbs_request
int Command::Request(const Body& to) {
  if (in.length() > to.length()) {
    const int zero = in.TailIsZero(to.length());
    if (zero < 0) return call.Refuse(RuleId::request_tail_fault);
    if (call.Violates(RuleId::request_tail, zero == 0)) return call.Refuse(RuleId::request_tail);
  }
  if (in.Copy(to.base(), to.length()) != 0) return call.Refuse(RuleId::request_fault);
  return 0;
}

int Command::RequestStart(const Body& to) {
  if (in.length() < to.length()) return call.Refuse(RuleId::request_start_short);
  if (in.Copy(to.base(), to.length()) != 0) return call.Refuse(RuleId::request_fault);
  iterator_ = to.length();
  return 0;
}

int Command::RequestNext(void* to, size_t size) {
  size_t offset = 0;
  if (const int error = RequestSkip(size, &offset)) return error;
  if (in.CopyAt(offset, to, size) != 0) return call.Refuse(RuleId::request_fault);
  return 0;
}

int Command::RequestSkip(uint64_t size, size_t* offset) {
  if (size > in.length() - iterator_) return call.Refuse(RuleId::request_next_short);
  *offset = iterator_;
  iterator_ += static_cast<size_t>(size);
  return 0;
}

int Command::RequestFinish() {
  // ib_is_buffer_cleared: what cannot be read is not zero.
  if (call.Violates(RuleId::request_finish_tail, in.TailIsZero(iterator_) != 1)) {
    return call.Refuse(RuleId::request_finish_tail);
  }
  return 0;
}

// uverbs_cmd.c:uverbs_response
int Command::Respond(const void* from, size_t size) {
  if (ioctl != nullptr) {
    const int error = ioctl->CopyOutOrZero(ConstId::UVERBS_ATTR_CORE_OUT, from, size);
    return error == -ENOENT ? 0 : error;
  }
  if (out.Copy(from, size) != 0) return call.Refuse(RuleId::response_fault);
  if (world.Knob(KnobId::write_clears_reply) == 0) return 0;
  if (out.ClearFrom(size) != 0) return call.Refuse(RuleId::response_fault);
  return 0;
}

int Command::Context(vabi::Context** context) {
  if (device.gone()) return call.Refuse(RuleId::device_gone);
  *context = file.context();
  return *context != nullptr ? 0 : call.Refuse(RuleId::context_none);
}

int Command::Look(ObjectType type, uint64_t handle, RuleId none, Object** object) {
  if (!ObjectServed(device, type)) return call.Refuse(RuleId::object_absent);
  *object = file.FindAny(type, handle);
  if (*object == nullptr) return call.Refuse(none);
  if ((*object)->type != type) return call.Refuse(RuleId::handle_kind);
  // Once the device is gone only DESTROY goes on.
  const bool destroys = none == RuleId::handle_destroy_none;
  return device.gone() && !destroys ? call.Refuse(RuleId::device_gone) : 0;
}

int Command::DestroyHandle(ObjectType type, uint64_t handle, std::unique_ptr<Object>* dead) {
  Object* object = nullptr;
  if (const int error = Look(type, handle, RuleId::handle_destroy_none, &object)) return error;
  if (!object->gone) {
    if (const int error = DestroyObject(call, *object, RemoveReason::kDestroy)) return error;
  }
  *dead = file.Remove(*object);
  return 0;
}

int Command::CheckNew(ObjectType type) {
  if (!ObjectServed(device, type)) return call.Refuse(RuleId::object_absent);
  if (device.gone()) return call.Refuse(RuleId::device_gone);
  if (file.context() == nullptr) return call.Refuse(RuleId::context_none);
  return 0;
}

void Command::Adopt(std::unique_ptr<Object> object) {
  Introduce(*object, file);
  object->handle = file.ReserveHandle(object->type);
  fresh_ = std::move(object);
}

int Command::Finish(int result) {
  if (!fresh_) return result;
  if (result == 0) {
    fresh_->pins = std::move(call.pins);
    file.Commit(std::move(fresh_));
    return 0;
  }
  if (fresh_valid_) DestroyObject(call, *fresh_, RemoveReason::kAbort);
  file.Abandon(fresh_->type, fresh_->handle);
  fresh_.reset();
  return result;
}

}  // namespace vabi
