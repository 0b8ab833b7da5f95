// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels of one call are independent and its caller waits for the last of them: the caller's thread makes one, helpers
// make the others meanwhile. A process whose kernels are on disk never starts a thread for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace wavejit::runtime {

// How many threads may help at once. Those that are helped are not among them.
class Helpers {
 public:
  explicit Helpers(std::size_t most) noexcept : free_(most) {}
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  // As many as are free, `wanted` at most. They come back by give_back.
  std::size_t take(std::size_t wanted) noexcept;
  void give_back(std::size_t count) noexcept { free_.fetch_add(count, std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> free_;
};

// Those of calls: one a core beside the caller's own, of the whole process, whose engines share the machine. One even
// on a single core: a kernel that another process is at keeps the others of its call waiting for nothing.
Helpers& process_helpers();

// Pieces of work in their order, each begun by whoever is free next: worker 0 is the calling thread, the others are
// helpers that it hired.
class SideBySide {
 public:
  using Work = std::function<void(std::size_t piece, std::size_t worker)>;
  SideBySide(std::size_t pieces, Helpers& helpers, Work work)
      : pieces_(pieces), helpers_(helpers), work_(std::move(work)) {}
  ~SideBySide() { dismiss(); }
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;

  // Returns when all are done. What a piece threw stops the others and is thrown here.
  void run();
  // Said by a piece that will take long: what is left is worth threads of its own. Whether it hired some now.
  bool hire(std::size_t worker) noexcept;
  // Said by a piece that failed: none is begun any more. All before it have been, and come to their end.
  void stop() noexcept { next_.store(pieces_, std::memory_order_relaxed); }

 private:
  void work_off(std::size_t worker) noexcept;
  void dismiss() noexcept;

  std::size_t pieces_;
  Helpers& helpers_;
  Work work_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr thrown_;  // the first
  // Worker 0's alone.
  std::size_t taken_ = 0;  // of helpers_
  std::vector<std::jthread> hired_;
};

}  // namespace wavejit::runtime
