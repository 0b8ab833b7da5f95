// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <string>

#include "templates/attention_forward/call/problem/checks.h"
#include "templates/families/call/refusal.h"

namespace wavejit::attention_forward {
namespace {

using refusal::bad;
using refusal::refuse;
using refusal::up_to;

Result<void> check_array(const char* name, const std::int32_t* array) {
  if (reinterpret_cast<std::uintptr_t>(array) % alignof(std::int32_t) == 0) return {};
  return refuse(
      bad(WAVEJIT_INVALID_ARGUMENT, name, refusal::pointer_text(array), "null, or device memory aligned to 4 bytes"));
}

// The longest sequence of one side. `rows`: of its tensor.
Result<std::int64_t> check_longest(const char* name, std::int64_t given, bool packed, std::int64_t rows,
                                   std::int64_t least) {
  if (!packed) {
    if (given == 0 || given == rows) return rows;
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, name, std::to_string(given),
                      "0 or " + std::to_string(rows) + ", the length of the tensor that is not packed"));
  }
  if (given >= std::min(least, rows) && given <= rows) return given;
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, name, std::to_string(given),
                    up_to(std::to_string(least).c_str(), rows) + ", the rows of the packed tensor"));
}

Result<void> check_packed_batch(const char* name, const wavejit_tensor& tensor) {
  if (tensor.sizes[0] == 1) return {};
  return refuse(refusal::bad_size({name, &tensor}, 0, "1: sequences are packed along the length"));
}

}  // namespace

Result<Extents> check_sequences(const wavejit_attention_forward_arguments& call) {
  const bool packed_queries = call.query_starts != nullptr;
  const bool packed_keys = call.key_starts != nullptr;
  for (const auto& [name, array] : {std::pair{"query_starts", call.query_starts},
                                    {"key_starts", call.key_starts},
                                    {"key_lengths", call.key_lengths}}) {
    if (auto good = check_array(name, array); !good) return std::unexpected(std::move(good.error()));
  }
  Extents extents;
  if (packed_queries && packed_keys) {
    if (call.sequences < 1 || call.sequences > max_batch)
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "sequences", std::to_string(call.sequences), up_to("1", max_batch)));
    extents.sequences = call.sequences;
    extents.sequences_from = "sequences";
  } else {
    extents.sequences = packed_queries ? call.k.sizes[0] : call.q.sizes[0];
    extents.sequences_from = packed_queries ? "k.sizes[0]" : "q.sizes[0]";
    const bool either = packed_queries || packed_keys;
    if (call.sequences != extents.sequences && (either || call.sequences != 0)) {
      return refuse(
          bad(WAVEJIT_INVALID_ARGUMENT, "sequences", std::to_string(call.sequences),
              (either ? "" : "0 or ") + std::to_string(extents.sequences) + " (" + extents.sequences_from + ")"));
    }
  }
  if (packed_queries) {
    if (auto one = check_packed_batch("q", call.q); !one) return std::unexpected(std::move(one.error()));
  }
  if (packed_keys) {
    if (auto one = check_packed_batch("k", call.k); !one) return std::unexpected(std::move(one.error()));
  }
  auto queries = check_longest("max_query_length", call.max_query_length, packed_queries, call.q.sizes[1], 1);
  if (!queries) return std::unexpected(std::move(queries.error()));
  auto keys = check_longest("max_key_length", call.max_key_length, packed_keys, call.k.sizes[1], 1);
  if (!keys) return std::unexpected(std::move(keys.error()));
  extents.query_length = *queries;
  extents.key_length = *keys;
  return extents;
}

}  // namespace wavejit::attention_forward
