// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/example_family/row_sum/call/call.h"

#include "families/call/call_head.h"
#include "families/call/refusal.h"

namespace wavejit::row_sum {

using families::refusal::bad;
using families::refusal::refuse;
using families::refusal::up_to;

families::Shape RowSumShape::shape() const {
  return {.family = &family(), .code = std::uint64_t{1} << 63 | static_cast<std::uint64_t>(dtype)};
}
RowSumShape RowSumShape::of(std::uint64_t code) { return {.dtype = static_cast<DataType>(code & 1U)}; }

families::Result<RowSumProblem> check(const wavejit_row_sum_arguments* arguments) {
  if (auto head = families::check_head(arguments, WAVEJIT_ROW_SUM, "row_sum"); !head)
    return std::unexpected(std::move(head.error()));
  const wavejit_row_sum_arguments& call = *arguments;
  if (call.dtype != WAVEJIT_FP32 && call.dtype != WAVEJIT_FP16)
    return refuse(
        bad(WAVEJIT_INVALID_ARGUMENT, "dtype", families::refusal::dtype_text(call.dtype), "1 (fp16), 3 (fp32)"));
  if (call.rows < 1 || call.rows > max_rows)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "rows", std::to_string(call.rows), up_to("1", max_rows)));
  if (call.columns < elements_per_load || call.columns > max_columns || call.columns % elements_per_load != 0)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "columns", std::to_string(call.columns),
                      "multiples of 4, " + up_to("4", max_columns)));
  for (const auto& [name, pointer] :
       {std::pair<const char*, const void*>{"input", call.input}, {"output", call.output}}) {
    if (pointer == nullptr || reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0)
      return refuse(bad(WAVEJIT_INVALID_ARGUMENT, name, families::refusal::pointer_text(pointer),
                        "device memory aligned to 16 bytes"));
  }
  return RowSumProblem{.dtype = call.dtype == WAVEJIT_FP32 ? DataType::fp32 : DataType::fp16,
                       .rows = static_cast<std::uint32_t>(call.rows),
                       .columns = static_cast<std::uint32_t>(call.columns)};
}

RowSumCall::RowSumCall(const wavejit_row_sum_arguments& arguments, const RowSumProblem& problem,
                       const targets::Target& /*target*/, const families::Toggles& /*toggles*/)
    : Call(RowSumShape{problem.dtype}.shape()),
      problem_(problem),
      arguments_{.input = reinterpret_cast<std::uintptr_t>(arguments.input),
                 .output = reinterpret_cast<std::uintptr_t>(arguments.output),
                 .rows = problem.rows,
                 .columns = problem.columns} {
  report = arguments.head.report;
}

families::Result<void> RowSumCall::plan(std::span<const families::KernelSpec* const> /*kernels*/,
                                        const void* /*memory*/, families::LaunchPlan& plan) {
  plan.add({.grid_x = (problem_.rows + threads - 1) / threads,
            .threads = threads,
            .arguments = &arguments_,
            .argument_bytes = sizeof arguments_});
  return {};
}

std::string RowSumCall::descriptor(Line /*line*/) const { return to_text(problem_); }

}  // namespace wavejit::row_sum
