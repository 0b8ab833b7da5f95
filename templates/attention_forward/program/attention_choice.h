// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What answers of `wavejit choose` say of a call of attention_forward, and its descriptor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention_forward/program/block_list_choice.h"
#include "tools/variants/variants.h"

namespace wavejit::attention_forward::program::choice {

// A whole number from 1 on.
std::optional<std::int64_t> number(const std::string& text);
bool said(const tools::Answers& answers, const std::string& name, const std::string& value);

bool is_paged(const tools::Answers& answers);
bool is_decode(const tools::Answers& answers);
bool has_key_lists(const tools::Answers& answers);
// Queries of their own 8 bits, which say what keys are.
bool has_byte_queries(const tools::Answers& answers);
// Something stands in memory in 8 bits, and may have scales.
bool has_eight_bits(const tools::Answers& answers);

inline constexpr std::string_view integers = "i8";
inline constexpr std::string_view of_tokens = "token";

struct AttentionChoice {
  std::string type;
  std::string dims;
  std::int64_t batch, rows, keys, heads, kv_heads, head_dim, head_dim_v, page, top_k;
  bool causal, is_paged, is_packed, lse;
  std::string queries;  // a format of 8 bits; empty: the type
  std::string cache;    // of keys and values under queries of the type; empty: the type
  std::string scales;   // "bh", "token"; empty: none
  std::string window;
  std::string local_chunk;  // empty: rows see whatever the mask shows
  bool causal_flags;        // each sequence says whether it is causal
  std::string variant;
  BlockListChoice blocks;

  // The type of keys and values; empty: the type.
  std::string keys_in() const { return queries.empty() ? cache : queries; }
  std::string values_in() const { return queries == integers ? std::string() : keys_in(); }
};

// Which of q, k and v have scales.
std::vector<std::string> scaled_tensors(const AttentionChoice& call);

AttentionChoice choice_of(const tools::Answers& answers);
std::string descriptor_of(const AttentionChoice& call, const tools::Answers& answers);
// What no kernel has, in terms of the questions; empty: nothing.
std::string problem_of(const AttentionChoice& call, const tools::Answers& answers);

}  // namespace wavejit::attention_forward::program::choice
