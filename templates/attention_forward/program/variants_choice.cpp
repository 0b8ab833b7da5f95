// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The questions of `wavejit choose`, and the call that their answers describe: its descriptor, and code that makes it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/program/cache_formats.h"
#include "templates/attention_forward/program/block_list_choice.h"
#include "templates/attention_forward/program/indexer_choice.h"
#include "templates/attention_forward/program/latent_choice.h"
#include "templates/attention_forward/program/variants.h"
#include "templates/attention_forward/program/vocabulary.h"
#include "tools/targets.h"

namespace wavejit::attention_forward::program {
namespace {

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

std::function<std::string(const std::string&)> count() {
  return [](const std::string& text) {
    return number(text) ? std::string() : fmt::format("'{}' is not accepted; whole numbers from 1 are", text);
  };
}

std::string problem_of_heads(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto query = number(text.substr(0, slash));
  const auto kv = slash == std::string::npos ? query : number(text.substr(slash + 1));
  if (query && kv && *query % *kv == 0) return {};
  return fmt::format("'{}' is not accepted; query heads, or query heads/kv heads that divide them, are: 32 or 32/8",
                     text);
}

bool said(const Answers& answers, const std::string& name, const std::string& value) {
  const auto found = answers.find(name);
  return found != answers.end() && found->second == value;
}
bool paged(const Answers& answers) { return said(answers, "cache", "paged"); }
bool is_decode(const Answers& answers) { return said(answers, "use", "decode"); }
bool is_packed(const Answers& answers) { return said(answers, "lengths", "packed"); }
bool has_key_lists(const Answers& answers) { return said(answers, "lists", "keys"); }
bool has_eight_bits(const Answers& answers) {
  return answers.contains("kv-dtype") && !said(answers, "kv-dtype", "as-queries");
}

constexpr std::string_view integers = "i8";

struct Call {
  std::string type;
  std::string dims;
  std::int64_t batch, rows, keys, heads, kv_heads, head_dim, head_dim_v, page, top_k;
  bool causal, is_paged, is_packed, lse;
  std::string cache;   // a format of 8 bits; empty: q's type
  std::string scales;  // "bh"; empty: none
  std::string window;
  std::string variant;
  BlockListChoice blocks;
};

std::int64_t number_of(const Answers& answers, const std::string& name) { return number(answers.at(name)).value_or(1); }

Call call_of(const Answers& answers) {
  const std::string& heads = answers.at("heads");
  const std::string& dims = answers.at("head-dim");
  const std::size_t slash = heads.find('/');
  const std::size_t dims_slash = dims.find('/');
  Call call = {.type = answers.at("dtype"),
               .dims = dims,
               .batch = number_of(answers, "batch"),
               .rows = is_decode(answers) ? 1 : number_of(answers, "query-length"),
               .keys = number_of(answers, "key-length"),
               .heads = number(heads.substr(0, slash)).value_or(1),
               .kv_heads = number(slash == std::string::npos ? heads : heads.substr(slash + 1)).value_or(1),
               .head_dim = number(dims.substr(0, dims_slash)).value_or(64),
               .head_dim_v = number(dims_slash == std::string::npos ? dims : dims.substr(dims_slash + 1)).value_or(64),
               .page = paged(answers) ? number_of(answers, "page-size") : 0,
               .top_k = has_key_lists(answers) ? number_of(answers, "top-k") : 0,
               .causal = said(answers, "mask", "causal") || said(answers, "mask", "window"),
               .is_paged = paged(answers),
               .is_packed = is_packed(answers),
               .lse = said(answers, "lse", "yes"),
               .cache = has_eight_bits(answers) ? answers.at("kv-dtype") : "",
               .scales = has_eight_bits(answers) && !said(answers, "kv-scales", "none") ? answers.at("kv-scales") : "",
               .window = said(answers, "mask", "window") ? answers.at("window") : "",
               .variant = {},
               .blocks = {}};
  call.blocks = block_lists_of(answers, call.rows, call.keys);
  call.variant = !call.cache.empty()                  ? "fp8"
                 : call.top_k != 0                    ? "top-k"
                 : !call.blocks.word.empty()          ? "block-sparse"
                 : is_decode(answers)                 ? "decode"
                 : call.is_paged                      ? "paged"
                 : call.is_packed                     ? "packed"
                 : said(answers, "lengths", "padded") ? "padded"
                 : !call.window.empty()               ? "windowed"
                 : call.causal                        ? "causal"
                 : call.kv_heads == call.heads        ? "mha"
                 : call.kv_heads == 1                 ? "mqa"
                                                      : "gqa";
  return call;
}

std::string descriptor_of(const Call& call, const Answers& answers) {
  std::string text = fmt::format("attention_forward {} b{} q{} k{} h{} d{}", call.type, call.batch, call.rows,
                                 call.keys, answers.at("heads"), call.dims);
  if (call.causal) text += " causal";
  if (!call.window.empty()) text += fmt::format(" window={},0", call.window);
  if (call.lse) text += " lse";
  if (call.is_paged) text += fmt::format(" layout=paged:{}", call.page);
  if (call.is_packed && !call.is_paged) text += " layout=packed";
  // One key fewer in the last sequence: that lengths are told is what counts.
  if (said(answers, "lengths", "padded") && !call.is_paged) {
    text += " k_lengths=";
    for (std::int64_t b = 0; b < call.batch; ++b) text += fmt::format("{}{}", b == 0 ? "" : ",", call.keys);
  }
  if (!call.cache.empty()) text += fmt::format(" cache={}", call.cache);
  if (!call.scales.empty()) text += fmt::format(" cache_scales={}", call.scales);
  if (!call.blocks.word.empty()) text += fmt::format(" lists={}", call.blocks.word);
  if (call.top_k != 0) text += fmt::format(" top_k={}", call.top_k);
  return text;
}

// "WAVEJIT_E4M3_FNUZ"; of integers the words of C and Python are others.
std::string c_name(std::string format) {
  if (format == integers) return "WAVEJIT_INT8";
  std::ranges::transform(format, format.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return "WAVEJIT_" + format;
}
std::int64_t scale_batches(const Call& call) { return call.scales.starts_with('b') ? call.batch : 1; }
std::int64_t scale_heads(const Call& call) { return call.scales.ends_with('h') ? call.kv_heads : 1; }

std::string cpp_of(const Call& call, const Answers& answers) {
  const std::string dtype = c_name(call.type);
  const std::string key_dtype = call.cache.empty() ? dtype : c_name(call.cache);
  const bool rows_packed = call.is_packed;
  const std::int64_t q_batch = rows_packed ? 1 : call.batch;
  const std::string rows = rows_packed ? "total_rows" : std::to_string(call.rows);
  std::string text =
      "#include <wavejit/wavejit.hpp>\n\n// q, k, v, o and the numbers are device memory; `stream` is a hipStream_t.\n";
  std::string parameters = "wavejit::Engine& engine, void* q, void* k, void* v, void* o, ihipStream_t* stream";
  std::string body;
  const auto line = [&](const std::string& what) { body += "  " + what + "\n"; };
  line("wavejit::AttentionForward call;");
  line(fmt::format("call.q = wavejit::dense(q, {}, {}, {}, {}, {});", dtype, q_batch, rows, call.heads, call.head_dim));
  const auto keys_of = [&](const char* name, std::int64_t dim) {
    if (call.is_paged)
      return fmt::format("call.{0} = wavejit::dense({0}, {1}, pages, {2}, {3}, {4});", name, key_dtype, call.page,
                         call.kv_heads, dim);
    return fmt::format("call.{0} = wavejit::dense({0}, {1}, {2}, {3}, {4}, {5});", name, key_dtype, q_batch,
                       rows_packed ? "total_keys" : std::to_string(call.keys), call.kv_heads, dim);
  };
  line(keys_of("k", call.head_dim));
  line(keys_of("v", call.head_dim_v));
  line(fmt::format("call.o = wavejit::dense(o, {}, {}, {}, {}, {});", dtype, q_batch, rows, call.heads,
                   call.head_dim_v));
  if (!call.scales.empty()) {
    parameters += ", float* k_scale, float* v_scale";
    for (const char* name : {"k_scale", "v_scale"})
      line(fmt::format("call.{0} = wavejit::dense({0}, WAVEJIT_FP32, {1}, 1, {2}, 1);", name, scale_batches(call),
                       scale_heads(call)));
  }
  if (rows_packed) {
    parameters += ", std::int64_t total_rows, const std::int32_t* query_starts";
    line("call.query_starts = query_starts;");
    line(fmt::format("call.sequences = {};", call.batch));
    line(fmt::format("call.max_query_length = {};", call.rows));
    if (!call.is_paged) {
      parameters += ", std::int64_t total_keys, const std::int32_t* key_starts";
      line("call.key_starts = key_starts;");
    }
  }
  if (call.is_paged) {
    parameters += ", std::int64_t pages, const std::int32_t* block_table, const std::int32_t* key_lengths";
    line("call.block_table = block_table;");
    line(fmt::format("call.table_columns = {};", (call.keys + call.page - 1) / call.page));
    line("call.key_lengths = key_lengths;");
  } else if (said(answers, "lengths", "padded")) {
    parameters += ", const std::int32_t* key_lengths";
    line("call.key_lengths = key_lengths;");
  }
  if (call.is_paged || rows_packed) line(fmt::format("call.max_key_length = {};", call.keys));
  if (call.top_k != 0) {
    parameters += ", const std::int32_t* indices";
    line(fmt::format("call.key_indices = indices;  // [rows of q][{}]", call.top_k));
    line(fmt::format("call.top_k = {};", call.top_k));
  }
  if (!call.blocks.word.empty()) {
    parameters += block_list_parameters;
    for (const std::string& each : cpp_lines_of(call.blocks)) line(each);
  }
  if (!call.window.empty()) {
    line("call.mask = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW;");
    line(fmt::format("call.window_left = {};", call.window));
  } else if (call.causal) {
    line("call.mask = WAVEJIT_MASK_CAUSAL;");
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

std::string python_name(const std::string& format) { return format == integers ? "int8" : format; }
std::string numpy_type(const Call& call) { return call.type == "bf16" ? "numpy.uint16" : "numpy.float16"; }

// One whose instructions read the cache's format.
std::string simulated_target(const Call& call) {
  std::vector<std::string> targets = tools::known_targets();
  std::ranges::reverse(targets);
  for (const std::string& target : targets)
    if (call.cache.ends_with("fnuz") == attention::program::e4m3_of(target).ends_with("fnuz")) return target;
  return targets.front();
}

std::string python_of(const Call& call, const Answers& answers) {
  const bool rows_packed = call.is_packed;
  std::string text = fmt::format("import numpy, wavejit\n\nengine = wavejit.Engine(\"sim:{}\")  # or \"hip\"\n",
                                 simulated_target(call));
  const std::int64_t rows = rows_packed ? call.batch * call.rows : call.rows;
  const std::int64_t keys = rows_packed ? call.batch * call.keys : call.keys;
  const std::int64_t batch = rows_packed ? 1 : call.batch;
  const std::int64_t columns = call.is_paged ? (call.keys + call.page - 1) / call.page : 0;
  const auto array = [&](const std::string& name, std::int64_t outer, std::int64_t length, std::int64_t heads,
                         std::int64_t dim) {
    const bool narrow = name != "q" && !call.cache.empty();
    text += fmt::format("{} = engine.array(numpy.zeros(({}, {}, {}, {}), {}), dtype=\"{}\")\n", name, outer, length,
                        heads, dim, narrow ? call.cache == integers ? "numpy.int8" : "numpy.uint8" : numpy_type(call),
                        narrow ? python_name(call.cache) : call.type);
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
  if (!call.scales.empty()) {
    text += fmt::format("k_scale = v_scale = engine.array(numpy.ones(({}, {}), numpy.float32))\n", scale_batches(call),
                        scale_heads(call));
    words += ", k_scale=k_scale, v_scale=v_scale";
  }
  if (call.causal) words += ", causal=True";
  if (!call.window.empty()) words += fmt::format(", window=({}, 0)", call.window);
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

// Of lists, whose functions have the engine's words.
std::string pytorch_of_lists(const Call& call, const Answers& answers) {
  const char* lse = call.lse ? ", lse" : "";
  const bool padded = said(answers, "lengths", "padded");
  std::string words = call.causal ? ", causal=True" : "";
  if (!call.blocks.word.empty() && !call.is_packed && !call.is_paged && !padded && call.cache.empty())
    return block_mask_call(words, call.window, call.lse);
  if (!call.scales.empty()) words += ", k_scale=k_scale, v_scale=v_scale";
  if (!call.window.empty()) words += fmt::format(", window=({}, 0)", call.window);
  if (call.is_packed)
    words += ", query_starts=cu_seqlens_q" + std::string(call.is_paged ? "" : ", key_starts=cu_seqlens_k");
  if (call.is_packed) words += fmt::format(", max_query_length={}", call.rows);
  if (call.is_paged) words += ", block_table=block_table";
  if (call.is_paged || padded) words += ", key_lengths=lengths";
  if (call.is_paged || call.is_packed) words += fmt::format(", max_key_length={}", call.keys);
  if (call.top_k != 0)
    return "from wavejit.torch import key_list_attention\n\n" +
           fmt::format("out{} = key_list_attention(q, k, v, indices{}{})  # indices is int32\n", lse, words,
                       call.lse ? ", return_lse=True" : "");
  return "# The engine takes torch's tensors as they lie; indices and counts are int32.\nimport wavejit.torch\n\n" +
         fmt::format("lists = {}\nout{} = wavejit.torch.engine(q.device).attention_forward(q, k, v, lists=lists{}{})\n",
                     python_of_tensors(call.blocks), lse, words, call.lse ? ", lse=True" : "");
}

std::string pytorch_of(const Call& call, const Answers& answers) {
  if (call.top_k != 0 || !call.blocks.word.empty()) return pytorch_of_lists(call, answers);
  std::string words = call.causal ? ", causal=True" : "";
  if (!call.scales.empty()) words += ", k_descale=k_scale, v_descale=v_scale";
  if (!call.window.empty()) words += fmt::format(", window_size=({}, 0)", call.window);
  if (call.is_paged && call.is_packed)
    return "# Packed queries over a paged cache: flash_attn_varlen_func with block_table.\n"
           "from wavejit.torch import flash_attn_varlen_func\n\n" +
           fmt::format(
               "out = flash_attn_varlen_func(q, k_cache, v_cache, cu_seqlens_q, cu_seqlens_k, {}, {}{}, "
               "block_table=block_table)\n",
               call.rows, call.keys, words);
  if (call.is_paged)
    return "from wavejit.torch import flash_attn_with_kvcache\n\n" +
           fmt::format(
               "out = flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens=lengths, "
               "block_table=block_table{})\n",
               words);
  if (call.is_packed)
    return "from wavejit.torch import flash_attn_varlen_func\n\n" +
           fmt::format("out = flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, {}, {}{})\n", call.rows,
                       call.keys, words);
  if (said(answers, "lengths", "padded"))
    return "from wavejit.torch import flash_attn_with_kvcache\n\n" +
           fmt::format("out = flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths{})\n", words);
  return "from wavejit.torch import flash_attn_func\n\n" + fmt::format("out = flash_attn_func(q, k, v{})\n", words);
}

}  // namespace

std::vector<Question> choice_questions() {
  const auto not_decode = [](const Answers& answers) { return !is_decode(answers); };
  const auto not_latent = [](const Answers& answers) { return !is_latent(answers); };
  std::vector<Question> questions = {
      {.name = "use",
       .text = "What is computed: a prompt, one new row of each sequence, or which keys rows are to attend to?",
       .usual = "prefill",
       .accepted = {"prefill", "decode", "indexer"}},
      {.name = "keys",
       .text = "Have keys and values tensors of their own, or are values the first columns of keys (latent attention, "
               "MLA)?",
       .usual = "apart",
       .accepted = {"apart", "latent"}},
      {.name = "cache", .text = "Where do keys and values lie?", .usual = "dense", .accepted = {"dense", "paged"}},
      {.name = "page-size",
       .text = "Keys of a page (1, or a multiple of 16)",
       .usual = "16",
       .accepted = {},
       .problem =
           [](const std::string& text) {
             const auto size = number(text);
             return size && (*size == 1 || *size % 16 == 0)
                        ? std::string()
                        : fmt::format("'{}' is not accepted; 1 and multiples of 16 are", text);
           },
       .is_asked = paged},
      {.name = "lengths",
       .text = "Lengths: all alike, one sequence after the other (packed), or padded on the right?",
       .usual = "equal",
       .accepted = {"equal", "packed", "padded"},
       .problem = nullptr,
       .is_asked =
           [](const Answers& answers) { return !is_decode(answers) && !paged(answers) && !is_latent(answers); }},
      {.name = "batch", .text = "How many sequences?", .usual = "2", .accepted = {}, .problem = count()},
      {.name = "query-length",
       .text = "Query rows of the longest sequence",
       .usual = "512",
       .accepted = {},
       .problem = count(),
       .is_asked = not_decode},
      {.name = "key-length",
       .text = "Keys of the longest sequence",
       .usual = "512",
       .accepted = {},
       .problem = count()},
      {.name = "heads",
       .text = "Query heads/kv heads",
       .usual = "16/4",
       .accepted = {},
       .problem = problem_of_heads,
       .is_asked = not_latent},
      {.name = "head-dim",
       .text = "Head dim (keys/values where they differ)",
       .usual = "128",
       .accepted = {"64", "128", "192/128", "256"},
       .problem = nullptr,
       .is_asked = not_latent},
      {.name = "dtype", .text = "Data type", .usual = "bf16", .accepted = {"bf16", "fp16"}},
      {.name = "kv-dtype",
       .text = "Do keys and values have the queries' type, or 8 bits (gfx942 has the FNUZ forms)?",
       .usual = "as-queries",
       .accepted = {"as-queries", "e4m3", "e5m2", "e4m3_fnuz", "e5m2_fnuz", std::string(integers)},
       .problem = nullptr,
       .is_asked = not_latent},
      {.name = "kv-scales",
       .text = "Scales of keys and values: none, one for all, or for kv heads (h), sequences (b), or both?",
       .usual = "1",
       .accepted = {"none", "1", "h", "b", "bh"},
       .problem = nullptr,
       .is_asked = has_eight_bits},
      {.name = "mask",
       .text = "What does a row see?",
       .usual = "causal",
       .accepted = {"all", "causal", "window"},
       .problem = nullptr,
       .is_asked = not_decode},
      {.name = "window",
       .text = "How many keys before its own?",
       .usual = "1023",
       .accepted = {},
       .problem = count(),
       .is_asked = [](const Answers& answers) { return said(answers, "mask", "window"); }},
      {.name = "lists",
       .text =
           "Does a row see all keys that the mask shows, those that a list of its own names (top-k), or blocks that "
           "a list names for each block of rows?",
       .usual = "none",
       .accepted = {"none", "keys", "blocks"}},
      {.name = "top-k",
       .text = "Entries of a list",
       .usual = "2048",
       .accepted = {},
       .problem = count(),
       .is_asked = has_key_lists},
      block_question(),
      {.name = "lse", .text = "The log-sum-exp of each row, too?", .usual = "no", .accepted = {"no", "yes"}},
  };
  for (Question& question : latent_questions()) questions.push_back(std::move(question));
  add_indexer_questions(questions);
  return questions;
}

Result<ChosenCall> chosen_call(const Answers& answers) {
  if (is_indexer(answers)) return indexer_call(answers);
  if (is_latent(answers)) return latent_call(answers);
  if (has_key_lists(answers) && said(answers, "mask", "window"))
    return failed(ExitCode::usage, "--mask window: lists of keys have no windows; all, causal are accepted");
  const Call call = call_of(answers);
  return ChosenCall{.variant = call.variant,
                    .descriptor = descriptor_of(call, answers),
                    .cpp = cpp_of(call, answers),
                    .python = python_of(call, answers),
                    .pytorch = pytorch_of(call, answers)};
}

}  // namespace wavejit::attention_forward::program
