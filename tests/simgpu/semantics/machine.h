// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One wave without a device: assembles text with LLVM, decodes it as the engine does, and executes it.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/wave/wave.h"
#include "tests/simgpu/assembler/assembler.h"

namespace wavejit::simgpu::test {

// Every test names its seed: a failure repeats.
inline std::mt19937_64 random_from(std::uint64_t seed) { return std::mt19937_64(seed); }

class Machine {
 public:
  // `lanes`: the lanes of its wave, if the processor has two kinds; 0: the processor's own.
  explicit Machine(std::string_view processor, unsigned lanes = 0);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Assembles and executes, one instruction after the other. Fails the test and returns false if it cannot.
  bool run(std::string_view text);
  // Decodes only; kept alive by the machine.
  const Instruction* decode(std::string_view text);

  Wave& wave() { return *wave_; }
  std::uint32_t* v(unsigned index) { return wave_->vgpr[index]; }
  void set(unsigned index, std::uint32_t value) {
    for (unsigned lane = 0; lane < lane_places; ++lane) wave_->vgpr[index][lane] = value;
  }
  void set(unsigned index, float value) { set(index, std::bit_cast<std::uint32_t>(value)); }
  void set64(unsigned index, std::uint64_t value) {
    set(index, static_cast<std::uint32_t>(value));
    set(index + 1, static_cast<std::uint32_t>(value >> 32));
  }
  void set64(unsigned index, double value) { set64(index, std::bit_cast<std::uint64_t>(value)); }
  std::uint32_t at(unsigned index, unsigned lane = 0) const { return wave_->vgpr[index][lane]; }
  float float_at(unsigned index, unsigned lane = 0) const { return std::bit_cast<float>(at(index, lane)); }
  std::uint64_t at64(unsigned index, unsigned lane = 0) const {
    return at(index, lane) | (static_cast<std::uint64_t>(at(index + 1, lane)) << 32);
  }
  double double_at(unsigned index, unsigned lane = 0) const { return std::bit_cast<double>(at64(index, lane)); }
  // Fills registers first…first+count-1 with noise.
  void fill_random(unsigned first, unsigned count, std::uint64_t seed);

 private:
  std::string processor_;
  unsigned lanes_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Wave> wave_;
  std::vector<std::unique_ptr<Function>> functions_;
  std::vector<std::unique_ptr<std::vector<std::uint8_t>>> code_;
};

}  // namespace wavejit::simgpu::test
