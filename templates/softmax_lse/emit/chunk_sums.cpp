// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/emit/chunk_sums.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::softmax_lse {
namespace {

using language::Kernel;
using language::PartStatistics;
using language::running_sums;
using language::SoftmaxState;
using language::Value;
using language::Values;

enum Region : std::uint8_t { maxima, factors, sums, parts, regions };
constexpr int part_bytes = 8;   // a maximum and a sum
constexpr int quad_bytes = 16;  // four numbers

using attention::chunk_tiles;

}  // namespace

ChunkSums::ChunkSums(Kernel& kernel, const language::Softmax& softmax, KeyOrder order, const ChunkPlace& place)
    : kernel_(kernel),
      softmax_(softmax),
      order_(order),
      place_(place),
      plan_(language::wave_shape(kernel)),
      lds_(kernel, plan_.bytes(), regions) {
  llvm::IRBuilder<>& ir = kernel.ir();
  step_ = ir.CreateAnd(place.slot, kernel.constant(chunk_tiles - 1));
  own_ = ir.CreateShl(place.column, 2);
  first_ = ir.CreateShl(ir.CreateSub(place.column, step_), 2);
  half_maxima_ = ir.CreateAdd(ir.CreateMul(kernel.wave(), kernel.constant(plan_.copies_bytes())),
                              ir.CreateMul(place.half, kernel.constant(plan_.row_bytes())));
  wave_sums_ = ir.CreateMul(kernel.wave(), kernel.constant(plan_.sums_bytes()));
  Value* tiles = ir.CreateShl(kernel.constant(1), place.tile_shift);
  const auto at_most = [&](Value* a, int b) {
    return ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a, kernel.constant(b));
  };
  quads_ = ir.CreateLShr(at_most(tiles, chunk_tiles), 2);
  chunks_of_row_ = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umax, ir.CreateUDiv(tiles, kernel.constant(chunk_tiles)),
                                            kernel.constant(1));
}

Value* ChunkSums::tile_maximum(const Scores& tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Values all;
  for (const language::Accumulator& part : tile)
    for (int r = 0; r < part.layout.registers(); ++r)
      all.push_back(ir.CreateExtractElement(part.value, static_cast<std::uint64_t>(r)));
  Value* largest = softmax_.larger(all[0], all[1], all[1]);
  for (std::size_t i = 2; i < all.size(); i += 2) largest = softmax_.larger(largest, all[i], all[i + 1]);
  return softmax_.whole_row(largest, kernel_.constant(minus_infinity));
}

