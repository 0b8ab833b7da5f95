// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/offline/prebuild.h"

#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "cache/transfer.h"
#include "runtime/kernels/guarded_tell.h"
#include "runtime/kernels/kernel_source.h"
#include "runtime/kernels/workers.h"
#include "runtime/offline/prebuild_plan.h"
#include "runtime/offline/prebuild_verify.h"
#include "targets/targets.h"

namespace wavejit::runtime {
namespace {

using families::KernelSpec;

// Guess: for what is still on its way to the remote layer at the end. A server that is down is not waited for.
constexpr std::int64_t remote_patience = 30 * cache::nanoseconds_per_second;

enum class Outcome : std::uint8_t { compiled, copied, present };

// Shared by the workers.
class PrebuildBoard {
 public:
  PrebuildBoard(const PrebuildTell& tell, Logger& logger, std::uint64_t total) : tell_(tell), logger_(logger) {
    progress_.total = total;
  }

  void begin() {
    tell([&] { tell_(progress_); });
  }

  void refused(const PrebuildRequest& request, const RefusedLine& line) {
    PrebuildProgress told = progress_;
    told.refused = ++progress_.refused;
    told.descriptor = &request.descriptors[line.line];
    told.line = line.line;
    told.target = line.target.empty() ? nullptr : &line.target;
    told.failure = &line.why.detail;
    tell([&] { tell_(told); });
  }

  // Also from workers.
  void finished(const KernelSpec& spec, const Result<Outcome>& outcome) noexcept {
    const std::scoped_lock lock(mutex_);
    ++progress_.done;
    if (!outcome) {
      ++progress_.failed;
      if (!first_failure_) first_failure_ = copy_of(outcome.error());
    } else {
      ++(*outcome == Outcome::present  ? progress_.present
         : *outcome == Outcome::copied ? progress_.copied
                                       : progress_.compiled);
    }
    tell([&] {
      const std::string text = spec.text();
      PrebuildProgress told = progress_;
      told.kernel_spec = &text;
      told.failure = outcome ? nullptr : &outcome.error().detail;
      tell_(told);
    });
  }

  const PrebuildProgress& progress() const { return progress_; }
  const std::optional<Failure>& first_failure() const { return first_failure_; }

 private:
  template <typename Tell>
  void tell(const Tell& one) noexcept {
    tell_guarded(logger_, "the progress callback of prebuild", one);
  }

  const PrebuildTell& tell_;
  Logger& logger_;
  std::mutex mutex_;
  PrebuildProgress progress_;
  std::optional<Failure> first_failure_;
};

// What a list's kernels are compiled into, and where they go from there.
class Destination {
 public:
  Destination(const Config& config, const PrebuildRequest& request, CodegenLibrary& codegen, Logger& logger)
      : source_(on_disk_only(config), codegen, logger) {
    if (!request.output || request.archive) return;
    cache::CacheOptions options;
    options.layers = {{.name = *request.output, .root = *request.output, .writable = true}};
    options.on_event = source_.cache().options().on_event;
    options.readable_by_all = true;
    folder_ = std::make_unique<cache::Cache>(std::move(options));
  }

  Result<Outcome> make(const KernelSpec& spec) {
    const auto key = source_.key_of(spec);
    if (!key) return std::unexpected(key.error());
    if (folder_ && folder_->lookup(*key)) return Outcome::present;
    auto made = make_in_cache(spec, *key);
    if (!made || !folder_) return made;
    const auto hit = source_.cache().lookup(*key);
    if (!hit) return fail(WAVEJIT_IO_ERROR, spec.text() + ": not in the cache (any more)");
    const cache::Entry& entry = hit->entry();
    const auto copied = folder_->publish(*key, {.kernels = entry.kernels, .code_object = entry.code_object});
    if (!copied.published) return std::unexpected(unpublished(spec, copied));
    return *made == Outcome::compiled ? Outcome::compiled : Outcome::copied;
  }

  // Before anything is compiled: whether what comes of it could be written.
  Result<void> check_places(const std::optional<std::string>& output) {
    if (auto good = cache::check_writable(source_.cache()); !good) return fail(WAVEJIT_IO_ERROR, good.error());
    if (!output) return {};
    auto good = folder_ ? cache::check_writable(*folder_) : cache::check_archive_place(source_.cache(), *output);
    if (!good) return fail(WAVEJIT_IO_ERROR, "output = " + *output + ": " + good.error());
    return {};
  }

  // Waits for what is on its way to the remote layer.
  bool flush() { return source_.cache().flush_remote(remote_patience); }

  // The archive of all of them, whole or not at all.
  Result<void> pack(const std::vector<KernelSpec>& specs, const std::string& archive) {
    std::vector<cache::Key> keys;
    for (const KernelSpec& spec : specs) {
      auto key = source_.key_of(spec);
      if (!key) return std::unexpected(std::move(key.error()));
      keys.push_back(*std::move(key));
    }
    auto packed = cache::pack_keys(source_.cache(), archive, std::move(keys));
    if (!packed) return fail(WAVEJIT_IO_ERROR, "output = " + archive + ": " + packed.error());
    return {};
  }

 private:
  // What lies in memory only is gone with this process, and what is packaged with this machine's library.
  static Config on_disk_only(Config config) {
    config.cache_memory = nullptr;
    config.cache_packaged.value = false;
    return config;
  }

