// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tools/doctor/examination.h"
#include "tools/families.h"
#include "tools/profile/prediction.h"

namespace wavejit::tools::doctor {
namespace {

constexpr int risk = 5;
constexpr int clock_khz = 5;  // hipDeviceAttributeClockRate

// The median of a few runs behind two that warm up, in milliseconds.
Result<float> time_of(const Problem& problem, const Gpu& gpu) {
  const auto which = problem.make_case();
  if (auto ready = which->prepare(gpu.engine()); !ready) return std::unexpected(ready.error());
  std::array<float, 7> times{};
  for (int warm = 0; warm < 2; ++warm)
    if (auto ran = which->run(gpu.engine(), nullptr); !ran) return std::unexpected(ran.error());
  for (float& time : times) {
    const auto taken = gpu.time([&] { return which->run(gpu.engine(), nullptr); });
    if (!taken) return std::unexpected(taken.error());
    time = *taken;
  }
  std::ranges::nth_element(times, times.begin() + (times.size() / 2));
  return times[times.size() / 2];
}

Finding failed_with(Finding finding, std::string text) {
  finding.status = Status::failed;
  finding.text = std::move(text);
  return finding;
}

Finding against_clock(Finding finding, const Subjects& subjects, const Problem& smallest,
                      const std::string& descriptor) {
  if (subjects.simulated == nullptr) {
    finding.text = "no simulated GPU here to predict it";
    return finding;
  }
  const std::string target = wavejit_engine_target(subjects.simulated->engine());
  const auto subject = parse_subject(descriptor, {"device=sim:" + target}, subjects.options, "device");
  if (!subject) return failed_with(std::move(finding), subject.error().what);
  const auto predicted = predict(*subject, 0);
  if (!predicted) {
    if (predicted.error().code != ExitCode::unsupported) return failed_with(std::move(finding), predicted.error().what);
    finding.text = "no kernel of this target does it";
    return finding;
  }
  const auto cycles = static_cast<double>(predicted->cycles());
  finding.data["predicted_cycles"] = predicted->cycles();
  if (subjects.gpu->simulated()) {
    finding.status = Status::told;
    finding.text = fmt::format("{} cycles predicted; a simulated GPU has no time of its own", predicted->cycles());
    return finding;
  }
  const auto taken = time_of(*subject->problem, *subjects.gpu);
  const auto nothing = time_of(smallest, *subjects.gpu);
  if (!taken) return failed_with(std::move(finding), taken.error().what);
  if (!nothing) return failed_with(std::move(finding), nothing.error().what);
  const double milliseconds = std::max(*taken - *nothing, 0.001F);
  const double khz = subjects.gpu->attribute(clock_khz).value_or(0);
  const double error = khz == 0 ? 0 : ((cycles / khz / milliseconds) - 1) * 100;
  finding.data["milliseconds"] = milliseconds;
  finding.data["milliseconds_of_the_smallest_call"] = *nothing;
  finding.data["clock_khz"] = khz;
  finding.data["error_percent"] = error;
  finding.status = Status::told;
  finding.text = fmt::format("{:.3f} ms; {} cycles predicted are {:.3f} ms at {:.2f} GHz: {:+.1f} %", milliseconds,
                             predicted->cycles(), khz == 0 ? 0 : cycles / khz, khz / 1e6, error);
  return finding;
}

}  // namespace

std::vector<Question> timing_questions(const Subjects& subjects) {
  std::vector<Question> questions;
  for (const Family* family : all_families()) {
    const std::vector<std::string> calls = family->examined();
    if (calls.empty()) continue;
    auto smallest = family->parse(calls.front());
    if (!smallest) continue;
    const std::shared_ptr<const Problem> floor = std::move(*smallest);
    for (const std::string& descriptor : family->examined_for_time()) {
      Finding blank;
      blank.name = "time " + descriptor;
      blank.settles = "the clock: figures that docs/timing-model.md calls guessed, all at once";
      blank.risk = risk;
      questions.push_back({.finding = std::move(blank), .ask = [subjects, floor, descriptor](Finding finding) {
                             return against_clock(std::move(finding), subjects, *floor, descriptor);
                           }});
    }
  }
  return questions;
}

}  // namespace wavejit::tools::doctor
