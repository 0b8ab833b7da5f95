// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host threads that run workgroups. Kept between launches: a thread costs more to start than a small launch to run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace wavejit::simgpu {

class WorkgroupRunner;

class WorkerPool {
 public:
  static WorkerPool& instance();

  // Hands out the next number; nothing when none is left.
  using Take = std::function<std::optional<std::uint64_t>()>;
  // Works on number `i`, and on others that it takes. False stops handing out more.
  using Body = std::function<bool(WorkgroupRunner& runner, std::uint64_t i, const Take& take)>;
  // Calls `body` until every number below `count` was handed out, lowest first, on up to `threads` threads (the caller
  // is one of them); returns when all have returned.
  void run(std::uint64_t count, unsigned threads, const Body& body);

  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

 private:
  struct Job;
  WorkerPool() = default;
  ~WorkerPool() = default;
  void worker();

  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<std::shared_ptr<Job>> jobs_;
  unsigned workers_ = 0;
};

}  // namespace wavejit::simgpu
