// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a spec asks of its target, and sizes that have no kernel: a rule each, which gives its sentence or nothing.
#include "templates/attention_forward/kernel/rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "templates/attention/kernel/cache_encoding.h"
#include "templates/attention/kernel/output_scale.h"
#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/room.h"
#include "templates/attention_forward/kernel/word_in_the_way.h"

namespace wavejit::attention_forward {
namespace {

using Asked = AskedSpec;

bool overlaps(const Asked& asked) { return asked.spec.pipeline != Pipeline::generic; }

// Head dims that the generic pipeline, which has most, computes on a target.
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

std::string fault_of_head_dims(const Asked& asked) {
  if (has_head_dims(asked.head_dims())) return {};
  return "head dim " + to_text(asked.head_dims()) + " has no kernel; accepted: " + known_head_dims(asked.target) +
         ", and in 16 bits multiples of " + std::to_string(head_dim_step) + " up to " +
         std::to_string(largest_head_dim);
}

// Overlapped pipelines hold O, Q, weights, scores and all fragments of a K tile, or parts of the next tiles, in
// registers: beyond 128 dims nothing is left of 256. Dualwave's waits count transfers of one tile, whichever it is.
std::string fault_of_overlapped_dims(const Asked& asked) {
  if (!overlaps(asked)) return {};
  const ForwardKernel& spec = asked.spec;
  constexpr int piece = LdsPlan::piece_elements;
  const bool uneven = spec.pipeline == Pipeline::dualwave && is_padded(asked.head_dims()) &&
                      blocks_of_dims(spec.head_dim_qk, piece) != blocks_of_dims(spec.head_dim_v, piece);
  const bool many = spec.head_dim_qk > 128 || spec.head_dim_v > 128;
  const bool half_lines = spec.narrow_queries &&
                          (spec.head_dim_qk % LdsPlan::piece_bytes != 0 || spec.head_dim_v % LdsPlan::piece_bytes != 0);
  if (!uneven && !many && !half_lines) return {};
  const std::string why = half_lines ? "fills LDS by more waves than a tile of queries=e4m3 has lines for"
                          : uneven   ? "counts transfers of K and V alike, of which one has more"
                                     : "holds O, Q and parts of two tiles in registers";
  return "head dim " + to_text(asked.head_dims()) + " has no kernel with " + asked.pipeline() + ", which " + why +
         "; accepted: auto, generic";
}

std::string accepted_pipelines(const targets::Target& target) {
  std::string accepted = "auto";
  for (const Pipeline pipeline : all_pipelines)
    if (missing_for(pipeline, target).empty()) accepted += ", " + std::string(to_text(pipeline));
  return accepted;
}

std::string missing_instructions(const Asked& asked) {
  const ForwardKernel& spec = asked.spec;
  if (spec.narrow_queries && !asked.target.byte_matrix)
    return "queries=e4m3 needs v_mfma_f32_32x32x64_f8f6f4 and ds_read_b64_tr_b8, products of e4m3 whose weights "
           "stay in their lanes, which " +
           asked.target_name() +
           " does not have, and its products 16 deep are estimated at 1.1 to 1.4 times bf16 where maxima grow "
           "(docs/low-precision.md); accepted: Q in bf16 or fp16, with K and V in 8 bits as cache=";
  if (spec.integers && asked.target.integer_matrix_k == 0)
    return "qk=i8 needs matrix instructions of integers, which " + asked.target_name() +
           " does not have; accepted: Q and K in 16 bits";
  if (spec.output_store == OutputStore::permlane && !asked.target.permlane32_swap)
    return "o_store=permlane needs v_permlane32_swap, which " + asked.target_name() +
           " does not have; accepted: auto, scalar";
  if (spec.cache != CacheType::as_queries && !reads(asked.target, spec.key_type()))
    return attention::other_encoding(spec.cache, asked.target);
  if (const auto refusal = attention::refusal_of_output(spec.output_type(), asked.target, "o=")) return *refusal;
  const std::string missing = missing_for(spec.pipeline, asked.target);
  return missing.empty() ? missing : missing + "; accepted: " + accepted_pipelines(asked.target);
}

// Few waves have no registers for the elements of a scattered tile, nor for a whole tile of more than 128 dims.
std::string fault_of_tile(const Asked& asked) {
  const ForwardKernel& spec = asked.spec;
  const HeadDims dims = asked.head_dims();
  if (spec.chunk_waves != 0 && spec.tile_queries == shared_tile_queries && spec.chunk_waves != shared_waves(dims))
    return "chunk_waves=" + std::to_string(spec.chunk_waves) + " has no kernel for head dim " + to_text(dims) +
           "; accepted: " + std::to_string(shared_waves(dims));
  std::span<const int> tiles = tile_queries(asked.target, spec.pipeline);
  const bool largest = spec.trans_k || spec.trans_v || (!small_tiles_fit(dims) && spec.chunk_waves == 0);
  if (largest) tiles = tiles.last(1);
  if (std::ranges::contains(tiles, spec.tile_queries)) return {};
  std::string accepted;
  for (const int tile : tiles) accepted += (accepted.empty() ? "" : ", ") + std::to_string(tile);
  return "tile of " + std::to_string(spec.tile_queries) + " queries has no kernel " +
         (spec.trans_k || spec.trans_v ? "for trans_k and trans_v"
          : largest                    ? "for head dim " + to_text(dims)
                                       : "in " + asked.pipeline() + " on " + asked.target_name()) +
         "; accepted: " + accepted;
}

std::string fault_of_sums(const Asked& asked) {
  const ForwardKernel& spec = asked.spec;
  if (spec.tile_keys != attention::tile_keys)
    return "tile of " + std::to_string(spec.tile_keys) +
           " keys would change the order of additions; accepted: " + std::to_string(attention::tile_keys);
  if (spec.split_keys == 0 || spec.split_keys == spec.keys_of_chunk()) return {};
  return "split=" + std::to_string(spec.split_keys) +
         " would cut keys where no chunk ends; accepted: " + std::to_string(spec.keys_of_chunk());
}

std::string fault_of_pipeline_words(const Asked& asked) {
  const ForwardKernel& spec = asked.spec;
  if (spec.pipeline != Pipeline::dualwave && (!spec.stagger || !spec.raised_priority))
    return std::string(spec.stagger ? "setprio=off" : "stagger=off") +
           " belongs to pipeline=dualwave; accepted: pipeline=dualwave, or without it";
  if (const Ladder* ladder = find_ladder(spec.pipeline, spec.ladder)) return fault_of(*ladder);
  if (spec.ladder.empty()) return {};
  const std::string names = ladder_names(spec.pipeline);
  return "ladder=" + spec.ladder + " is no ladder of " + asked.pipeline() +
         (names.empty() ? ", which has none" : "; accepted: " + names);
}

std::string fault_of_lds(const Asked& asked) {
  const int bytes = lds_plan(asked.spec, asked.target).total_bytes();
  if (bytes <= asked.target.lds_bytes_per_workgroup) return {};
  return "the tiles need " + std::to_string(bytes) + " bytes of LDS; " + asked.target_name() + " gives a workgroup " +
         std::to_string(asked.target.lds_bytes_per_workgroup);
}

using Rule = std::string (*)(const Asked& asked);
constexpr Rule rules[] = {fault_of_head_dims, refused_combination, missing_instructions,   fault_of_overlapped_dims,
                          fault_of_tile,      fault_of_sums,       fault_of_pipeline_words};

// ---- Registers

// Waves that share chunks fill the scalar registers, and are not measured. If they merge, pages with left padding have
// none for a window.
bool shares(const ForwardKernel& spec) {
  const bool by_lines = lds_layout(*targets::find_target(spec.target)) == LdsLayout::lines;
  if (spec.merged && spec.paged && spec.first_keys && spec.mask == Mask::window) return false;
  return shares_by_lines(spec) && (by_lines || shares_in_registers(spec, spec.split_keys != 0));
}

std::string refusal_by_hand(const Asked& asked) {
  if (asked.spec.chunk_waves == 0 || shares(asked.spec)) return {};
  return word_in_the_way(asked.spec, shares).word + " has no kernel beside chunk_waves= on " + asked.target_name() +
         ", for want of registers; accepted: a wave with rows of its own";
}

bool fits(const ForwardKernel& spec) {
  const std::optional<int> waves = measured_waves(spec, *targets::find_target(spec.target));
  return waves && *waves != 0;
}

// What the table says to a spec that no rule refuses.
std::string refusal_of_room(const Asked& asked) {
  if (measured_waves(asked.spec, asked.target) != 0) return {};
  const WordInTheWay found = word_in_the_way(asked.spec, fits);
  return found.word + " leaves too few registers for the rest on " + asked.target_name() + ", as LLVM " +
         std::string(room_llvm_version()) + " hands them out; accepted: " + found.accepted;
}

}  // namespace

std::string first_refusal(const AskedSpec& asked, bool with_room) {
  for (const Rule rule : rules)
    if (std::string refusal = rule(asked); !refusal.empty()) return refusal;
  if (std::string refusal = fault_of_lds(asked); !refusal.empty()) return refusal;
  if (!with_room) return {};
  if (std::string refusal = refusal_by_hand(asked); !refusal.empty()) return refusal;
  return refusal_of_room(asked);
}

}  // namespace wavejit::attention_forward
