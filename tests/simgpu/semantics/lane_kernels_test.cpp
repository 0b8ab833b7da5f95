// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses of whole waves, on every host instruction set there is: what they do is said here lane by lane and word by
// word.
#include "simgpu/machine/memory/lane_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "simgpu/process/host_set.h"

namespace wavejit::simgpu::test {
namespace {

using lanes::Kernels;
using lanes::KernelsOfSizes;
using lanes::Row;

const std::array<const KernelsOfSizes*, host_set_count> all_kernels = {
    &lanes::x86_64_v2::kernels, &lanes::x86_64_v3::kernels, &lanes::x86_64_v4::kernels};

// `lanes`: the lanes of a wave.
void on_every_set(const std::function<void(const Kernels&, unsigned lanes)>& body) {
  for (const HostSet set : {HostSet::x86_64_v2, HostSet::x86_64_v3, HostSet::x86_64_v4}) {
    if (!host_supports(set)) continue;
    SCOPED_TRACE(std::string(name_of(set)));
    const KernelsOfSizes& sizes = *all_kernels.at(static_cast<std::size_t>(set));
    body(sizes.of_64, 64);
    SCOPED_TRACE("waves of 32");
    body(sizes.of_32, 32);
  }
}

constexpr std::size_t places = 1024;  // bytes
struct State {
  explicit State(std::mt19937& random) {
    for (Row& row : registers) std::ranges::generate(row, std::ref(random));
    std::ranges::generate(memory, [&] { return static_cast<std::uint8_t>(random()); });
  }
  bool operator==(const State& other) const {
    return memory == other.memory && std::memcmp(registers, other.registers, sizeof(registers)) == 0;
  }
  // Row 4 lies behind the four that are read or written at most.
  alignas(64) Row registers[5] = {};
  alignas(64) std::array<std::uint8_t, places> memory{};
};

// Offsets of `bytes` each that are multiples of `step`; some lanes share theirs. Places that are no lanes point
// nowhere.
void draw_offsets(Row& offsets, std::mt19937& random, unsigned lanes, std::uint32_t bytes, std::uint32_t step) {
  for (std::uint32_t& offset : offsets)
    offset = static_cast<std::uint32_t>(random() % ((places - bytes) / step + 1)) * step;
  offsets[random() % lanes] = offsets[random() % lanes];
  std::fill(offsets + lanes, std::end(offsets), 0xfffffff0U);
}

void read_words(State& state, const Row& offsets, unsigned lanes, unsigned words) {
  for (unsigned lane = 0; lane < lanes; ++lane) {
    for (unsigned i = 0; i < words; ++i) {
      std::memcpy(&state.registers[i][lane], &state.memory[offsets[lane] + (4 * i)], 4);
    }
  }
}

using Read = void (*)(Row*, const std::uint8_t*, const std::uint32_t*);
using Write = void (*)(const Row*, std::uint8_t*, const std::uint32_t*);

template <typename Kernel>
struct Case {
  Kernel kernel;
  unsigned words;
  std::uint32_t step;  // that offsets are multiples of
};

TEST(LaneKernels, ReadWordsOfEveryLane) {
  on_every_set([](const Kernels& kernels, unsigned lanes) {
    for (const Case<Read>& one :
         {Case<Read>{kernels.read_1, 1, 1}, Case<Read>{kernels.read_2, 2, 1}, Case<Read>{kernels.read_4, 4, 1},
          Case<Read>{kernels.load_2, 2, 4}, Case<Read>{kernels.load_4, 4, 4}, Case<Read>{kernels.load_4, 4, 16}}) {
      std::mt19937 random(one.words);
      for (int round = 0; round < 50; ++round) {
        State state(random);
        // The offsets stand in a register of their own, or in one that is written.
        const auto where = static_cast<unsigned>(round % 2 == 0 ? 4 : random() % one.words);
        draw_offsets(state.registers[where], random, lanes, 4 * one.words, one.step);
        State expected = state;
        Row offsets;
        std::ranges::copy(state.registers[where], offsets);
        read_words(expected, offsets, lanes, one.words);
        one.kernel(state.registers, state.memory.data(), state.registers[where]);
        ASSERT_EQ(state, expected) << one.words << " words, steps of " << one.step << ", offsets in " << where;
      }
    }
  });
}

TEST(LaneKernels, WriteWordsOfEveryLaneTheHighestLast) {
  on_every_set([](const Kernels& kernels, unsigned lanes) {
    for (const Case<Write>& one : {Case<Write>{kernels.write_1, 1, 1}, Case<Write>{kernels.write_2, 2, 1},
                                   Case<Write>{kernels.write_4, 4, 1}, Case<Write>{kernels.write_4, 4, 16},
                                   Case<Write>{kernels.store_4, 4, 4}, Case<Write>{kernels.store_4, 4, 8}}) {
      std::mt19937 random(one.words);
      for (int round = 0; round < 50; ++round) {
        State state(random);
        draw_offsets(state.registers[4], random, lanes, 4 * one.words, one.step);
        State expected = state;
        for (unsigned lane = 0; lane < lanes; ++lane) {
          for (unsigned i = 0; i < one.words; ++i) {
            std::memcpy(&expected.memory[state.registers[4][lane] + (4 * i)], &state.registers[i][lane], 4);
          }
        }
        one.kernel(state.registers, state.memory.data(), state.registers[4]);
        ASSERT_EQ(state, expected) << one.words << " words, steps of " << one.step;
      }
    }
  });
}

// A group of 16 lanes reads a matrix of 16 columns, row by row, and lane n receives column n.
TEST(LaneKernels, TransposedHalvesAreColumnsOfWhatSixteenLanesRead) {
  on_every_set([](const Kernels& kernels, unsigned lanes) {
    std::mt19937 random(16);
    for (int round = 0; round < 50; ++round) {
      State state(random);
      const unsigned where = round % 2 == 0 ? 4 : random() % 2;
      draw_offsets(state.registers[where], random, lanes, 8, 2);
      State expected = state;
      for (unsigned first = 0; first < lanes; first += 16) {
        // What the group reads, lane after lane: four rows of 16 halves.
        std::array<std::uint16_t, 64> halves{};
        for (unsigned lane = 0; lane < 16; ++lane) {
          std::memcpy(&halves[std::size_t{4} * lane], &state.memory[state.registers[where][first + lane]], 8);
        }
        for (unsigned lane = 0; lane < 16; ++lane) {
          for (unsigned i = 0; i < 2; ++i) {
            expected.registers[i][first + lane] =
                halves[(32 * i) + lane] | (std::uint32_t{halves[(32 * i) + 16 + lane]} << 16);
          }
        }
      }
      kernels.read_transposed_halves(state.registers, state.memory.data(), state.registers[where]);
      ASSERT_EQ(state, expected) << "offsets in " << where;
    }
  });
}

TEST(LaneKernels, CopiesFollowLaneByLane) {
  on_every_set([](const Kernels& kernels, unsigned lanes) {
    std::mt19937 random(4);
    for (int round = 0; round < 50; ++round) {
      State state(random);
      draw_offsets(state.registers[4], random, lanes, 16, round % 2 == 0 ? 4 : 8);
      std::array<std::uint8_t, 1025> to{};
      std::array<std::uint8_t, 1025> expected{};
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        std::memcpy(&expected[1 + (16 * lane)], &state.memory[state.registers[4][lane]], 16);
      }
      kernels.copy_4(&to[1], state.memory.data(), state.registers[4]);
      ASSERT_EQ(to, expected);
    }
  });
}

TEST(LaneKernels, SpansAndLimits) {
  on_every_set([](const Kernels& kernels, unsigned lanes) {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
      alignas(64) Row offsets;
      const unsigned shift = random() % 32;
      for (std::uint32_t& offset : offsets) offset = static_cast<std::uint32_t>(random()) >> shift;
      const std::span own = std::span(offsets).first(lanes);
      const lanes::Span span = kernels.span_of(offsets);
      EXPECT_EQ(span.lowest, *std::ranges::min_element(own));
      EXPECT_EQ(span.highest, *std::ranges::max_element(own));
      std::uint32_t bits = 0;
      for (const std::uint32_t offset : own) bits |= offset;
      EXPECT_EQ(span.bits, bits);
      if (span.highest >= 0x80000000U) {
        EXPECT_FALSE(kernels.none_above(offsets, 0x7fffffffU));
        continue;
      }
      EXPECT_TRUE(kernels.none_above(offsets, span.highest));
      if (span.highest > 0) EXPECT_FALSE(kernels.none_above(offsets, span.highest - 1));
    }
  });
}

TEST(LaneKernels, ThisHostsAreOfItsBestSet) {
  Wave wave;
  const KernelsOfSizes& best = *all_kernels.at(static_cast<std::size_t>(best_host_set()));
  EXPECT_EQ(&lanes::kernels(wave), &best.of_64);
  wave.set_lane_count(32);
  EXPECT_EQ(&lanes::kernels(wave), &best.of_32);
}

}  // namespace
}  // namespace wavejit::simgpu::test
