// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keeps the user's folder below its limit: what was used longest ago goes first. Readers are not asked: who has an
// entry open reads on, who has not finds none and compiles.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <format>
#include <limits>
#include <utility>

#include "cache/cache.h"
#include "cache/layer.h"
#include "cache/lock.h"
#include "cache/shelves.h"
#include "system/blocked_signals.h"

namespace wavejit::cache {

namespace {

// Temporaries and locks older than this belong to nobody that lives.
constexpr std::int64_t leftover_age = 3600 * nanoseconds_per_second;
// Another process that sweeps needs less; if not, the next publish tries again.
constexpr std::int64_t sweep_lock_wait = 2 * nanoseconds_per_second;
constexpr std::string_view sweep_lock_name = ".lock-sweep";

struct Candidate {
  std::size_t folder = 0;
  Digest digest;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;
  std::int64_t used = 0;
};

// Clocks jump and hosts disagree: a time in the future is as good a sign of youth as one in the past only when it is
// near. What lies far ahead is of unknown age; it may go, after all that is known to be old.
bool younger_than(std::int64_t age, std::int64_t modified, std::int64_t now) {
  return std::llabs(now - modified) < age;
}

class Sweep {
 public:
  Sweep(IoInterface& io, const std::string& root, std::int64_t minimum_age, const std::atomic<std::int64_t>& deadline)
      : io_(io), root_(root), minimum_age_(minimum_age), deadline_(deadline), now_(io.now_unix_nanoseconds()) {}

  SweepResult run(std::uint64_t limit) {
    collect();
    if (limit != 0 && result_.bytes > limit && !interrupted_) {
      // A little more than needed, so that the next publishes need no sweep.
      evict_down_to(limit - limit / 10);
    }
    result_.complete = !interrupted_;
    return result_;
  }

 private:
  bool in_time() {
    interrupted_ = interrupted_ || io_.monotonic_nanoseconds() >= deadline_;
    return !interrupted_;
  }

  void collect() {
    result_.failures += walk_shelves(
        io_, root_,
        [&](const std::string&, const std::string& shelf, const std::string& folder, const std::string& name) {
          if (!in_time()) return false;
          const bool leftover = name.starts_with(temporary_prefix) || name.starts_with(lock_prefix);
          const auto digest = digest_of_name(shelf, name);
          if (!leftover && !digest) return true;
          const std::string path = folder + "/" + name;
          const auto status = uninterrupted([&] { return io_.lstat(path); });
          if (!status) {
            result_.failures += status.error() == ENOENT ? 0 : 1;
            return true;
          }
          if (leftover) {
            remove_leftover(path, *status, name.starts_with(lock_prefix));
            return true;
          }
          if (folders_.empty() || folders_.back() != folder) folders_.push_back(folder);
          ++result_.entries;
          result_.bytes += status->size;
          candidates_.push_back(
              {.folder = folders_.size() - 1,
               .digest = *digest,
               .bytes = status->size,
               .modified = status->modified_unix_nanoseconds,
               .used = std::max(status->modified_unix_nanoseconds, status->accessed_unix_nanoseconds)});
          return true;
        });
  }

  void remove_leftover(const std::string& path, const FileStatus& status, bool is_lock) {
    if (status.type == FileType::directory) return;
    if (younger_than(leftover_age, status.modified_unix_nanoseconds, now_)) return;
    if (is_lock) {
      // Its file's time is that of the last holder's beginning: only who gets the lock knows that there is none now.
      auto outcome = acquire(io_, {.path = path, .wait_nanoseconds = 0, .no_longer_needed = {}, .on_wait = {}});
      if (outcome.kind == LockOutcome::Kind::taken) ++result_.leftovers_removed;  // with the end of `outcome`
      return;
    }
    count(uninterrupted([&] { return io_.unlink(path); }), result_.leftovers_removed);
  }

  void evict_down_to(std::uint64_t limit) {
    std::ranges::sort(candidates_, {},
                      [](const Candidate& entry) { return std::pair(entry.used, entry.digest.bytes); });
    std::uint64_t bytes = result_.bytes;
    for (const Candidate& entry : candidates_) {
      if (bytes <= limit || !in_time()) return;
      if (younger_than(minimum_age_, entry.modified, now_)) continue;
      const std::string path = folders_[entry.folder] + "/" + entry.digest.hex() + std::string(entry_suffix);
      // Published anew since we looked: as young as can be.
      const auto status = uninterrupted([&] { return io_.lstat(path); });
      if (status && status->modified_unix_nanoseconds != entry.modified) continue;
      if (!status && status.error() == ENOENT) {
        bytes -= entry.bytes;
        continue;
      }
      if (!count(uninterrupted([&] { return io_.unlink(path); }), result_.evicted)) continue;
      result_.evicted_bytes += entry.bytes;
      bytes -= entry.bytes;
    }
  }

