// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory that is noise wherever a test has put nothing: what a kernel reads beside its operands poisons its
// answer, and what it writes beside its results shows.
//
//   NoiseMemory lse(engine, rows * sizeof(float));
//   lse.in();
//   …the call, with lse.data()
//   lse.out();
//   for (std::size_t row = 0; row < rows; ++row) values.push_back(lse.take<float>(row * sizeof(float)));
//   EXPECT_TRUE(lse.is_noise());  // nothing else was written: not before, behind or between the elements
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "wavejit/wavejit.h"

namespace wavejit::tests {

class NoiseMemory {
 public:
  // NaN of every floating type, an index that no list has, and what no answer is.
  static constexpr std::uint8_t noise = 0xFF;

  // `bytes` between two fences, all of it noise on the host; in() takes it to the device.
  NoiseMemory(wavejit_engine* engine, std::size_t bytes) : engine_(engine), host_(bytes + (2 * fence), noise) {
    require(wavejit_device_allocate(engine, host_.size(), &device_));
  }
  ~NoiseMemory() { wavejit_device_free(engine_, device_); }
  NoiseMemory(const NoiseMemory&) = delete;
  NoiseMemory& operator=(const NoiseMemory&) = delete;

  void* data() const { return static_cast<std::uint8_t*>(device_) + fence; }
  std::span<std::uint8_t> inside() { return std::span(host_).subspan(fence, host_.size() - (2 * fence)); }

  // Elements on the host by their first byte; of a size that is known at run time (at most 4 bytes) as bits.
  template <typename Element>
  void put(std::size_t byte, Element value) {
    std::memcpy(&host_[fence + byte], &value, sizeof value);
  }
  void put_bits(std::size_t byte, std::size_t bytes, std::uint32_t bits) {
    std::memcpy(&host_[fence + byte], &bits, bytes);
  }
  // Takes an element out: its place is noise again.
  template <typename Element>
  Element take(std::size_t byte) {
    Element value{};
    std::memcpy(&value, &host_[fence + byte], sizeof value);
    std::memset(&host_[fence + byte], noise, sizeof value);
    return value;
  }
  std::uint32_t take_bits(std::size_t byte, std::size_t bytes) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &host_[fence + byte], bytes);
    std::memset(&host_[fence + byte], noise, bytes);
    return bits;
  }
  // All elements, which stay in place.
  template <typename Element>
  std::vector<Element> elements() {
    std::vector<Element> values(inside().size() / sizeof(Element));
    std::memcpy(values.data(), inside().data(), values.size() * sizeof(Element));
    return values;
  }

  void in() { require(wavejit_device_copy_in(engine_, device_, host_.data(), host_.size())); }
  void out() { require(wavejit_device_copy_out(engine_, host_.data(), device_, host_.size())); }

  bool is_noise() const { return all_noise(host_); }
  bool fence_intact() const {
    const std::span all(host_);
    return all_noise(all.first(fence)) && all_noise(all.last(fence));
  }

 private:
  static constexpr std::size_t fence = 1024;  // bytes before and behind

  static void require(wavejit_status status) {
    if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
  }
  static bool all_noise(std::span<const std::uint8_t> bytes) {
    return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == noise; });
  }

  wavejit_engine* engine_;
  std::vector<std::uint8_t> host_;
  void* device_ = nullptr;
};

// These values on the device, inside such fences; null without any.
template <typename Element>
std::unique_ptr<NoiseMemory> filled(wavejit_engine* engine, const std::vector<Element>& values) {
  if (values.empty()) return nullptr;
  auto memory = std::make_unique<NoiseMemory>(engine, values.size() * sizeof(Element));
  std::memcpy(memory->inside().data(), values.data(), values.size() * sizeof(Element));
  memory->in();
  return memory;
}

}  // namespace wavejit::tests
