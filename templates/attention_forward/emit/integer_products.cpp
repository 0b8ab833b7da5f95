// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/integer_products.h"

#include "codegen/language/control.h"
#include "templates/attention/emit/cache_scale.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention_forward/kernel/integer_arguments.h"

namespace wavejit::attention_forward {

using language::Accumulator;
using language::IntegerSums;
using language::Kernel;
using language::Value;
using language::Values;

namespace {

constexpr std::size_t q_at = integer_scales_at + offsetof(IntegerScales, q);
constexpr std::size_t k_at = integer_scales_at + offsetof(IntegerScales, k);
constexpr int score_blocks = 2;

// A CacheScale is what a RowScale begins with.
static_assert(offsetof(RowScale, head_stride) == offsetof(attention::CacheScale, head_stride));

}  // namespace

IntegerScale integer_scale(Kernel& kernel, const ForwardKernel& spec, const attention::QueryTile& tile,
                           Value* kv_head) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
  const auto stride = [&](std::size_t field) { return kernel.argument_i64(q_at + field); };
  Value* numbers = kernel.argument_i64(q_at + offsetof(RowScale, numbers));
  const Values of_row = language::if_uniform(
      kernel, ir.CreateIsNotNull(numbers), language::Likelihood::even, {llvm::cast<Value>(kernel.constant(1.0F))},
      [&](const Values&) {
        // Rows beyond the last one take its number: nobody sees what comes of it.
        Value* row = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, tile.row,
                                              ir.CreateSub(tile.query_length, kernel.constant(1)));
        Value* head = tile.query_head;
        if (tile.group != nullptr) {
          Value* last = ir.CreateSub(tile.group, kernel.constant(1));
          head = ir.CreateAdd(head, ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, tile.head_in_group, last));
        }
        Value* address =
            ir.CreateAdd(numbers, ir.CreateMul(wide(tile.batch), stride(offsetof(RowScale, batch_stride))));
        address = ir.CreateAdd(address, ir.CreateMul(wide(head), stride(offsetof(RowScale, head_stride))));
        address = ir.CreateAdd(
            address, ir.CreateMul(wide(ir.CreateAdd(row, tile.query_start)), stride(offsetof(RowScale, row_stride))));
        Value* bits = language::load_lanes(kernel, address, sizeof(float));
        return Values{ir.CreateBitCast(bits, kernel.f32())};
      });
  Value* of_keys = spec.token_scales ? nullptr : attention::cache_scale(kernel, k_at, tile.batch, kv_head);
  return {.q = of_row.front(), .k = of_keys};
}

IntegerProducts::IntegerProducts(Kernel& kernel, const ForwardKernel& spec, const attention::QueryTile& tile,
                                 Value* kv_head, Value* key_start, Value* key_length)
    : kernel_(kernel), matrix_(kernel), lane_group_(tile.lane_group) {
  if (!spec.token_scales) return;
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
  const auto stride = [&](std::size_t field) { return kernel.argument_i64(k_at + field); };
  Value* base = kernel.argument_i64(k_at + offsetof(RowScale, numbers));
  base = ir.CreateAdd(base, ir.CreateMul(wide(tile.batch), stride(offsetof(RowScale, batch_stride))));
  base = ir.CreateAdd(base, ir.CreateMul(wide(kv_head), stride(offsetof(RowScale, head_stride))));
  base = ir.CreateAdd(base, ir.CreateMul(wide(key_start), stride(offsetof(RowScale, row_stride))));
  // Low half: a head's scales span less than 2 GiB (the checks of a call).
  row_stride_ = kernel.argument_i32(k_at + offsetof(RowScale, row_stride));
  key_scales_.emplace(kernel, base, language::slice_bytes(kernel, key_length, row_stride_, sizeof(float)));
}

// One load a key: their distance is anybody's.
Values IntegerProducts::fetch(Value* tile) const {
  if (!key_scales_) return {};
  llvm::IRBuilder<>& ir = kernel_.ir();
  const language::AccumulatorLayout layout = matrix_.zeros().layout;
  Value* first = ir.CreateAdd(ir.CreateMul(tile, kernel_.constant(tile_keys)),
                              ir.CreateMul(lane_group_, kernel_.constant(layout.row_block)));
  Value* offset = ir.CreateMul(first, row_stride_);
  Values loaded;
  for (int part = 0; part < score_blocks; ++part)
    for (int r = 0; r < layout.registers(); ++r) {
      const int key = (part * layout.rows) + layout.row_of_register(r);
      Value* at = ir.CreateAdd(offset, ir.CreateMul(row_stride_, kernel_.constant(key)));
      loaded.push_back(ir.CreateBitCast(key_scales_->load(sizeof(float), at, kernel_.constant(0)), kernel_.f32()));
    }
  return loaded;
}

std::vector<Accumulator> IntegerProducts::scores(attention::TileStream& keys, int buffer, const Values& query,
                                                 const Values& fetched) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  std::vector<IntegerSums> sums(score_blocks, matrix_.zeros());
  for (std::size_t block = 0; block < query.size(); ++block)
    for (std::size_t part = 0; part < sums.size(); ++part)
      sums[part] = matrix_.mma(keys.rows(buffer, static_cast<int>(part), static_cast<int>(block)).value, query[block],
                               sums[part]);
  std::vector<Accumulator> scores;
  scores.reserve(sums.size());
  for (const IntegerSums& each : sums) scores.push_back(matrix_.floats(each));
  for (std::size_t i = 0; i < fetched.size(); ++i) {
    Accumulator& part = scores[i / static_cast<std::size_t>(scores.front().layout.registers())];
    const auto r = i % static_cast<std::size_t>(part.layout.registers());
    Value* scaled = ir.CreateFMul(ir.CreateExtractElement(part.value, r), fetched[i]);
    part.value = ir.CreateInsertElement(part.value, scaled, r);
  }
  return scores;
}

}  // namespace wavejit::attention_forward
