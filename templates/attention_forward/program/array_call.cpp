// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/array_call.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "templates/attention/program/modifier_options.h"
#include "templates/attention/program/reference.h"
#include "templates/attention_forward/program/vocabulary.h"
#include "tools/device_array.h"
#include "tools/engine_options.h"
#include "tools/npy.h"

namespace wavejit::attention_forward::program {

namespace {

struct Files {
  std::string q;
  std::string k;
  std::string v;
  std::string out;
  std::string lse;
};

std::optional<float> parse_scale(const std::string& text) {
  float value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// What the three files must have in common; the library knows the rest.
Result<void> check_shapes(const Files& files, const NpyHeader& q, const NpyHeader& k, const NpyHeader& v) {
  const auto differs = [](const std::string& field, const std::string& path, const Shape& shape,
                          const std::string& what) {
    return failed(ExitCode::file, fmt::format("--{} {}: its shape is {}; {}", field, path, to_text(shape), what));
  };
  if (q.shape[0] < 1 || q.shape[1] < 1 || q.shape[2] < 1 || q.shape[3] < 1) {
    return differs("q", files.q, q.shape, "[batch, length, heads, head dim], each at least 1, is accepted");
  }
  if (k.shape[0] != q.shape[0])
    return differs("k", files.k, k.shape, fmt::format("q's batch of {} is accepted", q.shape[0]));
  if (k.shape[3] != q.shape[3])
    return differs("k", files.k, k.shape, fmt::format("q's head dim of {} is accepted", q.shape[3]));
  if (k.shape[2] < 1 || q.shape[2] % k.shape[2] != 0) {
    return differs("k", files.k, k.shape, fmt::format("a number of heads that divides q's {} is accepted", q.shape[2]));
  }
  if (v.shape[0] != k.shape[0] || v.shape[1] != k.shape[1] || v.shape[2] != k.shape[2] || v.shape[3] < 1) {
    return differs(
        "v", files.v, v.shape,
        fmt::format("k's {} is accepted, or another head dim where `wavejit supported` lists two, as 192/128",
                    to_text(k.shape)));
  }
  return {};
}

struct InputArrays {
  Array q;
  Array k;
  Array v;

  Shape output_shape() const { return {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}; }
};

// Every header before any element: a wrong third file is told at once.
Result<InputArrays> read_inputs(const Files& files, HalfType type, std::vector<std::string>& notes) {
  const auto q = read_npy_header("q", files.q);
  if (!q) return std::unexpected(q.error());
  const auto k = read_npy_header("k", files.k);
  if (!k) return std::unexpected(k.error());
  const auto v = read_npy_header("v", files.v);
  if (!v) return std::unexpected(v.error());
  if (auto shapes = check_shapes(files, *q, *k, *v); !shapes) return std::unexpected(shapes.error());

  InputArrays inputs;
  for (const auto& [field, path, array] : {std::tuple("q", &files.q, &inputs.q), std::tuple("k", &files.k, &inputs.k),
                                           std::tuple("v", &files.v, &inputs.v)}) {
    auto read = read_npy(field, *path, type);
    if (!read) return std::unexpected(read.error());
    *array = std::move(*read);
    if (array->became_infinite > 0) {
      notes.push_back(fmt::format("{} has {} values beyond the range of {}; they became infinite", field,
                                  array->became_infinite, to_text(type)));
    }
  }
  return inputs;
}

// The arrays on the device and the call's arguments.
class DeviceCall {
 public:
  static Result<DeviceCall> prepare(wavejit_engine* engine, const InputArrays& inputs, HalfType type, bool with_lse,
                                    bool output_fp32) {
    const Shape& q = inputs.q.shape;
    auto device_q = DeviceArray::allocate(engine, inputs.q.values.size() * 2);
    auto device_k = DeviceArray::allocate(engine, inputs.k.values.size() * 2);
    auto device_v = DeviceArray::allocate(engine, inputs.v.values.size() * 2);
    const Shape o = inputs.output_shape();
    auto device_o = DeviceArray::allocate(engine, static_cast<std::size_t>(element_count(o)) * (output_fp32 ? 4 : 2));
    auto device_lse = DeviceArray::allocate(engine, with_lse ? static_cast<std::size_t>(q[0] * q[1] * q[2]) * 4 : 0);
    for (const auto* array : {&device_q, &device_k, &device_v, &device_o, &device_lse}) {
      if (!*array) return std::unexpected(array->error());
    }
    for (const auto& copied : {device_q->copy_in(inputs.q.values.data()), device_k->copy_in(inputs.k.values.data()),
                               device_v->copy_in(inputs.v.values.data())}) {
      if (!copied) return std::unexpected(copied.error());
    }
    DeviceCall call(engine, o, std::move(*device_q), std::move(*device_k), std::move(*device_v), std::move(*device_o),
                    std::move(*device_lse));
    const wavejit_dtype dtype = type == HalfType::fp16 ? WAVEJIT_FP16 : WAVEJIT_BF16;
    const auto tensor = [dtype](const DeviceArray& memory, const Shape& shape) {
      return wavejit_dense_tensor(memory.data(), dtype, shape[0], shape[1], shape[2], shape[3]);
    };
    call.arguments_.head.size = sizeof call.arguments_;
    call.arguments_.head.family = WAVEJIT_ATTENTION_FORWARD;
    call.arguments_.q = tensor(call.q_, q);
    call.arguments_.k = tensor(call.k_, inputs.k.shape);
    call.arguments_.v = tensor(call.v_, inputs.v.shape);
    call.arguments_.o = tensor(call.o_, o);
    if (output_fp32) call.arguments_.o.dtype = WAVEJIT_FP32;
    if (with_lse) call.arguments_.lse = wavejit_dense_tensor(call.lse_.data(), WAVEJIT_FP32, q[0], q[2], q[1], 1);
    return call;
  }

  void set(float scale, const ModifierOptions& modifiers, const ModifiersOnDevice& arrays) {
    arguments_.modifiers.scale = scale;
    arguments_.head.flags = scale == 0 ? WAVEJIT_SCALE_IS_ZERO : 0;
    modifiers.describe(arguments_, arguments_.q.dtype, arrays);
    arguments_.split.splits = modifiers.splits();
  }

  Result<void> launch(wavejit_call_report* report) {
    arguments_.head.report = report;
    return checked(wavejit_attention_forward(engine_, &arguments_, nullptr));
  }

  // As the device has it: a word an element, of f32 two.
  Result<std::vector<std::uint16_t>> output() const {
    const std::size_t words = arguments_.o.dtype == WAVEJIT_FP32 ? 2 : 1;
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(element_count(shape_)) * words);
    if (auto copied = o_.copy_out(bits.data()); !copied) return std::unexpected(copied.error());
    return bits;
  }
  Result<std::vector<float>> lse() const {
    std::vector<float> values(static_cast<std::size_t>(shape_[0] * shape_[1] * shape_[2]));
    if (auto copied = lse_.copy_out(values.data()); !copied) return std::unexpected(copied.error());
    return values;
  }

 private:
  DeviceCall(wavejit_engine* engine, const Shape& shape, DeviceArray q, DeviceArray k, DeviceArray v, DeviceArray o,
             DeviceArray lse)
      : engine_(engine),
        shape_(shape),
        q_(std::move(q)),
        k_(std::move(k)),
        v_(std::move(v)),
        o_(std::move(o)),
        lse_(std::move(lse)) {}

  wavejit_engine* engine_;
  Shape shape_;  // of o
  DeviceArray q_;
  DeviceArray k_;
  DeviceArray v_;
  DeviceArray o_;
  DeviceArray lse_;
  wavejit_attention_forward_arguments arguments_{};
};

class AttentionCall : public ArrayCall {
 public:
  void add_options(CLI::App& command) override {
    command.add_option("--q", files_.q, "queries [batch, length, heads, head dim]")->required()->type_name("FILE.npy");
    command.add_option("--k", files_.k, "keys [batch, length, kv heads, head dim]")->required()->type_name("FILE.npy");
    command.add_option("--v", files_.v, "values, shaped as the keys but for the head dim")
        ->required()
        ->type_name("FILE.npy");
    command.add_option("--out", files_.out, "the result [batch, length, heads, head dim of the values], float32")
        ->required()
        ->type_name("FILE.npy");
    command.add_option("--lse", files_.lse, "also the log-sum-exp [batch, heads, length], float32")
        ->type_name("FILE.npy");
    modifiers_.add_to(command, true);
    limit(command.add_option("--scale", scale_text_, "of q·k before the softmax (default: 1 / sqrt(head dim))"),
          "NUMBER", [](const std::string& given) {
            return parse_scale(given) ? std::string()
                                      : fmt::format("'{}' is not accepted; finite numbers are, as 0.125", given);
          });
    add_choice(command, "--dtype", dtype_, {"fp16", "bf16"}, "the kernel's type; inputs are rounded to it")
        ->capture_default_str();
    command.add_flag("--o-fp32", output_fp32_, "the kernel writes O in fp32 and does not round it to --dtype");
  }

