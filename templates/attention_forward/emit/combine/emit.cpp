// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/combine/emit.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <span>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/cache_scale.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/output_bytes.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/scattered.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/emit/visible_keys.h"
#include "templates/attention_forward/emit/combine/workspace.h"
#include "templates/attention_forward/kernel/combine/arguments.h"
#include "templates/attention_forward/kernel/combine/parameters.h"

namespace wavejit::attention_combine {
namespace {

using language::Buffer;
using language::Element;
using language::Kernel;
using language::Likelihood;
using language::Value;
using language::Values;

// Slots whose outputs are in flight together. They are merged in groups, because the row's last turn may have fewer.
constexpr std::size_t turn_slots = 16;
constexpr std::size_t group = 4;
// Lanes with this offset read 0 and store nothing.
constexpr std::uint32_t far_outside = 0x80000000;

constexpr attention::SequenceFields sequence_fields = {.query_starts = offsetof(Arguments, query_starts),
                                                       .query_rows = offsetof(Arguments, query_rows),
                                                       .query_length = offsetof(Arguments, query_length),
                                                       .key_starts = offsetof(Arguments, key_starts),
                                                       .key_lengths = offsetof(Arguments, key_lengths),
                                                       .key_rows = offsetof(Arguments, key_rows),
                                                       .key_length = offsetof(Arguments, key_length)};
constexpr attention::WindowFields window_fields = {.left = offsetof(Arguments, window_left),
                                                   .right = offsetof(Arguments, window_right)};
constexpr attention::DiagonalFields diagonal_fields = attention::diagonal_fields_of<Arguments>;

// A wave merges one row; its lanes have the row's dims. It merges the parts of the chunks that the row sees, from the
// first upward, as a kernel that walks all chunks does. Other slots may never have been written.
//
// The weight of a part does not depend on the dim. So lanes compute the weights of as many parts side by side, from the
// maxima before each (a scan). What remains to be done in sequence is one multiplication and one addition for each dim.
class Combine {
 public:
  Combine(Kernel& kernel, const CombineKernel& spec)
      : kernel_(kernel),
        ir_(kernel.ir()),
        spec_(spec),
        batch_(kernel.workgroup_z()),
        head_(kernel.workgroup_y()),
        scale_(positive_scale()),
        // Nothing is rescaled here, so the threshold is 0.
        softmax_(kernel, scale_, kernel.constant(0.0F)) {}

  void emit() {
    // Ids are made where they are first asked for, so they are made here, where every block can use them.
    (void)kernel_.lane();
    Value* row = kernel_.workgroup_x();
    const attention::Sequence sequence =
        attention::sequence_of(kernel_, sequence_fields, batch_,
                               spec_.first_keys ? attention::KeyStarts::first_rows : attention::KeyStarts::packed);
    // A sequence shorter than the longest one has no such row, and no offset below would stay inside its slices.
    Value* has_row = ir_.CreateICmpULT(row, sequence.query_length);
    if (spec_.of_few_rows())
      has_row = ir_.CreateAnd(
          has_row, ir_.CreateICmpULE(sequence.query_length, kernel_.argument_i32(offsetof(Arguments, few_rows))));
    language::if_uniform(kernel_, has_row, Likelihood::even, [&] { combine_row(sequence, row); });
  }

 private:
  // The chunks from first to last; none if first is larger.
  struct Chunks {
    Value* first;
    Value* last;
  };
  // A lane's part of a row.
  struct Merged {
    Value* maximum;
    Value* sum;
    Values outputs;
  };

