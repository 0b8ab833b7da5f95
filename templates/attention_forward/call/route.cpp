// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/route.h"

#include <algorithm>
#include <array>
#include <utility>

#include "templates/attention/kernel/coverage.h"
#include "templates/attention_forward/call/shared_chunks.h"
#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/room.h"
#include "templates/attention_forward/kernel/rules.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

std::string name_of(const ForwardKernel& spec) {
  return std::string(to_text(spec.pipeline)) + " " + std::to_string(spec.tile_queries) + "x" +
         std::to_string(spec.tile_keys) + ", " + std::string(to_text(spec.output_store)) + " O store";
}

bool packs(const AttentionShape& shape, Pipeline pipeline) {
  return (shape.packed_heads || shape.listed) && pipeline == Pipeline::generic;
}

// What a problem asks for, in a spec's words.
ForwardKernel asked_for(const AttentionShape& shape) {
  ForwardKernel spec = {shape, {}};
  if (shape.split) spec.split_keys = shape.keys_of_chunk();
  spec.merged = shape.merged;
  return spec;
}

// A wave of a small workgroup holds more of each tile. Where that leaves the rest of the words too few registers, more
// waves share it.
void grow_tile(ForwardKernel& spec, const targets::Target& target) {
  if (spec.pipeline != Pipeline::generic || spec.chunk_waves != 0) return;
  for (const int rows : tile_queries(target, spec.pipeline)) {
    if (rows < spec.tile_queries) continue;
    ForwardKernel grown = spec;
    grown.tile_queries = rows;
    if (measured_waves(grown, target) == 0) continue;
    spec.tile_queries = rows;
    return;
  }
}

ForwardKernel candidate(const AttentionShape& shape, const targets::Target& target, const Toggles& toggles,
                        const Pins& pins, Pipeline pipeline, OutputStore store) {
  ForwardKernel spec = asked_for(shape);
  // Parts are f32 in every case, dims side by side: O is another kernel's.
  if (shape.split && !shape.merged) {
    spec.trans_o = false;
    spec.output = OutputType::as_products;
  }
  spec.packed_heads = packs(shape, pipeline);
  // The generic pipeline looks up granules: one kernel for every page size.
  if (pipeline == Pipeline::generic) spec.whole_tiles = false;
  spec.pipeline = pipeline;
  spec.tile_queries = pins.tile_queries != 0 ? pins.tile_queries : tile_queries_of(shape, target, pipeline);
  if (pins.ladder.empty()) {
    spec.ladder = default_ladder(target, pipeline, shape.query_rows);
  } else if (pins.ladder != standard_ladder) {
    spec.ladder = pins.ladder;
  }
  if (pipeline == Pipeline::dualwave) {
    spec.paired_tiles = pins.paired_tiles.value_or(shape.paired_tiles);
    spec.stagger = pins.stagger;
    spec.raised_priority = pins.raised_priority;
  }
  const bool shares = shape.shared_chunks && pipeline == Pipeline::generic;
  const int waves = pins.chunk_waves.value_or(shares ? shared_waves({shape.head_dim_qk, shape.head_dim_v}) : 1);
  if (waves != 1) {
    spec.chunk_waves = waves;
    if (pins.tile_queries == 0) spec.tile_queries = shared_tile_queries;
  }
  spec.output_store = store;
  spec.target = target.id;
  if (pins.tile_queries == 0) grow_tile(spec, target);
  spec.lowering = toggles.lowering;
  return spec;
}

}  // namespace

Pipeline pipeline_of(const AttentionShape& shape, const targets::Target& target, const Pins& pins) {
  if (pins.pipeline) return *pins.pipeline;
  if (shape.listed || shape.trans_any() || shape.integers || shape.masks_few_rows()) return Pipeline::generic;
  // Workgroups as small as the blocks of lists.
  if (shape.block_lists && shape.query_rows <= QueryRows::up_to_64) return Pipeline::generic;
  const bool looks_up_apart = shape.paged && (shape.vectorised || shape.key_layout().looks_up_each_key());
  if (shape.packed_heads || shape.shared_chunks || looks_up_apart) return Pipeline::generic;
  const Pipeline usual = default_pipeline(target, shape.query_rows);
  return lacks_token_scales(shape, usual) ? Pipeline::generic : usual;
}

int tile_queries_of(const AttentionShape& shape, const targets::Target& target, Pipeline pipeline) {
  const HeadDims dims = {shape.head_dim_qk, shape.head_dim_v};
  if (shape.trans_k || shape.trans_v) return tile_queries(target, pipeline).back();
  if ((shape.block_lists || shape.bool_mask) && pipeline == Pipeline::generic)
    return packed_tile_queries(target, shape.query_rows, dims);
  return packs(shape, pipeline) ? packed_tile_queries(target, shape.query_rows, dims)
                                : default_tile_queries(target, pipeline, shape.query_rows, dims);
}

std::string why_no_kernel(const AttentionShape& shape, const targets::Target& target, const Pins& pins) {
  const ForwardKernel spec = candidate(shape, target, {}, pins, Pipeline::generic, OutputStore::scalar);
  return first_refusal({spec, target});
}

bool has_kernel_somewhere(const AttentionShape& shape) {
  return std::ranges::any_of(targets::all_targets(), [&](const targets::Target& target) {
    return !lacks_kernels(target, Need::row_of_two, ForwardKernel::kernel) && why_no_kernel(shape, target).empty();
  });
}

