#include "tools/sweep/run_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <utility>

#include "tools/sweep/device_case.h"
#include "tools/sweep/reference.h"
#include "tools/sweep/sampling.h"

namespace wavejit::tools::sweep {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string gibibytes(std::uint64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

// "… tile=128x64 …": the query rows of a workgroup.
std::optional<std::int64_t> tile_rows_of(std::string_view spec) {
  constexpr std::string_view word = " tile=";
  const std::size_t at = spec.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t rows = 0;
  const char* begin = spec.data() + at + word.size();
  const auto [end, error] = std::from_chars(begin, spec.data() + spec.size(), rows);
  if (error != std::errc() || rows < 1 || end == begin) return std::nullopt;
  return rows;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// How a case is run on a pipeline: whole, by chosen workgroups or by views.
struct Plan {
  std::optional<Workgroups> workgroups;
  std::vector<View> views;
  std::int64_t tile_rows = 0;
  std::string text = "whole";
};

class CaseRun {
 public:
  CaseRun(const Case& which, const Settings& settings)
      : problem_(which.problem),
        settings_(settings),
        inputs_(problem_.type, problem_.inputs, problem_.seed),
        work_(multiplications(problem_)) {
    blank_.line = which.line;
    blank_.descriptor = problem_.text;
    blank_.rows_of_problem = queries_of(problem_).rows();
  }

  Result<void> run(const std::function<void(Outcome)>& take) {
    const std::uint64_t needed = device_bytes(problem_);
    if (needed > settings_.memory_budget) {
      for (const Pipeline& pipeline : settings_.pipelines) take(over_budget(pipeline, needed));
      return {};
    }
    reference_.emplace(problem_, inputs_);
    auto device = DeviceCase::prepare(settings_.pipelines.front().engine, problem_, inputs_, reference_->sinks());
    if (!device) {
      if (device.error().code == ExitCode::internal) return std::unexpected(device.error());
      for (const Pipeline& pipeline : settings_.pipelines) take(failed_with(begin(pipeline), device.error()));
      return {};
    }
    for (const Pipeline& pipeline : settings_.pipelines) {
      Outcome outcome = begin(pipeline);
      if (auto done = on_pipeline(pipeline, *device, outcome); !done) outcome = failed_with(outcome, done.error());
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
    }
    now.workgroup_first = workgroups.first;
    now.workgroup_step = workgroups.step;
    now.workgroup_count = workgroups.count;
    settings_.simulated->set(now);
  }

  // Compiles and loads by running as little as the device can.
  Result<void> warm_up(const Pipeline& pipeline, DeviceCase& device, bool splits_keys, Outcome& outcome) const {
    wavejit_call_report report{};
    report.size = sizeof report;
    Result<void> ran;
    const bool checked = settings_.simulated && settings_.simulated->settings().checks != 0;
    if (checked && splits_keys) {
      // A workgroup that merges would read what workgroups that did not run have not written.
      ran = work_ <= settings_.sample
                ? device.run(pipeline.engine, &report)
                : device.run(pipeline.engine, choose_views(problem_, settings_.sample).front(), &report);
    } else {
      choose(nullptr, {.first = 0, .step = 1, .count = 1, .total = 0});
      ran = device.run(pipeline.engine, &report);
      choose(nullptr, {});
    }
    if (settings_.simulated) static_cast<void>(settings_.simulated->take_reports());
    if (!ran) return ran;
    outcome.kernel_spec = report.kernel_spec;
    outcome.key = report.key;
    outcome.compile_ms = milliseconds(report.emit_ns + report.lower_ns + report.link_ns + report.inspect_ns);
    return {};
  }

  Plan plan_for(const Outcome& outcome) const {
    Plan plan;
    plan.tile_rows = tile_rows_of(outcome.kernel_spec).value_or(0);
    if (!settings_.simulated || work_ <= settings_.sample) return plan;
    // Split keys take two launches whose workgroups do not correspond.
    if (outcome.kernel_spec.contains(" split=") || plan.tile_rows == 0) {
      plan.views = choose_views(problem_, settings_.sample);
      plan.text =
          fmt::format("{} run{} of up to 256 rows of a kv head", plan.views.size(), plan.views.size() == 1 ? "" : "s");
    } else {
      plan.workgroups = choose_workgroups(problem_, plan.tile_rows, settings_.sample);
      if (plan.workgroups->count == plan.workgroups->total) {
        plan.workgroups.reset();
      } else {
        plan.text = fmt::format("{} of {} workgroups", plan.workgroups->count, plan.workgroups->total);
      }
    }
    return plan;
  }

  // What the simulated GPU keeps beside the tensors when it checks for races.
  std::uint64_t shadow_bytes(const Plan& plan) const {
    if (!settings_.simulated || (settings_.simulated->settings().checks & WAVEJIT_SIMGPU_CHECK_RACES) == 0) return 0;
    if (plan.workgroups) return race_shadow_bytes(problem_, plan.workgroups->count, plan.tile_rows);
    std::int64_t rows = 0;
    for (const View& view : plan.views) rows = std::max(rows, view.rows * problem_.group());
    return race_shadow_bytes(problem_, plan.views.size(), rows);
  }

  Result<void> launch(const Pipeline& pipeline, DeviceCase& device, const Plan& plan) const {
    if (plan.views.empty()) return device.run(pipeline.engine, nullptr);
    for (const View& view : plan.views)
      if (auto ran = device.run(pipeline.engine, view, nullptr); !ran) return ran;
    return {};
  }

  // One run: what was written, or in `wrong` what cannot be.
  Result<WrittenRows> run_once(const Pipeline& pipeline, DeviceCase& device, const Plan& plan, const Schedule* schedule,
                               double& run_ms, std::string& wrong) const {
    if (auto erased = device.erase(); !erased) return std::unexpected(erased.error());
    choose(schedule, plan.workgroups.value_or(Workgroups{}));
    const std::uint64_t workgroups_before = settings_.simulated ? settings_.simulated->counters().workgroups : 0;
    const auto started = Clock::now();
    const auto ran = launch(pipeline, device, plan);
    run_ms = milliseconds_since(started);
    choose(nullptr, {});
    const std::string reports = settings_.simulated ? settings_.simulated->take_reports() : std::string();
    if (!ran) return std::unexpected(ran.error());
    if (!reports.empty()) wrong = "the simulated GPU reports: " + first_line(reports);
    const auto rows = device.written();
    if (!rows) return std::unexpected(rows.error());
    const auto fence = device.broken_fence();
    if (!fence) return std::unexpected(fence.error());
    if (wrong.empty()) wrong = *fence;
    if (wrong.empty()) {
      const std::uint64_t workgroups =
          settings_.simulated ? settings_.simulated->counters().workgroups - workgroups_before : 0;
      wrong = missing(*rows, plan, workgroups);
    }
    return device.read(*rows);
  }

  // Every row that the plan runs, and no other.
  std::string missing(const Rows& rows, const Plan& plan, std::uint64_t workgroups) const {
    if (plan.workgroups) {
      std::int64_t tiles = 0;
      const std::string partial = partial_tile(problem_, rows, plan.tile_rows, tiles);
      if (!partial.empty()) return "a workgroup wrote some of its rows only: " + partial;
      // Packed sequences are shorter than the grid.
      const bool all = std::cmp_equal(tiles, workgroups) || (problem_.packed() && std::cmp_less(tiles, workgroups));
      return all ? std::string() : fmt::format("{} workgroups ran and wrote {} tiles", workgroups, tiles);
    }
    const Rows expected = plan.views.empty() ? all_rows(problem_) : rows_of(problem_, plan.views);
    if (rows == expected) return {};
    return fmt::format("{} rows were written instead of {}", count_of(rows), count_of(expected));
  }

  // The row whose bits differ, of those that both wrote.
  static std::string difference(const WrittenRows& a, const WrittenRows& b) {
    for (const auto& [head, rows] : a) {
      const auto other = b.find(head);
      if (other == b.end()) continue;
      for (const auto& [row, bits] : rows) {
        const auto same = other->second.find(row);
        if (same != other->second.end() && !(same->second == bits))
          return fmt::format("sequence {}, head {}, row {}", head.sequence, head.head, row);
      }
    }
    return {};
  }

  static Rows numbers_of(const WrittenRows& written) {
    Rows rows;
    for (const auto& [head, of_head] : written)
      for (const auto& [row, bits] : of_head) rows[head].push_back(row);
    return rows;
  }

  Result<void> on_pipeline(const Pipeline& pipeline, DeviceCase& device, Outcome& outcome) {
    const auto workspace = device.workspace_bytes(pipeline.engine);
    if (!workspace) return std::unexpected(workspace.error());
    if (*workspace + device_bytes(problem_) > settings_.memory_budget) {
      outcome = over_budget(pipeline, *workspace + device_bytes(problem_));
      return {};
    }
    if (auto warm = warm_up(pipeline, device, *workspace > 0, outcome); !warm) return warm;
    if (const auto [other, added] = pipeline_of_key_.try_emplace(outcome.key, pipeline.name); !added) {
      outcome = set_aside(std::move(outcome), same_kernel, "the kernel that " + other->second + " ran");
      return {};
    }
    const Plan plan = plan_for(outcome);
    if (const std::uint64_t shadow = shadow_bytes(plan);
        *workspace + device_bytes(problem_) + shadow > settings_.memory_budget) {
      outcome = over_budget(pipeline, *workspace + device_bytes(problem_) + shadow);
      outcome.reason += fmt::format("; {} of it for the check of races", gibibytes(shadow));
      return {};
    }
    outcome.ran = plan.text;

    std::vector<const Schedule*> schedules;
    for (const Schedule& schedule : settings_.schedules) {
      schedules.push_back(&schedule);
      outcome.schedules += (outcome.schedules.empty() ? "" : " ") + schedule.text;
    }
    if (schedules.empty()) schedules.push_back(nullptr);

    std::string wrong;
    WrittenRows first;
    for (const Schedule* schedule : schedules) {
      double run_ms = 0;
      auto written = run_once(pipeline, device, plan, schedule, run_ms, wrong);
      if (!written) return std::unexpected(written.error());
      if (schedule == schedules.front()) {
        outcome.run_ms = run_ms;
        first = std::move(*written);
      } else if (wrong.empty() && *written != first) {
        wrong = fmt::format("other bits under schedule {}: {}", schedule->text, difference(*written, first));
      }
      if (!wrong.empty()) {
        if (schedule != nullptr) wrong += fmt::format(" (schedule {})", schedule->text);
        break;
      }
    }

    const auto started = Clock::now();
    const Rows compared = choose_rows(problem_, numbers_of(first), settings_.sample);
    reference_->want(compared);
    outcome.reference_ms = milliseconds_since(started);
    outcome.judgement = judge(problem_, *reference_, compared, first);
    if (wrong.empty() && compared.empty()) wrong = "no row was written";
    if (wrong.empty()) wrong = outcome.judgement.wrong();
    if (wrong.empty() && !by_first_pipeline_.empty() && bits_are_shared(outcome)) {
      if (const std::string where = difference(first, by_first_pipeline_); !where.empty())
        wrong = fmt::format("other bits than pipeline {}: {}", first_pipeline_, where);
    }
    if (by_first_pipeline_.empty()) {
      by_first_pipeline_ = std::move(first);
      first_pipeline_ = outcome.pipeline;
      first_spec_ = outcome.kernel_spec;
    }
    outcome.verdict = wrong.empty() ? Verdict::passed : Verdict::failed;
    outcome.reason = wrong;
    return {};
  }

  // Pipelines compute the same bits (docs/canonical-arithmetic.md) unless one of them splits the keys.
  bool bits_are_shared(const Outcome& outcome) const {
    return outcome.kernel_spec.contains(" split=") == first_spec_.contains(" split=");
  }

  const Problem& problem_;
  const Settings& settings_;
  Inputs inputs_;
  double work_;
  Outcome blank_;
  std::optional<Reference> reference_;
  std::map<std::string, std::string> pipeline_of_key_;
  WrittenRows by_first_pipeline_;
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

Result<void> run_case(const Case& which, const Settings& settings, const std::function<void(Outcome)>& take) {
  return CaseRun(which, settings).run(take);
}

}  // namespace wavejit::tools::sweep
