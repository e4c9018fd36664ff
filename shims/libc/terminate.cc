// SPDX-License-Identifier: BSD-2-Clause
// libstdc++'s own handler names the exception before it aborts, and brings a demangler whose tables
// every process in a world would have to relocate. The shim throws nothing; what terminates it is a
// defect, which abort() shows.
#include <cstdlib>

namespace __gnu_cxx {

[[noreturn]] __attribute__((visibility("hidden"))) void __verbose_terminate_handler() {
  std::abort();
}

}  // namespace __gnu_cxx
