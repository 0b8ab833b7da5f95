// How far an answer is from the exact one, and what is accepted: what a family's judge fills in, what reports print.
#pragma once

#include <cstdint>
#include <string>

namespace wavejit::tools {

// 0 for equal infinities and for two NaNs. Infinite where one of the two is not finite and the other differs.
double error_between(double exact, float got);

// ---- A whole array: `run --check` -----------------------------------------------------------------------------------

struct Accuracy {
  double max_error = 0;       // as error_between counts
  double rounding_error = 0;  // what rounding the exact answer to the storage type costs by itself
  double bound = 0;
  bool passed = false;
  std::string where;  // the element with the largest error: "[0, 3, 1, 7]"
};

// ---- Some rows of an answer: `sweep` --------------------------------------------------------------------------------

// The relative RMS that is accepted: the verifier's default of 0.001, or a named regime's with its reason.
struct Band {
  double limit = 0.001;
  std::string regime;  // empty: the default
  std::string reason;
};

inline constexpr double accepted_cosine = 0.999;
inline constexpr double accepted_lse_error = 1e-4;

// What a family does not have keeps its default, which passes.
struct Figures {
  std::int64_t rows = 0;
  double max_abs = 0;                 // as error_between counts
  std::string where;                  // the element that has it: "[sequence, row, head, column]"
  double bound = 0;                   // what that element may have
  std::int64_t out_of_bound = 0;      // elements
  double relative_rms = 0;            // √(Σ error² / Σ exact²)
  double least_cosine = 1;            // of a row with its exact row; rows that are exactly 0 count as 1
  double lse_error = 0;               // over finite rows
  std::int64_t wrong_infinities = 0;  // rows whose LSE is −inf, or is not, against the exact one

  // Empty: passed; else what did not.
  std::string verdict(const Band& band) const;
};

}  // namespace wavejit::tools
