// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/run/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "simgpu/machine/run/workgroup.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu {

struct WorkerPool::Job {
  const Body* body = nullptr;
  std::uint64_t count = 0;
  std::atomic<std::uint64_t> next{0};
  unsigned places = 0;  // for workers beside the caller; guarded by the pool's mutex
  unsigned active = 0;  // likewise
  std::condition_variable done;

  void work(WorkgroupRunner& runner) {
    const Take take = [this]() -> std::optional<std::uint64_t> {
      const std::uint64_t i = next.fetch_add(1);
      return i < count ? std::optional(i) : std::nullopt;
    };
    for (auto i = take(); i; i = take()) {
      if (!(*body)(runner, *i, take)) return next.store(count);
    }
  }
};

WorkerPool& WorkerPool::instance() {
  // Never destroyed: its threads wait until the process ends.
  static auto* const pool = new WorkerPool();
  return *pool;
}

void WorkerPool::run(std::uint64_t count, unsigned threads, const Body& body) {
  thread_local WorkgroupRunner own;
  auto job = std::make_shared<Job>();
  job->body = &body;
  job->count = count;
  const auto helpers =
      static_cast<unsigned>(std::min<std::uint64_t>(std::max(threads, 1u) - 1, count == 0 ? 0 : count - 1));
  if (helpers != 0) {
    const std::scoped_lock lock(mutex_);
    job->places = helpers;
    jobs_.push_back(job);
    if (workers_ < helpers) Process::instance().begin_threads();
    for (; workers_ < helpers; ++workers_) std::thread([this] { worker(); }).detach();
    work_.notify_all();
  }
  job->work(own);
  if (helpers != 0) {
    std::unique_lock lock(mutex_);
    std::erase(jobs_, job);
    job->done.wait(lock, [&] { return job->active == 0; });
  }
}

void WorkerPool::worker() {
  WorkgroupRunner runner;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto open = std::ranges::find_if(jobs_, [](const auto& job) { return job->places != 0; });
    if (open == jobs_.end()) {
      work_.wait(lock);
      continue;
    }
    std::shared_ptr<Job> job = *open;
    --job->places;
    ++job->active;
    lock.unlock();
    job->work(runner);
    lock.lock();
    --job->active;
    job->done.notify_all();
    job.reset();
  }
}

}  // namespace wavejit::simgpu
