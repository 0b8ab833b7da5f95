// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constraints and defaults of the attention_forward kernels: which spec can be built for which target, and why not.
//
// Pure functions of the target table; no LLVM, no environment. The runtime's route asks these before anything is
// emitted, the emitter asks them again and refuses the same things with the same words.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "targets/targets.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// Head dims that fill tiles: those that prebuild has unless it is told (head_dims.h has the others).
std::span<const HeadDims> all_head_dims();

// What a spec costs on its target, known without compiling.
struct Resources {
  int waves = 4;
  int threads = 256;
  int lds_bytes = 0;
  int lds_buffers = 2;  // tiles of K and V in LDS at once
  int workgroups_per_compute_unit = 1;
  int vgpr_budget = 256;  // per lane, what the work-group size leaves
};

// The error is one sentence that names the capability which is missing: "o_store=permlane needs v_permlane32_swap,
// which gfx942 does not have; accepted: auto, scalar".
std::expected<Resources, std::string> resources_of(const ForwardKernel& spec);
// What a spec costs that no rule is asked about, with registers of the caller's choice.
Resources resources_with(const ForwardKernel& spec, const targets::Target& target, int vgpr_budget);

// Beyond 128 dims a wave has no registers left to fetch a whole tile alone.
bool small_tiles_fit(const HeadDims& dims);

// ForwardKernel::chunk_waves where waves share a chunk: as many as images of their tiles fit into LDS.
inline constexpr int shared_tile_queries = 32;
constexpr int shared_waves(const HeadDims& dims) { return dims.qk > 128 ? 2 : 4; }

// Which waves that share a chunk have registers is told by hand: how many they need goes up and down by a few, scalars
// and others, with words that no cell of the measured table has (LSE, the store of O).
//
// Where tiles pass through registers, waves that share a chunk have none left for modifiers beside pages, a bias in
// fp32, addresses of single keys, and O of more than 128 dims; nor for a bias, and for limits of a mask beside pages,
// where they end rows, too (`split`: somebody else merges parts).
bool shares_in_registers(const AskedWords& words, bool split);
// Where tiles go through lines, a bias or slopes and pages are more scalars than there are; so is softcap beyond 128
// dims, any modifier or more dims beside flags of sequences, local chunks beside pages, and, dense, beside modifiers of
// more than 128 dims.
inline bool shares_by_lines(const AskedWords& words) {
  const bool wide = words.head_dim_qk > 128 || words.head_dim_v > 128;
  const bool chunked = has_kind(words.mask);
  if (chunked && words.modified() && wide) return false;
  if (!words.paged) return true;
  if (chunked || (words.causal_flags && (wide || words.modified()))) return false;
  return !words.has(Modifier::bias) && !words.has(Modifier::alibi) && !(wide && words.has(Modifier::softcap));
}

// The O store that `auto` means on a target.
OutputStore default_output_store(const targets::Target& target);

// What a route knows of lengths, beside AttentionShape::paired_tiles: the class of the query length, which chooses the
// rows of a workgroup. It goes by the length alone, never by batch, heads or what else is running, so that one problem
// has one kernel. (All kernels give the same bits anyway.)
enum class QueryRows : std::uint8_t { up_to_32, up_to_64, up_to_255, more };
inline constexpr QueryRows all_query_rows[] = {QueryRows::up_to_32, QueryRows::up_to_64, QueryRows::up_to_255,
                                               QueryRows::more};
QueryRows query_rows(std::uint64_t query_length);

// Which rows a workgroup's tile has: those of one query head, or those of all `group` heads that share a kv head. Heads
// are packed where a tile of one head would stand mostly empty.
struct RowPlan {
  QueryRows rows = QueryRows::up_to_255;
  bool packed_heads = false;
  bool operator==(const RowPlan&) const = default;
};
RowPlan plan_rows(std::uint64_t query_length, std::uint64_t group);
inline constexpr std::uint64_t longest_packed_query = 32;

// The pipeline that `auto` means: what `wavejit tune` found for the target (tuned_defaults.inc). For a target that it
// was not asked about: dualwave for lengths that fill one of its workgroups, where the target can; interleaved where it
// can; else generic.
Pipeline default_pipeline(const targets::Target& target, QueryRows rows);

// Empty, or what the target lacks for a pipeline.
std::string missing_for(Pipeline pipeline, const targets::Target& target);

// Whether a pipeline has no scales of tokens for such pages: overlapped ones, but dualwave has them of whole tiles.
constexpr bool lacks_token_scales(const AskedWords& words, Pipeline pipeline) {
  return words.token_scales && words.paged && pipeline != Pipeline::generic &&
         !(pipeline == Pipeline::dualwave && words.whole_tiles);
}

// Query rows that a workgroup of this pipeline can have, ascending.
std::span<const int> tile_queries(const targets::Target& target, Pipeline pipeline);
// Those that it gets: few rows take a small workgroup, so that waves without a row take no place from others.
// `wavejit tune` may have found another size for the pipeline that it chose. Head dims beyond 128 leave a wave no
// registers to fetch a whole tile alone: always the largest.
int default_tile_queries(const targets::Target& target, Pipeline pipeline, QueryRows rows, const HeadDims& dims);
// The tile of packed heads: the smallest that holds all rows, so that nobody else reads their K and V, or the largest.
int packed_tile_queries(const targets::Target& target, QueryRows rows, const HeadDims& dims);

// ForwardKernel::ladder of a pipeline: what `wavejit tune` found where it chose the pipeline, else standard ("").
std::string default_ladder(const targets::Target& target, Pipeline pipeline, QueryRows rows);

// A bias and the next tile are too many registers at once beside 128 dims, where products and softmax overlap; where a
// wave overlaps itself, the limits of a window and a soft-cap are, too, and where tiles of a cache of 8 bits wait,
// those of a window, scales of tokens or what is looked up of pages.
inline bool registers_are_short(const ForwardKernel& spec) {
  if (spec.pipeline == Pipeline::generic || spec.head_dim_v <= 64) return false;
  const bool capped_window =
      spec.pipeline == Pipeline::interleaved && has_first_key(spec.mask) && spec.has(Modifier::softcap);
  const bool waits = spec.pipeline == Pipeline::dualwave && spec.cache != CacheType::as_queries &&
                     (spec.mask == Mask::window || spec.paged || spec.token_scales);
  return spec.has(Modifier::bias) || capped_window || waits;
}

// Sizes for one launch of a kernel with this spec, whose target it is; `splits` is 1 unless it splits keys. `group`
// counts the query heads of a kv head and matters to packed heads only.
LaunchGeometry launch_geometry(const ForwardKernel& spec, const targets::Target& target, std::uint32_t batch,
                               std::uint32_t query_heads, std::uint32_t query_length, std::uint32_t splits = 1,
                               std::uint32_t group = 1);

}  // namespace wavejit::attention_forward
