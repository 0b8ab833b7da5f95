// One device, its kernels, its cache: what wavejit_engine is. Everything a call needs is reached from here.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/codegen_library.h"
#include "runtime/config.h"
#include "runtime/hip_library.h"
#include "runtime/kernel_records.h"
#include "runtime/kernel_source.h"
#include "runtime/launch.h"
#include "runtime/logging.h"
#include "runtime/miss_log.h"
#include "runtime/problem.h"
#include "runtime/resolver.h"
#include "runtime/statistics.h"
#include "runtime/workspace_allocator.h"

namespace wavejit::runtime {

Toggles toggles_of(const Config& config);
LaunchToggles launch_toggles_of(const Config& config);

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

  Result<void> attention_forward(const wavejit_attention_forward_arguments* arguments, hip_abi::hipStream_t stream);
  // Bytes of device memory that the call would use beside its tensors.
  Result<std::size_t> attention_forward_workspace(const wavejit_attention_forward_arguments* arguments);

  // prepare.cpp. Loads what the lines need, `jobs` at a time; the answer of each line goes into `statuses` (as many, or
  // none). `tell` is called from worker threads, one call at a time. Fails with the first line that failed.
  Result<void> prepare(std::span<const char* const> lines, int jobs, std::span<wavejit_status> statuses,
                       const std::function<void(const PrepareProgress&)>& tell);
  // Sealed: a call whose kernel is not loaded is refused.
  void seal(bool sealed) noexcept { sealed_.store(sealed, std::memory_order_release); }
  bool sealed() const noexcept { return sealed_.load(std::memory_order_acquire); }

  Result<void*> allocate(std::size_t bytes);
  Result<void> release(void* memory);
  Result<void> copy_in(void* device, const void* host, std::size_t bytes);
  Result<void> copy_out(void* host, const void* device, std::size_t bytes);
  Result<void> synchronize();

  void fill(wavejit_statistics& out) const noexcept;
  std::string statistics_json() const;
  const char* target() const { return target_id_.c_str(); }
  const char* device_name() const { return device_.name.c_str(); }

 private:
  Engine(const Config& config, HipDevice device, const targets::Target& target, CodegenLibrary& codegen,
         std::unique_ptr<Logger> logger);

  Result<void> reported_call(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call,
                             hip_abi::hipStream_t stream);
  // cold_path.cpp. A call whose kernel is not in the table: refused, or made and told to who wants to know.
  Result<Resolved> miss(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call,
                        hip_abi::hipStream_t stream, Phases& phases);
  Result<Resolved> obtain(const AttentionShape& shape, const std::string& line, Phases& phases);
  void tell_compile(const AttentionShape& shape, const std::string& line, const Result<Resolved>& resolved,
                    const Phases& phases);
  Failure device_failure(const char* what, hip_abi::hipError_t error) const;
  template <typename Call>
  Result<void> on_device(const char* what, Call call);

  // In this order: what comes later uses what stands before it.
  HipDevice device_;
  const targets::Target& target_;
  std::string target_id_;
  Toggles toggles_;
  LaunchToggles launch_toggles_;
  Hooks hooks_;
  std::atomic<bool> sealed_{false};
  std::unique_ptr<Logger> logger_;
  Statistics statistics_;
  KernelRecords records_;
  MissLog miss_log_;
  WorkspaceAllocator workspaces_;
  KernelSource source_;
  Resolver resolver_;
};

}  // namespace wavejit::runtime
