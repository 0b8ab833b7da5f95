// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/gradient_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "templates/attention/program/option_texts.h"
#include "templates/attention_backward/call/sums.h"

namespace wavejit::attention_backward::program {

using namespace tools;
using attention::Extent;
using attention::Modifier;
using attention::program::add_parsed;
using attention::program::parse_number;

namespace {

std::optional<float> parse_finite(const std::string& text) {
  const auto value = parse_number<float>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}
std::optional<float> parse_positive(const std::string& text) {
  const auto value = parse_finite(text);
  return value && *value > 0 ? value : std::nullopt;
}

std::unexpected<Failure> bad_shape(const char* field, const std::string& path, const std::string& shape,
                                   const std::string& accepted) {
  return failed(ExitCode::file, fmt::format("--{} {}: its shape is {}; {} is accepted", field, path, shape, accepted));
}

Result<void> read_sums(const char* field, const std::string& path, const Shape& shape, std::vector<float>& to) {
  if (path.empty()) return {};
  auto sums = read_npy_floats(field, path);
  if (!sums) return std::unexpected(sums.error());
  if (sums->shape != shape) return bad_shape(field, path, to_text(sums->shape), to_text(shape));
  to = std::move(sums->values);
  return {};
}

std::vector<NamedFile> named(std::vector<NamedFile> files) {
  std::erase_if(files, [](const NamedFile& file) { return file.path.empty(); });
  return files;
}

}  // namespace

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

void GradientFiles::add_options(CLI::App& command) {
  const auto file = [&](const char* name, std::string& path, const char* help, bool required = true) {
    CLI::Option* option = command.add_option(name, path, help)->type_name("FILE.npy");
    if (required) option->required();
  };
  file("--q", files_.q, "queries [batch, length, heads, head dim]");
  file("--k", files_.k, "keys [batch, length, kv heads, head dim]");
  file("--v", files_.v, "values, shaped as the keys; their head dim may be another");
  file("--o", files_.o, "what the forward call gave, shaped as the queries with the values' head dim");
  file("--lse", files_.lse, "its log-sum-exp [batch, heads, length], float32");
  file("--do", files_.d_o, "the gradient of O, shaped as it");
  file("--d-lse", files_.d_lse, "the gradient of the log-sum-exp, shaped as it, float32", false);
  file("--dq", files_.dq, "the gradient of the queries, shaped as they are, float32", false);
  file("--dk", files_.dk, "the gradient of the keys, summed over the query heads of a kv head", false);
  file("--dv", files_.dv, "the gradient of the values, summed in the same way", false);
  file("--d-sink", files_.d_sink, "the gradient of the sinks, of each sequence by itself [batch, heads]", false);
  file("--d-bias", files_.d_bias, "the gradient of the bias, shaped as it: summed over what it broadcasts", false);
  mask_.add_to(command, "query");
  add_parsed(command, "--softcap", softcap_, "X", "as in the forward call", parse_positive,
             "finite numbers above 0 are");
  file("--bias", files_.bias, "as in the forward call [batch or 1, heads or 1, length, keys]", false);
  file("--alibi", files_.alibi, "slopes as in the forward call [heads] or [batch, heads], float32", false);
  file("--sink", files_.sink, "sinks as in the forward call [heads], float32: --d-sink needs them", false);
  add_parsed(command, "--scale", scale_, "NUMBER", "as in the forward call (default: 1 / sqrt(head dim))", parse_finite,
             "finite numbers are, as 0.125");
  add_choice(command, "--dtype", dtype_, {"fp16", "bf16"}, "the kernels' type; inputs are rounded to it")
      ->capture_default_str();
  command.add_flag("--gradients-fp32", arrays_.experiment.output_fp32,
                   "the kernels write gradients in fp32 and do not round them to --dtype");
  add_parsed(command, "--sums-behind", sums_behind_, "LIST",
             "dq, dk_dv or dq,dk_dv: a later call goes on with these sums, so they get no scale yet", sums_of_text,
             "dq, dk_dv and dq,dk_dv are");
  file("--dq-before", files_.dq_before, "sums of dq that an earlier call with --sums-behind wrote", false);
  file("--dk-before", files_.dk_before, "the same of dk, beside --dv-before", false);
  file("--dv-before", files_.dv_before, "the same of dv, beside --dk-before", false);
}

Result<void> GradientFiles::read(std::vector<std::string>& notes) {
  if (outputs().empty())
    return failed(
        ExitCode::usage,
        "nothing is asked for; --dq, --dk, --dv, --d-sink and --d-bias FILE.npy are accepted, or some of them");
  if (!files_.d_sink.empty() && files_.sink.empty())
    return failed(ExitCode::usage, "--d-sink needs --sink FILE.npy, the sinks of the forward call");
  if (!files_.d_bias.empty() && files_.bias.empty())
    return failed(ExitCode::usage, "--d-bias needs --bias FILE.npy, the bias of the forward call");
  attention::program::Experiment& of = arrays_.experiment;
  if (auto asked = read_sums_asked(); !asked) return asked;
  of.type = *parse_half_type(dtype_);
  if (auto read = read_tensors(notes); !read) return read;
  if (auto read = read_row_numbers("lse", files_.lse, arrays_.lse); !read) return read;
  arrays_.with_d_lse = !files_.d_lse.empty();
  if (arrays_.with_d_lse)
    if (auto read = read_row_numbers("d-lse", files_.d_lse, arrays_.d_lse); !read) return read;
  describe();
  if (auto read = read_slopes(); !read) return read;
  if (auto read = read_sinks(); !read) return read;
  if (auto read = read_bias(); !read) return read;
  arrays_.estimated = true;  // o and LSE are whatever the files say
  if (auto read = read_sums("dq-before", files_.dq_before, shapes_.queries, arrays_.dq_before); !read) return read;
  if (auto read = read_sums("dk-before", files_.dk_before, shapes_.keys, arrays_.dk_before); !read) return read;
  return read_sums("dv-before", files_.dv_before, shapes_.values, arrays_.dv_before);
}

Result<void> GradientFiles::read_tensors(std::vector<std::string>& notes) {
  auto& [queries, keys, values] = shapes_;
  const attention::program::Experiment& of = arrays_.experiment;
  // Headers before elements: a wrong last file is told at once.
  for (const auto& [field, path, shape] :
       {std::tuple("q", &files_.q, &queries), std::tuple("k", &files_.k, &keys), std::tuple("v", &files_.v, &values)}) {
    const auto header = read_npy_header(field, *path);
    if (!header) return std::unexpected(header.error());
    *shape = header->shape;
  }
  if (std::ranges::min(queries) < 1)
    return bad_shape("q", files_.q, to_text(queries), "[batch, length, heads, head dim], each at least 1,");
  if (keys[0] != queries[0] || keys[3] != queries[3] || keys[1] < 1 || keys[2] < 1 || queries[2] % keys[2] != 0)
    return bad_shape(
        "k", files_.k, to_text(keys),
        fmt::format("[{}, length, a number of heads that divides {}, {}]", queries[0], queries[2], queries[3]));
  Shape of_values = keys;
  of_values[3] = std::max<std::int64_t>(values[3], 1);
  Shape outputs = queries;
  outputs[3] = of_values[3];
  struct Input {
    const char* field;
    const std::string* path;
    const Shape* shape;
    std::vector<std::uint16_t>* values;
  };
  const std::array<Input, 5> inputs = {{{"q", &files_.q, &queries, &arrays_.q},
                                        {"k", &files_.k, &keys, &arrays_.k},
                                        {"v", &files_.v, &of_values, &arrays_.v},
                                        {"o", &files_.o, &outputs, &arrays_.o},
                                        {"do", &files_.d_o, &outputs, &arrays_.d_o}}};
  for (const Input& input : inputs) {
    const auto header = read_npy_header(input.field, *input.path);
    if (!header) return std::unexpected(header.error());
    if (header->shape != *input.shape)
      return bad_shape(input.field, *input.path, to_text(header->shape), to_text(*input.shape));
  }
  for (const Input& input : inputs) {
    auto array = read_npy(input.field, *input.path, of.type);
    if (!array) return std::unexpected(array.error());
    if (array->became_infinite > 0)
      notes.push_back(fmt::format("{} has {} values beyond the range of {}; they became infinite", input.field,
                                  array->became_infinite, to_text(of.type)));
    *input.values = std::move(array->values);
  }
  values = of_values;
  return {};
}

Result<void> GradientFiles::read_row_numbers(const char* field, const std::string& path, std::vector<float>& to) const {
  const Shape& queries = shapes_.queries;
  auto numbers = read_npy_row_numbers(field, path);
  if (!numbers) return std::unexpected(numbers.error());
  const std::vector<std::int64_t> wanted = {queries[0], queries[2], queries[1]};
  if (numbers->shape != wanted) return bad_shape(field, path, text_of(numbers->shape), text_of(wanted));
  to = std::move(numbers->values);
  return {};
}

// Before any file is read.
Result<void> GradientFiles::read_sums_asked() {
  const bool of_dq = !files_.dq_before.empty();
  const bool of_dk_dv = !files_.dk_before.empty();
  if (of_dk_dv != !files_.dv_before.empty())
    return failed(ExitCode::usage, fmt::format("--{} alone is not accepted; --dk-before and --dv-before together are",
                                               of_dk_dv ? "dk-before" : "dv-before"));
  arrays_.sums_behind = sums_of_text(sums_behind_).value_or(0);
  arrays_.sums_before = (of_dq ? WAVEJIT_SUMS_OF_DQ : 0U) | (of_dk_dv ? WAVEJIT_SUMS_OF_DK_DV : 0U);
  if ((arrays_.sums_before | arrays_.sums_behind) != 0 && !arrays_.experiment.output_fp32)
    return failed(ExitCode::usage, fmt::format("--{} needs --gradients-fp32: sums of several calls are fp32",
                                               arrays_.sums_behind != 0 ? "sums-behind"
                                               : of_dq                  ? "dq-before"
                                                                        : "dk-before"));
  return {};
}

void GradientFiles::describe() {
  const auto& [queries, keys, values] = shapes_;
  attention::program::Experiment& of = arrays_.experiment;
  of.batch = queries[0];
  of.query_length = queries[1];
  of.key_length = keys[1];
  of.query_heads = queries[2];
  of.kv_heads = keys[2];
  of.head_dim_qk = queries[3];
  of.head_dim_v = values[3];
  const wavejit_masking mask = mask_.given();
  of.mask.bits = mask.bits;
  of.mask.causal_prefix = mask.causal_prefix;
  of.mask.window_left = mask.window_left;
  of.mask.window_right = mask.window_right;
  of.scale = parse_finite(scale_).value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(queries[3]))));
  told(Modifier::softcap).number = parse_positive(softcap_).value_or(0.0F);
}

