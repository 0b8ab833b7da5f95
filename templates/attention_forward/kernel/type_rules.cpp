// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Head dims, and what Q, K, V, O and scores are in.
#include <array>

#include "templates/attention/kernel/cache_encoding.h"
#include "templates/attention/kernel/output_scale.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/rule_parts.h"
#include "templates/attention_forward/kernel/unbuilt_words.h"

namespace wavejit::attention_forward {
namespace {

using Asked = AskedSpec;

constexpr std::array type_rules = {
    SpecRule{[](const Asked& asked) { return unbuilt_word(asked.spec, asked.target).has_value(); },
             [](const Asked& asked) { return unbuilt_word(asked.spec, asked.target).value_or(""); }},
    SpecRule{[](const Asked& asked) { return !has_head_dims(asked.head_dims()); },
             [](const Asked& asked) {
               return "head dim " + to_text(asked.head_dims()) +
                      " has no kernel; accepted: " + known_head_dims(asked.target) + ", and in 16 bits multiples of " +
                      std::to_string(head_dim_step) + " up to " + std::to_string(largest_head_dim);
             }},
    SpecRule{
        [](const Asked& asked) {
          const ForwardKernel& spec = asked.spec;
          return is_padded(asked.head_dims()) &&
                 (spec.narrow_queries || spec.integers || spec.cache != CacheType::as_queries || spec.trans_any() ||
                  spec.vectorised || spec.listed || spec.block_lists || spec.bool_mask);
        },
        [](const Asked& asked) {
          return "head dim " + to_text(asked.head_dims()) +
                 ", which tiles pad, has kernels for dense keys and pages of rows in 16 bits; beside qk=, queries=, "
                 "cache=, vectorised, listed, block_lists, bool_mask and trans_ tensors accepted: " +
                 known_head_dims(asked.target);
        }},
    SpecRule{
        [](const Asked& asked) { return is_padded(asked.head_dims()) && asked.spec.paged && asked.spec.modified(); },
        [](const Asked& asked) {
          return "head dim " + to_text(asked.head_dims()) +
                 ", which tiles pad, leaves no scalar registers for bias, softcap and alibi beside pages; "
                 "accepted: dense keys, or head dims " +
                 known_head_dims(asked.target);
        }},
    SpecRule{[](const Asked& asked) {
               return is_padded(asked.head_dims()) && asked.spec.pipeline == Pipeline::dualwave &&
                      asked.spec.output == OutputType::fp32;
             },
             [](const Asked& asked) {
               return asked.pipeline() + " has no registers for O in fp32 with head dim " + to_text(asked.head_dims()) +
                      "; accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) {
               return is_padded(asked.head_dims()) && (asked.spec.paired_tiles || asked.spec.chunk_waves != 0);
             },
             [](const Asked& asked) {
               return "tiles=paired and chunk_waves= hand rows over in whole pieces, which head dim " +
                      to_text(asked.head_dims()) +
                      " does not fill; accepted: a query tile a workgroup, and waves with rows of their own";
             }},
    SpecRule{
        [](const Asked& asked) { return asked.spec.narrow_queries && !asked.target.byte_matrix; },
        [](const Asked& asked) {
          return "queries=e4m3 needs v_mfma_f32_32x32x64_f8f6f4 and ds_read_b64_tr_b8, products of e4m3 whose weights "
                 "stay in their lanes, which " +
                 asked.target_name() +
                 " does not have, and its products 16 deep are estimated at 1.1 to 1.4 times bf16 where maxima grow "
                 "(docs/low-precision.md); accepted: Q in bf16 or fp16, with K and V in 8 bits as cache=";
        }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.narrow_queries && overlaps(asked) &&
                      (asked.spec.head_dim_qk % LdsPlan::piece_bytes != 0 ||
                       asked.spec.head_dim_v % LdsPlan::piece_bytes != 0);
             },
             [](const Asked& asked) {
               return asked.pipeline() + " fills LDS by as many waves as a tile of queries=e4m3 with head dim " +
                      to_text(asked.head_dims()) + " has no lines for; accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.narrow_queries &&
                      (spec.split_keys != 0 || spec.vectorised || spec.listed || spec.block_lists);
             },
             [](const Asked&) {
               return std::string(
                   "queries=e4m3 is for prompts; accepted: no split=, vectorised, listed and block_lists, "
                   "for which Q is in bf16 or fp16");
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.narrow_queries && asked.spec.modified(); },
             [](const Asked&) {
               return std::string(
                   "queries=e4m3 has no kernel whose scores are modified; accepted: no bias, softcap and alibi, "
                   "or Q in bf16 or fp16 with cache=e4m3");
             }},
    SpecRule{
        [](const Asked& asked) { return asked.spec.narrow_queries && asked.spec.first_keys; },
        [](const Asked&) {
          return std::string(
              "queries=e4m3 has no kernel for left padding; accepted: no first_keys, or Q in bf16 or fp16 with cache=e4m3");
        }},
    SpecRule{[](const Asked& asked) { return asked.spec.integers && asked.target.integer_matrix_k == 0; },
             [](const Asked& asked) {
               return "qk=i8 needs matrix instructions of integers, which " + asked.target_name() + " does not have";
             }},
    SpecRule{
        [](const Asked& asked) {
          const ForwardKernel& spec = asked.spec;
          return spec.integers && (overlaps(asked) || spec.narrow_queries || spec.cache != CacheType::as_queries ||
                                   spec.paged || spec.listed || spec.block_lists);
        },
        [](const Asked&) {
          return std::string(
              "qk=i8 has kernels for dense and packed Q and K in pipeline=generic only; accepted: neither cache= nor "
              "queries=e4m3, no pages, no lists, and pipeline auto or generic");
        }},
    SpecRule{[](const Asked& asked) { return !asked.spec.integers && asked.spec.half_scores; },
             [](const Asked&) { return std::string("scores=fp16 needs Q and K in int8; accepted: beside qk=i8"); }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.half_scores && (asked.spec.has(Modifier::softcap) || asked.spec.has(Modifier::alibi));
             },
             [](const Asked&) {
               return std::string(
                   "scores=fp16 is what rocMLIR does, which has no soft-cap and no slopes; accepted: bias");
             }},
    SpecRule{
        [](const Asked& asked) { return asked.spec.query_fp32 && (asked.spec.narrow_queries || asked.spec.integers); },
        [](const Asked&) {
          return std::string(
              "q=fp32 is rounded to the 16 bits of K and V; accepted: no queries=e4m3 and qk=i8 beside it");
        }},
    SpecRule{[](const Asked& asked) { return asked.spec.query_fp32 && asked.spec.trans_q; },
             [](const Asked&) {
               return std::string(
                   "q=fp32 is loaded 32 bytes of a row at a time; accepted: Q whose dims are contiguous");
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.query_fp32 && asked.spec.paired_tiles; },
             [](const Asked&) {
               return std::string(
                   "tiles=paired fetches the second tile's Q by DMA, which rounds nothing; accepted: no q=fp32");
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.narrow_queries && asked.spec.cache != CacheType::as_queries; },
             [](const Asked&) {
               return std::string("queries=e4m3 gives the type of K and V, too; accepted: queries=e4m3 without cache=");
             }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.cache != CacheType::as_queries && !reads(asked.target, asked.spec.key_type());
             },
             [](const Asked& asked) { return attention::other_encoding(asked.spec.cache, asked.target); }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.token_scales && asked.spec.cache == CacheType::as_queries && !asked.spec.integers;
             },
             [](const Asked&) {
               return std::string(
                   "cache_scales=token scales scores one by one, for keys in 8 bits; "
                   "accepted: beside cache= or qk=i8");
             }},
    SpecRule{[](const Asked& asked) {
               const bool wave_has_its_page = asked.spec.pipeline == Pipeline::dualwave && asked.spec.whole_tiles;
               return asked.spec.token_scales && ((overlaps(asked) && asked.spec.paged && !wave_has_its_page) ||
                                                  asked.spec.listed || asked.spec.block_lists);
             },
             [](const Asked&) {
               return std::string(
                   "cache_scales=token multiplies each score and each weight by a number of its key; accepted: "
                   "pipeline=generic, keys outside of pages, or pipeline=dualwave and pages of whole_tiles, and "
                   "no listed and block_lists");
             }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.token_scales && spec.pipeline == Pipeline::dualwave &&
                      (spec.has(Modifier::bias) || (spec.modified() && has_first_key(spec.mask)));
             },
             [](const Asked& asked) {
               return asked.pipeline() +
                      " has no registers for a bias, or a window and modifiers, beside cache_scales=token; "
                      "accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.cache != CacheType::as_queries && asked.spec.paired_tiles; },
             [](const Asked&) {
               return std::string(
                   "tiles=paired fetches the second tile's keys by DMA, which widens nothing; accepted: no cache=");
             }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.cache != CacheType::as_queries && asked.spec.block_lists &&
                      asked.spec.pipeline == Pipeline::dualwave;
             },
             [](const Asked& asked) {
               return asked.pipeline() +
                      " has no registers for tiles of cache= that wait beside walks; accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.cache != CacheType::as_queries && asked.spec.vectorised; },
             [](const Asked&) {
               return std::string("cache= has no kernel for vectorised pages; accepted: paged without vectorised");
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.trans_any() && overlaps(asked); },
             [](const Asked& asked) {
               return asked.pipeline() +
                      " moves rows whose dims are contiguous; trans_q, trans_k, trans_v and trans_o need not be; "
                      "accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.trans_any() && asked.spec.moves_whole_rows(); },
             [](const Asked&) { return std::string(trans_is_dense); }},
    SpecRule{
        [](const Asked& asked) {
          const ForwardKernel& spec = asked.spec;
          return (spec.trans_k || spec.trans_v) && spec.tile_queries != tiles_of(asked).back();
        },
        [](const Asked& asked) {
          return "tile of " + std::to_string(asked.spec.tile_queries) +
                 " queries: a few waves have no registers for the elements of a tile of trans_k or trans_v; accepted: " +
                 std::to_string(tiles_of(asked).back());
        }},
    SpecRule{[](const Asked& asked) { return asked.spec.trans_o && asked.spec.output_store != OutputStore::scalar; },
             [](const Asked&) {
               return std::string(
                   "trans_o stores elements one by one: there is nothing to swap; accepted: auto, scalar");
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.tile_keys != attention::tile_keys; },
             [](const Asked& asked) {
               return "tile of " + std::to_string(asked.spec.tile_keys) +
                      " keys would change the order of additions; accepted: " + std::to_string(attention::tile_keys);
             }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.split_keys != 0 && asked.spec.split_keys != asked.spec.keys_of_chunk();
             },
             [](const Asked& asked) {
               return "split=" + std::to_string(asked.spec.split_keys) +
                      " would cut keys where no chunk ends; accepted: " + std::to_string(asked.spec.keys_of_chunk());
             }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.split_keys != 0 && (asked.spec.lse || asked.spec.output_store != OutputStore::scalar);
             },
             [](const Asked&) {
               return std::string("split= leaves LSE and O to attention_combine; accepted: no lse, o_store=scalar");
             }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.split_keys != 0 && spec.output != OutputType::as_products &&
                      !(spec.merged && spec.scales_output());
             },
             [](const Asked&) { return std::string("split= leaves parts of f32, whatever O is; accepted: no o="); }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.output != OutputType::as_products && asked.spec.output_store != OutputStore::scalar;
             },
             [](const Asked& asked) {
               return "o=" + std::string(to_text(asked.spec.output_type())) + " stores " +
                      std::to_string(4 * bytes_of(asked.spec.output_type())) +
                      " bytes of a lane as they are: there is nothing to swap; accepted: auto, scalar";
             }},
    SpecRule{[](const Asked& asked) { return !attention::writes(asked.target, asked.spec.output_type()); },
             [](const Asked& asked) {
               return attention::refusal_of_output(asked.spec.output_type(), asked.target, "o=").value_or("");
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.scales_output() && asked.spec.trans_o; },
             [](const Asked& asked) {
               return "o=" + std::string(to_text(asked.spec.output_type())) +
                      " stores four dims at once; accepted: O whose dims are contiguous and whose rows begin at "
                      "multiples of 16 bytes";
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.bias_fp32 && !asked.spec.has(Modifier::bias); },
             [](const Asked&) { return std::string("bias_type=fp32 needs a bias; accepted: bias bias_type=fp32"); }},
    SpecRule{[](const Asked& asked) { return asked.spec.bias_fp32 && overlaps(asked); },
             [](const Asked& asked) {
               return asked.pipeline() +
                      " keeps a tile's bias in 16 registers, and one in fp32 takes 32; accepted: auto, generic";
             }},
};

}  // namespace

std::span<const SpecRule> rules_of_types() { return type_rules; }

}  // namespace wavejit::attention_forward