  // The keys that a row of the sequence sees, with the window of the split kernel; in a later row neither end is
  // smaller.
  struct Keys {
    Value* first;
    Value* last;  // none where it is smaller
  };
  Keys keys_of(const attention::Sequence& sequence, Value* offset, Value* row) {
    Value* diagonal = ir_.CreateAdd(row, offset);
    Value* last_key = ir_.CreateSub(sequence.key_length, kernel_.constant(1));
    if (const auto kind = attention::kind_of_mask(kernel_, spec_.kind, window_fields))
      return {.first = attention::first_key_at(kernel_, kind, diagonal),
              .last = uniform_smaller(attention::last_key_at(kernel_, kind, diagonal), last_key)};
    if (spec_.causal_flags) {
      Value* beyond = attention::keys_beyond_diagonal(kernel_, causal_flags_at, batch_);
      return {.first = kernel_.constant(0), .last = uniform_smaller(ir_.CreateAdd(diagonal, beyond), last_key)};
    }
    Value* begin = attention::first_visible_key(kernel_, window_fields, diagonal);
    Value* limit = uniform_smaller(ir_.CreateAdd(diagonal, kernel_.argument_i32(window_fields.right)), last_key);
    return {.first = begin, .last = limit};
  }
  Value* chunk_of(Value* key) {
    return ir_.CreateAShr(key, std::countr_zero(static_cast<unsigned>(attention::chunk_keys)));
  }

  // Merges and stores row `row` of the sequence.
  void combine_row(const attention::Sequence& sequence, Value* row) {
    Value* row_of_head = ir_.CreateAdd(sequence.query_start, row);  // if packed, counted over all sequences
    const WorkspacePlace place = {
        .workspace = kernel_.argument_i64(offsetof(Arguments, workspace)),
        .slots = spec_.listed ? attention::list_number(kernel_, offsetof(Arguments, lists),
                                                       offsetof(attention::KeyListArguments, parts))
                              : slots_of(kernel_, kernel_.argument_i32(offsetof(Arguments, key_length))),
        .query_heads = kernel_.argument_i32(offsetof(Arguments, query_heads)),
        .batch = spec_.of_few_rows()
                     ? batch_
                     : ir_.CreateSelect(ir_.CreateIsNull(kernel_.argument_i64(offsetof(Arguments, query_starts))),
                                        batch_, kernel_.constant(0)),
        .query_head = head_,
        .rows_of_head =
            kernel_.argument_i32(spec_.of_few_rows() ? offsetof(Arguments, few_rows) : offsetof(Arguments, query_rows)),
        .first_row = spec_.of_few_rows() ? row : row_of_head,
    };
    const Buffer records(kernel_, row_address(kernel_, place, spec_.head_dim),
                         row_bytes(kernel_, place, spec_.head_dim));
    slots_ = place.slots;
    if (spec_.listed) {
      find_parts(sequence, row);
      store(merge(records, {.first = kernel_.constant(0), .last = parts_->last()}), row_of_head);
      return;
    }
    Value* offset = attention::diagonal_offset(kernel_, diagonal_fields, sequence);
    const Keys keys = keys_of(sequence, offset, row);
    // A row without keys may have both ends in one chunk.
    Value* none = ir_.CreateICmpSGT(keys.first, keys.last);
    store(merge(records, {.first = chunk_of(keys.first),
                          .last = ir_.CreateSelect(none, kernel_.constant(-1), chunk_of(keys.last))}),
          row_of_head);
  }

  void find_parts(const attention::Sequence& sequence, Value* row) {
    constexpr attention::QueryFields fields = {.query_starts = offsetof(Arguments, query_starts),
                                               .query_length = offsetof(Arguments, query_length)};
    Value* query = attention::query_of_all(kernel_, fields, batch_, sequence.query_start, row);
    Value* kv_head = attention::divided(kernel_, head_, kernel_.argument_i32(offsetof(Arguments, kv_head_multiplier)));
    parts_.emplace(kernel_, offsetof(Arguments, lists), query, kv_head);
  }
  Value* place_of(Value* slot) { return parts_ ? parts_->place(slot) : slot; }

