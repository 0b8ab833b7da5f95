// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What kept requests waiting, by cause: told by wavejit's hook for kernels, by the group for other ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <wavejit/wavejit.hpp>

namespace serving {

enum class Cause { compile, other_process, disk, load, other_rank };
constexpr std::size_t causes = 5;
constexpr std::array<const char*, causes> cause_names = {"compile", "another process compiles", "disk fetch",
                                                         "load onto the device", "another rank is late"};

enum class Phase { preparing, serving };

struct Stall {
  std::uint64_t count;
  std::uint64_t nanoseconds;
  std::uint64_t longest;
};

// Plain numbers: ranks hand them to the parent through shared memory.
struct StallTable {
  std::array<std::array<Stall, causes>, 2> stalls;  // [phase][cause]

  Stall& at(Phase phase, Cause cause) {
    return stalls[static_cast<std::size_t>(phase)][static_cast<std::size_t>(cause)];
  }
};

class StallLedger {
 public:
  void phase(Phase phase);
  void add(Cause cause, std::uint64_t nanoseconds);
  StallTable table() const;

  // For wavejit::EngineOptions::on_compile, with the ledger as context. Runs on whatever thread did the work.
  static void on_compile(void* ledger, const wavejit_compile_event* event) noexcept;
  // The engine whose statistics say whether a kernel came from disk at once or after waiting for the process that
  // compiled it.
  void watch(wavejit_engine* engine) { engine_ = engine; }

 private:
  bool waited_for_a_process();

  mutable std::mutex mutex_;
  Phase phase_ = Phase::preparing;
  StallTable table_{};
  wavejit_engine* engine_ = nullptr;
  std::uint64_t lock_waits_ = 0;
};

}  // namespace serving
