// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/tune/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/device_array.h"
#include "tools/engine_options.h"
#include "tools/simulated_gpu.h"

namespace wavejit::tools::tune {
namespace {

using Json = nlohmann::json;

// The launches of one call, one JSON object a line.
Result<void> read_cycles(const std::string& lines, Trial& trial) {
  std::istringstream stream(lines);
  std::uint64_t longest = 0;
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) return failed(ExitCode::internal, "the clock's answer is no JSON: " + line);
    if (json.contains("refused")) return failed(ExitCode::device, json["refused"].get<std::string>());
    const auto cycles = json.at("cycles").get<std::uint64_t>();
    // Launches of one call wait for each other.
    if (trial.cycles != 0) trial.cycles += json.at("dependent_launch_cycles").get<std::uint64_t>();
    trial.cycles += cycles;
    if (json.contains("doubt")) trial.doubt = json["doubt"].get<std::string>();
    if (cycles <= longest) continue;
    longest = cycles;
    trial.steady_matrix_busy = json.at("steady_matrix_busy").get<double>();
  }
  if (trial.cycles == 0) return failed(ExitCode::internal, trial.descriptor + ": no launch was timed");
  return {};
}

}  // namespace

std::string to_line(const Trial& trial) {
  Json json = {{"target", trial.target},
               {"descriptor", trial.descriptor},
               {"candidate", trial.candidate},
               {"version", trial.version},
               {"predicted", true}};
  if (trial.kernel.empty()) {
    json["refused"] = trial.refused;
  } else {
    json["kernel"] = trial.kernel;
    json["cycles"] = trial.cycles;
    json["steady_matrix_busy"] = trial.steady_matrix_busy;
    if (!trial.doubt.empty()) json["doubt"] = trial.doubt;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Trial> parse_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return std::nullopt;
  try {
    Trial trial;
    json.at("target").get_to(trial.target);
    json.at("descriptor").get_to(trial.descriptor);
    json.at("candidate").get_to(trial.candidate);
    json.at("version").get_to(trial.version);
    if (json.contains("refused")) {
      json.at("refused").get_to(trial.refused);
      return trial;
    }
    json.at("kernel").get_to(trial.kernel);
    json.at("cycles").get_to(trial.cycles);
    json.at("steady_matrix_busy").get_to(trial.steady_matrix_busy);
    trial.doubt = json.value("doubt", std::string());
    return trial;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Trial blank_trial(const Task& task) {
  Trial trial;
  trial.target = task.target;
  trial.descriptor = task.problem->text();
  trial.candidate = to_text(task.candidate);
  trial.version = wavejit_version();
  return trial;
}

Result<Trial> run_trial(const Tuning& tuning, const Task& task, std::uint32_t simulator_threads) {
  Trial trial = blank_trial(task);
  const std::string device = "sim:" + task.target;
  EngineOptions chosen;
  chosen.set_cache_mode("off");
  chosen.set("device", device);
  for (const auto& [name, value] : tuning.engine_options(task.candidate)) {
    if (!chosen.set(name, value)) return failed(ExitCode::internal, fmt::format("no option of engines is {}", name));
  }
  const wavejit_engine_options options = chosen.options();
  wavejit_engine* raw = nullptr;
  if (auto created = checked(wavejit_engine_create(&options, &raw)); !created) return std::unexpected(created.error());
  const std::unique_ptr<wavejit_engine, DestroyEngine> engine(raw);
  const auto gpu = SimulatedGpu::resident();
  if (!gpu) return failed(ExitCode::device, device + ": the simulated GPU is not there");

  const std::unique_ptr<Case> call = task.problem->make_case();
  if (auto ready = call->prepare(raw); !ready) return std::unexpected(ready.error());
  wavejit_simgpu_settings settings = gpu->settings();
  settings.sampled_only = 1;
  settings.threads = simulator_threads;
  settings.checks = 0;
  settings.arrival = WAVEJIT_SIMGPU_ARRIVES_EARLY;
  gpu->set(settings);
  gpu->set_clock(sampled_workgroups);
  wavejit_call_report report{};
  report.size = sizeof report;
  const auto ran = call->run(raw, &report);
  gpu->set_clock(0);
  const std::string lines = gpu->take_cycles();
  if (!ran) {
    if (ran.error().code != ExitCode::unsupported) return std::unexpected(ran.error());
    trial.refused = ran.error().what;
    return trial;
  }
  trial.kernel = report.kernel_spec;
  if (auto read = read_cycles(lines, trial); !read) return std::unexpected(read.error());
  return trial;
}

}  // namespace wavejit::tools::tune
