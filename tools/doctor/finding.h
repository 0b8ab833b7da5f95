// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one question to a GPU brought.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace wavejit::tools::doctor {

enum class Status : std::uint8_t {
  as_expected,  // as the simulated GPU, a document or float64 says
  differs,      // a guess of the project is settled: it is another way
  failed,       // a wrong result, or a launch that was refused
  told,         // a figure that nothing is held against
  skipped,
};
std::string_view to_text(Status status);

struct Finding {
  std::string name;
  std::string settles;
  int risk = 0;
  Status status = Status::skipped;
  std::string text;                                // one line
  nlohmann::json data = nlohmann::json::object();  // for the report
};

}  // namespace wavejit::tools::doctor
