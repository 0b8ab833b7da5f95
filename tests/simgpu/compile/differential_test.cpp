// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random programs on both engines.
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "isa/instruction_set.h"
#include "simgpu/machine/compile/helpers.h"
#include "simgpu/machine/compile/library.h"
#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/device/rooms.h"
#include "simgpu/machine/matrix/summation.h"
#include "targets/targets.h"
#include "tests/simgpu/compile/random_program.h"
#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

// The helpers that the engine uses, and how often groups of lanes had to be interpreted.
std::uint64_t odd_groups = 0;
void count_odd_group(Wave* wave, const compile::Run* run, std::uint64_t lanes, std::uint64_t* masks) {
  ++odd_groups;
  compile::helpers().interpret_lanes(wave, run, lanes, masks);
}
const compile::Helpers counting = {.interpret = compile::helpers().interpret, .interpret_lanes = &count_odd_group};

std::unique_ptr<Wave> wave_like(const Wave& other) {
  auto copy = std::make_unique<Wave>();
  std::memcpy(static_cast<void*>(copy.get()), &other, sizeof(Wave));
  return copy;
}

void interpret(Wave& wave, const Instruction* first, unsigned count) {
  wave.next = first;
  for (unsigned i = 0; i < count; ++i) {
    --wave.budget;
    const Instruction& instruction = *wave.next;
    wave.next = &instruction + 1;
    instruction.execute(wave, instruction);
  }
}

void expect_same(const Wave& expected, const Wave& got, const std::string& program) {
  for (unsigned i = 0; i < 2 * accumulation_base; ++i) {
    for (unsigned lane = 0; lane < expected.lane_count; ++lane) {
      ASSERT_EQ(expected.vgpr[i][lane], got.vgpr[i][lane]) << "register " << i << " lane " << lane << "\n" << program;
    }
  }
  for (unsigned i = 0; i < sgpr_count; ++i) ASSERT_EQ(expected.sgpr[i], got.sgpr[i]) << "s" << i << "\n" << program;
  ASSERT_EQ(expected.scc, got.scc) << program;
  ASSERT_EQ(expected.priority, got.priority);
  ASSERT_EQ(expected.budget, got.budget);
  ASSERT_EQ(expected.next, got.next);
}

void compare_engines(std::string_view target, std::uint64_t seed, Mixture mixture, unsigned blocks,
                     unsigned block_length, bool narrow = false, unsigned lanes = lane_places) {
  std::mt19937_64 random = random_from(seed);
  const targets::Target& row = *targets::find_target(target);
  const bool rdna4 = isa::instruction_set(row) == isa::InstructionSet::rdna4;
  const bool gfx950 = !rdna4 && row.packed_bf16_convert;
  const Dialect dialect{.gfx950 = gfx950, .rdna4 = rdna4, .lanes = lanes};
  const std::string_view features = !rdna4                 ? ""
                                    : lanes == lane_places ? "+real-true16,-wavefrontsize32,+wavefrontsize64"
                                                           : "+real-true16";
  std::vector<std::string> programs;
  std::string text;
  for (unsigned i = 0; i < blocks; ++i)
    text += programs.emplace_back(random_program(random, block_length, dialect, mixture));
  std::string error;
  const std::vector<std::uint8_t> code = assemble(target, text, error, features);
  ASSERT_FALSE(code.empty()) << error;
  Registry registry(row);
  register_rooms(registry);
  Disassembler& disassembler =
      rdna4 ? *Disassembler::for_processor(target, lanes) : *Disassembler::for_processor(target);
  const auto function = decode_function("random", code, 0, disassembler, registry);
  ASSERT_EQ(function->instructions.size(), (blocks * block_length) + 1);
  ASSERT_EQ(function->problems.size(), 1U) << function->problems.begin()->second;  // the end

  const compile::Table* const table = compile::library();
  ASSERT_NE(table, nullptr);
  std::vector<compile::Block> translated(blocks);
  for (unsigned i = 0; i < blocks; ++i) {
    translated[i] = {.first = &function->instructions[i * block_length], .count = block_length, .code = nullptr};
  }
  compile::Translation* const translation = table->translate(translated, counting, narrow, error);
  ASSERT_NE(translation, nullptr) << error;
  const matrix::Summation sums = gfx950 ? matrix::seeded_summation(seed) : matrix::cdna3_summation();
  auto start = std::make_unique<Wave>();
  start->set_lane_count(lanes);
  for (unsigned i = 0; i < blocks && !::testing::Test::HasFatalFailure(); ++i) {
    for (unsigned variant = 0; variant < 5; ++variant) {
      if (mixture == Mixture::numbers) {
        fill_with_numbers(*start, random);
      } else {
        fill_with_hard_values(*start, random, variant >= 1);
      }
      start->mode = variant == 2 ? 0xc0 | (1U << 9) : 0xf0 | (variant == 1 ? 1U << 9 : 0);
      // What stands above a wave's lanes is nobody's.
      start->set_exec(variant == 3 ? random() : start->all_lanes | (random() & ~start->all_lanes));
      // Other sums of matrix instructions, other results of transcendental ones.
      start->summation = variant == 4 ? &sums : nullptr;
      start->transcendentals_key = variant == 4 ? 77 : 0;
      start->budget = 1000;
      start->next = translated[i].first;
      const auto expected = wave_like(*start);
      const auto got = wave_like(*start);
      interpret(*expected, translated[i].first, block_length);
      compile::enter(translated[i].code, *got);
      ASSERT_NO_FATAL_FAILURE(expect_same(*expected, *got, programs[i])) << "block " << i << " variant " << variant;
    }
  }
  table->release(translation);
}

