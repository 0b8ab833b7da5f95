// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <array>

#include "tools/doctor/examination.h"

namespace wavejit::tools::doctor {
namespace {

struct Fact {
  const char* name;
  int attribute;  // HIP's number (hipDeviceAttribute_t of hip_runtime_api.h)
  const char* settles;
};
constexpr const char* board =
    "src/targets: the product's; other boards are planned for by what HIP says (docs/first-day-on-silicon.md)";
constexpr std::array<Fact, 9> facts = {{
    {"fact_dies", 10018, board},
    {"fact_compute_units", 63, board},
    {"fact_lanes_of_a_wave", 87, "src/targets: wave_size"},
    {"fact_lds_bytes_of_a_workgroup", 74, "src/targets: lds_bytes_per_workgroup"},
    {"fact_lds_bytes_of_a_compute_unit", 10002, "src/targets: lds_bytes"},
    {"fact_threads_of_a_workgroup", 56, "src/targets: max_threads_per_workgroup"},
    {"fact_l2_bytes", 19, "src/targets: l2_bytes, of one die; HIP may count several"},
    {"fact_clock_khz", 5, "src/targets: clock_khz, which turns predicted cycles into time"},
    {"fact_memory_clock_khz", 60, "src/targets: memory_clock_khz, which the clock's memory rate leans on"},
}};

}  // namespace

std::vector<Question> fact_questions(const Subjects& subjects) {
  std::vector<Question> questions;
  for (const Fact& fact : facts) {
    Finding blank;
    blank.name = fact.name;
    blank.settles = fact.settles;
    questions.push_back({.finding = std::move(blank), .ask = [&fact, subjects](Finding finding) {
                           const auto value = subjects.gpu->attribute(fact.attribute);
                           if (!value) {
                             finding.status = Status::skipped;
                             finding.text = "this HIP does not say";
                             return finding;
                           }
                           finding.data["value"] = *value;
                           finding.status = Status::told;
                           finding.text = fmt::format("{}", *value);
                           const auto table = subjects.simulated != nullptr
                                                  ? subjects.simulated->attribute(fact.attribute)
                                                  : std::nullopt;
                           if (!table) return finding;
                           finding.data["table"] = *table;
                           finding.status = *value == *table ? Status::as_expected : Status::differs;
                           if (*value != *table) finding.text += fmt::format("; the target table has {}", *table);
                           return finding;
                         }});
  }
  return questions;
}

}  // namespace wavejit::tools::doctor
