// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory: one address range of the process, reserved once and touched lazily, plus a table of what is allocated.
// Device addresses are host addresses, as on a HIP system with unified addressing; every access of a kernel is checked
// against the table, not against what the host's pages would allow.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace wavejit::simgpu {

enum class MemoryKind : std::uint8_t { device, host_pinned, host_registered, managed, code, kernarg, internal };

// Device addresses are host addresses; this is where one becomes the other.
template <typename T = std::uint8_t>
inline T* host_pointer(std::uint64_t address) {
  return std::bit_cast<T*>(address);
}

struct Allocation {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;     // as asked for
  std::uint64_t readable = 0;  // bytes, the rest of the last page included; 0: just those asked for
  std::uint64_t reserved = 0;  // bytes of the arena, the gap behind it included
  int device = 0;
  MemoryKind kind = MemoryKind::device;
  bool writable = true;
  std::uint64_t serial = 0;         // no other one that DeviceMemory made or adopted has it; 0: neither
  std::uint8_t* defined = nullptr;  // a bit a byte that was written (checks/defined_memory.h); null: not followed

  std::uint64_t end() const { return base + bytes; }
  bool holds(std::uint64_t address, std::uint64_t size) const {
    return address - base < bytes && bytes - (address - base) >= size;
  }
  // Whether memory may be read beyond the size that was asked for: HIP hands out whole pages, and loads that a compiler
  // widens may reach into the rest of one.
  bool lets_read(std::uint64_t address, std::uint64_t size) const {
    return address - base < readable && readable - (address - base) >= size;
  }
};

// The host's memory around an address, for GPUs that reach all of it; 0 bytes: there is none.
using FindHostMemory = Allocation (*)(std::uint64_t address);

// What was allocated at one moment, sorted by address. Immutable: launches keep one while they run, and look at a later
// one where it does not have an address.
class MemoryView {
 public:
  MemoryView(std::vector<Allocation> allocations, std::uint64_t version)
      : allocations_(std::move(allocations)), version_(version) {}
  // The allocation that `address` lies in, or null.
  const Allocation* find(std::uint64_t address) const;
  // The one that lets this place be read, or null.
  const Allocation* find_readable(std::uint64_t address) const;
  // "inside/behind/before the allocation [base, end) of n bytes": for reports.
  std::string describe(std::uint64_t address) const;
  std::span<const Allocation> allocations() const { return allocations_; }
  // The version of DeviceMemory when this table was taken.
  std::uint64_t version() const { return version_; }

 private:
  const Allocation* last_before(std::uint64_t address) const;

  std::vector<Allocation> allocations_;
  std::uint64_t version_;
};

class DeviceMemory {
 public:
  // The one of this process (HIP has one address space for all devices). Made at the first call, with the checks that
  // the process has then: what is allocated before the first launch is followed as well.
  static DeviceMemory& instance();

  // Zero bytes are allowed and give an address that nothing may be read from. Null when the range is used up.
  // Fresh memory reads as zero (the pages of the host), and as noise from there to the end of the page; what is freed
  // is forgotten. Megabytes lie between neighbours, so that an overrun lands nowhere; they are address space alone.
  void* allocate(std::size_t bytes, MemoryKind kind, int device, std::size_t alignment = 256);
  // False when `pointer` is not the start of an allocation made by `allocate`.
  bool free(void* pointer);

  // Host memory that belongs to the program (hipHostRegister). False when it overlaps something known.
  bool adopt(void* pointer, std::size_t bytes, MemoryKind kind, int device);
  bool forget(void* pointer);

  // Kernels also get what the table does not have and `find` has. Null: they do not, which is how it begins.
  void reach_host(FindHostMemory find) { find_host_ = find; }
  FindHostMemory host_finder() const { return find_host_; }

  // The allocation that holds `pointer`; `base` of 0 when there is none.
  Allocation lookup(const void* pointer) const;
  // Likewise, or the host's memory around it where GPUs reach all of it.
  Allocation reachable(const void* pointer) const;
  // Whether allocations of device memory from now on are followed byte by byte. Switching it off forgets what is
  // known.
  void follow_definedness(bool on);
  // The host wrote a range.
  void define(const void* pointer, std::uint64_t bytes);
  // The host copied a range: what held nothing still does.
  void define_copy(const void* to, const void* from, std::uint64_t bytes);

  std::uint64_t allocated_bytes(int device) const;
  // Address space that was reserved for all allocations together; less than wanted where the process is limited.
  std::uint64_t reserved_bytes() const { return arena_bytes_; }
  std::shared_ptr<const MemoryView> view() const;
  // Another one whenever something was allocated or freed; takes no lock.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

 private:
  DeviceMemory();
  ~DeviceMemory() = default;
  void changed();
  // The start of a free range, or 0.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment);

  mutable std::mutex mutex_;
  std::vector<Allocation> table_;                              // sorted by base
  std::vector<std::pair<std::uint64_t, std::uint8_t*>> bits_;  // base of an allocation, its defined bits
  std::uint64_t allocations_made_ = 0;
  std::atomic<std::uint64_t> version_{0};
  std::atomic<bool> follows_{false};
  std::atomic<FindHostMemory> find_host_{nullptr};
  mutable std::shared_ptr<const MemoryView> view_;
  std::uint64_t arena_ = 0;
  std::uint64_t arena_bytes_ = 0;
  std::uint64_t gap_ = 0;                                       // between neighbours, while there is room
  std::vector<std::pair<std::uint64_t, std::uint64_t>> holes_;  // free ranges of the arena: base, bytes; sorted
};

}  // namespace wavejit::simgpu