TEST(Differential, RandomProgramsGfx950) { compare_engines("gfx950", 1, Mixture::everything, 40, 40); }
TEST(Differential, RandomProgramsGfx942) { compare_engines("gfx942", 2, Mixture::everything, 40, 40); }

TEST(Differential, RandomProgramsGfx1201) { compare_engines("gfx1201", 7, Mixture::everything, 60, 40, false, 32); }
TEST(Differential, RandomProgramsGfx1201Of64Lanes) { compare_engines("gfx1201", 8, Mixture::everything, 30, 40); }

// A random program for gfx950, decoded; null, and why on record, when it does not assemble.
auto random_function(Registry& registry, std::uint64_t seed, unsigned instructions) {
  std::mt19937_64 random = random_from(seed);
  std::string error;
  const auto code =
      assemble("gfx950", random_program(random, instructions, {.gfx950 = true}, Mixture::everything), error);
  EXPECT_FALSE(code.empty()) << error;
  register_rooms(registry);
  return code.empty() ? nullptr : decode_function("random", code, 0, *Disassembler::for_processor("gfx950"), registry);
}

// Threads of a launch meet different functions for the first time at the same time.
TEST(Differential, ManyThreadsTranslateAtOnce) {
  Registry registry(*targets::find_target("gfx950"));
  const auto function = random_function(registry, 5, 60);
  ASSERT_NE(function, nullptr);
  const compile::Table* const table = compile::library();
  ASSERT_NE(table, nullptr);
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 4; ++round) {
        std::vector<compile::Block> blocks(3);
        for (std::size_t i = 0; i < blocks.size(); ++i)
          blocks[i] = {.first = &function->instructions[20 * i], .count = 20, .code = nullptr};
        std::string why;
        compile::Translation* const translation = table->translate(blocks, compile::helpers(), false, why);
        failures += translation == nullptr || blocks.back().code == nullptr ? 1 : 0;
        table->release(translation);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
}

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + (1e-9 * static_cast<double>(now.tv_nsec));
}

// The counter of translation time is the calling thread's processor time.
TEST(Differential, WhoeverTranslatesDoesTheWork) {
  Registry registry(*targets::find_target("gfx950"));
  const auto function = random_function(registry, 6, 200);
  ASSERT_NE(function, nullptr);
  const compile::Table* const table = compile::library();
  ASSERT_NE(table, nullptr);
  std::vector<compile::Block> blocks = {{.first = function->instructions.data(), .count = 200, .code = nullptr}};
  std::string error;
  const double own = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  const double all = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  compile::Translation* const translation = table->translate(blocks, compile::helpers(), false, error);
  const double own_share = seconds_of(CLOCK_THREAD_CPUTIME_ID) - own;
  const double whole = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - all;
  ASSERT_NE(translation, nullptr) << error;
  table->release(translation);
  EXPECT_GT(own_share, 0.8 * whole);
}

// Where NaN is rare the translated arithmetic itself is compared.
TEST(Differential, Numbers) {
  odd_groups = 0;
  compare_engines("gfx950", 3, Mixture::numbers, 150, 14);
  // Two of five variants run translated, and a third but for transcendental results, in at least four groups of lanes
  // and one run a block.
  EXPECT_LT(odd_groups, 150U * 2 * 4 / 4);
}

TEST(Differential, NumbersGfx1201) {
  odd_groups = 0;
  compare_engines("gfx1201", 9, Mixture::numbers, 150, 14, false, 32);
  // Half as many groups of lanes a run.
  EXPECT_LT(odd_groups, 150U * 2 * 2 / 4);
}

// As on a host with AVX2 only.
TEST(Differential, NarrowVectors) {
  compare_engines("gfx950", 4, Mixture::everything, 25, 40, true);
  compare_engines("gfx950", 5, Mixture::numbers, 60, 14, true);
  compare_engines("gfx1201", 10, Mixture::everything, 25, 40, true, 32);
}

}  // namespace
}  // namespace wavejit::simgpu::test
