// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/latent_choice.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>

#include "templates/attention_forward/program/block_list_choice.h"
#include "templates/attention_forward/program/torch_tensors.h"
#include "tools/targets.h"

namespace wavejit::attention_forward::program {
namespace {

using tools::Answers;
using tools::ChosenCall;
using tools::Question;

constexpr std::int64_t most_heads = 128;

// 0: none.
std::int64_t number_or_zero(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

struct LatentCall {
  bool bf16, decode, paged, causal, lse;
  std::string dims;  // "576/512"
  std::int64_t batch, rows, keys, heads, columns, value_columns, page, top_k;

  std::int64_t pages_of_sequence() const { return (keys + page - 1) / page; }
  // The model's, before absorption: 128 dims and the rope's 64; without a rope the width.
  const char* scale() const { return columns == value_columns ? "512 ** -0.5" : "192 ** -0.5"; }
};

LatentCall latent_call_of(const Answers& answers) {
  const auto said = [&](const char* name, const char* value) {
    const auto found = answers.find(name);
    return found != answers.end() && found->second == value;
  };
  const auto count = [&](const char* name) { return number_or_zero(answers.at(name)); };
  LatentCall call = {};
  call.bf16 = said("dtype", "bf16");
  call.decode = said("use", "decode");
  call.paged = said("cache", "paged");
  call.causal = said("mask", "causal");
  call.lse = said("lse", "yes");
  call.dims = answers.at("latent-dims");
  call.batch = count("batch");
  call.rows = call.decode ? 1 : count("query-length");
  call.keys = count("key-length");
  call.heads = count("latent-heads");
  const std::size_t slash = call.dims.find('/');
  call.columns = number_or_zero(call.dims.substr(0, slash));
  call.value_columns = slash == std::string::npos ? call.columns : number_or_zero(call.dims.substr(slash + 1));
  call.page = call.paged ? count("page-size") : 0;
  call.top_k = said("lists", "keys") ? count("top-k") : 0;
  return call;
}

std::string descriptor_of(const LatentCall& call) {
  std::string text = fmt::format("attention_latent {} b{} q{} k{} h{} d{}", call.bf16 ? "bf16" : "fp16", call.batch,
                                 call.rows, call.keys, call.heads, call.dims);
  if (call.causal) text += " causal";
  if (call.lse) text += " lse";
  if (call.paged) text += fmt::format(" layout=paged:{}", call.page);
  if (call.top_k != 0) text += fmt::format(" top_k={}", call.top_k);
  return text;
}

std::string cpp_of(const LatentCall& call) {
  const char* type = call.bf16 ? "WAVEJIT_BF16" : "WAVEJIT_FP16";
  std::string parameters = "wavejit::Engine& engine, void* q, void* cache, void* o, ihipStream_t* stream";
  std::string body = "  wavejit::AttentionLatent call;\n";
  const auto line = [&](const std::string& what) { body += "  " + what + "\n"; };
  line(fmt::format("call.q = wavejit::dense(q, {}, {}, {}, {}, {});", type, call.batch, call.rows, call.heads,
                   call.columns));
  line(fmt::format("call.k = wavejit::dense(cache, {}, {}, {}, 1, {});", type,
                   call.paged ? "pages" : std::to_string(call.batch), call.paged ? call.page : call.keys,
                   call.columns));
  line(fmt::format("call.o = wavejit::dense(o, {}, {}, {}, {}, {});", type, call.batch, call.rows, call.heads,
                   call.value_columns));
  line(fmt::format("call.modifiers.scale = {};  // {}: the model's, no width of the call says it",
                   call.columns == call.value_columns ? "0.0441942F" : "0.0721688F", call.scale()));
  if (call.paged) {
    parameters += ", std::int64_t pages, const std::int32_t* block_table, const std::int32_t* key_lengths";
    line("call.pages.block_table = block_table;");
    line(fmt::format("call.pages.table_columns = {};", call.pages_of_sequence()));
    line("call.sequences.key_lengths = key_lengths;");
    line(fmt::format("call.sequences.max_key_length = {};", call.keys));
  }
  if (call.top_k != 0) {
    parameters += ", const std::int32_t* indices";
    line(fmt::format("call.key_list.indices = indices;  // [rows of q][{}]", call.top_k));
    line(fmt::format("call.key_list.top_k = {};", call.top_k));
  }
  if (call.causal) line("call.mask.bits = WAVEJIT_MASK_CAUSAL;");
  if (call.lse) {
    parameters += ", float* lse";
    line(
        fmt::format("call.lse = wavejit::dense(lse, WAVEJIT_FP32, {}, {}, {}, 1);", call.batch, call.heads, call.rows));
  }
  line("engine.attention_latent(call, stream);");
  return "#include <wavejit/wavejit.hpp>\n\n"
         "// q, cache, o and the numbers are device memory; `stream` is a hipStream_t.\nvoid attend(" +
         parameters + ") {\n" + body + "}\n";
}

std::string python_of(const LatentCall& call) {
  std::string text = "import numpy, wavejit\n\nengine = wavejit.Engine(\"sim:gfx950\")  # or \"hip\"\n";
  const auto array = [&](const char* name, std::int64_t outer, std::int64_t length, std::int64_t heads) {
    text += fmt::format("{} = engine.array(numpy.zeros(({}, {}, {}, {}), {}), dtype=\"{}\")\n", name, outer, length,
                        heads, call.columns, call.bf16 ? "numpy.uint16" : "numpy.float16", call.bf16 ? "bf16" : "fp16");
  };
  array("q", call.batch, call.rows, call.heads);
  std::string words = fmt::format(", scale={}", call.scale());
  if (call.causal) words += ", causal=True";
  if (call.paged) {
    const std::int64_t columns = call.pages_of_sequence();
    array("cache", call.batch * columns, call.page, 1);
    words +=
        fmt::format(",\n    block_table=numpy.arange({}, dtype=numpy.int32).reshape({}, {}), key_lengths=[{}] * {}",
                    call.batch * columns, call.batch, columns, call.keys, call.batch);
  } else {
    array("cache", call.batch, call.keys, 1);
  }
  if (call.top_k != 0)
    words += fmt::format(",\n    indices=numpy.zeros(({}, {}, {}), numpy.int32)", call.batch, call.rows, call.top_k);
  return text + fmt::format("out{} = engine.attention_latent(q, cache{}{})\nprint(out.shape)\n",
                            call.lse ? ", lse" : "", words, call.lse ? ", lse=True" : "");
}

std::string pytorch_of(const LatentCall& call) {
  const std::string type = choice::torch_type(call.bf16 ? "bf16" : "fp16");
  const std::int64_t columns = call.paged ? call.pages_of_sequence() : 0;
  std::string text = choice::torch_beginning(tools::known_targets().back());
  text += choice::torch_zeros("q", {call.batch, call.rows, call.heads, call.columns}, type);
  text += call.paged ? choice::torch_zeros("cache", {call.batch * columns, call.page, 1, call.columns}, type)
                     : choice::torch_zeros("cache", {call.batch, call.keys, 1, call.columns}, type);
  if (call.paged) text += choice::torch_block_table(call.batch, columns) + choice::torch_lengths(call.batch, call.keys);
  if (call.top_k != 0) text += choice::torch_zeros("indices", {call.batch, call.rows, call.top_k}, "int32");
  std::string words = call.causal ? ", causal=True" : "";
  if (call.paged && call.top_k == 0)
    return text + fmt::format(
                      "\nout, lse = wavejit.torch.flash_mla_with_kvcache(q, cache, block_table, lengths, {}, "
                      "softmax_scale={}{})\nprint(out.shape)\n",
                      call.value_columns, call.scale(), words);
  // FlashMLA's lists are of slots.
  if (call.paged) words += fmt::format(", block_table=block_table, key_lengths=lengths, max_key_length={}", call.keys);
  if (call.top_k != 0) words += ", indices=indices";
  return text + fmt::format("\nout{} = wavejit.torch.attention_latent(q, cache, scale={}{}{})\nprint(out.shape)\n",
                            call.lse ? ", lse" : "", call.scale(), words, call.lse ? ", return_lse=True" : "");
}

}  // namespace

bool is_latent(const Answers& answers) {
  const auto found = answers.find("keys");
  return found != answers.end() && found->second == "latent";
}

std::vector<Question> latent_questions() {
  return {{.name = "latent-heads",
           .text = "Query heads, all of which read the one latent head",
           .usual = "16",
           .accepted = {},
           .problem =
               [](const std::string& text) {
                 const std::int64_t heads = number_or_zero(text);
                 return heads >= 1 && heads <= most_heads
                            ? std::string()
                            : fmt::format("'{}' is not accepted; 1 to {} are", text, most_heads);
               },
           .is_asked = is_latent},
          {.name = "latent-dims",
           .text = "Columns of a key, and how many of them are its value",
           .usual = "576/512",
           .accepted = {"576/512", "512", "320/256"},
           .problem = nullptr,
           .is_asked = is_latent}};
}

tools::Result<ChosenCall> latent_call(const Answers& answers) {
  if (const auto mask = answers.find("mask"); mask != answers.end() && mask->second == "window")
    return tools::failed(tools::ExitCode::usage,
                         "--mask window: latent attention has no windows; all, causal are accepted");
  if (has_block_lists(answers))
    return tools::failed(tools::ExitCode::usage,
                         "--lists blocks: latent attention has no lists of blocks; none, keys are accepted");
  const LatentCall call = latent_call_of(answers);
  return ChosenCall{.variant = "mla",
                    .descriptor = descriptor_of(call),
                    .cpp = cpp_of(call),
                    .python = python_of(call),
                    .pytorch = pytorch_of(call)};
}

}  // namespace wavejit::attention_forward::program
