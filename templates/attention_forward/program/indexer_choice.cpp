// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/indexer_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "templates/attention_forward/program/torch_tensors.h"
#include "tools/targets.h"

namespace wavejit::attention_forward::program {
namespace {

using tools::Answers;
using tools::ChosenCall;
using tools::Question;

constexpr std::int64_t most_indexer_heads = 128;
constexpr std::int64_t dims = 128;

// 0: none.
std::int64_t count_in(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

struct IndexerCall {
  bool bf16, paged, causal, key_scales;
  std::string window;  // empty: none
  std::int64_t batch, rows, keys, heads, page, top;

  std::int64_t pages_of_sequence() const { return (keys + page - 1) / page; }
};

IndexerCall indexer_call_of(const Answers& answers) {
  const auto said = [&](const char* name, const char* value) {
    const auto found = answers.find(name);
    return found != answers.end() && found->second == value;
  };
  const auto count = [&](const char* name) { return count_in(answers.at(name)); };
  return {.bf16 = said("dtype", "bf16"),
          .paged = said("cache", "paged"),
          .causal = said("mask", "causal") || said("mask", "window"),
          .key_scales = said("key-scales", "yes"),
          .window = said("mask", "window") ? answers.at("window") : std::string(),
          .batch = count("batch"),
          .rows = count("query-length"),
          .keys = count("key-length"),
          .heads = count("index-heads"),
          .page = said("cache", "paged") ? count("page-size") : 0,
          .top = count("top-k")};
}

std::string descriptor_of(const IndexerCall& call) {
  std::string text = fmt::format("sparse_indexer {} b{} q{} k{} h{}", call.bf16 ? "bf16" : "fp16", call.batch,
                                 call.rows, call.keys, call.heads);
  if (call.paged) text += fmt::format(" page={}", call.page);
  if (call.key_scales) text += " key_scales";
  text += fmt::format(" top={}", call.top);
  if (call.causal) text += " causal";
  if (!call.window.empty()) text += fmt::format(" window={},0", call.window);
  return text;
}

std::string cpp_of(const IndexerCall& call) {
  const char* type = call.bf16 ? "WAVEJIT_BF16" : "WAVEJIT_FP16";
  const std::string outer = call.paged ? "pages" : std::to_string(call.batch);
  const std::int64_t inner = call.paged ? call.page : call.keys;
  std::string parameters = "wavejit::Engine& engine, void* queries, void* keys, void* weights, ";
  std::string body = "  wavejit::SparseIndexer call;\n";
  const auto line = [&](const std::string& what) { body += "  " + what + "\n"; };
  line(fmt::format("call.queries = wavejit::dense(queries, {}, {}, {}, {}, {});", type, call.batch, call.rows,
                   call.heads, dims));
  line(fmt::format("call.keys = wavejit::dense(keys, {}, {}, {}, 1, {});", type, outer, inner, dims));
  line(fmt::format("call.weights = wavejit::dense(weights, WAVEJIT_FP32, {}, {}, {}, 1);", call.batch, call.rows,
                   call.heads));
  if (call.key_scales) {
    parameters += "void* key_scales, ";
    line(fmt::format("call.key_scales = wavejit::dense(key_scales, WAVEJIT_FP32, {}, {}, 1, 1);", outer, inner));
  }
  if (call.paged) {
    parameters += "std::int64_t pages, const std::int32_t* block_table, const std::int32_t* key_lengths, ";
    line("call.pages.block_table = block_table;");
    line(fmt::format("call.pages.table_columns = {};", call.pages_of_sequence()));
    line("call.key_lengths = key_lengths;");
    line(fmt::format("call.max_key_length = {};", call.keys));
  }
  line(fmt::format("call.indices = indices;  // [{}][{}], what key_indices of attention takes", call.batch * call.rows,
                   call.top));
  line(fmt::format("call.top_k = {};", call.top));
  if (!call.window.empty()) {
    line("call.mask.bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW;");
    line(fmt::format("call.mask.window_left = {};", call.window));
  } else if (call.causal) {
    line("call.mask.bits = WAVEJIT_MASK_CAUSAL;");
  }
  line("engine.sparse_indexer(call, stream);");
  return "#include <wavejit/wavejit.hpp>\n\n// Arrays are device memory; `stream` is a hipStream_t.\nvoid choose_keys(" +
         parameters + "std::int32_t* indices, ihipStream_t* stream) {\n" + body + "}\n";
}

// The words of masks and lengths, in Python.
std::string words_of(const IndexerCall& call, const std::string& table, const std::string& lengths) {
  std::string words = call.key_scales ? ", key_scales=key_scales" : "";
  if (call.causal) words += ", causal=True";
  if (!call.window.empty()) words += fmt::format(", window=({}, 0)", call.window);
  if (call.paged)
    words += fmt::format(",\n    block_table={}, key_lengths={}, max_key_length={}", table, lengths, call.keys);
  return words;
}

std::string python_of(const IndexerCall& call) {
  std::string text = "import numpy, wavejit\n\nengine = wavejit.Engine(\"sim:gfx950\")  # or \"hip\"\n";
  const std::int64_t outer = call.paged ? call.batch * call.pages_of_sequence() : call.batch;
  const std::int64_t inner = call.paged ? call.page : call.keys;
  const auto array = [&](const char* name, const std::string& sizes) {
    text += fmt::format("{} = engine.array(numpy.zeros(({}), {}), dtype=\"{}\")\n", name, sizes,
                        call.bf16 ? "numpy.uint16" : "numpy.float16", call.bf16 ? "bf16" : "fp16");
  };
  array("queries", fmt::format("{}, {}, {}, {}", call.batch, call.rows, call.heads, dims));
  array("keys", fmt::format("{}, {}, {}", outer, inner, dims));
  text += fmt::format("weights = numpy.ones(({}, {}, {}), numpy.float32)\n", call.batch, call.rows, call.heads);
  if (call.key_scales) text += fmt::format("key_scales = numpy.ones(({}, {}), numpy.float32)\n", outer, inner);
  const std::string words = words_of(
      call, fmt::format("numpy.arange({}, dtype=numpy.int32).reshape({}, {})", outer, call.batch, outer / call.batch),
      fmt::format("[{}] * {}", call.keys, call.batch));
  return text + fmt::format("indices = engine.sparse_indexer(queries, keys, weights, {}{})\nprint(indices.shape)\n",
                            call.top, words);
}

std::string pytorch_of(const IndexerCall& call) {
  const std::string type = choice::torch_type(call.bf16 ? "bf16" : "fp16");
  const std::int64_t columns = call.paged ? call.pages_of_sequence() : 0;
  const std::int64_t outer = call.paged ? call.batch * columns : call.batch;
  const std::int64_t inner = call.paged ? call.page : call.keys;
  std::string text = choice::torch_beginning(tools::known_targets().back());
  text += choice::torch_zeros("queries", {call.batch, call.rows, call.heads, dims}, type);
  text += choice::torch_zeros("keys", {outer, inner, dims}, type);
  text += choice::torch_zeros("weights", {call.batch, call.rows, call.heads}, "float32");
  if (call.key_scales) text += choice::torch_zeros("key_scales", {outer, inner}, "float32");
  if (call.paged) text += choice::torch_block_table(call.batch, columns) + choice::torch_lengths(call.batch, call.keys);
  return text +
         fmt::format("\nindices = wavejit.torch.sparse_indexer(queries, keys, weights, {}{})\nprint(indices.shape)\n",
                     call.top, words_of(call, "block_table", "lengths"));
}

}  // namespace

bool is_indexer(const Answers& answers) {
  const auto found = answers.find("use");
  return found != answers.end() && found->second == "indexer";
}

void add_indexer_questions(std::vector<Question>& questions) {
  constexpr std::array<std::string_view, 10> shared = {"use",        "cache", "page-size", "batch",  "query-length",
                                                       "key-length", "dtype", "mask",      "window", "local-chunk"};
  for (Question& question : questions) {
    if (std::ranges::contains(shared, std::string_view(question.name))) continue;
    // A list's length is asked of both, behind its own question or without one.
    const bool also = question.name == "top-k";
    question.is_asked = [also, before = std::move(question.is_asked)](const Answers& answers) {
      return is_indexer(answers) ? also : !before || before(answers);
    };
  }
  questions.push_back({.name = "index-heads",
                       .text = "Index heads",
                       .usual = "64",
                       .accepted = {},
                       .problem =
                           [](const std::string& text) {
                             const std::int64_t heads = count_in(text);
                             return heads >= 1 && heads <= most_indexer_heads
                                        ? std::string()
                                        : fmt::format("'{}' is not accepted; 1 to {} are", text, most_indexer_heads);
                           },
                       .is_asked = is_indexer});
  questions.push_back({.name = "key-scales",
                       .text = "Has each key a scale?",
                       .usual = "no",
                       .accepted = {"no", "yes"},
                       .problem = nullptr,
                       .is_asked = is_indexer});
}

ChosenCall indexer_call(const Answers& answers) {
  const IndexerCall call = indexer_call_of(answers);
  return {.variant = "indexer",
          .descriptor = descriptor_of(call),
          .cpp = cpp_of(call),
          .python = python_of(call),
          .pytorch = pytorch_of(call)};
}

}  // namespace wavejit::attention_forward::program
