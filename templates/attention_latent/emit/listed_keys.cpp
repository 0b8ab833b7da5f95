// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/listed_keys.h"

#include <limits>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention_latent/kernel/arguments.h"

namespace wavejit::attention_latent {

using language::Accumulator;
using language::AccumulatorLayout;
using language::Kernel;
using language::Value;
using language::Values;

namespace {

constexpr std::size_t field(std::size_t in_list) { return offsetof(Arguments, list) + in_list; }

}  // namespace

KeyList list_of(Kernel& kernel, Value* row) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* counts = kernel.argument_i64(field(offsetof(ListArguments, counts)));
  Value* length = kernel.argument_i32(field(offsetof(ListArguments, length)));
  Value* wide = ir.CreateZExt(row, kernel.i64());
  Value* has_counts = ir.CreateIsNotNull(counts);
  // The kernel's own arguments are read in place of counts that are not there.
  Value* at = ir.CreateSelect(has_counts, ir.CreateAdd(counts, ir.CreateShl(wide, 2)), kernel.argument_address());
  Value* count = ir.CreateSelect(has_counts, kernel.load_scalar(at, kernel.i32()), length);
  count = attention::maximum(kernel, attention::minimum(kernel, count, length), kernel.constant(0));
  Value* entries = ir.CreateAdd(kernel.argument_i64(field(offsetof(ListArguments, indices))),
                                ir.CreateMul(wide, kernel.argument_i64(field(offsetof(ListArguments, row_stride)))));
  return {.entries = entries, .count = count};
}

Value* query_of_all(Kernel& kernel, Value* batch, Value* query_start, Value* query) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* packed = ir.CreateIsNotNull(
      kernel.argument_i64(offsetof(Arguments, sequences) + offsetof(attention::SequenceArguments, query_starts)));
  Value* before = ir.CreateMul(ir.CreateSelect(packed, kernel.constant(0), batch),
                               kernel.argument_i32(offsetof(Arguments, query_length)));
  return ir.CreateAdd(ir.CreateAdd(before, query_start), query);
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

}  // namespace wavejit::attention_latent
