#include "runtime/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/call_descriptor.h"
#include "runtime/descriptor.h"
#include "runtime/device_lengths.h"
#include "targets/targets.h"

namespace wavejit::runtime {
namespace {

using hip_abi::hipError_t;
using hip_abi::hipSuccess;

void copy_text(char* to, std::size_t capacity, const std::string& text) {
  const std::size_t length = std::min(capacity - 1, text.size());
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

void fill_report(wavejit_call_report& report, const Resolved& resolved, const Phases& phases) {
  copy_text(report.kernel_spec, sizeof report.kernel_spec, resolved.kernel->spec_text);
  copy_text(report.key, sizeof report.key, resolved.kernel->key);
  report.origin = resolved.origin;
  report.route_ns = phases.route_ns;
  report.lookup_ns = phases.lookup_ns;
  report.emit_ns = phases.emit_ns;
  report.lower_ns = phases.lower_ns;
  report.link_ns = phases.link_ns;
  report.inspect_ns = phases.inspect_ns;
  report.publish_ns = phases.publish_ns;
  report.load_ns = phases.load_ns;
  report.launch_ns = phases.launch_ns;
}

}  // namespace

Toggles toggles_of(const Config& config) {
  return {.output_store = config.output_store.value,
          .lowering = config.lowering.value,
          .pipeline = config.pipeline.value,
          .stagger = config.stagger.value,
          .raised_priority = config.setprio.value,
          .tile_queries = config.pinned.tile_queries,
          .ladder = config.pinned.ladder};
}

LaunchToggles launch_toggles_of(const Config& config) {
  return {.lazy_rescale = config.lazy_rescale.value, .xcd_swizzle = config.xcd_swizzle.value};
}

Result<std::unique_ptr<Engine>> Engine::open(const Config& config) {
  auto device = open_device(config.device.value);
  if (!device) return std::unexpected(std::move(device.error()));
  return assemble(config, *device, process_codegen(), std::make_unique<Logger>(config.log_level.value));
}

Result<std::unique_ptr<Engine>> Engine::assemble(const Config& config, const HipDevice& device, CodegenLibrary& codegen,
                                                 std::unique_ptr<Logger> logger) {
  const targets::Target* target = targets::find_target(device.architecture);
  if (target == nullptr) {
    return fail(WAVEJIT_UNSUPPORTED, "device " + std::to_string(device.ordinal) + " (" + device.name + ") is " +
                                         device.architecture + "; accepted: " + targets::known_targets());
  }
  return std::unique_ptr<Engine>(new Engine(config, device, *target, codegen, std::move(logger)));
}

Engine::Engine(const Config& config, HipDevice device, const targets::Target& target, CodegenLibrary& codegen,
               std::unique_ptr<Logger> logger)
    : device_(std::move(device)),
      target_(target),
      target_id_(target.id),
      toggles_(toggles_of(config)),
      launch_toggles_(launch_toggles_of(config)),
      kv_splits_(config.kv_splits.value),
      hooks_(config.hooks),
      logger_(std::move(logger)),
      miss_log_(config.miss_log.value, *logger_),
      workspaces_(device_, config.hooks),
      source_(config, codegen, *logger_),
      resolver_(device_, target, toggles_, source_, *logger_, statistics_) {}

Result<void> Engine::attention_forward(const wavejit_attention_forward_arguments* arguments,
                                       hip_abi::hipStream_t stream) {
  // A caller compiled against an earlier version: what its struct does not have, it does not ask for.
  constexpr std::size_t earlier = offsetof(wavejit_attention_forward_arguments, window_left);
  if (arguments != nullptr && arguments->size == earlier) [[unlikely]] {
    wavejit_attention_forward_arguments grown = {};
    std::memcpy(&grown, arguments, earlier);
    grown.size = sizeof grown;
    return attention_forward(&grown, stream);
  }
  const Result<AttentionProblem> problem = check_attention_forward(arguments);
  if (!problem) return std::unexpected(problem.error());
  if ((arguments->flags & WAVEJIT_CHECK_LENGTHS) != 0) [[unlikely]] {
    if (is_capturing(device_, stream)) {
      return fail(WAVEJIT_INVALID_ARGUMENT,
                  "flags = WAVEJIT_CHECK_LENGTHS waits for the stream, which is being captured; accepted there: 0");
    }
    if (auto lengths = check_device_lengths(device_, *problem, *arguments, stream); !lengths) return lengths;
  }
  if (logger_->wants(LogLevel::debug)) [[unlikely]]
    logger_->write(LogLevel::debug, "call " + to_text(describe_call(*problem, *arguments)));
  const Result<SplitPlan> plan = plan_call(*problem, *arguments);
  if (!plan) return std::unexpected(plan.error());
  if (arguments->report != nullptr) return reported_call(*problem, *arguments, *plan, stream);
  statistics_.count_call();
  const AttentionShape shape = kernel_shape(*problem, *plan);
  const LoadedKernel* kernel = resolver_.find(shape.code());
  if (kernel == nullptr) {
    Phases phases;
    const Result<Resolved> resolved = miss(shape, *problem, *arguments, stream, phases);
    if (!resolved) return std::unexpected(resolved.error());
    kernel = resolved->kernel;
  }
  return launch_call(*kernel, *problem, *arguments, *plan, stream);
}

Result<SplitPlan> Engine::plan_call(const AttentionProblem& problem,
                                    const wavejit_attention_forward_arguments& call) const {
  Result<SplitPlan> plan = plan_splits(problem, target_, kv_splits_);
  if (!plan || plan->splits == 1) [[likely]]
    return plan;
  if (call.workspace != nullptr) {
    if (auto workspace = check_workspace(call, plan->workspace_bytes); !workspace)
      return std::unexpected(workspace.error());
  } else if (device_.memory_bytes != 0 && plan->workspace_bytes > device_.memory_bytes) {
    return fail(WAVEJIT_OUT_OF_MEMORY, "splits = " + std::to_string(plan->splits) + " needs a workspace of " +
                                           std::to_string(plan->workspace_bytes) + " bytes; " + device_.name + " has " +
                                           std::to_string(device_.memory_bytes) + " in all; accepted: fewer splits");
  }
  return plan;
}

Result<void> Engine::launch_call(const LoadedKernel& kernel, const AttentionProblem& problem,
                                 const wavejit_attention_forward_arguments& call, const SplitPlan& plan,
                                 hip_abi::hipStream_t stream) {
  if (plan.splits == 1) [[likely]]
    return launch(device_, target_, launch_toggles_, kernel, problem, call, {}, stream);
  SplitLaunch split = {.splits = plan.splits, .workspace = call.workspace};
  if (split.workspace != nullptr)
    return launch(device_, target_, launch_toggles_, kernel, problem, call, split, stream);
  // A replay may run on any stream, beside calls that borrow the same memory.
  if (is_capturing(device_, stream)) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "workspace = null while the stream is being captured and keys are split (" +
                                              std::to_string(plan.splits) + " splits); accepted there: " +
                                              std::to_string(plan.workspace_bytes) + " bytes of the caller's");
  }
  const auto loan = workspaces_.borrow(stream, plan.workspace_bytes);
  if (!loan) return std::unexpected(loan.error());
  split.workspace = loan->memory();
  return launch(device_, target_, launch_toggles_, kernel, problem, call, split, stream);
}

