// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One device, its kernels, its cache: what wavejit_engine is. Everything a call needs is reached from here.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "families/call/family.h"
#include "runtime/call/background.h"
#include "runtime/call/miss_log.h"
#include "runtime/call/workspace.h"
#include "runtime/kernels/kernel_records.h"
#include "runtime/kernels/kernel_source.h"
#include "runtime/kernels/resolver.h"
#include "runtime/kernels/statistics.h"
#include "runtime/libraries/codegen_library.h"
#include "runtime/libraries/hip_library.h"
#include "runtime/settings/config.h"
#include "runtime/settings/logging.h"

namespace wavejit::runtime {

struct PrepareProgress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t compiled = 0;
  std::uint64_t from_disk = 0;
  std::uint64_t present = 0;
  std::uint64_t failed = 0;
  std::size_t line = 0;
  const char* descriptor = nullptr;  // null at the start
  wavejit_status status = WAVEJIT_OK;
  wavejit_origin origin = WAVEJIT_ORIGIN_NONE;
  const std::string* failure = nullptr;
};

class Engine {
 public:
  // Opens the device that the configuration names.
  static Result<std::unique_ptr<Engine>> open(const Config& config);
  // Over parts that are already there: tests and benchmarks bring their own HIP functions and code generator, which
  // must outlive the engine. WAVEJIT_UNSUPPORTED if the device's architecture is not in the target table.
  static Result<std::unique_ptr<Engine>> assemble(const Config& config, const HipDevice& device,
                                                  CodegenLibrary& codegen, std::unique_ptr<Logger> logger);

  // Launches a checked call. Its family has checked it for target_row() and toggles().
  Result<void> run(families::Call& call, hip_abi::hipStream_t stream);
  // What run() would answer of a call whose kernels can be had; nothing is fetched, compiled or launched.
  Result<void> supports(families::Call& call) const;
  // The same, and WAVEJIT_NOT_READY when they are not loaded.
  Result<void> is_ready(families::Call& call) const;
  // Makes the kernels of a call that supports() takes, as a line of prepare() does, and waits for them; those that a
  // capture of it may need come behind.
  Result<void> prepare_call(families::Call& call);
  // The architecture's row with the dies and compute units of this device.
  const boards::Board& target_row() const noexcept { return target_; }
  const families::Toggles& toggles() const noexcept { return toggles_; }
  // From 1 on, and no other engine's of this process: what is remembered of an engine does not outlive it by mistake.
  std::uint64_t number() const noexcept { return number_; }

  // prepare.cpp. Loads what the lines need, `jobs` at a time; the answer of each line goes into `statuses` (as many, or
  // none). `tell` is called from worker threads, one call at a time. Fails with the first line that failed.
  Result<void> prepare(std::span<const char* const> lines, int jobs, std::span<wavejit_status> statuses,
                       const std::function<void(const PrepareProgress&)>& tell);
  // Sealed: a call whose kernel is not loaded is refused. What earlier calls have had made behind them is loaded first.
  void seal(bool sealed);
  bool sealed() const noexcept { return sealed_.load(std::memory_order_acquire); }

  Result<void*> allocate(std::size_t bytes);
  Result<void> release(void* memory);
  Result<void> copy_in(void* device, const void* host, std::size_t bytes);
  Result<void> copy_out(void* host, const void* device, std::size_t bytes);
  Result<void> synchronize();
  // Gives the engine's own workspaces back.
  Result<void> trim();

  void fill(wavejit_statistics& out) const noexcept;
  std::string statistics_json() const;
  const char* target() const { return target_id_.c_str(); }
  const char* device_name() const { return device_.name.c_str(); }

 private:
  Engine(const Config& config, HipDevice device, const boards::Board& product, CodegenLibrary& codegen,
         std::unique_ptr<Logger> logger);

  static std::uint64_t next_number() noexcept;
  bool is_loaded(const families::Call& call) const;
  bool is_capturing(hip_abi::hipStream_t stream) const;
  // Whether run() would fetch or compile the call's kernels if they were not loaded: not in a sealed engine, not of a
  // call that forbids it, not while the stream is being captured.
  bool may_load(const families::Call& call, hip_abi::hipStream_t stream) const;
  // Refuses a call whose workspace is larger than the device's memory, and one whose own workspace does not do.
  Result<void> check_room(const families::Call& call) const;
  // Finds memory and counters for a call that is being captured, or another way to launch it.
  Result<void> settle_memory(families::Call& call, hip_abi::hipStream_t stream);
  // Makes the kernels of a call that may come one day, behind the caller's back: as a line of prepare(). Nothing where
  // they are loaded, and in a sealed engine.
  void load_behind(const families::Call& call);
  void load_for_captures_behind(families::Call& call);
  Result<void> judge_memory(const families::Call& call, hip_abi::hipStream_t stream);
  Result<void> launch_call(const LoadedKernels& kernels, families::Call& call, hip_abi::hipStream_t stream);
  Result<void> cold_call(families::Call& call, hip_abi::hipStream_t stream);
  Result<void> reported_call(families::Call& call, hip_abi::hipStream_t stream);
  // cold_path.cpp. A call whose kernels are not in the table: refused, or they are resolved.
  Resolution miss(families::Call& call, hip_abi::hipStream_t stream, Phases& phases);
  const LoadedKernels* whole_instead(families::Call& call, hip_abi::hipStream_t stream);
  void log_call(families::Call& call, hip_abi::hipStream_t stream);
  // Resolves the shape and counts times; what this thread worked for it notes and tells. `line`: a problem that needs
  // the shape.
  Resolution resolve_and_tell(const families::Shape& shape, const std::string& line, Phases& phases, Helpers& helpers);
  // For nobody who waits: as a line of prepare().
  void prepare_behind(const families::Shape& shape, const std::string& line) noexcept;
  void tell_compile(const std::string& line, const Resolution& resolution, const Phases& phases);
  Failure device_failure(const char* what, hip_abi::hipError_t error);
  template <typename Call>
  Result<void> on_device(const char* what, Call call);

  // In this order: what comes later uses what stands before it.
  HipDevice device_;
  boards::Board target_;
  std::string target_id_;
  families::Toggles toggles_;
  const std::uint64_t number_ = next_number();
  Hooks hooks_;
  std::atomic<bool> sealed_{false};
  std::unique_ptr<Logger> logger_;
  Statistics statistics_;
  KernelRecords records_;
  MissLog miss_log_;
  Workspaces workspaces_;
  KernelSource source_;
  Resolver resolver_;
  Background background_;
};

}  // namespace wavejit::runtime
