// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/modifiers.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <bit>
#include <cstdint>
#include <numbers>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/bias.h"
#include "templates/attention/emit/cache_scale.h"
#include "templates/attention/emit/mask.h"
#include "templates/attention/kernel/marked_tile.h"

namespace wavejit::attention {
namespace {

using language::Accumulator;
using language::AccumulatorLayout;
using language::Kernel;
using language::Value;
using language::Values;

constexpr float log2e = std::numbers::log2e_v<float>;
constexpr int keys_per_load = 4;  // of a bias
constexpr int bytes_of_bits = tile_keys / 8;

Value* fused(Kernel& kernel, Value* a, Value* b, Value* c) {
  return kernel.ir().CreateIntrinsic(llvm::Intrinsic::fma, {kernel.f32()}, {a, b, c});
}

Value* wide(Kernel& kernel, Value* value) { return kernel.ir().CreateZExt(value, kernel.i64()); }

// Whether a tile takes its bias by tile: the wave's rows see the tile, and not without a bias.
Value* is_masked(Kernel& kernel, const QueryTile& queries, Value* marked) {
  const Marks marks = marks_of(kernel, queries, marked);
  return kernel.ir().CreateAnd(marks.sees, kernel.ir().CreateNot(marks.whole));
}

}  // namespace

Value* bits_of_mask(Kernel& kernel, const ScoreFields& fields, const QueryTile& queries) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto argument = [&](std::size_t in_scores) { return kernel.argument_i64(fields.scores + in_scores); };
  const auto step = [&](Value* index, std::size_t stride) {
    return ir.CreateMul(wide(kernel, index), argument(stride));
  };
  Value* base = argument(offsetof(ScoreArguments, bias));
  base = ir.CreateAdd(base, step(queries.batch, offsetof(ScoreArguments, bias_batch_stride)));
  return ir.CreateAdd(base, step(queries.query_head, offsetof(ScoreArguments, bias_head_stride)));
}

// Low half: heads of a group stand within 2 GiB (the checks of a call).
Value* ScoreModifiers::bias_head_stride() const {
  return kernel_.argument_i32(field(offsetof(ScoreArguments, bias_head_stride)));
}

// The rows of this sequence for its batch and head. A row is as long as the longest sequence's, rounded up to what one
// load takes; what a tile reads beyond it belongs to hidden keys.
language::Buffer ScoreModifiers::bias_buffer() const {
  constexpr int granule = 8;  // elements: rows are padded to it
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto step = [&](Value* index, Value* stride) { return ir.CreateMul(wide(kernel_, index), stride); };
  const auto argument = [&](std::size_t in_scores) { return kernel_.argument_i64(field(in_scores)); };
  Value* base = argument(offsetof(ScoreArguments, bias));
  base = ir.CreateAdd(base, step(queries_.batch, argument(offsetof(ScoreArguments, bias_batch_stride))));
  base = ir.CreateAdd(base, step(queries_.query_head, argument(offsetof(ScoreArguments, bias_head_stride))));
  base = ir.CreateAdd(base, step(queries_.query_start, wide(kernel_, bias_row_stride_)));
  Value* keys = kernel_.argument_i32(fields_.key_length);
  Value* row_bytes =
      ir.CreateMul(ir.CreateAnd(ir.CreateAdd(keys, kernel_.constant(granule - 1)), kernel_.constant(-granule)),
                   kernel_.constant(bytes_of(bias_type_)));
  Value* other_rows = ir.CreateSub(queries_.query_length, kernel_.constant(1));
  Value* bytes = ir.CreateAdd(ir.CreateMul(other_rows, bias_row_stride_), row_bytes);
  return {kernel_, base, span_of_heads(kernel_, queries_, bytes, bias_head_stride())};
}

