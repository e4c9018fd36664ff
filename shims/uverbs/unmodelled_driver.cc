// SPDX-License-Identifier: BSD-2-Clause
#include "shims/uverbs/unmodelled_driver.h"

namespace vabi {

// DriverRows()' names have static storage, as Unmodelled wants.
int UnmodelledDriver::AllocContext(Call& call, Context&) {
  return call.Unmodelled(DriverRows()[Index(id_)].name);
}
int UnmodelledDriver::Map(Call& call, Context&, const MapRequest&, MapReply*) {
  return call.Unmodelled("driver: mmap");
}
int UnmodelledDriver::AllocPd(Call& call, Pd&) { return call.Unmodelled("driver: alloc_pd"); }
int UnmodelledDriver::RegMr(Call& call, Mr&) { return call.Unmodelled("driver: reg_user_mr"); }
int UnmodelledDriver::DeregMr(Call& call, Mr&) { return call.Unmodelled("driver: dereg_mr"); }
int UnmodelledDriver::CreateCq(Call& call, Cq&) { return call.Unmodelled("driver: create_cq"); }
int UnmodelledDriver::CreateQp(Call& call, Qp&) { return call.Unmodelled("driver: create_qp"); }
int UnmodelledDriver::ModifyQp(Call& call, Qp&, QpState, const QpAttributes&, uint32_t) {
  return call.Unmodelled("driver: modify_qp");
}
int UnmodelledDriver::QueryQp(Call& call, Qp&) { return call.Unmodelled("driver: query_qp"); }
int UnmodelledDriver::DestroyQp(Call& call, Qp&) { return call.Unmodelled("driver: destroy_qp"); }

}  // namespace vabi
