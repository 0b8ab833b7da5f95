// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A hot wavejit_attention_forward through whatever HIP there is: what the call takes until it returns, one "name value"
// a line. Under `wavejit sim` that is AMD's HIP; launches wait in its queue while the simulated GPU works.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/measure.h"
#include "wavejit/wavejit.h"

namespace {

void require(wavejit_status status) {
  if (status == WAVEJIT_OK) return;
  std::fprintf(stderr, "%s\n", wavejit_last_detail());
  std::exit(1);
}

}  // namespace

int main() {
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.device = "hip";
  options.cache_mode = "off";
  wavejit_engine* engine = nullptr;
  require(wavejit_engine_create(&options, &engine));
  constexpr std::int64_t rows = 32;
  constexpr std::int64_t head_dim = 64;
  void* memory[4];
  for (void*& block : memory) require(wavejit_device_allocate(engine, rows * head_dim * 2, &block));
  wavejit_attention_forward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_FORWARD;
  call.q = wavejit_dense_tensor(memory[0], WAVEJIT_FP16, 1, rows, 1, head_dim);
  call.k = wavejit_dense_tensor(memory[1], WAVEJIT_FP16, 1, rows, 1, head_dim);
  call.v = wavejit_dense_tensor(memory[2], WAVEJIT_FP16, 1, rows, 1, head_dim);
  call.o = wavejit_dense_tensor(memory[3], WAVEJIT_FP16, 1, rows, 1, head_dim);
  call.modifiers.scale = 0.125F;
  require(wavejit_attention_forward(engine, &call, nullptr));  // compiles
  require(wavejit_device_synchronize(engine));
  // Few at a time: a full queue makes the caller wait for the GPU.
  constexpr int bursts = 40;
  constexpr int calls = 25;
  std::vector<double> nanoseconds;
  for (int burst = 0; burst < bursts; ++burst) {
    for (int i = 0; i < calls; ++i) {
      const auto start = wavejit::bench::now_ns();
      require(wavejit_attention_forward(engine, &call, nullptr));
      nanoseconds.push_back(static_cast<double>(wavejit::bench::now_ns() - start));
    }
    require(wavejit_device_synchronize(engine));
  }
  std::printf("hot_call_ns %.0f\n", wavejit::bench::percentiles(nanoseconds).p50);
  wavejit_engine_destroy(engine);
  return 0;
}
