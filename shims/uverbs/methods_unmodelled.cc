// SPDX-License-Identifier: BSD-2-Clause
// Methods that kernels have and the fake kernel does not model: named, so that a cell that meets
// one says so.
#include "shims/uverbs/ioctl.h"
#include "shims/uverbs/method_table.h"

namespace vabi {
namespace {

constexpr MethodSpec kMethods[] = {
    {MethodId::DMAH__ALLOC, Op::alloc_dmah, {}, nullptr, false, "DMAH.ALLOC"},
    {MethodId::DMAH__FREE, Op::alloc_dmah, {}, nullptr, false, "DMAH.FREE"},
    {MethodId::DMABUF__ALLOC, Op::mmap_get_pfns, {}, nullptr, false, "DMABUF.ALLOC"},
    {MethodId::COMP_CNTR__CREATE, Op::create_comp_cntr, {}, nullptr, false, "COMP_CNTR.CREATE"},
    {MethodId::COMP_CNTR__DESTROY, Op::create_comp_cntr, {}, nullptr, false, "COMP_CNTR.DESTROY"},
    {MethodId::COMP_CNTR__MODIFY, Op::create_comp_cntr, {}, nullptr, false, "COMP_CNTR.MODIFY"},
    {MethodId::COMP_CNTR__READ, Op::create_comp_cntr, {}, nullptr, false, "COMP_CNTR.READ"},
    {MethodId::QP__ATTACH_COMP_CNTR,
     Op::create_comp_cntr,
     {},
     nullptr,
     false,
     "QP.ATTACH_COMP_CNTR"},
    {MethodId::FLOW_ACTION__ESP_CREATE,
     Op::create_flow_action_esp,
     {},
     nullptr,
     false,
     "FLOW_ACTION.ESP_CREATE"},
    {MethodId::FLOW_ACTION__ESP_MODIFY,
     Op::modify_flow_action_esp,
     {},
     nullptr,
     false,
     "FLOW_ACTION.ESP_MODIFY"},
};

}  // namespace

std::span<const MethodSpec> UnmodelledMethods() { return kMethods; }

}  // namespace vabi
