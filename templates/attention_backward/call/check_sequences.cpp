// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dense or packed, and device arrays of lengths.
#include <algorithm>
#include <string>
#include <utility>

#include "families/call/refusal.h"
#include "templates/attention_backward/call/problem.h"

namespace wavejit::attention_backward {
namespace {

using families::refusal::bad;
using families::refusal::bad_size;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::up_to;
using Call = wavejit_attention_backward_arguments;

// The longest sequence of one side. `rows`: of its tensor.
Result<std::int64_t> check_longest(const char* name, std::int64_t given, bool packed, std::int64_t rows) {
  if (packed ? given >= std::min<std::int64_t>(1, rows) && given <= rows : given == 0 || given == rows)
    return packed ? given : rows;
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, name, std::to_string(given),
                    packed ? up_to("1", rows) + ", the rows of the packed tensor"
                           : "0 or " + std::to_string(rows) + ", the length of the tensor that is not packed"));
}

}  // namespace

Result<Extents> check_sequences(const Call& call) {
  const bool packed_queries = call.query_starts != nullptr;
  const bool packed_keys = call.key_starts != nullptr;
  for (const auto& [name, array] : {std::pair{"query_starts", call.query_starts},
                                    {"key_starts", call.key_starts},
                                    {"key_lengths", call.key_lengths}})
    if (reinterpret_cast<std::uintptr_t>(array) % alignof(std::int32_t) != 0)
      return refuse(
          bad(WAVEJIT_INVALID_ARGUMENT, name, pointer_text(array), "null, or device memory aligned to 4 bytes"));
  Extents extents;
  const bool both = packed_queries && packed_keys;
  extents.sequences = both ? call.sequences : packed_queries ? call.k.sizes[0] : call.q.sizes[0];
  extents.sequences_from = both ? "sequences" : packed_queries ? "k.sizes[0]" : "q.sizes[0]";
  if (both) {
    if (call.sequences < 1 || call.sequences > max_batch)
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "sequences", std::to_string(call.sequences), up_to("1", max_batch)));
  } else if (const bool either = packed_queries || packed_keys;
             call.sequences != extents.sequences && (either || call.sequences != 0)) {
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, "sequences", std::to_string(call.sequences),
            (either ? "" : "0 or ") + std::to_string(extents.sequences) + " (" + extents.sequences_from + ")"));
  }
  for (const auto& [name, tensor, packed] : {std::tuple{"q", &call.q, packed_queries}, {"k", &call.k, packed_keys}})
    if (packed && tensor->sizes[0] != 1)
      return refuse(bad_size({name, tensor}, 0, "1: sequences are packed along the length"));
  auto queries = check_longest("max_query_length", call.max_query_length, packed_queries, call.q.sizes[1]);
  if (!queries) return std::unexpected(std::move(queries.error()));
  auto keys = check_longest("max_key_length", call.max_key_length, packed_keys, call.k.sizes[1]);
  if (!keys) return std::unexpected(std::move(keys.error()));
  extents.query_length = *queries;
  extents.key_length = *keys;
  return extents;
}

}  // namespace wavejit::attention_backward
