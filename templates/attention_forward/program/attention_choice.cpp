// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/attention_choice.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace wavejit::attention_forward::program::choice {

using tools::Answers;

namespace {

std::int64_t number_of(const Answers& answers, const std::string& name) { return number(answers.at(name)).value_or(1); }

// By the first of its words that has a name.
std::string variant_of(const AttentionChoice& call, const Answers& answers) {
  if (call.queries == integers) return "int8";
  if (!call.queries.empty()) return "fp8-queries";
  if (!call.cache.empty()) return "fp8";
  if (call.top_k != 0) return "top-k";
  if (!call.blocks.word.empty()) return "block-sparse";
  if (is_decode(answers)) return "decode";
  if (call.is_paged) return "paged";
  if (call.is_packed) return "packed";
  if (said(answers, "lengths", "padded")) return "padded";
  if (!call.window.empty()) return "windowed";
  if (!call.local_chunk.empty()) return "chunked";
  if (call.causal) return "causal";
  return call.kv_heads == call.heads ? "mha" : call.kv_heads == 1 ? "mqa" : "gqa";
}

}  // namespace

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

bool said(const Answers& answers, const std::string& name, const std::string& value) {
  const auto found = answers.find(name);
  return found != answers.end() && found->second == value;
}

bool is_paged(const Answers& answers) { return said(answers, "cache", "paged"); }
bool is_decode(const Answers& answers) { return said(answers, "use", "decode"); }
bool has_key_lists(const Answers& answers) { return said(answers, "lists", "keys"); }
bool has_byte_queries(const Answers& answers) {
  return answers.contains("q-dtype") && !said(answers, "q-dtype", "as-output");
}
bool has_eight_bits(const Answers& answers) {
  return has_byte_queries(answers) || (answers.contains("kv-dtype") && !said(answers, "kv-dtype", "as-queries"));
}

std::vector<std::string> scaled_tensors(const AttentionChoice& call) {
  if (call.scales.empty()) return {};
  if (call.queries == integers) return {"q", "k"};
  return call.queries.empty() ? std::vector<std::string>{"k", "v"} : std::vector<std::string>{"q", "k", "v"};
}

AttentionChoice choice_of(const Answers& answers) {
  const std::string& heads = answers.at("heads");
  const std::string& dims = answers.at("head-dim");
  const std::size_t slash = heads.find('/');
  const std::size_t dims_slash = dims.find('/');
  const bool byte_queries = has_byte_queries(answers);
  const bool has_scales = has_eight_bits(answers) && !said(answers, "kv-scales", "none");
  AttentionChoice call = {
      .type = answers.at("dtype"),
      .dims = dims,
      .batch = number_of(answers, "batch"),
      .rows = is_decode(answers) ? 1 : number_of(answers, "query-length"),
      .keys = number_of(answers, "key-length"),
      .heads = number(heads.substr(0, slash)).value_or(1),
      .kv_heads = number(slash == std::string::npos ? heads : heads.substr(slash + 1)).value_or(1),
      .head_dim = number(dims.substr(0, dims_slash)).value_or(64),
      .head_dim_v = number(dims_slash == std::string::npos ? dims : dims.substr(dims_slash + 1)).value_or(64),
      .page = is_paged(answers) ? number_of(answers, "page-size") : 0,
      .top_k = has_key_lists(answers) ? number_of(answers, "top-k") : 0,
      .causal = answers.contains("mask") && !said(answers, "mask", "all"),
      .is_paged = is_paged(answers),
      .is_packed = said(answers, "lengths", "packed"),
      .lse = said(answers, "lse", "yes"),
      .queries = byte_queries ? answers.at("q-dtype") : "",
      .cache = !byte_queries && has_eight_bits(answers) ? answers.at("kv-dtype") : "",
      .scales = has_scales ? answers.at("kv-scales") : "",
      .window = said(answers, "mask", "window") ? answers.at("window") : "",
      .local_chunk = said(answers, "mask", "chunked") ? answers.at("local-chunk") : "",
      .causal_flags = said(answers, "mask", "flags"),
      .variant = {},
      .blocks = {}};
  call.blocks = block_lists_of(answers, call.rows, call.keys);
  call.variant = variant_of(call, answers);
  return call;
}

std::string descriptor_of(const AttentionChoice& call, const Answers& answers) {
  std::string text = fmt::format("attention_forward {} b{} q{} k{} h{} d{}", call.type, call.batch, call.rows,
                                 call.keys, answers.at("heads"), call.dims);
  if (call.causal) text += " causal";
  if (!call.window.empty()) text += fmt::format(" window={},0", call.window);
  if (!call.local_chunk.empty()) text += fmt::format(" chunked={}", call.local_chunk);
  if (call.causal_flags) text += " causal_flags";
  if (!call.queries.empty()) text += fmt::format(" {}={}", call.queries == integers ? "qk" : "queries", call.queries);
  if (call.lse) text += " lse";
  if (call.is_paged) text += fmt::format(" layout=paged:{}", call.page);
  if (call.is_packed && !call.is_paged) text += " layout=packed";
  // Told for every sequence: that lengths are told is what counts.
  if (said(answers, "lengths", "padded") && !call.is_paged) {
    text += " k_lengths=";
    for (std::int64_t b = 0; b < call.batch; ++b) text += fmt::format("{}{}", b == 0 ? "" : ",", call.keys);
  }
  if (!call.cache.empty()) text += fmt::format(" cache={}", call.cache);
  // Scales of integers for heads and less are arguments of every kernel.
  if (!call.scales.empty() && (call.queries != integers || call.scales == of_tokens))
    text += fmt::format(" cache_scales={}", call.scales);
  if (!call.blocks.word.empty()) text += fmt::format(" lists={}", call.blocks.word);
  if (call.top_k != 0) text += fmt::format(" top_k={}", call.top_k);
  return text;
}

std::string problem_of(const AttentionChoice& call, const Answers& answers) {
  if (call.top_k != 0 && said(answers, "mask", "window"))
    return "--mask window: lists of keys have no windows; all, causal are accepted";
  if (call.scales != of_tokens) return {};
  if (!call.queries.empty() && call.queries != integers)
    return "--kv-scales token: queries in e4m3 have no scales of tokens; none, 1, h, b, bh are accepted";
  if (call.top_k != 0 || !call.blocks.word.empty())
    return "--kv-scales token: lists have no scales of tokens; none, 1, h, b, bh are accepted";
  return {};
}

}  // namespace wavejit::attention_forward::program::choice