ScoreModifiers::ScoreModifiers(Kernel& kernel, const Modifiers& modifiers, DataType bias_type,
                               const ScoreFields& fields, const QueryTile& queries)
    : kernel_(kernel), modifiers_(modifiers), bias_type_(bias_type), fields_(fields), queries_(queries) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (modifiers.has(Modifier::softcap)) {
    // The magnitude of the rate, whatever its sign: scores carry the sign of the scale (query_sign). Finite, so that a
    // score of 0 gives 0.
    Value* rate = kernel.argument_i32(field(offsetof(ScoreArguments, softcap_rate)));
    if (queries.key_scale != nullptr) rate = with_key_scale(kernel, rate, queries.key_scale);
    if (queries.row_scale != nullptr)
      rate = ir.CreateBitCast(ir.CreateFMul(ir.CreateBitCast(rate, kernel.f32()), queries.row_scale), kernel.i32());
    rate = ir.CreateAnd(rate, ir.getInt32(0x7FFFFFFF));
    rate = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, rate, ir.getInt32(0x7F7FFFFF));
    if (queries.scales_in_lanes) rate = language::opaque_in_lanes(kernel, rate);
    cap_rate_ = ir.CreateBitCast(rate, kernel.f32());
    // Sums of integers have no sign of the scale in them.
    if (queries.row_scale != nullptr)
      cap_rate_ = ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, cap_rate_, queries.scale_log2e);
    cap_ = kernel.argument_f32(field(offsetof(ScoreArguments, softcap_log2e)));
    minus_two_cap_ = ir.CreateFMul(cap_, kernel.constant(-2.0F));
  }
  if (modifiers.has(Modifier::alibi)) {
    Value* slope = kernel.argument_i64(field(offsetof(ScoreArguments, alibi)));
    slope = ir.CreateAdd(slope, ir.CreateMul(wide(kernel, queries.batch),
                                             kernel.argument_i64(field(offsetof(ScoreArguments, alibi_batch_stride)))));
    minus_slope_ = minus_slope_log2(kernel, number_of_head(kernel, queries, slope));
    if (queries.group == nullptr) minus_slope_ = kernel.uniform(minus_slope_);
  }
  if (modifiers.has(Modifier::bias)) {
    bias_row_stride_ = kernel.argument_i32(field(offsetof(ScoreArguments, bias_row_stride)));
    bias_ = std::make_unique<language::Buffer>(bias_buffer());
    if (!queries.lanes_made_anew) bias_offset_ = bias_offset();
  }
  if (queries.has_bits) {
    bias_row_stride_ = kernel.argument_i32(field(offsetof(ScoreArguments, bias_row_stride)));
    bits_ = std::make_unique<language::Buffer>(bits_buffer());
    if (!queries.lanes_made_anew) bias_offset_ = bits_offset();
  }
}

language::Buffer ScoreModifiers::bits_buffer() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* blocks = ir.CreateUDiv(ir.CreateAdd(queries_.query_length, kernel_.constant(block_rows - 1)),
                                kernel_.constant(block_rows));
  return {kernel_, bits_of_mask(kernel_, fields_, queries_), ir.CreateMul(blocks, bias_row_stride_)};
}

Value* ScoreModifiers::bits_offset() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* row = lane_place(kernel_, queries_).row;
  Value* of_block = ir.CreateMul(ir.CreateUDiv(row, kernel_.constant(block_rows)), bias_row_stride_);
  Value* in_block = ir.CreateAnd(row, kernel_.constant(block_rows - 1));
  return ir.CreateAdd(of_block, ir.CreateMul(in_block, kernel_.constant(bytes_of_bits)));
}

void ScoreModifiers::apply_masks(Value* marked, const Values& fetched, std::span<Accumulator> scores,
                                 std::size_t first_part) const {
  if (bits_) hide_by_bits(kernel_, queries_, marked, fetched.front(), scores, first_part);
  apply_mask(kernel_, queries_, marked, scores, first_part);
}

Value* ScoreModifiers::softmax_scale() const { return scales() ? kernel_.constant(1.0F) : queries_.scale_log2e; }

Value* ScoreModifiers::bias_offset() const {
  const int group_keys = kernel_.target().row_block;
  llvm::IRBuilder<>& ir = kernel_.ir();
  const LanePlace place = lane_place(kernel_, queries_);
  Value* row = ir.CreateMul(place.row, bias_row_stride_);
  if (queries_.group != nullptr) {
    row = ir.CreateAdd(row, ir.CreateMul(head_of_lane(kernel_, queries_), bias_head_stride()));
    row = ir.CreateSelect(queries_.has_row, row, ir.getInt32(0x80000000));
  }
  return ir.CreateAdd(row, ir.CreateMul(place.lane_group, kernel_.constant(group_keys * bytes_of(bias_type_))));
}

