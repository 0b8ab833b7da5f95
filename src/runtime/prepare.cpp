// Engine::prepare: everything that a call's first time would do, for many problems at once, before any call.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/descriptor.h"
#include "runtime/engine.h"

namespace wavejit::runtime {
namespace {

constexpr int max_jobs = 1024;

// Lines that lead to one kernel.
struct Wanted {
  AttentionShape shape;
  std::vector<std::size_t> lines;
};

// Shared by the workers.
class Board {
 public:
  Board(std::span<const char* const> lines, std::span<wavejit_status> statuses,
        const std::function<void(const PrepareProgress&)>& tell, Logger& logger)
      : lines_(lines), statuses_(statuses), tell_(tell), logger_(logger), first_failed_(lines.size()) {
    progress_.total = lines.size();
    tell_guarded();
  }

  void finished(std::size_t line, const Failure* failure, wavejit_origin origin) {
    const std::scoped_lock lock(mutex_);
    ++progress_.done;
    const wavejit_status status = failure != nullptr ? failure->status : WAVEJIT_OK;
    if (!statuses_.empty()) statuses_[line] = status;
    std::uint64_t& count = failure != nullptr                  ? progress_.failed
                           : origin == WAVEJIT_ORIGIN_COMPILED ? progress_.compiled
                           : origin == WAVEJIT_ORIGIN_DISK     ? progress_.from_disk
                                                               : progress_.present;
    ++count;
    if (failure != nullptr && line < first_failed_) {
      first_failed_ = line;
      first_failure_ = *failure;
    }
    progress_.line = line;
    progress_.descriptor = lines_[line];
    progress_.status = status;
    progress_.origin = failure != nullptr ? WAVEJIT_ORIGIN_NONE : origin;
    progress_.failure = failure != nullptr ? &failure->detail : nullptr;
    tell_guarded();
  }

  Result<void> result() const {
    if (first_failed_ == lines_.size()) return {};
    return fail(first_failure_.status,
                "descriptors[" + std::to_string(first_failed_) + "]: " + first_failure_.detail +
                    (progress_.failed == 1 ? std::string()
                                           : " (the first of " + std::to_string(progress_.failed) + " that failed)"));
  }

 private:
  // On a worker's thread an exception would end the process.
  void tell_guarded() noexcept {
    try {
      tell_(progress_);
    } catch (...) {
      logger_.write(LogLevel::warning, "the progress callback of prepare threw an exception, which is dropped");
    }
  }

  std::span<const char* const> lines_;
  std::span<wavejit_status> statuses_;
  const std::function<void(const PrepareProgress&)>& tell_;
  Logger& logger_;
  std::mutex mutex_;
  PrepareProgress progress_;
  std::size_t first_failed_;
  Failure first_failure_;
};

}  // namespace

Result<void> Engine::prepare(std::span<const char* const> lines, int jobs, std::span<wavejit_status> statuses,
                             const std::function<void(const PrepareProgress&)>& tell) {
  if (jobs < 0 || jobs > max_jobs) {
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "jobs = " + std::to_string(jobs) + "; accepted: 0 (all cores) to " + std::to_string(max_jobs));
  }
  Board board(lines, statuses, tell, *logger_);
  std::vector<Wanted> wanted;
  std::unordered_map<std::uint64_t, std::size_t> by_code;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] == nullptr) {
      const Failure failure{WAVEJIT_INVALID_ARGUMENT, "null; accepted: a problem descriptor"};
      board.finished(i, &failure, WAVEJIT_ORIGIN_NONE);
      continue;
    }
    const auto descriptor = parse_descriptor(lines[i]);
    if (!descriptor) {
      board.finished(i, &descriptor.error(), WAVEJIT_ORIGIN_NONE);
      continue;
    }
    const auto [place, fresh] = by_code.emplace(descriptor->shape.code(), wanted.size());
    if (fresh) wanted.push_back({descriptor->shape, {}});
    wanted[place->second].lines.push_back(i);
  }

  const auto make = [&](const Wanted& one) -> Result<Resolved> {
    statistics_.prepared.fetch_add(1);
    if (const LoadedKernel* kernel = resolver_.find(one.shape.code())) return Resolved{kernel, WAVEJIT_ORIGIN_MEMORY};
    if (sealed()) {
      statistics_.refused_sealed.fetch_add(1);
      return fail(WAVEJIT_SEALED, "the engine is sealed; accepted: wavejit_engine_unseal first");
    }
    Phases phases;
    return obtain(one.shape, lines[one.lines.front()], phases);
  };
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < wanted.size(); i = next.fetch_add(1)) {
      Result<Resolved> outcome = fail(WAVEJIT_OUT_OF_MEMORY, "out of memory");
      try {
        outcome = make(wanted[i]);
      } catch (const std::bad_alloc&) {
        outcome = fail(WAVEJIT_OUT_OF_MEMORY, "out of memory");
      }
      for (const std::size_t line : wanted[i].lines) {
        const bool first = line == wanted[i].lines.front();
        board.finished(line, outcome ? nullptr : &outcome.error(),
                       outcome && first ? outcome->origin : WAVEJIT_ORIGIN_MEMORY);
      }
    }
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t workers = std::min(jobs == 0 ? cores : static_cast<std::size_t>(jobs), wanted.size());
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < workers; ++i) pool.emplace_back(work);
    work();
  }
  return board.result();
}

}  // namespace wavejit::runtime
