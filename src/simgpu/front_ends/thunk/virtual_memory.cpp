// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "boards/board.h"
#include "simgpu/front_ends/thunk/topology.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::thunk {
namespace {

constexpr std::uint64_t page = 4096;

int file_in_memory(const char* name, std::uint64_t bytes) {
  const int file = ::memfd_create(name, MFD_CLOEXEC);
  if (file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  if (file >= 0) ::close(file);
  return -1;
}

std::uint64_t inode_of(int file) {
  struct stat status = {};
  return ::fstat(file, &status) == 0 ? status.st_ino : 0;
}

bool map_file(std::uint64_t address, std::uint64_t bytes, int file, std::uint64_t offset) {
  return ::mmap(host_pointer<void>(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                static_cast<off_t>(offset)) != MAP_FAILED;
}

// The addresses stay reserved, without memory.
bool withdraw(std::uint64_t address, std::uint64_t bytes) {
  return ::mmap(host_pointer<void>(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                -1, 0) != MAP_FAILED;
}

}  // namespace

VirtualMemory::Physical::~Physical() {
  if (name >= 0) ::close(name);
  // Its pages go back to the machine.
  static_cast<void>(::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                                static_cast<off_t>(bytes)));
}

VirtualMemory& VirtualMemory::instance() {
  // Never destroyed: ROCr frees memory while static destructors run.
  static auto* const memory = new VirtualMemory();
  return *memory;
}

VirtualMemory::Gpu* VirtualMemory::gpu_of(std::uint32_t node) {
  if (device_of(node) == nullptr) return nullptr;
  std::unique_ptr<Gpu>& gpu = gpus_[node];
  if (gpu == nullptr) {
    gpu = std::make_unique<Gpu>();
    gpu->device.node = node;
    // As long as can be: places in it are used once.
    constexpr std::uint64_t longest = std::uint64_t{1} << 46;
    gpu->device.file = file_in_memory("wavejit simulated GPU memory", longest);
  }
  return gpu.get();
}

DrmDevice* VirtualMemory::device(std::uint32_t node) {
  const std::scoped_lock lock(mutex_);
  Gpu* const gpu = gpu_of(node);
  return gpu == nullptr ? nullptr : &gpu->device;
}

void* VirtualMemory::create(std::uint32_t node, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  Gpu* const gpu = gpu_of(node);
  if (gpu == nullptr || gpu->device.file < 0) return nullptr;
  auto physical = std::make_shared<Physical>();
  physical->name = file_in_memory("wavejit simulated GPU memory's name", 0);
  if (physical->name < 0) return nullptr;
  physical->inode = inode_of(physical->name);
  physical->node = node;
  physical->bytes = bytes;
  physical->offset = gpu->end;
  physical->file = gpu->device.file;
  gpu->end += (bytes + page - 1) / page * page;
  void* const handle = physical.get();
  handles_[handle] = std::move(physical);
  return handle;
}

bool VirtualMemory::release(const void* handle) {
  const std::scoped_lock lock(mutex_);
  return handles_.erase(handle) != 0;
}

std::uint64_t VirtualMemory::used(std::uint32_t node) {
  const std::scoped_lock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [handle, physical] : handles_)
    if (physical->node == node) bytes += physical->bytes;
  return bytes;
}

void* VirtualMemory::reserve(std::uint64_t bytes, std::uint64_t alignment, void* wanted) {
  const std::uint64_t step = std::max(alignment, page);
  const std::uint64_t all = wanted == nullptr ? bytes + step - page : bytes;
  const int place = wanted == nullptr ? 0 : MAP_FIXED_NOREPLACE;
  void* const start = ::mmap(wanted, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | place, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  const auto first = reinterpret_cast<std::uint64_t>(start);
  const std::uint64_t aligned = (first + step - 1) / step * step;
  if (wanted != nullptr && (start != wanted || aligned != first)) {
    ::munmap(start, all);
    return nullptr;
  }
  const std::scoped_lock lock(mutex_);
  reserved_[aligned] = {first, all};
  return host_pointer<void>(aligned);
}

bool VirtualMemory::free_addresses(const void* address) {
  const std::scoped_lock lock(mutex_);
  const auto found = reserved_.find(reinterpret_cast<std::uint64_t>(address));
  if (found == reserved_.end()) return false;
  ::munmap(host_pointer<void>(found->second.first), found->second.second);
  reserved_.erase(found);
  return true;
}

int VirtualMemory::export_file(const void* handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = handles_.find(handle);
  return found == handles_.end() ? -1 : ::fcntl(found->second->name, F_DUPFD_CLOEXEC, 0);
}

std::uint64_t VirtualMemory::import_file(int file) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t inode = inode_of(file);
  const auto found = std::ranges::find_if(handles_, [&](const auto& row) { return row.second->inode == inode; });
  if (inode == 0 || found == handles_.end()) return 0;
  objects_[next_object_] = found->second;
  return next_object_++;
}

bool VirtualMemory::drop(std::uint64_t object) {
  const std::scoped_lock lock(mutex_);
  return objects_.erase(object) != 0;
}

bool VirtualMemory::offset_of(std::uint64_t object, std::uint64_t& offset) {
  const std::scoped_lock lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end()) return false;
  offset = found->second->offset;
  return true;
}

std::uint64_t VirtualMemory::bytes_of(std::uint64_t object) {
  const std::scoped_lock lock(mutex_);
  const auto found = objects_.find(object);
  return found == objects_.end() ? 0 : found->second->bytes;
}

bool VirtualMemory::map(std::uint64_t object, std::uint64_t offset, std::uint64_t bytes, std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  const auto found = objects_.find(object);
  if (found == objects_.end()) return false;
  const Physical& physical = *found->second;
  if (offset > physical.bytes || bytes > physical.bytes - offset) return false;
  const auto known = mappings_.find(address);
  if (known != mappings_.end()) {
    if (known->second.bytes != bytes) return false;
    ++known->second.times;
    return true;
  }
  const Gpu& gpu = *gpus_.at(physical.node);
  // Kernels run in this process: what the host alone may do here changes nothing of what they may.
  if (!map_file(address, bytes, gpu.device.file, physical.offset + offset)) return false;
  const int ordinal = device_of(physical.node)->ordinal();
  if (!DeviceMemory::instance().adopt(host_pointer<void>(address), bytes, MemoryKind::managed, ordinal)) {
    withdraw(address, bytes);
    return false;
  }
  mappings_[address] = {.bytes = bytes, .times = 1};
  return true;
}

bool VirtualMemory::unmap(std::uint64_t address, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = mappings_.find(address);
  if (found == mappings_.end() || found->second.bytes != bytes) return false;
  if (--found->second.times != 0) return true;
  mappings_.erase(found);
  DeviceMemory::instance().forget(host_pointer<void>(address));
  return withdraw(address, bytes);
}

}  // namespace wavejit::simgpu::thunk
