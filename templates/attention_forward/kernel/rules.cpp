// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/rules.h"

#include <array>

#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/rule_parts.h"

namespace wavejit::attention_forward {
namespace {

using Asked = AskedSpec;

std::string fault_of_ladder(const ForwardKernel& spec) {
  if (const Ladder* ladder = find_ladder(spec.pipeline, spec.ladder)) return fault_of(*ladder);
  if (spec.ladder.empty()) return {};
  const std::string names = ladder_names(spec.pipeline);
  return "ladder=" + spec.ladder + " is no ladder of pipeline=" + std::string(to_text(spec.pipeline)) +
         (names.empty() ? ", which has none" : "; accepted: " + names);
}

constexpr std::array rules_of_stores_and_room = {
    SpecRule{[](const Asked& asked) {
               return asked.spec.pipeline != Pipeline::dualwave && (!asked.spec.stagger || !asked.spec.raised_priority);
             },
             [](const Asked&) { return std::string("stagger=off and setprio=off belong to pipeline=dualwave"); }},
    SpecRule{[](const Asked& asked) { return !fault_of_ladder(asked.spec).empty(); },
             [](const Asked& asked) { return fault_of_ladder(asked.spec); }},
    SpecRule{[](const Asked& asked) {
               return asked.spec.output_store == OutputStore::permlane && !asked.target.permlane32_swap;
             },
             [](const Asked& asked) {
               return "o_store=permlane needs v_permlane32_swap, which " + asked.target_name() +
                      " does not have; accepted: auto, scalar";
             }},
    // 64 registers of a tile that waits, O's 128, Q's 64 and the scores' 32 leave room for addresses alone.
    SpecRule{[](const Asked& asked) {
               const ForwardKernel& spec = asked.spec;
               return lds_layout(asked.target) == LdsLayout::swizzled && spec.head_dim_v > 128 &&
                      (spec.cache != CacheType::as_queries || spec.integers || spec.trans_any() || spec.vectorised ||
                       spec.block_lists || spec.bool_mask || spec.key_layout().looks_up_each_key() || spec.modified());
             },
             [](const Asked& asked) {
               return "head dim " + to_text(asked.head_dims()) + " needs LDS DMA of 16 bytes, which " +
                      asked.target_name() +
                      " does not have: the tile that waits in registers leaves room for keys in 16 bits, "
                      "dense or in pages of 16 and more, without bias, softcap and alibi; accepted with the rest: "
                      "up to 192/128";
             }},
    SpecRule{[](const Asked& asked) {
               return lds_plan(asked.spec, asked.target).total_bytes() > asked.target.lds_bytes_per_workgroup;
             },
             [](const Asked& asked) {
               return "the tiles need " + std::to_string(lds_plan(asked.spec, asked.target).total_bytes()) +
                      " bytes of LDS; " + asked.target_name() + " gives a workgroup " +
                      std::to_string(asked.target.lds_bytes_per_workgroup);
             }},
};

}  // namespace

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

std::string first_refusal(const AskedSpec& asked) {
  for (const std::span<const SpecRule> rules :
       {rules_of_types(), rules_of_walks(), rules_of_lists(), std::span<const SpecRule>(rules_of_stores_and_room)})
    for (const SpecRule& rule : rules)
      if (rule.breaks(asked)) return rule.sentence(asked);
  return {};
}

}  // namespace wavejit::attention_forward
