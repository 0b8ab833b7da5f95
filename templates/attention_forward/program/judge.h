// Error figures of some rows against the exact answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention_forward/program/problem.h"
#include "templates/attention_forward/program/row_reference.h"
#include "templates/attention_forward/program/rows.h"

namespace wavejit::attention_forward::program {

// What the device wrote.
struct WrittenRow {
  std::vector<std::uint16_t> output;
  float lse = 0;

  bool operator==(const WrittenRow& other) const;  // bit by bit
};
using WrittenRows = std::map<HeadOfSequence, std::map<std::int64_t, WrittenRow>>;

Band band_of(const Problem& problem);

// Every row of `rows` must be among `written` and be known to the reference.
Figures judge(const Problem& problem, const Reference& reference, const Rows& rows, const WrittenRows& written);

}  // namespace wavejit::attention_forward::program
