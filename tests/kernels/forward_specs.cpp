// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kernels of attention_forward have golden facts.
#include "kernels/facts.h"
#include "targets/targets.h"
#include "templates/attention_forward/kernel/combine/spec.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/walks/block_lists/spec.h"
#include "templates/attention_forward/kernel/walks/mask_lists/spec.h"

namespace wavejit::tests {

using attention_forward::DataType;
using attention_forward::ForwardKernel;
using attention_forward::Mask;
using attention_forward::Modifier;
using attention_forward::Modifiers;
using attention_forward::OutputStore;
using attention_forward::Pipeline;

attention_forward::Modifiers all_code_modifiers() {
  Modifiers all;
  for (const auto& row : attention_forward::modifier_rows)
    if (row.in_code) all.add(row.modifier);
  return all;
}

namespace {

// Each alone, and all together, which takes the most registers.
void add_modified_kernels(std::vector<ForwardKernel>& specs) {
  struct Variant {
    Mask mask = Mask::none;
    bool lse = false;
    Modifiers modifiers = {};
  };
  const Variant variants[] = {
      {.mask = Mask::window, .lse = true, .modifiers = {}},
      {.modifiers = {Modifier::softcap}},
      {.mask = Mask::window, .modifiers = {Modifier::softcap}},
      {.modifiers = {Modifier::bias}},
      {.mask = Mask::causal, .lse = true, .modifiers = {Modifier::alibi}},
      {.mask = Mask::window, .lse = true, .modifiers = all_code_modifiers()},
  };
  for (const targets::Target& target : targets::complete_targets())
    for (const Pipeline pipeline : attention_forward::all_pipelines)
      for (const int rows : attention_forward::tile_queries(target, pipeline))
        for (const int head_dim : {64, 128})
          for (const Variant& variant : variants) {
            const ForwardKernel spec{{.dtype = DataType::bf16,
                                      .head_dim_qk = head_dim,
                                      .head_dim_v = head_dim,
                                      .mask = variant.mask,
                                      .lse = variant.lse,
                                      .modifiers = variant.modifiers},
                                     {.pipeline = pipeline,
                                      .tile_queries = rows,
                                      .output_store = attention_forward::default_output_store(target),
                                      .target = std::string(target.id)}};
            if (attention_forward::resources_of(spec)) specs.push_back(spec);
          }
}

// O in f32 and in 8 bits: one kernel of each pipeline, one that merges its parts, and the combine kernel.
void add_other_outputs(std::vector<families::KernelSpec>& specs) {
  using attention::OutputType;
  for (const targets::Target& target : targets::complete_targets()) {
    for (const OutputType output : {OutputType::fp32, OutputType::e4m3, OutputType::i8}) {
      for (const Pipeline pipeline : attention_forward::all_pipelines) {
        const ForwardKernel spec{{.dtype = DataType::bf16, .mask = Mask::causal, .lse = true, .output = output},
                                 {.pipeline = pipeline,
                                  .tile_queries = attention_forward::tile_queries(target, pipeline).back(),
                                  .target = std::string(target.id)}};
        if (!attention_forward::resources_of(spec)) continue;
        specs.emplace_back(spec);
      }
      specs.emplace_back(attention_combine::combine_of({{}, {.target = std::string(target.id)}}, output));
    }
    for (const int waves : {0, 4}) {
      const ForwardKernel merging{
          {.dtype = DataType::bf16, .mask = Mask::causal, .output = OutputType::e4m3, .paged = true},
          {.split_keys = attention::chunk_keys,
           .merged = true,
           .packed_heads = true,
           .chunk_waves = waves,
           .tile_queries = 32,
           .target = std::string(target.id)}};
      if (attention_forward::resources_of(merging)) specs.emplace_back(merging);
    }
  }
}

}  // namespace

std::vector<ForwardKernel> all_kernel_specs() {
  std::vector<ForwardKernel> specs;
  for (const targets::Target& target : targets::complete_targets())
    for (const Pipeline pipeline : attention_forward::all_pipelines)
      for (const int rows : attention_forward::tile_queries(target, pipeline))
        for (const OutputStore store : {OutputStore::scalar, OutputStore::permlane})
          for (const DataType dtype : {DataType::fp16, DataType::bf16})
            for (const attention_forward::HeadDims& dims : attention_forward::all_head_dims())
              for (const Mask mask : {Mask::none, Mask::causal})
                for (const bool lse : {false, true}) {
                  const ForwardKernel spec{
                      {.dtype = dtype, .head_dim_qk = dims.qk, .head_dim_v = dims.v, .mask = mask, .lse = lse},
                      {.pipeline = pipeline,
                       .tile_queries = rows,
                       .output_store = store,
                       .target = std::string(target.id)}};
                  // For the larger head dims one mask will do: time.
                  if (dims.qk > 128 && (mask == Mask::none || !lse)) continue;
                  if (attention_forward::resources_of(spec)) specs.push_back(spec);
                }
  add_modified_kernels(specs);
  return specs;
}

namespace {

// Elements at any distances: all tensors, and K or V alone, where the other passes through registers as well.
void add_scattered_kernels(std::vector<families::KernelSpec>& specs, const targets::Target& target) {
  const auto add = [&](const attention_forward::HeadDims& dims, ForwardKernel spec) {
    spec.dtype = DataType::bf16;
    spec.head_dim_qk = dims.qk;
    spec.head_dim_v = dims.v;
    spec.mask = Mask::causal;
    spec.lse = true;
    spec.tile_queries = attention_forward::tile_queries(target, Pipeline::generic).back();
    spec.target = target.id;
    if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
  };
  for (const attention_forward::HeadDims& dims : attention_forward::all_head_dims())
    add(dims, {{.trans_q = true, .trans_k = true, .trans_v = true, .trans_o = true}, {}});
  add({128, 128}, {{.trans_k = true}, {}});
  add({128, 128}, {{.trans_v = true, .modifiers = all_code_modifiers()}, {.packed_heads = true}});
  add({64, 64}, {{.trans_q = true, .trans_o = true, .output = attention::OutputType::fp32}, {}});
  specs.emplace_back(attention_combine::combine_of({{}, {.target = std::string(target.id)}},
                                                   attention::OutputType::as_products, true));
}

// Head dims that tiles pad: prompts on each pipeline, dense and in pages, and few rows of packed heads.
void add_padded_kernels(std::vector<families::KernelSpec>& specs, const targets::Target& target) {
  const auto add = [&](const attention_forward::HeadDims& dims, ForwardKernel spec) {
    spec.dtype = DataType::bf16;
    spec.head_dim_qk = dims.qk;
    spec.head_dim_v = dims.v;
    if (spec.split_keys == 0) spec.output_store = attention_forward::default_output_store(target);
    spec.target = target.id;
    if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
  };
  const attention_forward::HeadDims all[] = {{40, 40},   {80, 80},   {96, 96},  {112, 112},
                                             {160, 160}, {224, 224}, {72, 120}, {200, 96}};
  for (const attention_forward::HeadDims& dims : all) {
    for (const Pipeline pipeline : attention_forward::all_pipelines) {
      const int rows = attention_forward::tile_queries(target, pipeline).back();
      add(dims, {{.mask = Mask::causal, .lse = true}, {.pipeline = pipeline, .tile_queries = rows}});
      for (const bool whole_tiles : {false, true})
        add(dims,
            {{.lse = true, .paged = true, .whole_tiles = whole_tiles}, {.pipeline = pipeline, .tile_queries = rows}});
    }
    for (const int rows : {32, 128})
      add(dims, {{.mask = Mask::window},
                 {.split_keys = attention_forward::chunk_keys, .packed_heads = true, .tile_queries = rows}});
    add(dims, {{.paged = true, .single_keys = true}, {.packed_heads = true, .tile_queries = 32}});
    add(dims, {{.mask = Mask::causal, .modifiers = all_code_modifiers()}, {}});
  }
}

// Local chunks, and sequences of which some have a diagonal: each pipeline, few rows of packed heads whole and in
// parts, what takes most registers, and the kernels that merge parts.
void add_local_kernels(std::vector<families::KernelSpec>& specs, const targets::Target& target) {
  const auto add = [&](ForwardKernel spec) {
    spec.dtype = DataType::bf16;
    if (spec.split_keys == 0) spec.output_store = attention_forward::default_output_store(target);
    spec.target = target.id;
    if (!attention_forward::resources_of(spec)) return;
    specs.emplace_back(spec);
    if (spec.split_keys != 0 && !spec.merged && spec.chunk_waves == 0)
      specs.emplace_back(attention_combine::combine_of(spec));
  };
  for (const bool flags : {false, true}) {
    const Mask mask = flags ? Mask::causal : Mask::chunked;
    for (const Pipeline pipeline : attention_forward::all_pipelines)
      for (const auto& [paged, whole_tiles] : {std::pair{false, false}, {true, false}, {true, true}})
        add({{.mask = mask, .causal_flags = flags, .lse = true, .paged = paged, .whole_tiles = whole_tiles},
             {.pipeline = pipeline, .tile_queries = attention_forward::tile_queries(target, pipeline).back()}});
    for (const int waves : {0, attention_forward::shared_waves({128, 128})})
      for (const bool merged : {false, true})
        add({{.mask = mask, .causal_flags = flags, .paged = true},
             {.split_keys = attention_forward::chunk_keys,
              .merged = merged,
              .packed_heads = true,
              .chunk_waves = waves,
              .tile_queries = attention_forward::shared_tile_queries}});
    add({{.mask = mask, .causal_flags = flags, .lse = true, .modifiers = all_code_modifiers()}, {}});
  }
}

// Q in f32: each pipeline, rows that tiles pad, and few rows of packed heads, whose waves share chunks or do not.
void add_wide_query_kernels(std::vector<families::KernelSpec>& specs, const targets::Target& target) {
  const auto add = [&](ForwardKernel spec) {
    spec.dtype = DataType::bf16;
    spec.query_fp32 = true;
    if (spec.split_keys == 0) spec.output_store = attention_forward::default_output_store(target);
    spec.target = target.id;
    if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
  };
  for (const Pipeline pipeline : attention_forward::all_pipelines)
    for (const attention_forward::HeadDims& dims : {attention_forward::HeadDims{128, 128}, {80, 80}})
      add({{.head_dim_qk = dims.qk, .head_dim_v = dims.v, .mask = Mask::causal, .lse = true},
           {.pipeline = pipeline, .tile_queries = attention_forward::tile_queries(target, pipeline).back()}});
  for (const int waves : {0, attention_forward::shared_waves({128, 128})})
    add({{.paged = true},
         {.split_keys = attention_forward::chunk_keys,
          .packed_heads = true,
          .chunk_waves = waves,
          .tile_queries = attention_forward::shared_tile_queries}});
}

// Bool masks: each pipeline, few rows, pages, a diagonal beside it, what takes most registers; and what looks at them.
void add_mask_kernels(std::vector<families::KernelSpec>& specs, const targets::Target& target) {
  const auto add = [&](ForwardKernel spec) {
    spec.dtype = DataType::bf16;
    spec.bool_mask = true;
    spec.block_lists = !spec.packed_heads;
    if (spec.split_keys == 0) spec.output_store = attention_forward::default_output_store(target);
    spec.target = target.id;
    if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
  };
  for (const Pipeline pipeline : attention_forward::all_pipelines)
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const bool paged : {false, true})
        add({{.mask = mask, .lse = true, .paged = paged, .whole_tiles = paged && pipeline != Pipeline::generic},
             {.pipeline = pipeline, .tile_queries = attention_forward::tile_queries(target, pipeline).back()}});
  add({{.head_dim_qk = 64, .head_dim_v = 64, .modifiers = {Modifier::softcap, Modifier::alibi}}, {}});
  add({{.lse = true}, {.tile_queries = 32}});
  // Few rows, in runs and whole.
  for (const int rows : {32, 64})
    add({{.modifiers = {Modifier::alibi}},
         {.split_keys = attention_forward::chunk_keys, .packed_heads = true, .tile_queries = rows}});
  add({{.mask = Mask::window, .modifiers = {Modifier::softcap, Modifier::alibi}},
       {.split_keys = attention_forward::chunk_keys, .packed_heads = true, .tile_queries = 128}});
  add({{.head_dim_qk = 64, .head_dim_v = 64, .mask = Mask::causal, .lse = true},
       {.packed_heads = true, .tile_queries = 64}});
  // And by waves that share each chunk.
  for (const bool split : {false, true})
    add({{.mask = Mask::window, .lse = !split, .modifiers = {Modifier::softcap, Modifier::alibi}},
         {.split_keys = split ? attention_forward::chunk_keys : 0,
          .packed_heads = true,
          .chunk_waves = attention_forward::shared_waves({128, 128}),
          .tile_queries = attention_forward::shared_tile_queries}});
  specs.emplace_back(attention_mask_lists::mask_of({{}, {.target = std::string(target.id)}}));
}

// A bias by tile: each pipeline, few rows, in f32, what takes most registers; and what looks at biases.
void add_kernels_of_bias_by_tile(std::vector<families::KernelSpec>& specs, const targets::Target& target) {
  const auto add = [&](ForwardKernel spec) {
    spec.dtype = DataType::bf16;
    spec.block_lists = spec.bias_by_tile = true;
    spec.modifiers.add(Modifier::bias);
    spec.output_store = attention_forward::default_output_store(target);
    spec.target = target.id;
    if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
  };
  for (const Pipeline pipeline : attention_forward::all_pipelines)
    for (const Mask mask : {Mask::none, Mask::causal})
      add({{.mask = mask, .lse = true},
           {.pipeline = pipeline, .tile_queries = attention_forward::tile_queries(target, pipeline).back()}});
  const int rows = attention_forward::tile_queries(target, Pipeline::generic).back();
  add({{.mask = Mask::window, .lse = true, .modifiers = {Modifier::softcap, Modifier::alibi}}, {.tile_queries = rows}});
  add({{.lse = true, .bias_fp32 = true}, {.tile_queries = rows}});
  add({{.head_dim_qk = 64, .head_dim_v = 64, .lse = true}, {.tile_queries = 64}});
  for (const DataType elements : {DataType::bf16, DataType::fp16, DataType::fp32})
    specs.emplace_back(attention_mask_lists::MaskListsKernel{.elements = elements, .target = std::string(target.id)});
}

// Integers: every head dim as prompts have it, few rows of packed heads, and what takes most registers.
void add_integer_kernels(std::vector<families::KernelSpec>& specs, const targets::Target& target) {
  const auto add = [&](ForwardKernel spec, int rows) {
    spec.tile_queries = rows;
    spec.target = target.id;
    if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
  };
  const int rows = attention_forward::tile_queries(target, Pipeline::generic).back();
  for (const attention_forward::HeadDims& dims : attention_forward::all_head_dims())
    add({{.dtype = DataType::bf16,
          .head_dim_qk = dims.qk,
          .head_dim_v = dims.v,
          .mask = Mask::causal,
          .integers = true,
          .lse = true},
         {}},
        rows);
  add({{.dtype = DataType::fp16, .mask = Mask::causal, .integers = true, .token_scales = true},
       {.split_keys = attention_forward::chunk_keys, .packed_heads = true}},
      32);
  add({{.dtype = DataType::fp16,
        .integers = true,
        .half_scores = true,
        .trans_q = true,
        .trans_k = true,
        .trans_v = true,
        .trans_o = true},
       {}},
      rows);
  add({{.dtype = DataType::bf16,
        .mask = Mask::window,
        .integers = true,
        .token_scales = true,
        .lse = true,
        .modifiers = all_code_modifiers()},
       {}},
      rows);
}

// Two kernels that share a call: the one for long sequences with all that takes registers, the one for short ones as
// decode has it.
void add_kernels_of_mixes(std::vector<families::KernelSpec>& specs, const targets::Target& target, DataType dtype,
                          const attention_forward::HeadDims& dims) {
  if (dims.qk > 128) return;  // time
  for (const Pipeline pipeline : attention_forward::all_pipelines)
    for (const bool whole_tiles : {false, true}) {
      const ForwardKernel many{{.dtype = dtype,
                                .head_dim_qk = dims.qk,
                                .head_dim_v = dims.v,
                                .mask = Mask::window,
                                .lse = true,
                                .modifiers = all_code_modifiers(),
                                .paged = true,
                                .whole_tiles = whole_tiles,
                                .rows = attention_forward::QueriesOf::many},
                               {.pipeline = pipeline,
                                .tile_queries = attention_forward::tile_queries(target, pipeline).back(),
                                .output_store = attention_forward::default_output_store(target),
                                .target = std::string(target.id)}};
      if (attention_forward::resources_of(many)) specs.emplace_back(many);
    }
  if (dims != attention_forward::HeadDims{128, 128}) return;
  const ForwardKernel few{
      {.dtype = dtype, .mask = Mask::causal, .paged = true, .rows = attention_forward::QueriesOf::few},
      {.split_keys = attention_forward::chunk_keys,
       .packed_heads = true,
       .tile_queries = 32,
       .target = std::string(target.id)}};
  specs.emplace_back(few);
  specs.emplace_back(attention_combine::combine_of(few));
  ForwardKernel shared = few;
  shared.chunk_waves = attention_forward::shared_waves(dims);
  if (attention_forward::resources_of(shared)) specs.emplace_back(shared);
}

}  // namespace

