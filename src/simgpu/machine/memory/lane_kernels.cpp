// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/memory/lane_kernels.h"

#include "simgpu/machine/memory/device_memory.h"

#ifndef WAVEJIT_HOST_SET
#error "compile this file through simgpu/machine/memory/CMakeLists.txt, which names the host instruction set"
#endif

namespace wavejit::simgpu::lanes {
namespace {

using FourWords = std::uint32_t __attribute__((vector_size(16)));
using EightWords = std::uint32_t __attribute__((vector_size(32)));
using TwoLongs = std::uint64_t __attribute__((vector_size(16)));
using EightHalves = std::uint16_t __attribute__((vector_size(16)));

template <typename T>
[[gnu::always_inline]] inline T load_as(const void* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}
template <typename T>
[[gnu::always_inline]] inline void store_as(void* to, T value) {
  __builtin_memcpy(to, &value, sizeof(value));
}

template <unsigned Lanes>
Span span_of(const std::uint32_t* offset) {
  Span span{.lowest = ~0U, .highest = 0, .bits = 0};
  for (unsigned lane = 0; lane < Lanes; ++lane) {
    span.lowest = offset[lane] < span.lowest ? offset[lane] : span.lowest;
    span.highest = offset[lane] > span.highest ? offset[lane] : span.highest;
    span.bits |= offset[lane];
  }
  return span;
}

template <unsigned Lanes>
bool none_above(const std::uint32_t* offset, std::uint32_t last) {
  // The uppermost bit says it: of an offset that is far too large, or of what is left up to the last place.
  std::uint32_t above = 0;
  for (unsigned lane = 0; lane < Lanes; ++lane) above |= offset[lane] | (last - offset[lane]);
  return (above >> 31) == 0;
}

// --- Eight lanes at a time. What comes from lanes n and n + 4 shares a vector, so that the rest happens within halves.

[[gnu::always_inline]] inline EightWords join(FourWords low, FourWords high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

// Rows of four words become columns, in both halves.
[[gnu::always_inline]] inline void transpose(EightWords (&rows)[4]) {
  const EightWords a = __builtin_shufflevector(rows[0], rows[1], 0, 8, 1, 9, 4, 12, 5, 13);
  const EightWords b = __builtin_shufflevector(rows[2], rows[3], 0, 8, 1, 9, 4, 12, 5, 13);
  const EightWords c = __builtin_shufflevector(rows[0], rows[1], 2, 10, 3, 11, 6, 14, 7, 15);
  const EightWords d = __builtin_shufflevector(rows[2], rows[3], 2, 10, 3, 11, 6, 14, 7, 15);
  rows[0] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
  rows[1] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  rows[2] = __builtin_shufflevector(c, d, 0, 1, 8, 9, 4, 5, 12, 13);
  rows[3] = __builtin_shufflevector(c, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

template <unsigned Lanes, typename Fetch>
[[gnu::always_inline]] inline void four_words_of_all_lanes(Row* registers, Fetch&& fetch) {
  for (unsigned lane = 0; lane < Lanes; lane += 8) {
    EightWords rows[4];
    for (unsigned i = 0; i < 4; ++i) rows[i] = join(fetch(lane + i), fetch(lane + i + 4));
    transpose(rows);
    for (unsigned i = 0; i < 4; ++i) store_as(&registers[i][lane], rows[i]);
  }
}

template <unsigned Lanes>
void read_1(Row* registers, const std::uint8_t* base, const std::uint32_t* offset) {
  for (unsigned lane = 0; lane < Lanes; ++lane) registers[0][lane] = load_as<std::uint32_t>(base + offset[lane]);
}

template <unsigned Lanes, typename Fetch>
[[gnu::always_inline]] inline void two_words_of_all_lanes(Row* registers, Fetch&& fetch) {
  const auto two = [&](unsigned lane) { return reinterpret_cast<FourWords>(TwoLongs{fetch(lane), fetch(lane + 1)}); };
  for (unsigned lane = 0; lane < Lanes; lane += 8) {
    const EightWords a = join(two(lane), two(lane + 4));
    const EightWords b = join(two(lane + 2), two(lane + 6));
    store_as(&registers[0][lane], __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14));
    store_as(&registers[1][lane], __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15));
  }
}

template <unsigned Lanes>
void read_2(Row* registers, const std::uint8_t* base, const std::uint32_t* offset) {
  two_words_of_all_lanes<Lanes>(registers, [&](unsigned lane) { return load_as<std::uint64_t>(base + offset[lane]); });
}

template <unsigned Lanes>
void read_4(Row* registers, const std::uint8_t* base, const std::uint32_t* offset) {
  four_words_of_all_lanes<Lanes>(registers, [&](unsigned lane) { return load_as<FourWords>(base + offset[lane]); });
}

template <unsigned Lanes>
void read_transposed_halves(Row* registers, const std::uint8_t* base, const std::uint32_t* offset) {
  const auto elements = [&](unsigned lane) {
    return reinterpret_cast<EightHalves>(TwoLongs{load_as<std::uint64_t>(base + offset[lane]), 0});
  };
  for (unsigned first = 0; first < Lanes; first += 16) {
    // A group's results go to lanes whose own offsets are needed until its end.
    EightHalves words[8];
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned lane = first + (8 * (i / 4)) + (i % 4);
      words[i] = __builtin_shufflevector(elements(lane), elements(lane + 4), 0, 8, 1, 9, 2, 10, 3, 11);
    }
    for (unsigned i = 0; i < 8; ++i) store_as(&registers[i / 4][first + (4 * (i % 4))], words[i]);
  }
}

template <unsigned Lanes>
void write_1(const Row* registers, std::uint8_t* base, const std::uint32_t* offset) {
  for (unsigned lane = 0; lane < Lanes; ++lane) store_as(base + offset[lane], registers[0][lane]);
}

template <unsigned Lanes>
void write_2(const Row* registers, std::uint8_t* base, const std::uint32_t* offset) {
  for (unsigned lane = 0; lane < Lanes; lane += 4) {
    const auto low = load_as<FourWords>(&registers[0][lane]);
    const auto high = load_as<FourWords>(&registers[1][lane]);
    const auto first = reinterpret_cast<TwoLongs>(__builtin_shufflevector(low, high, 0, 4, 1, 5));
    const auto second = reinterpret_cast<TwoLongs>(__builtin_shufflevector(low, high, 2, 6, 3, 7));
    store_as(base + offset[lane], first[0]);
    store_as(base + offset[lane + 1], first[1]);
    store_as(base + offset[lane + 2], second[0]);
    store_as(base + offset[lane + 3], second[1]);
  }
}

template <unsigned Lanes, typename Put>
[[gnu::always_inline]] inline void four_words_to_all_lanes(const Row* registers, Put&& put) {
  for (unsigned lane = 0; lane < Lanes; lane += 8) {
    EightWords rows[4];
    for (unsigned i = 0; i < 4; ++i) rows[i] = load_as<EightWords>(&registers[i][lane]);
    transpose(rows);
    for (unsigned i = 0; i < 4; ++i) put(lane + i, __builtin_shufflevector(rows[i], rows[i], 0, 1, 2, 3));
    for (unsigned i = 0; i < 4; ++i) put(lane + i + 4, __builtin_shufflevector(rows[i], rows[i], 4, 5, 6, 7));
  }
}

template <unsigned Lanes>
void write_4(const Row* registers, std::uint8_t* base, const std::uint32_t* offset) {
  four_words_to_all_lanes<Lanes>(registers,
                                 [&](unsigned lane, FourWords words) { store_as(base + offset[lane], words); });
}

// --- Device memory: seldom in a near cache, so that all its lines are asked for before the first is waited for.

template <unsigned Lanes>
[[gnu::always_inline]] inline void ask_for(const std::uint8_t* base, const std::uint32_t* offset) {
  for (unsigned lane = 0; lane < Lanes; ++lane) __builtin_prefetch(base + offset[lane]);
}

// One access where it can be, two or four elsewhere (device_memory.h).
[[gnu::always_inline]] inline FourWords four_from_device(const std::uint8_t* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(FourDwords) == 0) {
    return reinterpret_cast<FourWords>(load_four_aligned(from));
  }
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(std::uint64_t) == 0) {
    return reinterpret_cast<FourWords>(
        TwoLongs{load_aligned<std::uint64_t>(from), load_aligned<std::uint64_t>(from + 8)});
  }
  return FourWords{load_aligned<std::uint32_t>(from), load_aligned<std::uint32_t>(from + 4),
                   load_aligned<std::uint32_t>(from + 8), load_aligned<std::uint32_t>(from + 12)};
}

