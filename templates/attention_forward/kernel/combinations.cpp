// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words that have no kernel beside others: a row for each word, or for each property of a target, with those that it
// does not go with. Rows are asked in their order: what an earlier one refuses, as split= does O in fp32, no later one
// says again.
#include <algorithm>
#include <array>
#include <span>

#include "templates/attention/kernel/mask_kinds.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/rules.h"

namespace wavejit::attention_forward {
namespace {

using Asked = AskedSpec;

// A word that can be in the way, and what would do in its place.
struct Part {
  std::string_view word;
  std::string_view accepted;
  bool (*given)(const Asked& asked);
};

// What can be given of a spec. Named after the fields of spec.h.
namespace parts {
#define WAVEJIT_PART(name, word, accepted, condition)                    \
  constexpr Part name {                                                  \
    word, accepted, [](const Asked& asked) -> bool { return condition; } \
  }
// clang-format off
WAVEJIT_PART(bias, "a bias", "no bias", asked.spec.has(Modifier::bias));
WAVEJIT_PART(softcap, "softcap", "no softcap", asked.spec.has(Modifier::softcap));
WAVEJIT_PART(alibi, "alibi", "no alibi", asked.spec.has(Modifier::alibi));
WAVEJIT_PART(no_bias, "a call without a bias", "bias_type=fp32 beside bias", !asked.spec.has(Modifier::bias));
WAVEJIT_PART(queries8, "queries=e4m3", "bf16, fp16", asked.spec.narrow_queries);
WAVEJIT_PART(qk8, "qk=i8", "bf16, fp16", asked.spec.integers);
WAVEJIT_PART(no_qk8, "a call without qk=i8", "it beside qk=i8", !asked.spec.integers);
WAVEJIT_PART(o32, "o=fp32", "O in 16 bits", asked.spec.output == OutputType::fp32);
WAVEJIT_PART(o8, "o= in 8 bits", "O in 16 bits", asked.spec.scales_output());
WAVEJIT_PART(o8_of_parts, "o= in 8 bits", "no o=", asked.spec.scales_output() && !asked.spec.merged);
WAVEJIT_PART(scattered_o, "trans_o", "O whose dims are contiguous and whose rows begin at multiples of 16 bytes", asked.spec.trans_o);
WAVEJIT_PART(lse, "lse", "no lse", asked.spec.lse);
WAVEJIT_PART(cache, "cache=", "keys in 16 bits", asked.spec.cache != CacheType::as_queries);
WAVEJIT_PART(keys16, "a cache in 16 bits", "beside cache= or qk=i8", asked.spec.cache == CacheType::as_queries && !asked.spec.integers);
WAVEJIT_PART(trans, "a tensor whose dims are not contiguous", "contiguous dims", asked.spec.trans_any());
WAVEJIT_PART(trans_q, "trans_q", "Q whose dims are contiguous", asked.spec.trans_q);
WAVEJIT_PART(trans_o, "trans_o", "auto, scalar", asked.spec.trans_o);
WAVEJIT_PART(paged, "paged", "keys without pages", asked.spec.paged);
WAVEJIT_PART(no_pages, "a call without pages", "paged beside it", !asked.spec.paged);
WAVEJIT_PART(singles, "page=1", "pages of 16 n keys", asked.spec.single_keys);
WAVEJIT_PART(looked_up, "a key that is looked up by itself (page=1, first_keys or a list of keys)", "auto, generic", asked.spec.key_layout().looks_up_each_key());
WAVEJIT_PART(looked_up_pages, "a key that is looked up by itself (page=1, first_keys)", "pages of 16 n keys without first_keys, or dense keys", asked.spec.paged && asked.spec.key_layout().looks_up_each_key());
WAVEJIT_PART(vectorised, "page_layout=vectorised", "pages of rows", asked.spec.vectorised);
WAVEJIT_PART(vectorised_pages, "page_layout=vectorised", "auto, generic", asked.spec.vectorised);
WAVEJIT_PART(first_keys, "first_keys", "no first_keys", asked.spec.first_keys);
WAVEJIT_PART(granules, "a page that holds no whole tiles of 64 keys", "auto, generic", asked.spec.pipeline != Pipeline::generic && asked.spec.tile_layout().wave_granules);
WAVEJIT_PART(unscaled_pages, "paged", "pipeline=generic, keys without pages, or pipeline=dualwave and pages of whole_tiles",
             lacks_token_scales(asked.spec, asked.spec.pipeline));
WAVEJIT_PART(blocks, "a list of key blocks", "masks none, causal, window", asked.spec.block_lists);
WAVEJIT_PART(no_blocks, "a call without block_lists", "block_lists bias bias_by_tile", !asked.spec.block_lists);
WAVEJIT_PART(mask, "a bool mask", "masks none, causal, window, a bias", asked.spec.bool_mask);
WAVEJIT_PART(listed, "a list of keys", "keys in their order", asked.spec.listed);
WAVEJIT_PART(no_list, "a call without a list of keys", "listed slots", !asked.spec.listed);
WAVEJIT_PART(shares_call, "rows=", "a kernel for all sequences", asked.spec.shares_call());
WAVEJIT_PART(many, "rows=many", "a wave with rows of its own", asked.spec.rows == QueriesOf::many);
WAVEJIT_PART(split, "split=", "whole keys", asked.spec.split_keys != 0);
WAVEJIT_PART(whole, "a call of whole keys", "split= heads=packed", asked.spec.split_keys == 0);
WAVEJIT_PART(merged, "merged", "two launches", asked.spec.merged);
WAVEJIT_PART(packed, "heads=packed", "pipeline=generic", asked.spec.packed_heads);
WAVEJIT_PART(packed_blocks, "heads=packed", "a head a workgroup", asked.spec.packed_heads);
WAVEJIT_PART(no_packed, "a head a workgroup", "pipeline=generic heads=packed", !asked.spec.packed_heads);
WAVEJIT_PART(pairs, "tiles=paired", "a query tile a workgroup", asked.spec.paired_tiles);
WAVEJIT_PART(shared, "chunk_waves=", "a wave with rows of its own", asked.spec.chunk_waves != 0);
WAVEJIT_PART(overlapped, "an overlapped pipeline (dualwave, interleaved)", "auto, generic", asked.spec.pipeline != Pipeline::generic);
WAVEJIT_PART(not_dualwave, "another pipeline", "pipeline=dualwave causal", asked.spec.pipeline != Pipeline::dualwave);
WAVEJIT_PART(generic, "pipeline=generic", "pipeline=dualwave or interleaved", asked.spec.pipeline == Pipeline::generic);
WAVEJIT_PART(other_tile, "a workgroup of other rows", "pipeline=generic tile=32x64", asked.spec.tile_queries != shared_tile_queries);
WAVEJIT_PART(padded, "a head dim that tiles pad", "head dims that fill tiles", is_padded(asked.head_dims()));
WAVEJIT_PART(o32_overlapped, "o=fp32 in pipeline=dualwave", "auto, generic", asked.spec.pipeline == Pipeline::dualwave && asked.spec.output == OutputType::fp32);
WAVEJIT_PART(not_causal, "another mask", "pipeline=dualwave causal", asked.spec.mask != Mask::causal);
WAVEJIT_PART(flags_without_diagonal, "another mask than causal", "causal causal_flags", asked.spec.mask != Mask::causal);
WAVEJIT_PART(masked, "a mask (causal, window and others)", "the diagonal as an argument", asked.spec.mask != Mask::none);
WAVEJIT_PART(kind, kind_words, "causal, window or no mask", has_kind(asked.spec.mask));
WAVEJIT_PART(flags, "causal_flags", "one mask for all sequences", asked.spec.causal_flags);
// clang-format on
#undef WAVEJIT_PART
}  // namespace parts

// Where `given`, none of `without` has a kernel. `where` follows "<word> has no kernel ".
struct Combination {
  std::string (*where)(const Asked& asked);
  bool (*given)(const Asked& asked);
  std::array<const Part*, 11> without = {};
};

#define WAVEJIT_BESIDE(text) [](const Asked& asked [[maybe_unused]]) { return std::string(text); }
#define WAVEJIT_IF(condition) [](const Asked& asked) -> bool { return condition; }

using namespace parts;
constexpr Combination combinations[] = {
    // A key of a tile is looked up by a lane of its own, and a tile has 64. And a wave has half of the registers: what
    // puts tiles, parts or numbers of single keys into the other half has none.
    {[](const Asked& asked) {
       return "where waves have " + std::to_string(asked.target.wave_size) + " lanes, as on " + asked.target_name();
     },
     WAVEJIT_IF(asked.target.wave_size < attention::tile_keys),
     {&queries8, &qk8, &trans, &vectorised, &listed, &blocks, &mask, &shared, &merged}},
    {[](const Asked& asked) { return "with head dim " + to_text(asked.head_dims()) + ", which tiles pad"; },
     WAVEJIT_IF(is_padded(asked.head_dims())),
     {&queries8, &qk8, &cache, &trans, &vectorised, &listed, &blocks, &mask, &pairs, &shared, &o32_overlapped}},
    {WAVEJIT_BESIDE("beside queries=e4m3, which is for prompts"),
     WAVEJIT_IF(asked.spec.narrow_queries),
     {&split, &vectorised, &listed, &blocks, &bias, &softcap, &alibi, &first_keys, &cache, &granules}},
    {WAVEJIT_BESIDE("beside qk=i8"),
     WAVEJIT_IF(asked.spec.integers),
     {&overlapped, &queries8, &cache, &paged, &listed, &blocks}},
    {WAVEJIT_BESIDE("beside scores=fp16, which is what rocMLIR does"),
     WAVEJIT_IF(asked.spec.half_scores),
     {&no_qk8, &softcap, &alibi}},
    {WAVEJIT_BESIDE("beside q=fp32, which is loaded 32 bytes of a row at a time and rounded to 16 bits"),
     WAVEJIT_IF(asked.spec.query_fp32),
     {&queries8, &qk8, &trans_q, &pairs}},
    {WAVEJIT_BESIDE("beside cache_scales=token, numbers of keys in 8 bits"),
     WAVEJIT_IF(asked.spec.token_scales),
     {&keys16, &unscaled_pages, &listed, &blocks}},
    {WAVEJIT_BESIDE("where dims of a row need not be contiguous"),
     WAVEJIT_IF(asked.spec.trans_any()),
     {&overlapped, &queries8, &cache, &paged, &listed, &blocks, &mask}},
    {WAVEJIT_BESIDE("beside o_store=permlane, which swaps halves of 16 bits"),
     WAVEJIT_IF(asked.spec.output_store != OutputStore::scalar),
     {&trans_o, &split, &o32, &o8}},
    {WAVEJIT_BESIDE("beside split=, which leaves parts in f32 to attention_combine"),
     WAVEJIT_IF(asked.spec.split_keys != 0),
     {&lse, &o32, &o8_of_parts}},
    {WAVEJIT_BESIDE("beside o= in 8 bits, which stores four dims at once"),
     WAVEJIT_IF(asked.spec.scales_output()),
     {&scattered_o}},
    {WAVEJIT_BESIDE("beside bias_type=fp32, which takes 32 registers of a tile"),
     WAVEJIT_IF(asked.spec.bias_fp32),
     {&no_bias, &overlapped}},
    {WAVEJIT_BESIDE("beside chunk_waves="),
     WAVEJIT_IF(asked.spec.chunk_waves != 0),
     {&overlapped, &other_tile, &listed, &blocks, &trans, &vectorised, &many, &cache, &queries8, &qk8}},
    {WAVEJIT_BESIDE("beside merged, which takes parts of packed heads in 16 bits"),
     WAVEJIT_IF(asked.spec.merged),
     {&whole, &no_packed, &padded, &cache, &qk8, &trans, &listed, &blocks, &mask, &shares_call}},
    {[](const Asked& asked) { return "with " + asked.pipeline(); },
     WAVEJIT_IF(asked.spec.pipeline != Pipeline::generic),
     {&packed, &vectorised_pages, &looked_up}},
    {WAVEJIT_BESIDE("beside page=1, which is a size of pages"), WAVEJIT_IF(asked.spec.single_keys), {&no_pages}},
    {WAVEJIT_BESIDE("beside page_layout=vectorised, an order of pages of 16 n keys from a sequence's key 0 on"),
     WAVEJIT_IF(asked.spec.vectorised),
     {&no_pages, &singles, &first_keys, &cache}},
    {WAVEJIT_BESIDE("beside whole_tiles, whole tiles in pages of a pipeline that looks up a tile"),
     WAVEJIT_IF(asked.spec.whole_tiles),
     {&no_pages, &generic}},
    {WAVEJIT_BESIDE("with tiles=paired, which evens out what a diagonal leaves of a grid"),
     WAVEJIT_IF(asked.spec.paired_tiles),
     {&not_dualwave, &not_causal, &flags, &split, &paged, &cache}},
    {WAVEJIT_BESIDE("beside block_lists, walks of each head and block of rows"),
     WAVEJIT_IF(asked.spec.block_lists),
     {&split, &packed_blocks, &pairs, &shares_call, &kind}},
    {WAVEJIT_BESIDE("beside bool_mask, whose bits stand where a bias stands and leave no registers for more"),
     WAVEJIT_IF(asked.spec.bool_mask),
     {&bias, &queries8, &qk8, &cache, &vectorised, &looked_up_pages}},
    {WAVEJIT_BESIDE("beside a bool mask of few rows (without block_lists), which goes over dense keys"),
     WAVEJIT_IF(asked.spec.bool_mask && !asked.spec.block_lists),
     {&overlapped, &paged, &first_keys, &listed, &shares_call, &kind, &flags}},
    {WAVEJIT_BESIDE("beside bias_by_tile, walks of block_lists over dense keys that are made of a bias"),
     WAVEJIT_IF(asked.spec.bias_by_tile),
     {&no_blocks, &mask, &no_bias, &cache, &paged, &first_keys}},
    {WAVEJIT_BESIDE("beside causal_flags"),
     WAVEJIT_IF(asked.spec.causal_flags),
     {&flags_without_diagonal, &blocks, &listed}},
    {WAVEJIT_BESIDE("beside slots, which lists of keys name"), WAVEJIT_IF(asked.spec.slots), {&no_list}},
    {WAVEJIT_BESIDE("beside listed, lists of keys, where a workgroup takes the heads of one query"),
     WAVEJIT_IF(asked.spec.listed),
     {&no_packed, &masked, &vectorised, &first_keys, &shares_call, &bias, &alibi}},
};

// At most 40 rules in all with the nine of rules.cpp, which tests/architecture/counts.py counts: what only lacks
// registers is a cell of room.inc, not a rule.
static_assert(std::size(combinations) <= 30);

#undef WAVEJIT_BESIDE
#undef WAVEJIT_IF

const Part* first_given(const Combination& row, const Asked& asked) {
  const auto found =
      std::ranges::find_if(row.without, [&](const Part* part) { return part == nullptr || part->given(asked); });
  return found == row.without.end() ? nullptr : *found;
}

}  // namespace

std::string refused_combination(const AskedSpec& asked) {
  for (const Combination& row : combinations) {
    if (!row.given(asked)) continue;
    if (const Part* const part = first_given(row, asked))
      return std::string(part->word) + " has no kernel " + row.where(asked) +
             "; accepted: " + std::string(part->accepted);
  }
  return {};
}

}  // namespace wavejit::attention_forward
