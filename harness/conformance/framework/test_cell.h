// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_HARNESS_CONFORMANCE_FRAMEWORK_TEST_CELL_H_
#define VABI_HARNESS_CONFORMANCE_FRAMEWORK_TEST_CELL_H_

#include "harness/conformance/framework/cell.h"

namespace vabi::conformance {

// A cell for the framework's own tests: rxe on a kernel with all that is asked about here.
inline Cell UsualTestCell() {
  Cell cell;
  cell.id = "deb-44.0/debian-6.1.192/rxe";
  cell.kernel = "debian-6.1.192";
  cell.userland = "deb-44.0";
  cell.release = {44, 0};
  cell.devices = {{"rxe", "rxe0", "roce", 2}};
  cell.rules["mlx5.ucontext.flags"] = {true, 95};
  cell.rules["rxe.create_qp.flags"] = {false, 95};
  cell.knobs = {{"ioctl", 1},         {"write", 1},        {"netlink.level", 2},
                {"netlink.nldev", 1}, {"mlx5.dyn_uar", 1}, {"rxe.parent", 0}};
  cell.methods = {{"DEVICE.INVOKE_WRITE", true},
                  {"CQ.CREATE", true},
                  {"UAR.OBJ_ALLOC", true},
                  {"DM.ALLOC", false}};
  cell.write = {{"REREG_MR", true}, {"OPEN_QP", false}};
  cell.write_ex = {{"CREATE_CQ", true}, {"MODIFY_CQ", false}};
  cell.structs = {{"ib_uverbs_ex_query_device_resp", 304}};
  cell.ops["rxe"] = {{"create_cq", true}, {"alloc_dm", false}};
  return cell;
}

}  // namespace vabi::conformance

#endif  // VABI_HARNESS_CONFORMANCE_FRAMEWORK_TEST_CELL_H_
