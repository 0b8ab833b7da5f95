// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What people ask for by name, as data. What others have was read from their sources at the dates said, not tried.
#include <string>
#include <vector>

#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/program/cache_formats.h"
#include "templates/attention_forward/program/answers.h"

namespace wavejit::attention_forward::program {
namespace {

constexpr Variant variants[] = {
    {.name = "mha",
     .title = "Multi-head (MHA)",
     .meaning = "Every query head has keys and values of its own.",
     .descriptor = "attention_forward {type} b1 q1024 k1024 h32 d{dim}",
     .peers = {"bf16, fp16", "bf16, fp16; fp8 at head dim 128"}},
    {.name = "gqa",
     .title = "Grouped queries (GQA)",
     .meaning = "Groups of query heads share a kv head: q [B, S, Hq, D], k and v [B, S, Hkv, D], Hkv divides Hq.",
     .descriptor = "attention_forward {type} b1 q1024 k1024 h32/8 d{dim}",
     .peers = {"yes", "yes; its fp8 assembly needs a power of two"}},
    {.name = "mqa",
     .title = "One kv head (MQA)",
     .meaning = "All query heads read the same kv head.",
     .descriptor = "attention_forward {type} b1 q1024 k1024 h32/1 d{dim}",
     .peers = {"yes", "yes"}},
    {.name = "causal",
     .title = "Causal",
     .meaning = "A row sees no later key. Aligned bottom-right: the last row sees all keys.",
     .descriptor = "attention_forward {type} b1 q1024 k4096 h32/8 d{dim} causal",
     .peers = {"bottom-right", "bottom-right; its assembly for gradients top-left"}},
    {.name = "windowed",
     .title = "Sliding window",
     .meaning = "A row sees keys up to `left` before its diagonal and `right` behind it; −1 is no limit.",
     .descriptor = "attention_forward {type} b1 q4096 k4096 h32/8 d{dim} causal window=1023,0",
     .peers = {"gfx950, bf16, head dim 128", "through CK; its assembly refuses windows"}},
    {.name = "chunked",
     .title = "Local chunks",
     .meaning =
         "A causal row sees only the keys of its own chunk, 8192 positions here, as layers of Llama 4 do. Tiles of "
         "other chunks are not walked.",
     .descriptor = "attention_forward {type} b1 q4096 k16384 h40/8 d{dim} causal chunked=8192",
     .peers = {"no", "no"}},
    {.name = "prefix",
     .title = "Prefix",
     .meaning = "Causal, and the diagonal begins at a key of your choice: what stands before it all rows see.",
     .descriptor = "attention_forward {type} b1 q1024 k1280 h32/8 d{dim} causal=256",
     .peers = {"no", "no"}},
    {.name = "packed",
     .title = "Packed sequences",
     .meaning =
         "Sequences of any lengths one after the other, [total, heads, dim], and where each begins, in device memory.",
     .descriptor = "attention_forward {type} b3 q700 k700 h32/8 d{dim} causal layout=packed",
     .peers = {"head dims 64 and 128", "yes"}},
    {.name = "padded",
     .title = "Padded batches",
     .meaning = "Right padding: key lengths in device memory. Left padding: where key 0 stands, too. What is padded "
                "may be NaN and shows in no bit.",
     .descriptor = "attention_forward {type} b2 q128 k512 h32/8 d{dim} causal k_lengths=512,300 first_keys=0,212",
     .peers = {"right", "right"}},
    {.name = "paged",
     .title = "Paged cache",
     .meaning = "Keys and values in the pages of a cache, which a block table or a list (CSR) names.",
     .descriptor = "attention_forward {type} b8 q128 k4096 h32/8 d{dim} causal layout=paged:64",
     .peers = {"pages of 64", "pages of 1, 16, 1024"}},
    {.name = "decode",
     .title = "Decode",
     .meaning = "A few query rows over many keys: the query heads of a kv head become rows of one tile, so that keys "
                "are read once.",
     .descriptor = "attention_forward {type} b64 q1 k8192 h32/8 d{dim} layout=paged:16",
     .peers = {"fp8 caches; bf16 at pages of 16 and 64", "yes; also fp8 and int8 caches"}},
    {.name = "unified",
     .title = "Unified",
     .meaning = "Prompts, pieces of prompts and single tokens in one call: packed queries over a paged cache.",
     .descriptor = "attention_forward {type} b3 q512 k4096 h32/8 d{dim} causal layout=paged:16 q_lengths=512,1,7",
     .peers = {"by its generic kernel", "in Triton"}},
    {.name = "split",
     .title = "Split keys",
     .meaning = "Runs of keys side by side, merged in one fixed order: the number of runs shows in no bit.",
     .descriptor = "attention_forward {type} b1 q1 k131072 h32/8 d{dim} splits=64",
     .peers = {"shows in the bits", "shows in the bits"}},
    {.name = "invariant",
     .title = "Batch-invariant",
     .meaning =
         "Every call is: batch, padding, packing, pages, splits and pipelines show in no bit (docs/invariance.md).",
     .descriptor = "attention_forward {type} b8 q1 k8192 h32/8 d{dim}",
     .peers = {"no", "no"}},
    {.name = "block-sparse",
     .title = "Block-sparse",
     .meaning = "Blocks of queries see chosen blocks of keys.",
     .descriptor = "attention_forward {type} b1 q4096 k4096 h32/8 d{dim} lists=64x64",
     .peers = {"no", "not causal, blocks of 128"}},
    {.name = "top-k",
     .title = "Top-k keys",
     .meaning = "Each query names the keys that it sees (DeepSeek V3.2, GLM-5), by number or by slot of the cache; "
                "a list for all heads or for each kv head, and a second one over a second cache (DeepSeek V4). In "
                "latent attention, too (attention_latent, with the same words).",
     .descriptor = "attention_forward {type} b48 q1 k131072 h32/8 d{dim} layout=paged:64 top_k=2048",
     .peers = {"in MLA, decode, fp8", "in MLA and for prefill"}},
    {.name = "fp8",
     .title = "fp8 and int8 caches",
     .meaning =
         "Keys and values in 8 bits, half as large in memory, under queries of 16 bits: e4m3 and e5m2, on gfx942 "
         "their FNUZ forms, and int8. Widened exactly; scales for all, for kv heads, for sequences and for each "
         "token of a kv head.",
     .descriptor = "attention_forward {type} b64 q1 k8192 h64/8 d{dim} cache={format} cache_scales=h",
     .peers = {"caches", "caches"}},
    {.name = "fp8-queries",
     .title = "fp8 queries, keys and values",
     .meaning = "Q, K and V all in e4m3: products and weights of 8 bits, O in 16 bits or fp32. Scales for all, for kv "
                "heads and for sequences.",
     .descriptor = "attention_forward {type} b1 q8192 k8192 h16/4 d{dim} queries=e4m3 cache_scales=h",
     .peers = {"gfx950, head dim 128", "head dims 128 and 256"}},
    {.name = "int8",
     .title = "int8",
     .meaning = "Q and K in 8-bit integers under values of 16 bits: sums of products are exact. "
                "Scales for all, for heads and for tokens; dense and packed.",
     .descriptor = "attention_forward {type} b1 q4096 k4096 h16/4 d{dim} qk=i8 cache_scales=token",
     .peers = {"no", "gfx950, head dim 128; caches"}},
    {.name = "dropout",
     .title = "Dropout",
     .meaning = "Weights are dropped at random while training.",
     .descriptor = {},
     .instead = "It belongs to training, and the family of gradients has room for it.",
     .peers = {"no", "through CK and Triton"}}};

// Behind the questions that lead to other families: the first one that is answered with yes decides.
constexpr Branch branches[] = {
    {.question = "Does a list name the keys that each row sees?", .variant = "top-k"},
    {.question = "Do lists name blocks of keys, for blocks of rows?", .variant = "block-sparse"},
    {.question = "Are keys and values in the pages of a cache, and do sequences bring one row each, or up to 32?",
     .variant = "decode"},
    {.question = "In pages, and prompts, pieces and single tokens come in one batch?", .variant = "unified"},
    {.question = "In pages otherwise?", .variant = "paged"},
    {.question = "Do sequences of different lengths stand one after the other?", .variant = "packed"},
    {.question = "Are they padded to one length?", .variant = "padded"},
    {.question = "One row, or few, over very many keys?", .variant = "split"},
    {.question = "Does a row see only the keys of its own chunk of positions?", .variant = "chunked"},
    {.question = "Does a row see only keys near it?", .variant = "windowed"},
    {.question = "Do all rows see a prefix, and then each its own past?", .variant = "prefix"},
    {.question = "Does a row see its past only?", .variant = "causal"},
    {.question = "Are there fewer kv heads than query heads?", .variant = "gqa"},
    {.question = "Else:", .variant = "mha"}};

class AttentionVariants final : public Variants {
 public:
  std::span<const Branch> decision_tree() const override { return branches; }
  std::vector<std::string> peers() const override { return {"FlyDSL (2026-08-21)", "AITER (2026-08-22)"}; }
  std::vector<std::string> types() const override { return {"bf16", "fp16"}; }
  std::string format_of(const std::string& target) const override { return e4m3_of(target); }
  std::vector<std::string> head_dims() const override { return {"64", "128", "192/128", "256"}; }

