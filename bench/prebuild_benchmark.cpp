// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What prebuild gains from a second job: the default list for both targets into an empty folder, with 1 and with 2
// jobs. Beside the wall time stands the CPU time of all threads: where the machine is shared, wall times say little,
// and equal CPU times say at least that jobs do not get into each other's way.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include "measure.h"
#include "tests/support/scratch_directory.h"
#include "wavejit/prebuild.h"
#include "wavejit/wavejit.h"

namespace {

using wavejit::bench::processor_seconds;
using wavejit::tests::ScratchDirectory;
namespace fs = std::filesystem;

std::uint64_t build(const fs::path& folder, int jobs) {
  wavejit_engine_options options{};
  options.size = sizeof options;
  const std::string directory = folder.string();
  options.cache_directory = directory.c_str();
  options.cache_layers = "";
  wavejit_prebuild_arguments arguments{};
  arguments.size = sizeof arguments;
  arguments.targets = "gfx942,gfx950";
  arguments.jobs = jobs;
  std::uint64_t compiled = 0;
  const auto note = [](void* context, const wavejit_prebuild_list_progress* progress) {
    *static_cast<std::uint64_t*>(context) = progress->compiled;
  };
  if (wavejit_prebuild_list(&options, &arguments, note, &compiled) != WAVEJIT_OK)
    throw std::runtime_error(wavejit_last_detail());
  return compiled;
}

void prebuild(benchmark::State& state) {
  double kernels = 0;
  double cpu = 0;
  std::optional<ScratchDirectory> folder;  // made and removed while no time is taken
  for (auto unused : state) {
    state.PauseTiming();
    folder.emplace();
    const double before = processor_seconds();
    state.ResumeTiming();
    kernels += static_cast<double>(build(folder->path(), static_cast<int>(state.range(0))));
    state.PauseTiming();
    cpu += processor_seconds() - before;
    folder.reset();
    state.ResumeTiming();
  }
  state.counters["kernels"] = kernels / static_cast<double>(state.iterations());
  state.counters["kernels/s"] = benchmark::Counter(kernels, benchmark::Counter::kIsRate);
  state.counters["cpu_ms/kernel"] = 1e3 * cpu / kernels;
}
BENCHMARK(prebuild)->ArgName("jobs")->Arg(1)->Arg(2)->Iterations(1)->Repetitions(3)->UseRealTime()->Unit(
    benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
