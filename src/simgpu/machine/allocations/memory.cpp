// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/allocations/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <format>

#include "simgpu/machine/allocations/defined_memory.h"
#include "simgpu/machine/numerics/noise.h"
#include "simgpu/process/check.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu {
namespace {

constexpr std::uint64_t page = 4096;
// Between neighbours, so that overruns land in no other allocation: much where the arena has room for very many of
// them.
constexpr std::uint64_t least_gap = 2 * page;
constexpr std::uint64_t most_gap = std::uint64_t{16} << 20;
constexpr std::uint64_t allocations_expected = std::uint64_t{1} << 18;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// The rest of the last page, which nobody asked for, holds what never is what anybody hopes for.
void fill_behind(const Allocation& allocation) {
  const std::uint64_t rest = allocation.readable - allocation.bytes;
  std::array<std::uint32_t, page / sizeof(std::uint32_t)> noise;
  fill_noise(noise.data(), noise.size(), mix(allocation.bytes));
  std::memcpy(host_pointer(allocation.base + allocation.bytes), noise.data(), rest);
}

}  // namespace

const Allocation* MemoryView::last_before(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(allocations_, address, {}, &Allocation::base);
  return after == allocations_.begin() ? nullptr : &*std::prev(after);
}

const Allocation* MemoryView::find(std::uint64_t address) const {
  const Allocation* candidate = last_before(address);
  return candidate != nullptr && candidate->holds(address, 1) ? candidate : nullptr;
}

const Allocation* MemoryView::find_readable(std::uint64_t address) const {
  const Allocation* candidate = last_before(address);
  return candidate != nullptr && candidate->lets_read(address, 1) ? candidate : nullptr;
}

std::string MemoryView::describe(std::uint64_t address) const {
  const Allocation* nearest = nullptr;
  std::uint64_t distance = ~std::uint64_t{0};
  bool behind = false;
  for (const Allocation& allocation : allocations_) {
    if (address - allocation.base < allocation.bytes) {
      return std::format("{} bytes into the allocation [{:#x}, {:#x})", address - allocation.base, allocation.base,
                         allocation.end());
    }
    const bool is_behind = address >= allocation.end();
    const std::uint64_t away = is_behind ? address - allocation.end() : allocation.base - address;
    if (away >= distance) continue;
    distance = away;
    behind = is_behind;
    nearest = &allocation;
  }
  if (nearest == nullptr) return "no allocation exists";
  return std::format("{} bytes {} the nearest allocation [{:#x}, {:#x}) of {} bytes", distance,
                     behind ? "behind the end of" : "before", nearest->base, nearest->end(), nearest->bytes);
}

DeviceMemory& DeviceMemory::instance() {
  // Never destroyed: HIP programs free memory from static destructors.
  static auto* const memory = new DeviceMemory();
  return *memory;
}

DeviceMemory::DeviceMemory() {
  Process::instance().listen(
      [](const Settings& settings) { instance().follow_definedness(includes(settings.checks, Check::uninitialised)); });
  follows_ = includes(Process::instance().settings().checks, Check::uninitialised);
  // As much address space as the host gives; pages cost nothing until they are touched.
  for (std::uint64_t bytes = std::uint64_t{1} << 42; bytes >= std::uint64_t{1} << 30; bytes /= 2) {
    void* range = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) continue;
    // A kernel that touches one element a page must not cost a huge page each.
    static_cast<void>(madvise(range, bytes, MADV_NOHUGEPAGE));
    static_cast<void>(madvise(range, bytes, MADV_DONTDUMP));
    // Aligned, so that the low bits of all addresses are equal on every run: the clock's caches choose sets by them.
    const auto first = reinterpret_cast<std::uint64_t>(range);
    arena_ = round_up(first, bytes / 4);
    arena_bytes_ = first + bytes - arena_;
    gap_ = round_up(std::clamp(bytes / allocations_expected, least_gap, most_gap), page);
    holes_.emplace_back(arena_ + gap_, arena_bytes_ - gap_);
    break;
  }
  changed();
}

std::uint64_t DeviceMemory::take(std::uint64_t bytes, std::uint64_t alignment) {
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const std::uint64_t start = round_up(hole->first, alignment);
    const std::uint64_t skipped = start - hole->first;
    if (hole->second < skipped || hole->second - skipped < bytes) continue;
    const std::uint64_t rest = hole->second - skipped - bytes;
    if (skipped != 0) {
      hole->second = skipped;
      if (rest != 0) holes_.emplace(std::next(hole), start + bytes, rest);
    } else if (rest != 0) {
      *hole = {start + bytes, rest};
    } else {
      holes_.erase(hole);
    }
    return start;
  }
  return 0;
}

void* DeviceMemory::allocate(std::size_t bytes, MemoryKind kind, int device, std::size_t alignment) {
  const std::scoped_lock lock(mutex_);
  if (bytes > arena_bytes_) return nullptr;
  const std::uint64_t pages = round_up(std::max<std::uint64_t>(bytes, 1), page);
  Allocation allocation{.bytes = bytes, .device = device, .kind = kind, .serial = ++allocations_made_};
  for (const std::uint64_t gap : {gap_, least_gap}) {
    allocation.reserved = pages + gap;
    allocation.base = take(allocation.reserved, std::max<std::uint64_t>(page, alignment));
    if (allocation.base != 0) break;
  }
  if (allocation.base == 0) return nullptr;
  const bool hip_made_it = kind == MemoryKind::device || kind == MemoryKind::managed || kind == MemoryKind::host_pinned;
  if (hip_made_it && bytes != 0) {
    allocation.readable = pages;
    fill_behind(allocation);
  }
  if (follows_ && kind == MemoryKind::device) {
    // What lies behind the size is never written.
    allocation.defined = make_defined_bits(pages);
    if (allocation.defined != nullptr) bits_.emplace_back(allocation.base, allocation.defined);
  }
  table_.insert(std::ranges::upper_bound(table_, allocation.base, {}, &Allocation::base), allocation);
  changed();
  return host_pointer(allocation.base);
}

