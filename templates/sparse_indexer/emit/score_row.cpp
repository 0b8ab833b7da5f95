// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/emit/score_row.h"

#include <algorithm>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/lane_place.h"

namespace wavejit::sparse_indexer {

using language::Accumulator;
using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

Value* tiles_of(Kernel& kernel, Value* keys) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateLShr(ir.CreateAdd(keys, kernel.constant(tile_keys - 1)), tile_bits);
}

Value* widened(Kernel& kernel, const ScoresKernel& spec, Value* stored) {
  if (!spec.widens()) return stored;
  constexpr auto type = language::ByteElement::e4m3;
  constexpr auto element = targets::Element::bf16;
  // With three blocks of heads and more some values move to registers of accumulation. One that was written by halves
  // must not do so at once, which the backend does not know: there both halves are written by one instruction.
  const bool by_halves = spec.blocks <= 2;
  Values dwords;
  for (std::uint64_t dword = 0; dword < 2; ++dword)
    for (int half = 0; half < 2; ++half) {
      Value* four = kernel.ir().CreateExtractElement(stored, dword);
      if (by_halves) {
        dwords.push_back(language::widen_bytes(kernel, four, half, type, element));
        continue;
      }
      const auto [first, second] = language::floats_of_bytes(kernel, four, half, type);
      dwords.push_back(language::pack_exact(kernel, first, second, element));
    }
  return language::gather_dwords(kernel, dwords);
}

ScoreRow::ScoreRow(Kernel& kernel, const ScoresKernel& spec)
    : kernel_(kernel),
      spec_(spec),
      unit_(kernel, block_heads, tile_keys,
            spec.type == DataType::fp16 ? targets::Element::fp16 : targets::Element::bf16) {}

void ScoreRow::place(Value* batch, Value* row, Value* exists) {
  batch_ = batch;
  row_ = row;
  half_ = language::group_of_lane(kernel_, kernel_.lane());
  column_ = language::row_of_lane(kernel_, kernel_.lane());
  seen_ = keys_of_row(kernel_, offsetof(ScoresArguments, rows), batch_, row_);
  first_seen_ = ir().CreateLShr(seen_.begin, tile_bits);
  behind_seen_ =
      ir().CreateSelect(ir().CreateICmpSLT(seen_.begin, seen_.end), tiles_of(kernel_, seen_.end), first_seen_);
  Value* row_of_scores = moved(kernel_, argument(offsetof(ScoresArguments, scores)), batch_,
                               argument(offsetof(ScoresArguments, scores_batch_stride)));
  row_of_scores = moved(kernel_, row_of_scores, row_, argument(offsetof(ScoresArguments, scores_row_stride)));
  Value* keys = kernel_.argument_i32(offsetof(ScoresArguments, rows.seen.key_length));
  if (exists != nullptr) keys = ir().CreateSelect(exists, keys, kernel_.constant(0));
  scores_.emplace(kernel_, row_of_scores, ir().CreateShl(keys, 2));
}

void ScoreRow::load() {
  Value* heads = kernel_.argument_i32(offsetof(ScoresArguments, heads));
  Value* stride = kernel_.argument_i32(offsetof(ScoresArguments, queries_head_stride));
  Value* base = moved(kernel_, argument(offsetof(ScoresArguments, queries)), batch_,
                      argument(offsetof(ScoresArguments, queries_batch_stride)));
  base = moved(kernel_, base, row_, argument(offsetof(ScoresArguments, queries_row_stride)));
  const Buffer queries(kernel_, base, language::slice_bytes(kernel_, heads, stride, stored_bytes(spec_, row_bytes)));
  const int bytes = stored_bytes(spec_, load_bytes);
  Value* lane = ir().CreateAdd(ir().CreateMul(column_, stride), ir().CreateShl(half_, stored_bits(spec_)));
  for (int block = 0; block < spec_.blocks; ++block)
    for (std::size_t step = 0; step < steps; ++step) {
      Value* at = ir().CreateAdd(lane, kernel_.constant(static_cast<int>(step) * stored_bytes(spec_, step_bytes)));
      Value* stored = queries.load(bytes, at, ir().CreateMul(stride, kernel_.constant(block * block_heads)));
      queries_.push_back(widened(kernel_, spec_, stored));
    }
  load_weights(heads);
}

// The head of lane group h and register r: 32 · block + 8 ⌊r / 4⌋ + 4 h + r mod 4.
void ScoreRow::load_weights(Value* heads) {
  Value* base = moved(kernel_, argument(offsetof(ScoresArguments, weights)), batch_,
                      argument(offsetof(ScoresArguments, weights_batch_stride)));
  base = moved(kernel_, base, row_, argument(offsetof(ScoresArguments, weights_row_stride)));
  const Buffer weights(kernel_, base, ir().CreateShl(heads, 2));
  const language::AccumulatorLayout layout = unit_.accumulator_layout();
  Value* of_half = ir().CreateMul(half_, kernel_.constant(layout.row_block));
  const int registers = layout.registers();
  for (int block = 0; block < spec_.blocks; ++block)
    for (int r = 0; r < registers; r += layout.row_block) {
      Value* head = ir().CreateAdd(of_half, kernel_.constant((block * block_heads) + layout.row_of_register(r)));
      Value* at = ir().CreateShl(head, 2);
      Value* zero = kernel_.constant(0);
      if (!spec_.cut) {
        Value* four = weights.load(load_bytes, at, zero);
        for (std::uint64_t each = 0; each < 4; ++each)
          weights_.push_back(ir().CreateBitCast(ir().CreateExtractElement(four, each), kernel_.f32()));
        continue;
      }
      for (int each = 0; each < layout.row_block; ++each) {
        Value* one = weights.load(4, ir().CreateAdd(at, kernel_.constant(4 * each)), zero);
        weights_.push_back(ir().CreateBitCast(one, kernel_.f32()));
        if (block + 1 == spec_.blocks)
          exists_.push_back(ir().CreateICmpSLT(ir().CreateAdd(head, kernel_.constant(each)), heads));
      }
    }
}

