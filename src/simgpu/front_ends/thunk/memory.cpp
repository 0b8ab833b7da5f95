// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/memory.h"

#include <algorithm>
#include <iterator>

#include "boards/board.h"
#include "simgpu/front_ends/queues/code_map.h"
#include "simgpu/front_ends/thunk/address_space.h"
#include "simgpu/front_ends/thunk/topology.h"
#include "simgpu/front_ends/thunk/virtual_memory.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::thunk {
namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// All device memory can be written by the host at any time (a large BAR), so that nobody can follow which bytes were.
MemoryKind kind_of(std::uint32_t flags, bool on_gpu) {
  if ((flags & flag_scratch) != 0) return MemoryKind::internal;
  if ((flags & flag_execute) != 0) return MemoryKind::code;
  return on_gpu ? MemoryKind::managed : MemoryKind::host_pinned;
}

// As the driver's: ROCr cuts blocks of 2 MiB into small allocations and asserts that they start so.
std::uint64_t alignment_of(std::uint64_t bytes) {
  constexpr std::uint64_t page = 4096;
  constexpr std::uint64_t large_page = std::uint64_t{2} << 20;
  return bytes >= large_page ? large_page : page;
}

}  // namespace

Memory& Memory::instance() {
  // Never destroyed: ROCr frees memory while static destructors run.
  static auto* const memory = new Memory();
  return *memory;
}

KmtStatus Memory::allocate(std::uint32_t node, std::uint64_t bytes, std::uint64_t alignment, std::uint32_t flags,
                           void** address) {
  if (node >= node_count()) return KmtStatus::invalid_node;
  if (address == nullptr || bytes == 0) return KmtStatus::invalid_parameter;
  if ((flags & flag_only_address) != 0) {
    const bool fixed = (flags & flag_fixed_address) != 0;
    if (fixed && *address == nullptr) return KmtStatus::invalid_parameter;
    void* const reserved = VirtualMemory::instance().reserve(bytes, alignment, fixed ? *address : nullptr);
    if (reserved != nullptr) *address = reserved;
    return reserved != nullptr ? KmtStatus::success : KmtStatus::no_memory;
  }
  if ((flags & flag_fixed_address) != 0) return KmtStatus::not_supported;
  Device* const device = device_of(node);
  const bool counts = (flags & flag_scratch) == 0;
  if (device != nullptr && counts && bytes > available(node)) return KmtStatus::no_memory;
  if ((flags & flag_no_address) != 0) {
    *address = VirtualMemory::instance().create(node, bytes);
    return *address != nullptr ? KmtStatus::success : KmtStatus::no_memory;
  }
  const int ordinal = device == nullptr ? 0 : device->ordinal();
  void* const memory = DeviceMemory::instance().allocate(bytes, kind_of(flags, device != nullptr), ordinal,
                                                         std::max(alignment, alignment_of(bytes)));
  if (memory == nullptr) {
    say_no_address_space(bytes);
    return KmtStatus::no_memory;
  }
  {
    const std::scoped_lock lock(mutex_);
    blocks_[address_of(memory)] = {.bytes = bytes, .node = node, .flags = flags};
  }
  // The kernels of ROCr's own copies lie in host memory. All GPUs of a process are of one target.
  Device* const decoder = device != nullptr ? device : device_of(1);
  if ((flags & flag_execute) != 0 && decoder != nullptr) {
    queues::CodeMap::instance().add(address_of(memory), bytes, *decoder);
  }
  *address = memory;
  return KmtStatus::success;
}

KmtStatus Memory::free(void* address) {
  VirtualMemory& virtual_memory = VirtualMemory::instance();
  if (virtual_memory.release(address) || virtual_memory.free_addresses(address)) return KmtStatus::success;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = blocks_.find(address_of(address));
    if (found == blocks_.end() || found->second.is_host) return KmtStatus::invalid_parameter;
    blocks_.erase(found);
  }
  queues::CodeMap::instance().remove(address_of(address));
  return DeviceMemory::instance().free(address) ? KmtStatus::success : KmtStatus::error;
}

