// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/static_hazards.h"

#include <memory>
#include <ranges>
#include <utility>

#include "analysis/flow.h"
#include "analysis/kernel_code.h"
#include "isa/instruction_set.h"
#include "simgpu/checkers/checks/hazards.h"
#include "simgpu/checkers/checks/rdna4_hazards.h"
#include "simgpu/checkers/facts/effects.h"
#include "simgpu/machine/launch/launch.h"

namespace wavejit::tests {
namespace {

using analysis::Block;
using analysis::KernelCode;
using simgpu::Instruction;

// The longest waits that rules ask for are 20 (16 passes, three states and gfx950's own), and 26 on RDNA4.
constexpr int longest_wait = 28;
// Ways into the blocks of one kernel. More would be a kernel of nothing but branches.
constexpr std::size_t most_ways = 1'000'000;

class Ways {
 public:
  Ways(const KernelCode& code, const std::vector<Block>& blocks)
      : code_(code),
        blocks_(blocks),
        predecessors_(blocks.size()),
        is_rdna4_(isa::instruction_set(code.target()) == isa::InstructionSet::rdna4) {
    for (std::size_t b = 0; b < blocks.size(); ++b)
      for (const std::size_t next : blocks[b].successors) predecessors_[next].push_back(b);
    launch_.kernel = &code.info();
    workgroup_.launch = &launch_;
    wave_->workgroup = &workgroup_;
  }

  std::vector<std::string> findings() {
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      is_first_ = true;
      go_back(block, longest_wait, blocks_[block]);
    }
    std::vector<std::string> texts;
    for (const simgpu::Finding& finding : launch_.findings) texts.push_back(finding.line());
    if (ways_ > most_ways) texts.emplace_back("there are more ways through the code than are followed");
    return texts;
  }

 private:
  const simgpu::checks::Effects& effects_at(std::size_t place) const {
    return simgpu::checks::effects_of(*code_.instructions()[place].function)[place];
  }

  // Puts blocks in front of `block` until `states` wait states lie there, and runs `last` behind each such way.
  void go_back(std::size_t block, int states, const Block& last) {
    if (ways_ > most_ways) return;
    for (const std::size_t before : predecessors_[block]) {
      std::size_t from = blocks_[before].end;
      int left = states;
      while (from > blocks_[before].begin && left > 0) left -= effects_at(--from).wait_states;
      way_.emplace_back(from, blocks_[before].end);
      if (left > 0) {
        go_back(before, left, last);
      } else {
        run(last);
      }
      way_.pop_back();
    }
    if (block == 0 || predecessors_[block].empty()) run(last);
  }

  // Behind the first way all of `last` runs, behind others what they can still matter to.
  void run(const Block& last) {
    ++ways_;
    if (is_rdna4_) {
      rdna4_hazards_->prepare(simgpu::Rules::strict);
    } else {
      hazards_->prepare(code_.target(), simgpu::Rules::strict);
    }
    for (const auto& [from, end] : std::views::reverse(way_))
      for (std::size_t place = from; place < end; ++place) step(place);
    int states = 0;
    for (std::size_t place = last.begin; place < last.end && (is_first_ || states < longest_wait); ++place) {
      states += effects_at(place).wait_states;
      step(place);
    }
    is_first_ = false;
  }

  void step(std::size_t place) {
    const Instruction& instruction = code_.instructions()[place];
    if (is_rdna4_) {
      rdna4_hazards_->step(*wave_, instruction, effects_at(place));
    } else {
      hazards_->step(*wave_, instruction, effects_at(place));
    }
  }

  const KernelCode& code_;
  const std::vector<Block>& blocks_;
  std::vector<std::vector<std::size_t>> predecessors_;
  bool is_rdna4_;
  std::vector<std::pair<std::size_t, std::size_t>> way_;  // its last part first
  bool is_first_ = true;
  std::size_t ways_ = 0;
  simgpu::Launch launch_;
  simgpu::Workgroup workgroup_;
  std::unique_ptr<simgpu::Wave> wave_ = std::make_unique<simgpu::Wave>();
  std::unique_ptr<simgpu::checks::Hazards> hazards_ = std::make_unique<simgpu::checks::Hazards>();
  std::unique_ptr<simgpu::checks::Rdna4Hazards> rdna4_hazards_ = std::make_unique<simgpu::checks::Rdna4Hazards>();
};

}  // namespace

std::vector<std::string> static_hazards(std::span<const std::byte> code_object) {
  const auto code = KernelCode::read(code_object);
  if (!code) return {code.error()};
  const auto blocks = analysis::blocks_of(*code);
  if (!blocks) return {blocks.error()};
  return Ways(*code, *blocks).findings();
}

}  // namespace wavejit::tests
