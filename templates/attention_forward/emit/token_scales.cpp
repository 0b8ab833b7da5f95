// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/token_scales.h"

#include <bit>

#include "codegen/language/cross_lane.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/unseen_keys.h"
#include "templates/attention_forward/kernel/token_scale_arguments.h"

namespace wavejit::attention_forward {

using language::Accumulator;
using language::Kernel;
using language::Value;
using language::Values;

namespace {

attention::Slice scales_of(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                           const attention::TensorFields& fields) {
  if (spec.paged) return attention::cache_of(kernel, fields, workgroup.kv_head);
  return attention::slice_of(kernel, fields, workgroup.batch, workgroup.kv_head, workgroup.first_slot,
                             workgroup.key_length, sizeof(float));
}

// Accumulators whose registers the lanes of a row have one each.
int accumulators_of_row(const language::AccumulatorLayout& layout) {
  return language::lanes_of_row / layout.registers();
}

// The key of the lane's half: register r of the first accumulator for lane r of each row, then those of the next one.
Value* key_of_lane(Kernel& kernel, const language::AccumulatorLayout& layout) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (language::lanes_of_row % layout.registers() != 0)
    kernel.refuse("rows of lanes that no number of accumulators fills");
  Value* reg = ir.CreateAnd(kernel.lane(), kernel.constant(layout.registers() - 1));
  Value* in_block = ir.CreateAnd(reg, kernel.constant(layout.row_block - 1));
  Value* block = ir.CreateSub(reg, in_block);
  Value* row = ir.CreateAdd(ir.CreateMul(block, kernel.constant(layout.groups())), in_block);
  row = ir.CreateAdd(row,
                     ir.CreateMul(language::group_of_lane(kernel, kernel.lane()), kernel.constant(layout.row_block)));
  if (accumulators_of_row(layout) == 1) return row;
  Value* of_row = ir.CreateAnd(kernel.lane(), kernel.constant(language::lanes_of_row - 1));
  Value* accumulator = ir.CreateUDiv(of_row, kernel.constant(layout.registers()));
  return ir.CreateAdd(row, ir.CreateMul(accumulator, kernel.constant(layout.rows)));
}

}  // namespace

TokenScales::TokenScales(Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
                         const language::AccumulatorLayout& layout)
    : kernel_(kernel),
      layout_(layout),
      pages_(attention::pages_of(kernel, spec.key_layout(), workgroup.keys())),
      tile_pages_(attention::tile_pages_of(kernel, spec.key_layout(), workgroup.keys())),
      slices_{scales_of(kernel, spec, workgroup, k_token_fields), scales_of(kernel, spec, workgroup, v_token_fields)},
      key_(key_of_lane(kernel, layout)) {
  if (spec.pipeline != Pipeline::dualwave) return;
  for (std::size_t tensor = 0; tensor < slices_.size(); ++tensor)
    folded_offsets_[tensor] = folded_offset(slices_[tensor]);
}

Values TokenScales::fetch(Value* tile, Value* unseen) const {
  Values in_flight(slices_.size() * parts);
  load(tile, in_flight, unseen);
  return in_flight;
}

Value* TokenScales::folded_offset(const attention::Slice& slice) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr unsigned row_bits = std::bit_width(language::lanes_of_row - 1U);
  Value* second = ir.CreateAnd(ir.CreateLShr(kernel_.lane(), row_bits), kernel_.constant(1));
  Value* key = ir.CreateAdd(key_, ir.CreateMul(second, kernel_.constant(layout_.rows)));
  return ir.CreateMul(key, slice.row_stride);
}

// The tile begins within the sequence, and so does the uniform offset.
Value* TokenScales::fetch_folded(Of tensor, Value* tile, const attention::TilePages::Place& place,
                                 Value* unseen) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto number = static_cast<std::size_t>(tensor);
  const attention::Slice& slice = slices_[number];
  Value* offset = attention::offset_of_seen(kernel_, folded_offsets_[number], unseen, slice.row_stride);
  if (tile_pages_)
    return ir.CreateBitCast(
        tile_pages_->rows(slice, sizeof(float), place).load(sizeof(float), offset, kernel_.constant(0)), kernel_.f32());
  Value* begin = ir.CreateMul(tile, ir.CreateMul(slice.row_stride, kernel_.constant(tile_keys)));
  return ir.CreateBitCast(slice.buffer.load(sizeof(float), offset, begin), kernel_.f32());
}

