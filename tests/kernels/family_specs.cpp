// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which kernels of the families beside attention_forward have golden facts.
#include "kernels/facts.h"
#include "targets/targets.h"
#include "templates/attention_backward/kernel/spec.h"
#include "templates/attention_latent/kernel/spec.h"
#include "templates/cache_append/kernel/spec.h"
#include "templates/softmax_lse/kernel/spec.h"
#include "templates/sparse_indexer/kernel/spec.h"

namespace wavejit::tests {

using attention_forward::Modifier;
using attention_forward::Modifiers;

std::vector<families::KernelSpec> backward_kernel_specs() {
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::complete_targets())
    for (const auto& [dtype, dtype_name] : attention::operand_types)
      for (const attention::HeadDims& dims : attention_backward::all_head_dims()) {
        attention_backward::KernelWords words;
        words.dtype = dtype;
        words.head_dim_qk = dims.qk;
        words.head_dim_v = dims.v;
        words.target = target.id;
        // Calls with many workgroups, or with few: one block.
        const auto add = [&](attention_backward::Runs runs, bool many = true) {
          attention_backward::QueryKernel queries = {words};
          queries.blocks = many ? default_query_blocks(queries, target) : 1;
          if (runs == attention_backward::Runs::one && !refusal_of(queries)) specs.emplace_back(queries);
          attention_backward::KeyKernel keys = {words};
          keys.blocks = many ? default_key_blocks(keys, target) : 1;
          keys.runs = runs;
          if (!refusal_of(keys)) specs.emplace_back(keys);
        };
        // For wide heads the plainest, and what takes the most registers.
        if (dims.qk > 128) {
          words.mask = attention_backward::Mask::causal;
          add(attention_backward::Runs::one);
          attention_backward::QueryKernel queries = {words};
          if (default_query_blocks(queries, target) > 1) specs.emplace_back(queries);
          words.mask = attention_backward::Mask::window;
          words.modifiers = {Modifier::softcap, Modifier::bias, Modifier::alibi};
          words.bias_fp32 = words.gradients_fp32 = true;
          specs.emplace_back(attention_backward::QueryKernel{words});
          add(attention_backward::Runs::several);
          specs.emplace_back(attention_backward::BiasKernel{words});
          continue;
        }
        for (const auto& [mask, mask_name] : attention_backward::masks) {
          words.mask = mask;
          add(attention_backward::Runs::one);
          attention_backward::QueryKernel queries = {words};
          if (default_query_blocks(queries, target) > 1) add(attention_backward::Runs::one, false);
          attention_backward::KeyKernel keys = {words};
          keys.shared = true;
          if (!refusal_of(keys)) specs.emplace_back(keys);
        }
        // What takes the most registers, with as many blocks as there can be and with one.
        words.gradients_fp32 = true;
        attention_backward::QueryKernel of_wide_output = {words};
        of_wide_output.output_fp32 = true;
        of_wide_output.blocks = default_query_blocks(of_wide_output, target);
        if (!refusal_of(of_wide_output)) specs.emplace_back(of_wide_output);
        for (const Modifiers modifiers : {Modifiers{Modifier::alibi}, Modifiers{Modifier::softcap, Modifier::alibi}}) {
          words.modifiers = modifiers;
          add(attention_backward::Runs::one);
          add(attention_backward::Runs::several);
          attention_backward::KeyKernel keys = {words};
          keys.shared = true;
          keys.runs = attention_backward::Runs::several;
          if (!refusal_of(keys)) specs.emplace_back(keys);
        }
        words.modifiers = {Modifier::softcap, Modifier::bias, Modifier::alibi};
        for (const bool fp32 : {false, true}) {
          words.bias_fp32 = words.gradients_fp32 = fp32;
          add(attention_backward::Runs::one);
          add(attention_backward::Runs::several);
          const attention_backward::BiasKernel bias = {words};
          if (!refusal_of(bias)) specs.emplace_back(bias);
        }
      }
  for (const targets::Target& target : targets::complete_targets()) {
    const attention_backward::SinkKernel sinks = {.target = std::string(target.id)};
    if (!refusal_of(sinks)) specs.emplace_back(sinks);
  }
  return specs;
}