Values ScoreModifiers::fetch(Value* marked) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (!bits_ && !bias_) return {};
  Value* tile = tile_of(kernel_, queries_, marked);
  if (bits_)
    return {bits_->load(bytes_of_bits, bias_offset_ ? bias_offset_ : bits_offset(),
                        ir.CreateMul(tile, kernel_.constant(block_rows * bytes_of_bits)))};
  Value* offset = bias_offset_ ? bias_offset_ : bias_offset();
  // What nobody adds is not read: pipelines count loads, so that there is one, which touches no memory.
  if (queries_.bias_by_tile)
    offset = ir.CreateSelect(is_masked(kernel_, queries_, marked), offset, ir.getInt32(language::far_outside));
  const int element_bytes = bytes_of(bias_type_);
  Value* tile_offset = ir.CreateMul(tile, kernel_.constant(tile_keys * element_bytes));
  // Four consecutive keys stand in four consecutive registers; the next four are the other lane group's, or, where a
  // lane holds blocks of eight, its own.
  const targets::WaveShape wave = language::wave_shape(kernel_);
  const AccumulatorLayout layout = {
      .rows = wave.rows, .columns = wave.rows, .wave_size = wave.lanes, .row_block = kernel_.target().row_block};
  Values loaded;
  for (int part = 0; part < tile_keys; part += layout.rows) {
    for (int r = 0; r < layout.registers(); r += keys_per_load) {
      const int key = part + layout.row_of_register(r);
      loaded.push_back(bias_->load(keys_per_load * element_bytes,
                                   ir.CreateAdd(offset, kernel_.constant(key * element_bytes)), tile_offset));
    }
  }
  return loaded;
}

Value* ScoreModifiers::biased(const Values& fetched, std::size_t part, int r, Value* limit, Value* x) const {
  return with_bias(kernel_, bias_of(fetched, part, r), limit, x);
}

Value* ScoreModifiers::sloped(Value* distance, int key, Value* x) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* keys = key == 0 ? distance : ir.CreateFAdd(distance, kernel_.constant(static_cast<float>(key)));
  return fused(kernel_, ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, keys), minus_slope_, x);
}

// In whole tiles a bias is 0, and x + 0 is x.
void ScoreModifiers::apply_bias_by_tile(Value* marked, const Values& fetched, std::span<Accumulator> scores,
                                        std::size_t first_part) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Values values;
  for (const Accumulator& part : scores) values.push_back(part.value);
  values = language::if_uniform(
      kernel_, is_masked(kernel_, queries_, marked), language::Likelihood::even, values, [&](const Values& before) {
        Value* limit = limit_of_bias(kernel_, bias_type_, language::opaque_constant);
        Values after;
        for (std::size_t part = 0; part < before.size(); ++part) {
          Value* with = before[part];
          for (int r = 0; r < scores[part].layout.registers(); ++r) {
            Value* x = ir.CreateExtractElement(before[part], r);
            with = ir.CreateInsertElement(with, biased(fetched, first_part + part, r, limit, x), r);
          }
          after.push_back(with);
        }
        return after;
      });
  for (std::size_t part = 0; part < scores.size(); ++part) scores[part].value = values[part];
}

Value* ScoreModifiers::bias_of(const Values& fetched, std::size_t part, int r) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto loads_of_part = static_cast<std::size_t>(language::wave_shape(kernel_).registers() / keys_per_load);
  Value* four = fetched[part * loads_of_part + static_cast<std::size_t>(r / keys_per_load)];
  if (bias_type_ == DataType::fp32)
    return ir.CreateBitCast(ir.CreateExtractElement(four, static_cast<std::uint64_t>(r % 4)), kernel_.f32());
  if (bias_type_ == DataType::fp16) {
    llvm::Type* half = llvm::Type::getHalfTy(kernel_.context());
    Value* elements = ir.CreateBitCast(four, kernel_.vector(half, 4));
    return ir.CreateFPExt(ir.CreateExtractElement(elements, static_cast<std::uint64_t>(r % 4)), kernel_.f32());
  }
  Value* dword = ir.CreateExtractElement(four, static_cast<std::uint64_t>(r % 4 / 2));
  return language::float_of_bf16(kernel_, dword, r % 2);
}

