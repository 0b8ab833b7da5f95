// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One of many processes compiles a kernel. The others wait, a bounded time, for what it publishes.
#include <array>
#include <exception>
#include <format>
#include <optional>
#include <string>
#include <utility>

#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/layer.h"
#include "cache/lock.h"

namespace wavejit::cache {

namespace {

std::string lock_path(const Layer& layer, const Key& key) {
  const std::string entry = entry_path(layer.root, key.target_id(), key.digest());
  return parent_of(entry) + "/" + std::string(lock_prefix) + key.hex();
}

// Tells a new file in an entry's place from the one that was there before; cheap enough to ask again and again.
class Watch {
 public:
  Watch(IoInterface& io, std::string path) : io_(&io), path_(std::move(path)), before_(identity()) {}

  bool changed() {
    const auto now = identity();
    if (now == before_) return false;
    before_ = now;
    return now.has_value();
  }

 private:
  using Identity = std::array<std::uint64_t, 3>;

  std::optional<Identity> identity() const {
    const auto status = io_->lstat(path_);
    if (!status) return std::nullopt;
    return Identity{status->device, status->inode, static_cast<std::uint64_t>(status->modified_unix_nanoseconds)};
  }

  IoInterface* io_;
  std::string path_;
  std::optional<Identity> before_;
};

}  // namespace

Turn Cache::turn_of(const Key& key, const Layer& layer) {
  Turn turn;
  Watch watch(*io_, entry_path(layer.root, key.target_id(), key.digest()));
  // Between our lookup and the watch, and before every attempt: somebody may have published.
  const auto look = [&] {
    turn.hit = lookup_quietly(key);
    return turn.hit.has_value();
  };
  if (look()) {
    ++counters_.turns_answered;
    return turn;
  }
  auto outcome =
      acquire(*io_, {.path = lock_path(layer, key),
                     .wait_nanoseconds = options_.lock_wait_nanoseconds,
                     .no_longer_needed = [&] { return watch.changed() && look(); },
                     .on_wait =
                         [&](const std::string& holder) {
                           tell(Event::Kind::lock_wait,
                                std::format("{} is compiling {}; waiting for it, {:.3g} s at most", holder,
                                            key.hex().substr(0, 12), seconds_of(options_.lock_wait_nanoseconds)));
                         }});
  counters_.turns_waited += outcome.waited ? 1 : 0;
  switch (outcome.kind) {
    case LockOutcome::Kind::not_needed:
      ++counters_.turns_answered;
      break;
    case LockOutcome::Kind::taken:
      // The holder before us published and let go.
      if (watch.changed() && look()) {
        ++counters_.turns_answered;
        break;
      }
      turn.lock_ = std::make_unique<FileLock>(*std::move(outcome.lock));
      ++counters_.turns_taken;
      break;
    case LockOutcome::Kind::timed_out:
      ++counters_.turns_timed_out;
      tell(Event::Kind::lock_timeout,
           std::format("{} still holds {} after {:.3g} s; compiling without it", outcome.what, lock_path(layer, key),
                       seconds_of(options_.lock_wait_nanoseconds)));
      break;
    case LockOutcome::Kind::unavailable:
      ++counters_.turns_unlocked;
      if (!lock_fault_told_.exchange(true))
        tell(Event::Kind::lock_fault, outcome.what + "; processes may compile the same kernel side by side");
      break;
  }
  return turn;
}

Turn Cache::take_turn(const Key& key) noexcept {
  ++counters_.turns;
  try {
    const Layer* layer = writable_layer();
    if (layer != nullptr && is_target_id(key.target_id()) && !distrust_of(*io_, layer->root))
      return turn_of(key, *layer);
  } catch (const std::exception&) {
    ++counters_.turns_unlocked;
    return {};
  }
  ++counters_.turns_unlocked;
  return {};
}

}  // namespace wavejit::cache
