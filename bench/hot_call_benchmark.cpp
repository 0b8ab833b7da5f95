// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A hot call through the C interface against a HIP of empty functions (bench/empty_hip.cpp, which this program carries
// under HIP's own library name): checks, route, table, kernel arguments, launch.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

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
    call.head.size = sizeof call;
    call.head.family = WAVEJIT_ATTENTION_FORWARD;
    call.q = wavejit_dense_tensor(memory[0], WAVEJIT_FP16, 8, 1024, 16, 128);
    call.k = wavejit_dense_tensor(memory[1], WAVEJIT_FP16, 8, 1024, 4, 128);
    call.v = wavejit_dense_tensor(memory[2], WAVEJIT_FP16, 8, 1024, 4, 128);
    call.o = wavejit_dense_tensor(memory[3], WAVEJIT_FP16, 8, 1024, 16, 128);
    call.lse = wavejit_tensor{.data = memory[4],
                              .dtype = WAVEJIT_FP32,
                              .reserved = 0,
                              .sizes = {8, 16, 1024, 1},
                              .strides = {16 * 1024, 1024, 1, 1}};
    call.modifiers.scale = 0.0883883F;
    call.mask.bits = WAVEJIT_MASK_CAUSAL;
    require(wavejit_attention_forward(engine, &call, nullptr));  // compiles
  }
};

HotCall& hot_call() {
  static HotCall once;
  return once;
}

// Decode from a cache in pages: 64 sequences, a table of 512 pages of 16 keys each. One launch.
HotCall& paged_call() {
  static HotCall once = [] {
    HotCall hot;
    wavejit_attention_forward_arguments& call = hot.call;
    void* const q = call.q.data;
    void* const o = call.o.data;
    void* const cache = call.k.data;
    void* const arrays = call.v.data;
    call = {};
    call.head.size = sizeof call;
    call.head.family = WAVEJIT_ATTENTION_FORWARD;
    call.q = wavejit_dense_tensor(q, WAVEJIT_FP16, 64, 1, 16, 128);
    call.o = wavejit_dense_tensor(o, WAVEJIT_FP16, 64, 1, 16, 128);
    call.k = call.v = wavejit_dense_tensor(cache, WAVEJIT_FP16, 1024, 16, 4, 128);
    call.k.strides[0] = call.v.strides[0] = std::int64_t{2} * 16 * 4 * 128;
    call.v.data = static_cast<std::uint16_t*>(cache) + std::ptrdiff_t{16} * 4 * 128;
    call.pages.block_table = static_cast<const std::int32_t*>(arrays);
    call.pages.table_columns = 512;
    call.sequences.key_lengths = static_cast<const std::int32_t*>(arrays);
    call.sequences.max_key_length = 8192;
    call.split.splits = 1;
    call.modifiers.scale = 0.0883883F;
    require(wavejit_attention_forward(hot.engine, &call, nullptr));  // compiles
    return hot;
  }();
  return once;
}

void hot_paged_call(benchmark::State& state) {
  HotCall& hot = paged_call();
  for (auto _ : state) {
    wavejit_status status = wavejit_attention_forward(hot.engine, &hot.call, nullptr);
    benchmark::DoNotOptimize(status);
  }
}
BENCHMARK(hot_paged_call);