Result<std::size_t> Engine::attention_forward_workspace(const wavejit_attention_forward_arguments* arguments) {
  const Result<AttentionProblem> problem = check_attention_forward(arguments);
  if (!problem) return std::unexpected(problem.error());
  // Whoever asks for the size has no workspace yet.
  wavejit_attention_forward_arguments call = *arguments;
  call.workspace = nullptr;
  const Result<SplitPlan> plan = plan_call(*problem, call);
  if (!plan) return std::unexpected(plan.error());
  return plan->workspace_bytes;
}

Result<void> Engine::reported_call(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call,
                                   const SplitPlan& plan, hip_abi::hipStream_t stream) {
  statistics_.count_call();
  Phases phases;
  Stopwatch watch;
  const AttentionShape shape = kernel_shape(problem, plan);
  Resolved resolved{resolver_.find(shape.code()), WAVEJIT_ORIGIN_MEMORY};
  phases.route_ns = watch.lap();
  if (resolved.kernel == nullptr) {
    const Result<Resolved> found = miss(shape, problem, call, stream, phases);
    if (!found) return std::unexpected(found.error());
    resolved = *found;
  }
  watch.lap();
  auto launched = launch_call(*resolved.kernel, problem, call, plan, stream);
  if (!launched) return launched;
  phases.launch_ns = watch.lap();
  fill_report(*call.report, resolved, phases);
  return {};
}

