// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/simgpu/semantics/machine.h"

#include <gtest/gtest.h>

#include <random>

#include "isa/instruction_set.h"
#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/device/rooms.h"
#include "simgpu/machine/matrix/matrix.h"
#include "simgpu/machine/vector/vector.h"
#include "targets/targets.h"

namespace wavejit::simgpu::test {

namespace {

bool is_rdna4(std::string_view processor) { return isa::instruction_set(processor) == isa::InstructionSet::rdna4; }
std::string_view features_of(std::string_view processor, unsigned lanes) {
  if (!is_rdna4(processor)) return {};
  return lanes == 64 ? "+real-true16,-wavefrontsize32,+wavefrontsize64" : "+real-true16";
}

}  // namespace

Machine::Machine(std::string_view processor, unsigned lanes)
    : processor_(processor), lanes_(lanes), registry_(std::make_unique<Registry>(*targets::find_target(processor))) {
  if (is_rdna4(processor)) {
    register_rooms(*registry_);
  } else {
    register_vector(*registry_);
    register_matrix(*registry_);
  }
  wave_ = std::make_unique<Wave>();
  const auto own = static_cast<unsigned>(targets::find_target(processor)->wave_size);
  wave_->set_lane_count(lanes != 0 ? lanes : own);
  wave_->set_exec(wave_->all_lanes);
  wave_->mode = 0xf0;  // what clang asks for: nearest even, all denormals kept
  wave_->budget = 1;
}

Machine::~Machine() = default;

const Instruction* Machine::decode(std::string_view text) {
  std::string error;
  code_.push_back(
      std::make_unique<std::vector<std::uint8_t>>(assemble(processor_, text, error, features_of(processor_, lanes_))));
  if (code_.back()->empty()) {
    ADD_FAILURE() << "'" << text << "' does not assemble for " << processor_ << ": " << error;
    return nullptr;
  }
  functions_.push_back(
      decode_function("test", *code_.back(), 0, *Disassembler::for_processor(processor_, lanes_), *registry_));
  const Function& function = *functions_.back();
  for (const auto& [instruction, problem] : function.problems) {
    if (instruction == &function.instructions.back()) continue;  // the guard behind the end
    ADD_FAILURE() << "'" << text << "' for " << processor_ << ": " << problem;
    return nullptr;
  }
  return function.instructions.data();
}

bool Machine::run(std::string_view text) {
  if (decode(text) == nullptr) return false;
  const Function& function = *functions_.back();
  for (std::size_t i = 0; i + 1 < function.instructions.size(); ++i) {
    const Instruction& instruction = function.instructions[i];
    instruction.execute(*wave_, instruction);
  }
  return true;
}

void Machine::fill_random(unsigned first, unsigned count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (unsigned i = first; i < first + count; ++i) {
    for (unsigned lane = 0; lane < lane_places; ++lane) wave_->vgpr[i][lane] = static_cast<std::uint32_t>(random());
  }
}

}  // namespace wavejit::simgpu::test
