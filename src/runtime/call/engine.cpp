// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "boards/board.h"
#include "boards/known_products.h"
#include "runtime/call/launch.h"

namespace wavejit::runtime {
namespace {

using hip_abi::hipError_t;
using hip_abi::hipSuccess;

void copy_text(char* to, std::size_t capacity, const std::string& text) {
  const std::size_t length = std::min(capacity - 1, text.size());
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

void fill_report(wavejit_call_report& report, const LoadedKernels& kernels, wavejit_origin origin,
                 const Phases& phases) {
  copy_text(report.kernel_spec, sizeof report.kernel_spec, kernels.first().spec_text);
  copy_text(report.key, sizeof report.key, kernels.first().key);
  report.origin = origin;
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

// What a family reads of a call's device memory, when the stream has come to rest.
class Reader final : public families::DeviceMemory {
 public:
  explicit Reader(const HipDevice& device) : device_(device) {}
  std::expected<void, std::string> read(void* host, const void* memory, std::size_t bytes) override {
    const hipError_t error = device_.hip.hipMemcpy(host, memory, bytes, hip_abi::hipMemcpyDeviceToHost);
    if (error != hipSuccess) return std::unexpected(error_text(device_.hip, error));
    return {};
  }

 private:
  const HipDevice& device_;
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::open(const Config& config) {
  auto device = open_device(config.device.value);
  if (!device) return std::unexpected(std::move(device.error()));
  return assemble(config, *device, process_codegen(),
                  std::make_unique<Logger>(config.log_level.value, log_sink(config)));
}

Result<std::unique_ptr<Engine>> Engine::assemble(const Config& config, const HipDevice& device, CodegenLibrary& codegen,
                                                 std::unique_ptr<Logger> logger) {
  const boards::Board* product = boards::find_product(device.architecture);
  if (product == nullptr) {
    return fail(WAVEJIT_UNSUPPORTED, "device " + std::to_string(device.ordinal) + " (" + device.name +
                                         "): " + device.architecture + " " + boards::why_no_board(device.architecture) +
                                         "; accepted: " + boards::known_products());
  }
  return std::unique_ptr<Engine>(new Engine(config, device, *product, codegen, std::move(logger)));
}

Engine::Engine(const Config& config, HipDevice device, const boards::Board& product, CodegenLibrary& codegen,
               std::unique_ptr<Logger> logger)
    : device_(std::move(device)),
      target_(boards::board_of(product, device_.xcds, device_.compute_units)),
      target_id_(product.id),
      toggles_(toggles_of(config)),
      hooks_(config.hooks),
      logger_(std::move(logger)),
      miss_log_(config.miss_log.value, *logger_),
      workspaces_(device_, config.hooks),
      source_(config, codegen, *logger_),
      resolver_(device_, target_, toggles_, source_, *logger_, statistics_),
      background_([this](const families::Shape& shape, const std::string& line) { prepare_behind(shape, line); }) {}

std::uint64_t Engine::next_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Result<void> Engine::run(families::Call& call, hip_abi::hipStream_t stream) {
  if (call.workspace_bytes != 0) [[unlikely]] {
    if (auto settled = settle_memory(call, stream); !settled) return settled;
  }
  if (call.judges_device_memory) [[unlikely]] {
    if (auto good = judge_memory(call, stream); !good) return good;
  }
  if (logger_->wants(LogLevel::debug)) [[unlikely]]
    log_call(call, stream);
  if (call.report != nullptr) [[unlikely]]
    return reported_call(call, stream);
  statistics_.count_call();
  if (const LoadedKernels* kernels = resolver_.find(call.shape()); kernels != nullptr) [[likely]]
    return launch_call(*kernels, call, stream);
  return cold_call(call, stream);
}

bool Engine::is_loaded(const families::Call& call) const { return resolver_.find(call.shape()) != nullptr; }

void Engine::seal(bool sealed) {
  if (sealed) background_.wait_for_all();
  sealed_.store(sealed, std::memory_order_release);
}

bool Engine::is_capturing(hip_abi::hipStream_t stream) const { return runtime::is_capturing(device_, stream); }

[[gnu::cold, gnu::noinline]] Result<void> Engine::judge_memory(const families::Call& call,
                                                               hip_abi::hipStream_t stream) {
  if (is_capturing(stream)) {
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "flags = WAVEJIT_CHECK_LENGTHS waits for the stream, which is being captured; accepted there: 0");
  }
  const CurrentDevice current(device_.hip, device_.ordinal);
  hipError_t error = current.error();
  // What writes the arrays may be on it.
  if (error == hipSuccess) error = device_.hip.hipStreamSynchronize(stream);
  if (is_of_earlier_work(error)) return std::unexpected(resolver_.earlier_kernel_failed(error));
  if (error != hipSuccess) {
    return fail(WAVEJIT_DEVICE_ERROR,
                "waiting for the stream to check lengths on " + device_.name + ": " + error_text(device_.hip, error));
  }
  Reader reader(device_);
  return call.judge(reader);
}

Result<void> Engine::supports(families::Call& call) const {
  if (auto room = check_room(call); !room) return room;
  families::LaunchPlan plan;
  const families::Shape& shape = call.shape();
  if (const LoadedKernels* kernels = resolver_.find(shape)) return call.plan(kernels->specs, call.workspace, plan);
  auto route = shape.family->route(shape, target_, toggles_);
  if (!route) return std::unexpected(shape.family->name_field(shape, target_, std::move(route.error())));
  std::vector<const families::KernelSpec*> specs;
  for (const families::RoutedKernel& kernel : route->kernels) specs.push_back(&kernel.spec);
  return call.plan(specs, call.workspace, plan);
}

Result<void> Engine::is_ready(families::Call& call) const {
  if (auto supported = supports(call); !supported) return supported;
  if (is_loaded(call)) return {};
  const std::string line = call.descriptor(families::Call::Line::of_kernels);
  // A call that may not compile launches kernels that leave its keys whole (miss()).
  const bool may_compile = !sealed() && call.when_missing() == families::Call::WhenMissing::make_them;
  if (call.may_go_whole && !may_compile) {
    call.take(families::Call::Way::whole);
    if (is_loaded(call)) return {};
  }
  return fail(WAVEJIT_NOT_READY, "no kernel is loaded for \"" + line + "\"; give wavejit_prepare this line first");
}

Result<void> Engine::check_room(const families::Call& call) const {
  if (call.workspace_bytes == 0) return {};
  if (call.workspace != nullptr) return call.check_workspace();
  if (device_.memory_bytes == 0 || call.workspace_bytes <= device_.memory_bytes) return {};
  const families::WorkspaceWords words = call.workspace_words();
  return fail(WAVEJIT_OUT_OF_MEMORY, words.reason + " needs a workspace of " + std::to_string(call.workspace_bytes) +
                                         " bytes; " + device_.name + " has " + std::to_string(device_.memory_bytes) +
                                         " in all; accepted: " + words.instead);
}

// A graph may be replayed on any stream, beside calls that borrow the engine's workspace and counters. Without a
// workspace of its own a call that is captured leaves its keys whole. One that merges in one launch has counters of its
// own from then on; where there are none, two launches merge. Slower, and the same bits.
Result<void> Engine::settle_memory(families::Call& call, hip_abi::hipStream_t stream) {
  using Way = families::Call::Way;
  if (call.workspace == nullptr && call.may_go_whole && is_capturing(stream)) [[unlikely]]
    call.take(Way::whole);
  if (auto room = check_room(call); !room) return room;
  if (call.workspace != nullptr && call.arrivals != 0 && is_capturing(stream)) [[unlikely]] {
    call.arrival_counters = workspaces_.captured_counters(call.arrivals);
    if (call.arrival_counters == nullptr) call.take(Way::two_launches);
  }
  return {};
}

Result<void> Engine::launch_call(const LoadedKernels& kernels, families::Call& call, hip_abi::hipStream_t stream) {
  const bool brings_workspace = call.workspace_bytes == 0 || call.workspace != nullptr;
  const bool borrows_counters = call.arrivals != 0 && call.arrival_counters == nullptr;
  if (brings_workspace && !borrows_counters) [[likely]]
    return launch(device_, resolver_, kernels, call, call.workspace, stream);
  if (brings_workspace) {
    const auto loan = workspaces_.borrow(stream, 0, call.arrivals);
    if (!loan) return std::unexpected(loan.error());
    call.arrival_counters = loan->counters();
    return launch(device_, resolver_, kernels, call, call.workspace, stream);
  }
  // A replay may run on any stream, beside calls that borrow the same memory.
  if (is_capturing(stream)) {
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "workspace = null while the stream is being captured and " + call.workspace_words().captured +
                    "; accepted there: " + std::to_string(call.workspace_bytes) + " bytes of the caller's");
  }
  const auto loan = workspaces_.borrow(stream, call.workspace_bytes, borrows_counters ? call.arrivals : 0);
  if (!loan) return std::unexpected(loan.error());
  if (borrows_counters) call.arrival_counters = loan->counters();
  return launch(device_, resolver_, kernels, call, loan->memory(), stream);
}

Result<void> Engine::reported_call(families::Call& call, hip_abi::hipStream_t stream) {
  statistics_.count_call();
  Phases phases;
  Stopwatch watch;
  const LoadedKernels* kernels = resolver_.find(call.shape());
  wavejit_origin origin = WAVEJIT_ORIGIN_MEMORY;
  phases.route_ns = watch.lap();
  if (kernels == nullptr) {
    const Resolution resolution = miss(call, stream, phases);
    if (!resolution.kernels) return std::unexpected(resolution.kernels.error());
    kernels = *resolution.kernels;
    origin = resolution.origin;
  }
  watch.lap();
  auto launched = launch_call(*kernels, call, stream);
  if (!launched) return launched;
  phases.launch_ns = watch.lap();
  fill_report(*call.report, *kernels, origin, phases);
  if (origin != WAVEJIT_ORIGIN_MEMORY) load_for_captures_behind(call);
  return {};
}

Failure Engine::device_failure(const char* what, hipError_t error) {
  if (is_of_earlier_work(error)) return resolver_.earlier_kernel_failed(error);
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
  const std::uint64_t begun = resolver_.trail().begin_rest();
  auto done = on_device("synchronize", [&] { return device_.hip.hipDeviceSynchronize(); });
  if (done) resolver_.trail().rested(begun);
  return done;
}

Result<void> Engine::trim() {
  const hipError_t error = workspaces_.trim();
  if (error != hipSuccess) return std::unexpected(device_failure("wait before workspaces are given back", error));
  return {};
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
