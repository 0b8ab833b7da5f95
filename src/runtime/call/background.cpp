// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/background.h"

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
  done_.notify_all();
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

bool Background::wait_for(const families::Shape& shape) {
  std::unique_lock lock(mutex_);
  const auto is_there = [&] { return std::ranges::find(waiting_, shape, &Wanted::shape) != waiting_.end(); };
  if (!is_there() || works_here()) return false;
  done_.wait(lock, [&] { return ends_ || !is_there(); });
  return true;
}

void Background::wait_for_all() {
  std::unique_lock lock(mutex_);
  if (!works_here()) done_.wait(lock, [&] { return ends_ || waiting_.empty(); });
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
    done_.notify_all();
  }
}

}  // namespace wavejit::runtime