// Latent attention: decode of 64 sequences over pages of 64 keys, 16 heads. One launch; cut into runs, two.
void hot_latent_call(benchmark::State& state, std::int32_t splits) {
  HotCall& hot = paged_call();
  wavejit_attention_latent_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_LATENT;
  call.q = wavejit_dense_tensor(hot.call.q.data, WAVEJIT_BF16, 64, 1, 16, 576);
  call.o = wavejit_dense_tensor(hot.call.o.data, WAVEJIT_BF16, 64, 1, 16, 512);
  call.k = wavejit_dense_tensor(hot.call.k.data, WAVEJIT_BF16, 256, 64, 1, 576);
  call.pages.block_table = hot.call.pages.block_table;
  call.pages.table_columns = 128;
  call.sequences.key_lengths = hot.call.sequences.key_lengths;
  call.sequences.max_key_length = 8192;
  call.split.splits = splits;
  call.modifiers.scale = 0.0721688F;
  require(wavejit_attention_latent(hot.engine, &call, nullptr));  // compiles
  for (auto _ : state) {
    wavejit_status status = wavejit_attention_latent(hot.engine, &call, nullptr);
    benchmark::DoNotOptimize(status);
  }
}
BENCHMARK_CAPTURE(hot_latent_call, whole, 1);
BENCHMARK_CAPTURE(hot_latent_call, in_runs, 4);

// The same cache, one chunk of a prompt among 63 tokens. Two launches.
void hot_mixed_call(benchmark::State& state) {
  static HotCall mixed = [] {
    HotCall hot = paged_call();
    wavejit_attention_forward_arguments& call = hot.call;
    call.q.sizes[0] = call.o.sizes[0] = 1;
    call.q.sizes[1] = call.o.sizes[1] = 512 + 63;
    call.sequences.query_starts = call.sequences.key_lengths;
    call.sequences.count = 64;
    call.sequences.max_query_length = 512;
    require(wavejit_attention_forward(hot.engine, &call, nullptr));  // compiles
    return hot;
  }();
  for (auto _ : state) {
    wavejit_status status = wavejit_attention_forward(mixed.engine, &mixed.call, nullptr);
    benchmark::DoNotOptimize(status);
  }
}
BENCHMARK(hot_mixed_call);

void hot_call(benchmark::State& state, ihipStream_t* stream) {
  HotCall& hot = hot_call();
  for (auto _ : state) {
    wavejit_status status = wavejit_attention_forward(hot.engine, &hot.call, stream);
    benchmark::DoNotOptimize(status);
  }
}

BENCHMARK_CAPTURE(hot_call, default_stream, nullptr)->ThreadRange(1, 2);
BENCHMARK_CAPTURE(hot_call, created_stream, reinterpret_cast<ihipStream_t*>(0x1000));

// The distribution over single calls with more threads than cores: p50 and p99 in nanoseconds, what reading the clock
// costs taken away.
void hot_call_distribution(benchmark::State& state) {
  constexpr int threads = 8;
  constexpr int calls = 100'000;
  const HotCall& hot = hot_call();
  const auto nanoseconds = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  const auto quantile = [](std::vector<std::int64_t>& samples, double which) {
    const auto place = samples.begin() + static_cast<std::ptrdiff_t>(which * static_cast<double>(samples.size() - 1));
    std::nth_element(samples.begin(), place, samples.end());
    return static_cast<double>(*place);
  };
  for (auto _ : state) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(threads) * calls);
    std::vector<std::int64_t> clock(calls);
    for (std::int64_t& sample : clock) {
      const auto before = nanoseconds();
      sample = nanoseconds() - before;
    }
    std::latch start(threads);
    {
      std::vector<std::jthread> pool;
      for (int t = 0; t < threads; ++t) {
        pool.emplace_back([&, mine = samples.data() + static_cast<std::ptrdiff_t>(t) * calls] {
          start.arrive_and_wait();
          for (int i = 0; i < calls; ++i) {
            const auto before = nanoseconds();
            wavejit_status status = wavejit_attention_forward(hot.engine, &hot.call, nullptr);
            benchmark::DoNotOptimize(status);
            mine[i] = nanoseconds() - before;
          }
        });
      }
    }
    const double cost = quantile(clock, 0.5);
    state.counters["p50_ns"] = quantile(samples, 0.5) - cost;
    state.counters["p99_ns"] = quantile(samples, 0.99) - cost;
  }
}
BENCHMARK(hot_call_distribution)->Name("hot_call_distribution/threads:8")->Iterations(3)->Unit(benchmark::kMillisecond);

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
