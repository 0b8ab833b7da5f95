// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/key_tensors.h"

#include "codegen/language/lane_place.h"
#include "templates/attention/emit/query.h"
#include "templates/attention_backward/emit/row_store.h"
#include "templates/attention_backward/emit/run_parts.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

using attention::Slice;
using language::Accumulator;
using language::Value;
using language::Values;

namespace {

std::size_t argument_of(int gradient) { return gradient == 0 ? offsetof(Arguments, dv) : offsetof(Arguments, dk); }

}  // namespace

std::size_t KeyTensors::dim_blocks(int gradient) const {
  return static_cast<std::size_t>(dims_of(gradient) / language::wave_shape(kernel_).rows);
}

Slice KeyTensors::keys_of(std::size_t at, int dims, Value* keys, int element_bytes) const {
  return attention::slice_of(kernel_, tensor_fields(at), place_.batch, place_.kv_head, place_.sequence.key_start, keys,
                             dims * element_bytes);
}

// Rows past the end of the keys are zeros; what comes of them is not stored.
KeyTensors::Operands KeyTensors::load(const KeyPlace& place, bool takes_keys, bool takes_values) const {
  const LaneKey own = lane_key(kernel_, place);
  attention::QueryTile as_rows = {};
  as_rows.row = own.key;
  as_rows.lane_group = own.lane_group;
  as_rows.query_sign = place.sign;
  const auto load = [&](std::size_t at, int dims) {
    return attention::load_query(
        kernel_, dims, keys_of(at, dims, place.sequence.key_length, attention::bytes_of(spec_.dtype)), as_rows);
  };
  const Values k = takes_keys ? load(offsetof(Arguments, k), spec_.head_dim_qk) : Values();
  const Values v = takes_values ? load(offsetof(Arguments, v), spec_.head_dim_v) : Values();
  Operands operands = {.keys = attention::query_operands(kernel_, as_rows, matrix_, k), .values = {}};
  for (Value* dwords : v) operands.values.push_back(matrix_.operand_b(dwords, language::KOrder::contiguous));
  return operands;
}

// f32 gradients as a call before left them; nothing, which reads as zeros, where none did.
Slice KeyTensors::before(int gradient) const {
  Value* keys = kernel_.ir().CreateAnd(place_.keys_of_tensor, dk_dv_before());
  return keys_of(argument_of(gradient), dims_of(gradient), keys, sizeof(float));
}
Value* KeyTensors::dk_dv_before() const { return kernel_.argument_i32(offsetof(Arguments, dk_dv_before)); }
Value* KeyTensors::are_before() const { return kernel_.ir().CreateICmpNE(dk_dv_before(), kernel_.constant(0)); }

void KeyTensors::put_before(int gradient, std::size_t first) const {
  const RunParts parts(kernel_, spec_, place_);
  const Slice slice = before(gradient);
  for (const KeyPlace& place : places_) {
    const LaneKey own = lane_key(kernel_, place);
    const std::size_t dims = dim_blocks(gradient);
    parts.put(load_rows(kernel_, slice, own.key, own.lane_group, matrix_.accumulator_layout(), dims), first);
    first += dims;
  }
}

// Keys that key_lengths cuts get zeros: rows do not see them.
void KeyTensors::store(int gradient, std::span<Accumulator> all_sums, std::size_t first, Value* factor) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const bool several_runs = spec_.runs == Runs::several;
  const Slice slice = keys_of(argument_of(gradient), dims_of(gradient), place_.keys_of_tensor, gradient_bytes(spec_));
  for (const KeyPlace& place : places_) {
    const LaneKey own = lane_key(kernel_, place);
    Value* counts = ir.CreateICmpSLT(own.key, place.sequence.key_length);
    const std::span<Accumulator> sums = all_sums.first(dim_blocks(gradient));
    all_sums = all_sums.subspan(sums.size());
    if (several_runs) RunParts(kernel_, spec_, place_).take(sums, first);
    first += sums.size();
    std::vector<Accumulator> earlier;
    if (spec_.gradients_fp32)
      earlier =
          load_rows(kernel_, before(gradient), own.key, own.lane_group, matrix_.accumulator_layout(), sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      Value* all = ir.CreateVectorSplat(static_cast<unsigned>(sums[i].layout.registers()), counts);
      Value* otherwise = earlier.empty() ? matrix_.zeros().value : earlier[i].value;
      // With several runs the sum already contains the earlier gradients.
      if (!earlier.empty() && !several_runs) sums[i].value = ir.CreateFAdd(otherwise, sums[i].value);
      sums[i].value = ir.CreateSelect(all, sums[i].value, otherwise);
    }
    store_rows(kernel_, slice, own.key, own.lane_group, matrix_.element(), spec_.gradients_fp32, sums, factor);
  }
}

}  // namespace wavejit::attention_backward
