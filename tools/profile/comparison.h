// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two predictions side by side.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/profile/prediction.h"

namespace wavejit::tools {

struct ComparisonRow {
  std::string name;
  std::string a;
  std::string b;
  std::string difference;  // of B from A
  std::string verdict;     // "better", "worse" or empty: neither, or nobody can say
};
std::vector<ComparisonRow> compare(const Prediction& a, const Prediction& b);

std::string comparison_text(const Prediction& a, const Prediction& b);
nlohmann::json comparison_rows_json(const std::vector<ComparisonRow>& rows);
nlohmann::json comparison_json(const Prediction& a, const Prediction& b);

}  // namespace wavejit::tools
