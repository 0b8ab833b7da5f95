// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/written_rows.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace wavejit::attention::program {

bool WrittenRow::operator==(const WrittenRow& other) const {
  return output == other.output && std::bit_cast<std::uint32_t>(lse) == std::bit_cast<std::uint32_t>(other.lse);
}

float output_element(const Experiment& problem, const WrittenRow& row, std::size_t dim) {
  if (!problem.output_fp32) return decode(problem.type, row.output[dim]);
  const auto low = static_cast<std::uint32_t>(row.output[2 * dim]);
  const auto high = static_cast<std::uint32_t>(row.output[(2 * dim) + 1]);
  return std::bit_cast<float>(low | high << 16U);
}

Comparison compare_rows(const Experiment& problem, const Reference& reference, const Rows& rows,
                        const WrittenRows& written) {
  Checker checker(weight_format(problem), problem.output_fp32 ? fp32_format : storage_format(problem.type));
  std::vector<float> output;
  for (const auto& [head, numbers] : rows) {
    const auto& of_head = written.at(head);
    for (const std::int64_t row : numbers) {
      const ReferenceRow& exact = reference.at(head, row);
      const WrittenRow& got = of_head.at(row);
      output.resize(exact.output.size());
      for (std::size_t dim = 0; dim < output.size(); ++dim) output[dim] = output_element(problem, got, dim);
      checker.row({.sequence = head.sequence, .token = row, .head = head.head},
                  {.output = exact.output,
                   .magnitude = exact.magnitude,
                   .spread = exact.spread,
                   .score = exact.score,
                   .lse = exact.lse,
                   .largest = exact.largest,
                   .mass = exact.mass},
                  {.output = output, .lse = problem.lse ? std::optional(got.lse) : std::nullopt});
    }
  }
  return checker.comparison();
}

}  // namespace wavejit::attention::program
