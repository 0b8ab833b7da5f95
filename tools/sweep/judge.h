// What the device wrote, and whether it is right: every row against the exact answer.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/judge.h"
#include "tools/sweep/problem.h"
#include "tools/sweep/reference.h"
#include "tools/sweep/rows.h"

namespace wavejit::tools::sweep {

struct WrittenRow {
  std::vector<std::uint16_t> output;
  float lse = 0;

  bool operator==(const WrittenRow& other) const;  // bit by bit
};
using WrittenRows = std::map<HeadOfSequence, std::map<std::int64_t, WrittenRow>>;

// Every row of `rows` must be among `written` and be known to the reference.
Judgement judge(const Problem& problem, const Reference& reference, const Rows& rows, const WrittenRows& written);

}  // namespace wavejit::tools::sweep
