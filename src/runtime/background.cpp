// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/background.h"

#include <algorithm>
#include <system_error>

#include "system/blocked_signals.h"

namespace wavejit::runtime {

Background::~Background() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Background::add(const families::Shape& shape, const std::string& line) {
  const std::scoped_lock lock(mutex_);
  if (std::ranges::find(waiting_, shape, &Wanted::shape) != waiting_.end()) return;
  if (!thread_.joinable()) {
    try {
      const system::BlockedSignals blocked;
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      return;
    }
  }
  waiting_.push_back({.shape = shape, .line = line});
  wake_.notify_all();
}

void Background::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    // Others only add behind it.
    const Wanted& wanted = waiting_.front();
    lock.unlock();
    work_(wanted.shape, wanted.line);
    lock.lock();
    waiting_.pop_front();
  }
}

}  // namespace wavejit::runtime
