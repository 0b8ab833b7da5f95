// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/example_family/row_sum/call/call.h"

#include "families/call/call_head.h"
#include "families/call/refusal.h"

namespace wavejit::row_sum {

using families::refusal::refused;
using families::refusal::up_to;

families::Result<RowSumProblem> check(const wavejit_row_sum_arguments* arguments) {
  if (auto head = families::check_head(arguments, WAVEJIT_ROW_SUM, "row_sum"); !head)
    return std::unexpected(std::move(head.error()));
  const wavejit_row_sum_arguments& call = *arguments;
  if (call.dtype != WAVEJIT_FP32 && call.dtype != WAVEJIT_FP16)
    return refused("dtype", families::refusal::dtype_text(call.dtype), "1 (fp16), 3 (fp32)");
  if (call.rows < 1 || call.rows > max_rows) return refused("rows", std::to_string(call.rows), up_to("1", max_rows));
  if (call.columns < elements_per_load || call.columns > max_columns || call.columns % elements_per_load != 0)
    return refused("columns", std::to_string(call.columns), "multiples of 4, " + up_to("4", max_columns));
  for (const auto& [name, pointer] :
       {std::pair<const char*, const void*>{"input", call.input}, {"output", call.output}}) {
    if (pointer == nullptr || reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0)
      return refused(name, families::refusal::pointer_text(pointer), "device memory aligned to 16 bytes");
  }
  return RowSumProblem{.shape = {{.dtype = call.dtype == WAVEJIT_FP32 ? DataType::fp32 : DataType::fp16}},
                       .rows = static_cast<std::uint32_t>(call.rows),
                       .columns = static_cast<std::uint32_t>(call.columns)};
}

families::Result<void> RowSumCall::plan(Kernels /*kernels*/, const void* /*memory*/, families::LaunchPlan& plan) {
  arguments_ = {.input = reinterpret_cast<std::uintptr_t>(call_.input),
                .output = reinterpret_cast<std::uintptr_t>(call_.output),
                .rows = problem_.rows,
                .columns = problem_.columns};
  plan.add({.x = (problem_.rows + threads - 1) / threads}, threads, arguments_);
  return {};
}

std::string RowSumCall::descriptor(Line /*line*/) const { return to_text(problem_); }

}  // namespace wavejit::row_sum