// Waves that share a chunk: whole and split; keys dense, in pages, and looked up one by one; all that scores pass through.
static void add_kernels_of_shared_chunks(std::vector<families::KernelSpec>& specs, const targets::Target& target,
                                         DataType dtype, const attention::HeadDims& dims) {
  struct Words {
    bool modified, paged, single_keys, first_keys;
  };
  for (const Words& words :
       {Words{false, false, false, false}, Words{true, false, false, false}, Words{false, true, false, false},
        Words{false, true, true, false}, Words{false, true, false, true}})
    for (const int split : {0, attention_forward::chunk_keys}) {
      const ForwardKernel spec{{.dtype = dtype,
                                .head_dim_qk = dims.qk,
                                .head_dim_v = dims.v,
                                .mask = words.modified ? Mask::window : Mask::causal,
                                .lse = split == 0,
                                .modifiers = words.modified ? all_code_modifiers() : Modifiers{},
                                .paged = words.paged,
                                .single_keys = words.single_keys,
                                .first_keys = words.first_keys},
                               {.split_keys = split,
                                .packed_heads = true,
                                .chunk_waves = attention_forward::shared_waves(dims),
                                .tile_queries = attention_forward::shared_tile_queries,
                                .target = std::string(target.id)}};
      if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
    }
  if (dims != attention::HeadDims{64, 64}) return;
  // Sliding layers of gpt-oss: a window in pages needs the most scalar registers where parts are merged in one launch.
  const ForwardKernel sliding{
      {.dtype = dtype, .head_dim_qk = dims.qk, .head_dim_v = dims.v, .mask = Mask::window, .paged = true},
      {.split_keys = attention_forward::chunk_keys,
       .merged = true,
       .packed_heads = true,
       .chunk_waves = attention_forward::shared_waves(dims),
       .tile_queries = attention_forward::shared_tile_queries,
       .target = std::string(target.id)}};
  if (attention_forward::resources_of(sliding)) specs.emplace_back(sliding);
}

