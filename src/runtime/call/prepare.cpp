// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Engine::prepare: everything that a call's first time would do, for many problems at once, before any call.
#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/call/engine.h"
#include "runtime/kernels/guarded_tell.h"
#include "runtime/kernels/workers.h"

namespace wavejit::runtime {
namespace {

// Lines that lead to the same kernels.
struct Wanted {
  families::Shape shape;
  std::vector<std::size_t> lines;
};

// Those of a line: one, or several of a line with ranges of lengths, each once.
Result<std::vector<families::Shape>> shapes_of(std::string_view line, const boards::Board& target,
                                               const families::Toggles& toggles) {
  const auto problems = families::parse_problems(line);
  if (!problems) return std::unexpected(problems.error());
  std::vector<families::Shape> shapes;
  for (const auto& problem : *problems) {
    const auto shape = problem->shape(target, toggles);
    if (!shape) return std::unexpected(shape.error());
    if (std::ranges::find(shapes, *shape) == shapes.end()) shapes.push_back(*shape);
  }
  return shapes;
}

// Shared by the workers.
class PrepareBoard {
 public:
  PrepareBoard(std::span<const char* const> lines, std::span<wavejit_status> statuses,
               const std::function<void(const PrepareProgress&)>& tell, Logger& logger)
      : lines_(lines),
        open_lines_(lines.size()),
        statuses_(statuses),
        tell_(tell),
        logger_(logger),
        first_failed_(lines.size()) {
    progress_.total = lines.size();
    this->tell();
  }

  // That a line waits for one more shape.
  void expect(std::size_t line) { ++open_lines_[line].shapes; }

  // One shape of a line, whose last one ends it: with its first failure, or with the origin that took most.
  void finished_shape(std::size_t line, const Failure* failure, wavejit_origin origin) noexcept {
    const std::scoped_lock lock(mutex_);
    OpenLine& open = open_lines_[line];
    open.origin = std::max(open.origin, origin);
    if (failure != nullptr && !open.failure) open.failure = copy_of(*failure);
    if (--open.shapes == 0) finish(line, open.failure ? &*open.failure : nullptr, open.origin);
  }

  void refused(std::size_t line, const Failure& failure) noexcept {
    const std::scoped_lock lock(mutex_);
    finish(line, &failure, WAVEJIT_ORIGIN_NONE);
  }

  Result<void> result() const {
    if (first_failed_ == lines_.size()) return {};
    return fail(first_failure_.status,
                "descriptors[" + std::to_string(first_failed_) + "]: " + first_failure_.detail +
                    (progress_.failed == 1 ? std::string()
                                           : " (the first of " + std::to_string(progress_.failed) + " that failed)"));
  }

 private:
  struct OpenLine {
    std::size_t shapes = 0;
    wavejit_origin origin = WAVEJIT_ORIGIN_NONE;
    std::optional<Failure> failure;
  };

  void finish(std::size_t line, const Failure* failure, wavejit_origin origin) noexcept {
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
      first_failure_ = copy_of(*failure);
    }
    progress_.line = line;
    progress_.descriptor = lines_[line];
    progress_.status = status;
    progress_.origin = failure != nullptr ? WAVEJIT_ORIGIN_NONE : origin;
    progress_.failure = failure != nullptr ? &failure->detail : nullptr;
    tell();
  }

  void tell() noexcept {
    tell_guarded(logger_, "the progress callback of prepare", [&] { tell_(progress_); });
  }

  std::span<const char* const> lines_;
  std::vector<OpenLine> open_lines_;
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
  if (auto good = check_jobs(jobs); !good) return good;
  PrepareBoard board(lines, statuses, tell, *logger_);
  std::vector<Wanted> wanted;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] == nullptr) {
      const Failure failure{WAVEJIT_INVALID_ARGUMENT, "null; accepted: a problem descriptor"};
      board.refused(i, failure);
      continue;
    }
    const auto shapes = shapes_of(lines[i], target_, toggles_);
    if (!shapes) {
      board.refused(i, shapes.error());
      continue;
    }
    for (const families::Shape& shape : *shapes) {
      auto one = std::ranges::find(wanted, shape, &Wanted::shape);
      if (one == wanted.end()) one = wanted.insert(wanted.end(), {.shape = shape, .lines = {}});
      one->lines.push_back(i);
      board.expect(i);
    }
  }

  // Jobs that have no line of their own help those that do.
  const std::size_t threads = threads_of(jobs);
  Helpers spare(threads - std::min(threads, wanted.size()));
  const auto make = [&](const Wanted& one) -> Resolution {
    statistics_.prepared.fetch_add(1);
    if (const LoadedKernels* kernels = resolver_.find(one.shape))
      return {.kernels = kernels, .origin = WAVEJIT_ORIGIN_MEMORY};
    if (sealed()) {
      statistics_.refused_sealed.fetch_add(1);
      return {.kernels = fail(WAVEJIT_SEALED, "the engine is sealed; accepted: wavejit_engine_seal(engine, 0) first")};
    }
    Phases phases;
    return resolve_and_tell(one.shape, lines[one.lines.front()], phases, spare);
  };
  work_off(wanted.size(), jobs, [&](std::size_t i) {
    Resolution outcome{.kernels = fail(WAVEJIT_OUT_OF_MEMORY, "out of memory")};
    try {
      outcome = make(wanted[i]);
    } catch (const std::bad_alloc&) {
      outcome.kernels = fail(WAVEJIT_OUT_OF_MEMORY, "out of memory");
    }
    for (const std::size_t line : wanted[i].lines) {
      const bool first = line == wanted[i].lines.front();
      board.finished_shape(line, outcome.kernels ? nullptr : &outcome.kernels.error(),
                           outcome.kernels && first ? outcome.origin : WAVEJIT_ORIGIN_MEMORY);
    }
  });
  return board.result();
}

Result<void> Engine::prepare_call(families::Call& call) {
  if (auto supported = supports(call); !supported) return supported;
  statistics_.prepared.fetch_add(1);
  if (is_loaded(call)) {
    load_for_captures_behind(call);
    return {};
  }
  if (sealed()) {
    statistics_.refused_sealed.fetch_add(1);
    return fail(WAVEJIT_SEALED, "the engine is sealed and no kernel is loaded for \"" +
                                    call.descriptor(families::Call::Line::of_kernels) +
                                    "\"; accepted: wavejit_engine_seal(engine, 0) first");
  }
  Phases phases;
  const Resolution resolution =
      resolve_and_tell(call.shape(), call.descriptor(families::Call::Line::of_kernels), phases, process_helpers());
  if (!resolution.kernels) return std::unexpected(resolution.kernels.error());
  load_for_captures_behind(call);
  return {};
}

}  // namespace wavejit::runtime
