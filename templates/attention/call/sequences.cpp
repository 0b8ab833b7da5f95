// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/sequences.h"

#include <algorithm>
#include <string>

#include "families/call/refusal.h"
#include "templates/attention/call/limits.h"

namespace wavejit::attention {
namespace {

namespace refusal = families::refusal;
using families::Result;
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

// The keys' own: of queries `check_sequences` asks the same as without pages.
Result<std::int64_t> check_longest_in_pages(const SequenceCall& call) {
  if (call.key_starts != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "key_starts", refusal::pointer_text(call.key_starts),
                      "null: keys stand in the pages of block_table"));
  if (call.key_lengths == nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "key_lengths", "null",
                      "device memory: pages do not say how many keys a sequence has"));
  if (call.max_key_length >= 0 && call.max_key_length <= max_paged_length) return call.max_key_length;
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "max_key_length", std::to_string(call.max_key_length),
                    up_to("0", max_paged_length) + ", the keys of the longest sequence"));
}

Result<void> check_packed_batch(const char* name, const wavejit_tensor& tensor) {
  if (tensor.sizes[0] == 1) return {};
  return refuse(refusal::bad_size({name, &tensor}, 0, "1: sequences are packed along the length"));
}

Result<void> check_paged_sequences(const SequenceCall& call, Extents& extents) {
  const bool packed = call.query_starts != nullptr;
  extents.sequences = packed ? call.sequences : call.q.sizes[0];
  extents.sequences_from = packed ? "sequences" : "q.sizes[0]";
  if (packed ? call.sequences < 1 || call.sequences > max_batch
             : call.sequences != 0 && call.sequences != extents.sequences) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "sequences", std::to_string(call.sequences),
                      packed ? up_to("1", max_batch) : "0 or " + std::to_string(extents.sequences) + " (q.sizes[0])"));
  }
  if (packed) {
    if (auto one = check_packed_batch("q", call.q); !one) return one;
  }
  auto queries = check_longest("max_query_length", call.max_query_length, packed, call.q.sizes[1], 1);
  if (!queries) return std::unexpected(std::move(queries.error()));
  auto keys = check_longest_in_pages(call);
  if (!keys) return std::unexpected(std::move(keys.error()));
  extents.query_length = *queries;
  extents.key_length = *keys;
  return {};
}

}  // namespace

families::Result<void> check_sequences(const SequenceCall& call, Extents& extents) {
  const bool packed_queries = call.query_starts != nullptr;
  const bool packed_keys = call.key_starts != nullptr;
  for (const auto& [name, array] : {std::pair{"query_starts", call.query_starts},
                                    {"key_starts", call.key_starts},
                                    {"key_lengths", call.key_lengths},
                                    {"first_keys", call.first_keys}}) {
    if (auto good = check_array(name, array); !good) return good;
  }
  if (call.paged) return check_paged_sequences(call, extents);
  if (packed_keys && call.first_keys != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "first_keys", refusal::pointer_text(call.first_keys),
                      "null: key_starts says where the keys of a sequence begin"));
  if (call.names_a_table)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "block_table", "null beside other fields of a table",
                      "device memory, or null with table_starts, table_columns and table_row_stride 0"));
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
    if (auto one = check_packed_batch("q", call.q); !one) return one;
  }
  if (packed_keys) {
    if (auto one = check_packed_batch("k", call.k); !one) return one;
  }
  auto queries = check_longest("max_query_length", call.max_query_length, packed_queries, call.q.sizes[1], 1);
  if (!queries) return std::unexpected(std::move(queries.error()));
  // 0 as in pages: a batch without any key. Whoever forgot the field hears of it from WAVEJIT_CHECK_LENGTHS.
  auto keys = check_longest("max_key_length", call.max_key_length, packed_keys, call.k.sizes[1], 0);
  if (!keys) return std::unexpected(std::move(keys.error()));
  extents.query_length = *queries;
  extents.key_length = *keys;
  return {};
}

}  // namespace wavejit::attention
