// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/sequence.h"

#include "codegen/language/control.h"
#include "templates/attention_forward/call/arguments.h"
#include "templates/attention_forward/emit/integers.h"

namespace wavejit::attention_forward {
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

}  // namespace

Sequence sequence_of(Kernel& kernel, Value* batch) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* query_length = kernel.argument_i32(offsetof(Arguments, query_length));
  Value* key_length = kernel.argument_i32(offsetof(Arguments, key_length));
  const OptionalArray query_starts(kernel, offsetof(Arguments, query_starts));
  const OptionalArray key_starts(kernel, offsetof(Arguments, key_starts));
  const OptionalArray key_lengths(kernel, offsetof(Arguments, key_lengths));

  // One branch over all three, so that dense launches wait for nothing.
  Value* any =
      ir.CreateIsNotNull(ir.CreateOr(ir.CreateOr(query_starts.address(), key_starts.address()), key_lengths.address()));
  Value* zero = kernel.constant(0);
  const Values values = language::if_uniform(
      kernel, any, language::Likelihood::even, {zero, query_length, zero, key_length}, [&](const Values&) {
        const Rows queries = packed_rows(kernel, query_starts, batch, offsetof(Arguments, query_rows), query_length);
        const Rows keys = packed_rows(kernel, key_starts, batch, offsetof(Arguments, key_rows), key_length);
        Value* counted = minimum(kernel, keys.length, maximum(kernel, key_lengths.load(batch), zero));
        return Values{queries.start, queries.length, keys.start, key_lengths.or_else(counted, keys.length)};
      });
  return {.query_start = values[0], .query_length = values[1], .key_start = values[2], .key_length = values[3]};
}

QuerySpan query_span_of(Kernel& kernel, const QueryFields& fields, Value* batch) {
  Value* longest = kernel.argument_i32(fields.longest);
  const OptionalArray starts(kernel, fields.starts);
  const Values values =
      language::if_uniform(kernel, kernel.ir().CreateIsNotNull(starts.address()), language::Likelihood::even,
                           {kernel.constant(0), longest}, [&](const Values&) {
                             const Rows rows = packed_rows(kernel, starts, batch, fields.rows, longest);
                             return Values{rows.start, rows.length};
                           });
  return {.start = values[0], .length = values[1]};
}

}  // namespace wavejit::attention_forward
