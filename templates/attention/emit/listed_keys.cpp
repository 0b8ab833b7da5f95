// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/listed_keys.h"

#include <limits>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention {

using language::Accumulator;
using language::AccumulatorLayout;
using language::Kernel;
using language::Value;
using language::Values;

namespace {

Value* list_address(Kernel& kernel, std::size_t lists, std::size_t field) { return kernel.argument_i64(lists + field); }

// The count of a list of `length` entries, whose counts are at `counts` or null.
Value* count_of(Kernel& kernel, std::size_t lists, Value* counts, Value* length, Value* query, Value* head) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* number = query;
  if (head != nullptr) {
    Value* heads = list_number(kernel, lists, offsetof(KeyListArguments, heads));
    // One list for all heads, or one each.
    Value* own = ir.CreateSelect(ir.CreateICmpEQ(heads, kernel.constant(1)), kernel.constant(0), head);
    number = ir.CreateAdd(ir.CreateMul(query, heads), own);
  }
  Value* has_counts = ir.CreateIsNotNull(counts);
  // The kernel's own arguments are read in place of counts that are not there.
  Value* at = ir.CreateSelect(has_counts, ir.CreateAdd(counts, ir.CreateShl(ir.CreateZExt(number, kernel.i64()), 2)),
                              kernel.argument_address());
  Value* count = ir.CreateSelect(has_counts, kernel.load_scalar(at, kernel.i32()), length);
  return maximum(kernel, minimum(kernel, count, length), kernel.constant(0));
}

Value* parts_of(Kernel& kernel, Value* count) {
  return kernel.ir().CreateUDiv(kernel.ir().CreateAdd(count, kernel.constant(list_chunk_keys - 1)),
                                kernel.constant(list_chunk_keys));
}

}  // namespace

Value* list_number(Kernel& kernel, std::size_t lists, std::size_t field) { return kernel.argument_i32(lists + field); }

KeyList list_of(Kernel& kernel, std::size_t lists, Value* query, Value* head) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
  Value* count = count_of(kernel, lists, list_address(kernel, lists, offsetof(KeyListArguments, counts)),
                          list_number(kernel, lists, offsetof(KeyListArguments, length)), query, head);
  Value* entries =
      ir.CreateAdd(list_address(kernel, lists, offsetof(KeyListArguments, indices)),
                   ir.CreateMul(wide(query), list_address(kernel, lists, offsetof(KeyListArguments, row_stride))));
  if (head != nullptr)
    entries = ir.CreateAdd(
        entries, ir.CreateMul(wide(head), list_address(kernel, lists, offsetof(KeyListArguments, head_stride))));
  return {.entries = entries, .count = count};
}

Value* query_of_all(Kernel& kernel, const QueryFields& fields, Value* batch, Value* query_start, Value* query) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* packed = ir.CreateIsNotNull(kernel.argument_i64(fields.query_starts));
  Value* before =
      ir.CreateMul(ir.CreateSelect(packed, kernel.constant(0), batch), kernel.argument_i32(fields.query_length));
  return ir.CreateAdd(ir.CreateAdd(before, query_start), query);
}

Value* named_keys_of(Kernel& kernel, std::size_t lists, const DiagonalFields& diagonal, const Sequence& sequence,
                     Value* query) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* seen = ir.CreateAdd(ir.CreateAdd(query, diagonal_offset(kernel, diagonal, sequence)), kernel.constant(1));
  Value* is_causal =
      ir.CreateICmpNE(list_number(kernel, lists, offsetof(KeyListArguments, causal)), kernel.constant(0));
  Value* keys = ir.CreateSelect(is_causal, minimum(kernel, seen, sequence.key_length), sequence.key_length);
  return maximum(kernel, keys, kernel.constant(0));
}

Value* named_slots_of(Kernel& kernel, std::size_t lists) {
  return list_number(kernel, lists, offsetof(KeyListArguments, slots));
}

ListedParts::ListedParts(Kernel& kernel, std::size_t lists, Value* query, Value* head) : kernel_(kernel) {
  llvm::IRBuilder<>& ir = kernel.ir();
  first_ = parts_of(kernel, list_of(kernel, lists, query, head).count);
  Value* second =
      parts_of(kernel, count_of(kernel, lists, list_address(kernel, lists, offsetof(KeyListArguments, second_counts)),
                                list_number(kernel, lists, offsetof(KeyListArguments, second_length)), query, head));
  behind_ = ir.CreateSub(list_number(kernel, lists, offsetof(KeyListArguments, second_first_part)), first_);
  last_ = ir.CreateSub(ir.CreateAdd(first_, second), kernel.constant(1));
}

Value* ListedParts::place(Value* part) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* further = ir.CreateSelect(ir.CreateICmpSLT(part, first_), kernel_.constant(0), behind_);
  return ir.CreateAdd(part, further);
}

// A lane group has the keys with bit 2 as its own number: both halves of `named`, moved to its first key, have a key
// for each register. Lists without holes have no tile that pays for this.
void hide_unnamed(Kernel& kernel, Value* named, Value* lane_group, std::span<Accumulator> scores) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const AccumulatorLayout& layout = scores.front().layout;
  const auto rows = static_cast<std::uint64_t>(language::wave_shape(kernel).rows);
  Values values;
  for (const Accumulator& part : scores) values.push_back(part.value);
  Value* has_holes = ir.CreateICmpNE(named, llvm::ConstantInt::getSigned(kernel.i64(), -1));
  values = language::if_uniform(kernel, has_holes, language::Likelihood::rarely, values, [&](const Values& before) {
    Value* own = ir.CreateMul(lane_group, kernel.constant(layout.row_block));
    Value* minus_infinity = kernel.constant(-std::numeric_limits<float>::infinity());
    Values after;
    for (std::size_t part = 0; part < before.size(); ++part) {
      Value* half = ir.CreateTrunc(ir.CreateLShr(named, part * rows), kernel.i32());
      Value* bits = ir.CreateLShr(half, own);
      Value* hidden = before[part];
      for (int r = 0; r < layout.registers(); ++r) {
        Value* bit = ir.CreateAnd(bits, ir.getInt32(1U << static_cast<unsigned>(layout.row_of_register(r))));
        Value* score = ir.CreateExtractElement(before[part], r);
        Value* is_named = ir.CreateICmpNE(bit, kernel.constant(0));
        hidden = ir.CreateInsertElement(hidden, ir.CreateSelect(is_named, score, minus_infinity), r);
      }
      after.push_back(hidden);
    }
    return after;
  });
  for (std::size_t part = 0; part < scores.size(); ++part) scores[part].value = values[part];
}

}  // namespace wavejit::attention
