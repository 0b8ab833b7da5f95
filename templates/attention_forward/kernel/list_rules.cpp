// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of blocks and of keys, bool masks, local chunks and causal flags.
#include <array>

#include "templates/attention/kernel/mask_kinds.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/rule_parts.h"

namespace wavejit::attention_forward {
namespace {

using Asked = AskedSpec;

constexpr std::array list_rules = {
    SpecRule{
        [](const Asked& asked) {
          const ForwardKernel& spec = asked.spec;
          return spec.block_lists &&
                 (spec.split_keys != 0 || spec.packed_heads || spec.paired_tiles || spec.shares_call());
        },
        [](const Asked&) {
          return std::string(
              "block_lists has walks of its own for each head and block of rows; accepted: no split=, heads=packed, "
              "tiles=paired and rows=");
        }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.bool_mask && (spec.has(Modifier::bias) || spec.narrow_queries || spec.integers ||
                                         spec.cache != CacheType::as_queries);
             },
             [](const Asked&) {
               return std::string(
                   "bool_mask has bits in the place of a bias; accepted: no bias, queries=e4m3, qk=i8 and cache=");
             }},
    SpecRule{
        [](const Asked& asked) {
          const ForwardKernel& spec = asked.spec;
          return spec.bool_mask && !spec.block_lists &&
                 (overlaps(asked) || spec.paged || spec.first_keys || spec.listed || spec.merged ||
                  spec.shares_call() || has_kind(spec.mask) || spec.causal_flags);
        },
        [](const Asked&) {
          return std::string(
              "bool_mask without block_lists needs few rows over dense keys; accepted: pipeline=generic, no paged, "
              "first_keys, listed, merged, rows=, " +
              std::string(kind_words) + " and causal_flags");
        }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.bool_mask && spec.paged &&
                      (spec.modified() || spec.mask == Mask::window || spec.vectorised ||
                       spec.key_layout().looks_up_each_key());
             },
             [](const Asked&) {
               return std::string(
                   "bool_mask beside pages leaves no registers for a window, softcap and alibi, pages of one key, "
                   "first_keys and vectorised; accepted: pages of 16 n keys without them, or dense keys");
             }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.bool_mask && overlaps(asked) &&
                      (asked.spec.paged || (asked.spec.mask == Mask::window && asked.spec.modified()));
             },
             [](const Asked& asked) {
               return asked.pipeline() +
                      " has no registers for the bits of bool_mask beside pages, or a window with softcap and alibi; "
                      "accepted: auto, generic";
             }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.bias_by_tile &&
                      (!spec.block_lists || spec.bool_mask || !spec.has(Modifier::bias) || spec.narrow_queries ||
                       spec.integers || spec.cache != CacheType::as_queries);
             },
             [](const Asked&) {
               return std::string(
                   "bias_by_tile has walks of block_lists, made of a bias; accepted: block_lists bias bias_by_tile, no "
                   "bool_mask, queries=e4m3, qk=i8 and cache=");
             }},
    SpecRule{
        [](const Asked& asked) { return asked.spec.bias_by_tile && (asked.spec.paged || asked.spec.first_keys); },
        [](const Asked&) { return std::string("bias_by_tile needs dense keys; accepted: no paged and first_keys"); }},
    SpecRule{[](const Asked& asked) { return has_kind(asked.spec.mask) && asked.spec.block_lists; },
             [](const Asked&) {
               return std::string("block_lists has no walks of " + std::string(kind_words) +
                                  "; accepted: causal, window, or lists without a mask");
             }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return lds_layout(asked.target) == LdsLayout::swizzled && (has_kind(spec.mask) || spec.causal_flags) &&
                      spec.cache != CacheType::as_queries && spec.paged && spec.modified();
             },
             [](const Asked& asked) {
               return std::string(kind_words) +
                      " and causal_flags beside cache= in pages leave no registers for bias, softcap and alibi where "
                      "tiles pass through registers, as on " +
                      asked.target_name() + "; accepted: without one of these";
             }},
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return spec.causal_flags && (spec.mask != Mask::causal || spec.block_lists || spec.listed);
             },
             [](const Asked&) {
               return std::string(
                   "causal_flags needs sequences with a causal mask; accepted: causal causal_flags without lists");
             }},
    SpecRule{[](const Asked& asked) { return asked.spec.slots && !asked.spec.listed; },
             [](const Asked&) { return std::string("slots are what lists of keys name; accepted: listed slots"); }},
    SpecRule{
        [](const Asked& asked) {
          return asked.spec.listed && (asked.spec.pipeline != Pipeline::generic || !asked.spec.packed_heads);
        },
        [](const Asked&) {
          return std::string(
              "with lists of keys (listed) a workgroup takes the heads of one query; accepted: pipeline=generic heads=packed");
        }},
    SpecRule{
        [](const Asked& asked) {
          const ForwardKernel& spec = asked.spec;
          return spec.listed && (spec.mask != Mask::none || spec.vectorised || spec.first_keys || spec.block_lists ||
                                 spec.shares_call());
        },
        [](const Asked&) {
          return std::string(
              "listed takes the diagonal as an argument and keys from their sequence's key 0 on; accepted: no causal, "
              "window, vectorised, first_keys, block_lists and rows=");
        }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.listed && (asked.spec.has(Modifier::bias) || asked.spec.has(Modifier::alibi));
             },
             [](const Asked&) {
               return std::string(
                   "listed walks places of a list, which a bias and slopes do not know; accepted: no bias and alibi");
             }},
};

}  // namespace

std::span<const SpecRule> rules_of_lists() { return list_rules; }

}  // namespace wavejit::attention_forward
