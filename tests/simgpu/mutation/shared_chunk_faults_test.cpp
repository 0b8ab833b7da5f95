// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults put into what four waves that share a chunk of keys tell each other by LDS, and when
// (templates/attention_forward/emit/shared_walk.cpp, and shared_register_walk.cpp where tiles pass through registers):
// each is reported, or makes a result another one. Whole calls, of dense keys and of keys in pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "called.h"
#include "forward_problems.h"
#include "planted_faults.h"

namespace wavejit::tests {
namespace {

using simgpu::Instruction;

using ::testing::AllOf;
using ::testing::HasSubstr;

// Maxima grow in the middle of steps; the last step has two tiles.
// On gfx942 whole rows in pages have no mask where waves share.
CallProblem problem_of(bool paged, bool causal) {
  AttentionCase which = make_case(Storage::bf16, 1, 2, 1110, 4, 1, 128, causal, 1, 2.0);
  grow(which);
  which.splits = 1;
  if (paged) {
    which.inputs.key_lengths = {1110};
    which.pages = Pages{.size = 16};
  }
  return forward(which);
}

struct Keys {
  const char* target;
  bool paged;
};
void PrintTo(const Keys& keys, std::ostream* out) { *out << keys.target << (keys.paged ? " pages" : " dense"); }

struct Subject {
  Subject(const char* target, bool paged)
      : kernel(target, "generic chunk_waves=4", {"attention_forward ", " chunk_waves=4 ", paged ? " paged " : " lse "},
               {problem_of(paged, !paged || std::string_view(target) == "gfx950")}),
        faults(kernel) {}

  CalledKernel kernel;
  PlantedFaults faults;
};

class SharedChunkFaults : public ::testing::TestWithParam<Keys> {
 protected:
  // NOLINTBEGIN(cppcoreguidelines-non-private-member-variables-in-classes)
  const PlantedFaults& faults_ = faults_of(GetParam());
  // NOLINTEND(cppcoreguidelines-non-private-member-variables-in-classes)

  static const PlantedFaults& faults_of(const Keys& keys) {
    static std::map<std::pair<std::string, bool>, Subject> subjects;
    return subjects.try_emplace({keys.target, keys.paged}, keys.target, keys.paged).first->second.faults;
  }
  bool has_images() const { return std::string_view(GetParam().target) == "gfx950"; }

  // Barriers of a step, which alone reads V: those behind which a wave reads maxima, reads V and what all have left of
  // P, and fetches the next V. Where no other wave reads its V there are the first two, and no others before them.
  struct Barriers {
    const Instruction* maxima = nullptr;
    const Instruction* weights = nullptr;
    const Instruction* images = nullptr;
  };
  Barriers barriers() const {
    Barriers found;
    bool reads_values = false;
    for (const Instruction& each : faults_.instructions()) {
      reads_values = reads_values || each.mnemonic == "ds_read_b64_tr_b16";
      if (each.mnemonic != "s_barrier") continue;
      if (reads_values) {
        found.images = &each;
        return found;
      }
      found.maxima = found.weights;
      found.weights = &each;
      if (!has_images() && found.maxima != nullptr) return found;
    }
    throw std::runtime_error("no step of three barriers");
  }
  // What stands behind a barrier, which is that read; before it, that wait.
  const Instruction& read_behind(const Instruction* barrier) const {
    return neighbour(barrier == nullptr ? nullptr : barrier + 1, "ds_read_b128");
  }
  const Instruction& wait_before(const Instruction* barrier) const {
    return neighbour(barrier == nullptr ? nullptr : barrier - 1, "s_waitcnt");
  }
  // Where the wave's number chooses among the maxima behind each tile: comparisons with 1, 2 and 3.
  std::vector<const Instruction*> choices_of_maximum() const {
    for (const Instruction& one : faults_.instructions()) {
      const std::string text = faults_.text(one);
      if (one.mnemonic != "s_cmp_eq_u32" || !text.ends_with(", 1")) continue;
      std::vector<const Instruction*> found;
      for (const char number : {'1', '2', '3'}) {
        // The last one: entries of pages are chosen before.
        const Instruction* last = nullptr;
        for (const Instruction& each : faults_.instructions())
          if (faults_.text(each) == text.substr(0, text.size() - 1) + number) last = &each;
        if (last != nullptr) found.push_back(last);
      }
      if (found.size() == 3) return found;
    }
    throw std::runtime_error("nothing chooses by the wave's number");
  }

