// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/array_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "tools/all_cores.h"
#include "tools/device_array.h"
#include "tools/fenced_memory.h"

namespace wavejit::tools {

namespace {

constexpr std::byte mark{unwritten};
// Before and behind the output, to see that nothing is written there.
constexpr std::size_t margin = 256;

std::size_t element_bytes(const ArrayProblem& problem) { return problem.type ? 2 : 4; }
std::size_t row_bytes(const ArrayProblem& problem) {
  if (problem.bytes_of_row != 0) return problem.bytes_of_row;
  return static_cast<std::size_t>(problem.columns) * element_bytes(problem);
}
std::size_t output_bytes(const ArrayProblem& problem) {
  return static_cast<std::size_t>(problem.rows) * row_bytes(problem);
}

class ArrayWritten : public Written {
 public:
  ArrayWritten(const ArrayProblem& problem, std::vector<std::byte> bytes)
      : problem_(problem), bytes_(std::move(bytes)) {
    for (std::int64_t row = 0; row < problem_.rows; ++row)
      if (std::ranges::any_of(of_row(row), [](std::byte byte) { return byte != mark; })) rows_.push_back(row);
  }

  const std::vector<std::int64_t>& rows() const { return rows_; }
  std::span<const std::byte> of_row(std::int64_t row) const {
    return std::span(bytes_).subspan(static_cast<std::size_t>(row) * row_bytes(problem_), row_bytes(problem_));
  }
  float value(std::int64_t row, std::int64_t column) const {
    if (problem_.read) return problem_.read(of_row(row), row, column);
    const std::byte* at = of_row(row).data() + static_cast<std::size_t>(column) * element_bytes(problem_);
    if (!problem_.type) {
      float value = 0;
      std::memcpy(&value, at, sizeof value);
      return value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return decode(*problem_.type, bits);
  }

  bool same_as(const Written& other) const override { return bytes_ == static_cast<const ArrayWritten&>(other).bytes_; }
  std::string difference(const Written& other) const override {
    const auto& others = static_cast<const ArrayWritten&>(other);
    for (const std::int64_t row : rows_)
      if (std::ranges::binary_search(others.rows_, row) && !std::ranges::equal(of_row(row), others.of_row(row)))
        return fmt::format("row {}", row);
    return {};
  }

 private:
  const ArrayProblem& problem_;
  std::vector<std::byte> bytes_;
  std::vector<std::int64_t> rows_;  // ascending
};

class ArrayCase : public Case {
 public:
  explicit ArrayCase(const ArrayProblem& problem) : problem_(problem) {}

  std::uint64_t device_bytes() const override {
    std::uint64_t bytes = output_bytes(problem_) + 2 * margin;
    for (const auto& input : problem_.inputs) bytes += input.size();
    return bytes;
  }

  Result<void> prepare(wavejit_engine* engine) override {
    engine_ = engine;
    for (const auto& input : problem_.inputs) {
      auto memory = DeviceArray::allocate(engine, input.size());
      if (!memory) return std::unexpected(memory.error());
      if (auto copied = memory->copy_in(input.data()); !copied) return copied;
      inputs_.push_back(std::move(*memory));
    }
    auto output = DeviceArray::allocate(engine, output_bytes(problem_) + 2 * margin);
    if (!output) return std::unexpected(output.error());
    output_.emplace(std::move(*output));
    return erase();
  }

  Result<void> run(wavejit_engine* engine, wavejit_call_report* report) override {
    if (auto launched = problem_.launch(engine, inputs(), output(), report); !launched) return launched;
    return checked(wavejit_device_synchronize(engine));
  }

  Result<std::uint64_t> workspace_bytes(wavejit_engine* engine) const override {
    return problem_.workspace_bytes ? problem_.workspace_bytes(engine, inputs(), output()) : 0;
  }

  std::int64_t rows() const override { return problem_.rows; }