Result<ChosenKernel> choose_kernel(const AttentionShape& asked, const targets::Target& target, const Toggles& toggles) {
  // The order of preference: what the caller forced, else what the template prefers on this target.
  const Pins pins = pins_of(toggles);
  AttentionShape shape = asked;
  shape.shared_chunks = shape.shared_chunks && can_share(shape, target, shape.split);
  Pipeline pipeline = pipeline_of(shape, target, pins);
  // A split kernel leaves partial results, and O to another kernel.
  const OutputStore store = shape.split
                                ? OutputStore::scalar
                                : pins.output_store.value_or(shape.output != OutputType::as_products || shape.trans_o
                                                                 ? OutputStore::scalar
                                                                 : default_output_store(target));
  ChosenKernel route;
  route.spec = candidate(shape, target, toggles, pins, pipeline, store);
  auto resources = resources_of(route.spec);
  // What the preferred pipeline cannot do, the generic one may: nothing that was asked for is dropped.
  if (!resources && !toggles.pins_kernels() && pipeline != Pipeline::generic) {
    pipeline = Pipeline::generic;
    route.spec = candidate(shape, target, toggles, pins, pipeline, store);
    resources = resources_of(route.spec);
  }
  if (!resources) {
    return fail(WAVEJIT_UNSUPPORTED, "no kernel for attention_forward " + to_text(shape) + " on " +
                                         std::string(target.id) + ": " + resources.error());
  }
  route.resources = *resources;

  return route;
}

std::vector<Refusal> why_not_others(const AttentionShape& shape, const targets::Target& target, const Toggles& toggles,
                                    const ChosenKernel& route) {
  std::vector<Refusal> refused;
  const Pins pins = pins_of(toggles);
  const Pipeline pipeline = route.spec.pipeline;
  const OutputStore store = route.spec.output_store;
  const auto refuse = [&](const ForwardKernel& other, const std::string& reason) {
    const auto possible = resources_of(other);
    refused.push_back({name_of(other), possible ? reason : possible.error()});
  };
  const auto asked_for = [](std::string_view field, std::string_view value) {
    return std::string(field) + "=" + std::string(value) + " was asked for; accepted here too: auto";
  };
  for (const Pipeline other : all_pipelines) {
    if (other == pipeline) continue;
    const std::string lengths = "queries of 256 rows and more";
    refuse(candidate(shape, target, toggles, pins, other, store),
           pins.pipeline                    ? asked_for("pipeline", to_text(pipeline))
           : other == Pipeline::dualwave    ? "it is for " + lengths + "; shorter ones would leave waves idle"
           : pipeline == Pipeline::dualwave ? "dualwave is preferred for " + lengths + " where the target can"
                                            : std::string(to_text(pipeline)) + " is preferred where the target can");
  }
  if (shape.split) return refused;
  const OutputStore other_store = store == OutputStore::permlane ? OutputStore::scalar : OutputStore::permlane;
  refuse(candidate(shape, target, toggles, pins, pipeline, other_store),
         pins.output_store ? asked_for("o_store", to_text(store))
                           : std::string(to_text(store)) + " is preferred where the target has it");
  return refused;
}

std::string describe(const ChosenKernel& route) {
  return std::string(to_text(route.spec.pipeline)) + " " + std::to_string(route.spec.tile_queries) + "x" +
         std::to_string(route.spec.tile_keys) + ", " + std::to_string(route.resources.waves) +
         (route.resources.waves == 1 ? " wave, " : " waves, ") +
         (route.spec.chunk_waves != 0 ? "which share each chunk of keys, " : "") +
         (route.spec.packed_heads ? "heads of a kv head packed, " : "") +
         (route.spec.paired_tiles ? "two query tiles a workgroup, " : "") +
         (route.spec.split_keys != 0 ? "keys cut into chunks of " + std::to_string(route.spec.split_keys) +
                                           (route.spec.merged ? ", merged by the last workgroup to arrive" : "")
                                     : std::string(to_text(route.spec.output_store)) + " O store");
}

std::string cost_of(const ChosenKernel& route) {
  const Resources& cost = route.resources;
  return std::to_string(cost.lds_bytes) + " bytes of LDS, up to " + std::to_string(cost.vgpr_budget) + " VGPRs, " +
         std::to_string(cost.workgroups_per_compute_unit) +
         (cost.workgroups_per_compute_unit == 1 ? " workgroup" : " workgroups") + " per CU";
}

std::vector<AttentionShape> supported_shapes(const targets::Target& target, const Toggles& toggles) {
  std::vector<AttentionShape> shapes;
  for (const DataType dtype : {DataType::bf16, DataType::fp16}) {
    for (const HeadDims& dims : all_head_dims()) {
      for (const Mask mask : {Mask::none, Mask::causal}) {
        for (const bool lse : {false, true}) {
          const AttentionShape shape = {
              {.dtype = dtype, .head_dim_qk = dims.qk, .head_dim_v = dims.v, .mask = mask, .lse = lse}};
          if (choose_kernel(shape, target, toggles)) shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

std::string to_text(const AttentionShape& shape) { return problem_text(asked_for(shape)); }

}  // namespace wavejit::attention_forward
