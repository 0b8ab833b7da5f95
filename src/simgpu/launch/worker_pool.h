// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host threads that run workgroups. Kept between launches: a thread costs more to start than a small launch to run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace wavejit::simgpu {

class WorkgroupRunner;

class WorkerPool {
 public:
  static WorkerPool& instance();

  // Calls `body(runner, i)` for every i below `count`, lowest first, on up to `threads` threads (the caller is one of
  // them); returns when all have returned. A body that returns false stops handing out more.
  void run(std::uint64_t count, unsigned threads, const std::function<bool(WorkgroupRunner&, std::uint64_t)>& body);

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
