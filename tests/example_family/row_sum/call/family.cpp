// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// row_sum as the runtime and its tools know it.
#include <memory>
#include <utility>

#include "families/call/words.h"
#include "tests/example_family/row_sum/call/call.h"

namespace wavejit::row_sum {
namespace {

using families::Result;
using families::Toggles;
using targets::Target;

Result<RowSumProblem> parse_descriptor(std::string_view text) {
  RowSumProblem problem;
  bool has_dtype = false;
  const std::vector<families::Word> words = families::words_of(text);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const families::Word& word = words[i];
    const auto dtype = families::value_in(data_types, word.text);
    const auto number = families::whole_number(word.text.substr(1));
    if (dtype && !std::exchange(has_dtype, true)) {
      problem.dtype = *dtype;
    } else if (word.text.front() == 'r' && number && *number >= 1 && *number <= max_rows && problem.rows == 0) {
      problem.rows = static_cast<std::uint32_t>(*number);
    } else if (word.text.front() == 'c' && number && *number >= 4 && *number <= max_columns && *number % 4 == 0 &&
               problem.columns == 0) {
      problem.columns = static_cast<std::uint32_t>(*number);
    } else {
      return families::wrong(word,
                             "is not known here; accepted, each once: fp32, fp16, r<rows>, c<columns, multiples of 4>");
    }
  }
  if (!has_dtype || problem.rows == 0 || problem.columns == 0)
    return families::fail(WAVEJIT_INVALID_ARGUMENT,
                          "descriptor: a word is missing; accepted: row_sum <fp32|fp16> r<rows> c<columns>");
  return problem;
}

class Described final : public families::Problem {
 public:
  explicit Described(RowSumProblem problem) : problem_(problem) {}
  std::string text() const override { return to_text(problem_); }
  Result<families::Shape> shape(const boards::Board& /*board*/, const Toggles& /*toggles*/) const override {
    return shape_of(problem_.dtype);
  }
  wavejit_problem told(const std::string& text) const override {
    wavejit_problem told{};
    told.size = sizeof told;
    told.text = text.c_str();
    told.dtype = problem_.dtype == DataType::fp32 ? WAVEJIT_FP32 : WAVEJIT_FP16;
    told.batch = problem_.rows;
    told.query_length = problem_.columns;
    return told;
  }

 private:
  RowSumProblem problem_;
};

class RowSum final : public families::Family {
 public:
  std::string_view name() const override { return KernelSpec::family; }

  Result<std::unique_ptr<families::Problem>> parse(std::string_view descriptor) const override {
    auto problem = parse_descriptor(descriptor);
    if (!problem) return std::unexpected(std::move(problem.error()));
    return std::make_unique<Described>(*problem);
  }

  Result<families::Route> route(const families::Shape& shape, const Target& target,
                                const Toggles& toggles) const override {
    const KernelSpec spec = {.dtype = static_cast<DataType>(shape.code & 1U),
                             .target = std::string(target.id),
                             .lowering = toggles.lowering};
    return families::Route{.kernels = {{.label = "spec", .spec = spec}}};
  }

  families::Explanation explain(const families::Shape& /*shape*/, const Target& /*target*/,
                                const Toggles& /*toggles*/) const override {
    return {.description = "a thread a row", .cost = "no LDS", .refused = {}};
  }

  std::vector<families::Shape> every_shape(const Target& /*target*/, const Toggles& /*toggles*/) const override {
    return {shape_of(DataType::fp32), shape_of(DataType::fp16)};
  }

  std::string supported(const Target& /*target*/) const override {
    return "; dtypes fp32 fp16; columns multiples of 4";
  }
};

}  // namespace

const families::Family& family() {
  static const RowSum one;
  return one;
}

}  // namespace wavejit::row_sum
