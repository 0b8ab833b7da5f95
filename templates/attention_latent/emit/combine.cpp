// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/combine.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <bit>
#include <optional>
#include <span>
#include <utility>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/cache_scale.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention_latent/emit/rows.h"
#include "templates/attention_latent/emit/workgroup.h"

namespace wavejit::attention_latent {
namespace {

using language::Buffer;
using language::Element;
using language::Kernel;
using language::Likelihood;
using language::Value;
using language::Values;

constexpr int group = 4;  // records that are on their way together
constexpr int load_dims = record_load_bytes / static_cast<int>(sizeof(float));
constexpr int statistics_bytes = 8;  // m and l of a row

// A wave has a tile's rows side by side, as often as they fit; a lane has dims of its row, which follow each other.
class Combine {
 public:
  Combine(Kernel& kernel, const CombineKernel& spec)
      : kernel_(kernel),
        ir_(kernel.ir()),
        spec_(spec),
        scale_(positive_scale()),
        // Nothing is rescaled here.
        softmax_(kernel, scale_, kernel.constant(0.0F)),
        loads_(combine_loads(spec)) {}

  void emit() {
    // Made where it is first asked for: here, where every block can see it.
    Value* lane = kernel_.lane();
    Value* batch = kernel_.workgroup_z();
    const attention::Sequence sequence = attention::sequence_of(kernel_, length_fields, batch);
    Value* heads = kernel_.argument_i32(offsetof(Arguments, heads));
    Value* multiplier = kernel_.argument_i32(offsetof(Arguments, head_multiplier));
    const auto [first, behind] = rows_of_tile(sequence, heads);
    rows_ = attention::minimum(kernel_, ir_.CreateSub(behind, first), kernel_.constant(wave_rows));

    Value* beside = kernel_.uniform(ir_.CreateUDiv(kernel_.constant(combine_threads), rows_));
    Value* before = ir_.CreateMul(kernel_.workgroup_y(), beside);
    const int parts = spec_.head_dim / (loads_ * load_dims);
    language::leave_if(kernel_, ir_.CreateICmpUGE(before, kernel_.constant(parts)));
    Value* of_wave = ir_.CreateUDiv(lane, rows_);
    row_of_tile_ = ir_.CreateSub(lane, ir_.CreateMul(of_wave, rows_));
    part_ = ir_.CreateAdd(before, of_wave);
    Value* row = ir_.CreateAdd(first, row_of_tile_);
    Value* query = attention::divided(kernel_, row, multiplier);
    attention::QueryTile tile{};
    tile.query_head = kernel_.constant(0);
    tile.batch = batch;
    tile.query_start = sequence.query_start;
    tile.query_length = sequence.query_length;
    tile.row = query;
    tile.head_in_group = ir_.CreateSub(row, ir_.CreateMul(query, heads));
    tile.has_row = ir_.CreateAnd(ir_.CreateICmpULT(of_wave, beside), ir_.CreateICmpULT(part_, kernel_.constant(parts)));
    tile.group = heads;

    // The last row sees the most.
    Value* last_query =
        attention::divided(kernel_, ir_.CreateSub(ir_.CreateAdd(first, rows_), kernel_.constant(1)), multiplier);
    if (spec_.listed) {
      constexpr attention::QueryFields of_queries = {.query_starts = query_starts_at,
                                                     .query_length = offsetof(Arguments, query_length)};
      Value* of_all =
          attention::query_of_all(kernel_, of_queries, batch, sequence.query_start, kernel_.uniform(last_query));
      parts_.emplace(kernel_, offsetof(Arguments, list), of_all);
      last_ = last_of_row_ = parts_->last();
    } else {
      constexpr unsigned chunk = attention::chunk_keys;
      last_ = ir_.CreateAShr(last_key(sequence, last_query), std::countr_zero(chunk));
      last_of_row_ = ir_.CreateAShr(last_key(sequence, query), std::countr_zero(chunk));
    }

    const Buffer records(kernel_, records_of(kernel_, spec_.head_dim, spec_.listed, batch, sequence.query_start, first),
                         ir_.CreateMul(rows_, record_stride(kernel_, spec_.head_dim, spec_.listed)));
    own_ = ir_.CreateMul(part_, kernel_.constant(loads_));
    own_ = ir_.CreateMul(ir_.CreateAdd(ir_.CreateMul(own_, rows_), row_of_tile_), kernel_.constant(record_load_bytes));
    own_ = ir_.CreateSelect(tile.has_row, own_, ir_.getInt32(nowhere));
    Values nothing = {softmax_.initial().maximum, kernel_.constant(0.0F)};
    nothing.resize(nothing.size() + static_cast<std::size_t>(loads_), zero_dims());
    const Values merged = language::if_uniform(kernel_, ir_.CreateICmpSGE(last_, kernel_.constant(0)), Likelihood::even,
                                               nothing, [&](const Values& start) { return merge(records, start); });
    store(merged, tile);
  }

