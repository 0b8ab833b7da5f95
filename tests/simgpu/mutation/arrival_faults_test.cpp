// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults planted in the code that the last workgroup to arrive depends on (templates/attention/emit/arrivals.h): each
// is reported, or changes a result. The calls are whole ones, one after the other on an engine whose counters stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "called.h"
#include "forward_problems.h"
#include "latent_problems.h"
#include "planted_faults.h"

namespace wavejit::tests {
namespace {

using simgpu::Instruction;

// Encodings of gfx9 (CDNA3 ISA): operand 0 of a scalar comparison's second place, −1 of a move's source, and the bit
// that takes an access past the die's caches.
constexpr std::uint32_t scalar_zero = 128;
constexpr std::uint32_t minus_one = 193;
constexpr std::uint32_t second_source = 0xff00;
constexpr std::uint32_t source_of_move = 0x1ff;
constexpr std::uint32_t past_caches = 1U << 15U;

// A kernel that merges in the launch that leaves the parts. Of attention_forward, waves that share the rows of a tile:
// each merges rows of which all have stored dims.
struct Subject {
  const char* target;
  const char* family;
  const char* pipeline = "auto";
};

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.family << " on " << subject.target; }

std::vector<CallProblem> problems_of(const Subject& subject) {
  if (std::string_view(subject.family) == "attention_latent ") return latent_in_one_launch();
  AttentionCase which = make_case(Storage::bf16, 2, 4, 2150, 8, 1, 64, true, 1);
  which.splits = 3;
  which.flags = WAVEJIT_ONE_LAUNCH;
  return {forward(which), forward(which)};
}

struct Planted {
  explicit Planted(const Subject& subject)
      : kernel(subject.target, subject.pipeline, {subject.family, " merged "}, problems_of(subject)), faults(kernel) {}

  CalledKernel kernel;
  PlantedFaults faults;
};

class ArrivalFaults : public ::testing::TestWithParam<Subject> {
 protected:
  // NOLINTBEGIN(cppcoreguidelines-non-private-member-variables-in-classes)
  const PlantedFaults& faults_ = faults_of(GetParam());
  // NOLINTEND(cppcoreguidelines-non-private-member-variables-in-classes)

  // One of each for all tests: its kernels are compiled and its calls compared with float64 once.
  static const PlantedFaults& faults_of(const Subject& subject) {
    static std::map<std::pair<std::string, std::string>, Planted> all;
    return all.try_emplace({subject.target, subject.family}, subject).first->second.faults;
  }

  void SetUp() override {
    all_ = faults_.instructions();
    const auto atomic = std::ranges::find(all_, "buffer_atomic_inc", &Instruction::mnemonic);
    ASSERT_NE(atomic, all_.end());
    count_ = static_cast<std::size_t>(atomic - all_.begin());
  }

  // The nearest of that name before the count, or behind it.
  const Instruction& before(std::string_view mnemonic) const {
    for (std::size_t i = count_; i-- > 0;)
      if (all_[i].mnemonic == mnemonic) return all_[i];
    throw std::runtime_error("nothing before the count is a " + std::string(mnemonic));
  }
  const Instruction& behind(std::string_view mnemonic) const {
    for (std::size_t i = count_; i < all_.size(); ++i)
      if (all_[i].mnemonic == mnemonic) return all_[i];
    throw std::runtime_error("nothing behind the count is a " + std::string(mnemonic));
  }
  // Loads and stores of parts: those that pass the caches.
  std::vector<const Instruction*> parts(std::string_view mnemonics) const {
    std::vector<const Instruction*> found;
    for (const Instruction& each : all_)
      if (each.sc1 && each.mnemonic.starts_with(mnemonics)) found.push_back(&each);
    return found;
  }

 private:
  std::span<const Instruction> all_;
  std::size_t count_ = 0;  // where the atomic stands
};

// By the result: stores and loads that pass the caches do not race, as atomics do not (docs/simulated-gpu.md).
TEST_P(ArrivalFaults, StoresThatNobodyWaitsForAreSeen) {
  const Outcome outcome = faults_.without(before("s_waitcnt"), Change::vector_wait_removed);
  EXPECT_TRUE(outcome.caught());
}

// Each wave counts for its workgroup: the others' stores are over only behind the barrier.
TEST_P(ArrivalFaults, ACountBeforeTheBarrierIsSeen) {
  const Outcome outcome = faults_.without(before("s_barrier"), Change::barrier_removed);
  EXPECT_TRUE(outcome.caught());
}

// The first one merges what nobody has stored yet.
TEST_P(ArrivalFaults, PartsThatAreReadEarlyAreSeen) {
  const Outcome outcome = faults_.with_words(
      {&behind("s_cmp_lg_u32")}, [](std::uint32_t word) { return (word & ~second_source) | (scalar_zero << 8U); });
  EXPECT_TRUE(outcome.caught());
}

// It counts on without an end: the second call has no last one.
TEST_P(ArrivalFaults, ACounterThatNobodyResetsIsSeen) {
  const Outcome outcome = faults_.with_words({&before("v_mov_b32")},
                                             [](std::uint32_t word) { return (word & ~source_of_move) | minus_one; });
  EXPECT_TRUE(outcome.differs) << outcome.first;
}

TEST_P(ArrivalFaults, PartsThatStayInADiesCachesAreSeen) {
  for (const char* mnemonics : {"buffer_store", "buffer_load"}) {
    const auto all = parts(mnemonics);
    ASSERT_FALSE(all.empty()) << mnemonics;
    const Outcome outcome = faults_.with_words(all, [](std::uint32_t word) {
      EXPECT_NE(word & past_caches, 0U);
      return word & ~past_caches;
    });
    EXPECT_THAT(outcome.checks, ::testing::Not(::testing::IsEmpty())) << mnemonics << ", " << outcome.first;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ArrivalFaults,
                         ::testing::Values(Subject{"gfx942", "attention_latent "},
                                           Subject{"gfx950", "attention_latent "},
                                           Subject{"gfx942", "attention_forward ", "generic chunk_waves=4"},
                                           Subject{"gfx950", "attention_forward ", "generic chunk_waves=4"}),
                         [](const auto& parameter) {
                           const Subject& subject = parameter.param;
                           const bool is_forward = std::string_view(subject.family) == "attention_forward ";
                           return std::string(subject.target) + (is_forward ? "_forward" : "");
                         });

}  // namespace
}  // namespace wavejit::tests