 private:
  const Instruction& neighbour(const Instruction* instruction, std::string_view mnemonic) const {
    if (instruction == nullptr || instruction->mnemonic != mnemonic)
      throw std::runtime_error("no " + std::string(mnemonic) + " beside the barrier");
    return *instruction;
  }
};

TEST_P(SharedChunkFaults, TheUnharmedKernelPasses) {
  const Outcome outcome = faults_.with_words({barriers().weights}, [](std::uint32_t word) { return word; });
  EXPECT_FALSE(outcome.caught()) << outcome.first;
}

TEST_P(SharedChunkFaults, MaximaReadBeforeTheirBarrierAreSeen) {
  const Instruction& read = read_behind(barriers().maxima);
  const Outcome outcome = faults_.behind_the_next(*barriers().maxima);
  EXPECT_THAT(outcome.first, AllOf(HasSubstr("races: "), HasSubstr("ds_write_b32"), HasSubstr(faults_.text(read))));
}

// P of each tile is weighed with m as it was before that tile. Nobody can tell but by the result.
TEST_P(SharedChunkFaults, AMaximumReadOneTileEarlyIsSeen) {
  constexpr std::uint32_t next_number = 1U << 8U;  // of the inline constant in a scalar comparison's second place
  const Outcome outcome =
      faults_.with_words(choices_of_maximum(), [](std::uint32_t word) { return word + next_number; });
  EXPECT_TRUE(outcome.differs) << outcome.first;
}

// If images of all waves hold V, a barrier stands behind the one that V is read behind.
TEST_P(SharedChunkFaults, WeightsReadBeforeTheirBarriersAreSeen) {
  constexpr std::uint32_t nothing = 0xBF800000;  // s_nop 0
  const Barriers all = barriers();
  std::vector<const Instruction*> removed = {all.weights};
  if (all.images != nullptr) removed.push_back(all.images);
  const Outcome outcome = faults_.with_words(removed, [](std::uint32_t) { return nothing; });
  EXPECT_THAT(outcome.first, HasSubstr("races: ")) << outcome.first;
  EXPECT_TRUE(outcome.caught());
}

class SharedImageFaults : public SharedChunkFaults {};

TEST_P(SharedImageFaults, ValuesReadBeforeTheirBarrierAreSeen) {
  const Outcome outcome = faults_.without(*barriers().weights, Change::barrier_removed);
  EXPECT_THAT(outcome.first, AllOf(HasSubstr("races: "), HasSubstr("ds_read_b64_tr_b16"), HasSubstr("loads into")));
}

TEST_P(SharedImageFaults, AnImageRefilledBeforeTheLastReadersBarrierIsSeen) {
  const Outcome outcome = faults_.without(*barriers().images, Change::barrier_removed);
  EXPECT_THAT(outcome.first, AllOf(HasSubstr("races: "), HasSubstr("ds_read_b64_tr_b16"), HasSubstr("loads into")));
}

// The barrier stands, but a reader came to it with reads on their way.
TEST_P(SharedImageFaults, AnImageRefilledBeforeItsReadsReturnedIsSeen) {
  const Outcome outcome = faults_.without(wait_before(barriers().images), Change::wait_removed);
  EXPECT_THAT(outcome.first, AllOf(HasSubstr("races: "), HasSubstr("ds_read_b64_tr_b16"), HasSubstr("loads into")));
}

std::string name_of(const ::testing::TestParamInfo<Keys>& info) {
  return std::string(info.param.paged ? "paged_" : "dense_") + info.param.target;
}

INSTANTIATE_TEST_SUITE_P(Keys, SharedChunkFaults,
                         ::testing::Values(Keys{"gfx942", false}, Keys{"gfx942", true}, Keys{"gfx950", false},
                                           Keys{"gfx950", true}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Keys, SharedImageFaults, ::testing::Values(Keys{"gfx950", false}, Keys{"gfx950", true}),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