PartStatistics ChunkSums::part_of(const Scores& tile) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto bits = [&](Value* value) { return ir.CreateBitCast(value, kernel_.i32()); };
  const auto four = [&](Region region, Value* offset, int constant) {
    return ir.CreateBitCast(lds_.read(region, quad_bytes, offset, constant), kernel_.vector(kernel_.f32(), 4));
  };
  const auto in_loop = [&](Value* base, Value* quad) { return ir.CreateAdd(base, ir.CreateShl(quad, 4)); };
  const auto more = [&](const Values& at) { return ir.CreateICmpULT(at[0], quads_); };
  Value* own_copy = ir.CreateAdd(half_maxima_, own_);
  Value* chunk_copy = ir.CreateAdd(half_maxima_, first_);

  // The maximum as each tile of the chunk finds it, up to this lane's own tile and to the chunk's end.
  lds_.write(maxima, bits(tile_maximum(tile)), own_copy, plan_.maxima_at());
  language::wait_for_lds(kernel_);
  Value* nothing = kernel_.constant(minus_infinity);
  const Values walked = language::loop_in_phases(
      kernel_, 1, {kernel_.constant(0), nothing, nothing, nothing},
      [&](int, const Values& at) {
        Value* found = four(maxima, in_loop(chunk_copy, at[0]), plan_.maxima_at());
        Value* quad_step = ir.CreateSub(step_, ir.CreateShl(at[0], 2));
        Value* maximum = at[1];
        Value* before = at[2];
        Value* raised_here = at[3];
        for (int each = 0; each < 4; ++each) {
          Value* raised = ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, maximum,
                                                   ir.CreateExtractElement(found, static_cast<std::uint64_t>(each)));
          Value* here = ir.CreateICmpEQ(quad_step, kernel_.constant(each));
          before = ir.CreateSelect(here, maximum, before);
          raised_here = ir.CreateSelect(here, raised, raised_here);
          maximum = ir.CreateSelect(softmax_.grows(maximum, raised), raised, maximum);
        }
        return Values{ir.CreateAdd(at[0], kernel_.constant(1)), maximum, before, raised_here};
      },
      more);
  Value* chunk_maximum = walked[1];
  Value* grows = softmax_.grows(walked[2], walked[3]);
  Value* factor = softmax_.rescale_factor(walked[2], walked[3], grows);
  SoftmaxState state = {.maximum = ir.CreateSelect(grows, walked[3], walked[2]), .sums = softmax_.initial().sums};

  // The tile's own eight sums.
  Scores weights = tile;
  state = softmax_.weigh(state, weights);
  lds_.write(factors, bits(factor), own_copy, plan_.factors_at());
  Value* own_sums = ir.CreateAdd(wave_sums_, own_);
  for (std::size_t j = 0; j < running_sums; ++j) {
    const SumPlace place = sum_place(order_, static_cast<int>(j));
    Value* offset =
        ir.CreateAdd(own_sums, ir.CreateMul(place_.half, kernel_.constant(place.of_half * plan_.row_bytes())));
    lds_.write(sums, bits(state.sums[j]), offset, plan_.sums_at() + (place.fixed * plan_.row_bytes()));
  }
  language::wait_for_lds(kernel_);

  // Added up as a walker of the tiles would. This lane has the four sums of its half, as the canon counts halves.
  Value* chunk_sums =
      ir.CreateAdd(ir.CreateAdd(wave_sums_, first_),
                   ir.CreateMul(place_.half, kernel_.constant(static_cast<int>(running_sums) * plan_.row_bytes())));
  Values initial = {kernel_.constant(0)};
  initial.insert(initial.end(), running_sums, kernel_.constant(0.0F));
  const Values added = language::loop_in_phases(
      kernel_, 1, initial,
      [&](int, const Values& at) {
        Values next = {ir.CreateAdd(at[0], kernel_.constant(1))};
        Value* quad_factors = four(factors, in_loop(chunk_copy, at[0]), plan_.factors_at());
        for (std::size_t j = 0; j < running_sums; ++j) {
          Value* quad =
              four(sums, in_loop(chunk_sums, at[0]), plan_.sums_at() + (static_cast<int>(j) * plan_.row_bytes()));
          Value* sum = at[j + 1];
          for (std::uint64_t each = 0; each < 4; ++each)
            sum = softmax_.accumulated(softmax_.rescaled(sum, ir.CreateExtractElement(quad_factors, each)),
                                       ir.CreateExtractElement(quad, each));
          next.push_back(sum);
        }
        return next;
      },
      more);
  SoftmaxState chunk = {.maximum = chunk_maximum, .sums = {}};
  for (std::size_t j = 0; j < running_sums; ++j) chunk.sums[j] = added[j + 1];
  return {.maximum = chunk_maximum, .sum = softmax_.row_sum(chunk)};
}

PartStatistics ChunkSums::merge_into(const PartStatistics& row, const PartStatistics& part) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto bits = [&](Value* value) { return ir.CreateBitCast(value, kernel_.i32()); };
  Value* own = ir.CreateAdd(ir.CreateMul(kernel_.wave(), kernel_.constant(plan_.parts_bytes())),
                            ir.CreateMul(kernel_.lane(), kernel_.constant(part_bytes)));
  const Values both = {bits(part.maximum), bits(part.sum)};
  Value* pair = llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), 2));
  for (std::uint64_t i = 0; i < both.size(); ++i) pair = ir.CreateInsertElement(pair, both[i], i);
  lds_.write(parts, pair, own, plan_.parts_at());
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);

  Value* first_tile = ir.CreateShl(place_.row, place_.tile_shift);
  const Values merged = language::loop_in_phases(
      kernel_, 1, {kernel_.constant(0), row.maximum, row.sum},
      [&](int, const Values& at) {
        Value* tile = ir.CreateAdd(first_tile, ir.CreateMul(at[0], kernel_.constant(chunk_tiles)));
        Value* wave = ir.CreateLShr(tile, language::wave_shape(kernel_).row_bits());
        Value* column = ir.CreateAnd(tile, kernel_.constant(language::wave_shape(kernel_).rows - 1));
        Value* offset = ir.CreateAdd(ir.CreateMul(wave, kernel_.constant(plan_.parts_bytes())),
                                     ir.CreateMul(column, kernel_.constant(part_bytes)));
        Value* found =
            ir.CreateBitCast(lds_.read(parts, part_bytes, offset, plan_.parts_at()), kernel_.vector(kernel_.f32(), 2));
        const language::MergeWeights weights =
            softmax_.merge_weights(at[1], ir.CreateExtractElement(found, std::uint64_t{0}));
        Value* sum = softmax_.merged(weights, at[2], ir.CreateExtractElement(found, std::uint64_t{1}));
        return Values{ir.CreateAdd(at[0], kernel_.constant(1)), weights.maximum, sum};
      },
      [&](const Values& at) { return ir.CreateICmpULT(at[0], chunks_of_row_); });
  return {.maximum = merged[1], .sum = merged[2]};
}

void ChunkSums::leave_parts() {
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
}

}  // namespace wavejit::softmax_lse