  Result<void> read(std::vector<std::string>& notes) override {
    type_ = *parse_half_type(dtype_);
    auto inputs = read_inputs(files_, type_, notes);
    if (!inputs) return std::unexpected(inputs.error());
    inputs_ = std::move(*inputs);
    const auto head_dim = static_cast<double>(inputs_.q.shape[3]);
    scale_ = scale_text_.empty() ? static_cast<float>(1.0 / std::sqrt(head_dim)) : *parse_scale(scale_text_);
    return modifiers_.read(type_, inputs_.q.shape, inputs_.k.shape);
  }

  std::vector<NamedFile> inputs() const override { return {{"q", files_.q}, {"k", files_.k}, {"v", files_.v}}; }
  std::vector<NamedFile> outputs() const override {
    std::vector<NamedFile> files = {{"out", files_.out}};
    if (with_lse()) files.push_back({"lse", files_.lse});
    return files;
  }

  Result<void> prepare(wavejit_engine* engine) override {
    auto call = DeviceCall::prepare(engine, inputs_, type_, with_lse(), output_fp32_);
    if (!call) return std::unexpected(call.error());
    auto modifiers = modifiers_.copy_to(engine);
    if (!modifiers) return std::unexpected(modifiers.error());
    on_device_.emplace(std::move(*modifiers));
    call_.emplace(std::move(*call));
    call_->set(scale_, modifiers_, *on_device_);
    return {};
  }