std::uint64_t Memory::available(std::uint32_t node) const {
  const Device* device = device_of(node);
  if (device == nullptr) return 0;
  const std::scoped_lock lock(mutex_);
  std::uint64_t used = VirtualMemory::instance().used(node);
  for (const auto& [base, block] : blocks_) {
    if (block.node == node && !block.is_host && (block.flags & flag_scratch) == 0) used += block.bytes;
  }
  const std::uint64_t all = device->target().memory_bytes;
  return all - std::min(all, used);
}

Memory::Blocks::const_iterator Memory::around(std::uint64_t address) const {
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  const auto candidate = std::prev(after);
  return address - candidate->first < candidate->second.bytes ? candidate : blocks_.end();
}

bool Memory::map(void* address, std::span<const std::uint32_t> nodes) {
  const std::scoped_lock lock(mutex_);
  const auto found = around(address_of(address));
  if (found == blocks_.end()) return false;
  blocks_[found->first].mapped.assign(nodes.begin(), nodes.end());
  return true;
}

bool Memory::unmap(void* address) {
  const std::scoped_lock lock(mutex_);
  const auto found = around(address_of(address));
  if (found == blocks_.end()) return false;
  blocks_[found->first].mapped.clear();
  return true;
}

// The device's table holds disjoint ranges: what overlaps is joined.
void Memory::adopt_registered() {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> wanted;
  for (const auto& [start, end] : registered_) {
    if (!wanted.empty() && start <= wanted.back().second) {
      wanted.back().second = std::max(wanted.back().second, end);
    } else {
      wanted.emplace_back(start, end);
    }
  }
  DeviceMemory& memory = DeviceMemory::instance();
  for (const auto& range : adopted_) {
    if (!std::ranges::contains(wanted, range)) memory.forget(host_pointer<void>(range.first));
  }
  for (const auto& range : wanted) {
    if (std::ranges::contains(adopted_, range)) continue;
    memory.adopt(host_pointer<void>(range.first), range.second - range.first, MemoryKind::host_registered, 0);
  }
  adopted_ = std::move(wanted);
}

void Memory::register_host(void* address, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t start = address_of(address);
  const auto known = around(start);
  if (known != blocks_.end() && !known->second.is_host) return;  // allocated here: the GPU has it
  if (const auto same = blocks_.find(start); same != blocks_.end()) {
    ++same->second.times;
    same->second.bytes = std::max(same->second.bytes, bytes);
  } else {
    blocks_[start] = {.bytes = bytes, .is_host = true};
  }
  registered_.emplace(start, start + bytes);
  adopt_registered();
}

bool Memory::deregister_host(void* address) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t start = address_of(address);
  const auto found = blocks_.find(start);
  if (found == blocks_.end()) return around(start) != blocks_.end();
  if (!found->second.is_host) return true;
  if (--found->second.times == 0) blocks_.erase(found);
  const auto range = registered_.lower_bound({start, 0});
  if (range != registered_.end() && range->first == start) registered_.erase(range);
  adopt_registered();
  return true;
}

bool Memory::describe(const void* pointer, PointerInfo& info) const {
  const std::scoped_lock lock(mutex_);
  info = {};
  const auto found = around(address_of(pointer));
  if (found == blocks_.end()) return false;
  const auto& [base, block] = *found;
  info.type = block.is_host ? PointerType::registered_user : PointerType::allocated;
  info.node = block.node;
  info.flags = block.flags;
  info.cpu_address = base;
  info.gpu_address = base;
  info.bytes = block.bytes;
  info.mapped_nodes = static_cast<std::uint32_t>(block.mapped.size());
  info.mapped = block.mapped.data();
  info.user_data = block.user_data;
  return true;
}

bool Memory::set_user_data(const void* pointer, void* user_data) {
  const std::scoped_lock lock(mutex_);
  const auto found = around(address_of(pointer));
  if (found == blocks_.end()) return false;
  blocks_[found->first].user_data = user_data;
  return true;
}

}  // namespace wavejit::simgpu::thunk
