// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workgroups and how they walk keys: tiles, pipelines, waves that share chunks, pages.
#include <algorithm>
#include <array>

#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/rule_parts.h"

namespace wavejit::attention_forward {
namespace {

using Asked = AskedSpec;

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

// The words without each of which alone a kernel would fit; where no single word is enough, all that it has of them.
std::string in_the_way(const ForwardKernel& spec, bool (*fits)(const ForwardKernel&)) {
  struct Word {
    const char* name;
    bool (*given)(const ForwardKernel&);
    void (*leave_out)(ForwardKernel&);
  };
  static constexpr std::array words = {
      Word{"a bias", [](const ForwardKernel& its) { return its.has(Modifier::bias); },
           [](ForwardKernel& its) {
             its.modifiers.set(Modifier::bias, false);
             its.bias_fp32 = false;
           }},
      Word{"softcap", [](const ForwardKernel& its) { return its.has(Modifier::softcap); },
           [](ForwardKernel& its) { its.modifiers.set(Modifier::softcap, false); }},
      Word{"alibi", [](const ForwardKernel& its) { return its.has(Modifier::alibi); },
           [](ForwardKernel& its) { its.modifiers.set(Modifier::alibi, false); }},
      Word{"q=fp32", [](const ForwardKernel& its) { return its.query_fp32; },
           [](ForwardKernel& its) { its.query_fp32 = false; }},
      Word{"a mask", [](const ForwardKernel& its) { return its.mask != Mask::none; },
           [](ForwardKernel& its) { its.mask = Mask::none; }},
      Word{"page=1", [](const ForwardKernel& its) { return its.single_keys; },
           [](ForwardKernel& its) { its.single_keys = false; }},
      Word{"pages", [](const ForwardKernel& its) { return its.paged; },
           [](ForwardKernel& its) { its.paged = its.single_keys = false; }},
  };
  std::string alone;
  std::string together;
  for (const Word& word : words) {
    if (!word.given(spec)) continue;
    together += (together.empty() ? "" : " with ") + std::string(word.name);
    ForwardKernel without = spec;
    word.leave_out(without);
    if (alone.empty() && fits(without)) alone = word.name;
  }
  if (!alone.empty()) return alone;
  return together.empty() ? "head dim " + to_text(HeadDims{.qk = spec.head_dim_qk, .v = spec.head_dim_v}) : together;
}

constexpr std::array walk_rules = {
    SpecRule{[](const Asked& asked) { return !std::ranges::contains(tiles_of(asked), asked.spec.tile_queries); },
             [](const Asked& asked) {
               std::string accepted;
               for (const int tile : tiles_of(asked)) accepted += (accepted.empty() ? "" : ", ") + std::to_string(tile);
               return "tile of " + std::to_string(asked.spec.tile_queries) + " queries has no kernel in " +
                      asked.pipeline() + " on " + asked.target_name() + "; accepted: " + accepted;
             }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.tile_queries != tiles_of(asked).back() && !small_tiles_fit(asked.head_dims()) &&
                      asked.spec.chunk_waves == 0;
             },
             [](const Asked& asked) {
               return "tile of " + std::to_string(asked.spec.tile_queries) + " queries has no kernel for head dim " +
                      to_text(asked.head_dims()) + "; accepted: " + std::to_string(tiles_of(asked).back());
             }},
    SpecRule{[](const Asked& asked) { return !missing_for(asked.spec.pipeline, asked.target).empty(); },
             [](const Asked& asked) {
               return missing_for(asked.spec.pipeline, asked.target) +
                      "; accepted: " + accepted_pipelines(asked.target);
             }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.pipeline == Pipeline::dualwave && is_padded(asked.head_dims()) &&
                      !fills_dualwave(asked.head_dims());
             },
             [](const Asked& asked) {
               return asked.pipeline() + " counts transfers of K and V alike, of which head dim " +
                      to_text(asked.head_dims()) + " has more of one; accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) { return overlaps(asked) && !fits_overlapped(asked.spec); },
             [](const Asked& asked) {
               return asked.pipeline() + " holds O, Q and parts of two tiles in registers, which head dim " +
                      to_text(asked.head_dims()) + " leaves no room for; accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.chunk_waves != 0 && (overlaps(asked) || spec.tile_queries != shared_tile_queries);
             },
             [](const Asked&) {
               return std::string("chunk_waves= needs workgroups of few rows; accepted: pipeline=generic tile=32x64");
             }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.chunk_waves != 0 && lds_layout(asked.target) == LdsLayout::swizzled &&
                      !shares_in_registers(asked.spec, asked.spec.split_keys != 0);
             },
             [](const Asked& asked) {
               const auto fits = [](const ForwardKernel& spec) {
                 return shares_in_registers(spec, spec.split_keys != 0);
               };
               return "chunk_waves= passes tiles through registers on " + asked.target_name() + ", and " +
                      in_the_way(asked.spec, fits) + " leaves no room for them; accepted: a wave with rows of its own";
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.chunk_waves != 0 && !shares_by_lines(asked.spec); },
             [](const Asked& asked) {
               return "chunk_waves= with head dim " + to_text(asked.head_dims()) + " leaves no scalar registers for " +
                      in_the_way(asked.spec, [](const ForwardKernel& spec) { return shares_by_lines(spec); }) +
                      "; accepted: a wave with rows of its own";
             }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.chunk_waves != 0 && asked.spec.chunk_waves != shared_waves(asked.head_dims());
             },
             [](const Asked& asked) {
               return "chunk_waves=" + std::to_string(asked.spec.chunk_waves) + " has no kernel for head dim " +
                      to_text(asked.head_dims()) + "; accepted: " + std::to_string(shared_waves(asked.head_dims()));
             }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.chunk_waves != 0 &&
                      (spec.narrow_queries || spec.integers || spec.cache != CacheType::as_queries || spec.vectorised ||
                       spec.listed || spec.block_lists || spec.trans_any() || spec.rows == QueriesOf::many);
             },
             [](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               const char* const found = spec.listed || spec.block_lists       ? "lists"
                                         : spec.trans_any()                    ? "trans_ tensors"
                                         : spec.vectorised                     ? "vectorised pages"
                                         : spec.rows == QueriesOf::many        ? "rows=many"
                                         : spec.cache != CacheType::as_queries ? "K and V in 8 bits"
                                                                               : "queries in 8 bits";
               return std::string("chunk_waves= has no kernel for ") + found +
                      "; accepted: a wave with rows of its own";
             }},
    SpecRule{
        [](const Asked& asked) {
          const ForwardKernel& spec = asked.spec;
          return spec.merged &&
                 (spec.split_keys == 0 || !spec.packed_heads || !merges_in_tiles_of(spec, spec.tile_queries));
        },
        [](const Asked&) {
          return std::string(
              "merged needs the parts of packed heads in 16 bits, whose dims are whole runs of 16; "
              "accepted: split= heads=packed, no cache=, listed, trans_ tensors and rows=, and beside pages no bias, "
              "alibi, window of left padding and local chunks in tiles of 64 rows");
        }},
    SpecRule{[](const Asked& asked) { return asked.spec.packed_heads && overlaps(asked); },
             [](const Asked&) { return std::string("heads=packed is for few rows; accepted: pipeline=generic"); }},
    SpecRule{[](const Asked& asked) { return asked.spec.single_keys && !asked.spec.paged; },
             [](const Asked&) { return std::string("page=1 is a size of pages; accepted: paged page=1"); }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.vectorised && (!spec.paged || spec.single_keys || spec.first_keys);
             },
             [](const Asked&) {
               return std::string(
                   "vectorised is an order of pages of 16 keys and more, from a sequence's key 0 on; accepted: paged "
                   "vectorised without page=1 and first_keys");
             }},
    SpecRule{[](const Asked& asked) { return overlaps(asked) && asked.spec.vectorised; },
             [](const Asked& asked) {
               return asked.pipeline() + " does not walk vectorised pages; accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) { return overlaps(asked) && asked.spec.key_layout().looks_up_each_key(); },
             [](const Asked& asked) {
               return asked.pipeline() + " does not look keys up one by one; accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.whole_tiles && (!asked.spec.paged || !overlaps(asked)); },
             [](const Asked&) {
               return std::string(
                   "whole_tiles needs pages, and a pipeline that looks up a whole tile; accepted: paged "
                   "whole_tiles pipeline=dualwave or interleaved");
             }},
    SpecRule{[](const Asked& asked) {
               return overlaps(asked) && asked.spec.tile_layout().wave_granules && asked.spec.narrow_queries;
             },
             [](const Asked& asked) {
               return asked.pipeline() +
                      " with queries=e4m3 looks a tile of 64 keys up as a whole, which pages of other sizes than "
                      "multiples of 64 do not hold; accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.pipeline == Pipeline::dualwave && spec.tile_layout().wave_granules && spec.head_dim_v > 64 &&
                      has_first_key(spec.mask) && spec.modified() && !spec.has(Modifier::bias);
             },
             [](const Asked& asked) {
               return asked.pipeline() +
                      " with more than 64 dims is a register short of softcap or alibi under window and chunked in "
                      "pages that hold no whole tiles (beside a bias scores are modified earlier); "
                      "accepted: auto, generic";
             }},
    SpecRule{
        [](const Asked& asked) {
          const ForwardKernel& spec = asked.spec;
          return spec.paired_tiles && (spec.pipeline != Pipeline::dualwave || spec.mask != Mask::causal ||
                                       spec.causal_flags || spec.split_keys != 0);
        },
        [](const Asked&) {
          return std::string(
              "tiles=paired evens out what a diagonal leaves of a grid; accepted: pipeline=dualwave causal, without "
              "causal_flags and split=");
        }},
    SpecRule{[](const Asked& asked) { return asked.spec.paired_tiles && asked.spec.paged; },
             [](const Asked&) {
               return std::string(
                   "tiles=paired and the look-ups of pages take more scalar registers than there are; accepted: "
                   "keys without pages");
             }},
};

}  // namespace

std::span<const SpecRule> rules_of_walks() { return walk_rules; }

}  // namespace wavejit::attention_forward
