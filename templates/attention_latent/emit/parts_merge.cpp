// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/parts_merge.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <bit>
#include <span>

#include "codegen/language/convert.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/parts_chain.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention_latent/emit/rows.h"
#include "templates/attention_latent/emit/workgroup.h"

namespace wavejit::attention_latent {

using language::Buffer;
using language::Element;
using language::Kernel;
using language::Value;
using language::Values;

PartsMerge::PartsMerge(Kernel& kernel, const CombineKernel& spec, Value* scale, const PartsTile& tile, int loads,
                       language::Reach reach)
    : kernel_(kernel),
      ir_(kernel.ir()),
      spec_(spec),
      // Nothing is rescaled here.
      softmax_(kernel, scale, kernel.constant(0.0F)),
      loads_(loads),
      tile_(tile),
      reach_(reach) {
  rows_ = attention::minimum(kernel_, ir_.CreateSub(tile.behind, tile.first), kernel_.constant(wave_rows));
  beside_ = kernel_.uniform(ir_.CreateUDiv(kernel_.constant(combine_threads), rows_));
}

void PartsMerge::merge_from(Value* before) {
  Value* of_wave = ir_.CreateUDiv(tile_.lane, rows_);
  row_of_tile_ = ir_.CreateSub(tile_.lane, ir_.CreateMul(of_wave, rows_));
  part_ = ir_.CreateAdd(before, of_wave);
  Value* row = ir_.CreateAdd(tile_.first, row_of_tile_);
  Value* query = attention::divided(kernel_, row, tile_.multiplier);
  attention::QueryTile tile{};
  tile.query_head = kernel_.constant(0);
  tile.batch = tile_.batch;
  tile.query_start = tile_.sequence.query_start;
  tile.query_length = tile_.sequence.query_length;
  tile.row = query;
  tile.head_in_group = ir_.CreateSub(row, ir_.CreateMul(query, tile_.heads));
  tile.has_row =
      ir_.CreateAnd(ir_.CreateICmpULT(of_wave, beside_), ir_.CreateICmpULT(part_, kernel_.constant(parts())));
  tile.group = tile_.heads;

  // The last row sees the most.
  Value* last_query = attention::divided(kernel_, ir_.CreateSub(ir_.CreateAdd(tile_.first, rows_), kernel_.constant(1)),
                                         tile_.multiplier);
  if (spec_.listed) {
    constexpr attention::QueryFields of_queries = {.query_starts = query_starts_at,
                                                   .query_length = offsetof(Arguments, query_length)};
    Value* of_all = attention::query_of_all(kernel_, of_queries, tile_.batch, tile_.sequence.query_start,
                                            kernel_.uniform(last_query));
    listed_.emplace(kernel_, offsetof(Arguments, list), of_all);
    last_ = last_of_row_ = listed_->last();
  } else {
    constexpr unsigned chunk = attention::chunk_keys;
    last_ = ir_.CreateAShr(last_key(last_query), std::countr_zero(chunk));
    last_of_row_ = ir_.CreateAShr(last_key(query), std::countr_zero(chunk));
  }

  const Buffer records(
      kernel_, records_of(kernel_, spec_.head_dim, spec_.listed, tile_.batch, tile_.sequence.query_start, tile_.first),
      ir_.CreateMul(rows_, record_stride(kernel_, spec_.head_dim, spec_.listed)));
  own_ = ir_.CreateMul(part_, kernel_.constant(loads_));
  own_ = ir_.CreateMul(ir_.CreateAdd(ir_.CreateMul(own_, rows_), row_of_tile_), kernel_.constant(record_load_bytes));
  own_ = ir_.CreateSelect(tile.has_row, own_, ir_.getInt32(nowhere));
  const attention::PartsChain::Source source = {.sees = [&](Value* slot) { return sees(slot); },
                                                .load = [&](Value* slot) { return load(records, slot); }};
  attention::PartsChain chain(kernel_, softmax_, loads_, source);
  const Values merged = chain.merged(kernel_.constant(0), last_);
  store(merged, tile);
}

// That the row may see. −1 or less: none.
Value* PartsMerge::last_key(Value* query) {
  Value* last = ir_.CreateSub(tile_.sequence.key_length, kernel_.constant(1));
  Value* diagonal = ir_.CreateAdd(query, attention::diagonal_offset(kernel_, diagonal_fields, tile_.sequence));
  Value* is_causal = ir_.CreateICmpNE(kernel_.argument_i32(offsetof(Arguments, causal)), kernel_.constant(0));
  return ir_.CreateSelect(is_causal, attention::minimum(kernel_, diagonal, last), last);
}

Value* PartsMerge::zero_dims() { return llvm::Constant::getNullValue(kernel_.vector(kernel_.f32(), load_dims)); }

// A part that the row does not see is an empty one, which changes nothing: nobody reads what stands there.
Value* PartsMerge::sees(Value* slot) { return ir_.CreateICmpSLE(slot, last_of_row_); }

// m and l, then the lane's dims, of a record; zeros where the row does not see it.
Values PartsMerge::load(const Buffer& records, Value* slot) {
  Value* nothing = ir_.CreateSelect(sees(slot), kernel_.constant(0), ir_.getInt32(nowhere));
  Value* own = ir_.CreateOr(own_, nothing);
  // The uniform part stays inside.
  Value* part = attention::minimum(kernel_, slot, last_);
  Value* record = ir_.CreateMul(listed_ ? listed_->place(part) : part,
                                ir_.CreateMul(rows_, kernel_.constant(record_bytes(spec_.head_dim))));
  Value* behind_dims = ir_.CreateAdd(record, ir_.CreateMul(rows_, kernel_.constant(spec_.head_dim * 4)));
  Value* own_statistics = ir_.CreateOr(ir_.CreateMul(row_of_tile_, kernel_.constant(statistics_bytes)), nothing);
  Values loaded = {records.load(statistics_bytes, own_statistics, behind_dims, reach_)};
  for (int each = 0; each < loads_; ++each)
    loaded.push_back(
        records.load(record_load_bytes, own,
                     ir_.CreateAdd(record, ir_.CreateMul(rows_, kernel_.constant(each * record_load_bytes))), reach_));
  return loaded;
}

void PartsMerge::store(const Values& merged, const attention::QueryTile& tile) {
  RowEnd end = end_of_row(kernel_, softmax_, {.maximum = merged[0], .sum = merged[1]},
                          [&](Value* sinks) { return attention::number_of_head(kernel_, tile, sinks); });
  if (spec_.scaled) end.factor = ir_.CreateFMul(end.factor, cache_scale(kernel_, value_scale_at, tile.batch));
  const int bytes = bytes_of(spec_.dtype);
  const attention::Slice o =
      attention::slice_of(kernel_, tensor_fields(offsetof(Arguments, o)), tile.batch, kernel_.constant(0),
                          tile.query_start, tile.query_length, spec_.head_dim * bytes, tile.group);
  Value* offset = attention::lane_row_offset(kernel_, tile, tile.row, o.row_stride, o.head_stride);
  offset = ir_.CreateAdd(offset, ir_.CreateMul(part_, kernel_.constant(loads_ * load_dims * bytes)));
  llvm::Type* type = kernel_.vector(kernel_.f32(), load_dims);
  std::vector<Value*> dwords;
  for (std::size_t each = 0; each < static_cast<std::size_t>(loads_); ++each) {
    // As store_rows: +0 in the same instruction.
    Value* numbers = ir_.CreateIntrinsic(llvm::Intrinsic::fma, {type},
                                         {merged[2 + each], ir_.CreateVectorSplat(load_dims, end.factor), zero_dims()});
    for (Value* dword : language::convert_packed(kernel_, numbers, 0, load_dims,
                                                 spec_.dtype == DataType::bf16 ? Element::bf16 : Element::fp16,
                                                 language::NanInput::kept))
      dwords.push_back(dword);
  }
  constexpr std::size_t stored = record_load_bytes / sizeof(std::uint32_t);
  for (std::size_t first = 0; first < dwords.size(); first += stored)
    o.buffer.store(language::gather_dwords(kernel_, std::span(dwords).subspan(first, stored)),
                   ir_.CreateAdd(offset, kernel_.constant(static_cast<int>(first * sizeof(std::uint32_t)))),
                   kernel_.constant(0));
  Value* is_first = ir_.CreateICmpEQ(part_, kernel_.constant(0));
  store_log_sum_exp(kernel_, tile, ir_.CreateAnd(is_first, tile.has_row), end.log_sum_exp);
}

}  // namespace wavejit::attention_latent