std::vector<families::KernelSpec> indexer_kernel_specs() {
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::complete_targets()) {
    for (const auto& [type, type_name] : sparse_indexer::key_types)
      for (const auto& [blocks, heads] : sparse_indexer::head_names)
        for (const bool cut : {false, true})
          for (const bool paged : {false, true})
            for (const bool shared : {false, true}) {
              const sparse_indexer::ScoresKernel scores = {.type = type,
                                                           .blocks = blocks,
                                                           .cut = cut,
                                                           .paged = paged,
                                                           .shared = shared,
                                                           .target = std::string(target.id)};
              if (!refusal_of(scores)) specs.emplace_back(scores);
            }
    const sparse_indexer::SelectKernel select = {.target = std::string(target.id)};
    if (!refusal_of(select)) specs.emplace_back(select);
  }
  return specs;
}

std::uint32_t planned_private_bytes(const attention_latent::WalkKernel& spec) {
  // O of a wave's 32 rows and its columns, m and l; and what the backend keeps for itself.
  constexpr int statistics = 16;
  constexpr int of_backend = 16;
  if (spec.parts) return 0;
  return static_cast<std::uint32_t>((dims_of_wave(spec) * attention_latent::wave_rows / 64 * 4) + statistics +
                                    of_backend);
}

std::vector<families::KernelSpec> latent_kernel_specs() {
  namespace latent = attention_latent;
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::complete_targets())
    for (const auto& [dtype, dtype_name] : attention::operand_types) {
      latent::WalkKernel spec;
      spec.dtype = dtype;
      spec.target = target.id;
      const auto add = [&] {
        for (const int launches : {0, 2, 1}) {
          spec.parts = launches != 0;
          spec.merged = launches == 1;
          if (!refusal_of(spec)) specs.emplace_back(spec);
        }
        spec.merged = false;
      };
      for (const auto& [rows, rows_name] : latent::rows_names) {
        spec.rows = rows;
        spec.mask = latent::Mask::causal;
        spec.pages = latent::Pages::dense;
        add();
        // What takes the most registers.
        spec.pages = latent::Pages::keys;
        if (rows != latent::Rows::r128) spec.modifiers.add(attention::Modifier::softcap);
        add();
        spec.modifiers = {};
        spec.pages = rows == latent::Rows::r32 ? latent::Pages::tiles : latent::Pages::granules;
        spec.dims = rows == latent::Rows::r32 ? latent::Dims::d320 : latent::Dims::d512;
        spec.mask = latent::Mask::none;
        add();
        // Lists of keys: by number through a table, which looks up most, and by slots of rows.
        spec.dims = latent::Dims::d576;
        spec.listed = true;
        spec.pages = latent::Pages::granules;
        if (rows != latent::Rows::r128) spec.modifiers.add(attention::Modifier::softcap);
        add();
        spec.modifiers = {};
        spec.pages = latent::Pages::dense;
        spec.slots = true;
        add();
        spec.listed = spec.slots = false;
      }
      // Caches of 8 bits.
      spec.dims = latent::Dims::d576;
      for (const auto& [cache, cache_name] : attention::cache_types) {
        spec.cache = cache;
        const bool fewer = cache != attention::CacheType::e4m3 && cache != attention::CacheType::e4m3_fnuz;
        for (const auto& [rows, rows_name] : latent::rows_names) {
          if (fewer && rows != latent::Rows::r32) continue;
          spec.rows = rows;
          spec.mask = latent::Mask::causal;
          spec.pages = latent::Pages::dense;
          add();
          spec.pages = latent::Pages::keys;
          if (rows != latent::Rows::r128) spec.modifiers.add(attention::Modifier::softcap);
          add();
          spec.mask = latent::Mask::none;
          spec.listed = true;
          spec.pages = latent::Pages::granules;
          add();
          spec.modifiers = {};
          spec.slots = true;
          if (rows == latent::Rows::r64 && cache != attention::CacheType::i8) add();
          spec.listed = spec.slots = false;
          spec.pages = latent::Pages::tiles;
          if (!fewer) add();
        }
      }
      // Rows with scales.
      spec.rows = latent::Rows::r32;
      for (const auto& [scales, scales_name] : latent::row_scales_names)
        for (const auto cache : {attention::CacheType::e4m3, attention::CacheType::e4m3_fnuz}) {
          spec.row_scales = scales;
          spec.dims = latent::dims_of(scales);
          spec.cache = cache;
          for (const latent::Pages pages :
               {latent::Pages::dense, latent::Pages::keys, latent::Pages::tiles, latent::Pages::granules}) {
            spec.pages = pages;
            spec.listed = spec.slots = pages == latent::Pages::granules;
            spec.mask = spec.listed ? latent::Mask::none : latent::Mask::causal;
            add();
          }
          spec.listed = spec.slots = false;
        }
      spec.row_scales = latent::RowScales::none;
      spec.dims = latent::Dims::d576;
      spec.mask = latent::Mask::none;
      spec.cache = attention::CacheType::as_queries;
      for (const int head_dim : {256, 512})
        for (const bool listed : {false, true}) {
          const latent::CombineKernel combine = {.dtype = dtype,
                                                 .head_dim = head_dim,
                                                 .few = listed == (head_dim == 256),
                                                 .listed = listed,
                                                 .scaled = false,
                                                 .target = std::string(target.id)};
          if (refusal_of(combine)) continue;
          specs.emplace_back(combine);
          latent::CombineKernel scaled = combine;
          scaled.scaled = true;
          specs.emplace_back(scaled);
        }
    }
  return specs;
}

