// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call waits for when the remote layer has its kernel, and when it has not: a server on loopback, an entry of
// 64 KiB, everything that a call does but the disk.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cache/cache.h"
#include "measure.h"
#include "runtime/libraries/remote_library.h"
#include "tests/remote/test_servers.h"

namespace {

using namespace wavejit;

constexpr std::size_t code_bytes = std::size_t{64} << 10U;

cache::Key nth_key(int i) { return {"attention_forward bench kernel number " + std::to_string(i), "gfx950"}; }

class Fleet {
 public:
  Fleet() {
    config_.cache_remote.value = *cache::parse_remote(server_.address());
    config_.cache_remote_key_file.value = tests::write_key(folder_ / "key");
    cache::Cache writer(options(cache::Mode::read_write));
    std::vector<std::byte> code(code_bytes, std::byte{0x5a});
    for (int i = 0; i < 32; ++i)
      (void)writer.publish(nth_key(i), {.kernels = {{.name = "kernel"}}, .code_object = code});
    if (!writer.flush_remote(10 * cache::nanoseconds_per_second)) std::abort();
  }

  cache::CacheOptions options(cache::Mode mode) const {
    auto remote = runtime::open_remote(config_);
    if (!remote) {
      std::fprintf(stderr, "%s\n", remote.error().c_str());
      std::abort();
    }
    return {.layers = {}, .mode = mode, .remote = *std::move(remote)};
  }

 private:
  tests::ScratchDirectory folder_;
  tests::RedisServer server_;
  runtime::Config config_;
};

void measure(benchmark::State& state, int first_key, bool hits) {
  static const Fleet fleet;
  cache::Cache reader(fleet.options(cache::Mode::read_only));
  std::vector<double> microseconds;
  int next = 0;
  for (auto _ : state) {
    const cache::Key key = nth_key(first_key + next++ % 32);
    const auto start = std::chrono::steady_clock::now();
    const auto hit = reader.lookup(key);
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
    if (hit.has_value() != hits) state.SkipWithError("not what was asked for");
    microseconds.push_back(taken.count());
    state.SetIterationTime(taken.count() * 1e-6);
  }
  const auto [p50, p99] = wavejit::bench::percentiles(microseconds);
  state.counters["p50_us"] = p50;
  state.counters["p99_us"] = p99;
}

void cache_remote_hit(benchmark::State& state) { measure(state, 0, true); }
BENCHMARK(cache_remote_hit)->UseManualTime()->Unit(benchmark::kMicrosecond);

void cache_remote_miss(benchmark::State& state) { measure(state, 1'000'000, false); }
BENCHMARK(cache_remote_miss)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
