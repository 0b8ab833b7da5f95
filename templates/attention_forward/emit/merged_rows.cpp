// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/merged_rows.h"

#include <llvm/IR/InlineAsm.h>

#include <algorithm>
#include <limits>

#include "codegen/language/control.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/tiles_lines.h"
#include "templates/attention_forward/emit/split.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using language::Accumulator;
using language::Kernel;
using language::Likelihood;
using language::MergeWeights;
using language::PartStatistics;
using language::SoftmaxState;
using language::Value;
using language::Values;
using schedule::Half;

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// Places in what the loop carries where R stands in registers; O follows.
constexpr std::size_t maximum_place = 0;
constexpr std::size_t sum_place = 1;
constexpr std::size_t aside_place = 2;
constexpr std::size_t output_place = 3;

constexpr int quad = 4;
// Dwords of a block of O a lane.
int block_dwords(const Kernel& kernel) { return language::wave_shape(kernel).registers(); }
std::size_t quads_of_block(const Kernel& kernel) { return static_cast<std::size_t>(block_dwords(kernel) / quad); }

Value* quad_of(Kernel& kernel, Value* block, std::size_t which) {
  const int first = static_cast<int>(which) * quad;
  return kernel.ir().CreateShuffleVector(block, {first, first + 1, first + 2, first + 3});
}
// In memory; slot 0 has the statistics.
int slot_of(const Kernel& kernel, std::size_t block, std::size_t which) {
  return static_cast<int>(1 + (block * quads_of_block(kernel)) + which);
}
Value* block_of(Kernel& kernel, std::span<Value* const> quads) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* all = llvm::PoisonValue::get(kernel.vector(kernel.f32(), block_dwords(kernel)));
  for (int each = 0; each < block_dwords(kernel); ++each)
    all = ir.CreateInsertElement(
        all, ir.CreateExtractElement(quads[static_cast<std::size_t>(each / quad)], each % quad), each);
  return all;
}

}  // namespace

class MergedRows::Memory {
 public:
  explicit Memory(const MergedRows& rows) : rows_(rows) {
    if (rows.private_memory_) place_ = rows.private_memory_->place();
    if (rows.plan_.lds_slots != 0) lds_place_ = rows.lds_->kept_place();
  }
  Value* load(int slot) const {
    return in_lds(slot) ? rows_.lds_->kept(lds_place_, slot)
                        : rows_.private_memory_->load(place_, private_offset(slot), quad);
  }
  void store(int slot, Value* four_dwords) const { store_from(slot, 0, four_dwords); }
  // m and l; what was put aside is of no more use.
  void store_statistics(const Merged& merged) const {
    llvm::IRBuilder<>& ir = rows_.kernel_.ir();
    Value* both = llvm::PoisonValue::get(rows_.kernel_.vector(rows_.kernel_.f32(), 2));
    both = ir.CreateInsertElement(both, merged.maximum, maximum_place);
    both = ir.CreateInsertElement(both, merged.sum, sum_place);
    store_from(0, 0, ir.CreateBitCast(both, rows_.kernel_.vector(rows_.kernel_.i32(), 2)));
  }
  void put_aside(Value* maximum) const { store_from(0, static_cast<int>(aside_place), maximum); }

 private:
  void store_from(int slot, int dword, Value* dwords) const {
    constexpr int dword_bytes = 4;
    if (in_lds(slot)) {
      rows_.lds_->keep(lds_place_, slot, dwords, dword * dword_bytes);
    } else {
      rows_.private_memory_->store(place_, private_offset(slot) + (dword * dword_bytes), dwords);
    }
  }
  bool in_lds(int slot) const { return slot < rows_.plan_.lds_slots; }
  int private_offset(int slot) const { return (slot - rows_.plan_.lds_slots) * MergedRowsPlan::slot_bytes; }

  const MergedRows& rows_;
  Value* place_ = nullptr;
  Value* lds_place_ = nullptr;
};

MergedRows::MergedRows(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan, const Workgroup& workgroup,
                       TileWalk& walk, const language::Softmax& softmax, const LineTiles* lds)
    : kernel_(kernel),
      spec_(spec),
      workgroup_(workgroup),
      walk_(walk),
      softmax_(softmax),
      plan_(merged_rows_plan(spec, kernel.vgpr_budget(), plan)),
      lds_(lds) {
  if (plan_.private_bytes != 0) private_memory_.emplace(kernel, plan_.private_bytes);
  walk.prepare_chunks();
}

