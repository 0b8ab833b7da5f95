// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/facts.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <format>

#include "support/kept.h"
#include "targets/targets.h"
#include "templates/attention_backward/kernel/spec.h"
#include "templates/attention_forward/kernel/block_lists/spec.h"
#include "templates/attention_forward/kernel/combine/spec.h"
#include "templates/attention_forward/kernel/merged_rows_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_latent/kernel/spec.h"
#include "templates/softmax_lse/kernel/spec.h"
#include "templates/sparse_indexer/kernel/spec.h"

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
  for (const targets::Target& target : targets::all_targets())
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

// O in f32: one kernel of each pipeline, and the combine kernel.
void add_fp32_outputs(std::vector<families::KernelSpec>& specs) {
  for (const targets::Target& target : targets::all_targets()) {
    for (const Pipeline pipeline : attention_forward::all_pipelines) {
      const ForwardKernel spec{{.dtype = DataType::bf16, .mask = Mask::causal, .lse = true, .output_fp32 = true},
                               {.pipeline = pipeline,
                                .tile_queries = attention_forward::tile_queries(target, pipeline).back(),
                                .target = std::string(target.id)}};
      if (!attention_forward::resources_of(spec)) continue;
      specs.emplace_back(spec);
    }
    specs.emplace_back(attention_combine::combine_of({{}, {.target = std::string(target.id)}}, true));
  }
}

}  // namespace

std::vector<ForwardKernel> all_kernel_specs() {
  std::vector<ForwardKernel> specs;
  for (const targets::Target& target : targets::all_targets())
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
                  // Of the larger head dims one mask will do: time.
                  if (dims.qk > 128 && (mask == Mask::none || !lse)) continue;
                  if (attention_forward::resources_of(spec)) specs.push_back(spec);
                }
  add_modified_kernels(specs);
  return specs;
}

