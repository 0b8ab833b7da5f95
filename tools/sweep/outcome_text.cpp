// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/sweep/outcome_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/sweep/rocmlir_limits.h"

namespace wavejit::tools::sweep {

namespace {

std::string_view to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "ok";
    case Verdict::failed:
      return "FAILED";
    default:
      return "aside";
  }
}

std::string duration_text(double milliseconds) {
  if (milliseconds == 0) return "-";
  return milliseconds < 10'000 ? fmt::format("{:.0f} ms", milliseconds) : fmt::format("{:.1f} s", milliseconds / 1e3);
}

// Quoted where it has to be (RFC 4180).
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// JSON knows no infinity.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(std::isnan(value) ? "nan" : "inf");
}

// Name and value, in the order of the columns.
using Fields = std::vector<std::pair<const char*, nlohmann::json>>;

Fields fields_of(const Outcome& outcome) {
  const Comparison& comparison = outcome.comparison;
  return {{"line", outcome.line},
          {"descriptor", outcome.descriptor},
          {"pipeline", outcome.pipeline},
          {"verdict", to_text(outcome.verdict)},
          {"reason", outcome.reason},
          {"kernel_spec", outcome.kernel_spec},
          {"key", outcome.key},
          {"ran", outcome.ran},
          {"schedules", outcome.schedules},
          {"rows", outcome.rows_of_problem},
          {"rows_compared", comparison.rows},
          {"max_error", number(comparison.max_error)},
          {"error_of_bound", number(comparison.of_bound)},
          {"error_of_bound_at", comparison.worst ? comparison.worst->text() : std::string()},
          {"elements_out_of_bound", comparison.elements_beyond},
          {"row_rms_of_expected", comparison.rms ? number(*comparison.rms) : nlohmann::json()},
          {"rms_of_largest", number(comparison.relative_rms())},
          {"least_row_cosine", number(comparison.least_cosine)},
          {"rows_out_of_bound", comparison.rows_beyond},
          {"lse_error", number(comparison.lse_error)},
          {"lse_error_of_bound", number(comparison.lse_of_bound)},
          {"lse_out_of_bound", comparison.lse_beyond},
          {"not_finite_exact", comparison.not_finite_exact},
          {"not_finite_result", comparison.not_finite_result},
          {"compile_ms", number(outcome.compile_ms)},
          {"run_ms", number(outcome.run_ms)},
          {"reference_ms", number(outcome.reference_ms)}};
}

// rocMLIR's limit, where it has one.
double share_of_limit(const Outcome& outcome) {
  return outcome.comparison.relative_rms() / rocmlir_limit(outcome.descriptor);
}

std::string plain(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

}  // namespace

std::size_t Report::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(outcomes, verdict, &Outcome::verdict));
}

std::map<std::string, std::size_t> Report::set_aside() const {
  std::map<std::string, std::size_t> reasons;
  for (const Outcome& outcome : outcomes)
    if (outcome.verdict == Verdict::set_aside) ++reasons[outcome.reason_class];
  return reasons;
}

std::string table_header() {
  return fmt::format("{:<6} {:<8} {:>9} {:>9} {:>9} {:>10} {:>8} {:>8} {:>8}  {:<8}  {}", "", "pipeline", "max error",
                     "of bound", "row RMS", "1 - cosine", "LSE", "compile", "run", "key", "problem");
}

std::string table_row(const Outcome& outcome) {
  // Nothing ran, or nothing came back.
  if (outcome.verdict == Verdict::set_aside || outcome.comparison.rows == 0) {
    return fmt::format("{:<6} {:<8} {}: {}", to_text(outcome.verdict), outcome.pipeline, outcome.descriptor,
                       outcome.reason);
  }
  const Comparison& comparison = outcome.comparison;
  std::string text = fmt::format(
      "{:<6} {:<8} {:>9.3g} {:>9} {:>9} {:>10.2g} {:>8} {:>8} {:>8}  {:<8}  {}", to_text(outcome.verdict),
      outcome.pipeline, comparison.max_error, fmt::format("{:.0f} %", 100 * comparison.of_bound),
      comparison.rms ? fmt::format("{:.2f}", *comparison.rms) : "-", 1 - comparison.least_cosine,
      comparison.worst_lse ? fmt::format("{:.2g}", comparison.lse_error) : "-", duration_text(outcome.compile_ms),
      duration_text(outcome.run_ms), outcome.key.substr(0, 8), outcome.descriptor);
  if (outcome.ran != "whole") text += fmt::format("  [{}]", outcome.ran);
  if (comparison.rows != outcome.rows_of_problem)
    text += fmt::format("  [{} of {} rows compared]", comparison.rows, outcome.rows_of_problem);
  if (!outcome.reason.empty()) text += ": " + outcome.reason;
  return text;
}

