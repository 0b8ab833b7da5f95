// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/sequence.h"

#include "codegen/language/control.h"
#include "templates/attention/emit/integers.h"

namespace wavejit::attention {
namespace {

using language::Kernel;
using language::Value;
using language::Values;

// An array of int32 in device memory that may not be there.
class OptionalArray {
 public:
  OptionalArray(Kernel& kernel, std::size_t field)
      : kernel_(kernel), address_(kernel.argument_i64(field)), present_(kernel.ir().CreateIsNotNull(address_)) {}

  // The kernel's own arguments are read in place of an array that is missing; use `or_else` on what comes of it.
  Value* load(Value* index) const {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* element = ir.CreateAdd(address_, ir.CreateShl(ir.CreateZExt(index, kernel_.i64()), 2));
    return kernel_.load_scalar(ir.CreateSelect(present_, element, kernel_.argument_address()), kernel_.i32());
  }
  Value* or_else(Value* value, Value* otherwise) const { return kernel_.ir().CreateSelect(present_, value, otherwise); }
  Value* address() const { return address_; }

 private:
  Kernel& kernel_;
  Value* address_;
  Value* present_;
};

struct Rows {
  Value* start;
  Value* length;
};

// Signed arithmetic throughout: rows and lengths stay below 2³¹, and what is subtracted was put in order before.
Rows packed_rows(Kernel& kernel, const OptionalArray& starts, Value* batch, std::size_t rows_field, Value* longest) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* rows = kernel.argument_i32(rows_field);
  Value* start = minimum(kernel, maximum(kernel, starts.load(batch), kernel.constant(0)), rows);
  Value* end = minimum(kernel, maximum(kernel, starts.load(ir.CreateAdd(batch, kernel.constant(1))), start), rows);
  Value* length = minimum(kernel, ir.CreateSub(end, start), longest);
  return {starts.or_else(start, kernel.constant(0)), starts.or_else(length, longest)};
}

// With left padding a sequence extends to the end of its rows, or of its pages. Only key_lengths knows how many pages
// it has, so the most slots are assumed.
Rows padded_rows(Kernel& kernel, const OptionalArray& firsts, Value* batch, KeyStarts starts, std::size_t rows_field,
                 Value* longest) {
  constexpr int most_slots = 1 << 26;  // call/limits.h, max_paged_length
  const bool of_rows = starts == KeyStarts::first_rows;
  Value* rows = of_rows ? kernel.argument_i32(rows_field) : kernel.constant(most_slots);
  Value* start = minimum(kernel, maximum(kernel, firsts.load(batch), kernel.constant(0)), rows);
  return {start, of_rows ? minimum(kernel, kernel.ir().CreateSub(rows, start), longest) : longest};
}

}  // namespace

Sequence sequence_of(Kernel& kernel, const LengthFields& fields, Value* batch, KeyStarts starts) {
  return sequence_of(kernel,
                     SequenceFields{.query_starts = fields.sequences + offsetof(SequenceArguments, query_starts),
                                    .query_rows = fields.sequences + offsetof(SequenceArguments, query_rows),
                                    .query_length = fields.query_length,
                                    .key_starts = fields.sequences + offsetof(SequenceArguments, key_starts),
                                    .key_lengths = fields.sequences + offsetof(SequenceArguments, key_lengths),
                                    .key_rows = fields.sequences + offsetof(SequenceArguments, key_rows),
                                    .key_length = fields.key_length},
                     batch, starts);
}

Sequence sequence_of(Kernel& kernel, const SequenceFields& fields, Value* batch, KeyStarts starts) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* query_length = kernel.argument_i32(fields.query_length);
  Value* key_length = kernel.argument_i32(fields.key_length);
  const OptionalArray query_starts(kernel, fields.query_starts);
  const OptionalArray key_starts(kernel, fields.key_starts);
  const OptionalArray key_lengths(kernel, fields.key_lengths);

  // One branch over all three, so that dense launches wait for nothing.
  Value* any =
      ir.CreateIsNotNull(ir.CreateOr(ir.CreateOr(query_starts.address(), key_starts.address()), key_lengths.address()));
  Value* zero = kernel.constant(0);
  // No length is so large, and none of its sums with rows and offsets overflows.
  constexpr int most_told = 1 << 29;
  const Values values = language::if_uniform(
      kernel, any, language::Likelihood::even, {zero, query_length, zero, key_length, key_length}, [&](const Values&) {
        const Rows queries = packed_rows(kernel, query_starts, batch, fields.query_rows, query_length);
        const Rows keys = starts == KeyStarts::packed
                              ? packed_rows(kernel, key_starts, batch, fields.key_rows, key_length)
                              : padded_rows(kernel, key_starts, batch, starts, fields.key_rows, key_length);
        Value* told = maximum(kernel, key_lengths.load(batch), zero);
        Value* counted = minimum(kernel, keys.length, told);
        // Unsigned: beside the maximum a signed minimum would make it a median, which only the vector unit has.
        Value* bounded = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, told, kernel.constant(most_told));
        return Values{queries.start, queries.length, keys.start, key_lengths.or_else(counted, keys.length),
                      key_lengths.or_else(bounded, keys.length)};
      });
  return {.query_start = values[0],
          .query_length = values[1],
          .key_start = values[2],
          .key_length = values[3],
          .told_keys = values[4]};
}

Value* diagonal_offset(Kernel& kernel, const DiagonalFields& fields, const Sequence& sequence) {
  llvm::IRBuilder<>& ir = kernel.ir();
  constexpr int far = 1 << 29;
  Value* bottom_right = kernel.argument_i32(fields.bottom_right_mask);
  Value* offset = ir.CreateAdd(kernel.argument_i32(fields.causal_offset),
                               ir.CreateAnd(ir.CreateSub(sequence.told_keys, sequence.query_length), bottom_right));
  return maximum(kernel, minimum(kernel, offset, kernel.constant(far)), kernel.constant(-far));
}

}  // namespace wavejit::attention
