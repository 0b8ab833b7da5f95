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
const families::DescriptorWords<RowSumProblem>& descriptor_words() {
  static const families::DescriptorWords<RowSumProblem> words = {
      families::name_word<RowSumProblem>("fp32, fp16", "a data type (fp32, fp16)", data_types,
                                         [](auto& problem) -> auto& { return problem.dtype; }),
      families::number_word<RowSumProblem>('r', "r<rows>", 1, max_rows,
                                           [](auto& problem) -> auto& { return problem.rows; }),
      families::number_word<RowSumProblem>('c', "c<columns>", 4, max_columns,
                                           [](auto& problem) -> auto& { return problem.columns; }),
  };
  return words;
}

}  // namespace

Result<RowSumProblem> parse_descriptor(std::string_view text) {
  auto problem = families::read_words(text, RowSumKernel::family, descriptor_words());
  if (problem && problem->columns % 4 != 0)
    return families::fail(WAVEJIT_INVALID_ARGUMENT,
                          "descriptor: c" + std::to_string(problem->columns) + "; accepted: multiples of 4");
  return problem;
}

namespace {

struct Described final : families::DescribedBy<RowSumProblem> {
  using DescribedBy::DescribedBy;

  Result<families::Shape> shape(const boards::Board& /*board*/, const Toggles& /*toggles*/) const override {
    return RowSumShape{descriptor_.dtype}.shape();
  }
};

class RowSum final : public families::FamilyOf<RowSumShape, Described, parse_descriptor> {
 public:
  std::string_view name() const override { return RowSumKernel::family; }

  Result<families::Route> kernels_of(const RowSumShape& shape, const Target& target,
                                     const Toggles& toggles) const override {
    const RowSumKernel spec = {.dtype = shape.dtype, .target = std::string(target.id), .lowering = toggles.lowering};
    return families::Route{.kernels = {{.label = "spec", .spec = spec}}};
  }

  families::Explanation explain(const families::Shape& /*shape*/, const Target& /*target*/,
                                const Toggles& /*toggles*/) const override {
    return {.description = "a thread a row", .cost = "no LDS", .refused = {}};
  }

  std::vector<families::Shape> every_shape(const Target& /*target*/, const Toggles& /*toggles*/) const override {
    return {RowSumShape{DataType::fp32}.shape(), RowSumShape{DataType::fp16}.shape()};
  }

  std::string supported(const Target& /*target*/) const override {
    return "; dtypes fp32 fp16; columns multiples of 4";
  }
};

}  // namespace

std::string to_text(const RowSumProblem& problem) {
  return families::line_of(RowSumKernel::family, descriptor_words(), problem);
}

const families::Family& family() {
  static const RowSum one;
  return one;
}

}  // namespace wavejit::row_sum
