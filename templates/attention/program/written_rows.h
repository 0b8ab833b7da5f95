// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the device wrote, and whether it is right: every row against the exact answer.
#pragma once

#include <cstdint>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention/program/row_reference.h"
#include "templates/attention/program/rows.h"
#include "tools/checker.h"

namespace wavejit::attention::program {

struct WrittenRow {
  std::vector<std::uint16_t> output;  // bits as they lie in memory: a word an element, of f32 two
  float lse = 0;

  bool operator==(const WrittenRow& other) const;  // bit by bit
};
using WrittenRows = std::map<HeadOfSequence, std::map<std::int64_t, WrittenRow>>;

// Element `dim` of a row's O.
float output_element(const Experiment& problem, const WrittenRow& row, std::size_t dim);

// Every row of `rows` must be among `written` and be known to the reference.
Comparison compare_rows(const Experiment& problem, const Reference& reference, const Rows& rows,
                        const WrittenRows& written);

}  // namespace wavejit::attention::program
