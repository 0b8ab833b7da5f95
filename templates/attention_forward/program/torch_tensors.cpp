// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/torch_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace wavejit::attention_forward::program::choice {

std::string torch_beginning(std::string_view target, std::string_view more_imports) {
  return fmt::format(
      "import torch, wavejit.torch\n{}\n"
      "wavejit.torch.use(\"sim:{}\")  # CPU tensors, a simulated GPU; on a GPU without this line\n"
      "device = \"cpu\"  # \"cuda\" on a GPU\n",
      more_imports, target);
}

std::string torch_type(std::string_view format) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> types = {{{"bf16", "bfloat16"},
                                                                                   {"fp16", "float16"},
                                                                                   {"e4m3", "float8_e4m3fn"},
                                                                                   {"e4m3_fnuz", "float8_e4m3fnuz"},
                                                                                   {"e5m2", "float8_e5m2"},
                                                                                   {"e5m2_fnuz", "float8_e5m2fnuz"},
                                                                                   {integers, "int8"}}};
  for (const auto& [name, type] : types)
    if (name == format) return std::string(type);
  return std::string(format);
}

std::string torch_zeros(std::string_view name, std::initializer_list<std::int64_t> sizes, std::string_view type) {
  return fmt::format("{} = torch.zeros({}, dtype=torch.{}, device=device)\n", name, fmt::join(sizes, ", "), type);
}

std::string torch_lengths(std::int64_t batch, std::int64_t keys) {
  return fmt::format("lengths = torch.full(({},), {}, dtype=torch.int32, device=device)\n", batch, keys);
}

std::string torch_block_table(std::int64_t batch, std::int64_t columns) {
  return fmt::format("block_table = torch.arange({}, dtype=torch.int32, device=device).reshape({}, {})\n",
                     batch * columns, batch, columns);
}

std::string torch_starts(std::string_view name, std::int64_t batch, std::int64_t length) {
  return fmt::format("{} = torch.arange(0, {}, {}, dtype=torch.int32, device=device)\n", name, batch * length + 1,
                     length);
}

namespace {

std::string scales_of(const AttentionChoice& call, std::string_view tensor, std::int64_t columns) {
  const bool of_queries = tensor == "q";
  const std::int64_t heads = of_queries && call.queries == integers ? call.heads : call.kv_heads;
  const std::string name = fmt::format("{}_scale", tensor);
  const auto ones = [&](const std::string& sizes) {
    return fmt::format("{} = torch.ones({}, dtype=torch.float32, device=device)\n", name, sizes);
  };
  if (call.scales != of_tokens)
    return ones(
        fmt::format("{}, {}", call.scales.starts_with('b') ? call.batch : 1, call.scales.ends_with('h') ? heads : 1));
  const std::int64_t length = of_queries ? call.rows : call.keys;
  if (call.is_paged && !of_queries) return ones(fmt::format("{}, {}, {}", call.batch * columns, call.page, heads));
  if (call.is_packed) return ones(fmt::format("1, {}, {}", call.batch * length, heads));
  return ones(fmt::format("{}, {}, {}", call.batch, length, heads));
}

// FlexAttention's mask of the keys up to a row's own, or of all.
std::string block_mask_of(const AttentionChoice& call) {
  std::string seen = "key >= 0";
  if (call.causal || !call.window.empty()) seen = "key <= row";
  if (call.causal && call.keys != call.rows) seen += fmt::format(" + {}", call.keys - call.rows);
  return fmt::format(
      "block_mask = create_block_mask(lambda batch, head, row, key: {}, None, None, {}, {}, device=device,\n"
      "                               BLOCK_SIZE=({}, {}))\n",
      seen, call.rows, call.keys, call.blocks.rows, call.blocks.keys);
}

}  // namespace

std::string torch_tensors(const AttentionChoice& call, const tools::Answers& answers, TorchCall of,
                          std::string_view target) {
  const bool masks_blocks = of == TorchCall::block_mask;
  std::string text =
      torch_beginning(target, masks_blocks ? "from torch.nn.attention.flex_attention import create_block_mask\n" : "");
  const std::int64_t columns = call.is_paged ? (call.keys + call.page - 1) / call.page : 0;
  const auto type = [&](const std::string& format) { return torch_type(format.empty() ? call.type : format); };
  const auto tensor = [&](const char* name, std::int64_t length, std::int64_t heads, std::int64_t dim,
                          const std::string& format) {
    if (masks_blocks)
      text += torch_zeros(name, {call.batch, heads, length, dim}, type(format));
    else if (call.is_packed && of == TorchCall::flash_attn)
      text += torch_zeros(name, {call.batch * length, heads, dim}, type(format));
    else if (call.is_packed)
      text += torch_zeros(name, {1, call.batch * length, heads, dim}, type(format));
    else
      text += torch_zeros(name, {call.batch, length, heads, dim}, type(format));
  };
  tensor("q", call.rows, call.heads, call.head_dim, call.queries);
  if (call.is_paged) {
    const bool caches = of == TorchCall::flash_attn;
    text += torch_zeros(caches ? "k_cache" : "k", {call.batch * columns, call.page, call.kv_heads, call.head_dim},
                        type(call.keys_in()));
    text += torch_zeros(caches ? "v_cache" : "v", {call.batch * columns, call.page, call.kv_heads, call.head_dim_v},
                        type(call.values_in()));
  } else {
    tensor("k", call.keys, call.kv_heads, call.head_dim, call.keys_in());
    tensor("v", call.keys, call.kv_heads, call.head_dim_v, call.values_in());
  }
  for (const std::string& scaled : scaled_tensors(call)) text += scales_of(call, scaled, columns);
  if (call.is_packed) text += torch_starts("cu_seqlens_q", call.batch, call.rows);
  // flash-attn's function counts keys by their starts over pages, too.
  if (call.is_packed && (!call.is_paged || of == TorchCall::flash_attn))
    text += torch_starts("cu_seqlens_k", call.batch, call.keys);
  if (call.is_paged) text += torch_block_table(call.batch, columns);
  const bool flash_packed = call.is_packed && of == TorchCall::flash_attn;
  if ((call.is_paged && !flash_packed) || said(answers, "lengths", "padded"))
    text += torch_lengths(call.batch, call.keys);
  const std::int64_t lists = call.is_packed ? 1 : call.batch;
  const std::int64_t rows = call.is_packed ? call.batch * call.rows : call.rows;
  if (call.top_k != 0) text += torch_zeros("indices", {lists, rows, call.top_k}, "int32");
  if (!call.blocks.word.empty() && !masks_blocks)
    text += fmt::format(
        "indices = torch.arange({1}, dtype=torch.int32, device=device).repeat(1, 1, {0}, 1)\n"
        "counts = torch.full((1, 1, {0}), {1}, dtype=torch.int32, device=device)\n",
        call.blocks.row_blocks, call.blocks.key_blocks);
  if (masks_blocks) text += block_mask_of(call);
  if (call.causal_flags)
    text += fmt::format("causal_flags = torch.ones({}, dtype=torch.bool, device=device)\n", call.batch);
  return text + "\n";
}

}  // namespace wavejit::attention_forward::program::choice
