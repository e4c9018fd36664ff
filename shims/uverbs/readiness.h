// SPDX-License-Identifier: BSD-2-Clause
#ifndef VABI_SHIMS_UVERBS_READINESS_H_
#define VABI_SHIMS_UVERBS_READINESS_H_

// A descriptor that is readable when it is told to be and that can never be written to, as select,
// poll and epoll see it: what stands for a file with events (uverbs_main.c:ib_uverbs_event_poll).
// It is a timerfd; an eventfd would be writable (fs/eventfd.c:eventfd_poll).

namespace vabi {

// Close-on-exec and not readable; -errno.
int MakeReadiness();
// `readable` wakes whoever waits even where it was so before.
void SetReadable(int fd, bool readable);

}  // namespace vabi

#endif  // VABI_SHIMS_UVERBS_READINESS_H_
