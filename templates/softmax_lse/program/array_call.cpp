// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/program/array_call.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/program/mask_options.h"
#include "templates/attention/program/option_texts.h"
#include "templates/softmax_lse/program/reference.h"
#include "tools/all_cores.h"
#include "tools/array_run.h"
#include "tools/engine_options.h"
#include "tools/stored_numbers.h"

namespace wavejit::softmax_lse::program {
namespace {

using namespace tools;
using attention::program::add_parsed;
using attention::program::MaskOptions;
using attention::program::parse_finite;
using attention::program::rules_of;
using attention::program::ScoreRules;
using attention::program::visible_keys;
using tools::Result;

constexpr FileRow input_rows[] = {{.field = "scores", .help = "scores [batch, heads, rows, keys]"}};
enum OutputRows : std::size_t { out, lse };
constexpr FileRow output_rows[] = {
    {.field = "out", .help = "the weights, shaped as the scores, float32", .required = false},
    {.field = "lse", .help = "the log-sum-exp [batch, heads, rows], float32", .required = false},
};

class SoftmaxRun final : public ArrayRunOf<wavejit_softmax_lse_arguments, WAVEJIT_SOFTMAX_LSE, wavejit_softmax_lse> {
 public:
  SoftmaxRun() : ArrayRunOf(input_rows, output_rows) {}

 private:
  void add_own(CLI::App& command) override {
    add_choice(command, "--dtype", scores_type_, {"fp32", "fp16", "bf16"}, "of the scores, which are rounded to it")
        ->capture_default_str();
    add_choice(command, "--weights", weights_type_, {"fp32", "fp16", "bf16"}, "what the kernel rounds weights to")
        ->capture_default_str();
    mask_.add_to(command, "row");
    add_parsed(command, "--scale", scale_, "NUMBER", "of the scores before the softmax (default: 1)", parse_finite,
               "finite numbers are, as 0.125");
  }

  Result<void> read_arrays(std::vector<std::string>& notes) override {
    auto scores = read_stored("scores", input(0).path, scores_type_, notes);
    if (!scores) return std::unexpected(scores.error());
    const Shape& shape = scores->shape;
    if (std::ranges::min(shape) < 1)
      return bad_shape("scores", input(0).path, shape, "[batch, heads, rows, keys], each at least 1,");
    if (output(out).asked()) say(output(out), type_named(weights_type_), {shape.begin(), shape.end()});
    if (output(lse).asked()) say(output(lse), WAVEJIT_FP32, {shape[0], shape[1], shape[2]});
    scores_ = *std::move(scores);
    return {};
  }

  void fill(wavejit_softmax_lse_arguments& call, CallMemory& memory) override {
    const Shape& shape = scores_.shape;
    call.scores = wavejit_dense_tensor(memory.in(scores_.bytes), static_cast<wavejit_dtype>(type_named(scores_type_)),
                                       shape[0], shape[1], shape[2], shape[3]);
    if (output(out).written) call.weights = output(out).tensor();
    if (output(lse).written) call.lse = output(lse).tensor();
    call.scale = scale();
    if (call.scale == 0) call.head.flags = WAVEJIT_SCALE_IS_ZERO;
    mask_.describe(call.mask);
  }

  // Weights are the values of rows that have length 1, one a key.
  Comparison check() const override {
    const Shape& shape = scores_.shape;
    const auto keys = static_cast<std::size_t>(shape[3]);
    std::vector<ExactRow> exact(rows());
    const ScoreRules rules = rules_of(mask_.given(), shape[2], shape[3]);
    on_all_cores(exact.size(), [&](std::size_t row) {
      const auto [begin, end] = visible_keys(rules, static_cast<std::int64_t>(row) % shape[2], shape[3]);
      exact[row] = exact_row(of_row(scores_.values, row), static_cast<double>(scale()), begin, end);
    });
    const std::int32_t type = type_named(weights_type_);
    Checker checker(type == WAVEJIT_FP32 ? fp32_format : type == WAVEJIT_FP16 ? fp16_format : bf16_format);
    const std::vector<float> weights = numbers(output(out));
    const std::vector<float> log_sums = numbers(output(lse));
    for (std::size_t row = 0; row < exact.size(); ++row) {
      const std::vector<double>& wanted = exact[row].weights;
      double spread = 0;
      double score = 0;
      for (std::size_t key = 0; key < keys; ++key) {
        spread += wanted[key] * wanted[key];
        if (wanted[key] > 0)
          score += wanted[key] * std::fabs(static_cast<double>(scores_.values[(row * keys) + key] * scale()));
      }
      const std::span<const double> judged =
          output(out).written ? std::span<const double>(wanted) : std::span<const double>();
      const auto number = static_cast<std::int64_t>(row);
      checker.row({.sequence = number / (shape[1] * shape[2]),
                   .token = number % shape[2],
                   .head = number / shape[2] % shape[1]},
                  {.output = judged,
                   .magnitude = judged,
                   .spread = spread,
                   .score = score,
                   .lse = exact[row].log_sum_exp,
                   .largest = exact[row].largest},
                  {.output = output(out).written ? of_row(weights, row) : std::span<const float>(),
                   .lse = output(lse).written ? std::optional(log_sums[row]) : std::nullopt});
    }
    return checker.comparison();
  }

  std::size_t rows() const { return scores_.values.size() / static_cast<std::size_t>(scores_.shape[3]); }
  float scale() const { return parse_finite(scale_).value_or(1.0F); }
  std::span<const float> of_row(const std::vector<float>& values, std::size_t row) const {
    const auto keys = static_cast<std::size_t>(scores_.shape[3]);
    return std::span(values).subspan(row * keys, keys);
  }

  std::string scores_type_ = "fp32";
  std::string weights_type_ = "fp32";
  MaskOptions mask_;
  std::string scale_;
  StoredArray scores_;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<SoftmaxRun>(); }

}  // namespace wavejit::softmax_lse::program