bool DeviceMemory::free(void* pointer) {
  const std::scoped_lock lock(mutex_);
  const auto base = reinterpret_cast<std::uint64_t>(pointer);
  const auto found = std::ranges::lower_bound(table_, base, {}, &Allocation::base);
  if (found == table_.end() || found->base != base || base - arena_ >= arena_bytes_) return false;
  const std::uint64_t bytes = round_up(std::max<std::uint64_t>(found->bytes, 1), page);
  const std::uint64_t reserved = found->reserved;
  if (const auto bits = std::ranges::find(bits_, base, &std::pair<std::uint64_t, std::uint8_t*>::first);
      bits != bits_.end()) {
    free_defined_bits(bits->second, bytes);
    bits_.erase(bits);
  }
  table_.erase(found);
  static_cast<void>(madvise(pointer, bytes, MADV_DONTNEED));
  auto next = std::ranges::lower_bound(holes_, base, {}, [](const auto& hole) { return hole.first; });
  next = holes_.emplace(next, base, reserved);
  // Join neighbours.
  if (const auto after = std::next(next); after != holes_.end() && next->first + next->second == after->first) {
    next->second += after->second;
    holes_.erase(after);
  }
  if (next != holes_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == next->first) {
      before->second += next->second;
      holes_.erase(next);
    }
  }
  changed();
  return true;
}

bool DeviceMemory::adopt(void* pointer, std::size_t bytes, MemoryKind kind, int device) {
  const std::scoped_lock lock(mutex_);
  const auto base = reinterpret_cast<std::uint64_t>(pointer);
  if (pointer == nullptr || bytes == 0 || base + bytes < base) return false;
  const auto place = std::ranges::upper_bound(table_, base, {}, &Allocation::base);
  if (place != table_.end() && place->base < base + bytes) return false;
  if (place != table_.begin() && std::prev(place)->end() > base) return false;
  table_.insert(
      place, Allocation{.base = base, .bytes = bytes, .device = device, .kind = kind, .serial = ++allocations_made_});
  changed();
  return true;
}

bool DeviceMemory::forget(void* pointer) {
  const std::scoped_lock lock(mutex_);
  const auto base = reinterpret_cast<std::uint64_t>(pointer);
  const auto found = std::ranges::lower_bound(table_, base, {}, &Allocation::base);
  if (found == table_.end() || found->base != base || base - arena_ < arena_bytes_) return false;
  table_.erase(found);
  changed();
  return true;
}

Allocation DeviceMemory::lookup(const void* pointer) const {
  const std::scoped_lock lock(mutex_);
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const auto after = std::ranges::upper_bound(table_, address, {}, &Allocation::base);
  if (after == table_.begin()) return {};
  const Allocation& candidate = *std::prev(after);
  // The start of an empty allocation is still that allocation.
  return address - candidate.base < std::max<std::uint64_t>(candidate.bytes, 1) ? candidate : Allocation{};
}

Allocation DeviceMemory::reachable(const void* pointer) const {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const Allocation known = lookup(pointer);
  const FindHostMemory find_host_memory = find_host_;
  return known.holds(address, 1) || find_host_memory == nullptr ? known : find_host_memory(address);
}

void DeviceMemory::follow_definedness(bool on) {
  const std::scoped_lock lock(mutex_);
  if (follows_ == on) return;
  follows_ = on;
  if (on || bits_.empty()) return;
  // Kernels write without saying so from here on. The bits stay until their allocation goes: a launch may be reading.
  for (Allocation& allocation : table_) allocation.defined = nullptr;
  changed();
}

void DeviceMemory::define(const void* pointer, std::uint64_t bytes) {
  if (!follows_) return;
  const Allocation allocation = lookup(pointer);
  if (allocation.defined == nullptr) return;
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(pointer) - allocation.base;
  define_bytes(allocation.defined, offset, std::min(bytes, allocation.bytes - offset));
}

void DeviceMemory::define_copy(const void* to, const void* from, std::uint64_t bytes) {
  if (!follows_) return;
  const Allocation target = lookup(to);
  if (target.defined == nullptr) return;
  const Allocation source = lookup(from);
  if (source.defined == nullptr) return define(to, bytes);
  const std::uint64_t to_offset = reinterpret_cast<std::uint64_t>(to) - target.base;
  const std::uint64_t from_offset = reinterpret_cast<std::uint64_t>(from) - source.base;
  copy_defined(target.defined, to_offset, source.defined, from_offset,
               std::min({bytes, target.bytes - to_offset, source.bytes - from_offset}));
}

std::uint64_t DeviceMemory::allocated_bytes(int device) const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t total = 0;
  for (const Allocation& allocation : table_) {
    if (allocation.device == device && allocation.kind == MemoryKind::device) total += allocation.bytes;
  }
  return total;
}

std::shared_ptr<const MemoryView> DeviceMemory::view() const {
  const std::scoped_lock lock(mutex_);
  if (view_ == nullptr) view_ = std::make_shared<const MemoryView>(table_, version_);
  return view_;
}

void DeviceMemory::changed() {
  view_.reset();
  version_.fetch_add(1, std::memory_order_release);
}

}  // namespace wavejit::simgpu
