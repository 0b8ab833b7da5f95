// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/kernels/side_by_side.h"

#include <algorithm>
#include <new>
#include <system_error>

#include "system/blocked_signals.h"

namespace wavejit::runtime {

std::size_t Helpers::take(std::size_t wanted) noexcept {
  std::size_t free = free_.load(std::memory_order_relaxed);
  for (;;) {
    const std::size_t taken = std::min(free, wanted);
    if (taken == 0 || free_.compare_exchange_weak(free, free - taken, std::memory_order_relaxed)) return taken;
  }
}

Helpers& process_helpers() {
  // Never destroyed: threads of the host may still call while static objects end.
  static auto* const helpers = new Helpers(std::max(2U, std::thread::hardware_concurrency()) - 1);
  return *helpers;
}

void SideBySide::run() {
  work_off(0);
  dismiss();
  if (thrown_) std::rethrow_exception(thrown_);
}

void SideBySide::work_off(std::size_t worker) noexcept {
  for (std::size_t piece = next_.fetch_add(1, std::memory_order_relaxed); piece < pieces_;
       piece = next_.fetch_add(1, std::memory_order_relaxed)) {
    try {
      work_(piece, worker);
    } catch (...) {
      stop();
      const std::scoped_lock lock(mutex_);
      if (!thrown_) thrown_ = std::current_exception();
    }
  }
}

bool SideBySide::hire(std::size_t worker) noexcept {
  if (worker != 0 || !hired_.empty()) return false;
  const std::size_t begun = std::min(next_.load(std::memory_order_relaxed), pieces_);
  taken_ = helpers_.take(pieces_ - begun);
  if (taken_ == 0) return false;
  try {
    hired_.reserve(taken_);
    const system::BlockedSignals blocked;
    while (hired_.size() < taken_) hired_.emplace_back([this, number = hired_.size() + 1] { work_off(number); });
  } catch (const std::system_error&) {
    return !hired_.empty();  // the process or the machine has too many threads: those that there are do it
  } catch (const std::bad_alloc&) {
    return !hired_.empty();
  }
  return true;
}

void SideBySide::dismiss() noexcept {
  hired_.clear();  // waits for them
  helpers_.give_back(taken_);
  taken_ = 0;
}

}  // namespace wavejit::runtime
