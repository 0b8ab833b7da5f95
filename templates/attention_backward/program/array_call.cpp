// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/array_call.h"

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention_backward/program/device_call.h"
#include "templates/attention_backward/program/gradient_files.h"
#include "tools/device_array.h"

namespace wavejit::attention_backward::program {
namespace {

using namespace tools;

// A gradient as the device has it.
struct Answer {
  const char* option;
  const std::string* path;  // empty: nobody wants it
  std::vector<std::int64_t> shape;
  Gradient Gradients::* exact;
  void* DevicePointers::* memory;
  bool fp32 = false;
  const std::vector<float>* before = nullptr;  // sums that a call goes on with; null or empty: none
  std::int64_t stride = 0;                     // elements from row to row in memory; its last size and more
  bool heads_first = false;                    // [batch, heads, rows, …], else [batch, rows, heads, …]
  std::vector<std::byte> bytes = {};

  std::size_t columns() const { return static_cast<std::size_t>(shape.back()); }
  std::size_t rows() const {
    std::int64_t count = 1;
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) count *= shape[i];
    return static_cast<std::size_t>(count);
  }
  std::size_t bytes_in_memory() const { return rows() * static_cast<std::size_t>(stride) * (fp32 ? 4 : 2); }
  RowPlace place(std::int64_t row) const {
    if (shape.size() < 4) return {.sequence = row, .token = 0, .head = 0};
    const std::int64_t inner = row % shape[2];
    const std::int64_t outer = row / shape[2] % shape[1];
    return {.sequence = row / (shape[1] * shape[2]),
            .token = heads_first ? inner : outer,
            .head = heads_first ? outer : inner};
  }
};

class GradientsCall : public ArrayCall {
 public:
  void add_options(CLI::App& command) override { files_.add_options(command); }
  Result<void> read(std::vector<std::string>& notes) override {
    if (auto read = files_.read(notes); !read) return read;
    const attention::program::Experiment& of = arrays().experiment;
    const GradientFiles::Shapes& shapes = files_.shapes();
    const auto add = [&](const char* option, const std::string& path, const Shape& shape, Gradient Gradients::* exact,
                         void* DevicePointers::* memory, const std::vector<float>& before) {
      answers_.push_back({.option = option,
                          .path = &path,
                          .shape = {shape.begin(), shape.end()},
                          .exact = exact,
                          .memory = memory,
                          .fp32 = of.output_fp32,
                          .before = &before,
                          .stride = shape[3]});
    };
    add("dq", files().dq, shapes.queries, &Gradients::dq, &DevicePointers::dq, arrays().dq_before);
    add("dk", files().dk, shapes.keys, &Gradients::dk, &DevicePointers::dk, arrays().dk_before);
    add("dv", files().dv, shapes.values, &Gradients::dv, &DevicePointers::dv, arrays().dv_before);
    if (!files().d_sink.empty())
      answers_.push_back({.option = "d-sink",
                          .path = &files().d_sink,
                          .shape = {of.batch, of.query_heads},
                          .exact = &Gradients::d_sink,
                          .memory = &DevicePointers::d_sink,
                          .fp32 = true,
                          .stride = of.query_heads});
    if (arrays().with_d_bias) {
      const attention::program::BiasPlacement bias = attention::program::bias_of(of);
      answers_.push_back({.option = "d-bias",
                          .path = &files().d_bias,
                          .shape = {bias.batches, bias.heads, bias.rows, bias.columns},
                          .exact = &Gradients::d_bias,
                          .memory = &DevicePointers::d_bias,
                          .fp32 = of.output_fp32,
                          .stride = bias.row_stride,
                          .heads_first = true});
    }
    return {};
  }

  std::vector<NamedFile> inputs() const override { return files_.inputs(); }
  std::vector<NamedFile> outputs() const override { return files_.outputs(); }

