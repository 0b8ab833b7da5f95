// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/profile/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "tools/device_array.h"
#include "tools/families.h"
#include "tools/profile/launch_text.h"
#include "tools/profile/predicted_cycles.h"
#include "tools/profile/timed_launches.h"
#include "tools/simulated_gpu.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

using Json = nlohmann::json;

void take(const TimedLaunches& timed, Prediction& prediction) {
  prediction.launches = timed.take();
  prediction.timeline = timed.take_timeline();
  prediction.workgroups_run = timed.workgroups_run();
}

Result<void> run_problem(const Problem& problem, wavejit_engine* engine, const SimulatedGpu& gpu,
                         std::uint64_t timeline_cycles, Prediction& prediction) {
  const std::unique_ptr<Case> call = problem.make_case();
  if (auto ready = call->prepare(engine); !ready) return ready;
  wavejit_call_report report{};
  report.size = sizeof report;
  const TimedLaunches timed(gpu, timeline_cycles);
  if (auto ran = call->run(engine, &report); !ran) return ran;
  take(timed, prediction);
  prediction.kernel_spec = report.kernel_spec;
  prediction.key = report.key;
  return {};
}

std::uint64_t workgroups_of(const Json& launch) {
  std::uint64_t all = 1;
  for (const Json& size : launch.at("grid")) all *= size.get<std::uint64_t>();
  return all;
}

}  // namespace

const Json* Prediction::longest() const {
  const auto longest = std::ranges::max_element(
      launches, {}, [](const Json& launch) { return launch.at("cycles").get<std::uint64_t>(); });
  return longest == launches.end() ? nullptr : &*longest;
}

std::uint64_t Prediction::cycles() const { return predicted_cycles(launches).total(); }

Result<Prediction> predict(const Subject& subject, std::uint64_t timeline_cycles, Caches caches) {
  const wavejit_engine_options options = subject.engine.options();
  wavejit_engine* raw_engine = nullptr;
  if (auto created = checked(wavejit_engine_create(&options, &raw_engine)); !created)
    return std::unexpected(created.error());
  const std::unique_ptr<wavejit_engine, DestroyEngine> engine(raw_engine);
  Prediction prediction;
  prediction.subject = subject.text;
  prediction.settings = subject.settings;
  prediction.target = wavejit_engine_target(raw_engine);
  prediction.device_name = wavejit_engine_device_name(raw_engine);
  const auto gpu = SimulatedGpu::resident();
  if (!gpu) {
    return failed(ExitCode::usage, fmt::format("--device: {} is not simulated; {} are accepted", prediction.device_name,
                                               joined(targets_that_run(), ", ", "sim:")));
  }
  prediction.warm = caches == Caches::warm;
  gpu->set_warm(prediction.warm);
  if (subject.problem) {
    if (auto ran = run_problem(*subject.problem, raw_engine, *gpu, timeline_cycles, prediction); !ran)
      return std::unexpected(ran.error());
    for (const std::string& name : subject.asked)
      if (const std::string why = without_setting(prediction, name); !why.empty())
        return failed(ExitCode::usage, fmt::format("{} means nothing to this kernel: {}", name, why));
  } else {
    const TimedLaunches timed(*gpu, timeline_cycles, 0, TimedLaunches::Kernels::of_others);
    if (auto ran = subject.code->run(raw_engine, *gpu); !ran) return std::unexpected(ran.error());
    take(timed, prediction);
  }
  if (prediction.launches.empty())
    return failed(ExitCode::usage, fmt::format("'{}' launches nothing: there is no time to show", subject.text));
  for (const Json& launch : prediction.launches) {
    if (launch.contains("refused")) {
      return failed(ExitCode::usage, fmt::format("{} cannot be timed: {}", launch.at("kernel").get<std::string>(),
                                                 launch.at("refused").get<std::string>()));
    }
    prediction.workgroups += workgroups_of(launch);
  }
  return prediction;
}

std::string without_setting(const Prediction& prediction, const std::string& name) {
  const Family* family = family_of(prediction.subject);
  return family == nullptr ? std::string() : family->without_setting(prediction.kernel_spec, name);
}

std::string prediction_text(const Prediction& prediction) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("{:<8} {}\n", name, value); };
  line("profile", prediction.subject);
  if (!prediction.settings.empty()) line("with", prediction.settings);
  if (prediction.warm) line("caches", "warm: launches find what equal ones before left there");
  if (!prediction.kernel_spec.empty()) line("kernel", prediction.kernel_spec);
  if (!prediction.key.empty()) line("key", prediction.key);
  line("device", prediction.device_name);
  line("ran", prediction.workgroups_run < prediction.workgroups
                  ? fmt::format("{} of {} workgroups; the results of the others were not computed",
                                prediction.workgroups_run, prediction.workgroups)
                  : fmt::format("all {} workgroups", prediction.workgroups));
  if (const std::string parts = parts_text(prediction.launches); !parts.empty()) {
    line("total", parts);
    line("of it", whereabouts_text(prediction.launches));
  }
  for (const Json& launch : prediction.launches) {
    if (prediction.launches.size() > 1) line("launch", launch.at("kernel").get<std::string>());
    text +=
        launch_text(launch, Detail::full, step_names(launch, family_of(prediction.subject), prediction.kernel_spec));
  }
  line("trust", model_error_text(prediction.target, prediction.launches));
  return text;
}

Json prediction_json(const Prediction& prediction) {
  return {{"subject", prediction.subject},
          {"settings", prediction.settings},
          {"warm", prediction.warm},
          {"device_name", prediction.device_name},
          {"target", prediction.target},
          {"kernel_spec", prediction.kernel_spec},
          {"key", prediction.key},
          {"workgroups", {{"run", prediction.workgroups_run}, {"of", prediction.workgroups}}},
          {"predicted_cycles", prediction.cycles()},
          {"predicted_cycles_parts", parts_json(prediction.launches)},
          {"launches", prediction.launches},
          {"model_error", model_error_json(prediction.target, prediction.launches)}};
}

}  // namespace wavejit::tools