  // Softmax::Softmax's c: what attention_forward takes for it (docs/canonical-arithmetic.md, Scale).
  Value* positive_scale() {
    Value* scale = kernel_.argument_i32(offsetof(Arguments, scale_log2e));
    if (spec_.scaled)
      scale = attention::with_key_scale(kernel_, scale, scale_of_cache(offsetof(attention::CacheScales, k)));
    return ir_.CreateBitCast(attention::positive_scale(kernel_, scale), kernel_.f32());
  }

  Value* scale_of_cache(std::size_t of_tensor) {
    Value* kv_head = attention::divided(kernel_, head_, kernel_.argument_i32(offsetof(Arguments, kv_head_multiplier)));
    return attention::cache_scale(kernel_, offsetof(Arguments, scales) + of_tensor, batch_, kv_head);
  }

  int dims() const { return dims_per_lane(spec_); }
  Value* uniform_smaller(Value* a, Value* b) { return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b); }

  // The weights of the slots from `first` on, one slot in each lane.
  struct Weights {
    Value* first;
    Value* maximum;    // uniform: of the row after all of them
    Value* earlier;    // the weight of the row before the part
    Value* later;      // the weight of the part
    Value* later_sum;  // the part's own l, multiplied by its weight
  };
  Weights weights_of(const Buffer& records, Value* first, Value* last, Value* maximum_before) {
    Value* slot = ir_.CreateAdd(first, kernel_.lane());
    Value* sees = ir_.CreateICmpSLE(slot, last);
    Value* offset = statistics_offset(kernel_, slots_, place_of(slot), spec_.head_dim);
    Value* statistics = records.load(8, ir_.CreateSelect(sees, offset, ir_.getInt32(far_outside)), kernel_.constant(0));
    Value* own = ir_.CreateSelect(sees, element(statistics, 0), softmax_.initial().maximum);
    // The largest up to each lane, the row's own maximum included.
    const auto larger = [&](Value* a, Value* b) { return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, a, b); };
    const auto from_below = [&](Value* value, int lanes) { return from_lane(value, lanes); };
    Value* largest = larger(own, maximum_before);
    for (int lanes = 1; lanes < kernel_.target().wave_size; lanes *= 2) {
      Value* with_below = larger(largest, from_below(largest, lanes));
      Value* has_below = ir_.CreateICmpUGE(kernel_.lane(), kernel_.constant(lanes));
      largest = ir_.CreateSelect(has_below, with_below, largest);
    }
    Value* is_first = ir_.CreateICmpEQ(kernel_.lane(), kernel_.constant(0));
    Value* before = ir_.CreateSelect(is_first, maximum_before, from_below(largest, 1));
    const language::MergeWeights weights = softmax_.merge_weights(before, own);
    return {.first = first,
            .maximum = of_lane(largest, kernel_.constant(kernel_.target().wave_size - 1)),
            .earlier = weights.earlier,
            .later = weights.later,
            .later_sum = ir_.CreateFMul(element(statistics, 1), weights.later)};
  }
  // The value of the lane `below` places before this one.
  Value* from_lane(Value* value, int below) {
    Value* lane = ir_.CreateSub(kernel_.lane(), kernel_.constant(below));
    Value* bits =
        ir_.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {},
                            {ir_.CreateShl(lane, kernel_.constant(2)), ir_.CreateBitCast(value, kernel_.i32())});
    return ir_.CreateBitCast(bits, kernel_.f32());
  }
  Value* of_lane(Value* value, Value* lane) {
    Value* bits = ir_.CreateIntrinsic(llvm::Intrinsic::amdgcn_readlane, {kernel_.i32()},
                                      {ir_.CreateBitCast(value, kernel_.i32()), lane});
    return ir_.CreateBitCast(bits, kernel_.f32());
  }

  // Merges one part into l and the dims of the row, which begin at `row`: Softmax::merged, of a weight for all lanes.
  void absorb(std::span<Value*> row, const Weights& weights, Value* slot, Value* outputs) {
    Value* lane = ir_.CreateSub(slot, weights.first);
    Value* earlier = of_lane(weights.earlier, lane);
    Value* later = of_lane(weights.later, lane);
    row[0] = fused(row[0], earlier, of_lane(weights.later_sum, lane));
    for (std::size_t dim = 0; dim + 1 < row.size(); ++dim)
      row[1 + dim] = fused(row[1 + dim], earlier, ir_.CreateFMul(element(outputs, dim), later));
  }

  Merged merge(const Buffer& records, const Chunks& chunks) {
    const std::size_t row_values = 1 + static_cast<std::size_t>(dims());
    const auto after = [&](Value* slot, std::size_t count) {
      return ir_.CreateAdd(slot, kernel_.constant(static_cast<int>(count)));
    };
    Value* lane_offset = ir_.CreateMul(kernel_.lane(), kernel_.constant(dims() * 4));
    // Lanes without dims point far outside, read 0 and store nothing.
    if (spec_.head_dim < dims() * kernel_.target().wave_size)
      lane_offset = ir_.CreateSelect(ir_.CreateICmpULT(kernel_.lane(), kernel_.constant(spec_.head_dim / dims())),
                                     lane_offset, ir_.getInt32(far_outside));
    // Past the last slot the last one is loaded again, and its weight is not used.
    const auto load = [&](Value* slot) {
      Value* place = place_of(uniform_smaller(slot, chunks.last));
      return records.load(dims() * 4, lane_offset, output_offset(kernel_, place, spec_.head_dim));
    };
    const auto row_of = [&](Values& state) { return std::span(state).subspan(1, row_values); };

    // m, l and the dims of the row; outputs in flight; the slot of the first of them.
    Values start(1 + row_values, kernel_.constant(0.0F));
    start[0] = softmax_.initial().maximum;
    const Values end = language::if_uniform(
        kernel_, ir_.CreateICmpSLE(chunks.first, chunks.last), Likelihood::even, start, [&](const Values& begin) {
          Values state = begin;
          for (std::size_t i = 0; i < turn_slots; ++i) state.push_back(load(after(chunks.first, i)));
          state.push_back(chunks.first);
          const auto any_left = [&](const Values& at) { return ir_.CreateICmpSLE(at.back(), chunks.last); };
          state = language::loop_in_phases(
              kernel_, 1, state,
              [&](int, const Values& before) {
                Value* first = kernel_.uniform(before.back());
                const Weights weights = weights_of(records, first, chunks.last, before[0]);
                Value* weights_end = uniform_smaller(after(first, static_cast<std::size_t>(kernel_.target().wave_size)),
                                                     after(chunks.last, 1));
                Values now = before;
                now[0] = weights.maximum;
                now.back() = first;
                const auto has_turn = [&](const Values& at) {
                  return ir_.CreateICmpSLE(after(at.back(), turn_slots), weights_end);
                };
                const auto turn = [&](int, const Values& at) {
                  Value* slot = kernel_.uniform(at.back());
                  Values next = at;
                  for (std::size_t i = 0; i < turn_slots; ++i) {
                    absorb(row_of(next), weights, after(slot, i), at[1 + row_values + i]);
                    next[1 + row_values + i] = load(after(slot, turn_slots + i));
                  }
                  next.back() = after(slot, turn_slots);
                  return next;
                };
                now = language::if_uniform(kernel_, has_turn(now), Likelihood::even, now, [&](const Values& at) {
                  return language::loop_in_phases(kernel_, 1, at, turn, has_turn);
                });
                // The last weights are for less than a turn, at the end of the row.
                Value* slot = kernel_.uniform(now.back());
                const Values loaded(now.begin() + static_cast<std::ptrdiff_t>(1 + row_values), now.end() - 1);
                for (std::size_t i = 0; i < turn_slots; i += group) {
                  now = language::if_uniform(kernel_, ir_.CreateICmpSLT(after(slot, i), weights_end), Likelihood::even,
                                             now, [&](const Values& at) {
                                               Values next = at;
                                               for (std::size_t each = i; each < i + group; ++each) {
                                                 Value* own = after(slot, each);
                                                 // An empty part changes nothing.
                                                 Value* part = ir_.CreateSelect(
                                                     ir_.CreateICmpSLT(own, weights_end), loaded[each],
                                                     llvm::Constant::getNullValue(loaded[each]->getType()));
                                                 absorb(row_of(next), weights, own, part);
                                               }
                                               next.back() = after(chunks.last, 1);
                                               return next;
                                             });
                }
                return now;
              },
              any_left);
          return Values(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(1 + row_values));
        });
    return {.maximum = end[0], .sum = end[1], .outputs = {end.begin() + 2, end.end()}};
  }

  // A lane's dims in the type of O.
  Values stored(Value* numbers) {
    if (is_narrow(spec_.dtype))
      return attention::OutputBytes(kernel_, spec_.dtype, output_scale_at).of(numbers, 0, dims());
    if (spec_.dtype != DataType::fp32)
      return language::convert_packed(kernel_, numbers, 0, dims(),
                                      spec_.dtype == DataType::bf16 ? Element::bf16 : Element::fp16,
                                      language::NanInput::kept);
    Values dwords;
    for (int dim = 0; dim < dims(); ++dim)
      dwords.push_back(
          ir_.CreateBitCast(ir_.CreateExtractElement(numbers, static_cast<std::uint64_t>(dim)), kernel_.i32()));
    return dwords;
  }

  // Ends a row as attention_forward does (output.cpp): fma(O, factor, +0), with the sink counted once, and then the
  // scale of the cache.
  void store(const Merged& row, Value* row_of_head) {
    Value* sinks = kernel_.argument_i64(offsetof(Arguments, sink));
    const Values end = language::if_uniform(
        kernel_, ir_.CreateIsNotNull(sinks), Likelihood::even,
        {softmax_.inverse(row.sum), softmax_.log_sum_exp({.maximum = row.maximum, .sum = row.sum})},
        [&](const Values&) {
          Value* head = ir_.CreateShl(wide(head_), 2);
          Value* sink = kernel_.load_scalar(ir_.CreateAdd(sinks, head), kernel_.f32());
          const auto [factor, log_sum] =
              language::end_with_sink(kernel_, softmax_.scaled_maximum(row.maximum), row.sum, sink);
          return Values{factor, log_sum};
        });
    Value* factor = end[0];
    if (spec_.scaled) factor = ir_.CreateFMul(factor, scale_of_cache(offsetof(attention::CacheScales, v)));
    Value* numbers = llvm::PoisonValue::get(kernel_.vector(kernel_.f32(), dims()));
    for (std::size_t dim = 0; dim < row.outputs.size(); ++dim)
      numbers = ir_.CreateInsertElement(numbers, fused(row.outputs[dim], factor, kernel_.constant(0.0F)), dim);
    const Values dwords = stored(numbers);
    const int dim_bytes = bytes_of(spec_.dtype);

    Value* row_stride = kernel_.argument_i32(offsetof(Arguments, o_row_stride));
    Value* o = slice(offsetof(Arguments, o), offsetof(Arguments, o_batch_stride), offsetof(Arguments, o_head_stride));
    o = ir_.CreateAdd(o, ir_.CreateMul(wide(row_of_head), wide(row_stride)));
    Value* packed = dwords.size() == 1 ? dwords.front() : language::gather_dwords(kernel_, dwords);
    if (spec_.trans_o) {
      store_scattered(o, packed);
    } else {
      // Lanes without dims are past its end.
      const Buffer outputs(kernel_, o, kernel_.constant(spec_.head_dim * dim_bytes));
      outputs.store(packed, ir_.CreateMul(kernel_.lane(), kernel_.constant(dims() * dim_bytes)), kernel_.constant(0));
    }

    // One lane writes the LSE; the others point far outside. Without LSE the slice is empty.
    Value* lse =
        slice(offsetof(Arguments, lse), offsetof(Arguments, lse_batch_stride), offsetof(Arguments, lse_head_stride));
    lse = ir_.CreateAdd(lse, ir_.CreateMul(wide(row_of_head), ir_.getInt64(4)));
    Value* wanted = ir_.CreateICmpNE(kernel_.argument_i64(offsetof(Arguments, lse)), ir_.getInt64(0));
    const Buffer log_sums(kernel_, lse, ir_.CreateSelect(wanted, kernel_.constant(4), kernel_.constant(0)));
    Value* writes = ir_.CreateICmpEQ(kernel_.lane(), kernel_.constant(0));
    log_sums.store(ir_.CreateBitCast(end[1], kernel_.i32()),
                   ir_.CreateSelect(writes, kernel_.constant(0), ir_.getInt32(far_outside)), kernel_.constant(0));
  }

  void store_scattered(Value* row, Value* packed) {
    const int dim_bytes = bytes_of(spec_.dtype);
    Value* dim_stride = kernel_.argument_i32(offsetof(Arguments, o_dim_stride));
    Value* bytes =
        ir_.CreateAdd(ir_.CreateMul(dim_stride, kernel_.constant(spec_.head_dim - 1)), kernel_.constant(dim_bytes));
    const attention::Slice outputs = {.buffer = Buffer(kernel_, row, bytes),
                                      .row_stride = kernel_.constant(0),
                                      .dim_stride = dim_stride,
                                      .element_bytes = dim_bytes};
    Value* has_dims = ir_.CreateICmpULT(kernel_.lane(), kernel_.constant(spec_.head_dim / dims()));
    Value* first = ir_.CreateMul(ir_.CreateMul(kernel_.lane(), kernel_.constant(dims())), dim_stride);
    attention::store_scattered(kernel_, outputs, packed, dim_bytes,
                               attention::scattered_row(kernel_, outputs, has_dims, first), 0);
  }

  Value* slice(std::size_t pointer, std::size_t batch_stride, std::size_t head_stride) {
    Value* base = kernel_.argument_i64(pointer);
    base = ir_.CreateAdd(base, ir_.CreateMul(wide(batch_), kernel_.argument_i64(batch_stride)));
    return ir_.CreateAdd(base, ir_.CreateMul(wide(head_), kernel_.argument_i64(head_stride)));
  }

  Value* wide(Value* value) { return ir_.CreateZExt(value, kernel_.i64()); }
  Value* element(Value* dwords, std::size_t index) {
    return ir_.CreateBitCast(ir_.CreateExtractElement(dwords, index), kernel_.f32());
  }
  Value* fused(Value* a, Value* b, Value* c) {
    return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {a, b, c});
  }

  Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const CombineKernel& spec_;
  Value* batch_;
  Value* head_;
  Value* scale_;            // c > 0
  Value* slots_ = nullptr;  // of a row
  language::Softmax softmax_;
  std::optional<attention::ListedParts> parts_;  // of listed keys
};

}  // namespace

std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const CombineKernel& spec, const targets::Target& target,
                                                               llvm::LLVMContext& context) {
  if (spec.target != target.id)
    return std::unexpected("the spec is for target=" + spec.target + ", not for " + std::string(target.id));
  if (auto reason = refusal_of(spec)) return std::unexpected(*std::move(reason));
  Kernel kernel(context, target,
                {.name = kernel_name(spec),
                 .threads = threads_of(spec),
                 .waves_per_simd = dims_per_lane(spec) == 2 ? 8 : 4,  // as the registers of outputs in flight allow
                 .argument_bytes = static_cast<int>(argument_bytes(spec)),
                 .strength_reduction = false});
  Combine(kernel, spec).emit();
  return kernel.finish();
}

}  // namespace wavejit::attention_combine
