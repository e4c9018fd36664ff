// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_VERBS_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_VERBS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/conformance/framework/errors.h"

// verbs objects that clean up after themselves. What a test takes for granted ends it with the call
// and the errno when it fails (Broken); what a test asks about is done through Try… or the verbs
// themselves. An object that cannot be destroyed at the end of its life fails the test.

namespace vabi::conformance {

class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Broken, "ibv_alloc_pd: EINVAL", unless it went well.
void Must(const char* call, Error error);
// Fails the test unless it went well.
void Expect(const char* call, Error error);

// One verbs object: Destroy is the verb that destroys it, kCall its name.
template <typename T, auto Destroy, const char* kCall>
class Object {
 public:
  Object() = default;
  explicit Object(T* object) : object_(object) {}
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    Reset();
    object_ = std::exchange(other.object_, nullptr);
    return *this;
  }
  ~Object() { Reset(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // What the verb says; a refused one still is there.
  Error TryDestroy() {
    const Error error = FromVerb(Destroy(object_));
    if (error.ok()) object_ = nullptr;
    return error;
  }
  // Of no concern any more, without destroying it.
  T* Release() { return std::exchange(object_, nullptr); }

 private:
  void Reset() {
    if (object_ != nullptr) Expect(kCall, FromVerb(Destroy(object_)));
    object_ = nullptr;
  }

  T* object_ = nullptr;
};

inline constexpr char kClose[] = "ibv_close_device", kDeallocPd[] = "ibv_dealloc_pd",
                      kDestroyCq[] = "ibv_destroy_cq", kDestroyQp[] = "ibv_destroy_qp",
                      kDestroySrq[] = "ibv_destroy_srq", kDeregMr[] = "ibv_dereg_mr",
                      kDestroyAh[] = "ibv_destroy_ah",
                      kDestroyChannel[] = "ibv_destroy_comp_channel",
                      kDeallocMw[] = "ibv_dealloc_mw", kCloseXrcd[] = "ibv_close_xrcd",
                      kDestroyWq[] = "ibv_destroy_wq",
                      kDestroyTable[] = "ibv_destroy_rwq_ind_table";

inline int DeregMr(ibv_mr* mr) { return ibv_dereg_mr(mr); }
inline int DeallocMw(ibv_mw* mw) { return ibv_dealloc_mw(mw); }
inline int CloseXrcd(ibv_xrcd* xrcd) { return ibv_close_xrcd(xrcd); }
inline int DestroyWq(ibv_wq* wq) { return ibv_destroy_wq(wq); }
inline int DestroyTable(ibv_rwq_ind_table* table) { return ibv_destroy_rwq_ind_table(table); }

using CompletionChannel = Object<ibv_comp_channel, ibv_destroy_comp_channel, kDestroyChannel>;
using CompletionQueue = Object<ibv_cq, ibv_destroy_cq, kDestroyCq>;
using QueuePair = Object<ibv_qp, ibv_destroy_qp, kDestroyQp>;
using SharedReceiveQueue = Object<ibv_srq, ibv_destroy_srq, kDestroySrq>;
using MemoryRegion = Object<ibv_mr, DeregMr, kDeregMr>;
using MemoryWindow = Object<ibv_mw, DeallocMw, kDeallocMw>;
using AddressHandle = Object<ibv_ah, ibv_destroy_ah, kDestroyAh>;
using Xrcd = Object<ibv_xrcd, CloseXrcd, kCloseXrcd>;
using WorkQueue = Object<ibv_wq, DestroyWq, kDestroyWq>;
using IndirectionTable = Object<ibv_rwq_ind_table, DestroyTable, kDestroyTable>;

class ProtectionDomain : public Object<ibv_pd, ibv_dealloc_pd, kDeallocPd> {
 public:
  using Object::Object;
  MemoryRegion RegMr(void* address, size_t length, int access) const;
  QueuePair CreateQp(const ibv_qp_init_attr& attr, ibv_qp_cap* granted = nullptr) const;
  // RC, on one completion queue, small.
  QueuePair CreateRc(ibv_cq* cq) const;
  SharedReceiveQueue CreateSrq(uint32_t max_wr, uint32_t max_sge) const;
};

class Context : public Object<ibv_context, ibv_close_device, kClose> {
 public:
  using Object::Object;
  ProtectionDomain AllocPd() const;
  CompletionChannel CreateChannel() const;
  CompletionQueue CreateCq(int entries, ibv_comp_channel* channel = nullptr) const;
  ibv_port_attr QueryPort(uint8_t port = 1) const;
  ibv_device_attr QueryDevice() const;
};

// The list of devices, for as long as it lives.
class DeviceList {
 public:
  DeviceList();
  DeviceList(const DeviceList&) = delete;
  ~DeviceList();
  // What ibv_get_device_list said.
  Error error() const { return error_; }
  std::vector<std::string> names() const;
  // Null when there is no such device.
  ibv_device* Find(const std::string& name) const;
  size_t size() const { return static_cast<size_t>(count_); }

 private:
  ibv_device** list_ = nullptr;
  int count_ = 0;
  Error error_;
};

// The one device of the cell, opened. Broken when there is none, more, or it does not open.
Context OpenOnlyDevice();
// ibv_open_device of a device by name; *error is errno.
Context TryOpen(const std::string& name, Error* error);

// What the library writes to standard error while it lives.
class StandardError {
 public:
  StandardError();
  StandardError(const StandardError&) = delete;
  ~StandardError();
  // So far, line by line.
  std::vector<std::string> Lines();

 private:
  int saved_, file_;
};

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_VERBS_H_
