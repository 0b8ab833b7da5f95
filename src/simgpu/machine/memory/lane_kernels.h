// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses of which all lanes of a wave are known to be good, many lanes at a time: a lane has its words one after the
// other in memory, a register has one word of every lane. Compiled once per host instruction set (CMakeLists.txt).
//
// `registers` is the first of as many rows of words as a lane has words, `base` the place that the unsigned byte
// offsets of all lanes are from. Offsets may stand in one of the registers that are written: a lane's own is read
// before. Places in LDS have any alignment, places in device memory are aligned to four bytes.
#pragma once

#include <cstdint>

#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/host_set.h"

namespace wavejit::simgpu::lanes {

using Row = std::uint32_t[lane_places];

struct Span {
  std::uint32_t lowest = 0;
  std::uint32_t highest = 0;
  std::uint32_t bits = 0;  // of all of them, or-ed
};

struct Kernels {
  Span (*span_of)(const std::uint32_t* offset);
  // Whether no offset is above `last`, which is below 2^31.
  bool (*none_above)(const std::uint32_t* offset, std::uint32_t last);

  void (*read_1)(Row* registers, const std::uint8_t* base, const std::uint32_t* offset);
  void (*read_2)(Row* registers, const std::uint8_t* base, const std::uint32_t* offset);
  void (*read_4)(Row* registers, const std::uint8_t* base, const std::uint32_t* offset);
  // ds_read_b64_tr_b16: in each group of 16 lanes pairs of lanes' 16-bit elements become words.
  void (*read_transposed_halves)(Row* registers, const std::uint8_t* base, const std::uint32_t* offset);
  // If lanes write to the same place, the highest wins.
  void (*write_1)(const Row* registers, std::uint8_t* base, const std::uint32_t* offset);
  void (*write_2)(const Row* registers, std::uint8_t* base, const std::uint32_t* offset);
  void (*write_4)(const Row* registers, std::uint8_t* base, const std::uint32_t* offset);

  void (*load_2)(Row* registers, const std::uint8_t* base, const std::uint32_t* offset);
  void (*load_4)(Row* registers, const std::uint8_t* base, const std::uint32_t* offset);
  // To places that are aligned to four bytes; of lanes that write to the same one the highest wins.
  void (*store_4)(const Row* registers, std::uint8_t* base, const std::uint32_t* offset);
  // Lane after lane, 16 bytes each, to a place of any alignment.
  void (*copy_4)(std::uint8_t* to, const std::uint8_t* base, const std::uint32_t* offset);
};

// The kernels for waves of each size that targets have.
struct KernelsOfSizes {
  Kernels of_64;
  Kernels of_32;
};

#define WAVEJIT_DECLARE_LANE_KERNELS(set)            \
  namespace set {                                    \
  [[gnu::weak]] extern const KernelsOfSizes kernels; \
  }
WAVEJIT_FOR_EACH_HOST_SET(WAVEJIT_DECLARE_LANE_KERNELS);

// Those for this host. Chosen before main, so that nobody has to ask whether they have been.
extern const KernelsOfSizes* const kernels_for_host;
inline const Kernels& kernels(const Wave& wave) {
  return wave.lane_count == lane_places ? kernels_for_host->of_64 : kernels_for_host->of_32;
}

}  // namespace wavejit::simgpu::lanes

namespace wavejit::simgpu {

// All lanes active, and `bytes` at the offset from each one's address inside the workgroup's LDS, where the sum is a
// place without wrapping around.
inline bool all_inside_lds(const Wave& wave, const std::uint32_t* address, std::uint32_t offset, std::uint32_t bytes) {
  if (wave.exec() != wave.all_lanes || std::uint64_t{offset} + bytes > wave.lds_bytes) return false;
  return lanes::kernels(wave).none_above(address, wave.lds_bytes - bytes - offset);
}

}  // namespace wavejit::simgpu
