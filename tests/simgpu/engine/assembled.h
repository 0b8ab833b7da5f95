// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small kernels written in assembly, for tests of the engine: assemble, load, launch, look at memory.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/machine/device/device.h"
#include "simgpu/process/config.h"

namespace wavejit::simgpu::testing {

struct KernelSource {
  std::string body = {};  // instructions; s_endpgm is added at the end
  std::string target = "gfx950";
  unsigned kernarg_bytes = 8;
  unsigned lds_bytes = 0;
  unsigned private_bytes = 0;
  unsigned vgprs = 64;
  unsigned agprs = 0;
  // Further .amdhsa_ directives, one a line.
  std::string directives = {};
  // What stands after s_endpgm, in the same function (subroutines, data).
  std::string after = {};
  // Metadata of arguments; one buffer pointer when empty.
  std::string arguments = {};
  unsigned max_threads = 1024;
};

// The whole assembly file.
std::string assembly_of(const KernelSource& source);
// A linked code object; fails the test with the assembler's message.
std::vector<std::byte> assemble(const KernelSource& source);

// A kernel loaded on a device of its target. The user SGPRs hold the kernarg pointer in s[0:1] and then the
// workgroup's x, y, z in s2, s3, s4.
class Assembled {
 public:
  explicit Assembled(const KernelSource& source);
  explicit Assembled(const std::string& body) : Assembled(KernelSource{.body = body}) {}

  const Kernel& kernel() const { return *kernel_; }
  Device& device() const { return *device_; }
  // Launches with 64-bit words as arguments.
  Status run(const std::vector<std::uint64_t>& arguments, std::array<std::uint32_t, 3> workgroups = {1, 1, 1},
             std::array<std::uint32_t, 3> workgroup_size = {64, 1, 1}, std::uint32_t dynamic_lds = 0) const;

 private:
  Device* device_ = nullptr;
  std::shared_ptr<Module> module_;
  const Kernel* kernel_ = nullptr;
};

// Device memory with typed access from the host.
template <typename T>
class Buffer {
 public:
  explicit Buffer(std::size_t count, T value = T{}) : count_(count) {
    data_ = static_cast<T*>(DeviceMemory::instance().allocate(count * sizeof(T), MemoryKind::device, 0));
    for (std::size_t i = 0; i < count; ++i) data_[i] = value;
  }
  ~Buffer() { DeviceMemory::instance().free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T& operator[](std::size_t i) { return data_[i]; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }
  std::size_t size() const { return count_; }
  std::vector<T> copy() const { return std::vector<T>(data_, data_ + count_); }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

// The process's settings, put back at the end of the scope.
class ScopedSettings {
 public:
  ScopedSettings();
  ~ScopedSettings();
  ScopedSettings(const ScopedSettings&) = delete;
  ScopedSettings& operator=(const ScopedSettings&) = delete;
  void set(const Settings& settings) const;
  const Settings& before() const { return before_; }

 private:
  Settings before_;
};

}  // namespace wavejit::simgpu::testing