 private:
  Value* positive_scale() {
    Value* scale = kernel_.argument_i32(offsetof(Arguments, scale_log2e));
    if (spec_.scaled)
      scale = attention::with_key_scale(kernel_, scale, cache_scale(kernel_, score_scale_at, kernel_.workgroup_z()));
    return ir_.CreateBitCast(attention::positive_scale(kernel_, scale), kernel_.f32());
  }

  // Of the sequence: the tile's first row, and the one behind the last of those that tiles are cut from.
  std::pair<Value*, Value*> rows_of_tile(const attention::Sequence& sequence, Value* heads) {
    Value* tile = kernel_.workgroup_x();
    Value* before = kernel_.constant(0);
    Value* count = ir_.CreateMul(sequence.query_length, heads);
    if (spec_.listed) {
      Value* tiles = ir_.CreateUDiv(ir_.CreateAdd(heads, kernel_.constant(wave_rows - 1)), kernel_.constant(wave_rows));
      Value* query = kernel_.uniform(ir_.CreateUDiv(tile, tiles));
      tile = ir_.CreateSub(tile, ir_.CreateMul(query, tiles));
      language::leave_if(kernel_, ir_.CreateICmpUGE(query, sequence.query_length));
      before = ir_.CreateMul(query, heads);
      count = heads;
    }
    Value* first = ir_.CreateAdd(before, ir_.CreateMul(tile, kernel_.constant(wave_rows)));
    Value* behind = ir_.CreateAdd(before, count);
    language::leave_if(kernel_, ir_.CreateICmpUGE(first, behind));
    return {first, behind};
  }

  // That the row may see. −1 or less: none.
  Value* last_key(const attention::Sequence& sequence, Value* query) {
    Value* last = ir_.CreateSub(sequence.key_length, kernel_.constant(1));
    Value* diagonal = ir_.CreateAdd(query, attention::diagonal_offset(kernel_, diagonal_fields, sequence));
    Value* is_causal = ir_.CreateICmpNE(kernel_.argument_i32(offsetof(Arguments, causal)), kernel_.constant(0));
    return ir_.CreateSelect(is_causal, attention::minimum(kernel_, diagonal, last), last);
  }

  Value* zero_dims() { return llvm::Constant::getNullValue(kernel_.vector(kernel_.f32(), load_dims)); }

  // A part that the row does not see is an empty one, which changes nothing: nobody reads what stands there.
  Value* sees(Value* slot) { return ir_.CreateICmpSLE(slot, last_of_row_); }

  // m and l, then the lane's dims, of a record; zeros where the row does not see it.
  Values load(const Buffer& records, Value* slot) {
    Value* nothing = ir_.CreateSelect(sees(slot), kernel_.constant(0), ir_.getInt32(nowhere));
    Value* own = ir_.CreateOr(own_, nothing);
    // The uniform part stays inside.
    Value* part = attention::minimum(kernel_, slot, last_);
    Value* record = ir_.CreateMul(parts_ ? parts_->place(part) : part,
                                  ir_.CreateMul(rows_, kernel_.constant(record_bytes(spec_.head_dim))));
    Value* behind_dims = ir_.CreateAdd(record, ir_.CreateMul(rows_, kernel_.constant(spec_.head_dim * 4)));
    Value* own_statistics = ir_.CreateOr(ir_.CreateMul(row_of_tile_, kernel_.constant(statistics_bytes)), nothing);
    Values loaded = {records.load(statistics_bytes, own_statistics, behind_dims)};
    for (int each = 0; each < loads_; ++each)
      loaded.push_back(
          records.load(record_load_bytes, own,
                       ir_.CreateAdd(record, ir_.CreateMul(rows_, kernel_.constant(each * record_load_bytes)))));
    return loaded;
  }

