#pragma once
// Lanes' words and registers: a lane has its words one after the other in memory, a register has one word of every
// lane. Four lanes at a time, for accesses of which all lanes are known to be good.

#include <cstdint>
#include <cstring>

#include "simgpu/memory/device_memory.h"
#include "simgpu/wave/wave.h"

namespace wavejit::simgpu {

using FourWords = uint32_t __attribute__((vector_size(16)));

inline FourWords load_four(const uint8_t* from) {
  FourWords words;
  std::memcpy(&words, from, sizeof(words));
  return words;
}
/// In the lower half; nothing above.
inline FourWords load_two(const uint8_t* from) {
  using Two = uint64_t __attribute__((vector_size(16)));
  uint64_t words = 0;
  std::memcpy(&words, from, sizeof(words));
  return reinterpret_cast<FourWords>(Two{words, 0});
}
inline FourWords load_two_and_two(const uint8_t* first, const uint8_t* second) {
  using Two = uint64_t __attribute__((vector_size(16)));
  uint64_t a = 0;
  uint64_t b = 0;
  std::memcpy(&a, first, sizeof(a));
  std::memcpy(&b, second, sizeof(b));
  return reinterpret_cast<FourWords>(Two{a, b});
}
/// From a place that is aligned to four bytes: two halves where it can be, words elsewhere.
inline FourWords four_from_device(const uint8_t* from) {
  using Two = uint64_t __attribute__((vector_size(16)));
  if (reinterpret_cast<uintptr_t>(from) % sizeof(uint64_t) == 0) {
    return reinterpret_cast<FourWords>(Two{load_aligned<uint64_t>(from), load_aligned<uint64_t>(from + 8)});
  }
  return FourWords{load_aligned<uint32_t>(from), load_aligned<uint32_t>(from + 4), load_aligned<uint32_t>(from + 8),
                   load_aligned<uint32_t>(from + 12)};
}
template <typename Words>
inline void store_words(void* to, Words words) {
  std::memcpy(to, &words, sizeof(words));
}

/// Rows become columns.
inline void transpose(FourWords (&rows)[4]) {
  const FourWords a = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const FourWords b = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const FourWords c = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const FourWords d = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/// All lanes active, and `bytes` at the offset from each one's address inside the workgroup's LDS, where the sum is a
/// place without wrapping around.
inline bool all_inside_lds(const Wave& wave, const uint32_t* address, uint32_t offset, uint32_t bytes) {
  if (wave.exec() != all_lanes || uint64_t{offset} + bytes > wave.lds_bytes) return false;
  const uint32_t last = wave.lds_bytes - bytes - offset;
  // The uppermost bit says it: of an address that is far too large, or of what is left up to the last place.
  uint32_t outside = last;
  for (unsigned lane = 0; lane < wave_lanes; ++lane) outside |= address[lane] | (last - address[lane]);
  return (outside >> 31) == 0;
}

/// Registers `first`… of lanes `lane`…`lane` + 3 from memory: `words` (1, 2 or 4) from each place.
template <unsigned words>
inline void read_four_lanes(Wave& wave, unsigned first, unsigned lane, const uint8_t* const (&from)[4]) {
  if constexpr (words == 4) {
    FourWords rows[4] = {load_four(from[0]), load_four(from[1]), load_four(from[2]), load_four(from[3])};
    transpose(rows);
    for (unsigned i = 0; i < 4; ++i) store_words(&wave.vgpr[first + i][lane], rows[i]);
  } else if constexpr (words == 2) {
    const FourWords a = load_two_and_two(from[0], from[1]);
    const FourWords b = load_two_and_two(from[2], from[3]);
    store_words(&wave.vgpr[first][lane], __builtin_shufflevector(a, b, 0, 2, 4, 6));
    store_words(&wave.vgpr[first + 1][lane], __builtin_shufflevector(a, b, 1, 3, 5, 7));
  } else {
    for (unsigned i = 0; i < 4; ++i) std::memcpy(&wave.vgpr[first][lane + i], from[i], 4);
  }
}

/// The other way. Of lanes that write to the same place the highest wins.
template <unsigned words>
inline void write_four_lanes(const Wave& wave, unsigned first, unsigned lane, uint8_t* const (&to)[4]) {
  if constexpr (words == 4) {
    FourWords rows[4];
    for (unsigned i = 0; i < 4; ++i) std::memcpy(&rows[i], &wave.vgpr[first + i][lane], sizeof(rows[i]));
    transpose(rows);
    for (unsigned i = 0; i < 4; ++i) store_words(to[i], rows[i]);
  } else {
    for (unsigned i = 0; i < 4; ++i) {
      uint32_t lane_words[words];
      for (unsigned word = 0; word < words; ++word) lane_words[word] = wave.vgpr[first + word][lane + i];
      std::memcpy(to[i], lane_words, sizeof(lane_words));
    }
  }
}

}  // namespace wavejit::simgpu
