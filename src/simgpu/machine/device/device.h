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

#include "boards/board.h"
#include "simgpu/machine/allocations/memory.h"
#include "simgpu/machine/loader/kernel_info.h"
#include "simgpu/process/status.h"

namespace wavejit::simgpu {

struct LoadedCode;   // loader/loaded_code.h
class ResidentCode;  // loader/resident_code.h
struct CodeImage;
struct DispatchRequest;  // device/dispatch.h
struct DispatchResult;
struct KernelCode;
class Observer;  // launch/observer.h
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
  const boards::Board& target() const { return target_; }

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

  Device(int ordinal, const boards::Board& target);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

 private:
  struct State;
  int ordinal_;
  boards::Board target_;  // with the counts of this device
  std::unique_ptr<State> state_;
};

}  // namespace wavejit::simgpu
