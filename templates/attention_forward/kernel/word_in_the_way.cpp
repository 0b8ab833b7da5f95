// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/word_in_the_way.h"

#include <algorithm>

namespace wavejit::attention_forward {
namespace {

struct Word {
  const char* name;
  const char* accepted;
  bool (*given)(const ForwardKernel& spec);
  void (*leave_out)(ForwardKernel& spec);
};

// Words that a caller gives up most easily stand first: what it need not have said, then what makes scores.
constexpr Word words[] = {
    {"an overlapped pipeline (dualwave, interleaved)", "auto, generic",
     [](const ForwardKernel& its) { return its.pipeline != Pipeline::generic; },
     [](ForwardKernel& its) {
       its.pipeline = Pipeline::generic;
       its.tile_queries = 128;
       its.whole_tiles = false;
     }},
    {"merged", "two launches", [](const ForwardKernel& its) { return its.merged; },
     [](ForwardKernel& its) { its.merged = false; }},
    {"a bias in fp32", "a bias in 16 bits", [](const ForwardKernel& its) { return its.bias_fp32; },
     [](ForwardKernel& its) { its.bias_fp32 = false; }},
    {"a bias", "no bias", [](const ForwardKernel& its) { return its.has(Modifier::bias) && !its.bias_by_tile; },
     [](ForwardKernel& its) {
       its.modifiers.set(Modifier::bias, false);
       its.bias_fp32 = false;
     }},
    {"softcap", "no softcap", [](const ForwardKernel& its) { return its.has(Modifier::softcap); },
     [](ForwardKernel& its) { its.modifiers.set(Modifier::softcap, false); }},
    {"alibi", "no alibi", [](const ForwardKernel& its) { return its.has(Modifier::alibi); },
     [](ForwardKernel& its) { its.modifiers.set(Modifier::alibi, false); }},
    {"q=fp32", "q in 16 bits", [](const ForwardKernel& its) { return its.query_fp32; },
     [](ForwardKernel& its) { its.query_fp32 = false; }},
    {"causal_flags", "one mask for all sequences", [](const ForwardKernel& its) { return its.causal_flags; },
     [](ForwardKernel& its) { its.causal_flags = false; }},
    {"a mask", "no mask", [](const ForwardKernel& its) { return its.mask != Mask::none; },
     [](ForwardKernel& its) {
       its.mask = Mask::none;
       its.causal_flags = false;
     }},
    {"cache_scales=token", "scales of heads", [](const ForwardKernel& its) { return its.token_scales; },
     [](ForwardKernel& its) { its.token_scales = false; }},
    {"first_keys", "no first_keys", [](const ForwardKernel& its) { return its.first_keys; },
     [](ForwardKernel& its) { its.first_keys = false; }},
    {"page=1", "pages of 16 n keys", [](const ForwardKernel& its) { return its.single_keys; },
     [](ForwardKernel& its) { its.single_keys = false; }},
    {"a paged KV cache", "keys without pages", [](const ForwardKernel& its) { return its.paged && !its.slots; },
     [](ForwardKernel& its) { its.paged = its.whole_tiles = its.single_keys = its.vectorised = false; }},
    {"a bool mask", "no bool mask", [](const ForwardKernel& its) { return its.bool_mask; },
     [](ForwardKernel& its) { its.bool_mask = its.block_lists = false; }},
    {"a list of key blocks", "no list of key blocks",
     [](const ForwardKernel& its) { return its.block_lists && !its.bool_mask && !its.bias_by_tile; },
     [](ForwardKernel& its) { its.block_lists = false; }},
    {"bias_by_tile", "no bias_by_tile", [](const ForwardKernel& its) { return its.bias_by_tile; },
     [](ForwardKernel& its) { its.bias_by_tile = its.block_lists = false; }},
    {"a list of keys", "keys in their order", [](const ForwardKernel& its) { return its.listed; },
     [](ForwardKernel& its) { its.listed = its.slots = false; }},
    {"a tensor whose dims are not contiguous", "contiguous dims",
     [](const ForwardKernel& its) { return its.trans_any(); },
     [](ForwardKernel& its) { its.trans_q = its.trans_k = its.trans_v = its.trans_o = false; }},
    {"qk=i8", "Q and K in 16 bits", [](const ForwardKernel& its) { return its.integers; },
     [](ForwardKernel& its) { its.integers = its.token_scales = false; }},
    {"cache=", "keys in 16 bits", [](const ForwardKernel& its) { return its.cache != CacheType::as_queries; },
     [](ForwardKernel& its) {
       its.cache = CacheType::as_queries;
       its.token_scales = its.token_scales && its.integers;
     }},
};

}  // namespace

WordInTheWay word_in_the_way(const ForwardKernel& spec, bool (*fits)(const ForwardKernel& spec)) {
  for (const Word& word : words) {
    if (!word.given(spec)) continue;
    ForwardKernel without = spec;
    word.leave_out(without);
    if (fits(without)) return {.word = word.name, .accepted = word.accepted};
  }
  ForwardKernel without = spec;
  std::string accepted;
  for (const Word& word : words) {
    if (!word.given(without)) continue;
    word.leave_out(without);
    accepted += (accepted.empty() ? "" : ", ") + std::string(word.accepted);
    if (fits(without)) return {.word = word.name, .accepted = accepted};
  }
  return {.word = "head dim " + to_text(HeadDims{.qk = spec.head_dim_qk, .v = spec.head_dim_v}),
          .accepted = "smaller head dims"};
}

}  // namespace wavejit::attention_forward