  static Failure unpublished(const KernelSpec& spec, const cache::PublishResult& publish) {
    return {WAVEJIT_IO_ERROR, spec.text() + ": not published: " + publish.reason};
  }

  Result<Outcome> make_in_cache(const KernelSpec& spec, const cache::Key& key) {
    Phases phases;
    if (const auto found = source_.from_disk(key, phases); found && found->on_disk) return Outcome::present;
    auto compiled = source_.compile(spec, key, phases);
    if (!compiled) return std::unexpected(std::move(compiled.error()));
    if (compiled->by_others) return Outcome::present;
    if (!compiled->publish.published) return std::unexpected(unpublished(spec, compiled->publish));
    return Outcome::compiled;
  }

  KernelSource source_;
  std::unique_ptr<cache::Cache> folder_;
};

Failure refused_failure(const RefusedLine& line) {
  return {line.why.status, "descriptors[" + std::to_string(line.line) + "]" +
                               (line.target.empty() ? std::string() : " on " + line.target) + ": " + line.why.detail};
}

Result<void> result_of(const PrebuildBoard& board, const PrebuildPlan& plan, const char* what) {
  if (const auto& first = board.first_failure()) {
    return fail(first->status, std::to_string(board.progress().failed) + " of " + std::to_string(plan.specs.size()) +
                                   " kernels " + what + ", the first: " + first->detail);
  }
  if (!plan.refused.empty()) return std::unexpected(refused_failure(plan.refused.front()));
  return {};
}

Result<void> check_request(const Config& config, const PrebuildRequest& request) {
  if (auto jobs = check_jobs(request.jobs); !jobs) return jobs;
  if (request.mode == PrebuildMode::compile && config.cache_mode.value != cache::Mode::read_write) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "cache_mode = " + std::string(cache::to_text(config.cache_mode.value)) +
                                              ": prebuild writes the cache; accepted: rw (WAVEJIT_CACHE)");
  }
  if (request.archive && !request.output)
    return fail(WAVEJIT_INVALID_ARGUMENT, "output = null: an archive needs a name; accepted: a path");
  if (request.output && request.output->empty())
    return fail(WAVEJIT_INVALID_ARGUMENT, "output = \"\"; accepted: a path, or null for the cache");
  return {};
}

Result<void> verify(const Config& config, const PrebuildRequest& request, const PrebuildPlan& plan,
                    const HipDevice* device, CodegenLibrary& codegen, PrebuildBoard& board) {
  PrebuildVerifier verifier(config, request, device, codegen);
  for (const KernelSpec& spec : plan.specs) {
    const auto good = verifier.check(spec);
    board.finished(spec, good ? Result<Outcome>(Outcome::present) : std::unexpected(good.error()));
  }
  return result_of(board, plan, "are missing or broken");
}

Result<void> compile(const Config& config, const PrebuildRequest& request, const PrebuildPlan& plan,
                     CodegenLibrary& codegen, Logger& logger, PrebuildBoard& board) {
  Destination destination(config, request, codegen, logger);
  if (!plan.specs.empty()) {
    if (auto places = destination.check_places(request.output); !places) return places;
  }
  work_off(plan.specs.size(), request.jobs, [&](std::size_t i) {
    Result<Outcome> outcome = fail(WAVEJIT_OUT_OF_MEMORY, "out of memory");
    try {
      outcome = destination.make(plan.specs[i]);
    } catch (const std::bad_alloc&) {
      outcome = fail(WAVEJIT_OUT_OF_MEMORY, "out of memory");
    }
    board.finished(plan.specs[i], outcome);
  });
  if (!destination.flush()) {
    logger.write(LogLevel::warning,
                 "not every kernel reached the remote layer; `wavejit cache push` sends what is missing");
  }
  if (auto done = result_of(board, plan, "failed"); !done) return done;
  if (request.archive) return destination.pack(plan.specs, *request.output);
  return {};
}

}  // namespace

Result<void> prebuild(const Config& config, const PrebuildRequest& request, CodegenLibrary& codegen,
                      const PrebuildTell& tell) {
  if (auto good = check_request(config, request); !good) return good;
  std::optional<HipDevice> device;
  PrebuildRequest asked = request;
  if (request.mode == PrebuildMode::verify_on_device) {
    auto opened = open_device(config.device.value);
    if (!opened) return std::unexpected(std::move(opened.error()));
    device = *std::move(opened);
    if (asked.targets.empty()) {
      const targets::Target* target = targets::find_target(device->architecture);
      asked.targets = target != nullptr ? target->id : std::string_view(device->architecture);
    }
  }
  auto plan = plan_prebuild(config, asked);
  if (!plan) return std::unexpected(std::move(plan.error()));
  if (request.whole && !plan->refused.empty()) return std::unexpected(refused_failure(plan->refused.front()));
  if (device) {
    if (auto right = check_device_of(plan->specs, *device); !right) return right;
  }
  Logger logger(config.log_level.value, log_sink(config));
  PrebuildBoard board(tell, logger, plan->specs.size());
  for (const RefusedLine& line : plan->refused) board.refused(request, line);
  board.begin();
  if (request.mode != PrebuildMode::compile)
    return verify(config, request, *plan, device ? &*device : nullptr, codegen, board);
  return compile(config, request, *plan, codegen, logger, board);
}

}  // namespace wavejit::runtime
