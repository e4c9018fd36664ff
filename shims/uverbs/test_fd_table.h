// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_TEST_FD_TABLE_H_
#define VABI_SHIMS_UVERBS_TEST_FD_TABLE_H_

namespace vabi {

// As if the process had called seteuid().
void BumpCredentialGeneration();
// Closes every descriptor of the table.
void CloseAllFiles();

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_TEST_FD_TABLE_H_
