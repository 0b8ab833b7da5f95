// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A simulated device as the HIP front sees it: load code objects, find kernels and globals, launch.
//
// Everything here may be called from any thread. Launches are synchronous: they return when the last workgroup has
// ended.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/device/memory.h"
#include "targets/targets.h"

namespace wavejit::simgpu {

struct LoadedCode;   // loader/loaded_code.h
class ResidentCode;  // loader/resident_code.h
struct CodeImage;
struct DispatchRequest;  // launch/dispatch.h
struct DispatchResult;
struct KernelCode;
struct Wave;
struct Instruction;

// `code` is a HIP error number (hipError_t); 0 is success. `text` is one line.
struct Status {
  int code = 0;
  std::string text;
  std::vector<std::string> others = {};  // further lines: what else a launch's checks found
  bool ok() const { return code == 0; }
};

// What the clock says of a launch, where it runs.
struct LaunchTime {
  std::uint64_t cycles = 0;            // of the whole launch
  std::uint64_t dependent_cycles = 0;  // more of them when it waits for the launch before it
};

// The HIP numbers that the engine itself answers with (hip_runtime_api.h, HIP 7.2).
inline constexpr int hip_success = 0;
inline constexpr int hip_error_invalid_value = 1;
inline constexpr int hip_error_out_of_memory = 2;
inline constexpr int hip_error_not_initialised = 3;
inline constexpr int hip_error_invalid_configuration = 9;
inline constexpr int hip_error_invalid_device = 101;
inline constexpr int hip_error_invalid_image = 200;
inline constexpr int hip_error_no_binary_for_gpu = 209;
inline constexpr int hip_error_shared_object_init_failed = 303;
inline constexpr int hip_error_illegal_address = 700;
inline constexpr int hip_error_launch_failure = 719;

// One explicit or hidden argument, from the metadata note.
struct KernelArgument {
  std::string name;
  std::string value_kind;  // "by_value", "global_buffer", "hidden_block_count_x", …
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  bool hidden() const { return value_kind.starts_with("hidden_"); }
};

// What is known of a kernel without running it.
struct KernelInfo {
  std::string name;                          // as written in the source's symbol: "_Z3addPf"
  std::uint32_t kernarg_bytes = 0;           // explicit and hidden arguments
  std::uint32_t explicit_kernarg_bytes = 0;  // end of the last explicit argument
  std::uint32_t static_lds_bytes = 0;
  std::uint32_t private_bytes = 0;  // per lane
  std::uint32_t max_threads_per_workgroup = 1024;
  std::array<std::uint32_t, 3> required_workgroup = {0, 0, 0};
  std::uint32_t vgprs = 0;
  std::uint32_t agprs = 0;
  std::uint32_t sgprs = 0;
  bool uses_dynamic_stack = false;
  std::vector<KernelArgument> arguments;  // in order of offset; hidden ones included
};

class Module;

class Kernel {
 public:
  const KernelInfo& info() const { return info_; }
  const Module& module() const { return *module_; }
  std::uint64_t descriptor_address() const { return descriptor_address_; }

 private:
  friend class Module;
  friend class Device;
  KernelInfo info_;
  const Module* module_ = nullptr;
  std::uint64_t descriptor_address_ = 0;
  std::unique_ptr<KernelCode> code_;  // decoded at the first launch

 public:
  Kernel();
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
};

struct GlobalSymbol {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

class Device;

// A code object in the memory of one device. Freed when the last owner lets go; kernels live as long as their module.
class Module {
 public:
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  // Null when there is no such kernel. "name" and "name.kd" are the same.
  const Kernel* find_kernel(std::string_view name) const;
  std::vector<const Kernel*> kernels() const;
  // A __device__ or __constant__ variable; `address` 0 when there is none.
  GlobalSymbol find_global(std::string_view name) const;
  Device& device() const { return *device_; }
  // "gfx950" or with features, as the code object states it.
  const std::string& target_id() const;

 private:
  friend class Device;
  Module();
  Device* device_ = nullptr;
  std::unique_ptr<LoadedCode> code_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

// Sees every instruction just before a wave executes it: for analyses that want addresses or paths. Called from the
// threads that run workgroups, so an observer of several workgroups locks.
class Observer {
 public:
  virtual ~Observer() = default;
  // Whether it looks at this workgroup (linear id); the others run unobserved.
  virtual bool wants(std::uint64_t /*workgroup*/) const { return true; }
  virtual void before(const Wave& wave, const Instruction& instruction) = 0;
};

struct LaunchRequest {
  const Kernel* kernel = nullptr;
  std::array<std::uint32_t, 3> workgroups = {1, 1, 1};      // HIP's grid: number of blocks
  std::array<std::uint32_t, 3> workgroup_size = {1, 1, 1};  // HIP's block: threads
  std::uint32_t dynamic_lds_bytes = 0;
  // The explicit arguments laid out by their offsets. Hidden ones are written by the launch. Shorter than the kernel's
  // explicit size is an error; longer is allowed (HIP programs pass padded buffers).
  std::span<const std::byte> kernarg;
  Observer* observer = nullptr;
  bool cooperative = false;  // its workgroups may wait for each other
};

class Device {
 public:
  // The device with this ordinal, or null. Devices are numbered from 0 in the order in which `open` made them.
  static Device* find(int ordinal);
  static int count();
  // Makes sure that `count` devices of `target` exist ("gfx942", or a board of it: "gfx942@6x38"); their ordinals in
  // order, or an error naming the targets known.
  static std::expected<std::vector<int>, Status> open(std::string_view target, int count);

  int ordinal() const { return ordinal_; }
  const targets::Target& target() const { return target_; }

  // `image` is a bare ELF code object (the HIP front takes bundles apart). Nothing keeps pointing to `image`.
  std::expected<std::shared_ptr<Module>, Status> load(std::span<const std::byte> image);

  // Runs the whole grid. Faults found are reported (simgpu.h: wavejit_simgpu_take_reports) and returned in `text`.
  Status launch(const LaunchRequest& request);

  // Code that lies in executable memory already; `find_image` may know the code object around an address.
  std::expected<std::shared_ptr<ResidentCode>, Status> resident_code(
      std::uint64_t base, std::uint64_t bytes,
      std::function<std::optional<CodeImage>(std::uint64_t address)> find_image);
  // Runs what a dispatch packet asks for. Faults found are reported, as those of `launch` are.
  DispatchResult dispatch(const DispatchRequest& request);

  Device(int ordinal, const targets::Target& target);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

 private:
  struct State;
  int ordinal_;
  targets::Target target_;  // with the counts of this device
  std::unique_ptr<State> state_;
};

// Processor ("gfx950") named by an ELF code object's header; empty when `image` is not one. For choosing from a
// bundle.
std::string code_object_processor(std::span<const std::byte> image);
// What is wrong with a code object's bytes; empty when nothing is.
std::string code_object_problem(std::span<const std::byte> image);

}  // namespace wavejit::simgpu
