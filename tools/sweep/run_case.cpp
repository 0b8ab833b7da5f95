// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/sweep/run_case.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "tools/sweep/kernel_keys.h"
#include "tools/sweep/rocmlir_limits.h"

namespace wavejit::tools::sweep {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string gibibytes(std::uint64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class CaseRun {
 public:
  CaseRun(const Entry& entry, const Settings& settings) : settings_(settings), case_(entry.problem->make_case()) {
    blank_.line = entry.line;
    blank_.descriptor = entry.problem->text();
    blank_.rows_of_problem = case_->rows();
  }

  Result<void> run(const std::function<void(Outcome)>& take) {
    const std::uint64_t needed = case_->device_bytes();
    if (needed > settings_.memory_budget) {
      for (const Pipeline& pipeline : settings_.pipelines) take(over_budget(pipeline, needed));
      return {};
    }
    if (const auto ready = case_->prepare(settings_.pipelines.front().engine); !ready) {
      if (ready.error().code == ExitCode::internal) return std::unexpected(ready.error());
      for (const Pipeline& pipeline : settings_.pipelines) take(failed_with(begin(pipeline), ready.error()));
      return {};
    }
    for (const Pipeline& pipeline : settings_.pipelines) {
      Outcome outcome = begin(pipeline);
      if (auto done = on_pipeline(pipeline, outcome); !done) outcome = failed_with(outcome, done.error());
      take(std::move(outcome));
    }
    return {};
  }

 private:
  Outcome begin(const Pipeline& pipeline) const {
    Outcome outcome = blank_;
    outcome.pipeline = pipeline.name;
    return outcome;
  }

  Outcome over_budget(const Pipeline& pipeline, std::uint64_t needed) const {
    return set_aside(begin(pipeline), over_the_budget,
                     fmt::format("needs {}, the budget is {}", gibibytes(needed), gibibytes(settings_.memory_budget)));
  }

  static Outcome set_aside(Outcome outcome, std::string reason_class, std::string reason) {
    outcome.verdict = Verdict::set_aside;
    outcome.reason_class = std::move(reason_class);
    outcome.reason = std::move(reason);
    return outcome;
  }

  static Outcome failed_with(Outcome outcome, const Failure& why) {
    if (why.code == ExitCode::unsupported) return set_aside(std::move(outcome), not_supported, why.what);
    outcome.verdict = Verdict::failed;
    outcome.reason = why.what;
    return outcome;
  }

  // The settings of the simulated GPU for one run; what the environment says stays where nothing else is asked for.
  void choose(const Schedule* schedule, const Workgroups& workgroups) const {
    if (!settings_.simulated) return;
    wavejit_simgpu_settings now = settings_.simulated->settings();
    if (schedule != nullptr) {
      now.schedule = schedule->order;
      now.seed = schedule->seed;
      if (schedule->arrival) now.arrival = *schedule->arrival;
    }
    now.workgroup_first = workgroups.first;
    now.workgroup_step = workgroups.step;
    now.workgroup_count = workgroups.count;
    settings_.simulated->set(now);
  }

  bool checks(std::uint32_t which) const {
    return settings_.simulated && (settings_.simulated->settings().checks & which) != 0;
  }

  // Compiles and loads by running as little as the device can.
  Result<void> warm_up(const Pipeline& pipeline, bool has_workspace, Outcome& outcome) const {
    wavejit_call_report report{};
    report.size = sizeof report;
    Result<void> ran;
    if (has_workspace) {
      // A workgroup that merges would read what workgroups that did not run have not written, one that follows a list
      // would go where nobody wrote that it should, and where workgroups count each other a launch that ends before
      // all have arrived leaves its count to the next.
      ran = case_->run_least(pipeline.engine, settings_.sample, &report);
    } else {
      choose(nullptr, {.first = 0, .step = 1, .count = 1, .total = 0});
      ran = case_->run(pipeline.engine, &report);
      choose(nullptr, {});
    }
    if (settings_.simulated) static_cast<void>(settings_.simulated->take_reports());
    if (!ran) return ran;
    outcome.kernel_spec = report.kernel_spec;
    outcome.key = report.key;
    outcome.compile_ms = milliseconds(report.emit_ns + report.lower_ns + report.link_ns + report.inspect_ns);
    return {};
  }

  // One run: what was written, or in `wrong` what cannot be.
  Result<std::unique_ptr<Written>> run_once(const Pipeline& pipeline, const Plan& plan, const Schedule* schedule,
                                            double& run_ms, std::string& wrong) const {
    if (auto erased = case_->erase(); !erased) return std::unexpected(erased.error());
    choose(schedule, plan.workgroups);
    const std::uint64_t workgroups_before = settings_.simulated ? settings_.simulated->counters().workgroups : 0;
    const auto started = Clock::now();
    const auto ran = case_->run_plan(pipeline.engine, plan);
    run_ms = milliseconds_since(started);
    choose(nullptr, {});
    const std::string reports = settings_.simulated ? settings_.simulated->take_reports() : std::string();
    if (!ran) return std::unexpected(ran.error());
    if (!reports.empty()) wrong = "the simulated GPU reports: " + first_line(reports);
    auto written = case_->written();
    if (!written) return std::unexpected(written.error());
    const auto fence = case_->broken_fence();
    if (!fence) return std::unexpected(fence.error());
    if (wrong.empty()) wrong = *fence;
    if (wrong.empty()) {
      const std::uint64_t workgroups =
          settings_.simulated ? settings_.simulated->counters().workgroups - workgroups_before : 0;
      wrong = case_->missing(**written, plan, workgroups);
    }
    return written;
  }

  Result<void> on_pipeline(const Pipeline& pipeline, Outcome& outcome) {
    const auto workspace = case_->workspace_bytes(pipeline.engine);
    if (!workspace) return std::unexpected(workspace.error());
    if (*workspace + case_->device_bytes() > settings_.memory_budget) {
      outcome = over_budget(pipeline, *workspace + case_->device_bytes());
      return {};
    }
    if (auto warm = warm_up(pipeline, *workspace > 0, outcome); !warm) return warm;
    const std::string all = kernel_keys(pipeline.engine, pipeline.name, outcome.descriptor);
    if (const auto [other, added] = pipeline_of_keys_.try_emplace(all.empty() ? outcome.key : all, pipeline.name);
        !added) {
      outcome = set_aside(std::move(outcome), same_kernel, "the kernel that " + other->second + " ran");
      return {};
    }
    const double sample = settings_.simulated ? settings_.sample : std::numeric_limits<double>::infinity();
    const std::unique_ptr<Plan> plan = case_->plan(outcome.kernel_spec, sample);
    if (const std::uint64_t shadow = checks(WAVEJIT_SIMGPU_CHECK_RACES) ? case_->race_shadow_bytes(*plan) : 0;
        *workspace + case_->device_bytes() + shadow > settings_.memory_budget) {
      outcome = over_budget(pipeline, *workspace + case_->device_bytes() + shadow);
      outcome.reason += fmt::format("; {} of it for the check of races", gibibytes(shadow));
      return {};
    }
    outcome.ran = plan->text;

    std::vector<const Schedule*> schedules;
    for (const Schedule& schedule : settings_.schedules) {
      schedules.push_back(&schedule);
      outcome.schedules += (outcome.schedules.empty() ? "" : " ") + schedule.text;
    }
    if (schedules.empty()) schedules.push_back(nullptr);

    std::string wrong;
    std::unique_ptr<Written> first;
    for (const Schedule* schedule : schedules) {
      double run_ms = 0;
      auto written = run_once(pipeline, *plan, schedule, run_ms, wrong);
      if (!written) return std::unexpected(written.error());
      if (schedule == schedules.front()) {
        outcome.run_ms = run_ms;
        first = std::move(*written);
      } else if (wrong.empty() && !(*written)->same_as(*first)) {
        wrong = fmt::format("other bits under schedule {}: {}", schedule->text, (*written)->difference(*first));
      }
      if (!wrong.empty()) {
        if (schedule != nullptr) wrong += fmt::format(" (schedule {})", schedule->text);
        break;
      }
    }

    const auto started = Clock::now();
    outcome.comparison = case_->compare(*first, settings_.sample);
    outcome.reference_ms = milliseconds_since(started);
    if (wrong.empty() && outcome.comparison.rows == 0) wrong = "no row was written";
    // Where rocMLIR has no limit, there are this project's.
    const bool by_rms = settings_.rocmlir_limits && outcome.comparison.rms.has_value();
    if (wrong.empty() && (settings_.own_limits || !by_rms)) wrong = outcome.comparison.wrong();
    if (wrong.empty() && by_rms) wrong = wrong_by_rms(outcome.comparison, rocmlir_limit(outcome.descriptor));
    if (wrong.empty() && by_first_pipeline_ != nullptr && case_->same_bits(outcome.kernel_spec, first_spec_)) {
      if (const std::string where = first->difference(*by_first_pipeline_); !where.empty())
        wrong = fmt::format("other bits than pipeline {}: {}", first_pipeline_, where);
    }
    if (by_first_pipeline_ == nullptr) {
      by_first_pipeline_ = std::move(first);
      first_pipeline_ = outcome.pipeline;
      first_spec_ = outcome.kernel_spec;
    }
    outcome.verdict = wrong.empty() ? Verdict::passed : Verdict::failed;
    outcome.reason = wrong;
    return {};
  }

  const Settings& settings_;
  std::unique_ptr<Case> case_;
  Outcome blank_;
  std::map<std::string, std::string> pipeline_of_keys_;
  std::unique_ptr<Written> by_first_pipeline_;
  std::string first_pipeline_;
  std::string first_spec_;
};

}  // namespace

Outcome refused_outcome(const Refused& line) {
  Outcome outcome;
  outcome.line = line.line;
  outcome.descriptor = line.text;
  outcome.reason_class = not_supported;
  outcome.reason = line.why.what;
  return outcome;
}

Result<void> run_case(const Entry& entry, const Settings& settings, const std::function<void(Outcome)>& take) {
  return CaseRun(entry, settings).run(take);
}

}  // namespace wavejit::tools::sweep