Values MergedRows::start() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (in_memory()) {
    Value* several = walk_.several_chunks();
    language::if_uniform(kernel_, several, Likelihood::rarely, [&] {
      const Memory memory(*this);
      Value* zeros = llvm::Constant::getNullValue(kernel_.vector(kernel_.i32(), quad));
      memory.store(0, ir.CreateInsertElement(zeros, ir.CreateBitCast(kernel_.constant(minus_infinity), kernel_.i32()),
                                             std::uint64_t{maximum_place}));
      for (std::size_t block = 0; block < output_blocks(); ++block)
        for (std::size_t each = 0; each < quads_of_block(kernel_); ++each)
          if (is_kept(block, each)) memory.store(slot_of(kernel_, block, each), zeros);
    });
  }
  if (plan_.place != MergedRowsPlan::Place::registers) return {};
  Values carried = {kernel_.constant(minus_infinity), kernel_.constant(0.0F), kernel_.constant(minus_infinity)};
  llvm::Type* block = kernel_.vector(kernel_.f32(), block_dwords(kernel_));
  carried.resize(output_place + output_blocks(), llvm::Constant::getNullValue(block));
  return carried;
}

// A reload of dims that nobody stores would be code without use, which the backend drops: dual-wave kernels keep none,
// since what they read of LDS between two barriers is checked.
bool MergedRows::is_kept(std::size_t block, std::size_t which) const {
  if (spec_.pipeline != Pipeline::dualwave) return true;
  return slot_of(kernel_, block, which) <= kept_slots_of(spec_);
}

MergedRows::Blocks MergedRows::blocks_of(Half half) const {
  const std::size_t middle = output_blocks() / 2;
  return {.first = half == Half::second ? middle : 0, .end = half == Half::first ? middle : output_blocks()};
}

void MergedRows::end_part(const Stop& tile, const Stop& next, SoftmaxState& state, Values& carried) const {
  if (is_one_chunk()) return;
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* ends = walk_.exists_and_begins_chunk(next);
  Values values = {state.maximum};
  const bool in_registers = plan_.place == MergedRowsPlan::Place::registers;
  if (in_registers) values.push_back(carried[aside_place]);
  values = language::if_uniform(kernel_, ends, Likelihood::rarely, values, [&](const Values& before) {
    Value* maximum = before[0];
    if (plan_.place == MergedRowsPlan::Place::workspace) {
      PartRecords(kernel_, spec_, workgroup_, walk_.chunk_of(tile)).store_maximum(maximum);
    } else if (in_memory()) {
      Memory(*this).put_aside(ir.CreateBitCast(maximum, kernel_.i32()));
    }
    Values after = {kernel_.constant(minus_infinity)};
    if (in_registers) after.push_back(maximum);
    return after;
  });
  state.maximum = values[0];
  if (in_registers) carried[aside_place] = values[1];
}

void MergedRows::merge(Half half, bool apart, const Stop& tile, SoftmaxState& state, std::span<Accumulator> outputs,
                       Values& carried) const {
  if (is_one_chunk()) return;
  Values values(state.sums.begin(), state.sums.end());
  for (const Accumulator& output : outputs) values.push_back(output.value);
  values.insert(values.end(), carried.begin(), carried.end());
  const auto give = [&](const Values& from, SoftmaxState& to, std::span<Accumulator> to_outputs, Values& to_carried) {
    auto next = from.begin();
    for (Value*& sum : to.sums) sum = *next++;
    for (Accumulator& output : to_outputs) output.value = *next++;
    to_carried.assign(next, from.end());
  };
  values =
      language::if_uniform(kernel_, walk_.begins_chunk(tile), Likelihood::rarely, values, [&](const Values& before) {
        SoftmaxState part = state;
        std::vector<Accumulator> part_outputs(outputs.begin(), outputs.end());
        Values merged;
        give(before, part, part_outputs, merged);
        absorb(half, apart, tile, nullptr, part, part_outputs, merged);
        Values after(part.sums.begin(), part.sums.end());
        for (const Accumulator& output : part_outputs) after.push_back(output.value);
        after.insert(after.end(), merged.begin(), merged.end());
        return after;
      });
  give(values, state, outputs, carried);
}

