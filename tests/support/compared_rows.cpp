// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/compared_rows.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace wavejit::tests {

void check_row(tools::Checker& checker, const AttentionInputs& inputs, const AttentionAnswer& exact, int sequence,
               int row, int head, const tools::ResultRow& result) {
  const auto dim = static_cast<std::size_t>(inputs.value_dim());
  const std::size_t output = inputs.row_of_output(sequence, row, head) * dim;
  const std::size_t lse = inputs.row_of_lse(sequence, row, head);
  checker.row({.sequence = sequence, .token = row, .head = head},
              {.output = std::span(exact.o).subspan(output, dim),
               .magnitude = std::span(exact.magnitude).subspan(output, dim),
               .spread = exact.spread[lse],
               .score = exact.score[lse],
               .lse = exact.lse[lse],
               .largest = exact.largest[lse]},
              result);
}

tools::Comparison compare_rows(tools::Checker checker, const AttentionInputs& inputs, const AttentionAnswer& exact,
                               std::span<const float> o, std::span<const float> lse) {
  const auto dim = static_cast<std::size_t>(inputs.value_dim());
  for (int b = 0; b < inputs.batch; ++b) {
    for (int i = 0; i < inputs.queries(b); ++i) {
      for (int h = 0; h < inputs.query_heads; ++h) {
        const std::optional<float> got = lse.empty() ? std::nullopt : std::optional(lse[inputs.row_of_lse(b, i, h)]);
        check_row(checker, inputs, exact, b, i, h,
                  {.output = o.subspan(inputs.row_of_output(b, i, h) * dim, dim), .lse = got});
      }
    }
  }
  return checker.comparison();
}

tools::Comparison compare_rows(Storage storage, const AttentionInputs& inputs, const AttentionAnswer& exact,
                               std::span<const std::uint16_t> o, std::span<const float> lse) {
  std::vector<float> values(o.size());
  std::ranges::transform(o, values.begin(), [&](std::uint16_t bits) { return from_storage(storage, bits); });
  return compare_rows(tools::Checker(format_of(storage)), inputs, exact, values, lse);
}

}  // namespace wavejit::tests
