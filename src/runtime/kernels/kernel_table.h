// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels that are loaded on one device, asked by every call: a shape → its kernels. Readers take no lock and never
// wait: open addressing in an array of atomics that only ever gains entries; when it fills, a larger copy takes its
// place and the old array stays until the table goes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "families/call/family.h"

namespace wavejit::runtime {

struct LoadedKernels;

class KernelTable {
 public:
  KernelTable() { replace(initial_slots); }
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  // Null when it is not there. The shape's code is not 0.
  const LoadedKernels* find(const families::Shape& shape) const noexcept {
    const Slots& slots = *current_.load(std::memory_order_acquire);
    for (std::size_t i = place(shape, slots.mask);; i = (i + 1) & slots.mask) {
      const Slot& slot = slots.array[i];
      // Everything else is written before the code that announces it.
      const std::uint64_t there = slot.code.load(std::memory_order_acquire);
      if (there == shape.code && slot.family.load(std::memory_order_relaxed) == shape.family)
        return slot.kernels.load(std::memory_order_relaxed);
      if (there == 0) return nullptr;
    }
  }

  // Writers take turns (the caller's lock). `shape` is not in the table; the kernels live as long as the table.
  void insert(const families::Shape& shape, const LoadedKernels* kernels) {
    if (2 * (count_ + 1) > current_.load(std::memory_order_relaxed)->mask + 1) grow();
    put(*current_.load(std::memory_order_relaxed), shape, kernels);
    ++count_;
  }

 private:
  static constexpr std::size_t initial_slots = 64;

  struct Slot {
    std::atomic<std::uint64_t> code{0};
    std::atomic<const families::Family*> family{nullptr};
    std::atomic<const LoadedKernels*> kernels{nullptr};
  };
  struct Slots {
    explicit Slots(std::size_t size) : mask(size - 1), array(std::make_unique<Slot[]>(size)) {}
    std::size_t mask;
    std::unique_ptr<Slot[]> array;
  };

  // Fibonacci hashing: 2⁶⁴ / golden ratio spreads codes that differ in few bits.
  static std::size_t place(const families::Shape& shape, std::size_t mask) {
    return static_cast<std::size_t>((shape.code * 0x9E3779B97F4A7C15ULL) >> 40U) & mask;
  }

  static void put(Slots& slots, const families::Shape& shape, const LoadedKernels* kernels) {
    std::size_t i = place(shape, slots.mask);
    while (slots.array[i].code.load(std::memory_order_relaxed) != 0) i = (i + 1) & slots.mask;
    slots.array[i].family.store(shape.family, std::memory_order_relaxed);
    slots.array[i].kernels.store(kernels, std::memory_order_relaxed);
    slots.array[i].code.store(shape.code, std::memory_order_release);
  }

  void replace(std::size_t size) {
    all_.push_back(std::make_unique<Slots>(size));
    current_.store(all_.back().get(), std::memory_order_release);
  }

  void grow() {
    const Slots& old = *all_.back();
    auto larger = std::make_unique<Slots>(2 * (old.mask + 1));
    for (std::size_t i = 0; i <= old.mask; ++i) {
      const Slot& slot = old.array[i];
      const std::uint64_t code = slot.code.load(std::memory_order_relaxed);
      if (code == 0) continue;
      put(*larger, {.family = slot.family.load(std::memory_order_relaxed), .code = code},
          slot.kernels.load(std::memory_order_relaxed));
    }
    all_.push_back(std::move(larger));
    current_.store(all_.back().get(), std::memory_order_release);
  }

  std::atomic<Slots*> current_{nullptr};
  std::vector<std::unique_ptr<Slots>> all_;  // the last is the current one
  std::size_t count_ = 0;
};

}  // namespace wavejit::runtime
