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

[[gnu::cold, gnu::noinline]] families::Failure bad_array(const char* name, const std::int32_t* array) {
  return bad(WAVEJIT_INVALID_ARGUMENT, name, refusal::pointer_text(array), "null, or device memory aligned to 4 bytes");
}

bool is_array(const std::int32_t* array) {
  return reinterpret_cast<std::uintptr_t>(array) % alignof(std::int32_t) == 0;
}

[[gnu::cold, gnu::noinline]] std::unexpected<families::Failure> no_array(const wavejit_sequences& call) {
  for (const auto& [name, array] : {std::pair{"query_starts", call.query_starts},
                                    {"key_starts", call.key_starts},
                                    {"key_lengths", call.key_lengths}})
    if (!is_array(array)) return refuse(bad_array(name, array));
  return refuse(bad_array("first_keys", call.first_keys));
}

// The longest sequence of queries or of keys, either as the call gives it or as its tensor bounds it.
struct Longest {
  const char* name;
  std::int64_t given;
  bool packed;
  std::int64_t rows;
  std::int64_t least;

  bool good() const { return packed ? given >= std::min(least, rows) && given <= rows : given == 0 || given == rows; }
  std::int64_t length() const { return packed ? given : rows; }
};

[[gnu::cold, gnu::noinline]] std::unexpected<families::Failure> bad_longest(const Longest& longest) {
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, longest.name, std::to_string(longest.given),
                    longest.packed
                        ? up_to(std::to_string(longest.least).c_str(), longest.rows) + ", the rows of the packed tensor"
                        : "0 or " + std::to_string(longest.rows) + ", the length of the tensor that is not packed"));
}

// The keys' own: of queries `check_sequences` asks the same as without pages.
Result<std::int64_t> check_longest_in_pages(const wavejit_sequences& call) {
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

Result<void> check_paged_sequences(const wavejit_tensor& q, const wavejit_sequences& call, Extents& extents) {
  const bool packed = call.query_starts != nullptr;
  extents.sequences = packed ? call.count : q.sizes[0];
  extents.sequences_from = packed ? "sequences" : "q.sizes[0]";
  if (packed ? call.count < 1 || call.count > max_batch : call.count != 0 && call.count != extents.sequences) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "sequences", std::to_string(call.count),
                      packed ? up_to("1", max_batch) : "0 or " + std::to_string(extents.sequences) + " (q.sizes[0])"));
  }
  if (packed) {
    if (auto one = check_packed_batch("q", q); !one) return one;
  }
  const Longest queries = {"max_query_length", call.max_query_length, packed, q.sizes[1], 1};
  if (!queries.good()) return bad_longest(queries);
  auto keys = check_longest_in_pages(call);
  if (!keys) return std::unexpected(std::move(keys.error()));
  extents.query_length = queries.length();
  extents.key_length = *keys;
  return {};
}

}  // namespace

families::Result<void> check_sequences(const wavejit_tensor& q, const wavejit_tensor& k, const wavejit_sequences& call,
                                       const wavejit_pages& pages, Extents& extents) {
  const bool packed_queries = call.query_starts != nullptr;
  const bool packed_keys = call.key_starts != nullptr;
  if (!is_array(call.query_starts) || !is_array(call.key_starts) || !is_array(call.key_lengths) ||
      !is_array(call.first_keys)) [[unlikely]]
    return no_array(call);
  if (pages.block_table != nullptr) return check_paged_sequences(q, call, extents);
  if (packed_keys && call.first_keys != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "first_keys", refusal::pointer_text(call.first_keys),
                      "null: key_starts says where the keys of a sequence begin"));
  if (pages.table_starts != nullptr || (pages.table_columns | pages.table_row_stride) != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "block_table", "null beside other fields of a table",
                      "device memory, or null with table_starts, table_columns and table_row_stride 0"));
  if (packed_queries && packed_keys) {
    if (call.count < 1 || call.count > max_batch)
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "sequences", std::to_string(call.count), up_to("1", max_batch)));
    extents.sequences = call.count;
    extents.sequences_from = "sequences";
  } else {
    extents.sequences = packed_queries ? k.sizes[0] : q.sizes[0];
    extents.sequences_from = packed_queries ? "k.sizes[0]" : "q.sizes[0]";
    const bool either = packed_queries || packed_keys;
    if (call.count != extents.sequences && (either || call.count != 0)) {
      return refuse(
          bad(WAVEJIT_INVALID_ARGUMENT, "sequences", std::to_string(call.count),
              (either ? "" : "0 or ") + std::to_string(extents.sequences) + " (" + extents.sequences_from + ")"));
    }
  }
  if (packed_queries) {
    if (auto one = check_packed_batch("q", q); !one) return one;
  }
  if (packed_keys) {
    if (auto one = check_packed_batch("k", k); !one) return one;
  }
  const Longest queries = {"max_query_length", call.max_query_length, packed_queries, q.sizes[1], 1};
  if (!queries.good()) return bad_longest(queries);
  // 0 as in pages: a batch without any key. Whoever forgot the field hears of it from WAVEJIT_CHECK_LENGTHS.
  const Longest keys = {"max_key_length", call.max_key_length, packed_keys, k.sizes[1], 0};
  if (!keys.good()) return bad_longest(keys);
  extents.query_length = queries.length();
  extents.key_length = keys.length();
  return {};
}

}  // namespace wavejit::attention