  Result<void> erase() override {
    std::vector<std::byte> bytes(output_bytes(problem_) + 2 * margin, mark);
    for (const auto& [first, given] : problem_.before)
      std::ranges::copy(given, bytes.begin() + static_cast<std::ptrdiff_t>(margin + first));
    return output_->copy_in(bytes.data());
  }

  Result<std::unique_ptr<Written>> written() const override {
    auto bytes = fenced().copy_of<std::byte>(fenced().data(), output_bytes(problem_));
    if (!bytes) return std::unexpected(bytes.error());
    return std::make_unique<ArrayWritten>(problem_, *std::move(bytes));
  }

  std::string missing(const Written& written, const Plan& /*plan*/, std::uint64_t /*workgroups*/) const override {
    const auto count = static_cast<std::int64_t>(static_cast<const ArrayWritten&>(written).rows().size());
    return count == problem_.rows ? "" : fmt::format("{} rows were written instead of {}", count, problem_.rows);
  }

  Result<std::string> broken_fence() const override { return fenced().broken("the output"); }

  Comparison compare(const Written& written, double /*limit*/) override {
    const auto& got = static_cast<const ArrayWritten&>(written);
    std::vector<std::vector<double>> exact(got.rows().size());
    on_all_cores(exact.size(), [&](std::size_t i) { exact[i] = problem_.exact(got.rows()[i]); });
    BoundChecker checker;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const std::int64_t row = got.rows()[i];
      const std::vector<double> bounds =
          problem_.bounds ? problem_.bounds(row) : std::vector<double>(exact[i].size(), problem_.allowed);
      std::vector<float> values;
      values.reserve(exact[i].size());
      for (std::size_t column = 0; column < exact[i].size(); ++column)
        values.push_back(got.value(row, static_cast<std::int64_t>(column)));
      checker.row({.sequence = 0, .token = row, .head = 0}, exact[i], bounds, values);
    }
    return checker.comparison();
  }

 private:
  std::vector<void*> inputs() const {
    std::vector<void*> pointers;
    pointers.reserve(inputs_.size());
    for (const DeviceArray& input : inputs_) pointers.push_back(input.data());
    return pointers;
  }
  FencedMemory fenced() const {
    return {.engine = engine_,
            .begin = static_cast<char*>(output_->data()),
            .margin = margin,
            .bytes = output_bytes(problem_)};
  }
  void* output() const { return fenced().data(); }

  const ArrayProblem& problem_;
  wavejit_engine* engine_ = nullptr;
  std::vector<DeviceArray> inputs_;
  std::optional<DeviceArray> output_;
};

class ProblemOfArrays : public Problem {
 public:
  explicit ProblemOfArrays(ArrayProblem problem) : problem_(std::move(problem)) {}
  const std::string& text() const override { return problem_.text; }
  std::unique_ptr<Case> make_case() const override { return std::make_unique<ArrayCase>(problem_); }

 private:
  ArrayProblem problem_;
};

}  // namespace

std::unique_ptr<Problem> make_problem(ArrayProblem problem) {
  return std::make_unique<ProblemOfArrays>(std::move(problem));
}

namespace {

class LazyProblem : public Problem {
 public:
  LazyProblem(std::string text, std::int64_t keys, std::function<std::unique_ptr<Problem>()> make)
      : text_(std::move(text)), keys_(keys), make_(std::move(make)) {}
  const std::string& text() const override { return text_; }
  std::int64_t keys() const override { return keys_; }
  std::unique_ptr<Case> make_case() const override {
    std::call_once(once_, [&] { problem_ = make_(); });
    return problem_->make_case();
  }

 private:
  std::string text_;
  std::int64_t keys_;
  std::function<std::unique_ptr<Problem>()> make_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<Problem> problem_;
};

}  // namespace

std::unique_ptr<Problem> make_lazy_problem(std::string text, std::int64_t keys,
                                           std::function<std::unique_ptr<Problem>()> make) {
  return std::make_unique<LazyProblem>(std::move(text), keys, std::move(make));
}

}  // namespace wavejit::tools
