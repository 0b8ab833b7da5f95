// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/hip/stream.h"

#include <atomic>
#include <utility>

#include "simgpu/front_ends/hip/front.h"
#include "simgpu/process/process.h"

namespace wavejit::simgpu::hip_front {
namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> id = 0;
  return ++id;
}

}  // namespace

Stream::Stream(DeviceContext& context, unsigned flags, int priority)
    : context_(context), flags_(flags), priority_(priority), id_(next_id()) {}

Stream::~Stream() { close(); }

Stream::Ticket Stream::submit(std::function<void()> work, std::vector<Dependency> dependencies,
                              AfterError after_error) {
  const std::scoped_lock lock(mutex_);
  // Only at the end of the process, or when a thread destroys a stream that another still uses.
  if (closing_) return finished_;
  queue_.push_back({std::move(work), std::move(dependencies), after_error});
  if (!worker_.joinable()) {
    close_streams_at_exit();
    Process::instance().begin_threads();
    worker_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
  return ++submitted_;
}

void Stream::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_ >= ticket || abandoned_; });
}

bool Stream::done(Ticket ticket) const {
  const std::scoped_lock lock(mutex_);
  return finished_ >= ticket;
}

Stream::Ticket Stream::last_ticket() const {
  const std::scoped_lock lock(mutex_);
  return submitted_;
}

void Stream::close() {
  std::thread worker;
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    worker = std::move(worker_);
    changed_.notify_all();
  }
  if (!worker.joinable()) return;
  if (Process::instance().left_threads_behind()) {
    worker.detach();
  } else {
    worker.join();
  }
}

void Stream::abandon() {
  const std::scoped_lock lock(mutex_);
  closing_ = true;
  abandoned_ = true;
  queue_.clear();
  changed_.notify_all();
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !queue_.empty() || closing_; });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    for (const Dependency& dependency : work.dependencies) dependency.stream->wait(dependency.ticket);
    lock.lock();
    const bool abandoned = abandoned_;
    lock.unlock();
    const bool wanted = work.after_error == AfterError::run || context_.error() == hip_abi::hipSuccess;
    if (wanted && !abandoned) work.run();
    work = {};  // lets go of modules and streams before anybody is told that it is done
    lock.lock();
    ++finished_;
    changed_.notify_all();
  }
}

}  // namespace wavejit::simgpu::hip_front