std::string summary(const Report& report) {
  std::string text = fmt::format("{}: {} passed, {} failed, {} set aside, {} lines not understood, in {:.1f} s\n",
                                 report.device_name, report.count(Verdict::passed), report.count(Verdict::failed),
                                 report.count(Verdict::set_aside), report.bad.size(), report.seconds);
  for (const auto& [reason, count] : report.set_aside()) text += fmt::format("set aside  {} {}\n", count, reason);
  const Outcome* by_element = nullptr;
  const Outcome* by_row = nullptr;
  const Outcome* by_lse = nullptr;
  const auto larger = [](const Outcome*& worst, const Outcome& one, double Comparison::* figure) {
    if (worst == nullptr || one.comparison.*figure > worst->comparison.*figure) worst = &one;
  };
  for (const Outcome& outcome : report.outcomes) {
    if (outcome.verdict == Verdict::set_aside || outcome.comparison.rows == 0) continue;
    larger(by_element, outcome, &Comparison::of_bound);
    if (outcome.comparison.rms && (by_row == nullptr || *outcome.comparison.rms > *by_row->comparison.rms))
      by_row = &outcome;
    larger(by_lse, outcome, &Comparison::lse_of_bound);
  }
  const Outcome* by_rms = nullptr;
  for (const Outcome& outcome : report.outcomes)
    if (outcome.comparison.rows > 0 && outcome.comparison.rms &&
        (by_rms == nullptr || share_of_limit(outcome) > share_of_limit(*by_rms)))
      by_rms = &outcome;
  const auto of = [](const Outcome& outcome) { return fmt::format("{} on {}", outcome.descriptor, outcome.pipeline); };
  if (by_element != nullptr && by_element->comparison.worst)
    text += fmt::format("closest to its bound: {}, {}\n", by_element->comparison.worst->text(), of(*by_element));
  if (by_row != nullptr) {
    text += fmt::format("largest row RMS: {:.2f} of the expected, limit {}, {}\n", *by_row->comparison.rms,
                        row_rms_limit, of(*by_row));
  }
  if (report.rocmlir_limits && by_rms != nullptr)
    text += fmt::format("closest to rocMLIR's limit: RMS error {:.3g} of the largest element, limit {}, {}\n",
                        by_rms->comparison.relative_rms(), rocmlir_limit(by_rms->descriptor), of(*by_rms));
  if (by_lse != nullptr && by_lse->comparison.worst_lse)
    text += fmt::format("LSE closest to its bound: {}, {}\n", by_lse->comparison.worst_lse->text(), of(*by_lse));
  for (const Refused& line : report.bad) text += fmt::format("line {}: {}\n", line.line, line.why.what);
  return text;
}

std::string to_json(const Report& report) {
  nlohmann::json outcomes = nlohmann::json::array();
  for (const Outcome& outcome : report.outcomes) {
    nlohmann::json one = nlohmann::json::object();
    for (const auto& [name, value] : fields_of(outcome)) one[name] = value;
    outcomes.push_back(std::move(one));
  }
  nlohmann::json bad = nlohmann::json::array();
  for (const Refused& line : report.bad)
    bad.push_back({{"line", line.line}, {"text", line.text}, {"reason", line.why.what}});
  const nlohmann::json json = {{"device_name", report.device_name},
                               {"target", report.target},
                               {"passed", report.count(Verdict::passed)},
                               {"failed", report.count(Verdict::failed)},
                               {"set_aside", report.set_aside()},
                               {"seconds", report.seconds},
                               {"outcomes", outcomes},
                               {"lines_not_understood", bad}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string csv_header() {
  std::string text = "target,device";
  for (const auto& [name, value] : fields_of({})) text += fmt::format(",{}", name);
  return text + "\n";
}

std::string csv_row(const Outcome& outcome, const Report& report) {
  std::string text = csv_field(report.target) + "," + csv_field(report.device_name);
  for (const auto& [name, value] : fields_of(outcome)) text += "," + csv_field(plain(value));
  return text + "\n";
}

}  // namespace wavejit::tools::sweep
