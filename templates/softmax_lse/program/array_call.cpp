// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/program/array_call.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/program/mask_options.h"
#include "templates/attention/program/option_texts.h"
#include "templates/softmax_lse/program/reference.h"
#include "tools/all_cores.h"
#include "tools/device_array.h"
#include "tools/engine_options.h"
#include "tools/npy.h"
#include "tools/stored_numbers.h"

namespace wavejit::softmax_lse::program {
namespace {

using namespace tools;
using attention::program::add_parsed;
using attention::program::MaskOptions;
using attention::program::parse_number;
using attention::program::rules_of;
using attention::program::ScoreRules;
using attention::program::visible_keys;
using tools::Result;

std::optional<float> parse_scale(const std::string& text) {
  const auto value = parse_number<float>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// Device memory of the call.
struct OnDevice {
  DeviceArray scores;
  DeviceArray weights;
  DeviceArray lse;
};

class SoftmaxCall : public ArrayCall {
 public:
  void add_options(CLI::App& command) override {
    command.add_option("--scores", scores_file_, "scores [batch, heads, rows, keys]")
        ->required()
        ->type_name("FILE.npy");
    command.add_option("--out", out_file_, "the weights, shaped as the scores, float32")->type_name("FILE.npy");
    command.add_option("--lse", lse_file_, "the log-sum-exp [batch, heads, rows], float32")->type_name("FILE.npy");
    add_choice(command, "--dtype", scores_type_, {"fp32", "fp16", "bf16"}, "of the scores, which are rounded to it")
        ->capture_default_str();
    add_choice(command, "--weights", weights_type_, {"fp32", "fp16", "bf16"}, "what the kernel rounds weights to")
        ->capture_default_str();
    mask_.add_to(command, "row");
    add_parsed(command, "--scale", scale_, "NUMBER", "of the scores before the softmax (default: 1)", parse_scale,
               "finite numbers are, as 0.125");
  }

  Result<void> read(std::vector<std::string>& notes) override {
    if (out_file_.empty() && lse_file_.empty())
      return failed(ExitCode::usage,
                    "nothing is asked for; --out FILE.npy and --lse FILE.npy are accepted, or one of them");
    auto scores = read_npy_floats("scores", scores_file_);
    if (!scores) return std::unexpected(scores.error());
    shape_ = scores->shape;
    for (const std::int64_t size : shape_)
      if (size < 1)
        return failed(ExitCode::file, fmt::format("--scores {}: its shape is {}; [batch, heads, rows, keys], each at "
                                                  "least 1, is accepted",
                                                  scores_file_, tools::to_text(shape_)));
    input_ = stored(scores->values, type_named(scores_type_));
    scores_ = numbers(input_, type_named(scores_type_));
    std::uint64_t became_infinite = 0;
    for (std::size_t i = 0; i < scores_.size(); ++i)
      became_infinite += std::isfinite(scores->values[i]) && !std::isfinite(scores_[i]) ? 1 : 0;
    if (became_infinite > 0)
      notes.push_back(fmt::format("scores has {} values beyond the range of {}; they became infinite", became_infinite,
                                  scores_type_));
    return {};
  }

  std::vector<NamedFile> inputs() const override { return {{"scores", scores_file_}}; }
  std::vector<NamedFile> outputs() const override {
    std::vector<NamedFile> files;
    if (with_weights()) files.push_back({"out", out_file_});
    if (with_lse()) files.push_back({"lse", lse_file_});
    return files;
  }

  Result<void> prepare(wavejit_engine* engine) override {
    engine_ = engine;
    auto scores = DeviceArray::allocate(engine, input_.size());
    auto weights =
        DeviceArray::allocate(engine, with_weights() ? scores_.size() * bytes_of_type(type_named(weights_type_)) : 0);
    auto lse = DeviceArray::allocate(engine, with_lse() ? rows() * sizeof(float) : 0);
    for (const auto* array : {&scores, &weights, &lse})
      if (!*array) return std::unexpected(array->error());
    if (auto copied = scores->copy_in(input_.data()); !copied) return copied;
    memory_.emplace(std::move(*scores), std::move(*weights), std::move(*lse));
    return {};
  }
  void release() override { memory_.reset(); }

  Result<void> launch(wavejit_call_report* report) override {
    wavejit_softmax_lse_arguments call{};
    call.head.size = sizeof call;
    call.head.family = WAVEJIT_SOFTMAX_LSE;
    call.scores = tensor(memory_->scores, scores_type_, shape_[3]);
    if (with_weights()) call.weights = tensor(memory_->weights, weights_type_, shape_[3]);
    if (with_lse()) call.lse = tensor(memory_->lse, "fp32", 1);
    call.scale = scale();
    if (call.scale == 0) call.head.flags = WAVEJIT_SCALE_IS_ZERO;
    mask_.describe(call.mask);
    call.head.report = report;
    return checked(wavejit_softmax_lse(engine_, &call, nullptr));
  }

  Result<bool> fetch() override {
    std::vector<std::byte> weights(with_weights() ? scores_.size() * bytes_of_type(type_named(weights_type_)) : 0);
    std::vector<float> lse(with_lse() ? rows() : 0);
    if (auto copied = memory_->weights.copy_out(weights.data()); !copied) return std::unexpected(copied.error());
    if (auto copied = memory_->lse.copy_out(lse.data()); !copied) return std::unexpected(copied.error());
    if (fetched_) return weights == weights_ && std::memcmp(lse.data(), lse_.data(), lse.size() * sizeof(float)) == 0;
    weights_ = std::move(weights);
    lse_ = std::move(lse);
    fetched_ = true;
    return true;
  }

  // Weights are the values of rows that have length 1, one a key.
  Comparison check() const override {
    const auto keys = static_cast<std::size_t>(shape_[3]);
    std::vector<ExactRow> exact(rows());
    const ScoreRules rules = rules_of(mask_.given(), shape_[2], shape_[3]);
    on_all_cores(exact.size(), [&](std::size_t row) {
      const auto [begin, end] = visible_keys(rules, static_cast<std::int64_t>(row) % shape_[2], shape_[3]);
      exact[row] = exact_row(of_row(scores_, row), static_cast<double>(scale()), begin, end);
    });
    const std::int32_t type = type_named(weights_type_);
    Checker checker(type == WAVEJIT_FP32 ? fp32_format : type == WAVEJIT_FP16 ? fp16_format : bf16_format);
    const std::vector<float> weights = numbers(weights_, type);
    for (std::size_t row = 0; row < exact.size(); ++row) {
      const std::vector<double>& wanted = exact[row].weights;
      double spread = 0;
      double score = 0;
      for (std::size_t key = 0; key < keys; ++key) {
        spread += wanted[key] * wanted[key];
        if (wanted[key] > 0)
          score += wanted[key] * std::fabs(static_cast<double>(scores_[(row * keys) + key] * scale()));
      }
      const std::span<const double> judged =
          with_weights() ? std::span<const double>(wanted) : std::span<const double>();
      const auto number = static_cast<std::int64_t>(row);
      checker.row({.sequence = number / (shape_[1] * shape_[2]),
                   .token = number % shape_[2],
                   .head = number / shape_[2] % shape_[1]},
                  {.output = judged,
                   .magnitude = judged,
                   .spread = spread,
                   .score = score,
                   .lse = exact[row].log_sum_exp,
                   .largest = exact[row].largest},
                  {.output = with_weights() ? of_row(weights, row) : std::span<const float>(),
                   .lse = with_lse() ? std::optional(lse_[row]) : std::nullopt});
    }
    return checker.comparison();
  }

  std::vector<OutputArray> answers() const override {
    std::vector<OutputArray> arrays;
    if (with_weights())
      arrays.push_back({npy_bytes(numbers(weights_, type_named(weights_type_)), shape_), tools::to_text(shape_)});
    if (with_lse()) {
      const std::vector<std::int64_t> shape = {shape_[0], shape_[1], shape_[2]};
      arrays.push_back({npy_bytes(lse_, shape), fmt::format("[{}, {}, {}]", shape[0], shape[1], shape[2])});
    }
    return arrays;
  }

 private:
  bool with_weights() const { return !out_file_.empty(); }
  bool with_lse() const { return !lse_file_.empty(); }
  std::size_t rows() const { return static_cast<std::size_t>(shape_[0] * shape_[1] * shape_[2]); }
  float scale() const { return parse_scale(scale_).value_or(1.0F); }
  std::span<const float> of_row(const std::vector<float>& values, std::size_t row) const {
    const auto keys = static_cast<std::size_t>(shape_[3]);
    return std::span(values).subspan(row * keys, keys);
  }
  wavejit_tensor tensor(const DeviceArray& memory, const std::string& type, std::int64_t last) const {
    return wavejit_dense_tensor(memory.data(), static_cast<wavejit_dtype>(type_named(type)), shape_[0], shape_[1],
                                shape_[2], last);
  }

  std::string scores_file_;
  std::string out_file_;
  std::string lse_file_;
  std::string scores_type_ = "fp32";
  std::string weights_type_ = "fp32";
  MaskOptions mask_;
  std::string scale_;

  wavejit_engine* engine_ = nullptr;
  Shape shape_{};
  std::vector<std::byte> input_;  // as the device gets them
  std::vector<float> scores_;     // the same, as numbers
  std::optional<OnDevice> memory_;
  bool fetched_ = false;
  std::vector<std::byte> weights_;
  std::vector<float> lse_;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<SoftmaxCall>(); }

}  // namespace wavejit::softmax_lse::program