  void release() override {
    call_.reset();
    on_device_.reset();
  }

  Result<void> launch(wavejit_call_report* report) override { return call_->launch(report); }

  Result<bool> fetch() override {
    auto bits = call_->output();
    if (!bits) return std::unexpected(bits.error());
    if (fetched_) return *bits == bits_;
    if (with_lse()) {
      auto lse = call_->lse();
      if (!lse) return std::unexpected(lse.error());
      lse_ = std::move(*lse);
    }
    bits_ = std::move(*bits);
    fetched_ = true;
    return true;
  }

  Comparison check() const override {
    AttentionArrays problem;
    problem.type = type_;
    problem.output_fp32 = output_fp32_;
    problem.q = &inputs_.q;
    problem.k = &inputs_.k;
    problem.v = &inputs_.v;
    problem.scale = scale_;
    modifiers_.describe(problem);
    return compare_rows(problem, exact_attention(problem), output(), lse_);
  }

  std::vector<OutputArray> answers() const override {
    const Shape& q = inputs_.q.shape;
    const Shape o = inputs_.output_shape();
    std::vector<OutputArray> arrays = {{npy_bytes(output(), o), tools::to_text(o)}};
    if (with_lse()) {
      const std::vector<std::int64_t> shape = {q[0], q[2], q[1]};
      arrays.push_back({npy_bytes(lse_, shape), fmt::format("[{}, {}, {}]", q[0], q[2], q[1])});
    }
    return arrays;
  }

 private:
  bool with_lse() const { return !files_.lse.empty(); }

  std::vector<float> output() const {
    if (output_fp32_) {
      std::vector<float> values(bits_.size() / 2);
      std::memcpy(values.data(), bits_.data(), bits_.size() * sizeof bits_.front());
      return values;
    }
    std::vector<float> values(bits_.size());
    std::ranges::transform(bits_, values.begin(), [this](std::uint16_t element) { return decode(type_, element); });
    return values;
  }

  Files files_;
  std::string dtype_ = "fp16";
  bool output_fp32_ = false;
  std::string scale_text_;
  ModifierOptions modifiers_;

  HalfType type_ = HalfType::fp16;
  InputArrays inputs_;
  float scale_ = 1;
  std::optional<ModifiersOnDevice> on_device_;
  std::optional<DeviceCall> call_;
  bool fetched_ = false;
  std::vector<std::uint16_t> bits_;
  std::vector<float> lse_;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<AttentionCall>(); }

}  // namespace wavejit::attention_forward::program
