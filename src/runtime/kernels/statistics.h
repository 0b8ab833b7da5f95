// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an engine did, as numbers that add up: calls + prepared = memory hits + disk hits + misses, misses = compiled +
// failures + refused calls.
//
// The hot path counts one thing, the call, in a cache line that threads rarely share; memory hits are what is left when
// the cold path's counts are taken away.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "wavejit/wavejit.h"

namespace wavejit::runtime {

class Statistics {
 public:
  // A call whose arguments and route are good: it looks for a kernel.
  void count_call() noexcept { calls_[shard()].value.fetch_add(1, std::memory_order_relaxed); }

  std::atomic<std::uint64_t> disk_hits{0};
  std::atomic<std::uint64_t> compiled{0};
  std::atomic<std::uint64_t> compile_failures{0};
  std::atomic<std::uint64_t> loader_rejections{0};
  std::atomic<std::uint64_t> prepared{0};  // counted before the outcome, as calls are
  std::atomic<std::uint64_t> refused_sealed{0};
  std::atomic<std::uint64_t> refused_capturing{0};
  std::atomic<std::uint64_t> refused_no_compile{0};
  std::atomic<std::uint64_t> refused_unsupported{0};
  std::atomic<std::uint64_t> compile_ns{0};
  std::atomic<std::uint64_t> load_ns{0};

  // The cache's own counters are the caller's to add.
  void fill(wavejit_statistics& out) const noexcept {
    // Cold counts first: each was preceded by its call, so that what is left is never negative.
    out.disk_hits = disk_hits.load(std::memory_order_acquire);
    out.compiled = compiled.load(std::memory_order_acquire);
    out.compile_failures = compile_failures.load(std::memory_order_acquire);
    out.loader_rejections = loader_rejections.load(std::memory_order_acquire);
    out.refused_sealed = refused_sealed.load(std::memory_order_acquire);
    out.refused_capturing = refused_capturing.load(std::memory_order_acquire);
    out.refused_no_compile = refused_no_compile.load(std::memory_order_acquire);
    out.refused_unsupported = refused_unsupported.load(std::memory_order_acquire);
    out.compile_ns = compile_ns.load(std::memory_order_acquire);
    out.load_ns = load_ns.load(std::memory_order_acquire);
    out.misses = out.compiled + out.compile_failures + out.refused_sealed + out.refused_capturing +
                 out.refused_no_compile + out.refused_unsupported;
    out.prepared = prepared.load(std::memory_order_acquire);
    out.calls = 0;
    for (const Shard& one : calls_) out.calls += one.value.load(std::memory_order_acquire);
    out.memory_hits = out.calls + out.prepared - out.disk_hits - out.misses;
  }

 private:
  static constexpr std::size_t shards = 16;
  struct alignas(64) Shard {
    std::atomic<std::uint64_t> value{0};
  };

  static std::size_t shard() noexcept {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % shards;
    return mine;
  }

  std::array<Shard, shards> calls_;
};

}  // namespace wavejit::runtime