  // A group of records is on its way: each is absorbed, and the one a group behind it takes its registers. Nothing is
  // behind the last group.
  Values merge(const Buffer& records, const Values& start) {
    Values state = start;
    for (int each = 0; each < group; ++each)
      for (Value* value : load(records, kernel_.constant(each))) state.push_back(value);
    state.push_back(kernel_.constant(0));  // the first of them
    const auto has_more = [&](const Values& at) {
      return ir_.CreateICmpSLE(ir_.CreateAdd(at.back(), kernel_.constant(group)), last_);
    };
    state = language::if_uniform(kernel_, has_more(state), Likelihood::even, state, [&](const Values& several) {
      return language::loop_in_phases(
          kernel_, 1, several, [&](int, const Values& before) { return absorb_group(before, &records); }, has_more);
    });
    state = absorb_group(state, nullptr);
    state.resize(start.size());
    return state;
  }

  // `records`: from which the next group comes; null: from nowhere.
  Values absorb_group(const Values& before, const Buffer* records) {
    const std::size_t row_values = 2 + static_cast<std::size_t>(loads_);
    const std::size_t record_values = 1 + static_cast<std::size_t>(loads_);
    Value* first = kernel_.uniform(before.back());
    Values row(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(row_values));
    Values next;
    for (int each = 0; each < group; ++each) {
      const auto record =
          before.begin() + static_cast<std::ptrdiff_t>(row_values + (static_cast<std::size_t>(each) * record_values));
      Value* slot = ir_.CreateAdd(first, kernel_.constant(each));
      absorb(row, {record, record + static_cast<std::ptrdiff_t>(record_values)}, sees(slot));
      if (records == nullptr) continue;
      for (Value* value : load(*records, ir_.CreateAdd(slot, kernel_.constant(group)))) next.push_back(value);
    }
    row.insert(row.end(), next.begin(), next.end());
    row.push_back(ir_.CreateAdd(first, kernel_.constant(group)));
    return row;
  }

  void absorb(Values& row, const Values& record, Value* sees) {
    const auto number = [&](std::uint64_t at) {
      return ir_.CreateBitCast(ir_.CreateExtractElement(record.front(), at), kernel_.f32());
    };
    Value* maximum = ir_.CreateSelect(sees, number(0), softmax_.initial().maximum);
    const language::MergeWeights weights = softmax_.merge_weights(row[0], maximum);
    row[0] = weights.maximum;
    row[1] = softmax_.merged(weights, row[1], number(1));
    for (std::size_t each = 1; each < record.size(); ++each)
      row[1 + each] = softmax_.merged(weights, row[1 + each],
                                      ir_.CreateBitCast(record[each], kernel_.vector(kernel_.f32(), load_dims)));
  }

  void store(const Values& merged, const attention::QueryTile& tile) {
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
      Value* numbers = ir_.CreateIntrinsic(
          llvm::Intrinsic::fma, {type}, {merged[2 + each], ir_.CreateVectorSplat(load_dims, end.factor), zero_dims()});
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

  Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const CombineKernel& spec_;
  Value* scale_;  // c > 0
  language::Softmax softmax_;
  int loads_;
  std::optional<attention::ListedParts> parts_;  // of listed keys
  // Of the tile and the wave, uniform.
  Value* rows_ = nullptr;
  Value* last_ = nullptr;  // chunk of which some row sees a key; −1: none
  // Of the lane.
  Value* row_of_tile_ = nullptr;
  Value* part_ = nullptr;         // of a row's dims
  Value* own_ = nullptr;          // where its dims begin in a record; nowhere: it has none
  Value* last_of_row_ = nullptr;  // as last_
};

}  // namespace

void emit_combine(Kernel& kernel, const CombineKernel& spec) { Combine(kernel, spec).emit(); }

}  // namespace wavejit::attention_latent
