// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copy engines' packets as AMD's runtime writes them, and a queue to put them into.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "simgpu/front_ends/queues/sdma_queue.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::testing {

using Words = std::vector<std::uint32_t>;

inline std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
inline std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

inline Words nop_words(std::uint32_t behind) {
  Words words(behind + 1, 0xdeadbeef);
  words[0] = behind << 16;
  return words;
}
inline Words copy_words(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) {
  return {1, bytes - 1, 0, low(from), high(from), low(to), high(to)};
}
// `size` 0, 1, 2: of 1, 2, 4 bytes.
inline Words fill_words(std::uint64_t to, std::uint32_t value, std::uint32_t count, std::uint32_t size = 2) {
  return {11 | (size << 30), low(to), high(to), value, count};
}
inline Words fence_words(std::uint64_t to, std::uint32_t value) { return {5, low(to), high(to), value}; }
inline Words trap_words(std::uint32_t event) { return {6, event}; }
inline Words poll_words(std::uint64_t at, std::uint32_t function, std::uint32_t reference, std::uint32_t mask) {
  return {8 | (function << 28) | (1U << 31), low(at), high(at), reference, mask, 0x0fff0004};
}
// As ROCm 7.2 writes a flush of the host's data path: a poll of a register that is always true.
inline Words flush_words() { return {8, 0, 0x80000000, 0, 0, 0}; }
inline Words atomic_words(std::uint64_t at, std::uint32_t operation, std::uint64_t operand, std::uint64_t compare = 0,
                          bool loops = false) {
  return {10 | (loops ? 1U << 16 : 0) | (operation << 25),
          low(at),
          high(at),
          low(operand),
          high(operand),
          low(compare),
          high(compare),
          0};
}
inline constexpr std::uint32_t add64 = 47;
inline Words decrement_words(std::uint64_t at) { return atomic_words(at, add64, ~std::uint64_t{0}); }
inline Words timestamp_words(std::uint64_t to, std::uint32_t kind = 2) { return {13 | (kind << 8), low(to), high(to)}; }
inline Words cache_words() { return {17, 0, 0, 0, 0}; }

// Pinned memory of the host. Zero at first.
class Bytes {
 public:
  explicit Bytes(std::uint64_t count)
      : count_(count),
        data_(static_cast<std::uint8_t*>(DeviceMemory::instance().allocate(count, MemoryKind::host_pinned, 0))) {}
  ~Bytes() { DeviceMemory::instance().free(data_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::uint64_t address(std::uint64_t offset = 0) const { return reinterpret_cast<std::uint64_t>(data_) + offset; }
  std::uint64_t count() const { return count_; }
  std::uint8_t& operator[](std::uint64_t i) { return data_[i]; }
  // A byte's place in a pattern that does not repeat soon.
  void number(std::uint32_t seed) {
    for (std::uint64_t i = 0; i < count_; ++i) data_[i] = static_cast<std::uint8_t>(((i + seed) * 2654435761U) >> 13);
  }
  template <typename Value>
  std::atomic_ref<Value> at(std::uint64_t offset) {
    return std::atomic_ref(*host_pointer<Value>(address(offset)));
  }

 private:
  std::uint64_t count_;
  std::uint8_t* data_;
};

class SdmaRing {
 public:
  explicit SdmaRing(const boards::SdmaPackets& layout, std::uint64_t bytes = 4096, QueueConfig config = {},
                    queues::RaiseEvent raise = nullptr)
      : ring_(bytes) {
    queue_ = std::make_unique<queues::SdmaQueue>(queues::SdmaPlace{.ring = ring_.address(),
                                                                   .bytes = bytes,
                                                                   .read_pointer = pointers_.address(0),
                                                                   .write_pointer = pointers_.address(8),
                                                                   .layout = layout,
                                                                   .config = config,
                                                                   .stopped = [this] { stopped_ = true; }},
                                                 raise);
  }

  // Around the ring's end where they reach it.
  void push(const Words& words) {
    std::uint64_t write = written();
    for (const std::uint32_t word : words) {
      std::memcpy(&ring_[write % ring_.count()], &word, sizeof word);
      write += sizeof word;
    }
    set_write_pointer(write);
  }
  void set_write_pointer(std::uint64_t write) {
    pointers_.at<std::uint64_t>(8).store(write);
    queue_->ring_doorbell();
  }
  std::uint64_t written() { return pointers_.at<std::uint64_t>(8).load(); }
  std::uint64_t read() { return pointers_.at<std::uint64_t>(0).load(); }
  bool has_stopped() const { return stopped_; }
  queues::SdmaQueue& queue() { return *queue_; }
  // Up to ten seconds.
  bool runs_until_read() {
    return happens([&] { return read() == written(); });
  }
  bool stops() {
    return happens([&] { return has_stopped(); });
  }
  template <typename IsTrue>
  static bool happens(IsTrue is_true) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!is_true() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    return is_true();
  }

 private:
  Bytes ring_;
  Bytes pointers_{16};
  std::atomic<bool> stopped_ = false;
  std::unique_ptr<queues::SdmaQueue> queue_;
};

}  // namespace wavejit::simgpu::testing