template <unsigned Lanes>
void load_2(Row* registers, const std::uint8_t* base, const std::uint32_t* offset) {
  ask_for<Lanes>(base, offset);
  two_words_of_all_lanes<Lanes>(registers, [&](unsigned lane) -> std::uint64_t {
    const std::uint8_t* const from = base + offset[lane];
    if (reinterpret_cast<std::uintptr_t>(from) % sizeof(std::uint64_t) == 0) return load_aligned<std::uint64_t>(from);
    return load_aligned<std::uint32_t>(from) | (std::uint64_t{load_aligned<std::uint32_t>(from + 4)} << 32);
  });
}

template <unsigned Lanes>
void load_4(Row* registers, const std::uint8_t* base, const std::uint32_t* offset) {
  ask_for<Lanes>(base, offset);
  four_words_of_all_lanes<Lanes>(registers, [&](unsigned lane) { return four_from_device(base + offset[lane]); });
}

[[gnu::always_inline]] inline void four_to_device(std::uint8_t* to, FourWords words) {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(FourDwords) == 0) {
    return store_four_aligned(to, reinterpret_cast<FourDwords>(words));
  }
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof(std::uint64_t) == 0) {
    const auto longs = reinterpret_cast<TwoLongs>(words);
    store_aligned<std::uint64_t>(to, longs[0]);
    store_aligned<std::uint64_t>(to + 8, longs[1]);
    return;
  }
  for (unsigned i = 0; i < 4; ++i) store_aligned<std::uint32_t>(to + (4 * i), words[i]);
}