Result<void> GradientFiles::read_slopes() {
  if (files_.alibi.empty()) return {};
  auto slopes = read_npy_vector("alibi", files_.alibi);
  if (!slopes) return std::unexpected(slopes.error());
  const attention::program::Experiment& of = arrays_.experiment;
  const bool by_batch = slopes->shape == std::vector{of.batch, of.query_heads};
  if (!by_batch && slopes->shape != std::vector{of.query_heads})
    return bad_shape("alibi", files_.alibi, text_of(slopes->shape),
                     fmt::format("[{}] or [{}, {}]", of.query_heads, of.batch, of.query_heads));
  told(Modifier::alibi).extent = by_batch ? Extent::batch_and_head : Extent::head;
  arrays_.slopes = std::move(slopes->values);
  return {};
}

Result<void> GradientFiles::read_sinks() {
  if (files_.sink.empty()) return {};
  auto sinks = read_npy_vector("sink", files_.sink);
  if (!sinks) return std::unexpected(sinks.error());
  const std::int64_t heads = arrays_.experiment.query_heads;
  if (sinks->shape != std::vector{heads})
    return bad_shape("sink", files_.sink, text_of(sinks->shape), fmt::format("[{}]", heads));
  arrays_.sinks = std::move(sinks->values);
  return {};
}