  std::string grid_descriptor() const override {
    return "attention_forward {type} b2 q1024 k4096 h32/8 d128 {layout} {modifier}";
  }
  std::vector<GridWord> layouts() const override {
    return {{.title = "dense [B, S, H, D]", .words = ""},
            {.title = "dense [B, H, S, D]", .words = "layout=bhsd"},
            {.title = "packed", .words = "layout=packed"},
            {.title = "key lengths", .words = "k_lengths=4096,100"},
            {.title = "left padding", .words = "first_keys=0,96"},
            {.title = "pages of 64 n keys", .words = "layout=paged:64"},
            {.title = "pages of 16 n keys", .words = "layout=paged:16"},
            {.title = "pages of one key", .words = "layout=paged:1"},
            {.title = "pages [heads, keys, dim]", .words = "layout=paged:64:hnd"},
            {.title = "pages and left padding", .words = "layout=paged:64 first_keys=3,5"}};
  }
  std::vector<GridWord> modifiers() const override {
    std::vector<GridWord> words = {{.title = "none", .words = ""},
                                   {.title = "causal", .words = "causal"},
                                   {.title = "window", .words = "window=500,20"},
                                   {.title = "chunks", .words = "causal chunked=500"},
                                   {.title = "prefix", .words = "causal=100"},
                                   {.title = "flags", .words = "causal causal_flags"},
                                   {.title = "bool mask", .words = "bool_mask=1"},
                                   {.title = "bias by tile", .words = "bias=1 bias_by_tile"},
                                   {.title = "LSE", .words = "lse"},
                                   {.title = "O in fp32", .words = "o=fp32"},
                                   {.title = "Q in fp32", .words = "q=fp32"}};
    for (const attention::ModifierRow& row : attention::modifier_rows) {
      std::string word(row.word);
      words.push_back({.title = word,
                       .words = row.number != nullptr ? word + "=30"
                                : row.extents.empty() ? word
                                                      : word + "=h"});
    }
    words.push_back({.title = "split", .words = "splits=4"});
    return words;
  }
};

}  // namespace

std::span<const Variant> variant_rows() { return variants; }

const Variants& attention_variants() { return only<AttentionVariants>(); }

}  // namespace wavejit::attention_forward::program