  bool count(const IoResult<void>& removed, std::uint64_t& counter) {
    if (removed) {
      ++counter;
    } else if (removed.error() != ENOENT) {
      ++result_.failures;
    }
    return removed.has_value();
  }

  IoInterface& io_;
  const std::string& root_;
  std::int64_t minimum_age_;
  const std::atomic<std::int64_t>& deadline_;
  std::int64_t now_;
  bool interrupted_ = false;
  std::vector<std::string> folders_;
  std::vector<Candidate> candidates_;
  SweepResult result_;
};

SweepResult not_done(std::string reason) {
  SweepResult result;
  result.reason = std::move(reason);
  return result;
}

SweepResult sweep_folder(IoInterface& io, const CacheOptions& options, const Layer& layer, std::uint64_t limit,
                         const std::atomic<std::int64_t>& deadline) {
  if (const auto distrust = distrust_of(io, layer.root))
    return not_done("the cache folder " + layer.root + " is not used: " + distrust->what);
  const std::string folder = target_directory(layer.root, "");
  if (const auto there = uninterrupted([&] { return io.stat(folder); }); !there) {
    if (there.error() != ENOENT) return not_done("cannot look at " + folder + ": " + errno_text(there.error()));
    SweepResult nothing;  // nobody has published yet
    nothing.complete = true;
    return nothing;
  }
  const auto lock = acquire(io, {.path = folder + std::string(sweep_lock_name),
                                 .wait_nanoseconds = sweep_lock_wait,
                                 .no_longer_needed = [&] { return io.monotonic_nanoseconds() >= deadline; },
                                 .on_wait = {}});
  // Without locks (a file system that has none) two sweeps at once evict a little too much, no more.
  if (lock.kind == LockOutcome::Kind::timed_out || lock.kind == LockOutcome::Kind::not_needed)
    return not_done("another process sweeps " + layer.root + ": " + lock.what);
  return Sweep(io, layer.root, options.minimum_age_nanoseconds, deadline).run(limit);
}

}  // namespace

void Cache::account(const SweepResult& result) {
  if (!result.reason.empty()) return;
  ++counters_.sweeps;
  counters_.evicted += result.evicted;
  counters_.evicted_bytes += result.evicted_bytes;
  counters_.leftovers_removed += result.leftovers_removed;
  counters_.sweep_faults += result.failures;
  if (result.evicted + result.leftovers_removed != 0) {
    tell(Event::Kind::sweep,
         std::format("swept: {} of {} entries evicted ({} of {} bytes), {} leftovers removed", result.evicted,
                     result.entries, result.evicted_bytes, result.bytes, result.leftovers_removed));
  }
  if (result.failures != 0)
    tell(Event::Kind::sweep_fault,
         std::format("a sweep met {} files or folders that it could not read or remove", result.failures));
}

SweepResult Cache::sweep(std::uint64_t limit_bytes) noexcept {
  try {
    const Layer* layer = writable_layer();
    if (layer == nullptr) return not_done("the cache has no folder that may be written to");
    const std::atomic<std::int64_t> no_deadline = std::numeric_limits<std::int64_t>::max();
    auto result = sweep_folder(*io_, options_, *layer, limit_bytes, no_deadline);
    account(result);
    return result;
  } catch (const std::exception& error) {
    return not_done(error.what());
  }
}

// Off the path of whoever published: a thread that lives as long as the sweep does. A tenth of the limit may be
// published between two sweeps, so that a folder at rest is never larger than the limit and a tenth.
void Cache::sweep_if_due(const Layer& layer, std::uint64_t published_bytes) {
  if (options_.limit_bytes == 0) return;
  if (unswept_bytes_.fetch_add(published_bytes) + published_bytes < options_.limit_bytes / 10) return;
  if (sweeping_.exchange(true)) return;
  sweep_behind(layer);
}

// True if what was published meanwhile asks for another one.
bool Cache::sweep_once(const Layer& layer) {
  const std::uint64_t before = unswept_bytes_.exchange(0);
  bool complete = false;
  try {
    const auto result = sweep_folder(*io_, options_, layer, options_.limit_bytes, sweep_deadline_);
    account(result);
    complete = result.complete;
  } catch (const std::exception&) {
    complete = false;
  }
  if (complete) return unswept_bytes_ >= options_.limit_bytes / 10 && io_->monotonic_nanoseconds() < sweep_deadline_;
  unswept_bytes_ += before;
  return false;
}

void Cache::sweep_behind(const Layer& layer) {
  const system::BlockedSignals blocked;
  try {
    const std::scoped_lock lock(sweeper_mutex_);
    const std::int64_t process = io_->process_id();
    if (sweeper_.joinable() && process != sweeping_process_) sweeper_.detach();
    sweeping_process_ = process;
    sweeper_ = std::jthread([this, &layer] {
      bool again = true;
      while (again) again = sweep_once(layer);
      sweeping_ = false;
    });
  } catch (const std::exception&) {  // no thread to be had: the next publish tries again
    sweeping_ = false;
  }
}

}  // namespace wavejit::cache
