// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/judged_rows.h"

#include <optional>
#include <vector>

namespace wavejit::tests {

void judge_row(tools::Judge& judge, const AttentionInputs& inputs, const AttentionAnswer& exact, int sequence, int row,
               int head, const tools::ResultRow& result) {
  const auto dim = static_cast<std::size_t>(inputs.value_dim());
  const std::size_t output = inputs.row_of_output(sequence, row, head) * dim;
  const std::size_t lse = inputs.row_of_lse(sequence, row, head);
  judge.row({.sequence = sequence, .token = row, .head = head},
            {.output = std::span(exact.o).subspan(output, dim),
             .magnitude = std::span(exact.magnitude).subspan(output, dim),
             .spread = exact.spread[lse],
             .score = exact.score[lse],
             .lse = exact.lse[lse]},
            result);
}

tools::Judgement judge(Storage storage, const AttentionInputs& inputs, const AttentionAnswer& exact,
                       std::span<const std::uint16_t> o, std::span<const float> lse) {
  tools::Judge judge(format_of(storage));
  const auto dim = static_cast<std::size_t>(inputs.value_dim());
  std::vector<float> row(dim);
  for (int b = 0; b < inputs.batch; ++b) {
    for (int i = 0; i < inputs.queries(b); ++i) {
      for (int h = 0; h < inputs.query_heads; ++h) {
        const std::size_t at = inputs.row_of_output(b, i, h) * dim;
        for (std::size_t c = 0; c < dim; ++c) row[c] = from_storage(storage, o[at + c]);
        const std::optional<float> got = lse.empty() ? std::nullopt : std::optional(lse[inputs.row_of_lse(b, i, h)]);
        judge_row(judge, inputs, exact, b, i, h, {.output = row, .lse = got});
      }
    }
  }
  return judge.judgement();
}

}  // namespace wavejit::tests
