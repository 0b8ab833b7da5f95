// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/array_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "templates/attention/program/attention_options.h"
#include "templates/attention/program/option_texts.h"
#include "templates/attention_backward/call/sums.h"
#include "templates/attention_backward/program/device_call.h"
#include "tools/array_run.h"

namespace wavejit::attention_backward::program {
namespace {

using namespace tools;
using attention::Extent;
using attention::Modifier;
using attention::program::AttentionOptions;

// Tensors first, then numbers of rows, then sums.
enum InputRows : std::size_t {
  q,
  k,
  v,
  o,
  d_o,
  tensor_count,
  lse = tensor_count,
  d_lse,
  dq_before,
  dk_before,
  dv_before
};
constexpr FileRow input_rows[] = {
    {.field = "q", .help = "queries [batch, length, heads, head dim]"},
    {.field = "k", .help = "keys [batch, length, kv heads, head dim]"},
    {.field = "v", .help = "values, shaped as the keys; their head dim may be another"},
    {.field = "o", .help = "what the forward call gave, shaped as the queries with the values' head dim"},
    {.field = "do", .help = "the gradient of O, shaped as it"},
    {.field = "lse", .help = "the log-sum-exp of the forward call [batch, heads, length], float32"},
    {.field = "d-lse", .help = "the gradient of the log-sum-exp, shaped as it, float32", .required = false},
    {.field = "dq-before", .help = "sums of dq that an earlier call with --sums-behind wrote", .required = false},
    {.field = "dk-before", .help = "the same of dk, beside --dv-before", .required = false},
    {.field = "dv-before", .help = "the same of dv, beside --dk-before", .required = false},
};
// In the order of gradient_rows.
enum OutputRows : std::size_t { dq, dk, dv, d_sink, d_bias };
constexpr FileRow output_rows[] = {
    {.field = "dq", .help = "the gradient of the queries, shaped as they are, float32", .required = false},
    {.field = "dk", .help = "the gradient of the keys, summed over the query heads of a kv head", .required = false},
    {.field = "dv", .help = "the gradient of the values, summed in the same way", .required = false},
    {.field = "d-sink",
     .help = "the gradient of the sinks (--sink), of each sequence by itself [batch, heads]",
     .required = false},
    {.field = "d-bias",
     .help = "the gradient of the bias (--bias), shaped as it: summed over what it broadcasts",
     .required = false},
};
struct GradientRow {
  Gradient Gradients::* exact;
  void* DevicePointers::* memory;
};
constexpr GradientRow gradient_rows[] = {{&Gradients::dq, &DevicePointers::dq},
                                         {&Gradients::dk, &DevicePointers::dk},
                                         {&Gradients::dv, &DevicePointers::dv},
                                         {&Gradients::d_sink, &DevicePointers::d_sink},
                                         {&Gradients::d_bias, &DevicePointers::d_bias}};

std::string accepted_shape(std::size_t i, std::span<const Shape> shapes) {
  const Shape& queries = shapes[q];
  const Shape& keys = shapes[k];
  if (i == q) return std::ranges::min(queries) < 1 ? "[batch, length, heads, head dim], each at least 1," : "";
  if (i == k)
    return keys[0] != queries[0] || keys[3] != queries[3] || keys[1] < 1 || keys[2] < 1 || queries[2] % keys[2] != 0
               ? fmt::format("[{}, length, a number of heads that divides {}, {}]", queries[0], queries[2], queries[3])
               : "";
  Shape wanted = i == v ? keys : queries;
  wanted[3] = std::max<std::int64_t>(shapes[v][3], 1);
  return shapes[i] == wanted ? "" : to_text(wanted);
}

class GradientsRun final
    : public ArrayRunOf<wavejit_attention_backward_arguments, WAVEJIT_ATTENTION_BACKWARD, wavejit_attention_backward> {
 public:
  GradientsRun() : ArrayRunOf(input_rows, output_rows) {}

 private:
  void add_own(CLI::App& command) override {
    options_.add_to(command);
    command.add_flag("--gradients-fp32", arrays_.experiment.output_fp32,
                     "the kernels write gradients in fp32 and do not round them to --dtype");
    attention::program::add_parsed(
        command, "--sums-behind", sums_behind_, "LIST",
        "dq, dk_dv or dq,dk_dv: a later call goes on with these sums, so they get no scale yet", sums_of_text,
        "dq, dk_dv and dq,dk_dv are");
  }
  std::vector<NamedFile> own_inputs() const override { return options_.inputs(); }

  Result<void> read_arrays(std::vector<std::string>& notes) override {
    for (const auto& [modifier, out, field] :
         {std::tuple(Modifier::sink, d_sink, "sink"), {Modifier::bias, d_bias, "bias"}})
      if (output(out).asked() && !options_.given(modifier))
        return failed(ExitCode::usage, fmt::format("--d-{0} needs --{0} FILE.npy, the {0} of the forward call", field));
    if (auto asked = read_sums_asked(); !asked) return asked;
    if (auto read = read_halves(tensor_count, options_.type(), accepted_shape, notes); !read) return read;
    if (auto read = options_.read(shape_of(q), shape_of(k)); !read) return read;
    for (const auto& [tensor, values] :
         {std::pair(q, &arrays_.q), {k, &arrays_.k}, {v, &arrays_.v}, {o, &arrays_.o}, {d_o, &arrays_.d_o}})
      *values = std::move(input(tensor).array.values);
    describe();
    read_modifiers();
    for (const auto& [rows, values] : {std::pair(lse, &arrays_.lse), {d_lse, &arrays_.d_lse}}) {
      const auto& [batch, length, heads, dims] = shape_of(q);
      const std::int64_t of_rows[] = {batch, heads, length};
      if (auto read = read_numbers(read_npy_row_numbers, rows, of_rows, *values); !read) return read;
    }
    for (const auto& [sums, tensor, values] : {std::tuple(dq_before, q, &arrays_.dq_before),
                                               {dk_before, k, &arrays_.dk_before},
                                               {dv_before, v, &arrays_.dv_before}})
      if (auto read = read_numbers(read_npy_floats, sums, shape_of(tensor), *values); !read) return read;
    say_gradients();
    return {};
  }

  void fill(wavejit_attention_backward_arguments& call, CallMemory& memory) override {
    pointers_ = {.q = memory.in(arrays_.q),
                 .k = memory.in(arrays_.k),
                 .v = memory.in(arrays_.v),
                 .o = memory.in(arrays_.o),
                 .d_o = memory.in(arrays_.d_o),
                 .lse = memory.in(arrays_.lse),
                 .d_lse = memory.in(arrays_.d_lse),
                 .sinks = output(d_sink).asked() ? memory.in(arrays_.sinks) : nullptr,
                 .slopes = memory.in(arrays_.slopes),
                 .bias = memory.in(bias_bytes(arrays_))};
    for (std::size_t i = 0; i < std::size(gradient_rows); ++i) pointers_.*gradient_rows[i].memory = output(i).memory;
    call = call_of(arrays_, pointers_);
  }

  Comparison check() const override {
    const Gradients exact = exact_gradients(arrays_);
    BoundChecker checker;
    for (std::size_t i = 0; i < std::size(gradient_rows); ++i) {
      const Output& answer = output(i);
      if (!answer.written) continue;
      const Gradient& gradient = exact.*gradient_rows[i].exact;
      const std::vector<float> values = numbers(answer);
      const std::size_t columns = answer.columns();
      for (std::size_t row = 0; row < answer.rows(); ++row) {
        const std::size_t at = row * static_cast<std::size_t>(answer.stride);
        const std::vector<double> bounds = bounds_of(arrays_, gradient, at, columns);
        checker.row(place_of(i, static_cast<std::int64_t>(row)), std::span(gradient.values).subspan(at, columns),
                    bounds, std::span(values).subspan(row * columns, columns));
      }
    }
    return checker.comparison();
  }

  // Tensors are [batch, rows, heads, …], a bias is [batch, heads, rows, …].
  RowPlace place_of(std::size_t gradient, std::int64_t row) const {
    const std::vector<std::int64_t>& shape = output(gradient).shape;
    if (shape.size() < 4) return {.sequence = row, .token = 0, .head = 0};
    RowPlace place = {
        .sequence = row / (shape[1] * shape[2]), .token = row / shape[2] % shape[1], .head = row % shape[2]};
    if (gradient == d_bias) std::swap(place.token, place.head);
    return place;
  }

  const Shape& shape_of(InputRows tensor) const { return input(tensor).array.shape; }

  template <typename Read>
  Result<void> read_numbers(Read read, InputRows file, std::span<const std::int64_t> shape, std::vector<float>& to) {
    if (!input(file).given()) return {};
    auto values = read_shaped(read, input(file).row->field, input(file).path, shape);
    if (!values) return std::unexpected(values.error());
    to = *std::move(values);
    return {};
  }

  // Before any file is read.
  Result<void> read_sums_asked() {
    const bool of_dq = input(dq_before).given();
    const bool of_dk_dv = input(dk_before).given();
    if (of_dk_dv != input(dv_before).given())
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

  void describe() {
    attention::program::Experiment& of = arrays_.experiment;
    const auto& [batch, query_length, query_heads, head_dim_qk] = shape_of(q);
    of.type = options_.type();
    of.batch = batch;
    of.query_length = query_length;
    of.key_length = shape_of(k)[1];
    of.query_heads = query_heads;
    of.kv_heads = shape_of(k)[2];
    of.head_dim_qk = head_dim_qk;
    of.head_dim_v = shape_of(v)[3];
    of.mask = options_.mask();
    of.scale = options_.scale();
    arrays_.with_d_lse = input(d_lse).given();
    arrays_.estimated = true;  // o and LSE are whatever the files say
  }

  // In the order of the reference: extents of the experiment, numbers of the arrays.
  void read_modifiers() {
    attention::program::Experiment& of = arrays_.experiment;
    const auto told = [&](Modifier modifier) -> attention::program::ToldModifier& {
      return of.modifiers[static_cast<std::size_t>(modifier)];
    };
    told(Modifier::softcap).number = options_.number(Modifier::softcap);
    if (const auto& sinks = options_.vector(Modifier::sink)) arrays_.sinks = sinks->values;
    if (const auto& slopes = options_.vector(Modifier::alibi)) {
      arrays_.slopes = slopes->values;
      told(Modifier::alibi).extent =
          std::ssize(slopes->values) == of.query_heads ? Extent::head : Extent::batch_and_head;
    }
    const auto& bias = options_.bias();
    if (!bias) return;
    const Shape& shape = bias->shape;
    told(Modifier::bias).extent = shape[0] != 1   ? (shape[1] != 1 ? Extent::batch_and_head : Extent::batch)
                                  : shape[1] != 1 ? Extent::head
                                                  : Extent::one;
    const attention::program::BiasPlacement placement = attention::program::bias_of(of);
    arrays_.bias.resize(static_cast<std::size_t>(placement.elements()));
    for (std::int64_t i = 0; i < std::ssize(bias->values); ++i)
      arrays_.bias[static_cast<std::size_t>((i / shape[3] * placement.row_stride) + (i % shape[3]))] =
          decode(of.type, bias->values[static_cast<std::size_t>(i)]);
    arrays_.with_d_bias = output(d_bias).asked();
    arrays_.d_bias_fp32 = arrays_.with_d_bias && of.output_fp32;
  }

  void say_gradients() {
    const attention::program::Experiment& of = arrays_.experiment;
    const std::int32_t type = of.output_fp32 ? WAVEJIT_FP32 : type_of(of.type);
    for (const auto& [out, tensor, before] :
         {std::tuple(dq, q, &arrays_.dq_before), {dk, k, &arrays_.dk_before}, {dv, v, &arrays_.dv_before}}) {
      const Shape& shape = shape_of(tensor);
      say(output(out), type, {shape.begin(), shape.end()});
      output(out).before = std::as_bytes(std::span(*before));
    }
    if (output(d_sink).asked()) say(output(d_sink), WAVEJIT_FP32, {of.batch, of.query_heads});
    if (!arrays_.with_d_bias) return;
    const attention::program::BiasPlacement bias = attention::program::bias_of(of);
    say(output(d_bias), type, {bias.batches, bias.heads, bias.rows, bias.columns});
    output(d_bias).stride = bias.row_stride;
  }

  AttentionOptions options_{{}};
  std::string sums_behind_;
  Arrays arrays_;
  DevicePointers pointers_;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<GradientsRun>(); }

}  // namespace wavejit::attention_backward::program