Failure Engine::device_failure(const char* what, hipError_t error) const {
  return {error == hip_abi::hipErrorOutOfMemory ? WAVEJIT_OUT_OF_MEMORY : WAVEJIT_DEVICE_ERROR,
          std::string(what) + " on " + device_.name + ": " + error_text(device_.hip, error)};
}

template <typename Call>
Result<void> Engine::on_device(const char* what, Call call) {
  const CurrentDevice current(device_.hip, device_.ordinal);
  hipError_t error = current.error();
  if (error == hipSuccess) error = call();
  if (error != hipSuccess) return std::unexpected(device_failure(what, error));
  return {};
}

Result<void*> Engine::allocate(std::size_t bytes) {
  void* memory = nullptr;
  const std::string what = "allocate " + std::to_string(bytes) + " bytes";
  auto done = on_device(what.c_str(), [&] { return device_.hip.hipMalloc(&memory, bytes); });
  if (!done) return std::unexpected(std::move(done.error()));
  return memory;
}

Result<void> Engine::release(void* memory) {
  if (memory == nullptr) return {};
  return on_device("free", [&] { return device_.hip.hipFree(memory); });
}

Result<void> Engine::copy_in(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return {};
  if (device == nullptr) return fail(WAVEJIT_INVALID_ARGUMENT, "device = null; accepted: device memory");
  if (host == nullptr) return fail(WAVEJIT_INVALID_ARGUMENT, "host = null; accepted: host memory");
  return on_device("copy to the device",
                   [&] { return device_.hip.hipMemcpy(device, host, bytes, hip_abi::hipMemcpyHostToDevice); });
}

Result<void> Engine::copy_out(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return {};
  if (host == nullptr) return fail(WAVEJIT_INVALID_ARGUMENT, "host = null; accepted: host memory");
  if (device == nullptr) return fail(WAVEJIT_INVALID_ARGUMENT, "device = null; accepted: device memory");
  return on_device("copy from the device",
                   [&] { return device_.hip.hipMemcpy(host, device, bytes, hip_abi::hipMemcpyDeviceToHost); });
}

Result<void> Engine::synchronize() {
  return on_device("synchronize", [&] { return device_.hip.hipDeviceSynchronize(); });
}

void Engine::fill(wavejit_statistics& out) const noexcept {
  statistics_.fill(out);
  const cache::CounterValues cache = source_.cache().counters();
  out.published = cache.published;
  out.publish_failures = cache.publish_failures;
  out.damaged_entries = cache.damaged + cache.refused;
  out.cache_io_faults = cache.read_faults + cache.publish_failures;
  out.layer_hits = cache.layer_hits;
  out.user_hits = cache.user_hits;
  out.cache_memory_hits = cache.memory_hits;
  out.lock_waits = cache.turns_waited;
  out.lock_timeouts = cache.turns_timed_out;
  out.evicted_entries = cache.evicted;
  out.remote_lookups = cache.remote_lookups;
  out.remote_hits = cache.remote_hits;
  out.remote_misses = cache.remote_misses;
  out.remote_damaged = cache.remote_damaged;
  out.remote_faults = cache.remote_faults;
  out.remote_skipped = cache.remote_skipped;
  out.remote_publishes = cache.remote_publishes;
  out.remote_published = cache.remote_published;
  out.remote_publish_failures = cache.remote_publish_failures;
  out.remote_dropped = cache.remote_dropped;
}

}  // namespace wavejit::runtime
