// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels of one problem made ready in a fresh process, with what it took as one JSON line of nanoseconds: on the
// clock, and of the processor, over all threads.
//
//   prepare_probe <target> <cache directory> <jobs> <problem>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "measure.h"
#include "wavejit/wavejit.h"

namespace {

using wavejit::bench::now_ns;

void require(wavejit_status status, const char* what) {
  if (status == WAVEJIT_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, wavejit_last_detail());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fprintf(stderr, "prepare_probe <target> <cache directory> <jobs> <problem>\n"), 2;
  const std::string device = std::string("sim:") + argv[1];
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = device.c_str();
  options.cache_directory = argv[2];
  options.cache_mode = "rw";
  wavejit_engine* engine = nullptr;
  require(wavejit_engine_create(&options, &engine), "engine");
  const unsigned long long begun = now_ns();
  const unsigned long long processor_begun = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  const auto jobs = static_cast<std::int32_t>(std::strtol(argv[3], nullptr, 10));
  require(wavejit_prepare(engine, &argv[4], 1, jobs, nullptr, nullptr, nullptr), "prepare");
  const unsigned long long wall = now_ns() - begun;
  const unsigned long long processor = now_ns(CLOCK_PROCESS_CPUTIME_ID) - processor_begun;
  wavejit_statistics statistics{};
  statistics.size = sizeof statistics;
  require(wavejit_engine_statistics(engine, &statistics), "statistics");
  if (statistics.compiled != 1) return std::fprintf(stderr, "not compiled\n"), 1;
  std::printf("{\"wall_ns\":%llu,\"processor_ns\":%llu,\"compile_ns\":%llu}\n", wall, processor,
              (unsigned long long)statistics.compile_ns);
  wavejit_engine_destroy(engine);
  return 0;
}
