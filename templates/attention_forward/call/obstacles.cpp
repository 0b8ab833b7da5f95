// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/obstacles.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/call/obstacles.h"
#include "templates/attention_forward/call/merging.h"
#include "templates/attention_forward/call/pairs.h"
#include "templates/attention_forward/kernel/head_dims.h"

namespace wavejit::attention_forward {
namespace {

using Words = families::ProblemWords<AttentionShape>;

// All pairs that fill tiles, and, between them, those of the problem's own kind in steps.
std::vector<HeadDims> candidates_of(const HeadDims& own) {
  std::vector<HeadDims> all(whole_head_dims.begin(), whole_head_dims.end());
  const auto add = [&](const HeadDims& dims) {
    if (has_head_dims(dims) && !std::ranges::contains(all, dims)) all.push_back(dims);
  };
  const auto down = [](int dim) { return std::min(dim / head_dim_step * head_dim_step, largest_head_dim); };
  add({.qk = down(own.qk), .v = down(own.v)});
  add({.qk = down(own.qk) + head_dim_step, .v = down(own.v) + (own.v % head_dim_step == 0 ? 0 : head_dim_step)});
  for (int dim = head_dim_step; own.qk == own.v && dim <= largest_head_dim; dim += head_dim_step)
    add({.qk = dim, .v = dim});
  return all;
}

void leave_out_modifier(AttentionShape& shape, Modifier modifier) {
  if (modifier != Modifier::bias) return;
  shape.bias_fp32 = false;
  if (shape.bias_by_tile) shape.block_lists = false;  // which were made of it
  shape.bias_by_tile = false;
}

// Scales of tokens are those of keys in 8 bits.
void leave_out_scales(AttentionShape& shape) {
  shape.token_scales = shape.token_scales && (shape.integers || shape.cache != CacheType::as_queries);
}

void add_types(Words& words) {
  const AttentionShape& shape = words.shape;
  if (shape.narrow_queries) {
    const auto all_wide = [](AttentionShape& other) {
      other.narrow_queries = false;
      leave_out_scales(other);
    };
    using Side = families::Change::Side;
    words.add_choice("queries=e4m3", "", all_wide);
    words.add_value(true, "q in 16 bits", [](AttentionShape& other) {
      other.narrow_queries = false;
      if (other.cache == CacheType::as_queries) other.cache = CacheType::e4m3;
    });
    words.add_value(true, "tensors in 16 bits", all_wide, Side::below, true);
  }
  add_cache(words, leave_out_scales);
  words.add_other(shape.token_scales, "a scale for each token", "a scale for each", "head",
                  [](AttentionShape& other) { other.token_scales = false; });
  words.add_other(shape.integers, "qk=i8", "q and k in", "16 bits", [](AttentionShape& other) {
    other.integers = other.half_scores = false;
    leave_out_scales(other);
  });
  words.add(shape.half_scores, "scores=fp16", "scores=fp16", [](AttentionShape& other) { other.half_scores = false; });
  words.add_other(shape.query_fp32, "q in fp32", "q in", "16 bits",
                  [](AttentionShape& other) { other.query_fp32 = false; });
  words.add_other(shape.output != OutputType::as_products, "o in " + std::string(to_text(shape.output_type())), "o in",
                  "16 bits", [](AttentionShape& other) { other.output = OutputType::as_products; });
  words.add(shape.lse, "lse", "lse", [](AttentionShape& other) { other.lse = false; });
}

void add_scores(Words& words) {
  const AttentionShape& shape = words.shape;
  add_mask(words, mask_names, [](AttentionShape& other) { other.causal_flags = false; });
  words.add(shape.causal_flags, "causal_flags", "causal_flags",
            [](AttentionShape& other) { other.causal_flags = false; });
  add_modifiers(words, leave_out_modifier);
  words.add_other(shape.bias_fp32, "a bias in fp32", "a bias in", "16 bits",
                  [](AttentionShape& other) { other.bias_fp32 = false; });
  words.add(shape.bias_by_tile, "bias_by_tile", "bias_by_tile",
            [](AttentionShape& other) { other.bias_by_tile = other.block_lists = false; });
}

// As they stand in memory, nearest first. A list of slots is one of a cache's.
void add_pages(Words& words) {
  const AttentionShape& shape = words.shape;
  if (!shape.paged) return;
  const auto of_rows = [](AttentionShape& other) { other.single_keys = other.vectorised = false; };
  const auto none = [](AttentionShape& other) {
    other.paged = other.whole_tiles = other.single_keys = other.vectorised = false;
  };
  const std::string said = shape.vectorised    ? "a vectorised cache"
                           : shape.single_keys ? "a cache in pages of one key"
                                               : "a paged cache";
  if (!shape.slots) {
    words.add_choice(said, "", none);
  } else if (shape.single_keys || shape.vectorised) {
    words.add_choice(said, "", of_rows);
  }
  words.add_value(shape.vectorised, "pages of rows", of_rows);
  words.add_value(shape.single_keys, "pages of 16 keys", of_rows);
  words.add_value(!shape.slots, "keys without pages", none);
}

void add_keys(Words& words) {
  const AttentionShape& shape = words.shape;
  words.add(shape.bool_mask, "a bool mask", "the bool mask",
            [](AttentionShape& other) { other.bool_mask = other.block_lists = false; });
  words.add(shape.block_lists && !shape.bool_mask && !shape.bias_by_tile, "a list of key blocks",
            "the list of key blocks", [](AttentionShape& other) { other.block_lists = false; });
  words.add(shape.listed, "a list of keys", "the list of keys",
            [](AttentionShape& other) { other.listed = other.slots = false; });
  add_pages(words);
  words.add(shape.first_keys, "first_keys", "first_keys", [](AttentionShape& other) { other.first_keys = false; });
  std::string names;
  for (const auto& [there, name] : {std::pair{shape.trans_q, "trans_q"}, std::pair{shape.trans_k, "trans_k"},
                                    std::pair{shape.trans_v, "trans_v"}, std::pair{shape.trans_o, "trans_o"}})
    if (there) names += (names.empty() ? "" : "/") + std::string(name);
  words.add_other(shape.trans_any(), names, "", "tensors whose dims are contiguous",
                  [](AttentionShape& other) { other.trans_q = other.trans_k = other.trans_v = other.trans_o = false; });
}

// What else a route has chosen for a problem follows from its words: a changed one has it as far as they let it.
AttentionShape settled(AttentionShape shape, const targets::Target& target) {
  if (shape.narrow_queries || shape.block_lists) shape.split = shape.mixed = false;
  shape.merged = shape.merged && shape.split && can_merge(shape, target, shape.shared_chunks);
  shape.paired_tiles = shape.paired_tiles && may_pair(shape);
  return shape;
}
// Or none of it.
AttentionShape unchosen(AttentionShape shape) {
  shape.split = shape.mixed = shape.merged = shape.paired_tiles = shape.shared_chunks = false;
  shape.rows = QueriesOf::all;
  return shape;
}

// The sentence of the rule that refuses it; nothing: it has kernels.
std::optional<std::string> refusal_of(const AttentionShape& shape, const targets::Target& target,
                                      const Toggles& toggles) {
  const auto refusal = [&](const AttentionShape& one) -> std::optional<std::string> {
    const auto chosen = choose_kernel(one, target, toggles);
    if (chosen) return std::nullopt;
    const std::string before = " on " + std::string(target.id) + ": ";
    const std::string& detail = chosen.error().detail;
    const std::size_t at = detail.find(before);
    return at == std::string::npos ? detail : detail.substr(at + before.size());
  };
  if (!shape.mixed) return refusal(shape);
  if (auto of_long = refusal(shape.of_long_queries())) return of_long;
  return refusal(shape.of_few_rows());
}

}  // namespace

Failure tell_obstacles(const AttentionShape& shape, const targets::Target& target, const Toggles& toggles,
                       Failure failure) {
  if (toggles.pins_kernels() || !toggles.ways.empty()) {
    Toggles free = toggles;
    free.pins.clear();
    free.ways.clear();
    if (!refusal_of(shape, target, free)) return failure;
  }
  Words words(shape.code());
  attention::add_head_dims(words, whole_head_dims.front(), candidates_of({shape.head_dim_qk, shape.head_dim_v}),
                           [](const HeadDims& dims) { return is_padded(dims); });
  add_types(words);
  add_scores(words);
  add_keys(words);
  const families::RefusedProblem problem = {.code = shape.code(),
                                            .words = words.all(),
                                            .refusal =
                                                [&](std::uint64_t code) {
                                                  const AttentionShape other = AttentionShape::of_code(code);
                                                  auto refusal = refusal_of(settled(other, target), target, toggles);
                                                  return refusal ? refusal
                                                                 : refusal_of(unchosen(other), target, toggles);
                                                },
                                            .target = target.id};
  return families::with_obstacles(problem, std::move(failure));
}

}  // namespace wavejit::attention_forward
