// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/rules.h"

#include <algorithm>

#include "templates/attention/kernel/cache_encoding.h"
#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/unbuilt_words.h"

namespace wavejit::attention_forward {
namespace {

using Asked = AskedSpec;

// Those that the generic pipeline, which has most, does on a target.
std::string known_head_dims(const targets::Target& target) {
  std::string list;
  for (const HeadDims& dims : all_head_dims()) {
    ForwardKernel spec;
    spec.head_dim_qk = dims.qk;
    spec.head_dim_v = dims.v;
    spec.tile_queries = tile_queries(target, spec.pipeline).back();
    spec.target = target.id;
    if (first_refusal({spec, target}).empty()) list += (list.empty() ? "" : ", ") + to_text(dims);
  }
  return list;
}

// Registers of a lane that live through a step of an overlapped pipeline: O, Q, weights, scores, and all fragments of
// a K tile (dualwave), or parts of the next tiles (interleaved). Beyond 128 dims there is nothing left of 256.
bool fits_overlapped(const ForwardKernel& spec) { return spec.head_dim_qk <= 128 && spec.head_dim_v <= 128; }

// Its waits count transfers of one tile, whichever it is.
bool fills_dualwave(const HeadDims& dims) {
  constexpr int piece = LdsPlan::piece_elements;
  return blocks_of_dims(dims.qk, piece) == blocks_of_dims(dims.v, piece);
}

std::string accepted_pipelines(const targets::Target& target) {
  std::string accepted = "auto";
  for (const Pipeline pipeline : all_pipelines)
    if (missing_for(pipeline, target).empty()) accepted += ", " + std::string(to_text(pipeline));
  return accepted;
}

std::string fault_of_ladder(const ForwardKernel& spec) {
  if (const Ladder* ladder = find_ladder(spec.pipeline, spec.ladder)) return fault_of(*ladder);
  if (spec.ladder.empty()) return {};
  const std::string names = ladder_names(spec.pipeline);
  return "ladder=" + spec.ladder + " is none of pipeline=" + std::string(to_text(spec.pipeline)) +
         (names.empty() ? ", which has none" : "; accepted: " + names);
}

std::span<const int> tiles_of(const Asked& asked) { return tile_queries(asked.target, asked.spec.pipeline); }

bool overlaps(const Asked& asked) { return asked.spec.pipeline != Pipeline::generic; }

constexpr SpecRule rules[] = {
    {[](const Asked& asked) { return unbuilt_word(asked.spec, asked.target).has_value(); },
     [](const Asked& asked) { return unbuilt_word(asked.spec, asked.target).value_or(""); }},
    {[](const Asked& asked) { return !has_head_dims(asked.head_dims()); },
     [](const Asked& asked) {
       return "head dim " + to_text(asked.head_dims()) + " has no kernel; accepted: " + known_head_dims(asked.target) +
              ", and in 16 bits multiples of " + std::to_string(head_dim_step) + " up to " +
              std::to_string(largest_head_dim);
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return is_padded(asked.head_dims()) &&
              (spec.narrow_queries || spec.integers || spec.cache != CacheType::as_queries || spec.trans_any() ||
               spec.vectorised || spec.listed || spec.block_lists);
     },
     [](const Asked& asked) {
       return "head dim " + to_text(asked.head_dims()) +
              ", which tiles pad, has kernels for dense keys and pages of rows in 16 bits; beside qk=, queries=, "
              "cache=, vectorised, listed, block_lists and trans_ tensors accepted: " +
              known_head_dims(asked.target);
     }},
    {[](const Asked& asked) { return is_padded(asked.head_dims()) && asked.spec.paged && asked.spec.modified(); },
     [](const Asked& asked) {
       return "head dim " + to_text(asked.head_dims()) +
              ", which tiles pad, leaves no scalar registers for bias, softcap and alibi beside pages; accepted: dense "
              "keys, or head dims " +
              known_head_dims(asked.target);
     }},
    {[](const Asked& asked) {
       return is_padded(asked.head_dims()) && asked.spec.pipeline == Pipeline::dualwave && asked.spec.output_fp32;
     },
     [](const Asked& asked) {
       return asked.pipeline() + " has no registers for O in fp32 with head dim " + to_text(asked.head_dims()) +
              "; accepted: auto, generic";
     }},
    {[](const Asked& asked) {
       return is_padded(asked.head_dims()) && (asked.spec.paired_tiles || asked.spec.chunk_waves != 0);
     },
     [](const Asked& asked) {
       return "tiles=paired and chunk_waves= hand rows over in whole pieces, which head dim " +
              to_text(asked.head_dims()) +
              " does not fill; accepted: a query tile a workgroup, and waves with rows of "
              "their own";
     }},
    {[](const Asked& asked) { return asked.spec.narrow_queries && !asked.target.byte_matrix; },
     [](const Asked& asked) {
       return "queries=e4m3 needs v_mfma_f32_32x32x64_f8f6f4 and ds_read_b64_tr_b8, products of e4m3 whose weights "
              "stay "
              "in their lanes, which " +
              asked.target_name() +
              " does not have, and its products 16 deep are estimated at 1.1 to 1.4 times bf16 where maxima grow "
              "(docs/low-precision.md); accepted: Q in bf16 or fp16, with K and V in 8 bits as cache=";
     }},
    {[](const Asked& asked) {
       return asked.spec.narrow_queries && overlaps(asked) &&
              (asked.spec.head_dim_qk % LdsPlan::piece_bytes != 0 || asked.spec.head_dim_v % LdsPlan::piece_bytes != 0);
     },
     [](const Asked& asked) {
       return asked.pipeline() + " fills LDS by as many waves as a tile of queries=e4m3 with head dim " +
              to_text(asked.head_dims()) + " has no lines for; accepted: auto, generic";
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.narrow_queries && (spec.split_keys != 0 || spec.vectorised || spec.listed || spec.block_lists);
     },
     [](const Asked&) {
       return std::string(
           "queries=e4m3 is for prompts; accepted: no split=, vectorised, listed and block_lists, for which Q is in "
           "bf16 "
           "or fp16");
     }},
    {[](const Asked& asked) { return asked.spec.narrow_queries && asked.spec.modified(); },
     [](const Asked&) {
       return std::string(
           "queries=e4m3 has no kernel whose scores are modified; accepted: no bias, softcap and alibi, or Q in bf16 "
           "or "
           "fp16 with cache=e4m3");
     }},
    {[](const Asked& asked) { return asked.spec.narrow_queries && asked.spec.first_keys; },
     [](const Asked&) {
       return std::string(
           "queries=e4m3 has no kernel for left padding; accepted: no first_keys, or Q in bf16 or fp16 with "
           "cache=e4m3");
     }},
    {[](const Asked& asked) { return asked.spec.integers && asked.target.integer_matrix_k == 0; },
     [](const Asked& asked) {
       return "qk=i8 needs matrix instructions of integers, which " + asked.target_name() + " does not have";
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.integers && (overlaps(asked) || spec.narrow_queries || spec.cache != CacheType::as_queries ||
                                spec.paged || spec.listed || spec.block_lists);
     },
     [](const Asked&) {
       return std::string(
           "qk=i8 is of dense and packed Q and K in pipeline=generic; accepted: no cache=, queries=e4m3, pages and "
           "lists, pipeline auto or generic");
     }},
    {[](const Asked& asked) { return !asked.spec.integers && asked.spec.half_scores; },
     [](const Asked&) { return std::string("scores=fp16 is of Q and K in int8; accepted: beside qk=i8"); }},
    {[](const Asked& asked) {
       return asked.spec.half_scores && (asked.spec.has(Modifier::softcap) || asked.spec.has(Modifier::alibi));
     },
     [](const Asked&) {
       return std::string("scores=fp16 is what rocMLIR does, which has no soft-cap and no slopes; accepted: bias");
     }},
    {[](const Asked& asked) { return asked.spec.query_fp32 && (asked.spec.narrow_queries || asked.spec.integers); },
     [](const Asked&) {
       return std::string("q=fp32 is rounded to the 16 bits of K and V; accepted: no queries=e4m3 and qk=i8 beside it");
     }},
    {[](const Asked& asked) { return asked.spec.query_fp32 && asked.spec.trans_q; },
     [](const Asked&) {
       return std::string("q=fp32 is loaded 32 bytes of a row at a time; accepted: Q whose dims stand side by side");
     }},
    {[](const Asked& asked) { return asked.spec.query_fp32 && asked.spec.paired_tiles; },
     [](const Asked&) {
       return std::string("tiles=paired fetches the second tile's Q by DMA, which rounds nothing; accepted: no q=fp32");
     }},
    {[](const Asked& asked) { return asked.spec.narrow_queries && asked.spec.cache != CacheType::as_queries; },
     [](const Asked&) {
       return std::string("queries=e4m3 is of K and V, too; accepted: queries=e4m3 without cache=");
     }},
    {[](const Asked& asked) {
       return asked.spec.cache != CacheType::as_queries && !reads(asked.target, asked.spec.key_type());
     },
     [](const Asked& asked) { return attention::other_encoding(asked.spec.cache, asked.target); }},
    {[](const Asked& asked) {
       return asked.spec.token_scales && asked.spec.cache == CacheType::as_queries && !asked.spec.integers;
     },
     [](const Asked&) {
       return std::string(
           "cache_scales=token is of keys in 8 bits whose scores are scaled one by one; accepted: beside cache= or "
           "qk=i8");
     }},
    {[](const Asked& asked) { return asked.spec.token_scales && asked.spec.pipeline == Pipeline::dualwave; },
     [](const Asked& asked) {
       return asked.pipeline() +
              " has no registers for scales of two tiles' keys and values (cache_scales=token); accepted: auto, "
              "generic";
     }},
    {[](const Asked& asked) {
       return asked.spec.token_scales &&
              ((overlaps(asked) && asked.spec.paged) || asked.spec.listed || asked.spec.block_lists);
     },
     [](const Asked&) {
       return std::string(
           "cache_scales=token multiplies each score and each weight by a number of its key; accepted: "
           "pipeline=generic, or keys that stand in no pages, and no listed and block_lists");
     }},
    {[](const Asked& asked) { return asked.spec.cache != CacheType::as_queries && asked.spec.paired_tiles; },
     [](const Asked&) {
       return std::string(
           "tiles=paired fetches the second tile's keys by DMA, which widens nothing; accepted: no cache=");
     }},
    {[](const Asked& asked) {
       return asked.spec.cache != CacheType::as_queries && asked.spec.block_lists &&
              asked.spec.pipeline == Pipeline::dualwave;
     },
     [](const Asked& asked) {
       return asked.pipeline() +
              " has no registers for tiles of cache= that wait beside walks; accepted: auto, generic";
     }},
    {[](const Asked& asked) { return asked.spec.cache != CacheType::as_queries && asked.spec.vectorised; },
     [](const Asked&) {
       return std::string("cache= has no kernel for vectorised pages; accepted: paged without vectorised");
     }},
    {[](const Asked& asked) { return asked.spec.trans_any() && overlaps(asked); },
     [](const Asked& asked) {
       return asked.pipeline() +
              " moves rows whose dims stand side by side; trans_q, trans_k, trans_v and trans_o need not; accepted: "
              "auto, generic";
     }},
    {[](const Asked& asked) { return asked.spec.trans_any() && asked.spec.moves_whole_rows(); },
     [](const Asked&) { return std::string(trans_is_dense); }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return (spec.trans_k || spec.trans_v) && spec.tile_queries != tiles_of(asked).back();
     },
     [](const Asked& asked) {
       return "tile of " + std::to_string(asked.spec.tile_queries) +
              " queries: a few waves have no registers for the elements of a tile of trans_k or trans_v; accepted: " +
              std::to_string(tiles_of(asked).back());
     }},
    {[](const Asked& asked) { return asked.spec.trans_o && asked.spec.output_store != OutputStore::scalar; },
     [](const Asked&) {
       return std::string("trans_o stores elements one by one: there is nothing to swap; accepted: auto, scalar");
     }},
    {[](const Asked& asked) { return asked.spec.tile_keys != attention::tile_keys; },
     [](const Asked& asked) {
       return "tile of " + std::to_string(asked.spec.tile_keys) +
              " keys would change the order of additions; accepted: " + std::to_string(attention::tile_keys);
     }},
    {[](const Asked& asked) {
       return asked.spec.split_keys != 0 && asked.spec.split_keys != asked.spec.keys_of_chunk();
     },
     [](const Asked& asked) {
       return "split=" + std::to_string(asked.spec.split_keys) +
              " would cut keys where no chunk ends; accepted: " + std::to_string(asked.spec.keys_of_chunk());
     }},
    {[](const Asked& asked) {
       return asked.spec.split_keys != 0 && (asked.spec.lse || asked.spec.output_store != OutputStore::scalar);
     },
     [](const Asked&) {
       return std::string("split= leaves LSE and O to attention_combine; accepted: no lse, o_store=scalar");
     }},
    {[](const Asked& asked) { return asked.spec.split_keys != 0 && asked.spec.output_fp32; },
     [](const Asked&) { return std::string("split= leaves parts of f32, whatever O is; accepted: no o=fp32"); }},
    {[](const Asked& asked) { return asked.spec.output_fp32 && asked.spec.output_store != OutputStore::scalar; },
     [](const Asked&) {
       return std::string(
           "o=fp32 stores 16 bytes of a lane as they are: there is nothing to swap; accepted: auto, scalar");
     }},
    {[](const Asked& asked) { return asked.spec.bias_fp32 && !asked.spec.has(Modifier::bias); },
     [](const Asked&) { return std::string("bias_type=fp32 is of a bias; accepted: bias bias_type=fp32"); }},
    {[](const Asked& asked) { return asked.spec.bias_fp32 && overlaps(asked); },
     [](const Asked& asked) {
       return asked.pipeline() +
              " keeps a tile's bias in 16 registers, and one in fp32 takes 32; accepted: auto, generic";
     }},
    {[](const Asked& asked) { return !std::ranges::contains(tiles_of(asked), asked.spec.tile_queries); },
     [](const Asked& asked) {
       std::string accepted;
       for (const int tile : tiles_of(asked)) accepted += (accepted.empty() ? "" : ", ") + std::to_string(tile);
       return "tile of " + std::to_string(asked.spec.tile_queries) + " queries has no kernel in " + asked.pipeline() +
              " on " + asked.target_name() + "; accepted: " + accepted;
     }},
    {[](const Asked& asked) {
       return asked.spec.tile_queries != tiles_of(asked).back() && !small_tiles_fit(asked.head_dims()) &&
              asked.spec.chunk_waves == 0;
     },
     [](const Asked& asked) {
       return "tile of " + std::to_string(asked.spec.tile_queries) + " queries has no kernel for head dim " +
              to_text(asked.head_dims()) + "; accepted: " + std::to_string(tiles_of(asked).back());
     }},
    {[](const Asked& asked) { return !missing_for(asked.spec.pipeline, asked.target).empty(); },
     [](const Asked& asked) {
       return missing_for(asked.spec.pipeline, asked.target) + "; accepted: " + accepted_pipelines(asked.target);
     }},
    {[](const Asked& asked) {
       return asked.spec.pipeline == Pipeline::dualwave && is_padded(asked.head_dims()) &&
              !fills_dualwave(asked.head_dims());
     },
     [](const Asked& asked) {
       return asked.pipeline() + " counts transfers of K and V alike, of which head dim " + to_text(asked.head_dims()) +
              " has more of one; accepted: auto, generic";
     }},
    {[](const Asked& asked) { return overlaps(asked) && !fits_overlapped(asked.spec); },
     [](const Asked& asked) {
       return asked.pipeline() + " holds O, Q and parts of two tiles in registers, which head dim " +
              to_text(asked.head_dims()) + " leaves no room for; accepted: auto, generic";
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.chunk_waves != 0 && (overlaps(asked) || spec.tile_queries != shared_tile_queries);
     },
     [](const Asked&) {
       return std::string("chunk_waves= is of workgroups of few rows; accepted: pipeline=generic tile=32x64");
     }},
    {[](const Asked& asked) {
       return asked.spec.chunk_waves != 0 && lds_layout(asked.target) == LdsLayout::swizzled &&
              !shares_in_registers(asked.spec, asked.spec.split_keys != 0);
     },
     [](const Asked& asked) {
       return "chunk_waves= passes tiles through registers on " + asked.target_name() +
              ", which bias, softcap, alibi and masks of whole rows beside pages, a bias or q=fp32 of whole rows, a "
              "bias "
              "in fp32, "
              "keys "
              "that are looked up one by one and head dims beyond 192/128 leave no room for; accepted: a wave with "
              "rows "
              "of its own";
     }},
    {[](const Asked& asked) { return asked.spec.chunk_waves != 0 && !shares_by_lines(asked.spec); },
     [](const Asked& asked) {
       return "chunk_waves= with head dim " + to_text(asked.head_dims()) +
              " leaves no scalar registers for bias and alibi beside pages, nor for softcap beyond 128 dims or beside "
              "causal_flags, nor for chunked; accepted: a wave with rows of its own";
     }},
    {[](const Asked& asked) {
       return asked.spec.chunk_waves != 0 && asked.spec.chunk_waves != shared_waves(asked.head_dims());
     },
     [](const Asked& asked) {
       return "chunk_waves=" + std::to_string(asked.spec.chunk_waves) + " has no kernel for head dim " +
              to_text(asked.head_dims()) + "; accepted: " + std::to_string(shared_waves(asked.head_dims()));
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.chunk_waves != 0 &&
              (spec.narrow_queries || spec.integers || spec.cache != CacheType::as_queries || spec.vectorised ||
               spec.listed || spec.block_lists || spec.trans_any() || spec.rows == QueriesOf::many);
     },
     [](const Asked&) {
       return std::string(
           "chunk_waves= has no kernel for K and V in 8 bits, vectorised pages, lists, trans_ tensors and rows=many; "
           "accepted: a wave with rows of its own");
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.merged && (spec.split_keys == 0 || !spec.packed_heads || !merges_in_one_launch(spec));
     },
     [](const Asked&) {
       return std::string(
           "merged is of the parts of packed heads in 16 bits, whose dims are cut into whole runs of 16; accepted: "
           "split= heads=packed, no cache=, listed, trans_ tensors and rows=, and no bias, alibi and window of left "
           "padding beside pages");
     }},
    {[](const Asked& asked) { return asked.spec.packed_heads && overlaps(asked); },
     [](const Asked&) { return std::string("heads=packed is for few rows; accepted: pipeline=generic"); }},
    {[](const Asked& asked) { return asked.spec.single_keys && !asked.spec.paged; },
     [](const Asked&) { return std::string("page=1 is a size of pages; accepted: paged page=1"); }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.vectorised && (!spec.paged || spec.single_keys || spec.first_keys);
     },
     [](const Asked&) {
       return std::string(
           "vectorised is an order of pages of 16 keys and more, from a sequence's key 0 on; accepted: paged "
           "vectorised without page=1 and first_keys");
     }},
    {[](const Asked& asked) { return overlaps(asked) && asked.spec.vectorised; },
     [](const Asked& asked) { return asked.pipeline() + " does not walk vectorised pages; accepted: auto, generic"; }},
    {[](const Asked& asked) { return overlaps(asked) && asked.spec.key_layout().looks_up_each_key(); },
     [](const Asked& asked) {
       return asked.pipeline() + " does not look keys up one by one; accepted: auto, generic";
     }},
    {[](const Asked& asked) { return asked.spec.whole_tiles && (!asked.spec.paged || !overlaps(asked)); },
     [](const Asked&) {
       return std::string(
           "whole_tiles is of pages on pipelines that look a tile up as a whole; accepted: paged "
           "whole_tiles pipeline=dualwave or interleaved");
     }},
    {[](const Asked& asked) {
       return overlaps(asked) && asked.spec.tile_layout().wave_granules && asked.spec.narrow_queries;
     },
     [](const Asked& asked) {
       return asked.pipeline() +
              " with queries=e4m3 looks a tile of 64 keys up as a whole, which pages of other sizes than "
              "multiples of 64 do not hold; accepted: auto, generic";
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.pipeline == Pipeline::dualwave && spec.tile_layout().wave_granules && spec.head_dim_v > 64 &&
              has_first_key(spec.mask) && spec.modified() && !spec.has(Modifier::bias);
     },
     [](const Asked& asked) {
       return asked.pipeline() +
              " with more than 64 dims is a register short of softcap or alibi under window and chunked in pages that "
              "hold no whole tiles (beside a bias scores are modified earlier); accepted: auto, generic";
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.paired_tiles && (spec.pipeline != Pipeline::dualwave || spec.mask != Mask::causal ||
                                    spec.causal_flags || spec.split_keys != 0);
     },
     [](const Asked&) {
       return std::string(
           "tiles=paired evens out what a diagonal leaves of a grid; accepted: pipeline=dualwave causal, without "
           "causal_flags and split=");
     }},
    {[](const Asked& asked) { return asked.spec.paired_tiles && asked.spec.paged; },
     [](const Asked&) {
       return std::string(
           "tiles=paired and the look-ups of pages take more scalar registers than there are; accepted: "
           "keys without pages");
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.block_lists &&
              (spec.split_keys != 0 || spec.packed_heads || spec.paired_tiles || spec.shares_call());
     },
     [](const Asked&) {
       return std::string(
           "block_lists has walks of its own for each head and block of rows; accepted: no split=, heads=packed, "
           "tiles=paired and rows=");
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.bool_mask && (!spec.block_lists || spec.has(Modifier::bias) || spec.narrow_queries ||
                                 spec.integers || spec.cache != CacheType::as_queries);
     },
     [](const Asked&) {
       return std::string(
           "bool_mask has walks of block_lists, and bits where a bias stands; accepted: block_lists bool_mask, no "
           "bias, "
           "queries=e4m3, qk=i8 and cache=");
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.bool_mask && spec.paged &&
              (spec.modified() || spec.mask == Mask::window || spec.vectorised ||
               spec.key_layout().looks_up_each_key());
     },
     [](const Asked&) {
       return std::string(
           "bool_mask beside pages leaves no registers for a window, softcap and alibi, pages of one key, first_keys "
           "and "
           "vectorised; accepted: pages of 16 n keys without them, or dense keys");
     }},
    {[](const Asked& asked) {
       return asked.spec.bool_mask && overlaps(asked) &&
              (asked.spec.paged || (asked.spec.mask == Mask::window && asked.spec.modified()));
     },
     [](const Asked& asked) {
       return asked.pipeline() +
              " has no registers for the bits of bool_mask beside pages, or a window with softcap and alibi; accepted: "
              "auto, generic";
     }},
    {[](const Asked& asked) { return asked.spec.mask == Mask::chunked && asked.spec.block_lists; },
     [](const Asked&) {
       return std::string(
           "block_lists has no walks of local chunks; accepted: causal, window, or lists without a mask");
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return lds_layout(asked.target) == LdsLayout::swizzled && (spec.mask == Mask::chunked || spec.causal_flags) &&
              spec.cache != CacheType::as_queries && spec.paged && spec.modified();
     },
     [](const Asked& asked) {
       return "chunked and causal_flags beside cache= in pages leave no registers for bias, softcap and alibi where "
              "tiles pass through registers, as on " +
              asked.target_name() + "; accepted: without one of these";
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.causal_flags && (spec.mask != Mask::causal || spec.block_lists || spec.listed);
     },
     [](const Asked&) {
       return std::string(
           "causal_flags is of sequences under one diagonal; accepted: causal causal_flags without lists");
     }},
    {[](const Asked& asked) { return asked.spec.slots && !asked.spec.listed; },
     [](const Asked&) { return std::string("slots are what lists of keys name; accepted: listed slots"); }},
    {[](const Asked& asked) {
       return asked.spec.listed && (asked.spec.pipeline != Pipeline::generic || !asked.spec.packed_heads);
     },
     [](const Asked&) {
       return std::string("listed has heads of one query a workgroup; accepted: pipeline=generic heads=packed");
     }},
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return spec.listed &&
              (spec.mask != Mask::none || spec.vectorised || spec.first_keys || spec.block_lists || spec.shares_call());
     },
     [](const Asked&) {
       return std::string(
           "listed takes the diagonal as an argument and keys from their sequence's key 0 on; accepted: no causal, "
           "window, vectorised, first_keys, block_lists and rows=");
     }},
    {[](const Asked& asked) {
       return asked.spec.listed && (asked.spec.has(Modifier::bias) || asked.spec.has(Modifier::alibi));
     },
     [](const Asked&) {
       return std::string(
           "listed walks places of a list, which a bias and slopes do not know; accepted: no bias and alibi");
     }},
    {[](const Asked& asked) {
       return asked.spec.pipeline != Pipeline::dualwave && (!asked.spec.stagger || !asked.spec.raised_priority);
     },
     [](const Asked&) { return std::string("stagger=off and setprio=off belong to pipeline=dualwave"); }},
    {[](const Asked& asked) { return !fault_of_ladder(asked.spec).empty(); },
     [](const Asked& asked) { return fault_of_ladder(asked.spec); }},
    {[](const Asked& asked) {
       return asked.spec.output_store == OutputStore::permlane && !asked.target.permlane32_swap;
     },
     [](const Asked& asked) {
       return "o_store=permlane needs v_permlane32_swap, which " + asked.target_name() +
              " does not have; accepted: auto, scalar";
     }},
    // 64 registers of a tile that waits, O's 128, Q's 64 and the scores' 32 leave room for addresses alone.
    {[](const Asked& asked) {
       const ForwardKernel& spec = asked.spec;
       return lds_layout(asked.target) == LdsLayout::swizzled && spec.head_dim_v > 128 &&
              (spec.cache != CacheType::as_queries || spec.integers || spec.trans_any() || spec.vectorised ||
               spec.block_lists || spec.key_layout().looks_up_each_key() || spec.modified());
     },
     [](const Asked& asked) {
       return "head dim " + to_text(asked.head_dims()) + " needs LDS DMA of 16 bytes, which " + asked.target_name() +
              " does not have: the tile that waits in registers leaves room for keys in 16 bits, dense or in pages of "
              "16 and more, without bias, softcap and alibi; accepted with the rest: up to 192/128";
     }},
    {[](const Asked& asked) {
       return lds_plan(asked.spec, asked.target).total_bytes() > asked.target.lds_bytes_per_workgroup;
     },
     [](const Asked& asked) {
       return "the tiles need " + std::to_string(lds_plan(asked.spec, asked.target).total_bytes()) + " bytes of LDS; " +
              asked.target_name() + " gives a workgroup " + std::to_string(asked.target.lds_bytes_per_workgroup);
     }},
};

}  // namespace

std::span<const SpecRule> spec_rules() { return rules; }

std::string first_refusal(const AskedSpec& asked) {
  for (const SpecRule& rule : rules)
    if (rule.breaks(asked)) return rule.sentence(asked);
  return {};
}

}  // namespace wavejit::attention_forward