// Keys that lists name, by number through a table, which looks up most, and by slots of rows.
void add_kernels_of_key_lists(std::vector<families::KernelSpec>& specs, const targets::Target& target, DataType dtype,
                              const attention_forward::HeadDims& dims) {
  for (const int tile : attention_forward::tile_queries(target, Pipeline::generic))
    for (const int split : {0, attention::list_chunk_keys})
      for (const bool slots : {false, true}) {
        if (slots && split == 0) continue;  // time
        ForwardKernel spec{
            {.dtype = dtype,
             .head_dim_qk = dims.qk,
             .head_dim_v = dims.v,
             .lse = split == 0,
             .paged = !slots,
             .listed = true,
             .slots = slots},
            {.split_keys = split, .packed_heads = true, .tile_queries = tile, .target = std::string(target.id)}};
        if (!slots) spec.modifiers.add(Modifier::softcap);
        if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
      }
}

// Caches of 8 bits, which pass through registers where 16 bits come by DMA: each pipeline with what takes most
// registers, and every way of looking keys up.
static void add_cached_kernels(std::vector<families::KernelSpec>& specs, const targets::Target& target,
                               attention_forward::CacheType cache) {
  const auto add = [&](const attention_forward::HeadDims& dims, Pipeline pipeline, int rows, ForwardKernel spec) {
    const bool fewer = cache == attention_forward::CacheType::e5m2 || cache == attention_forward::CacheType::e5m2_fnuz;
    spec.dtype = fewer ? DataType::fp16 : DataType::bf16;
    spec.cache = cache;
    spec.head_dim_qk = dims.qk;
    spec.head_dim_v = dims.v;
    spec.pipeline = pipeline;
    spec.tile_queries = rows;
    spec.output_store = attention_forward::default_output_store(target);
    spec.target = target.id;
    if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
  };
  const attention_forward::HeadDims dims = {128, 128};
  for (const Pipeline pipeline : attention_forward::all_pipelines) {
    const int rows = attention_forward::tile_queries(target, pipeline).back();
    for (const attention_forward::HeadDims& each : attention_forward::all_head_dims())
      add(each, pipeline, rows, {{.mask = Mask::causal, .lse = true}, {}});
    add(dims, pipeline, rows, {{.mask = Mask::window, .lse = true, .modifiers = all_code_modifiers()}, {}});
    if (pipeline != Pipeline::generic)
      for (const bool whole_tiles : {true, false})
        add(dims, pipeline, rows, {{.mask = Mask::causal, .lse = true, .paged = true, .whole_tiles = whole_tiles}, {}});
    add(dims, pipeline, rows, {{.mask = Mask::causal, .lse = true, .first_keys = true}, {}});
    add(dims, pipeline, rows, {{.mask = Mask::causal, .lse = true, .block_lists = true}, {}});
  }
  for (const Pipeline pipeline : attention_forward::all_pipelines) {
    const int rows = attention_forward::tile_queries(target, pipeline).back();
    for (const attention_forward::HeadDims& each : attention_forward::all_head_dims())
      add(each, pipeline, rows, {{.mask = Mask::causal, .token_scales = true, .lse = true}, {}});
    if (pipeline == Pipeline::generic) continue;
    add(dims, pipeline, rows,
        {{.mask = Mask::window, .token_scales = true, .lse = true, .modifiers = all_code_modifiers()}, {}});
    if (pipeline == Pipeline::dualwave) {
      attention_forward::Modifiers modifiers;
      modifiers.add(Modifier::softcap);
      modifiers.add(Modifier::alibi);
      add(dims, pipeline, rows,
          {{.mask = Mask::causal, .token_scales = true, .lse = true, .modifiers = modifiers}, {}});
      add(dims, pipeline, rows, {{.mask = Mask::window, .token_scales = true, .lse = true}, {}});
    }
    add(dims, pipeline, rows, {{.mask = Mask::causal, .token_scales = true, .lse = true, .first_keys = true}, {}});
    add(dims, pipeline, rows,
        {{.mask = Mask::causal, .token_scales = true, .lse = true, .paged = true, .whole_tiles = true}, {}});
  }
  constexpr int rows_of_decode = 32;
  const ForwardKernel decode = {{}, {.split_keys = attention_forward::chunk_keys, .packed_heads = true}};
  for (const attention_forward::HeadDims& each : attention_forward::all_head_dims())
    add(each, Pipeline::generic, rows_of_decode, decode);
  for (const bool single_keys : {false, true}) {
    ForwardKernel paged = decode;
    paged.paged = true;
    paged.single_keys = single_keys;
    add(dims, Pipeline::generic, rows_of_decode, paged);
    paged.token_scales = true;
    add(dims, Pipeline::generic, rows_of_decode, paged);
    paged.token_scales = false;
  }
  // Nowhere else are registers as short in a wave that passes tiles through them.
  add({64, 64}, Pipeline::generic, rows_of_decode,
      {{.mask = Mask::chunked, .token_scales = true, .paged = true}, {.packed_heads = true}});
  for (const bool slots : {false, true})
    add(dims, Pipeline::generic, rows_of_decode,
        {{.paged = !slots, .listed = true, .slots = slots},
         {.split_keys = attention_forward::list_chunk_keys, .packed_heads = true}});
}

