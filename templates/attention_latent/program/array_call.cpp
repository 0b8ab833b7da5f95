// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/array_call.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/program/mask_options.h"
#include "templates/attention/program/option_texts.h"
#include "templates/attention/program/reference.h"
#include "templates/attention_latent/kernel/spec.h"
#include "tools/invariance/call_memory.h"
#include "tools/npy.h"

namespace wavejit::attention_latent::program {
namespace {

using namespace tools;
using attention::program::add_parsed;
using attention::program::parse_number;

std::optional<float> parse_finite(const std::string& text) {
  const auto value = parse_number<float>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}
std::optional<float> parse_positive(const std::string& text) {
  const auto value = parse_finite(text);
  return value && *value > 0 ? value : std::nullopt;
}
std::optional<std::int32_t> parse_splits(const std::string& text) {
  if (text == "auto") return 0;
  const auto value = parse_number<std::int32_t>(text);
  return value && *value >= 1 ? value : std::nullopt;
}

std::unexpected<Failure> bad_shape(const char* field, const std::string& path, const std::string& shape,
                                   const std::string& accepted) {
  return failed(ExitCode::file, fmt::format("--{} {}: its shape is {}; {} is accepted", field, path, shape, accepted));
}

// The columns of V for keys of the width of `q`. The error lists the widths that there are.
Result<std::int64_t> value_dims(const std::string& path, const Shape& q) {
  std::string known;
  for (const auto& [dims, name] : dims_names) {
    const HeadDims of = head_dims(dims);
    if (of.qk == q[3]) return of.v;
    known += (known.empty() ? "" : " or ") + std::to_string(of.qk);
  }
  return bad_shape("q", path, tools::to_text(q), fmt::format("[batch, length, heads, {}]", known));
}

struct Files {
  std::string q, k, sink;
  std::string out, lse;
};

class LatentRun : public ArrayCall {
 public:
  void add_options(CLI::App& command) override {
    const auto file = [&](const char* name, std::string& path, const char* help, bool required = true) {
      CLI::Option* option = command.add_option(name, path, help)->type_name("FILE.npy");
      if (required) option->required();
    };
    file("--q", files_.q, "absorbed queries [batch, length, heads, 576, 512 or 320], the rope's columns last");
    file("--k", files_.k, "the cache [batch, length, 1, as many]; its first 512, 512 or 256 columns are the values");
    file("--out", files_.out, "the result [batch, length, heads, the values' columns], float32");
    file("--lse", files_.lse, "also the log-sum-exp [batch, heads, length], float32", false);
    add_parsed(command, "--scale", scale_, "NUMBER",
               "of q·k before the softmax: the model's, as 0.0721688 (1 / sqrt(192)). There is no default",
               parse_finite, "finite numbers are, as 0.0721688");
    command.get_option("--scale")->required();
    mask_.add_to(command, "query", attention::program::MaskKinds::causal);
    add_parsed(command, "--softcap", softcap_, "X", "scores become X · tanh(score / X)", parse_positive,
               "finite numbers above 0 are");
    file("--sink", files_.sink, "a logit a head [heads], float32, that takes part in the softmax and has no value",
         false);
    add_parsed(command, "--splits", splits_, "N|auto", "cut the keys into N parts that are computed side by side",
               parse_splits, "numbers from 1 are, and auto");
    add_choice(command, "--dtype", dtype_, {"fp16", "bf16"}, "the kernel's type; inputs are rounded to it")
        ->capture_default_str();
  }

  Result<void> read(std::vector<std::string>& notes) override {
    type_ = *parse_half_type(dtype_);
    // Headers before elements: a wrong last file is told at once.
    const auto q = read_npy_header("q", files_.q);
    if (!q) return std::unexpected(q.error());
    const auto k = read_npy_header("k", files_.k);
    if (!k) return std::unexpected(k.error());
    if (std::ranges::min(q->shape) < 1)
      return bad_shape("q", files_.q, tools::to_text(q->shape), "[batch, length, heads, columns], each at least 1,");
    const auto dims = value_dims(files_.q, q->shape);
    if (!dims) return std::unexpected(dims.error());
    if (k->shape[0] != q->shape[0] || k->shape[2] != 1 || k->shape[3] != q->shape[3])
      return bad_shape("k", files_.k, tools::to_text(k->shape),
                       fmt::format("[{}, length, 1, {}]", q->shape[0], q->shape[3]));
    for (const auto& [field, path, array] : {std::tuple("q", &files_.q, &q_), std::tuple("k", &files_.k, &k_)}) {
      auto read = read_npy(field, *path, type_);
      if (!read) return std::unexpected(read.error());
      *array = std::move(*read);
      if (array->became_infinite > 0)
        notes.push_back(fmt::format("{} has {} values beyond the range of {}; they became infinite", field,
                                    array->became_infinite, tools::to_text(type_)));
    }
    if (!files_.sink.empty()) {
      auto sink = read_npy_vector("sink", files_.sink);
      if (!sink) return std::unexpected(sink.error());
      if (sink->shape != std::vector{q->shape[2]})
        return failed(ExitCode::file,
                      fmt::format("--sink {}: [{}] is accepted, a number a head", files_.sink, q->shape[2]));
      sinks_ = std::move(sink->values);
    }
    output_ = {q->shape[0], q->shape[1], q->shape[2], *dims};
    return {};
  }