// As rocMLIR has it: scale · score + bias in f32, rounded to fp16 once; then a power of two.
Value* ScoreModifiers::rounded_to_half(Value* score, Value* bias) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* natural = ir.CreateFMul(score, queries_.natural_scale);
  if (bias != nullptr) natural = ir.CreateFAdd(natural, bias);
  Value* half = ir.CreateFPTrunc(natural, llvm::Type::getHalfTy(kernel_.context()));
  return ir.CreateFMul(ir.CreateFPExt(half, kernel_.f32()), kernel_.constant(log2e));
}

void ScoreModifiers::apply(Value* marked, const Values& fetched, std::span<Accumulator> scores,
                           std::size_t first_part) const {
  if (!scales()) {
    apply_masks(marked, fetched, scores, first_part);
    return;
  }
  llvm::IRBuilder<>& ir = kernel_.ir();
  const AccumulatorLayout& layout = scores.front().layout;
  // How far the first key of the lane's group stands from the diagonal; exact as a float below 2²⁴.
  Value* distance = nullptr;
  if (modifiers_.has(Modifier::alibi)) {
    const LanePlace place = lane_place(kernel_, queries_);
    Value* tile = tile_of(kernel_, queries_, marked);
    Value* key = ir.CreateAdd(ir.CreateMul(tile, kernel_.constant(tile_keys)),
                              ir.CreateMul(place.lane_group, kernel_.constant(layout.row_block)));
    distance = ir.CreateSIToFP(ir.CreateSub(ir.CreateSub(key, queries_.diagonal_offset), place.row), kernel_.f32());
  }
  const bool adds_bias = modifiers_.has(Modifier::bias) && queries_.natural_scale == nullptr && !queries_.bias_by_tile;
  Value* limit = adds_bias ? limit_of_bias(kernel_, bias_type_, language::opaque_constant) : nullptr;
  const auto key_of = [&](std::size_t part, int r) {
    return static_cast<int>(first_part + part) * layout.rows + layout.row_of_register(r);
  };
  for (std::size_t part = 0; part < scores.size(); ++part) {
    Value* modified = scores[part].value;
    for (int r = 0; r < layout.registers(); ++r) {
      Value* x = ir.CreateExtractElement(scores[part].value, r);
      if (modifiers_.has(Modifier::softcap)) {
        Value* power = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel_.f32()}, {ir.CreateFMul(x, cap_rate_)});
        Value* reciprocal = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_rcp, {kernel_.f32()},
                                               {ir.CreateFAdd(power, kernel_.constant(1.0F))});
        x = fused(kernel_, reciprocal, minus_two_cap_, cap_);
      } else if (queries_.natural_scale != nullptr) {
        x = rounded_to_half(x, modifiers_.has(Modifier::bias) ? bias_of(fetched, first_part + part, r) : nullptr);
      } else {
        x = ir.CreateFMul(x, queries_.scale_log2e);
      }
      if (adds_bias) x = biased(fetched, first_part + part, r, limit, x);
      if (distance != nullptr && !queries_.bias_by_tile) x = sloped(distance, key_of(part, r), x);
      modified = ir.CreateInsertElement(modified, x, r);
    }
    scores[part].value = modified;
  }
  if (queries_.bias_by_tile) {
    apply_bias_by_tile(marked, fetched, scores, first_part);
    for (std::size_t part = 0; distance != nullptr && part < scores.size(); ++part) {
      Value* modified = scores[part].value;
      for (int r = 0; r < layout.registers(); ++r) {
        Value* x = ir.CreateExtractElement(scores[part].value, r);
        modified = ir.CreateInsertElement(modified, sloped(distance, key_of(part, r), x), r);
      }
      scores[part].value = modified;
    }
  }
  apply_masks(marked, fetched, scores, first_part);
}

}  // namespace wavejit::attention
