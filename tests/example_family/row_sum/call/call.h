// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of row_sum: what is asked for, checked, and what of it is launched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "families/call/call_of.h"
#include "families/call/family.h"
#include "families/call/shape_of.h"
#include "tests/example_family/row_sum/api/row_sum.h"
#include "tests/example_family/row_sum/kernel/spec.h"

namespace wavejit::row_sum {

const families::Family& family();

// Only what changes code: the data type.
using RowSumShape = families::ShapeOf<AskedWords, families::AskedBits<AskedWords>, family>;

struct RowSumProblem {
  RowSumShape shape;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};
std::string to_text(const RowSumProblem& problem);  // "row_sum fp16 r1000 c256"

// Columns times a workgroup's rows stay far below the 4 GiB of a buffer descriptor.
inline constexpr std::int64_t max_columns = std::int64_t{1} << 20;
inline constexpr std::int64_t max_rows = std::int64_t{1} << 30;

// A line of the family.
families::Result<RowSumProblem> parse_descriptor(std::string_view text);

families::Result<RowSumProblem> check(const wavejit_row_sum_arguments* arguments);

class RowSumCall final : public families::CallOf<wavejit_row_sum_arguments, RowSumProblem> {
 public:
  using CallOf::CallOf;
  families::Result<void> plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) override;
  std::string descriptor(Line line) const override;

 private:
  Arguments arguments_;
};

}  // namespace wavejit::row_sum
