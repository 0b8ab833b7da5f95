// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One attention call in a fresh process, with the moments that the cold and warm benchmarks need, printed as one JSON
// line of CLOCK_MONOTONIC nanoseconds (the parent noted its own clock before it started us).
//
//   phase_probe <target> <head dim> <cache directory>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "measure.h"
#include "wavejit/wavejit.h"

namespace {

using wavejit::bench::now_ns;

bool compiler_is_mapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libwavejit_codegen") != std::string::npos) return true;
  }
  return false;
}

void require(wavejit_status status, const char* what) {
  if (status == WAVEJIT_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, wavejit_last_detail());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned long long entered = now_ns();
  if (argc != 4) return std::fprintf(stderr, "phase_probe <target> <head dim> <cache directory>\n"), 2;
  const std::string device = std::string("sim:") + argv[1];
  const int head_dim = std::atoi(argv[2]);
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = device.c_str();
  options.cache_directory = argv[3];
  options.cache_mode = "rw";
  wavejit_engine* engine = nullptr;
  require(wavejit_engine_create(&options, &engine), "engine");
  const long long length = 32;
  void* memory[4];
  for (void*& block : memory) require(wavejit_device_allocate(engine, length * head_dim * 2, &block), "allocate");
  wavejit_call_report report{};
  report.size = sizeof report;
  wavejit_attention_forward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_FORWARD;
  call.q = wavejit_dense_tensor(memory[0], WAVEJIT_BF16, 1, length, 1, head_dim);
  call.k = wavejit_dense_tensor(memory[1], WAVEJIT_BF16, 1, length, 1, head_dim);
  call.v = wavejit_dense_tensor(memory[2], WAVEJIT_BF16, 1, length, 1, head_dim);
  call.o = wavejit_dense_tensor(memory[3], WAVEJIT_BF16, 1, length, 1, head_dim);
  call.modifiers.scale = 0.1F;
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  call.head.report = &report;
  const unsigned long long opened = now_ns();
  require(wavejit_attention_forward(engine, &call, nullptr), "attention_forward");
  const unsigned long long launched = now_ns();
  std::printf(
      "{\"entered\":%llu,\"opened\":%llu,\"launched\":%llu,\"origin\":%d,\"route\":%llu,\"lookup\":%llu,\"emit\":%llu,"
      "\"lower\":%llu,\"link\":%llu,\"inspect\":%llu,\"publish\":%llu,\"load\":%llu,\"launch\":%llu,\"compiler_mapped\":%d}\n",
      entered, opened, launched, report.origin, (unsigned long long)report.route_ns,
      (unsigned long long)report.lookup_ns, (unsigned long long)report.emit_ns, (unsigned long long)report.lower_ns,
      (unsigned long long)report.link_ns, (unsigned long long)report.inspect_ns, (unsigned long long)report.publish_ns,
      (unsigned long long)report.load_ns, (unsigned long long)report.launch_ns, compiler_is_mapped() ? 1 : 0);
  require(wavejit_device_synchronize(engine), "synchronize");
  wavejit_engine_destroy(engine);
  return 0;
}
