// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "predicted_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "captured_call.h"
#include "templates/attention_backward/program/device_call.h"
#include "templates/attention_forward/program/described_experiment.h"
#include "templates/attention_forward/program/device_case.h"
#include "tools/device_array.h"
#include "tools/families.h"
#include "tools/profile/timed_launches.h"
#include "tools/worker_processes.h"

namespace wavejit::bench {
namespace {

using Json = nlohmann::json;
using tools::ExitCode;
using tools::failed;
using tools::Result;

// A worker process has one engine a target and pipeline: they and their kernels live as long as it does.
Result<wavejit_engine*> engine_of(const LaunchTask& task) {
  static std::map<std::string, std::unique_ptr<wavejit_engine, tools::DestroyEngine>> engines;
  const std::string device = fmt::format("sim:{}", task.target->id);
  auto& engine = engines[device + ' ' + task.pipeline];
  if (engine == nullptr) {
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.device = device.c_str();
    options.cache_mode = "off";
    if (!task.pipeline.empty()) options.pipeline = task.pipeline.c_str();
    wavejit_engine* raw = nullptr;
    if (auto created = tools::checked(wavejit_engine_create(&options, &raw)); !created)
      return std::unexpected(created.error());
    engine.reset(raw);
  }
  return engine.get();
}

// "pipeline=dualwave tile=256x64 …" → "dualwave 256x64"
std::string short_name(std::string_view spec) {
  std::string name;
  std::istringstream words{std::string(spec)};
  for (std::string word; words >> word;) {
    for (const std::string_view field : {"pipeline=", "tile=", "split=", "heads=", "rows=", "tiles=", "chunk_waves="}) {
      if (!word.starts_with(field)) continue;
      name += name.empty() ? "" : " ";
      name += field == "pipeline=" || field == "tile=" ? word.substr(field.size()) : word;
    }
  }
  return name;
}

// Lines that miss a level go on to the next.
LaunchLines lines_of(const Json& launch) {
  const Json& memory = launch.at("memory");
  const auto& grid = launch.at("grid");
  const double timed = launch.at("sample").size() * launch.at("occupancy").at("resident").get<double>();
  const double all = grid.at(0).get<double>() * grid.at(1).get<double>() * grid.at(2).get<double>() / timed;
  const auto of = [&](const char* name) { return memory.at(name).get<double>() * all; };
  LaunchLines lines;
  lines.memory = of("memory");
  lines.last_level = lines.memory + of("last_level_hits");
  lines.l2 = lines.last_level + of("l2_hits");
  return lines;
}

// Launches since the last look: one call.
Result<LaunchPrediction> of_call(const tools::TimedLaunches& timed) {
  LaunchPrediction prediction;
  std::uint64_t longest = 0;
  for (const Json& launch : timed.take()) {
    if (launch.contains("refused")) return failed(ExitCode::device, launch["refused"].get<std::string>());
    const auto cycles = launch.at("cycles").get<std::uint64_t>();
    const auto wait = prediction.cycles == 0 ? 0 : launch.at("dependent_launch_cycles").get<std::uint64_t>();
    prediction.cycles += wait + cycles;
    ++prediction.launches;
    prediction.each.push_back({.name = launch.at("kernel").get<std::string>(),
                               .wait = wait,
                               .cold = launch.at("cold_cycles").get<std::uint64_t>(),
                               .cycles = cycles,
                               .busy = launch.at("matrix_busy").get<double>(),
                               .steady_busy = launch.at("steady_matrix_busy").get<double>(),
                               .lines = lines_of(launch)});
    prediction.busy += launch.at("matrix_busy").get<double>() * static_cast<double>(cycles);
    if (cycles <= longest) continue;
    longest = cycles;
    prediction.steady_busy = launch.at("steady_matrix_busy").get<double>();
  }
  if (prediction.cycles == 0) return failed(ExitCode::internal, "no launch was timed");
  prediction.busy /= static_cast<double>(prediction.cycles);
  return prediction;
}

Result<LaunchPrediction> predict_gradients(wavejit_engine* engine, const tools::SimulatedGpu& gpu,
                                           const std::string& descriptor) {
  auto call = attention_backward::program::UnfilledCall::prepare(engine, descriptor);
  if (!call) return std::unexpected(call.error());
  const tools::TimedLaunches timed(gpu, 0, 1);
  wavejit_call_report report{};
  report.size = sizeof report;
  if (auto ran = call->run(engine, &report); !ran) return std::unexpected(ran.error());
  return of_call(timed);
}

// A problem of any family whose profiles need no arrays of numbers.
Result<LaunchPrediction> predict_problem(wavejit_engine* engine, const tools::SimulatedGpu& gpu,
                                         const std::string& descriptor) {
  const auto problem = tools::parse_problem(descriptor);
  if (!problem) return std::unexpected(problem.error());
  const auto call = (*problem)->make_case();
  if (auto ready = call->prepare(engine); !ready) return std::unexpected(ready.error());
  const tools::TimedLaunches timed(gpu, 0, 1);
  wavejit_call_report report{};
  report.size = sizeof report;
  if (auto ran = call->run(engine, &report); !ran) return std::unexpected(ran.error());
  auto prediction = of_call(timed);
  if (prediction) prediction->kernel = short_name(report.kernel_spec);
  return prediction;
}

Result<LaunchPrediction> predict(const LaunchTask& task) {
  const auto engine = engine_of(task);
  if (!engine) return std::unexpected(engine.error());
  const auto gpu = tools::SimulatedGpu::resident();
  if (!gpu) return failed(ExitCode::device, "the simulated GPU is not there");
  if (task.descriptor.starts_with("attention_backward ")) return predict_gradients(*engine, *gpu, task.descriptor);
  if (!task.descriptor.starts_with("attention_forward ")) return predict_problem(*engine, *gpu, task.descriptor);
  const auto problem = attention_forward::program::parse_experiment(task.descriptor);
  if (!problem) return std::unexpected(problem.error());
  const attention_forward::program::Inputs inputs(problem->type, problem->inputs, problem->seed);
  auto call = attention_forward::program::DeviceCase::prepare_unfilled(
      *engine, *problem, inputs, attention_forward::program::head_values(*problem, inputs));
  if (!call) return std::unexpected(call.error());
  const tools::TimedLaunches timed(*gpu, 0, 1);
  wavejit_call_report report{};
  report.size = sizeof report;
  if (auto ran = call->run(*engine, &report); !ran) return std::unexpected(ran.error());
  auto prediction = of_call(timed);
  if (!prediction) return prediction;
  prediction->kernel = short_name(report.kernel_spec);
  if (task.captured) {
    const auto nodes = launch_captured(*gpu, *engine, *call);
    if (!nodes) return std::unexpected(nodes.error());
    auto replayed = of_call(timed);
    if (!replayed) return replayed;
    if (static_cast<std::size_t>(replayed->launches) != *nodes)
      return failed(ExitCode::internal, fmt::format("a graph of {} nodes had {} launches", *nodes, replayed->launches));
    replayed->kernel = prediction->kernel;
    return replayed;
  }
  if (!task.warm) return prediction;
  gpu->set_warm(true);
  const auto ran = call->run(*engine, &report);
  gpu->set_warm(false);
  if (!ran) return std::unexpected(ran.error());
  const auto warm = of_call(timed);
  if (!warm) return warm;
  prediction->warm_cycles = warm->cycles;
  return prediction;
}

std::string to_line(const LaunchPrediction& prediction) {
  Json each = Json::array();
  for (const OneLaunch& launch : prediction.each)
    each.push_back({launch.cycles, launch.busy, launch.steady_busy, launch.lines.l2, launch.lines.last_level,
                    launch.lines.memory, launch.name, launch.wait, launch.cold});
  return Json({{"kernel", prediction.kernel},
               {"launches", prediction.launches},
               {"cycles", prediction.cycles},
               {"busy", prediction.busy},
               {"steady_busy", prediction.steady_busy},
               {"warm_cycles", prediction.warm_cycles},
               {"each", each}})
      .dump();
}

}  // namespace

Result<std::vector<LaunchPrediction>> predict_launches(const std::vector<LaunchTask>& tasks, tools::WorkerLife life) {
  std::vector<LaunchPrediction> predictions(tasks.size());
  std::size_t done = 0;
  const int jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const auto ran = tools::run_in_processes(
      tasks.size(), jobs,
      [&](std::size_t index) -> Result<std::string> {
        const auto prediction = predict(tasks[index]);
        if (prediction) return to_line(*prediction);
        return failed(prediction.error().code, fmt::format("{} on {}: {}", tasks[index].descriptor,
                                                           tasks[index].target->id, prediction.error().what));
      },
      [&](std::size_t index, const std::string& answer) -> Result<void> {
        const Json json = Json::parse(answer);
        predictions[index] = {.kernel = json.at("kernel"),
                              .launches = json.at("launches"),
                              .cycles = json.at("cycles"),
                              .busy = json.at("busy"),
                              .steady_busy = json.at("steady_busy"),
                              .warm_cycles = json.at("warm_cycles"),
                              .each = {}};
        for (const Json& launch : json.at("each"))
          predictions[index].each.push_back(
              {.name = launch.at(6),
               .wait = launch.at(7),
               .cold = launch.at(8),
               .cycles = launch.at(0),
               .busy = launch.at(1),
               .steady_busy = launch.at(2),
               .lines = {.l2 = launch.at(3), .last_level = launch.at(4), .memory = launch.at(5)}});
        fmt::print(stderr, "[{:3} of {}] {} {}\n", ++done, tasks.size(), tasks[index].target->id,
                   tasks[index].descriptor);
        return {};
      },
      life);
  if (!ran) return std::unexpected(ran.error());
  return predictions;
}

}  // namespace wavejit::bench
