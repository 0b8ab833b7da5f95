// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/breaker.h"

#include <algorithm>

namespace wavejit::cache {

std::optional<Breaker::Ticket> Breaker::admit() const {
  const std::scoped_lock lock(mutex_);
  if (paused_) return std::nullopt;
  return era_;
}

std::optional<Breaker::Ticket> Breaker::probe(std::int64_t now) {
  const std::scoped_lock lock(mutex_);
  if (!paused_) return era_;
  if (probing_ || now < until_) return std::nullopt;
  probing_ = true;
  return era_;
}

bool Breaker::wants_probe(std::int64_t now) const {
  const std::scoped_lock lock(mutex_);
  return paused_ && !probing_ && now >= until_;
}

std::int64_t Breaker::left(std::int64_t now) const {
  const std::scoped_lock lock(mutex_);
  return paused_ ? std::max<std::int64_t>(until_ - now, 0) : 0;
}

bool Breaker::succeeded(Ticket ticket) {
  const std::scoped_lock lock(mutex_);
  if (ticket != era_) return false;
  next_pause_ = pauses_.first_nanoseconds;
  probing_ = false;
  const bool ended = paused_;
  paused_ = false;
  return ended;
}

std::optional<std::int64_t> Breaker::failed(Ticket ticket, std::int64_t now, std::uint64_t random_bits) {
  const std::scoped_lock lock(mutex_);
  if (ticket != era_) return std::nullopt;
  ++era_;
  const std::int64_t half = next_pause_ / 2;
  const std::int64_t pause = half + static_cast<std::int64_t>(random_bits % static_cast<std::uint64_t>(half + 1));
  next_pause_ = std::min(next_pause_ * 2, pauses_.longest_nanoseconds);
  paused_ = true;
  probing_ = false;
  until_ = now + pause;
  return pause;
}

}  // namespace wavejit::cache