Values TokenScales::unfolded(Value* folded) const {
  const auto [first, second] = language::of_both_rows(kernel_, folded);
  return {first, second};
}

Values TokenScales::start(Value* tile, Value* unseen) const {
  Values in_flight(slices_.size() * parts);
  if (pages_) in_flight.push_back(pages_->entries(tile));
  load(tile, in_flight, unseen);
  return in_flight;
}

Values TokenScales::advance(Value* next, Values& in_flight) const {
  Values scales;
  for (std::size_t i = 0; i < slices_.size() * parts; ++i) scales.push_back(language::moved(kernel_, in_flight[i]));
  load(next, in_flight);
  return scales;
}

void TokenScales::load(Value* tile, Values& in_flight, Value* unseen) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  for (std::size_t part = 0; part < parts; ++part) {
    const int keys_of_part = accumulators_of_row(layout_) * layout_.rows;
    Value* in_tile = ir.CreateAdd(key_, kernel_.constant(static_cast<int>(part) * keys_of_part));
    Value* key = in_tile;
    std::optional<attention::KeyPages::KeyPlace> place;
    if (pages_) {
      place = pages_->place_of_any_key(tile, in_flight.back(), key);
    } else {
      // Lanes count from the sequence's key 0: behind its last one a uniform offset would stand outside.
      key = ir.CreateAdd(key, ir.CreateMul(tile, kernel_.constant(tile_keys)));
    }
    for (std::size_t tensor = 0; tensor < slices_.size(); ++tensor) {
      const attention::Slice& slice = slices_[tensor];
      Value* of_values = tensor == static_cast<std::size_t>(Of::values) ? unseen : nullptr;
      Value* loaded = nullptr;
      if (place) {
        attention::KeyPages::KeyPlace seen = *place;
        seen.exists = attention::and_seen(kernel_, seen.exists, of_values, in_tile);
        loaded = language::load_lanes(kernel_, pages_->row(slice, seen, kernel_.constant(0)), sizeof(float));
      } else {
        Value* offset = ir.CreateMul(key, slice.row_stride);
        if (of_values != nullptr)
          offset = ir.CreateSelect(ir.CreateICmpUGE(in_tile, of_values), offset, ir.getInt32(language::far_outside));
        loaded = slice.buffer.load(sizeof(float), offset, kernel_.constant(0));
      }
      in_flight[(tensor * parts) + part] = ir.CreateBitCast(loaded, kernel_.f32());
    }
  }
  if (pages_) in_flight.back() = pages_->entries(ir.CreateAdd(tile, kernel_.constant(1)));
}

void TokenScales::scale_scores(const Values& scales, std::span<Accumulator> scores) const {
  scale(std::span(scales).first(parts), scores);
}

void TokenScales::scale_weights(const Values& scales, std::span<Accumulator> weights) const {
  scale(std::span(scales).subspan(parts, parts), weights);
}

Values TokenScales::of_values(const Values& scales) const {
  return {scales.begin() + parts, scales.begin() + (2 * parts)};
}

Value* TokenScales::scaled(const Values& of_values, int part, int r, Value* weight) const {
  return kernel_.ir().CreateFMul(weight,
                                 language::of_lane_in_row(kernel_, of_values[static_cast<std::size_t>(part)], r));
}

void TokenScales::scale(std::span<Value* const> scales, std::span<Accumulator> numbers) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int registers = layout_.registers();
  for (int each = 0; each < static_cast<int>(numbers.size()) * registers; ++each) {
    Value*& all = numbers[static_cast<std::size_t>(each / registers)].value;
    const int r = each % registers;
    Value* scale = scales[static_cast<std::size_t>(each / language::lanes_of_row)];
    Value* product = ir.CreateFMul(ir.CreateExtractElement(all, r),
                                   language::of_lane_in_row(kernel_, scale, each % language::lanes_of_row));
    all = ir.CreateInsertElement(all, product, r);
  }
}

}  // namespace wavejit::attention_forward