template <unsigned Lanes>
void store_4(const Row* registers, std::uint8_t* base, const std::uint32_t* offset) {
  for (unsigned lane = 0; lane < Lanes; ++lane) __builtin_prefetch(base + offset[lane], 1);
  four_words_to_all_lanes<Lanes>(registers,
                                 [&](unsigned lane, FourWords words) { four_to_device(base + offset[lane], words); });
}

template <unsigned Lanes>
void copy_4(std::uint8_t* to, const std::uint8_t* base, const std::uint32_t* offset) {
  ask_for<Lanes>(base, offset);
  for (unsigned lane = 0; lane < Lanes; ++lane) store_as(to + (16 * lane), four_from_device(base + offset[lane]));
}

template <unsigned Lanes>
constexpr Kernels kernels_of{.span_of = &span_of<Lanes>,
                             .none_above = &none_above<Lanes>,
                             .read_1 = &read_1<Lanes>,
                             .read_2 = &read_2<Lanes>,
                             .read_4 = &read_4<Lanes>,
                             .read_transposed_halves = &read_transposed_halves<Lanes>,
                             .write_1 = &write_1<Lanes>,
                             .write_2 = &write_2<Lanes>,
                             .write_4 = &write_4<Lanes>,
                             .load_2 = &load_2<Lanes>,
                             .load_4 = &load_4<Lanes>,
                             .store_4 = &store_4<Lanes>,
                             .copy_4 = &copy_4<Lanes>};

}  // namespace

namespace WAVEJIT_HOST_SET {
constinit const KernelsOfSizes kernels{.of_64 = kernels_of<lane_places>, .of_32 = kernels_of<lane_places / 2>};
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::lanes
