#include "runtime/prebuild.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "runtime/descriptor.h"
#include "runtime/engine.h"
#include "runtime/kernel_source.h"
#include "runtime/route.h"
#include "runtime/splits.h"
#include "targets/targets.h"
#include "templates/attention_combine/spec.h"

namespace wavejit::runtime {
namespace {

using families::KernelSpec;

constexpr int max_jobs = 1024;
// Guess: for what is still on its way to the remote layer at the end. A server that is down is not waited for.
constexpr std::int64_t remote_patience = 30 * cache::nanoseconds_per_second;

Result<std::vector<const targets::Target*>> parse_targets(std::string_view text) {
  std::vector<const targets::Target*> chosen;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, comma);
    const targets::Target* target = targets::find_target(name);
    if (target == nullptr) {
      return fail(WAVEJIT_INVALID_ARGUMENT,
                  "targets: \"" + std::string(name) + "\" is not known; accepted: " + targets::known_targets());
    }
    if (std::ranges::find(chosen, target) == chosen.end()) chosen.push_back(target);
    if (comma == text.size()) return chosen;
    text.remove_prefix(comma + 1);
  }
}

// What calls without modifiers can reach: short queries and long ones, and split keys where the engine's own number of
// splits says so.
std::vector<AttentionShape> everything(const targets::Target& target, const Config& config) {
  std::vector<AttentionShape> shapes;
  for (AttentionShape shape : supported_shapes(target, toggles_of(config))) {
    // What queries of every length lead to.
    for (const auto rows : attention_forward::all_query_rows) {
      shape.query_rows = rows;
      shapes.push_back(shape);
      if (config.kv_splits.value.value_or(1) > 1) shapes.push_back(shape.of_split_kernel());
    }
  }
  return shapes;
}

Result<std::vector<KernelSpec>> specs_of(const Config& config, const PrebuildRequest& request) {
  auto chosen = parse_targets(request.targets);
  if (!chosen) return std::unexpected(std::move(chosen.error()));
  const Toggles toggles = toggles_of(config);
  std::vector<AttentionProblem> problems;
  for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
    auto descriptor = parse_descriptor(request.descriptors[i]);
    if (!descriptor) {
      return fail(descriptor.error().status, "descriptors[" + std::to_string(i) + "]: " + descriptor.error().detail);
    }
    problems.push_back(problem_of(*descriptor));
  }
  std::vector<KernelSpec> specs;
  std::set<std::string> seen;  // several problems may need one kernel
  const auto add = [&](KernelSpec spec) {
    if (seen.insert(families::to_text(spec)).second) specs.push_back(std::move(spec));
  };
  for (const targets::Target* target : *chosen) {
    std::vector<AttentionShape> shapes;
    if (request.everything) {
      shapes = everything(*target, config);
    } else {
      for (const AttentionProblem& problem : problems) {
        const auto plan = plan_splits(problem, *target, config.kv_splits.value);
        if (!plan) return std::unexpected(plan.error());
        shapes.push_back(kernel_shape(problem, *plan));
      }
    }
    for (const AttentionShape& shape : shapes) {
      auto route = choose_route(shape, *target, toggles);
      if (!route) return std::unexpected(std::move(route.error()));
      if (shape.split) add(attention_combine::combine_of(route->spec));
      add(std::move(route->spec));
    }
  }
  if (specs.empty()) {
    return fail(WAVEJIT_UNSUPPORTED, "no kernel to build for targets " + std::string(request.targets) +
                                         " with these settings; accepted: what `wavejit supported` lists");
  }
  return specs;
}

// Shared by the workers.
class Board {
 public:
  Board(std::uint64_t total, const std::function<void(const PrebuildProgress&)>& tell) : tell_(tell) {
    progress_.total = total;
    tell_(progress_);
  }

  void finished(const KernelSpec& spec, const Result<bool>& was_present) {
    const std::string text = families::to_text(spec);
    const std::scoped_lock lock(mutex_);
    ++progress_.done;
    if (!was_present) {
      ++progress_.failed;
      if (first_failure_.empty()) first_failure_ = was_present.error().detail;
    } else if (*was_present) {
      ++progress_.present;
    } else {
      ++progress_.compiled;
    }
    progress_.kernel_spec = &text;
    progress_.failure = was_present ? nullptr : &was_present.error().detail;
    tell_(progress_);
  }

  const PrebuildProgress& progress() const { return progress_; }
  const std::string& first_failure() const { return first_failure_; }

 private:
  const std::function<void(const PrebuildProgress&)>& tell_;
  std::mutex mutex_;
  PrebuildProgress progress_;
  std::string first_failure_;
};

// True: it was in the cache; false: it is now.
Result<bool> build_one(const KernelSpec& spec, KernelSource& source) {
  auto key = source.key_of(spec);
  if (!key) return std::unexpected(std::move(key.error()));
  Phases phases;
  // What is in memory only is tried once more.
  if (const auto found = source.from_disk(*key, phases); found && found->on_disk) return true;
  auto compiled = source.compile(spec, *key, phases);
  if (!compiled) return std::unexpected(std::move(compiled.error()));
  if (compiled->by_others) return true;
  if (!compiled->publish.published)
    return fail(WAVEJIT_IO_ERROR, families::to_text(spec) + ": not published: " + compiled->publish.reason);
  return false;
}

}  // namespace

Result<void> prebuild(const Config& config, const PrebuildRequest& request, CodegenLibrary& codegen,
                      const std::function<void(const PrebuildProgress&)>& progress) {
  if (request.jobs < 0 || request.jobs > max_jobs) {
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "jobs = " + std::to_string(request.jobs) + "; accepted: 0 (all cores) to " + std::to_string(max_jobs));
  }
  if (config.cache_mode.value != cache::Mode::read_write) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "cache_mode = " + std::string(cache::to_text(config.cache_mode.value)) +
                                              ": prebuild writes the cache; accepted: rw (WAVEJIT_CACHE)");
  }
  auto specs = specs_of(config, request);
  if (!specs) return std::unexpected(std::move(specs.error()));

  Logger logger(config.log_level.value);
  KernelSource source(config, codegen, logger);
  Board board(specs->size(), progress);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < specs->size(); i = next.fetch_add(1)) {
      Result<bool> outcome = fail(WAVEJIT_OUT_OF_MEMORY, "out of memory");
      try {
        outcome = build_one((*specs)[i], source);
      } catch (const std::bad_alloc&) {
        outcome = fail(WAVEJIT_OUT_OF_MEMORY, "out of memory");
      }
      board.finished((*specs)[i], outcome);
    }
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t jobs = std::min<std::size_t>(request.jobs == 0 ? cores : request.jobs, specs->size());
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < jobs; ++i) pool.emplace_back(work);
    work();
  }
  if (!source.cache().flush_remote(remote_patience))
    logger.write(LogLevel::warning,
                 "not every kernel reached the remote layer; `wavejit cache push` sends what is missing");
  if (board.progress().failed == 0) return {};
  return fail(WAVEJIT_COMPILE_FAILED, std::to_string(board.progress().failed) + " of " + std::to_string(specs->size()) +
                                          " kernels failed, the first: " + board.first_failure());
}

}  // namespace wavejit::runtime
