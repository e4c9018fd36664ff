// SPDX-License-Identifier: BSD-2-Clause
#include "harness/conformance/framework/verbs.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "harness/conformance/framework/abi_test.h"

namespace vabi::conformance {
namespace {

// errno of a verb that answers with a pointer.
Error Errno() { return {errno != 0 ? errno : EIO}; }

}  // namespace

void Must(const char* call, Error error) {
  if (!error.ok()) throw Broken(std::string(call) + ": " + ErrorName(error.value));
}

void Expect(const char* call, Error error) {
  if (!error.ok()) ADD_FAILURE() << call << ": " << error;
}

MemoryRegion ProtectionDomain::RegMr(void* address, size_t length, int access) const {
  errno = 0;
  MemoryRegion mr(ibv_reg_mr(get(), address, length, access));
  if (!mr) Must("ibv_reg_mr", Errno());
  return mr;
}

QueuePair ProtectionDomain::CreateQp(const ibv_qp_init_attr& attr, ibv_qp_cap* granted) const {
  ibv_qp_init_attr asked = attr;
  errno = 0;
  QueuePair qp(ibv_create_qp(get(), &asked));
  if (!qp) Must("ibv_create_qp", Errno());
  if (granted != nullptr) *granted = asked.cap;
  return qp;
}

QueuePair ProtectionDomain::CreateRc(ibv_cq* cq) const {
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {8, 8, 1, 1, 32};
  return CreateQp(attr);
}

SharedReceiveQueue ProtectionDomain::CreateSrq(uint32_t max_wr, uint32_t max_sge) const {
  ibv_srq_init_attr attr = {};
  attr.attr.max_wr = max_wr;
  attr.attr.max_sge = max_sge;
  errno = 0;
  SharedReceiveQueue srq(ibv_create_srq(get(), &attr));
  if (!srq) Must("ibv_create_srq", Errno());
  return srq;
}

ProtectionDomain Context::AllocPd() const {
  errno = 0;
  ProtectionDomain pd(ibv_alloc_pd(get()));
  if (!pd) Must("ibv_alloc_pd", Errno());
  return pd;
}

CompletionChannel Context::CreateChannel() const {
  errno = 0;
  CompletionChannel channel(ibv_create_comp_channel(get()));
  if (!channel) Must("ibv_create_comp_channel", Errno());
  return channel;
}

CompletionQueue Context::CreateCq(int entries, ibv_comp_channel* channel) const {
  errno = 0;
  CompletionQueue cq(ibv_create_cq(get(), entries, nullptr, channel, 0));
  if (!cq) Must("ibv_create_cq", Errno());
  return cq;
}

ibv_port_attr Context::QueryPort(uint8_t port) const {
  ibv_port_attr attr = {};
  Must("ibv_query_port", FromVerb(ibv_query_port(get(), port, &attr)));
  return attr;
}

ibv_device_attr Context::QueryDevice() const {
  ibv_device_attr attr = {};
  Must("ibv_query_device", FromVerb(ibv_query_device(get(), &attr)));
  return attr;
}

DeviceList::DeviceList() {
  errno = 0;
  list_ = ibv_get_device_list(&count_);
  if (list_ == nullptr) error_ = Errno();
}

DeviceList::~DeviceList() {
  if (list_ != nullptr) ibv_free_device_list(list_);
}

std::vector<std::string> DeviceList::names() const {
  std::vector<std::string> names;
  for (int i = 0; i < count_; ++i) names.emplace_back(ibv_get_device_name(list_[i]));
  return names;
}

ibv_device* DeviceList::Find(const std::string& name) const {
  for (int i = 0; i < count_; ++i) {
    if (name == ibv_get_device_name(list_[i])) return list_[i];
  }
  return nullptr;
}

Context TryOpen(const std::string& name, Error* error) {
  *error = {};
  DeviceList list;
  ibv_device* device = list.Find(name);
  if (device == nullptr) {
    *error = {ENODEV};
    return Context();
  }
  errno = 0;
  Context context(ibv_open_device(device));
  if (!context) *error = Errno();
  return context;
}

Context OpenOnlyDevice() {
  DeviceList list;
  Must("ibv_get_device_list", list.error());
  if (list.size() != 1) throw Broken("found " + std::to_string(list.size()) + " devices, not one");
  errno = 0;
  Context context(ibv_open_device(list.Find(cell().device().name)));
  if (!context) Must("ibv_open_device", Errno());
  return context;
}

StandardError::StandardError() {
  std::fflush(stderr);
  saved_ = dup(STDERR_FILENO);
  file_ = memfd_create("stderr", MFD_CLOEXEC);
  dup2(file_, STDERR_FILENO);
}

StandardError::~StandardError() {
  std::fflush(stderr);
  dup2(saved_, STDERR_FILENO);
  close(saved_);
  close(file_);
}

std::vector<std::string> StandardError::Lines() {
  std::fflush(stderr);
  std::string text;
  char bytes[4096];
  for (off_t at = 0;; at = static_cast<off_t>(text.size())) {
    const ssize_t got = pread(file_, bytes, sizeof bytes, at);
    if (got <= 0) break;
    text.append(bytes, static_cast<size_t>(got));
  }
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace vabi::conformance