void MergedRows::end_chunk(const Stop& tile, SoftmaxState& state, std::span<Accumulator> outputs,
                           Values& carried) const {
  if (is_one_chunk()) return;
  Values values = {state.maximum};
  values.insert(values.end(), state.sums.begin(), state.sums.end());
  for (const Accumulator& output : outputs) values.push_back(output.value);
  values.insert(values.end(), carried.begin(), carried.end());
  const auto give = [&](const Values& from, SoftmaxState& to, std::span<Accumulator> to_outputs, Values& to_carried) {
    auto next = from.begin();
    to.maximum = *next++;
    for (Value*& sum : to.sums) sum = *next++;
    for (Accumulator& output : to_outputs) output.value = *next++;
    to_carried.assign(next, from.end());
  };
  values =
      language::if_uniform(kernel_, walk_.begins_chunk(tile), Likelihood::rarely, values, [&](const Values& before) {
        SoftmaxState part = state;
        std::vector<Accumulator> part_outputs(outputs.begin(), outputs.end());
        Values merged;
        give(before, part, part_outputs, merged);
        absorb(Half::both, false, tile, part.maximum, part, part_outputs, merged);
        Values after = {kernel_.constant(minus_infinity)};
        after.insert(after.end(), part.sums.begin(), part.sums.end());
        for (const Accumulator& output : part_outputs) after.push_back(output.value);
        after.insert(after.end(), merged.begin(), merged.end());
        return after;
      });
  give(values, state, outputs, carried);
}

MergedRows::Merged MergedRows::load(const Memory& memory, const Blocks& blocks) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  llvm::Type* floats = kernel_.vector(kernel_.f32(), quad);
  Value* statistics = ir.CreateBitCast(memory.load(0), floats);
  Merged merged = {.maximum = ir.CreateExtractElement(statistics, maximum_place),
                   .sum = ir.CreateExtractElement(statistics, sum_place),
                   .aside = ir.CreateExtractElement(statistics, aside_place),
                   .quads = {}};
  for (std::size_t block = blocks.first; block < blocks.end; ++block)
    for (std::size_t each = 0; each < quads_of_block(kernel_); ++each)
      merged.quads.push_back(is_kept(block, each) ? ir.CreateBitCast(memory.load(slot_of(kernel_, block, each)), floats)
                                                  : llvm::Constant::getNullValue(floats));
  return merged;
}

MergedRows::Merged MergedRows::carried_part(const Values& carried, const Blocks& blocks) const {
  Merged merged = {
      .maximum = carried[maximum_place], .sum = carried[sum_place], .aside = carried[aside_place], .quads = {}};
  for (std::size_t block = blocks.first; block < blocks.end; ++block)
    for (std::size_t each = 0; each < quads_of_block(kernel_); ++each)
      merged.quads.push_back(quad_of(kernel_, carried[output_place + block], each));
  return merged;
}

// Element by element where another wave's matrix instructions are under way: packed ones would hold them up.
Value* MergedRows::merged(const MergeWeights& weights, Value* earlier, Value* later) const {
  if (spec_.pipeline != Pipeline::interleaved) return softmax_.merged(weights, earlier, later);
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* all = llvm::PoisonValue::get(earlier->getType());
  for (int each = 0; each < quad; ++each)
    all = ir.CreateInsertElement(
        all, softmax_.merged(weights, ir.CreateExtractElement(earlier, each), ir.CreateExtractElement(later, each)),
        each);
  return all;
}

void MergedRows::store_part(Half half, Value* chunk, Value* maximum, Value* sum,
                            std::span<const Accumulator> outputs) const {
  const PartRecords records(kernel_, spec_, workgroup_, chunk);
  const Blocks blocks = blocks_of(half);
  if (maximum != nullptr) records.store_maximum(maximum);
  if (sum != nullptr) records.store_sum(sum);
  const auto store_outputs = [&] {
    for (std::size_t block = blocks.first; block < blocks.end; ++block) records.store_output(block, outputs[block]);
  };
  if (workgroup_.share.has_dims == nullptr) {
    store_outputs();
  } else {
    language::if_uniform(kernel_, workgroup_.share.has_dims, Likelihood::even, store_outputs);
  }
}

// A part of O is not stored where dims are padded, and the sum may take its registers while the last product still
// writes them. From a walk's only tile to here is one wait state less than LLVM counts on its longer way
// (docs/simulated-gpu.md). What stands in assembly it does not count.
SoftmaxState MergedRows::settled(const SoftmaxState& state) const {
  const bool may_be_early = plan_.place == MergedRowsPlan::Place::workspace &&
                            is_padded({spec_.head_dim_qk, spec_.head_dim_v}) &&
                            kernel_.target().matrix_form == targets::MatrixForm::mfma;
  if (!may_be_early) return state;
  SoftmaxState settled = state;
  llvm::Type* type = kernel_.constant(0.0F)->getType();
  auto* wait = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "s_nop 0", "=v,0", true);
  for (Value*& sum : settled.sums) sum = kernel_.ir().CreateCall(wait, {sum});
  return settled;
}

