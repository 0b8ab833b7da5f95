// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// row_sum as the runtime and its tools know it.
#include <memory>
#include <string>
#include <utility>

#include "families/call/descriptor_words.h"
#include "families/call/family_of.h"
#include "tests/example_family/row_sum/call/call.h"

namespace wavejit::row_sum {
namespace {

using families::Result;
using families::Toggles;
using targets::Target;

// The words of a descriptor, in the order in which they are printed.
families::DescriptorWords<RowSumProblem> make_words() {
  return {
      families::name_word<RowSumProblem>("fp32, fp16", "a data type (fp32, fp16)", data_types,
                                         [](auto& problem) -> auto& { return problem.shape.dtype; }),
      families::number_word<RowSumProblem>('r', "r<rows>", 1, max_rows,
                                           [](auto& problem) -> auto& { return problem.rows; }),
      families::number_word<RowSumProblem>('c', "c<columns>", 4, max_columns,
                                           [](auto& problem) -> auto& { return problem.columns; }),
  };
}

// What the words must say together.
Result<void> finish(const RowSumProblem& problem) {
  if (problem.columns % elements_per_load == 0) return {};
  return families::refuse_line("c" + std::to_string(problem.columns), "multiples of 4");
}

using Lines = families::LinesOf<RowSumProblem, make_words, finish>;

}  // namespace

Result<RowSumProblem> parse_descriptor(std::string_view text) { return Lines::read(RowSumKernel::family, text); }

std::string to_text(const RowSumProblem& problem) { return Lines::text(RowSumKernel::family, problem); }

namespace {

struct Described final : families::DescribedBy<RowSumProblem> {
  using DescribedBy::DescribedBy;

  Result<families::Shape> shape(const boards::Board& /*board*/, const Toggles& /*toggles*/) const override {
    return descriptor_.shape.shape();
  }
};

class RowSum final : public families::FamilyOfKernel<RowSumKernel, RowSumShape, Described, parse_descriptor> {
 public:
  families::Explanation explain_shape(const RowSumShape& /*shape*/, const Target& /*target*/,
                                      const Toggles& /*toggles*/) const override {
    return {.description = "a thread a row", .cost = "no LDS", .refused = {}};
  }

  std::vector<families::Shape> every_shape(const Target& /*target*/, const Toggles& /*toggles*/) const override {
    return {RowSumShape{{DataType::fp32}}.shape(), RowSumShape{{DataType::fp16}}.shape()};
  }

  std::string supported(const Target& /*target*/) const override {
    return "; dtypes fp32 fp16; columns multiples of 4";
  }
};

}  // namespace

const families::Family& family() { return families::only<RowSum>(); }

}  // namespace wavejit::row_sum