namespace {

// Two kernels that share a call: the one for long sequences with all that takes registers, the one for short ones as
// decode has it.
void add_kernels_of_mixes(std::vector<families::KernelSpec>& specs, const targets::Target& target, DataType dtype,
                          const attention_forward::HeadDims& dims) {
  if (dims.qk > 128) return;  // time
  for (const Pipeline pipeline : attention_forward::all_pipelines) {
    const ForwardKernel many{{.dtype = dtype,
                              .head_dim_qk = dims.qk,
                              .head_dim_v = dims.v,
                              .mask = Mask::window,
                              .lse = true,
                              .modifiers = all_code_modifiers(),
                              .paged = true,
                              .whole_tiles = pipeline != Pipeline::generic,
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
  specs.emplace_back(attention_combine::combine_of(few, false));
}

}  // namespace

// Keys that lists name, by number through a table, which looks up most, and by slots of rows.
static void add_kernels_of_key_lists(std::vector<families::KernelSpec>& specs, const targets::Target& target,
                                     DataType dtype, const attention_forward::HeadDims& dims) {
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

std::vector<families::KernelSpec> split_kernel_specs() {
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::all_targets())
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
        // Keys in pages of whole tiles.
        for (const Pipeline pipeline : {Pipeline::dualwave, Pipeline::interleaved})
          for (const int split : {0, attention_forward::chunk_keys})
            for (const Mask mask : {Mask::causal, Mask::window}) {
              const bool modified = mask == Mask::window;
              const ForwardKernel spec{{.dtype = dtype,
                                        .head_dim_qk = dims.qk,
                                        .head_dim_v = dims.v,
                                        .mask = mask,
                                        .lse = split == 0,
                                        .modifiers = modified ? all_code_modifiers() : Modifiers{},
                                        .paged = true,
                                        .whole_tiles = true},
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
              {{.dtype = dtype, .head_dim_v = dims.v}, {.target = std::string(target.id)}}, false));
        if (dims.qk == dims.v)
          specs.emplace_back(attention_combine::combine_of(
              {{.dtype = dtype, .head_dim_v = dims.v, .listed = true}, {.target = std::string(target.id)}}, false));
        add_kernels_of_mixes(specs, target, dtype, dims);
      }
  for (const targets::Target& target : targets::all_targets())
    specs.emplace_back(attention_block_lists::lists_of({{}, {.target = std::string(target.id)}}));
  add_fp32_outputs(specs);
  return specs;
}

std::vector<families::KernelSpec> backward_kernel_specs() {
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::all_targets())
    for (const auto& [dtype, dtype_name] : attention::operand_types)
      for (const attention::HeadDims& dims : attention_backward::all_head_dims()) {
        attention_backward::KernelWords words;
        words.dtype = dtype;
        words.head_dim_qk = dims.qk;
        words.head_dim_v = dims.v;
        words.target = target.id;
        // Of calls with many workgroups, or with few: one block.
        const auto add = [&](attention_backward::Runs runs, bool many = true) {
          attention_backward::QueryKernel queries = {words};
          queries.blocks = many ? default_query_blocks(queries, target) : 1;
          if (runs == attention_backward::Runs::one && !refusal_of(queries)) specs.emplace_back(queries);
          attention_backward::KeyKernel keys = {words};
          keys.blocks = many ? default_key_blocks(keys, target) : 1;
          keys.runs = runs;
          if (!refusal_of(keys)) specs.emplace_back(keys);
        };
        // Of wide heads the plainest, and what takes the most registers.
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
  for (const targets::Target& target : targets::all_targets()) {
    const attention_backward::SinkKernel sinks = {.target = std::string(target.id)};
    if (!refusal_of(sinks)) specs.emplace_back(sinks);
  }
  return specs;
}

std::vector<families::KernelSpec> indexer_kernel_specs() {
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::all_targets()) {
    for (const auto& [type, type_name] : attention::operand_types)
      for (const auto& [blocks, heads] : sparse_indexer::head_names)
        for (const bool cut : {false, true})
          for (const bool paged : {false, true}) {
            const sparse_indexer::ScoresKernel scores = {
                .type = type, .blocks = blocks, .cut = cut, .paged = paged, .target = std::string(target.id)};
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
  for (const targets::Target& target : targets::all_targets())
    for (const auto& [dtype, dtype_name] : attention::operand_types) {
      latent::WalkKernel spec;
      spec.dtype = dtype;
      spec.target = target.id;
      const auto add = [&] {
        for (const bool parts : {false, true}) {
          spec.parts = parts;
          if (!refusal_of(spec)) specs.emplace_back(spec);
        }
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
      for (const int head_dim : {256, 512})
        for (const bool listed : {false, true}) {
          const latent::CombineKernel combine = {.dtype = dtype,
                                                 .head_dim = head_dim,
                                                 .few = listed == (head_dim == 256),
                                                 .listed = listed,
                                                 .target = std::string(target.id)};
          if (!refusal_of(spec) && !refusal_of(combine)) specs.emplace_back(combine);
        }
    }
  return specs;
}

std::vector<families::KernelSpec> softmax_kernel_specs() {
  std::vector<families::KernelSpec> specs;
  for (const targets::Target& target : targets::all_targets())
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

namespace {

// One service for the process, as the runtime has.
struct Compiler {
  const struct wavejit_codegen_table* table = wavejit_codegen_table(WAVEJIT_CODEGEN_ABI);
  wavejit_codegen_service* service = nullptr;
  std::array<char, 256> error{};

  Compiler() {
    wavejit_codegen_options options{};
    options.size = sizeof options;
    service = table->create(&options, error.data(), error.size());
  }
  ~Compiler() {
    if (service) table->destroy(service);
  }
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;
};

// A kernel that the library in its present form compiled: its file's size and time stand for it.
std::string key_of(const families::KernelSpec& spec) {
  static const std::string library = [] {
    Dl_info where{};
    struct stat file{};
    if (dladdr(reinterpret_cast<const void*>(&wavejit_codegen_table), &where) == 0 || stat(where.dli_fname, &file) != 0)
      return std::string("unknown");
    return std::format("{} {}.{}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  }();
  return std::format("kernel of codegen {}\n{}", library, spec.text());
}

// Facts, then the code object.
std::vector<std::byte> packed(const CompiledKernel& kernel) {
  if (!kernel.error.empty()) return {};
  const auto* const facts = reinterpret_cast<const std::byte*>(&kernel.facts);
  std::vector<std::byte> bytes(facts, facts + sizeof kernel.facts);
  bytes.insert(bytes.end(), kernel.code_object.begin(), kernel.code_object.end());
  return bytes;
}

}  // namespace

CompiledKernel known_kernel(const families::KernelSpec& spec) {
  CompiledKernel kernel;
  const std::vector<std::byte> bytes = kept(key_of(spec), [&] {
    kernel = compile_kernel(spec);
    return packed(kernel);
  });
  if (!kernel.code_object.empty() || bytes.size() <= sizeof kernel.facts) return kernel;
  std::memcpy(&kernel.facts, bytes.data(), sizeof kernel.facts);
  kernel.code_object.assign(bytes.begin() + sizeof kernel.facts, bytes.end());
  return kernel;
}

std::uint32_t planned_private_bytes(const ForwardKernel& spec) {
  constexpr int of_the_backend = 16;
  const auto resources = attention_forward::resources_of(spec);
  if (!resources) return 0;
  const targets::Target& target = *targets::find_target(spec.target);
  const attention_forward::LdsPlan lds = attention_forward::lds_plan(spec, target);
  const int planned = attention_forward::merged_rows_plan(spec, resources->vgpr_budget, lds).private_bytes;
  return static_cast<std::uint32_t>(planned == 0 ? 0 : planned + of_the_backend);
}

CompiledKernel compile_kernel(const families::KernelSpec& spec) {
  static const Compiler compiler;
  CompiledKernel kernel;
  if (!compiler.service) {
    kernel.error = std::string("no service: ") + compiler.error.data();
    return kernel;
  }
  wavejit_codegen_result result{};
  result.size = sizeof result;
  result.facts.size = sizeof result.facts;
  compiler.table->compile(compiler.service, spec.text().c_str(), &result);
  if (result.status == WAVEJIT_CODEGEN_OK) {
    const auto* bytes = reinterpret_cast<const std::byte*>(result.code_object);
    kernel.code_object.assign(bytes, bytes + result.code_object_bytes);
    kernel.facts = result.facts;
  } else {
    kernel.error = "status " + std::to_string(result.status) + ": " + result.detail;
  }
  compiler.table->release(&result);
  keep(key_of(spec), packed(kernel));
  return kernel;
}

std::string facts_line(const families::KernelSpec& spec) {
  const CompiledKernel kernel = compile_kernel(spec);
  std::string line = spec.text() + ":";
  if (!kernel.error.empty()) return line + " " + kernel.error;
  const wavejit_codegen_facts& facts = kernel.facts;
  const auto field = [&](const char* name, std::uint32_t value) {
    line += ' ';
    line += name;
    line += '=' + std::to_string(value);
  };
  field("instructions", facts.instructions);
  field("matrix", facts.matrix_instructions);
  field("exp", facts.exp_instructions);
  field("lds_dma", facts.lds_dma_instructions);
  field("barriers", facts.barriers);
  field("lds", facts.lds_bytes);
  field("vgprs", facts.vgprs);
  field("agprs", facts.agprs);
  field("spills", facts.vgpr_spills + facts.sgpr_spills);
  field("private", facts.private_bytes);
  field("kernarg", facts.kernarg_bytes);
  field("threads", facts.threads);
  return line;
}

}  // namespace wavejit::tests
