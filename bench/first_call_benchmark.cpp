// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cold and warm first calls, each in a fresh process (bench/phase_probe), and calls of several kernels made ready
// (bench/prepare_probe). Times are wall times of one shared machine: compare them within one run.
//
//   cold      from starting the process to the launch returning, empty cache, less the time the simulated device takes
//             to open
//   warm      from the entry of the call to verified bytes (route + lookup), cache filled, device open
//   prepare   from the entry of wavejit_prepare to loaded kernels, empty cache: opening the compiler is in it, running
//             the kernels is not. jobs:1 is one thread, jobs:2 has the kernels side by side; cpu_ms is what all threads
//             took
#include <benchmark/benchmark.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure.h"
#include "tests/support/scratch_directory.h"

extern char** environ;

namespace {

using wavejit::bench::now_ns;
using wavejit::tests::ScratchDirectory;
namespace fs = std::filesystem;

struct Probe {
  unsigned long long started = 0;
  nlohmann::json moments;
};

// The probe lies beside this program.
Probe run_probe(const char* name, std::vector<std::string> words) {
  words.insert(words.begin(), (fs::read_symlink("/proc/self/exe").parent_path() / name).string());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) throw std::runtime_error("pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  Probe probe;
  pid_t child = 0;
  probe.started = now_ns();
  const int error = posix_spawn(&child, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  if (error != 0) throw std::runtime_error("cannot start " + words[0]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = read(pipe_ends[0], buffer.data(), buffer.size())) > 0;) text.append(buffer.data(), got);
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the probe failed");
  probe.moments = nlohmann::json::parse(text);
  return probe;
}

Probe call_once(const std::string& target, int head_dim, const fs::path& cache) {
  return run_probe("wavejit_phase_probe", {target, std::to_string(head_dim), cache.string()});
}

double ms(unsigned long long ns) { return static_cast<double>(ns) * 1e-6; }

void cold_call(benchmark::State& state, const std::string& target, int head_dim) {
  std::map<std::string, double> sums;
  for (auto _ : state) {
    const ScratchDirectory cache;
    const Probe probe = call_once(target, head_dim, cache.path());
    const auto moment = [&](const char* name) { return probe.moments[name].get<unsigned long long>(); };
    if (probe.moments["origin"] != 3) throw std::runtime_error("not compiled");
    // process start … main, then the call itself; opening the simulated device lies between and is not counted
    const unsigned long long time = (moment("entered") - probe.started) + (moment("launched") - moment("opened"));
    state.SetIterationTime(static_cast<double>(time) * 1e-9);
    sums["start_ms"] += ms(moment("entered") - probe.started);
    sums["open_ms"] += ms(moment("opened") - moment("entered"));
    for (const char* phase : {"emit", "lower", "link", "inspect", "publish", "load", "launch"})
      sums[std::string(phase) + "_ms"] += ms(moment(phase));
  }
  for (const auto& [name, sum] : sums) state.counters[name] = sum / static_cast<double>(state.iterations());
}

// A prompt of training whose two kernels own two blocks a wave on gfx950: the largest that are compiled.
constexpr const char* backward_line = "attention_backward bf16 b1 q8192 k8192 h64/8 d128";

void prepare_backward(benchmark::State& state, const std::string& target, int jobs) {
  double processor_ms = 0;
  for (auto _ : state) {
    const ScratchDirectory cache;
    const Probe probe = run_probe("wavejit_prepare_probe", {target, cache.path(), std::to_string(jobs), backward_line});
    state.SetIterationTime(probe.moments["wall_ns"].get<double>() * 1e-9);
    processor_ms += probe.moments["processor_ns"].get<double>() * 1e-6;
  }
  state.counters["cpu_ms"] = processor_ms / static_cast<double>(state.iterations());
}

void warm_call(benchmark::State& state, const std::string& target, int head_dim) {
  const ScratchDirectory cache;
  call_once(target, head_dim, cache.path());
  double whole_call = 0;
  double mapped = 0;
  for (auto _ : state) {
    const Probe probe = call_once(target, head_dim, cache.path());
    if (probe.moments["origin"] != 2) throw std::runtime_error("not on disk");
    const auto moment = [&](const char* name) { return probe.moments[name].get<unsigned long long>(); };
    state.SetIterationTime(static_cast<double>(moment("route") + moment("lookup")) * 1e-9);
    whole_call += ms(moment("launched") - moment("opened"));
    mapped += probe.moments["compiler_mapped"].get<int>();
  }
  state.counters["whole_call_ms"] = whole_call / static_cast<double>(state.iterations());
  state.counters["compiler_mapped"] = mapped;
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* target : {"gfx950", "gfx942"}) {
    for (const int head_dim : {64, 128}) {
      const std::string suffix = std::string("/") + target + "/d" + std::to_string(head_dim);
      benchmark::RegisterBenchmark("cold_call" + suffix, cold_call, target, head_dim)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1)
          ->Repetitions(9)
          ->ReportAggregatesOnly();
      benchmark::RegisterBenchmark("warm_call" + suffix, warm_call, target, head_dim)
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond)
          ->Iterations(1)
          ->Repetitions(9)
          ->ReportAggregatesOnly();
    }
    for (const int jobs : {1, 2}) {
      benchmark::RegisterBenchmark(std::string("prepare_backward/") + target + "/d128/jobs:" + std::to_string(jobs),
                                   prepare_backward, target, jobs)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1)
          ->Repetitions(9)
          ->ReportAggregatesOnly()
          ->ComputeStatistics("min", [](const std::vector<double>& times) { return std::ranges::min(times); });
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