Result<void> GradientFiles::read_bias() {
  if (files_.bias.empty()) return {};
  attention::program::Experiment& of = arrays_.experiment;
  const auto bias = read_npy("bias", files_.bias, of.type);
  if (!bias) return std::unexpected(bias.error());
  const Shape& shape = bias->shape;
  const bool by_batch = shape[0] != 1;
  const bool by_head = shape[1] != 1;
  if ((by_batch && shape[0] != of.batch) || (by_head && shape[1] != of.query_heads) || shape[2] != of.query_length ||
      shape[3] != of.key_length)
    return bad_shape(
        "bias", files_.bias, to_text(shape),
        fmt::format("[{} or 1, {} or 1, {}, {}]", of.batch, of.query_heads, of.query_length, of.key_length));
  told(Modifier::bias).extent =
      by_batch ? (by_head ? Extent::batch_and_head : Extent::batch) : (by_head ? Extent::head : Extent::one);
  const attention::program::BiasPlacement placement = attention::program::bias_of(of);
  arrays_.bias.resize(static_cast<std::size_t>(placement.elements()));
  for (std::int64_t i = 0; i < std::ssize(bias->values); ++i)
    arrays_.bias[static_cast<std::size_t>((i / shape[3] * placement.row_stride) + (i % shape[3]))] =
        decode(of.type, bias->values[static_cast<std::size_t>(i)]);
  arrays_.with_d_bias = !files_.d_bias.empty();
  arrays_.d_bias_fp32 = arrays_.with_d_bias && of.output_fp32;
  return {};
}

std::vector<NamedFile> GradientFiles::inputs() const {
  return named({{"q", files_.q},
                {"k", files_.k},
                {"v", files_.v},
                {"o", files_.o},
                {"lse", files_.lse},
                {"do", files_.d_o},
                {"d-lse", files_.d_lse},
                {"dq-before", files_.dq_before},
                {"dk-before", files_.dk_before},
                {"dv-before", files_.dv_before},
                {"bias", files_.bias},
                {"alibi", files_.alibi},
                {"sink", files_.sink}});
}
std::vector<NamedFile> GradientFiles::outputs() const {
  return named(
      {{"dq", files_.dq}, {"dk", files_.dk}, {"dv", files_.dv}, {"d-sink", files_.d_sink}, {"d-bias", files_.d_bias}});
}

}  // namespace wavejit::attention_backward::program
