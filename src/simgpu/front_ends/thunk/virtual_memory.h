// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The virtual-memory interface (hipMemAddressReserve, hipMemCreate, hipMemMap …): memory without an address, addresses
// without memory, and one mapped into the other. ROCr maps the host's view itself, from a file of the GPU at an offset:
// each GPU's memory of this kind is a file in memory, without a name and as sparse as what was touched of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "simgpu/front_ends/thunk/abi.h"

namespace wavejit::simgpu::thunk {

// What hsaKmtGetAMDGPUDeviceHandle names: libdrm's amdgpu_device, as far as its own amdgpu_device_get_fd reads it.
struct DrmDevice {
  std::uint64_t references = 1;
  void* next = nullptr;
  std::int32_t file = -1;
  std::uint32_t node = 0;
};
static_assert(offsetof(DrmDevice, file) == 16);

// Thread-safe.
class VirtualMemory {
 public:
  static VirtualMemory& instance();

  // The device of a GPU's node; null for others.
  DrmDevice* device(std::uint32_t node);

  // Memory without an address. The handle is no address; null: no room. Its pages are the file's until it is released
  // and nothing that was imported from it is left.
  void* create(std::uint32_t node, std::uint64_t bytes);
  // False when it is no such handle.
  bool release(const void* handle);
  std::uint64_t used(std::uint32_t node);

  // Addresses without memory; at `wanted` when that is not null. Null: not there, or none are left.
  void* reserve(std::uint64_t bytes, std::uint64_t alignment, void* wanted);
  bool free_addresses(const void* address);

  // A file that names the memory, to be closed by the caller; −1: no such handle, or no files are left.
  int export_file(const void* handle);
  // An object for the memory that a file names, until it is dropped; 0: no file of this process's memory.
  std::uint64_t import_file(int file);
  bool drop(std::uint64_t object);
  // Where it lies in its GPU's file.
  bool offset_of(std::uint64_t object, std::uint64_t& offset);
  std::uint64_t bytes_of(std::uint64_t object);

  // GPUs reach the memory at `address`, and so does the host, which runs their kernels. As often as GPUs ask.
  bool map(std::uint64_t object, std::uint64_t offset, std::uint64_t bytes, std::uint64_t address);
  bool unmap(std::uint64_t address, std::uint64_t bytes);

 private:
  struct Physical {
    std::uint32_t node = 0;
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  // in its GPU's file
    int file = -1;             // that
    std::uint64_t inode = 0;   // of the file that names it
    int name = -1;
    Physical() = default;
    ~Physical();
    Physical(const Physical&) = delete;
    Physical& operator=(const Physical&) = delete;
  };
  struct Gpu {
    DrmDevice device;
    std::uint64_t end = 0;  // of what was handed out of the file; addresses in it are never used again
  };
  struct Mapping {
    std::uint64_t bytes = 0;
    int times = 0;
  };
  Gpu* gpu_of(std::uint32_t node);  // called with the lock

  std::mutex mutex_;
  std::map<std::uint32_t, std::unique_ptr<Gpu>> gpus_;          // by node
  std::map<const void*, std::shared_ptr<Physical>> handles_;    // by the object's place
  std::map<std::uint64_t, std::shared_ptr<Physical>> objects_;  // by number
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>>
      reserved_;                               // address: start and bytes of what is kept
  std::map<std::uint64_t, Mapping> mappings_;  // by address
  std::uint64_t next_object_ = 1;
};

}  // namespace wavejit::simgpu::thunk
