// SPDX-License-Identifier: BSD-2-Clause
// siw's one private request (siw-abi.h), byte by byte: siw_verbs.c:siw_reg_user_mr.
#include "shims/providers/common/test_flip.h"
#include "shims/providers/siw/test_siw.h"

namespace vabi::siw {
namespace {

uint32_t Prepare(TestHca& hca) {
  uint32_t pd = 0;
  EXPECT_GT(hca.Open({}, TestSiw::kContextReply), 0);
  EXPECT_GT(hca.AllocPd(&pd), 0);
  return pd;
}

TEST(SiwFlip, RegisterMemory) {
  FlipRequest request = {
      .name = "siw_ureq_reg_mr",
      .kernels = {},
      .structure = structure::siw_ureq_reg_mr,
      .build = [](TestHca& hca) { return Bytes(hca.world().Size(structure::siw_ureq_reg_mr)); },
      .send =
          [](TestHca& hca, const Bytes& bytes) {
            return hca.RegMr(Prepare(hca), {}, nullptr, bytes, TestSiw::kMrReply);
          },
      .ranges =
          {
              {.field = VABI_PF(siw_ureq_reg_mr, stag_key),
               .why = "siw_verbs.c:siw_reg_user_mr: the key's low byte, any"},
              {.field = VABI_PF(siw_ureq_reg_mr, reserved),
               .why = "siw_verbs.c:siw_reg_user_mr: not looked at"},
              {.field = VABI_PF(siw_ureq_reg_mr, pad),
               .why = "siw_verbs.c:siw_reg_user_mr: not looked at"},
          }};
  FlipWithTail(request,
               {{"linux-5.3", "debian-6.12.117"},
                "siw_verbs.c:siw_reg_user_mr (up to 6.18): a longer request is cut",
                {"debian-7.2.13", "debian-7.3.4"},
                "siw.reg_mr.input.tail",
                "ib_copy_validate_udata_in (7.2)"},
               "siw");
}

}  // namespace
}  // namespace vabi::siw
