// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_merge/program/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wavejit::attention_merge::program {

MergedRow merged(std::span<const PartRow> parts) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const PartRow& part : parts) largest = std::max(largest, part.lse);
  MergedRow row = {.o = std::vector<double>(parts.front().o.size()), .lse = largest};
  if (std::isinf(largest) && largest < 0) return row;
  double sum = 0;
  for (const PartRow& part : parts) sum += std::exp(part.lse - largest);
  for (const PartRow& part : parts) {
    const double weight = std::exp(part.lse - largest) / sum;
    if (weight == 0) continue;
    for (std::size_t dim = 0; dim < row.o.size(); ++dim) row.o[dim] += weight * static_cast<double>(part.o[dim]);
  }
  row.lse = largest + std::log(sum);
  return row;
}

}  // namespace wavejit::attention_merge::program
