// SPDX-License-Identifier: BSD-2-Clause
// Random mixed operations against a model that knows nothing but bytes.
#include <random>

#include "shims/fabric/test_endpoint.h"

namespace vabi::fabric {
namespace {

class RandomOperations : public FabricTest {
 protected:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random() % n); }

  // Elements of one side, `total` bytes in all, that do not overlap each other or go beyond [from,
  // from + room).
  std::vector<Sge> Elements(const Side& side, uint32_t from, uint32_t room, uint32_t total) {
    std::vector<Sge> sges;
    const uint32_t slack = room - total;
    uint32_t at = from, left = total;
    while (left != 0) {
      at += Below(slack / 8 + 1);
      const uint32_t part = sges.size() == 6 ? left : 1 + Below(left);
      sges.push_back(side.At(at, part));
      at += part;
      left -= part;
    }
    return sges;
  }
  static void Gather(const Side& side, const std::vector<uint8_t>& model,
                     const std::vector<Sge>& sges, std::vector<uint8_t>* out) {
    for (const Sge& sge : sges) {
      const uint64_t at = sge.address - side.address();
      out->insert(out->end(), model.begin() + static_cast<long>(at),
                  model.begin() + static_cast<long>(at + sge.length));
    }
  }
  static void Scatter(const Side& side, std::vector<uint8_t>* model, const std::vector<Sge>& sges,
                      const std::vector<uint8_t>& data) {
    size_t done = 0;
    for (const Sge& sge : sges) {
      const size_t part = std::min<size_t>(sge.length, data.size() - done);
      std::copy_n(data.begin() + static_cast<long>(done), part,
                  model->begin() + static_cast<long>(sge.address - side.address()));
      done += part;
    }
  }

  std::mt19937_64 random{42};
};

TEST_F(RandomOperations, AgreeWithTheModel) {
  std::vector<uint8_t> model_a(a.memory, a.memory + kSize), model_b(b.memory, b.memory + kSize);
  for (int step = 0; step < 20000; ++step) {
    // Local bytes of each side in its first half, remote targets in the second.
    const uint32_t length = Below(4) == 0 ? Below(8000) : Below(100);
    const std::vector<Sge> local = Elements(a, 0, kSize / 2, length);
    const uint32_t offset = kSize / 2 + Below(kSize / 2 - length);
    std::vector<uint8_t> data;
    switch (Below(6)) {
      case 0: {  // SEND
        const std::vector<Sge> target = Elements(b, 0, kSize / 2, length + Below(50));
        b.qp.Receive(static_cast<uint64_t>(step), target);
        ASSERT_EQ(Run(Request(Opcode::kSend, local)).status, Status::kSuccess);
        Gather(a, model_a, local, &data);
        Scatter(b, &model_b, target, data);
        ASSERT_EQ(b.qp.completed.size(), 1u);
        ASSERT_EQ(b.qp.completed[0].wr_id, static_cast<uint64_t>(step));
        ASSERT_EQ(b.qp.completed[0].completion.byte_length, length);
        break;
      }
      case 1:  // WRITE
        ASSERT_EQ(Run(Remote(Opcode::kWrite, local, offset)).status, Status::kSuccess);
        Gather(a, model_a, local, &data);
        std::copy(data.begin(), data.end(), model_b.begin() + offset);
        break;
      case 2:  // READ
        ASSERT_EQ(Run(Remote(Opcode::kRead, local, offset)).status, Status::kSuccess);
        data.assign(model_b.begin() + offset, model_b.begin() + offset + length);
        Scatter(a, &model_a, local, data);
        break;
      case 3: {  // FETCH_ADD
        const uint32_t aligned = offset & ~7u;
        SendRequest request = Remote(Opcode::kFetchAdd, {a.At(64, 8)}, aligned);
        request.compare_add = random();
        ASSERT_EQ(Run(request).status, Status::kSuccess);
        uint64_t value;
        memcpy(&value, &model_b[aligned], 8);
        memcpy(&model_a[64], &value, 8);
        value += request.compare_add;
        memcpy(&model_b[aligned], &value, 8);
        break;
      }
      case 4: {  // WRITE_IMM, inline
        uint8_t payload[32];
        for (uint8_t& byte : payload) byte = static_cast<uint8_t>(random());
        b.qp.Receive(7, {});
        SendRequest request = Remote(Opcode::kWriteImm, {}, kSize - 32);
        request.inline_data = payload;
        request.inline_length = sizeof(payload);
        ASSERT_EQ(Run(request).status, Status::kSuccess);
        std::copy_n(payload, 32, model_b.begin() + kSize - 32);
        break;
      }
      default: {  // a request that fails and must change nothing
        SendRequest request =
            Remote(Below(2) ? Opcode::kWrite : Opcode::kRead, {a.At(0, length + 1)}, 0);
        request.remote_address = b.address() + kSize - length;
        ASSERT_EQ(Run(request).status, Status::kRemoteAccess);
        a.qp.state = b.qp.state = EndpointState::kRts;
      }
    }
    b.qp.completed.clear();
    if (step % 100 == 0) {
      ASSERT_EQ(memcmp(a.memory, model_a.data(), kSize), 0) << step;
      ASSERT_EQ(memcmp(b.memory, model_b.data(), kSize), 0) << step;
    }
  }
  EXPECT_EQ(memcmp(a.memory, model_a.data(), kSize), 0);
  EXPECT_EQ(memcmp(b.memory, model_b.data(), kSize), 0);
}

}  // namespace
}  // namespace vabi::fabric