void MergedRows::absorb(Half half, bool apart, const Stop& tile, Value* maximum, SoftmaxState& state,
                        std::span<Accumulator> outputs, Values& carried) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const Blocks blocks = blocks_of(half);
  // l goes with the first half, and R's new maximum with the last: both halves have the same weights.
  Value* sum = half == Half::second ? nullptr : softmax_.row_sum(settled(state));
  if (plan_.place == MergedRowsPlan::Place::workspace) {
    store_part(half, ir.CreateSub(walk_.chunk_of(tile), kernel_.constant(1)), maximum, sum, outputs);
    // The table's clusters are there, though nothing is waited for.
    for (int cluster = 0; apart && cluster < 2; ++cluster) language::barrier(kernel_);
  } else {
    std::optional<Memory> memory;
    if (in_memory()) memory.emplace(*this);
    const Merged before = memory ? load(*memory, blocks) : carried_part(carried, blocks);
    if (apart) language::barrier(kernel_);
    const MergeWeights weights = softmax_.merge_weights(before.maximum, maximum == nullptr ? before.aside : maximum);
    Merged after = before;
    if (sum != nullptr) after.sum = softmax_.merged(weights, before.sum, sum);
    // The second half finds R's maximum as the first one found it.
    if (half != Half::first) after.maximum = weights.maximum;
    for (std::size_t block = blocks.first; block < blocks.end; ++block) {
      Values quads;
      for (std::size_t each = 0; each < quads_of_block(kernel_); ++each)
        quads.push_back(merged(weights, before.quads[((block - blocks.first) * quads_of_block(kernel_)) + each],
                               quad_of(kernel_, outputs[block].value, each)));
      if (!memory) {
        carried[output_place + block] = block_of(kernel_, quads);
        continue;
      }
      for (std::size_t each = 0; each < quads_of_block(kernel_); ++each)
        if (is_kept(block, each))
          memory->store(slot_of(kernel_, block, each),
                        ir.CreateBitCast(quads[each], kernel_.vector(kernel_.i32(), quad)));
    }
    if (memory) {
      memory->store_statistics(after);
    } else {
      carried[maximum_place] = after.maximum;
      carried[sum_place] = after.sum;
    }
    if (apart) language::barrier(kernel_);
  }
  if (sum != nullptr) state.sums.fill(kernel_.constant(0.0F));
  for (std::size_t block = blocks.first; block < blocks.end; ++block)
    outputs[block].value = llvm::Constant::getNullValue(outputs[block].value->getType());
}

std::optional<PartStatistics> MergedRows::finish(const SoftmaxState& state, std::span<Accumulator> outputs,
                                                 const Values& carried) const {
  if (is_one_chunk()) return softmax_.whole_of(state);
  Value* sum = softmax_.row_sum(state);
  if (plan_.place == MergedRowsPlan::Place::workspace) {
    store_part(Half::both, walk_.last_chunk(), state.maximum, sum, outputs);
    return std::nullopt;
  }
  Values values = {state.maximum, sum};
  for (const Accumulator& output : outputs) values.push_back(output.value);
  Value* several = walk_.several_chunks();
  values = language::if_uniform(kernel_, several, Likelihood::rarely, values, [&](const Values& part) {
    const Merged before =
        in_memory() ? load(Memory(*this), blocks_of(Half::both)) : carried_part(carried, blocks_of(Half::both));
    const MergeWeights weights = softmax_.merge_weights(before.maximum, part[0]);
    Values after = {weights.maximum, softmax_.merged(weights, before.sum, part[1])};
    for (std::size_t block = 0; block < outputs.size(); ++block) {
      Values quads;
      for (std::size_t each = 0; each < quads_of_block(kernel_); ++each)
        quads.push_back(merged(weights, before.quads[(block * quads_of_block(kernel_)) + each],
                               quad_of(kernel_, part[2 + block], each)));
      after.push_back(block_of(kernel_, quads));
    }
    return after;
  });
  for (std::size_t block = 0; block < outputs.size(); ++block) outputs[block].value = values[2 + block];
  return PartStatistics{.maximum = values[0], .sum = values[1]};
}

}  // namespace wavejit::attention_forward
