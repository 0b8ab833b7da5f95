#include "tools/figures.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

namespace wavejit::tools {

double error_between(double exact, float got) {
  if (std::isnan(exact) && std::isnan(got)) return 0;
  if (std::isfinite(exact) && std::isfinite(got)) return std::fabs(exact - static_cast<double>(got));
  return exact == static_cast<double>(got) ? 0 : std::numeric_limits<double>::infinity();
}

std::string Figures::verdict(const Band& band) const {
  std::vector<std::string> wrong;
  if (rows == 0) wrong.emplace_back("no row was written");
  if (out_of_bound > 0) {
    wrong.push_back(fmt::format("{} elements out of bound, the worst {:.3g} at {}, bound {:.3g}", out_of_bound, max_abs,
                                where, bound));
  }
  // Written so that NaN fails.
  if (!(relative_rms <= band.limit)) wrong.push_back(fmt::format("relative RMS {:.3g} > {}", relative_rms, band.limit));
  if (!(least_cosine >= accepted_cosine))
    wrong.push_back(fmt::format("cosine {:.6f} < {}", least_cosine, accepted_cosine));
  if (!(lse_error <= accepted_lse_error))
    wrong.push_back(fmt::format("LSE error {:.3g} > {}", lse_error, accepted_lse_error));
  if (wrong_infinities > 0) wrong.push_back(fmt::format("{} LSE rows with a wrong -inf", wrong_infinities));
  std::string text;
  for (const std::string& what : wrong) text += (text.empty() ? "" : "; ") + what;
  return text;
}

}  // namespace wavejit::tools
