// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/commands/run_report.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/profile/launch_text.h"

namespace wavejit::tools {

namespace {

struct Phase {
  const char* name;
  std::uint64_t wavejit_call_report::* nanoseconds;
};

constexpr std::array phases = {
    Phase{"route", &wavejit_call_report::route_ns},     Phase{"lookup", &wavejit_call_report::lookup_ns},
    Phase{"emit", &wavejit_call_report::emit_ns},       Phase{"lower", &wavejit_call_report::lower_ns},
    Phase{"link", &wavejit_call_report::link_ns},       Phase{"inspect", &wavejit_call_report::inspect_ns},
    Phase{"publish", &wavejit_call_report::publish_ns}, Phase{"load", &wavejit_call_report::load_ns},
    Phase{"launch", &wavejit_call_report::launch_ns}};

std::string time_text(std::uint64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < 10'000) return fmt::format("{:.2f} µs", value / 1e3);
  if (nanoseconds < 1'000'000) return fmt::format("{:.0f} µs", value / 1e3);
  if (nanoseconds < 10'000'000'000) return fmt::format("{:.1f} ms", value / 1e6);
  return fmt::format("{:.1f} s", value / 1e9);
}

std::string error_text(const Comparison& comparison) {
  std::string text = fmt::format("max {:.3g}, {:.0f} % of its bound", comparison.max_error, 100 * comparison.of_bound);
  if (comparison.rms) text += fmt::format("; row RMS {:.2f} of the expected, limit {}", *comparison.rms, row_rms_limit);
  return text + fmt::format("; 1 - cosine {:.2g}", 1 - comparison.least_cosine);
}

std::string lse_text(const Comparison& comparison) {
  return fmt::format("max {:.3g}, {:.0f} % of its bound", comparison.lse_error, 100 * comparison.lse_of_bound);
}

// Never "passed" alone where something was not finite, or not compared.
std::string verdict_text(const Comparison& comparison) {
  if (!comparison.passed()) return "FAILED: " + comparison.wrong();
  const std::string remarks = comparison.remarks();
  return remarks.empty() ? "passed" : "passed; " + remarks;
}

// JSON knows no infinity.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(std::isnan(value) ? "nan" : "inf");
}

nlohmann::json comparison_json(const std::optional<Comparison>& comparison) {
  if (!comparison) return {};
  return {{"passed", comparison->passed()},
          {"wrong", comparison->wrong()},
          {"max_error", number(comparison->max_error)},
          {"error_of_bound", number(comparison->of_bound)},
          {"row_rms_of_expected", comparison->rms ? number(*comparison->rms) : nlohmann::json()},
          {"row_rms_limit", row_rms_limit},
          {"least_row_cosine", number(comparison->least_cosine)},
          {"lse_error", number(comparison->lse_error)},
          {"lse_error_of_bound", number(comparison->lse_of_bound)},
          {"rows_beyond_limit_of_scores", comparison->rows_beyond_limit},
          {"not_finite_exact", comparison->not_finite_exact},
          {"not_finite_result", comparison->not_finite_result}};
}

}  // namespace

std::string origin_text(std::int32_t origin) {
  switch (origin) {
    case WAVEJIT_ORIGIN_MEMORY:
      return "in memory";
    case WAVEJIT_ORIGIN_DISK:
      return "on disk";
    case WAVEJIT_ORIGIN_COMPILED:
      return "compiled";
    default:
      return "none";
  }
}

std::string to_text(const RunReport& report) {
  const wavejit_call_report& call = report.call;
  std::string text;
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("{:<8} {}\n", name, value); };
  line("kernel", call.kernel_spec);
  line("key", call.key);
  line("origin", origin_text(call.origin));
  line("device", report.device_name);
  std::string times;
  for (const Phase& phase : phases) {
    const std::uint64_t nanoseconds = call.*phase.nanoseconds;
    if (nanoseconds == 0) continue;
    times += fmt::format("{}{} {}", times.empty() ? "" : ", ", phase.name, time_text(nanoseconds));
  }
  line("phases", times);
  std::string steps;
  for (const auto& [name, nanoseconds] : report.steps) {
    steps += fmt::format("{}{} {}", steps.empty() ? "" : ", ", name, time_text(nanoseconds));
  }
  line("around", steps);
  if (report.repeats > 0) {
    line("repeats", fmt::format("{} calls, {}, median {} from entry to return, {}", report.repeats, report.last_origin,
                                time_text(report.median_repeat_ns),
                                report.repeats_identical ? "the same bits each time" : "DIFFERENT BITS"));
  }
  for (const std::string& note : report.notes) line("note", note);
  if (report.comparison) {
    line("error", error_text(*report.comparison));
    if (report.comparison->worst_lse) line("lse", lse_text(*report.comparison));
    line("check", verdict_text(*report.comparison));
  }
  const std::vector<nlohmann::json> launches = launches_of(report.cycles);
  for (const nlohmann::json& launch : launches) text += launch_text(launch, Detail::brief);
  if (!report.cycles.empty()) line("trust", model_error_text(report.target, launches));
  for (const std::string& written : report.written) line("wrote", written);
  return text;
}

std::string to_json(const RunReport& report) {
  const wavejit_call_report& call = report.call;
  nlohmann::json phase_times = nlohmann::json::object();
  for (const Phase& phase : phases) phase_times[phase.name] = call.*phase.nanoseconds;
  nlohmann::json steps = nlohmann::json::object();
  for (const auto& [name, nanoseconds] : report.steps) steps[name] = nanoseconds;
  nlohmann::json json = {{"kernel_spec", call.kernel_spec},
                         {"key", call.key},
                         {"origin", origin_text(call.origin)},
                         {"device_name", report.device_name},
                         {"target", report.target},
                         {"phases_ns", phase_times},
                         {"steps_ns", steps},
                         {"notes", report.notes},
                         {"written", report.written},
                         {"check", comparison_json(report.comparison)},
                         {"passed", report.passed()}};
  if (report.repeats > 0) {
    json["repeats"] = {{"count", report.repeats},
                       {"origin", report.last_origin},
                       {"median_ns", report.median_repeat_ns},
                       {"identical", report.repeats_identical}};
  }
  if (!report.cycles.empty()) {
    json["predicted_cycles"] = launches_of(report.cycles);
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace wavejit::tools