// Q, K and V of 8 bits: every head dim and mask on each pipeline, pages, few rows of packed heads, O in fp32.
static void add_byte_query_kernels(std::vector<families::KernelSpec>& specs, const targets::Target& target) {
  const auto add = [&](const attention_forward::HeadDims& dims, Pipeline pipeline, ForwardKernel spec) {
    spec.dtype = dims.qk == dims.v ? DataType::bf16 : DataType::fp16;
    spec.narrow_queries = true;
    spec.head_dim_qk = dims.qk;
    spec.head_dim_v = dims.v;
    spec.pipeline = pipeline;
    spec.tile_queries = spec.packed_heads ? 32 : attention_forward::tile_queries(target, pipeline).back();
    spec.output_store = spec.output == attention::OutputType::fp32 ? attention_forward::OutputStore::scalar
                                                                   : attention_forward::default_output_store(target);
    spec.target = target.id;
    if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
  };
  const attention_forward::HeadDims dims = {128, 128};
  for (const Pipeline pipeline : attention_forward::all_pipelines) {
    for (const attention_forward::HeadDims& each : attention_forward::all_head_dims())
      add(each, pipeline, {{.mask = Mask::causal, .lse = true}, {}});
    for (const Mask mask : {Mask::none, Mask::window}) add(dims, pipeline, {{.mask = mask, .lse = true}, {}});
    add(dims, pipeline,
        {{.mask = Mask::causal, .lse = true, .paged = true, .whole_tiles = pipeline != Pipeline::generic}, {}});
    add(dims, pipeline, {{.mask = Mask::causal, .output = attention::OutputType::fp32}, {}});
  }
  add(dims, Pipeline::dualwave, {{.mask = Mask::causal, .lse = true}, {.paired_tiles = true}});
  add(dims, Pipeline::generic, {{.lse = true}, {.packed_heads = true}});
  add(dims, Pipeline::generic, {{.lse = true, .paged = true, .single_keys = true}, {.packed_heads = true}});
}