  Result<void> prepare(wavejit_engine* engine) override {
    engine_ = engine;
    Result<void> good;
    const auto put = [&](const void* values, std::size_t bytes) -> void* {
      auto memory = DeviceArray::allocate(engine, bytes);
      if (!memory) {
        good = std::unexpected(memory.error());
        return nullptr;
      }
      if (values != nullptr)
        if (auto copied = memory->copy_in(values); !copied) good = std::unexpected(copied.error());
      memory_.push_back(std::move(*memory));
      return memory_.back().data();
    };
    const auto input = [&](const auto& values) {
      return values.empty() ? nullptr : put(values.data(), values.size() * sizeof values[0]);
    };
    pointers_ = {.q = input(arrays().q),
                 .k = input(arrays().k),
                 .v = input(arrays().v),
                 .o = input(arrays().o),
                 .d_o = input(arrays().d_o),
                 .lse = input(arrays().lse),
                 .d_lse = input(arrays().d_lse),
                 .sinks = files().d_sink.empty() ? nullptr : input(arrays().sinks),
                 .slopes = input(arrays().slopes),
                 .bias = input(bias_bytes(arrays()))};
    for (const Answer& answer : answers_) pointers_.*answer.memory = put(nullptr, answer.bytes_in_memory());
    return good;
  }
  void release() override { memory_.clear(); }

  Result<void> launch(wavejit_call_report* report) override {
    // A call that is repeated begins at the same sums.
    for (const Answer& answer : answers_)
      if (answer.before != nullptr && !answer.before->empty())
        if (auto copied = checked(wavejit_device_copy_in(engine_, pointers_.*answer.memory, answer.before->data(),
                                                         answer.bytes_in_memory()));
            !copied)
          return copied;
    wavejit_attention_backward_arguments call = call_of(arrays(), pointers_);
    call.head.report = report;
    return checked(wavejit_attention_backward(engine_, &call, nullptr));
  }

  Result<bool> fetch() override {
    bool same = true;
    for (Answer& answer : answers_) {
      std::vector<std::byte> bytes(answer.bytes_in_memory());
      if (auto copied = checked(wavejit_device_copy_out(engine_, bytes.data(), pointers_.*answer.memory, bytes.size()));
          !copied)
        return std::unexpected(copied.error());
      same = same && (!fetched_ || bytes == answer.bytes);
      if (!fetched_) answer.bytes = std::move(bytes);
    }
    fetched_ = true;
    return same;
  }

  Comparison check() const override {
    const Gradients exact = exact_gradients(arrays());
    BoundChecker checker;
    for (const Answer& answer : answers_) {
      const Gradient& gradient = exact.*answer.exact;
      const std::vector<float> values = numbers(answer);
      const std::size_t columns = answer.columns();
      for (std::size_t row = 0; row < answer.rows(); ++row) {
        const std::size_t at = row * static_cast<std::size_t>(answer.stride);
        const std::vector<double> bounds = bounds_of(arrays(), gradient, at, columns);
        checker.row(answer.place(static_cast<std::int64_t>(row)), std::span(gradient.values).subspan(at, columns),
                    bounds, std::span(values).subspan(row * columns, columns));
      }
    }
    return checker.comparison();
  }

  std::vector<OutputArray> answers() const override {
    std::vector<OutputArray> arrays;
    for (const Answer& answer : answers_)
      if (!answer.path->empty()) arrays.push_back({npy_bytes(numbers(answer), answer.shape), text_of(answer.shape)});
    return arrays;
  }

 private:
  const GradientFiles::Paths& files() const { return files_.paths(); }
  const Arrays& arrays() const { return files_.arrays(); }

  // Without what stands between rows.
  std::vector<float> numbers(const Answer& answer) const {
    const std::size_t bytes = answer.fp32 ? 4 : 2;
    std::vector<float> values;
    values.reserve(answer.rows() * answer.columns());
    for (std::size_t row = 0; row < answer.rows(); ++row)
      for (std::size_t column = 0; column < answer.columns(); ++column) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &answer.bytes[((row * static_cast<std::size_t>(answer.stride)) + column) * bytes], bytes);
        values.push_back(answer.fp32 ? std::bit_cast<float>(bits)
                                     : decode(arrays().experiment.type, static_cast<std::uint16_t>(bits)));
      }
    return values;
  }

  GradientFiles files_;
  wavejit_engine* engine_ = nullptr;
  std::vector<DeviceArray> memory_;
  DevicePointers pointers_;
  bool fetched_ = false;
  std::vector<Answer> answers_;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<GradientsCall>(); }

}  // namespace wavejit::attention_backward::program
