// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem descriptors: one line of text says what a call is (docs/problem-descriptors.md). Logs print them, prebuild
// lists, benchmarks, bug reports and tests read them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "families/call/failure.h"
#include "templates/attention/call/mask_words.h"
#include "templates/attention/call/modifier_words.h"
#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

// "lists=64x64:10": rows and keys of a block; the other words are read by tools that generate lists.
struct DescribedLists {
  std::int32_t rows = 0;  // 0: none
  std::int32_t keys = 0;
  std::int32_t percent = 0;  // of all blocks; 0: not said
  bool operator==(const DescribedLists&) const = default;
};

enum class Layout : std::uint8_t { bshd, bhsd, packed, paged };

struct ProblemDescriptor {
  AttentionShape shape;
  std::int64_t batch = 1;
  std::int64_t query_length = 1;
  std::int64_t key_length = 1;
  // "q1..4096": the lengths above are the longest, these the shortest. Nothing: one length.
  std::optional<std::int64_t> least_query_length;
  std::optional<std::int64_t> least_key_length;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  Layout layout = Layout::bshd;
  // With layout=paged: keys of a page, and whether its heads stand outside its keys.
  std::int64_t page_size = 0;
  bool page_heads_first = false;
  // In vectorised pages (shape.vectorised): V is [keys / 8][dim] of 8 keys, not [dim][keys].
  bool values_by_keys = false;
  // One length a sequence; empty: all alike. Packed queries (of keys in pages too); packed keys, or how many of
  // dense keys and of keys in pages count.
  std::vector<std::int64_t> query_lengths;
  std::vector<std::int64_t> key_lengths;
  // With packed queries: rows of all sequences together, as the tensor has them; nothing: what the lengths add up to.
  std::optional<std::int64_t> query_rows;
  // The most keys that all sequences have together; nothing: not said. A hint for planning split keys.
  std::optional<std::int64_t> total_keys;
  // With shape.first_keys: one a sequence; empty: the words give no numbers.
  std::vector<std::int64_t> first_keys;
  // With K and V of 8 bits (shape.cache): what k_scale and v_scale have numbers for; none: no scales.
  attention::Extent cache_scales = attention::Extent::none;
  DescribedLists lists;
  std::uint32_t hints = 0;                                // flags of calls that hints.def lists
  attention::Extent bool_mask = attention::Extent::none;  // batches and heads with a mask of their own; none: no mask
  // "top_k=2048:slots:heads:mixed": entries of each query's list (0: no lists); lists for each kv head; and for tools
  // that generate lists: in no order, with holes and repeats, and with counts of their own. shape.slots: by slot of the
  // cache.
  std::int64_t top_k = 0;
  bool list_each_head = false;
  bool mixed_lists = false;
  std::int64_t second_top_k = 0;  // of a second list over a cache of its own
  MaskWords mask;                 // what the words said; shape.mask is what they amount to
  std::array<DescribedModifier, modifier_count> modifiers;
  std::int64_t splits = -1;   // −1: not said, 0: auto
  std::int64_t launches = 0;  // of several runs: 1 or 2; 0: not said
  std::string scale;          // as written: one text, one problem; empty: 1 / sqrt(head dim)
  std::string seed;
  std::string inputs;  // "normal", "uniform", "adversarial:<name>"; empty: not said

  // No word: of without_ranges.
  std::optional<bool> paired_tiles = std::nullopt;
  std::optional<bool> shared_chunks = std::nullopt;

  DescribedModifier& of(Modifier one) { return modifiers[static_cast<std::size_t>(one)]; }
  const DescribedModifier& of(Modifier one) const { return modifiers[static_cast<std::size_t>(one)]; }
  // There, with this extent or number; also in the shape if it changes code.
  void add(Modifier one, Extent extent, std::string number = {});

  bool has_range() const { return least_query_length || least_key_length; }
  bool operator==(const ProblemDescriptor&) const = default;
};

// WAVEJIT_INVALID_ARGUMENT for what is no descriptor, WAVEJIT_UNSUPPORTED for words of the grammar that this version
// does not do; both with the word, its position and what is accepted.
Result<ProblemDescriptor> parse_descriptor(std::string_view text);
// Canonical: words in the grammar's order, defaults left out. parse(to_text(x)) == x.
std::string to_text(const ProblemDescriptor& descriptor);

// Replaces a descriptor with ranges by descriptors of single lengths that reach every kernel that a length in the
// ranges reaches.
std::vector<ProblemDescriptor> without_ranges(const ProblemDescriptor& descriptor);

// check_slices.cpp. The limit of 4 GiB that a call of these sizes meets, in its words. Tensors lie without gaps.
Result<void> check_slices(const ProblemDescriptor& descriptor);

// What a number of splits and pairs of query tiles are chosen by; nothing of windows and modifiers but the shape's
// words.
AttentionProblem problem_of(const ProblemDescriptor& descriptor);

// For those who make arrays, which need lengths. If q_rows says only how many rows there are, one sequence is the longest,
// and the others share what is left. Packed queries over dense keys have no such words.
ProblemDescriptor with_lengths(const ProblemDescriptor& descriptor);

}  // namespace wavejit::attention_forward
