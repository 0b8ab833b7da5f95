// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A mixed batch that a seed draws: sequences of all lengths, and the call that they share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "templates/attention/kernel/mask_kinds.h"
#include "templates/attention/program/invariance_rows.h"
#include "templates/attention_forward/program/vocabulary.h"
#include "tools/byte_float.h"

namespace wavejit::attention_forward::program {

// v as k.
struct DrawnSequence : DrawnRows {
  std::vector<std::uint16_t> v;
};

struct Batch;

// Powers of two for each kv head: of one sequence, or of the pieces of a call.
struct CacheScales {
  std::vector<float> q;  // of queries in 8 bits
  std::vector<float> k;
  std::vector<float> v;
};
// A batch whose K and V, and perhaps Q, are in 8 bits (invariance_cache.h).
struct DrawnCache {
  bool queries = false;
  // In the encoding of no target: both have its values.
  ByteType type = ByteType::e4m3;
  std::vector<CacheScales> scales;      // of each sequence, or empty
  std::shared_ptr<const Batch> stored;  // without scales
  // Where each token of each kv head has scales: K and V of one dim, which are they. Else null.
  std::shared_ptr<const Batch> token_scales;
};

// Sequences and what they share.
struct Batch {
  std::uint64_t number = 0;  // of the seed
  HalfType type = HalfType::fp16;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t dim = 64;
  bool causal = false;
  std::optional<std::int64_t> window_left;
  const attention::MaskKind* kind = nullptr;  // of masks.def, without a window, and its number
  std::int32_t number_of_kind = 0;
  float softcap = 0;
  std::vector<float> alibi;  // a slope a head, or empty
  std::vector<float> sink;   // a logit a head, or empty
  std::vector<DrawnSequence> sequences;
  // Lists of key blocks, drawn by these; 0: none. Heads of the lists: 1, the kv heads or the query heads.
  std::int64_t list_rows = 0;
  std::int64_t list_keys = 0;
  std::int64_t list_heads = 1;
  std::int64_t list_percent = 0;
  DrawnCache cache = {};

  AnswerShape answer_shape() const { return {.type = type, .heads = query_heads, .dim = dim}; }
  std::string descriptor(const DrawnSequence& of) const;
};

struct BatchSize {
  std::int64_t sequences = 0;
  std::int64_t longest = 0;   // keys of a sequence
  bool lists = false;         // and sequences of several blocks of rows
  bool byte_queries = false;  // what their kernels do: no modified scores
};
inline std::vector<RowsOf> all_whole(const Batch& batch) { return whole_sequences(batch, &DrawnSequence::rows); }
Batch draw_batch(std::uint64_t seed, std::uint64_t number, const BatchSize& size);

}  // namespace wavejit::attention_forward::program
