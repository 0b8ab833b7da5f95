// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/workspace.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace wavejit::runtime {
namespace {

// A guess: small problems then share one size and never grow.
constexpr std::uint64_t least_bytes = std::uint64_t{1} << 20;

// A number that no other thread ever has.
std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace

Workspaces::~Workspaces() {
  for (Slot* slot = first_.load(std::memory_order_acquire); slot != nullptr;) {
    allocator_.release(slot->memory, slot->bytes, slot->stream);
    delete std::exchange(slot, slot->next);
  }
  for (const Outgrown& old : outgrown_) allocator_.release(old.memory, old.bytes, old.stream);
}

Workspaces::Loan::~Loan() {
  if (slot_ != nullptr) slot_->lent.store(false, std::memory_order_release);
}

void* Workspaces::Loan::memory() const { return slot_->memory; }
void* Workspaces::Loan::counters() const { return slot_->counters; }

Result<Workspaces::Loan> Workspaces::borrow(hip_abi::hipStream_t stream, std::uint64_t bytes, std::uint32_t counters) {
  if (counters != 0 && counters_.is_low()) [[unlikely]]
    counters_.reserve();
  // One handle names a stream of every thread's own.
  const std::uint64_t thread = stream == hip_abi::stream_per_thread() ? this_thread() : 0;
  for (Slot* slot = first_.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    if (slot->stream != stream || slot->thread != thread || slot->lent.exchange(true, std::memory_order_acquire))
      continue;
    Loan loan(slot);
    if (slot->bytes >= bytes && slot->counter_count >= counters) [[likely]]
      return loan;
    if (auto grown = grow(*slot, bytes, counters); !grown) return std::unexpected(std::move(grown.error()));
    return loan;
  }
  Slot* slot = add(stream, thread);
  Loan loan(slot);
  if (auto grown = grow(*slot, bytes, counters); !grown) return std::unexpected(std::move(grown.error()));
  return loan;
}

Workspaces::Slot* Workspaces::add(hip_abi::hipStream_t stream, std::uint64_t thread) {
  auto slot = std::make_unique<Slot>(stream, thread);
  const std::scoped_lock lock(mutex_);
  slot->next = first_.load(std::memory_order_relaxed);
  first_.store(slot.get(), std::memory_order_release);
  return slot.release();
}

Result<void> Workspaces::grow(Slot& slot, std::uint64_t bytes, std::uint32_t counters) {
  if (slot.counter_count < counters) {
    const std::uint32_t count = std::max({counters, 2 * slot.counter_count, ArrivalCounters::least});
    auto made = counters_.make(count, slot.stream);
    if (!made) return std::unexpected(std::move(made.error()));
    slot.counters = *made;
    slot.counter_count = count;
  }
  return slot.bytes < bytes ? grow_memory(slot, bytes) : Result<void>();
}

Result<void> Workspaces::grow_memory(Slot& slot, std::uint64_t bytes) {
  const hip_abi::hipStream_t stream = slot.stream;
  const auto full = [](const Result<void*>& memory) {
    return !memory && memory.error().status == WAVEJIT_OUT_OF_MEMORY;
  };
  // Room to grow first, then what is needed, then what is needed in place of what was outgrown. HIP's error of an
  // attempt is handled here: the host's next look at HIP's errors must not find it.
  const std::uint64_t roomy = std::max({bytes, 2 * slot.bytes, least_bytes});
  std::uint64_t got = roomy;
  Result<void*> memory = allocator_.allocate(got, stream);
  if (full(memory) && got != bytes) {
    (void)device_.hip.hipGetLastError();
    got = bytes;
    memory = allocator_.allocate(got, stream);
  }
  if (full(memory)) {
    (void)device_.hip.hipGetLastError();
    outgrow(slot);
    (void)free_outgrown();
    memory = allocator_.allocate(got, stream);
  }
  if (!memory) {
    return fail(memory.error().status, "splits need a workspace of " + std::to_string(bytes) + " bytes on " +
                                           device_.name + ", which has " + std::to_string(device_.memory_bytes) +
                                           " in all: " + memory.error().detail +
                                           "; accepted: fewer splits, or a workspace of the caller's");
  }
  outgrow(slot);
  slot.memory = *memory;
  slot.bytes = got;
  return {};
}

void Workspaces::outgrow(Slot& slot) {
  if (slot.memory == nullptr) return;
  const std::scoped_lock lock(mutex_);
  outgrown_.push_back({slot.memory, slot.bytes, slot.stream});
  slot.memory = nullptr;
  slot.bytes = 0;
}

hip_abi::hipError_t Workspaces::free_outgrown() {
  std::vector<Outgrown> all;
  {
    const std::scoped_lock lock(mutex_);
    all.swap(outgrown_);
  }
  if (all.empty()) return hip_abi::hipSuccess;
  const CurrentDevice current(device_.hip, device_.ordinal);
  hip_abi::hipError_t error = current.error();
  if (error == hip_abi::hipSuccess) error = device_.hip.hipDeviceSynchronize();
  if (error == hip_abi::hipSuccess) {
    for (const Outgrown& old : all) allocator_.release(old.memory, old.bytes, old.stream);
    return error;
  }
  const std::scoped_lock lock(mutex_);
  outgrown_.insert(outgrown_.end(), all.begin(), all.end());
  return error;
}

hip_abi::hipError_t Workspaces::trim() {
  for (Slot* slot = first_.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    if (slot->lent.exchange(true, std::memory_order_acquire)) continue;
    const Loan loan(slot);
    outgrow(*slot);
  }
  return free_outgrown();
}

}  // namespace wavejit::runtime