std::vector<families::KernelSpec> split_kernel_specs() {
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::complete_targets())
    for (const DataType dtype : {DataType::fp16, DataType::bf16})
      for (const attention_forward::HeadDims& dims : attention_forward::all_head_dims()) {
        for (const Pipeline pipeline : attention_forward::all_pipelines)
          for (const Mask mask : {Mask::none, Mask::causal, Mask::window}) {
            if (dims.qk > 128 && mask != Mask::causal) continue;  // time
            const bool modified = mask == Mask::window;
            const ForwardKernel spec{{.dtype = dtype,
                                      .head_dim_qk = dims.qk,
                                      .head_dim_v = dims.v,
                                      .mask = mask,
                                      .modifiers = modified ? all_code_modifiers() : Modifiers{}},
                                     {.split_keys = attention_forward::chunk_keys,
                                      .pipeline = pipeline,
                                      .tile_queries = attention_forward::default_tile_queries(
                                          target, pipeline, attention_forward::QueryRows::more, dims),
                                      .target = std::string(target.id)}};
            if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
          }
        // Keys in pages, of which a wave looks up tiles or granules.
        for (const Pipeline pipeline : {Pipeline::dualwave, Pipeline::interleaved})
          for (const auto& [split, whole_tiles] : {std::pair{0, true},
                                                   {attention_forward::chunk_keys, true},
                                                   {0, false},
                                                   {attention_forward::chunk_keys, false}})
            for (const Mask mask : {Mask::causal, Mask::window}) {
              const bool modified = mask == Mask::window;
              const ForwardKernel spec{{.dtype = dtype,
                                        .head_dim_qk = dims.qk,
                                        .head_dim_v = dims.v,
                                        .mask = mask,
                                        .lse = split == 0,
                                        .modifiers = modified ? all_code_modifiers() : Modifiers{},
                                        .paged = true,
                                        .whole_tiles = whole_tiles},
                                       {.split_keys = split,
                                        .pipeline = pipeline,
                                        .tile_queries = attention_forward::tile_queries(target, pipeline).back(),
                                        .target = std::string(target.id)}};
              if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
            }
        // Two query tiles a workgroup: plain, with all that a score may pass through, with left padding.
        for (const bool modified : {false, true})
          for (const bool first_keys : {false, true}) {
            const ForwardKernel spec{{.dtype = dtype,
                                      .head_dim_qk = dims.qk,
                                      .head_dim_v = dims.v,
                                      .mask = Mask::causal,
                                      .lse = true,
                                      .modifiers = modified ? all_code_modifiers() : Modifiers{},
                                      .first_keys = first_keys},
                                     {.paired_tiles = true,
                                      .pipeline = Pipeline::dualwave,
                                      .tile_queries = 256,
                                      .output_store = attention_forward::default_output_store(target),
                                      .target = std::string(target.id)}};
            if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
          }
        // Left padding, and keys that are looked up granule by granule or one by one.
        if (dims.qk == dims.v && dims.qk <= 128 && dims.qk % 64 == 0) {
          struct Lookup {
            bool paged, single_keys, first_keys, vectorised;
          };
          for (const Pipeline pipeline : attention_forward::all_pipelines)
            for (const Lookup& keys : {Lookup{false, false, true, false}, Lookup{true, false, false, false},
                                       Lookup{true, true, false, false}, Lookup{true, false, true, false},
                                       Lookup{true, false, false, true}}) {
              const bool packed = keys.paged && !keys.first_keys;  // as decode has them
              const ForwardKernel spec{
                  {.dtype = dtype,
                   .head_dim_qk = dims.qk,
                   .head_dim_v = dims.v,
                   .mask = Mask::causal,
                   .lse = true,
                   .paged = keys.paged,
                   .single_keys = keys.single_keys,
                   .vectorised = keys.vectorised,
                   .first_keys = keys.first_keys},
                  {.packed_heads = packed,
                   .pipeline = pipeline,
                   .tile_queries = packed ? 32 : attention_forward::tile_queries(target, pipeline).back(),
                   .target = std::string(target.id)}};
              if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
            }
        }
        // Packed heads, whole and split, in their smallest tile and in their largest.
        for (const int tile : attention_forward::tile_queries(target, Pipeline::generic))
          for (const int split : {0, attention_forward::chunk_keys}) {
            const bool modified = tile != 32;
            const ForwardKernel spec{
                {.dtype = dtype,
                 .head_dim_qk = dims.qk,
                 .head_dim_v = dims.v,
                 .mask = modified ? Mask::window : Mask::causal,
                 .lse = split == 0,
                 .modifiers = modified ? all_code_modifiers() : Modifiers{}},
                {.split_keys = split, .packed_heads = true, .tile_queries = tile, .target = std::string(target.id)}};
            if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
          }
        // And split, with parts that the last workgroup to arrive merges.
        for (const int tile : attention_forward::tile_queries(target, Pipeline::generic))
          for (const bool paged : {false, true}) {
            const bool modified = tile != 32;
            Modifiers of_pages;
            of_pages.add(Modifier::softcap);
            const ForwardKernel spec{{.dtype = dtype,
                                      .head_dim_qk = dims.qk,
                                      .head_dim_v = dims.v,
                                      .mask = modified ? Mask::window : Mask::causal,
                                      .modifiers = !modified ? Modifiers{}
                                                   : paged   ? of_pages
                                                             : all_code_modifiers(),
                                      .paged = paged},
                                     {.split_keys = attention_forward::chunk_keys,
                                      .merged = true,
                                      .packed_heads = true,
                                      .tile_queries = tile,
                                      .target = std::string(target.id)}};
            if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
            ForwardKernel shared = spec;
            shared.chunk_waves = attention_forward::shared_waves(dims);
            if (attention_forward::resources_of(shared)) specs.emplace_back(shared);
          }
        // Lists of key blocks, in workgroups as small as blocks and as large as there are.
        for (const Pipeline pipeline : attention_forward::all_pipelines) {
          const ForwardKernel spec{{.dtype = dtype,
                                    .head_dim_qk = dims.qk,
                                    .head_dim_v = dims.v,
                                    .mask = Mask::causal,
                                    .lse = true,
                                    .block_lists = true},
                                   {.pipeline = pipeline,
                                    .tile_queries = pipeline == Pipeline::generic && dims.qk <= 128
                                                        ? 64
                                                        : attention_forward::tile_queries(target, pipeline).back(),
                                    .output_store = attention_forward::default_output_store(target),
                                    .target = std::string(target.id)}};
          if (attention_forward::resources_of(spec)) specs.emplace_back(spec);
        }
        add_kernels_of_key_lists(specs, target, dtype, dims);
        if (dims.qk == dims.v)
          specs.emplace_back(attention_combine::combine_of(
              {{.dtype = dtype, .head_dim_v = dims.v}, {.target = std::string(target.id)}}));
        if (dims.qk == dims.v)
          specs.emplace_back(attention_combine::combine_of(
              {{.dtype = dtype, .head_dim_v = dims.v, .listed = true}, {.target = std::string(target.id)}}));
        add_kernels_of_shared_chunks(specs, target, dtype, dims);
        add_kernels_of_mixes(specs, target, dtype, dims);
      }
  for (const targets::Target& target : targets::complete_targets()) {
    add_scattered_kernels(specs, target);
    add_integer_kernels(specs, target);
    add_local_kernels(specs, target);
    add_wide_query_kernels(specs, target);
    add_mask_kernels(specs, target);
    add_kernels_of_bias_by_tile(specs, target);
    add_padded_kernels(specs, target);
  }
  for (const targets::Target& target : targets::complete_targets()) {
    for (const auto& [cache, name] : attention_forward::cache_types)
      if (attention_forward::reads(target, attention_forward::type_in(cache, DataType::bf16)))
        add_cached_kernels(specs, target, cache);
    add_byte_query_kernels(specs, target);
    // Scales are the same whatever the format.
    specs.emplace_back(attention_combine::combine_of(
        {{.dtype = DataType::bf16, .cache = attention_forward::CacheType::e4m3}, {.target = std::string(target.id)}}));
  }
  for (const targets::Target& target : targets::complete_targets())
    specs.emplace_back(attention_block_lists::lists_of({{}, {.target = std::string(target.id)}}));
  add_other_outputs(specs);
  return specs;
}

}  // namespace wavejit::tests
