// Error figures of some rows against the exact answer, and whether they pass.
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

// The relative RMS that is accepted: the verifier's default of 0.001, or a named regime's with its reason.
struct Band {
  double limit = 0.001;
  std::string regime;  // empty: the default
  std::string reason;
};
Band band_of(const Problem& problem);

inline constexpr double least_cosine = 0.999;
inline constexpr double most_lse_error = 1e-4;

struct Figures {
  std::int64_t rows = 0;
  double max_abs = 0;                 // infinite where one of the two is not finite and the other differs
  std::string where;                  // [sequence, row, head, column] of max_abs
  double bound = 0;                   // what that element may have
  std::int64_t out_of_bound = 0;      // elements
  double relative_rms = 0;            // √(Σ error² / Σ exact²)
  double least_cosine = 1;            // of a row with its exact row; rows that are exactly 0 count as 1
  double lse_error = 0;               // over finite rows
  std::int64_t wrong_infinities = 0;  // rows whose LSE is −inf, or is not, against the exact one

  // Empty: passed; else what did not.
  std::string verdict(const Band& band) const;
};

// Every row of `rows` must be among `written` and be known to the reference.
Figures judge(const Problem& problem, const Reference& reference, const Rows& rows, const WrittenRows& written);

}  // namespace wavejit::attention_forward::program
