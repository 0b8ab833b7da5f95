// A hot call through the C interface against a HIP of empty functions (bench/empty_hip.cpp, which this program carries
// under HIP's own library name): checks, route, table, kernel arguments, launch.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "wavejit/wavejit.h"

namespace {

void require(wavejit_status status) {
  if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
}

struct HotCall {
  wavejit_engine* engine = nullptr;
  wavejit_attention_forward_arguments call{};

  HotCall() {
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.device = "hip";
    options.cache_mode = "off";
    require(wavejit_engine_create(&options, &engine));
    if (std::string(wavejit_engine_device_name(engine)) != "empty HIP functions")
      throw std::runtime_error("another HIP library was opened");
    void* memory[5];
    for (void*& block : memory) require(wavejit_device_allocate(engine, 8 * 1024 * 16 * 128 * 2, &block));
    call.size = sizeof call;
    call.q = wavejit_dense_tensor(memory[0], WAVEJIT_FP16, 8, 1024, 16, 128);
    call.k = wavejit_dense_tensor(memory[1], WAVEJIT_FP16, 8, 1024, 4, 128);
    call.v = wavejit_dense_tensor(memory[2], WAVEJIT_FP16, 8, 1024, 4, 128);
    call.o = wavejit_dense_tensor(memory[3], WAVEJIT_FP16, 8, 1024, 16, 128);
    call.lse = wavejit_tensor{.data = memory[4],
                              .dtype = WAVEJIT_FP32,
                              .reserved = 0,
                              .sizes = {8, 16, 1024, 1},
                              .strides = {16 * 1024, 1024, 1, 1}};
    call.scale = 0.0883883F;
    call.mask = WAVEJIT_MASK_CAUSAL;
    require(wavejit_attention_forward(engine, &call, nullptr));  // compiles
  }
};

HotCall& hot_call() {
  static HotCall once;
  return once;
}

void hot_call(benchmark::State& state, ihipStream_t* stream) {
  HotCall& hot = hot_call();
  for (auto _ : state) {
    wavejit_status status = wavejit_attention_forward(hot.engine, &hot.call, stream);
    benchmark::DoNotOptimize(status);
  }
}

BENCHMARK_CAPTURE(hot_call, default_stream, nullptr)->ThreadRange(1, 2);
BENCHMARK_CAPTURE(hot_call, created_stream, reinterpret_cast<ihipStream_t*>(0x1000));

// What an argument that is wrong costs: the sentence is built, nothing is launched.
void refused_call(benchmark::State& state) {
  HotCall& hot = hot_call();
  wavejit_attention_forward_arguments call = hot.call;
  call.o.sizes[1] = 1023;
  for (auto _ : state) {
    wavejit_status status = wavejit_attention_forward(hot.engine, &call, nullptr);
    benchmark::DoNotOptimize(status);
  }
}
BENCHMARK(refused_call);

}  // namespace

BENCHMARK_MAIN();