  std::vector<NamedFile> inputs() const override {
    std::vector<NamedFile> files = {{"q", files_.q}, {"k", files_.k}};
    if (!files_.sink.empty()) files.push_back({"sink", files_.sink});
    return files;
  }
  std::vector<NamedFile> outputs() const override {
    std::vector<NamedFile> files = {{"out", files_.out}};
    if (with_lse()) files.push_back({"lse", files_.lse});
    return files;
  }

  Result<void> prepare(wavejit_engine* engine) override {
    engine_ = engine;
    CallMemory& memory = memory_.emplace(engine);
    const wavejit_dtype type = type_ == HalfType::fp16 ? WAVEJIT_FP16 : WAVEJIT_BF16;
    const auto tensor = [](void* data, wavejit_dtype of, const Shape& shape) {
      return wavejit_dense_tensor(data, of, shape[0], shape[1], shape[2], shape[3]);
    };
    call_ = {};
    call_.head.size = sizeof call_;
    call_.head.family = WAVEJIT_ATTENTION_LATENT;
    call_.q = tensor(memory.in(q_.values), type, q_.shape);
    call_.k = k_.values.empty() ? tensor(memory.out(0), type, k_.shape) : tensor(memory.in(k_.values), type, k_.shape);
    call_.o = tensor(memory.out(elements() * sizeof(std::uint16_t)), type, output_);
    if (with_lse())
      call_.lse = tensor(memory.out(rows() * sizeof(float)), WAVEJIT_FP32, {output_[0], output_[2], output_[1], 1});
    if (!sinks_.empty())
      call_.modifiers.sink = wavejit_dense_tensor(memory.in(sinks_), WAVEJIT_FP32, 1, output_[2], 1, 1);
    call_.modifiers.scale = *parse_finite(scale_);
    if (call_.modifiers.scale == 0) call_.head.flags = WAVEJIT_SCALE_IS_ZERO;
    const auto mask = mask_.given();
    call_.mask = mask;
    call_.modifiers.softcap = parse_positive(softcap_).value_or(0.0F);
    call_.split.splits = parse_splits(splits_).value_or(0);
    return memory.good();
  }
  void release() override { memory_.reset(); }

  Result<void> launch(wavejit_call_report* report) override {
    call_.head.report = report;
    return checked(wavejit_attention_latent(engine_, &call_, nullptr));
  }

  Result<bool> fetch() override {
    auto bits = memory_->back<std::uint16_t>(call_.o.data, elements());
    std::vector<float> lse;
    if (with_lse()) lse = memory_->back<float>(call_.lse.data, rows());
    if (!memory_->good()) return std::unexpected(memory_->good().error());
    if (fetched_) return bits == bits_;
    bits_ = std::move(bits);
    lse_ = std::move(lse);
    fetched_ = true;
    return true;
  }

  // By the definition of the call: what of the model stands before absorption, nobody has given.
  Comparison check() const override {
    Array values = {.shape = {k_.shape[0], k_.shape[1], 1, output_[3]}, .values = {}};
    const auto columns = static_cast<std::ptrdiff_t>(k_.shape[3]);
    for (auto row = k_.values.begin(); row != k_.values.end(); row += columns)
      values.values.insert(values.values.end(), row, row + output_[3]);
    const attention::program::AttentionArrays problem = {.type = type_,
                                                         .q = &q_,
                                                         .k = &k_,
                                                         .v = &values,
                                                         .scale = call_.modifiers.scale,
                                                         .mask = mask_.given(),
                                                         .softcap = call_.modifiers.softcap,
                                                         .sinks = sinks_};
    return compare_rows(problem, exact_attention(problem), output(), lse_);
  }

  std::vector<OutputArray> answers() const override {
    std::vector<OutputArray> arrays = {{npy_bytes(output(), output_), tools::to_text(output_)}};
    if (with_lse()) {
      const std::vector<std::int64_t> shape = {output_[0], output_[2], output_[1]};
      arrays.push_back({npy_bytes(lse_, shape), fmt::format("[{}, {}, {}]", shape[0], shape[1], shape[2])});
    }
    return arrays;
  }

 private:
  bool with_lse() const { return !files_.lse.empty(); }
  std::size_t rows() const { return static_cast<std::size_t>(output_[0] * output_[1] * output_[2]); }
  std::size_t elements() const { return rows() * static_cast<std::size_t>(output_[3]); }
  std::vector<float> output() const {
    std::vector<float> values(bits_.size());
    std::ranges::transform(bits_, values.begin(), [this](std::uint16_t element) { return decode(type_, element); });
    return values;
  }

  Files files_;
  std::string scale_;
  std::string softcap_;
  std::string splits_;
  std::string dtype_ = "bf16";
  attention::program::MaskOptions mask_;

  HalfType type_ = HalfType::bf16;
  Array q_;
  Array k_;
  std::vector<float> sinks_;
  Shape output_{};
  wavejit_engine* engine_ = nullptr;
  std::optional<CallMemory> memory_;
  wavejit_attention_latent_arguments call_{};
  bool fetched_ = false;
  std::vector<std::uint16_t> bits_;
  std::vector<float> lse_;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<LatentRun>(); }

}  // namespace wavejit::attention_latent::program
