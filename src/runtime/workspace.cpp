#include "runtime/workspace.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace wavejit::runtime {
namespace {

using hip_abi::hipError_t;
using hip_abi::hipSuccess;

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
  const CurrentDevice current(device_.hip, device_.ordinal);
  for (Slot* slot = first_.load(std::memory_order_acquire); slot != nullptr;) {
    if (slot->memory != nullptr) (void)device_.hip.hipFree(slot->memory);
    delete std::exchange(slot, slot->next);
  }
  for (void* memory : outgrown_) (void)device_.hip.hipFree(memory);
}

Workspaces::Loan::~Loan() {
  if (slot_ != nullptr) slot_->lent.store(false, std::memory_order_release);
}

void* Workspaces::Loan::memory() const { return slot_->memory; }

Result<Workspaces::Loan> Workspaces::borrow(hip_abi::hipStream_t stream, std::uint64_t bytes) {
  // One handle names a stream of every thread's own.
  const std::uint64_t thread = stream == hip_abi::stream_per_thread() ? this_thread() : 0;
  const std::uint64_t handle = reinterpret_cast<std::uintptr_t>(stream);
  for (Slot* slot = first_.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    if (slot->stream != handle || slot->thread != thread || slot->lent.exchange(true, std::memory_order_acquire))
      continue;
    Loan loan(slot);
    if (slot->bytes >= bytes) [[likely]]
      return loan;
    if (auto grown = grow(*slot, bytes); !grown) return std::unexpected(std::move(grown.error()));
    return loan;
  }
  Slot* slot = add(handle, thread);
  Loan loan(slot);
  if (auto grown = grow(*slot, bytes); !grown) return std::unexpected(std::move(grown.error()));
  return loan;
}

Workspaces::Slot* Workspaces::add(std::uint64_t stream, std::uint64_t thread) {
  auto slot = std::make_unique<Slot>(stream, thread);
  const std::scoped_lock lock(mutex_);
  slot->next = first_.load(std::memory_order_relaxed);
  first_.store(slot.get(), std::memory_order_release);
  return slot.release();
}

Result<void> Workspaces::grow(Slot& slot, std::uint64_t bytes) {
  const CurrentDevice current(device_.hip, device_.ordinal);
  hipError_t error = current.error();
  void* memory = nullptr;
  // Room to grow first, then what is needed, then what is needed in place of what was outgrown.
  const std::uint64_t roomy = std::max({bytes, 2 * slot.bytes, least_bytes});
  std::uint64_t got = roomy;
  if (error == hipSuccess) error = device_.hip.hipMalloc(&memory, got);
  if (error == hip_abi::hipErrorOutOfMemory && got != bytes) {
    (void)device_.hip.hipGetLastError();  // handled here: the host's next look at HIP's errors must not find it
    got = bytes;
    error = device_.hip.hipMalloc(&memory, got);
  }
  if (error == hip_abi::hipErrorOutOfMemory) {
    (void)device_.hip.hipGetLastError();
    const std::scoped_lock lock(mutex_);
    if (slot.memory != nullptr) outgrown_.push_back(std::exchange(slot.memory, nullptr));
    slot.bytes = 0;
    free_outgrown();
    error = device_.hip.hipMalloc(&memory, got);
  }
  if (error != hipSuccess) {
    const bool full = error == hip_abi::hipErrorOutOfMemory;
    return fail(full ? WAVEJIT_OUT_OF_MEMORY : WAVEJIT_DEVICE_ERROR,
                "splits need a workspace of " + std::to_string(bytes) + " bytes on " + device_.name + ", which has " +
                    std::to_string(device_.memory_bytes) + " in all: " + error_text(device_.hip, error) +
                    "; accepted: fewer splits, or a workspace of the caller's");
  }
  const std::scoped_lock lock(mutex_);
  if (slot.memory != nullptr) outgrown_.push_back(slot.memory);
  slot.memory = memory;
  slot.bytes = got;
  return {};
}

void Workspaces::free_outgrown() {
  if (outgrown_.empty() || device_.hip.hipDeviceSynchronize() != hipSuccess) return;
  for (void* memory : outgrown_) (void)device_.hip.hipFree(memory);
  outgrown_.clear();
}

}  // namespace wavejit::runtime
