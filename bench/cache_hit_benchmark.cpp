// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a hit costs: from a folder with few entries and with many, from an archive, from memory; and what a miss adds.
// Entries are 64 KiB, as a kernel's are; pages are warm, since several processes start from one image.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "cache/directory.h"
#include "cache/entry.h"
#include "cache/transfer.h"
#include "measure.h"
#include "tests/support/scratch_directory.h"

namespace {

using wavejit::tests::ScratchDirectory;
using namespace wavejit::cache;

constexpr std::size_t code_bytes = 64 * 1024;
constexpr int looked_up = 64;  // entries that a start asks for

Key nth_key(int i) { return {"attention_forward bench kernel number " + std::to_string(i), "gfx950"}; }

std::vector<std::byte> code_of(int i, std::size_t bytes) {
  std::vector<std::byte> code(bytes);
  std::uint32_t state = static_cast<std::uint32_t>(i) + 1;
  for (std::byte& byte : code) byte = static_cast<std::byte>((state = state * 1664525U + 1013904223U) >> 24U);
  return code;
}

// A folder with so many entries: those looked up are of full size, the others small, so that a disk holds them. Written
// as files, since syncing a hundred thousand publishes is not what is measured.
void fill(const std::string& root, int entries) {
  std::filesystem::create_directories(root);
  std::filesystem::permissions(root, std::filesystem::perms::owner_all);
  for (int i = 0; i < entries; ++i) {
    const Key key = nth_key(i);
    const auto code = code_of(i, i < looked_up ? code_bytes : 64);
    const auto bytes = serialise(
        {.key_text = key.text(), .target_id = key.target_id(), .kernels = {{.name = "kernel"}}, .code_object = code});
    const std::filesystem::path path = entry_path(root, key.target_id(), key.digest());
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
  }
}

// p50 and p99 over single lookups: what one call waits for.
void measure(benchmark::State& state, Cache& cache, int entries) {
  std::vector<double> microseconds;
  const int keys = std::min(entries, looked_up);
  int next = 0;
  for (auto _ : state) {
    const Key key = nth_key(next++ % keys);
    const auto start = std::chrono::steady_clock::now();
    auto hit = cache.lookup(key);
    const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
    if (!hit || hit->entry().code_object.size() < 64) state.SkipWithError("a miss");
    benchmark::DoNotOptimize(hit);
    microseconds.push_back(taken.count());
    state.SetIterationTime(taken.count() * 1e-6);
  }
  const auto [p50, p99] = wavejit::bench::percentiles(microseconds);
  state.counters["p50_us"] = p50;
  state.counters["p99_us"] = p99;
}

void cache_disk_hit(benchmark::State& state) {
  // Filled once a size: the benchmark is called several times.
  static std::map<std::int64_t, std::unique_ptr<ScratchDirectory>> folders;
  const int entries = static_cast<int>(state.range(0));
  auto& folder = folders[entries];
  const bool fresh = folder == nullptr;
  if (fresh) {
    folder = std::make_unique<ScratchDirectory>();
    fill(*folder / "cache", entries);
  }
  Cache cache({.layers = {{.name = "user", .root = *folder / "cache", .writable = true}}});
  measure(state, cache, entries);
}
BENCHMARK(cache_disk_hit)->Arg(10)->Arg(100'000)->UseManualTime()->Unit(benchmark::kMicrosecond);

void cache_archive_hit(benchmark::State& state) {
  static std::unique_ptr<ScratchDirectory> folder;
  const int entries = static_cast<int>(state.range(0));
  if (folder == nullptr) {
    folder = std::make_unique<ScratchDirectory>();
    fill(*folder / "cache", entries);
    Cache cache({.layers = {{.name = "user", .root = *folder / "cache", .writable = true}}});
    if (!pack_entries(cache, *folder / "kernels.wavejit-archive", {})) std::abort();
  }
  Cache cache({.layers = {{.name = "image", .root = *folder / "kernels.wavejit-archive", .writable = false}}});
  measure(state, cache, entries);
}
BENCHMARK(cache_archive_hit)->Arg(1000)->UseManualTime()->Unit(benchmark::kMicrosecond);

void cache_memory_hit(benchmark::State& state) {
  MemoryLayer memory(std::size_t{64} << 20U);
  Cache cache({.layers = {}, .memory = &memory});
  for (int i = 0; i < looked_up; ++i) {
    const auto code = code_of(i, code_bytes);
    (void)cache.publish(nth_key(i), {.kernels = {{.name = "kernel"}}, .code_object = code});
  }
  measure(state, cache, looked_up);
}
BENCHMARK(cache_memory_hit)->UseManualTime()->Unit(benchmark::kMicrosecond);

// A miss asks every layer and takes the turn to compile.
void cache_miss_and_turn(benchmark::State& state) {
  const ScratchDirectory scratch;
  Cache cache({.layers = {{.name = "user", .root = scratch / "cache", .writable = true}},
               .lock_wait_nanoseconds = 10 * nanoseconds_per_second});
  fill(scratch / "cache", 10);
  const Key key = nth_key(1'000'000);
  for (auto _ : state) {
    if (cache.lookup(key)) state.SkipWithError("a hit");
    const Turn turn = cache.take_turn(key);
    if (!turn.exclusive()) state.SkipWithError("no turn");
  }
}
BENCHMARK(cache_miss_and_turn)->Unit(benchmark::kMicrosecond);

// Publishing keeps a kernel for ever: written, synced, renamed.
void cache_publish(benchmark::State& state) {
  const ScratchDirectory scratch;
  Cache cache({.layers = {{.name = "user", .root = scratch / "cache", .writable = true}}});
  const auto code = code_of(1, code_bytes);
  const Key key = nth_key(1);
  for (auto _ : state) {
    if (!cache.publish(key, {.kernels = {{.name = "kernel"}}, .code_object = code}).published)
      state.SkipWithError("not published");
  }
}
BENCHMARK(cache_publish)->Unit(benchmark::kMicrosecond);

// A sweep that finds nothing to do, in a folder of so many.
void cache_sweep(benchmark::State& state) {
  const ScratchDirectory scratch;
  Cache cache({.layers = {{.name = "user", .root = scratch / "cache", .writable = true}}});
  fill(scratch / "cache", static_cast<int>(state.range(0)));
  for (auto _ : state) {
    if (!cache.sweep(std::uint64_t{1} << 40U).complete) state.SkipWithError("not swept");
  }
}
BENCHMARK(cache_sweep)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