void ScoreRow::multiply_step(const KeyHalf& key, std::size_t block, std::size_t step, Accumulator& product) {
  const language::OperandB keys = unit_.operand_b(key[step], language::KOrder::contiguous);
  const language::OperandA heads = unit_.operand_a(queries_[(block * steps) + step], language::KOrder::contiguous);
  product = unit_.mma(heads, keys, product);
}

std::vector<Accumulator> ScoreRow::multiply(const KeyHalf& key) {
  std::vector<Accumulator> products(blocks(), unit_.zeros());
  for (std::size_t step = 0; step < steps; ++step)
    for (std::size_t block = 0; block < blocks(); ++block) multiply_step(key, block, step, products[block]);
  return products;
}

// Compares, choices and sums of a few heads side by side: each would wait for the one before it.
Value* ScoreRow::with_heads(Value* sum, const Accumulator& product, std::size_t block, int first, int count) {
  constexpr int side_by_side = 4;
  Value* zero = kernel_.constant(0.0F);
  const int registers = unit_.accumulator_layout().registers();
  for (int from = first; from < first + count; from += side_by_side) {
    const int to = std::min(from + side_by_side, first + count);
    Values products;
    Values hidden;
    for (int r = from; r < to; ++r) {
      products.push_back(ir().CreateExtractElement(product.value, static_cast<std::uint64_t>(r)));
      hidden.push_back(ir().CreateFCmpOLT(products.back(), zero));
      if (spec_.cut && block + 1 == blocks())
        hidden.back() = ir().CreateOr(hidden.back(), ir().CreateNot(exists_[static_cast<std::size_t>(r)]));
    }
    for (std::size_t each = 0; each < products.size(); ++each)
      products[each] = ir().CreateSelect(hidden[each], zero, products[each]);
    for (int r = from; r < to; ++r) {
      Value* weight = weights_[(block * static_cast<std::size_t>(registers)) + static_cast<std::size_t>(r)];
      sum = ir().CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()},
                                 {products[static_cast<std::size_t>(r - from)], weight, sum});
    }
  }
  return sum;
}

Value* ScoreRow::of_both_lanes(Value* sum) {
  const auto [low, high] = language::both_halves(kernel_, sum);
  return ir().CreateFAdd(low, high);
}

Value* ScoreRow::sum_of(const std::vector<Accumulator>& products) {
  Value* sum = kernel_.constant(0.0F);
  for (std::size_t block = 0; block < blocks(); ++block)
    sum = with_heads(sum, products[block], block, 0, unit_.accumulator_layout().registers());
  return of_both_lanes(sum);
}

Value* ScoreRow::multiplied_sum_of(const KeyHalf& key) {
  const int registers = unit_.accumulator_layout().registers();
  const int of_step = registers / static_cast<int>(steps);
  Value* sum = kernel_.constant(0.0F);
  Accumulator before = unit_.zeros();
  for (std::size_t block = 0; block < blocks(); ++block) {
    Accumulator product = unit_.zeros();
    for (std::size_t step = 0; step < steps; ++step) {
      multiply_step(key, block, step, product);
      if (block > 0) sum = with_heads(sum, before, block - 1, static_cast<int>(step) * of_step, of_step);
    }
    before = product;
  }
  return of_both_lanes(with_heads(sum, before, blocks() - 1, 0, registers));
}

void ScoreRow::store(Value* tile, Value* score) {
  Value* key = ir().CreateAdd(ir().CreateShl(tile, tile_bits), column_);
  Value* seen = ir().CreateAnd(ir().CreateICmpSGE(key, seen_.begin), ir().CreateICmpSLT(key, seen_.end));
  Value* bits = ir().CreateSelect(seen, ir().CreateBitCast(score, kernel_.i32()), ir().getInt32(minus_infinity_bits));
  Value* first = ir().CreateICmpEQ(half_, kernel_.constant(0));
  scores_->store(bits, ir().CreateSelect(first, ir().CreateShl(key, 2), ir().getInt32(nowhere)), kernel_.constant(0));
}

void ScoreRow::fill(Value* from, Value* to) {
  language::if_uniform(kernel_, ir().CreateICmpSLT(from, to), language::Likelihood::even, [&] {
    Value* behind = ir().CreateShl(to, tile_bits);
    language::loop_in_phases(
        kernel_, 1, {from},
        [&](int, const Values& at) {
          Value* key = ir().CreateAdd(ir().CreateShl(at[0], tile_bits), kernel_.lane());
          Value* offset =
              ir().CreateSelect(ir().CreateICmpSLT(key, behind), ir().CreateShl(key, 2), ir().getInt32(nowhere));
          scores_->store(ir().getInt32(minus_infinity_bits), offset, kernel_.constant(0));
          return Values{ir().CreateAdd(at[0], kernel_.constant(2))};
        },
        [&](const Values& at) { return ir().CreateICmpSLT(at[0], to); });
  });
}

}  // namespace wavejit::sparse_indexer
