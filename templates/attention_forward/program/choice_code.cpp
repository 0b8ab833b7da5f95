// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/choice_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/cache_formats.h"
#include "templates/attention_forward/program/torch_tensors.h"
#include "tools/targets.h"

namespace wavejit::attention_forward::program::choice {

using tools::Answers;

namespace {

// "WAVEJIT_E4M3_FNUZ"; of integers the words of C and Python are others.
std::string c_name(std::string format) {
  if (format == integers) return "WAVEJIT_INT8";
  std::ranges::transform(format, format.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return "WAVEJIT_" + format;
}

// [batches, length, heads] of a tensor of scales. Of tokens it is as the tensor that it is of; "total_keys" where
// sequences are packed.
struct ScaleSizes {
  std::string batches, length, heads;
};
ScaleSizes scale_sizes(const AttentionChoice& call, bool of_queries) {
  const std::string heads = std::to_string(of_queries && call.queries == integers ? call.heads : call.kv_heads);
  if (call.scales != of_tokens)
    return {.batches = call.scales.starts_with('b') ? std::to_string(call.batch) : "1",
            .length = "1",
            .heads = call.scales.ends_with('h') ? heads : "1"};
  if (call.is_paged) return {.batches = "pages", .length = std::to_string(call.page), .heads = heads};
  if (call.is_packed) return {.batches = "1", .length = of_queries ? "total_rows" : "total_keys", .heads = heads};
  return {.batches = std::to_string(call.batch),
          .length = std::to_string(of_queries ? call.rows : call.keys),
          .heads = heads};
}

std::string python_name(const std::string& format) { return format == integers ? "int8" : format; }
std::string numpy_type(const AttentionChoice& call) { return call.type == "bf16" ? "numpy.uint16" : "numpy.float16"; }

// One whose instructions read the cache's format.
std::string simulated_target(const AttentionChoice& call) {
  std::vector<std::string> targets = tools::known_targets();
  std::ranges::reverse(targets);
  for (const std::string& target : targets)
    if (call.keys_in().ends_with("fnuz") == attention::program::e4m3_of(target).ends_with("fnuz")) return target;
  return targets.front();
}

// The words of functions that have the engine's words.
std::string engine_words(const AttentionChoice& call, const Answers& answers) {
  const bool padded = said(answers, "lengths", "padded");
  std::string words = call.causal ? ", causal=True" : "";
  for (const std::string& tensor : scaled_tensors(call)) words += fmt::format(", {0}_scale={0}_scale", tensor);
  if (!call.window.empty()) words += fmt::format(", window=({}, 0)", call.window);
  if (call.is_packed)
    words += ", query_starts=cu_seqlens_q" + std::string(call.is_paged ? "" : ", key_starts=cu_seqlens_k");
  if (call.is_packed) words += fmt::format(", max_query_length={}", call.rows);
  if (call.is_paged) words += ", block_table=block_table";
  if (call.is_paged || padded) words += ", key_lengths=lengths";
  if (call.is_paged || call.is_packed) words += fmt::format(", max_key_length={}", call.keys);
  return words;
}

std::string pytorch_of_lists(const AttentionChoice& call, const Answers& answers) {
  const char* lse = call.lse ? ", lse" : "";
  const bool padded = said(answers, "lengths", "padded");
  const std::string target = simulated_target(call);
  if (!call.blocks.word.empty() && !call.is_packed && !call.is_paged && !padded && call.keys_in().empty())
    return "# q, k and v are [batch, heads, length, head dim]; block_mask is FlexAttention's.\n" +
           torch_tensors(call, answers, TorchCall::block_mask, target) +
           block_mask_call(call.causal ? ", causal=True" : "", call.window, call.lse);
  const std::string words = engine_words(call, answers);
  const std::string tensors = torch_tensors(call, answers, TorchCall::engine, target);
  if (call.top_k != 0)
    return tensors + fmt::format("out{} = wavejit.torch.key_list_attention(q, k, v, indices{}{})\n", lse, words,
                                 call.lse ? ", return_lse=True" : "");
  return "# The engine takes torch's tensors as they lie.\n" + tensors +
         fmt::format("lists = {}\nout{} = wavejit.torch.engine(q.device).attention_forward(q, k, v, lists=lists{}{})\n",
                     python_of_tensors(call.blocks), lse, words, call.lse ? ", lse=True" : "");
}

// A call with local chunks and flags, which flash-attn's functions do not have.
std::string pytorch_of_operator(const AttentionChoice& call, const Answers& answers) {
  std::string words = engine_words(call, answers);
  if (!call.local_chunk.empty()) words += ", local_chunk=" + call.local_chunk;
  if (call.causal_flags) words += ", causal_flags=causal_flags";
  return torch_tensors(call, answers, TorchCall::engine, simulated_target(call)) +
         fmt::format("out{} = torch.ops.wavejit.attention_forward{}(q, k, v{})\n", call.lse ? ", lse" : "",
                     call.lse ? "_lse" : "", words);
}

// flash-attn's function that has such a call.
std::string flash_call(const AttentionChoice& call, const Answers& answers) {
  std::string words = call.causal ? ", causal=True" : "";
  for (const std::string& tensor : scaled_tensors(call)) words += fmt::format(", {0}_descale={0}_scale", tensor);
  if (!call.window.empty()) words += fmt::format(", window_size=({}, 0)", call.window);
  if (call.is_packed)
    return fmt::format("out = wavejit.torch.flash_attn_varlen_func({}, cu_seqlens_q, cu_seqlens_k, {}, {}{}{})\n",
                       call.is_paged ? "q, k_cache, v_cache" : "q, k, v", call.rows, call.keys, words,
                       call.is_paged ? ", block_table=block_table" : "");
  if (call.is_paged)
    return fmt::format(
        "out = wavejit.torch.flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens=lengths, block_table=block_table{})\n",
        words);
  if (said(answers, "lengths", "padded"))
    return fmt::format("out = wavejit.torch.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths{})\n", words);
  return fmt::format("out = wavejit.torch.flash_attn_func(q, k, v{})\n", words);
}

}  // namespace

std::string cpp_of(const AttentionChoice& call, const Answers& answers) {
  const std::string dtype = c_name(call.type);
  const auto dtype_of = [&](const std::string& format) { return format.empty() ? dtype : c_name(format); };
  const bool rows_packed = call.is_packed;
  const std::int64_t q_batch = rows_packed ? 1 : call.batch;
  const std::string rows = rows_packed ? "total_rows" : std::to_string(call.rows);
  std::string text =
      "#include <wavejit/wavejit.hpp>\n\n// q, k, v, o and the numbers are device memory; `stream` is a hipStream_t.\n";
  std::string parameters = "wavejit::Engine& engine, void* q, void* k, void* v, void* o, ihipStream_t* stream";
  std::string body;
  const auto line = [&](const std::string& what) { body += "  " + what + "\n"; };
  line("wavejit::AttentionForward call;");
  line(fmt::format("call.q = wavejit::dense(q, {}, {}, {}, {}, {});", dtype_of(call.queries), q_batch, rows, call.heads,
                   call.head_dim));
  const auto keys_of = [&](const char* name, const std::string& key_dtype, std::int64_t dim) {
    if (call.is_paged)
      return fmt::format("call.{0} = wavejit::dense({0}, {1}, pages, {2}, {3}, {4});", name, key_dtype, call.page,
                         call.kv_heads, dim);
    return fmt::format("call.{0} = wavejit::dense({0}, {1}, {2}, {3}, {4}, {5});", name, key_dtype, q_batch,
                       rows_packed ? "total_keys" : std::to_string(call.keys), call.kv_heads, dim);
  };
  line(keys_of("k", dtype_of(call.keys_in()), call.head_dim));
  line(keys_of("v", dtype_of(call.values_in()), call.head_dim_v));
  line(fmt::format("call.o = wavejit::dense(o, {}, {}, {}, {}, {});", dtype, q_batch, rows, call.heads,
                   call.head_dim_v));
  for (const std::string& tensor : scaled_tensors(call)) {
    const ScaleSizes sizes = scale_sizes(call, tensor == "q");
    parameters += fmt::format(", float* {}_scale", tensor);
    line(fmt::format("call.scales.{0}_scale = wavejit::dense({0}_scale, WAVEJIT_FP32, {1}, {2}, {3}, 1);", tensor,
                     sizes.batches, sizes.length, sizes.heads));
  }
  if (call.scales == of_tokens) line("call.scales.token_scales = 1;");
  if (rows_packed) {
    parameters += ", std::int64_t total_rows, const std::int32_t* query_starts";
    line("call.sequences.query_starts = query_starts;");
    line(fmt::format("call.sequences.count = {};", call.batch));
    line(fmt::format("call.sequences.max_query_length = {};", call.rows));
    if (!call.is_paged) {
      parameters += ", std::int64_t total_keys, const std::int32_t* key_starts";
      line("call.sequences.key_starts = key_starts;");
    }
  }
  if (call.is_paged) {
    parameters += ", std::int64_t pages, const std::int32_t* block_table, const std::int32_t* key_lengths";
    line("call.pages.block_table = block_table;");
    line(fmt::format("call.pages.table_columns = {};", (call.keys + call.page - 1) / call.page));
    line("call.sequences.key_lengths = key_lengths;");
  } else if (said(answers, "lengths", "padded")) {
    parameters += ", const std::int32_t* key_lengths";
    line("call.sequences.key_lengths = key_lengths;");
  }
  if (call.is_paged || rows_packed) line(fmt::format("call.sequences.max_key_length = {};", call.keys));
  if (call.top_k != 0) {
    parameters += ", const std::int32_t* indices";
    line(fmt::format("call.key_list.indices = indices;  // [rows of q][{}]", call.top_k));
    line(fmt::format("call.key_list.top_k = {};", call.top_k));
  }
  if (!call.blocks.word.empty()) {
    parameters += block_list_parameters;
    for (const std::string& each : cpp_lines_of(call.blocks)) line(each);
  }
  if (!call.window.empty()) {
    line("call.mask.bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW;");
    line(fmt::format("call.mask.window_left = {};", call.window));
  } else if (!call.local_chunk.empty()) {
    line("call.mask.bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_CHUNKED;");
    line(fmt::format("call.mask.local_chunk = {};", call.local_chunk));
  } else if (call.causal) {
    line("call.mask.bits = WAVEJIT_MASK_CAUSAL;");
  }
  if (call.causal_flags) {
    parameters += ", const std::uint8_t* causal_flags";
    line(fmt::format("call.mask.causal_flags = causal_flags;  // [{}]; 0: the sequence has no diagonal", call.batch));
  }
  if (call.lse) {
    parameters += ", float* lse";
    line(rows_packed ? fmt::format("call.lse = wavejit::dense(lse, WAVEJIT_FP32, 1, {}, total_rows, 1);", call.heads)
                     : fmt::format("call.lse = wavejit::dense(lse, WAVEJIT_FP32, {}, {}, {}, 1);", call.batch,
                                   call.heads, call.rows));
  }
  line("engine.attention_forward(call, stream);");
  return text + "void attend(" + parameters + ") {\n" + body + "}\n";
}

std::string python_of(const AttentionChoice& call, const Answers& answers) {
  const bool rows_packed = call.is_packed;
  std::string text = fmt::format("import numpy, wavejit\n\nengine = wavejit.Engine(\"sim:{}\")  # or \"hip\"\n",
                                 simulated_target(call));
  const std::int64_t rows = rows_packed ? call.batch * call.rows : call.rows;
  const std::int64_t keys = rows_packed ? call.batch * call.keys : call.keys;
  const std::int64_t batch = rows_packed ? 1 : call.batch;
  const std::int64_t columns = call.is_paged ? (call.keys + call.page - 1) / call.page : 0;
  const auto array = [&](const std::string& name, std::int64_t outer, std::int64_t length, std::int64_t heads,
                         std::int64_t dim) {
    const std::string format = name == "q" ? call.queries : name == "k" ? call.keys_in() : call.values_in();
    text += fmt::format("{} = engine.array(numpy.zeros(({}, {}, {}, {}), {}), dtype=\"{}\")\n", name, outer, length,
                        heads, dim,
                        format.empty()       ? numpy_type(call)
                        : format == integers ? "numpy.int8"
                                             : "numpy.uint8",
                        format.empty() ? call.type : python_name(format));
  };
  array("q", batch, rows, call.heads, call.head_dim);
  if (call.is_paged) {
    array("k", call.batch * columns, call.page, call.kv_heads, call.head_dim);
    array("v", call.batch * columns, call.page, call.kv_heads, call.head_dim_v);
  } else {
    array("k", batch, keys, call.kv_heads, call.head_dim);
    array("v", batch, keys, call.kv_heads, call.head_dim_v);
  }
  std::string words;
  for (const std::string& tensor : scaled_tensors(call)) {
    const ScaleSizes sizes = scale_sizes(call, tensor == "q");
    const std::string sequences = sizes.batches == "pages" ? std::to_string(call.batch * columns) : sizes.batches;
    const std::string length = sizes.length == "total_rows"   ? std::to_string(rows)
                               : sizes.length == "total_keys" ? std::to_string(keys)
                                                              : sizes.length;
    const std::string shape = call.scales == of_tokens ? fmt::format("{}, {}, {}", sequences, length, sizes.heads)
                                                       : fmt::format("{}, {}", sequences, sizes.heads);
    text += fmt::format("{}_scale = engine.array(numpy.ones(({}), numpy.float32))\n", tensor, shape);
    words += fmt::format(", {0}_scale={0}_scale", tensor);
  }
  // With queries in e4m3 no other argument gives the type of the output.
  if (!call.queries.empty() && call.queries != integers && call.type != "bf16")
    words += fmt::format(", out=\"{}\"", call.type);
  if (call.causal) words += ", causal=True";
  if (!call.window.empty()) words += fmt::format(", window=({}, 0)", call.window);
  if (!call.local_chunk.empty()) words += fmt::format(", local_chunk={}", call.local_chunk);
  if (call.causal_flags) words += fmt::format(", causal_flags=[True] * {}", call.batch);
  if (rows_packed) words += fmt::format(",\n    query_starts=list(range(0, {}, {}))", rows + 1, call.rows);
  if (rows_packed && !call.is_paged) words += fmt::format(", key_starts=list(range(0, {}, {}))", keys + 1, call.keys);
  if (call.is_paged)
    words +=
        fmt::format(",\n    block_table=numpy.arange({}, dtype=numpy.int32).reshape({}, {}), key_lengths=[{}] * {}",
                    call.batch * columns, call.batch, columns, call.keys, call.batch);
  else if (said(answers, "lengths", "padded"))
    words += fmt::format(", key_lengths=[{}] * {}", call.keys, call.batch);
  if (call.top_k != 0)
    words += fmt::format(",\n    indices=numpy.zeros(({}, {}, {}), numpy.int32)", batch, rows, call.top_k);
  if (!call.blocks.word.empty()) words += ",\n    lists=" + python_of(call.blocks);
  text += fmt::format("out{} = engine.attention_forward(q, k, v{}{})\n", call.lse ? ", lse" : "", words,
                      call.lse ? ", lse=True" : "");
  return text + "print(out.shape)\n";
}

std::string pytorch_of(const AttentionChoice& call, const Answers& answers) {
  std::string text;
  if (call.top_k != 0 || !call.blocks.word.empty())
    text = pytorch_of_lists(call, answers);
  else if (!call.local_chunk.empty() || call.causal_flags)
    text = pytorch_of_operator(call, answers);
  else
    text = torch_tensors(call, answers, TorchCall::flash_attn, simulated_target(call)) + flash_call(call, answers);
  return text + "print(out.shape)\n";
}

}  // namespace wavejit::attention_forward::program::choice