std::vector<families::KernelSpec> softmax_kernel_specs() {
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::complete_targets())
    for (const auto& [scores, scores_name] : softmax_lse::data_types)
      for (const auto& [weights, weights_name] : softmax_lse::data_types)
        for (const auto& [rows, rows_name] : softmax_lse::rows_names)
          for (const auto& [access, access_name] : softmax_lse::access_names) {
            const softmax_lse::SoftmaxKernel spec{
                {.scores = scores, .weights = weights, .rows = rows, .access = access}, std::string(target.id)};
            if (!refusal_of(spec)) specs.emplace_back(spec);
          }
  return specs;
}

std::vector<families::KernelSpec> append_kernel_specs() {
  using cache_append::Access;
  using cache_append::Angles;
  using cache_append::DataType;
  using cache_append::Rotary;
  std::vector<families::KernelSpec> specs;
  const auto add = [&](cache_append::AppendKernel spec) {
    for (const DataType type : {DataType::bf16, DataType::fp16}) {
      spec.source = spec.cache = type;
      if (!refusal_of(spec)) specs.emplace_back(spec);
    }
  };
  // Into 8 bits: every type and kind of scales, plain and by elements, turned by a base and by tables.
  const auto add_narrow = [&](const std::string& target) {
    for (const DataType type : {DataType::bf16, DataType::fp16})
      for (const auto& [cache, cache_name] : attention::data_types)
        for (const auto& [scales, scales_name] : cache_append::scale_names)
          for (const Access access : {Access::vectors, Access::elements})
            for (const Angles angles : {Angles::none, Angles::base, Angles::fp32}) {
              const bool turned = angles != Angles::none;
              const cache_append::AppendKernel spec = {{.source = type,
                                                        .cache = cache,
                                                        .source_access = access,
                                                        .key_access = access,
                                                        .value_access = access,
                                                        .rotary = turned ? Rotary::halves : Rotary::none,
                                                        .angles = angles,
                                                        .queries = turned ? Access::vectors : Access::none,
                                                        .scales = scales},
                                                       target};
              // One of those that differ in types alone is turned.
              if (turned && (type == DataType::fp16 || cache == DataType::e5m2 || cache == DataType::e5m2_fnuz))
                continue;
              if (attention::is_narrow(cache) && !refusal_of(spec)) specs.emplace_back(spec);
            }
  };
  for (const targets::Target& target : targets::complete_targets()) {
    const std::string id(target.id);
    add_narrow(id);
    for (const Access source : {Access::vectors, Access::elements})
      for (const Access keys : {Access::vectors, Access::elements})
        for (const Access values : {Access::vectors, Access::elements}) {
          add({{.source_access = source, .key_access = keys, .value_access = values}, id});
          // Turned: with all in vectors, and with all by elements, which takes the most registers.
          if (source != keys || keys != values) continue;
          for (const Rotary rotary : {Rotary::halves, Rotary::interleaved})
            for (const Angles angles : {Angles::base, Angles::fp32, Angles::fp16, Angles::bf16})
              for (const Access queries : {Access::none, Access::vectors, Access::elements})
                add({{.source_access = source,
                      .key_access = keys,
                      .value_access = values,
                      .rotary = rotary,
                      .angles = angles,
                      .queries = queries},
                     id});
        }
  }
  return specs;
}

}  // namespace wavejit::tests
