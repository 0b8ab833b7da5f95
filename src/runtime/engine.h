// One device, its kernels, its cache: what wavejit_engine is. Everything a call needs is reached from here.
#pragma once

#include <memory>
#include <string>

#include "runtime/codegen_library.h"
#include "runtime/config.h"
#include "runtime/hip_library.h"
#include "runtime/kernel_source.h"
#include "runtime/launch.h"
#include "runtime/logging.h"
#include "runtime/problem.h"
#include "runtime/resolver.h"
#include "runtime/splits.h"
#include "runtime/statistics.h"
#include "runtime/workspace.h"

namespace wavejit::runtime {

Toggles toggles_of(const Config& config);
LaunchToggles launch_toggles_of(const Config& config);

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

  Result<void*> allocate(std::size_t bytes);
  Result<void> release(void* memory);
  Result<void> copy_in(void* device, const void* host, std::size_t bytes);
  Result<void> copy_out(void* host, const void* device, std::size_t bytes);
  Result<void> synchronize();

  void fill(wavejit_statistics& out) const noexcept;
  const char* target() const { return target_id_.c_str(); }
  const char* device_name() const { return device_.name.c_str(); }

 private:
  Engine(const Config& config, HipDevice device, const targets::Target& target, CodegenLibrary& codegen,
         std::unique_ptr<Logger> logger);

  // How many runs, and whether there is room for what they leave.
  Result<SplitPlan> plan_call(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call) const;
  Result<void> launch_call(const LoadedKernel& kernel, const AttentionProblem& problem,
                           const wavejit_attention_forward_arguments& call, const SplitPlan& plan,
                           hip_abi::hipStream_t stream);
  Result<void> reported_call(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call,
                             const SplitPlan& plan, hip_abi::hipStream_t stream);
  void log_call(const AttentionProblem& problem, const wavejit_attention_forward_arguments& call) const;
  Failure device_failure(const char* what, hip_abi::hipError_t error) const;
  template <typename Call>
  Result<void> on_device(const char* what, Call call);

  // In this order: what comes later uses what stands before it.
  HipDevice device_;
  const targets::Target& target_;
  std::string target_id_;
  LaunchToggles launch_toggles_;
  std::optional<std::int32_t> kv_splits_;  // of calls that do not say; nothing: auto
  Workspaces workspaces_;
  std::unique_ptr<Logger> logger_;
  Statistics statistics_;
  KernelSource source_;
  Resolver resolver_;
};

}  // namespace wavejit::runtime
