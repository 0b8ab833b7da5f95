// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote/failure.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

namespace wavejit::remote {

std::string errno_text(int code) {
  return std::generic_category().message(code) + " (errno " + std::to_string(code) + ")";
}

Interruption::Interruption() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Interruption::set() {
  set_ = true;
  if (event_) (void)::eventfd_write(event_.get(), 1);  // never read: it stays ready
}

Result<void> in_time(const Deadline& deadline, const Interruption& interruption, const std::string& doing) {
  if (interruption.is_set()) return fault(doing + " was interrupted: the engine ends");
  if (Clock::now() >= deadline.at)
    return fault(doing + " took longer than " + std::to_string(deadline.span.count()) + " ms");
  return {};
}

Result<void> wait_for(int descriptor, short events, const Deadline& deadline, const Interruption& interruption,
                      const std::string& doing) {
  for (;;) {
    if (auto good = in_time(deadline, interruption, doing); !good) return good;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.at - Clock::now()).count();
    // Without a descriptor that wakes us we look from time to time.
    const long longest = interruption.descriptor() < 0 ? 20 : INT_MAX;
    std::array<pollfd, 2> wanted = {pollfd{.fd = descriptor, .events = events, .revents = 0},
                                    pollfd{.fd = interruption.descriptor(), .events = POLLIN, .revents = 0}};
    const int ready = ::poll(wanted.data(), wanted.size(), static_cast<int>(std::clamp<long>(left, 0, longest)));
    if (ready < 0 && errno != EINTR) return fault(doing + ": " + errno_text(errno));
    if (ready > 0 && wanted[0].revents != 0) return {};
  }
}

}  // namespace wavejit::remote
