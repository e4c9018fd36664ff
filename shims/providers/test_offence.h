// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_PROVIDERS_TEST_OFFENCE_H_
#define VABI_SHIMS_PROVIDERS_TEST_OFFENCE_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "shims/uverbs/test_calls.h"

namespace vabi {

// Private requests that are shorter, longer with something behind, and of eight bytes.
inline Bytes Cut(Bytes bytes, size_t length) {
  bytes.resize(length);
  return bytes;
}
inline Bytes Longer(Bytes bytes) {
  bytes.resize(bytes.size() + 8);
  bytes.back() = 1;
  return bytes;
}
inline const Bytes kOne = {1, 0, 0, 0, 0, 0, 0, 0};

// A call that breaks one rule of a driver, and what the kernel named answers.
template <typename Fixture>
struct Offence {
  const char* kernel;
  const char* rule;
  int error;
  std::function<long(Fixture&)> commit;
  bool wide = false;  // takes more memory than a 32-bit process can have

  bool Possible() const { return !wide || sizeof(void*) == 8; }
};

// `Fixture` is made of a kernel's name and has LastRule().
template <typename Fixture>
void ExpectRefusal(const Offence<Fixture>& offence) {
  if (!offence.Possible()) GTEST_SKIP() << "a 32-bit process has not that memory";
  Fixture fixture(offence.kernel);
  EXPECT_EQ(-offence.error, offence.commit(fixture));
  EXPECT_EQ(offence.rule, fixture.LastRule());
}

template <typename Fixture>
std::string CaseName(const Offence<Fixture>& offence) {
  return CaseName(std::string(offence.rule) + "_" + offence.kernel);
}

}  // namespace vabi

#endif  // VABI_SHIMS_PROVIDERS_TEST_OFFENCE_H_
