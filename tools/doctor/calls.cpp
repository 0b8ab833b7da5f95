// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tools/doctor/examination.h"
#include "tools/families.h"
#include "tools/sweep/run_case.h"

namespace wavejit::tools::doctor {
namespace {

constexpr int risk = 4;

// Each alone, beside what an engine chooses by itself. What a target or a kernel has not is set aside.
struct Setting {
  const char* pipeline;
  bool is_argument;  // of the launch: the kernel is the one that runs without it
};
constexpr std::array<Setting, 9> settings_tried = {{
    {"auto", false},
    {"generic", false},
    {"dualwave", false},
    {"interleaved", false},
    {"auto stagger=off", false},
    {"auto setprio=off", false},
    {"auto lazy_rescale=off", true},
    {"auto xcd_swizzle=on", true},
    {"auto xcd_swizzle=off", true},
}};

// "stagger=off", "pipeline=generic".
std::string name_of(const Setting& setting) {
  const std::string_view pipeline = setting.pipeline;
  const std::size_t space = pipeline.find(' ');
  return space == std::string_view::npos ? fmt::format("pipeline={}", pipeline)
                                         : std::string(pipeline.substr(space + 1));
}

struct Variant {
  std::string name;
  EngineOptions options;
  bool is_argument = false;
  std::unique_ptr<wavejit_engine, DestroyEngine> engine;
};

Result<std::vector<Variant>> make_variants(const EngineOptions& options) {
  std::vector<Variant> made;
  for (const Setting& setting : settings_tried) {
    Variant variant{
        .name = name_of(setting), .options = options, .is_argument = setting.is_argument, .engine = nullptr};
    if (!variant.options.set("pipeline", setting.pipeline))
      return failed(ExitCode::internal, variant.name + " is no setting");
    const wavejit_engine_options filled = variant.options.options();
    wavejit_engine* engine = nullptr;
    if (auto created = checked(wavejit_engine_create(&filled, &engine)); !created)
      return std::unexpected(created.error());
    variant.engine.reset(engine);
    made.push_back(std::move(variant));
  }
  return made;
}

Finding failed_with(Finding finding, std::string text) {
  finding.status = Status::failed;
  finding.text = std::move(text);
  return finding;
}

// Every variant against float64, and against the first one's bits.
Finding against_float64(Finding finding, const Subjects& subjects, const std::shared_ptr<const Problem>& problem) {
  auto made = make_variants(subjects.options);
  if (!made) return failed_with(std::move(finding), made.error().what);
  sweep::Settings settings;
  settings.memory_budget = std::uint64_t{1} << 32U;
  if (subjects.gpu->simulated()) settings.simulated = SimulatedGpu::resident();
  std::string passed;
  std::string wrong;
  nlohmann::json outcomes = nlohmann::json::array();
  const auto take = [&](const sweep::Outcome& outcome) {
    outcomes.push_back({{"variant", outcome.pipeline},
                        {"kernel", outcome.kernel_spec},
                        {"passed", outcome.verdict == sweep::Verdict::passed},
                        {"reason", outcome.reason},
                        {"of_bound", outcome.comparison.of_bound}});
    if (outcome.verdict == sweep::Verdict::passed) passed += (passed.empty() ? "" : ", ") + outcome.pipeline;
    if (outcome.verdict == sweep::Verdict::failed)
      wrong += fmt::format("{}{}: {}", wrong.empty() ? "" : "; ", outcome.pipeline, outcome.reason);
  };
  // Kernels that differ side by side: their bits are compared, too. A sweep runs no kernel twice, so that those which
  // differ by arguments alone have one each.
  std::vector<std::vector<sweep::Pipeline>> runs(1);
  for (const Variant& variant : *made) {
    if (variant.is_argument) runs.emplace_back();
    (variant.is_argument ? runs.back() : runs.front())
        .push_back({.name = variant.name, .engine = variant.engine.get()});
  }
  Result<void> ran;
  for (std::vector<sweep::Pipeline>& pipelines : runs) {
    settings.pipelines = std::move(pipelines);
    if (ran) ran = sweep::run_case({.line = 0, .problem = problem}, settings, take);
  }
  finding.data["outcomes"] = outcomes;
  if (!ran) return failed_with(std::move(finding), ran.error().what);
  if (!wrong.empty()) return failed_with(std::move(finding), wrong);
  finding.status = passed.empty() ? Status::skipped : Status::as_expected;
  finding.text = passed.empty() ? "no kernel of this target does it" : "right: " + passed;
  return finding;
}

Result<std::unique_ptr<Written>> run_on(Case& which, const Gpu& gpu) {
  if (auto ready = which.prepare(gpu.engine()); !ready) return std::unexpected(ready.error());
  if (auto erased = which.erase(); !erased) return std::unexpected(erased.error());
  if (auto ran = which.run(gpu.engine(), nullptr); !ran) return std::unexpected(ran.error());
  return which.written();
}

// The same call on the simulated GPU.
Finding against_simulated(Finding finding, const Subjects& subjects, const std::shared_ptr<const Problem>& problem) {
  if (subjects.simulated == nullptr) {
    finding.text = "no simulated GPU here";
    return finding;
  }
  const auto here = problem->make_case();
  const auto there = problem->make_case();
  const auto mine = run_on(*here, *subjects.gpu);
  if (!mine) {
    if (mine.error().code != ExitCode::unsupported) return failed_with(std::move(finding), mine.error().what);
    finding.text = "no kernel of this target does it";
    return finding;
  }
  const auto simulated = [&] {
    const AsBuilt as_built;
    return run_on(*there, *subjects.simulated);
  }();
  if (!simulated) return failed_with(std::move(finding), "the simulated GPU: " + simulated.error().what);
  const std::string where = (*mine)->difference(**simulated);
  finding.status = where.empty() ? Status::as_expected : Status::differs;
  finding.text = where.empty() ? "the simulated GPU's bits" : "other bits than the simulated GPU's; first: " + where;
  finding.data["first_difference"] = where;
  return finding;
}

}  // namespace

std::vector<Question> call_questions(const Subjects& subjects) {
  std::vector<Question> questions;
  for (const Family* family : all_families()) {
    for (const std::string& descriptor : family->examined()) {
      auto parsed = family->parse(descriptor);
      if (!parsed) continue;  // a test holds every line against the grammar
      const std::shared_ptr<const Problem> problem = std::move(*parsed);
      Finding exact;
      exact.name = "call " + problem->text();
      exact.settles = "that kernels are right on this device: every pipeline, every toggle, the same bits from each";
      exact.risk = risk;
      Finding bits;
      bits.name = "bits " + problem->text();
      bits.settles = "every guess of the simulated GPU's arithmetic at once: sums, transcendentals, converts";
      bits.risk = risk;
      questions.push_back({.finding = std::move(exact), .ask = [subjects, problem](Finding finding) {
                             return against_float64(std::move(finding), subjects, problem);
                           }});
      questions.push_back({.finding = std::move(bits), .ask = [subjects, problem](Finding finding) {
                             return against_simulated(std::move(finding), subjects, problem);
                           }});
    }
  }
  return questions;
}

}  // namespace wavejit::tools::doctor
