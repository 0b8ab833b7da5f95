// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One compile or one disk hit by wavejit, in a process where everything else is loaded: the counterpart of
// peers_triton.py. Prints one JSON line. HIP is a library of empty functions (empty_hip.cpp), so that loading and
// launching cost nothing and no simulated GPU takes part.
//
//   wavejit_peer_probe <target> <head dim> <full|causal> <cold|hit> <cache directory>
//
// `ms` runs from the entry of the call to its return less loading and launching; `verified_ms` is the part of a hit up
// to verified bytes. Everything else means: the engine, and for `cold` the compiler, which has compiled another kernel.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "measure.h"
#include "wavejit/wavejit.h"

namespace {

using wavejit::bench::now_ns;

void require(wavejit_status status, const char* what) {
  if (status == WAVEJIT_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, wavejit_last_detail());
  std::exit(1);
}

constexpr int length = 4096;
constexpr int heads = 16;

std::size_t bytes_of(int head_dim) { return 2UL * length * heads * static_cast<std::size_t>(head_dim); }

wavejit_attention_forward_arguments call_of(void* memory, wavejit_dtype dtype, int head_dim, bool causal) {
  wavejit_attention_forward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_FORWARD;
  call.q = wavejit_dense_tensor(memory, dtype, 1, length, heads, head_dim);
  call.k = call.v = call.q;  // nothing is launched: they need not be apart
  call.o = wavejit_dense_tensor(static_cast<char*>(memory) + bytes_of(head_dim), dtype, 1, length, heads, head_dim);
  call.modifiers.scale = 0.1F;
  call.mask.bits = causal ? WAVEJIT_MASK_CAUSAL : WAVEJIT_MASK_NONE;
  return call;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6)
    return std::fprintf(stderr, "wavejit_peer_probe <target> <head dim> <full|causal> <cold|hit> <cache directory>\n"),
           2;
  setenv("WAVEJIT_EMPTY_HIP_TARGET", argv[1], 1);
  const int head_dim = std::atoi(argv[2]);
  const bool causal = std::string_view(argv[3]) == "causal";
  const bool cold = std::string_view(argv[4]) == "cold";
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = "hip";
  options.cache_directory = argv[5];
  options.cache_mode = "rw";
  wavejit_engine* engine = nullptr;
  require(wavejit_engine_create(&options, &engine), "engine");
  void* memory = nullptr;
  require(wavejit_device_allocate(engine, 2 * bytes_of(128), &memory), "allocate");

  // Everything else: another kernel, with the other data type and mask.
  wavejit_attention_forward_arguments other = call_of(memory, WAVEJIT_FP16, head_dim == 64 ? 128 : 64, !causal);
  require(wavejit_attention_forward(engine, &other, nullptr), "another kernel");

  wavejit_attention_forward_arguments call = call_of(memory, WAVEJIT_BF16, head_dim, causal);
  wavejit_call_report report{};
  report.size = sizeof report;
  call.head.report = &report;
  const unsigned long long start = now_ns();
  const unsigned long long start_cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  require(wavejit_attention_forward(engine, &call, nullptr), "attention_forward");
  const unsigned long long end_cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  const unsigned long long end = now_ns();
  if (report.origin != (cold ? WAVEJIT_ORIGIN_COMPILED : WAVEJIT_ORIGIN_DISK))
    return std::fprintf(stderr, "%s was asked for; the kernel came from elsewhere (origin %d)\n", argv[4],
                        report.origin),
           1;
  const auto ms = [](unsigned long long ns) { return static_cast<double>(ns) * 1e-6; };
  std::printf(
      "{\"version\": \"%s\", \"ms\": %.6f, \"cpu_ms\": %.6f, \"verified_ms\": %.6f, \"split_ms\": {\"route\": %.6f, "
      "\"lookup\": %.6f, \"emit\": %.6f, \"lower\": %.6f, \"link\": %.6f, \"inspect\": %.6f, \"publish\": %.6f}, \"kernel\": \"%s\"}\n",
      wavejit_version(), ms(end - start - report.load_ns - report.launch_ns), ms(end_cpu - start_cpu),
      ms(report.route_ns + report.lookup_ns), ms(report.route_ns), ms(report.lookup_ns), ms(report.emit_ns),
      ms(report.lower_ns), ms(report.link_ns), ms(report.inspect_ns), ms(report.publish_ns), report.kernel_spec);
  wavejit_engine_destroy(engine);
  return 0;
}
