// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/queue_thread.h"

#include <cstdio>
#include <utility>

namespace wavejit::simgpu::queues {
namespace {

constexpr int looks_of_a_while = 200;

}  // namespace

void print(const Status& status) {
  std::string lines = std::format("wavejit simulated GPU: {}\n", status.text);
  for (const std::string& line : status.others) lines += std::format("wavejit simulated GPU: {}\n", line);
  static_cast<void>(std::fputs(lines.c_str(), stderr));
}

void QueueThread::start(std::function<bool()> take) {
  take_ = std::move(take);
  thread_ = std::thread([this] { work(); });
}

void QueueThread::stop() {
  if (!thread_.joinable()) return;
  stops_ = true;
  ring();
  thread_.join();
}

void QueueThread::ring() {
  const std::scoped_lock lock(mutex_);
  rung_ = true;
  doorbell_.notify_one();
}

std::string QueueThread::waits_for() const {
  const std::scoped_lock lock(mutex_);
  return waits_for_;
}

void QueueThread::set_waits_for(std::string text) {
  const std::scoped_lock lock(mutex_);
  waits_for_ = std::move(text);
}

void QueueThread::work() {
  for (int looks = 0; !stops_; looks = std::min(looks + 1, looks_of_a_while)) {
    while (!stops_ && take_()) looks = 0;
    sleep(looks);
  }
}

// `looks` are those in vain since the last packet.
void QueueThread::sleep(int looks) {
  constexpr int looks_at_once = 5;  // each takes some 50 µs to come, and 10 µs of a core
  constexpr std::chrono::microseconds shortest(1);
  constexpr std::chrono::microseconds longer(1000);
  constexpr std::chrono::microseconds longest(4000);
  const auto has_work = [&] { return rung_ || stops_; };
  std::unique_lock lock(mutex_);
  if (doorbell_kind_ == Doorbell::rings) {
    doorbell_.wait(lock, has_work);
  } else {
    const auto pause = looks < looks_at_once ? shortest : looks < looks_of_a_while ? longer : longest;
    doorbell_.wait_for(lock, pause, has_work);
  }
  rung_ = false;
}

}  // namespace wavejit::simgpu::queues
