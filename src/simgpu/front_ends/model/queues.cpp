// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/model/queues.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <format>
#include <utility>

#include "simgpu/front_ends/queues/packets.h"
#include "simgpu/front_ends/queues/queue_thread.h"

namespace wavejit::simgpu::model {

Queues::~Queues() {
  stops_ = true;
  if (watcher_.joinable()) watcher_.join();
}

Queue* Queues::add(Device& device, const QueueInfo& info, queues::RaiseEvent raise, void (*copies_stopped)()) {
  auto queue = std::make_unique<Queue>();
  switch (info.type) {
    case QueueType::aql: {
      const queues::QueuePlace place{.fields = info.read_pointer - offsetof(queues::QueueFields, read_index),
                                     .ring = info.ring,
                                     .packets = info.ring_bytes / queues::packet_bytes,
                                     .config = config_};
      queue->fields = host_pointer<queues::QueueFields>(place.fields);
      queue->dispatches = std::make_unique<queues::AqlQueue>(device, place, raise);
      break;
    }
    case QueueType::sdma: {
      const queues::SdmaPlace place{.ring = info.ring,
                                    .bytes = info.ring_bytes,
                                    .read_pointer = info.read_pointer,
                                    .write_pointer = info.write_pointer,
                                    .layout = device.target().sdma,
                                    .config = config_,
                                    .stopped = copies_stopped};
      queue->copies = std::make_unique<queues::SdmaQueue>(place, raise);
      break;
    }
    default:
      queues::print({.code = 1,
                     .text = std::format("a queue of type {}; this front end runs AQL (2) and SDMA (1)",
                                         static_cast<std::uint32_t>(info.type))});
      return nullptr;
  }
  const std::scoped_lock lock(mutex_);
  if (!watcher_.joinable()) watcher_ = std::thread([this] { watch(); });
  return queues_.emplace_back(std::move(queue)).get();
}

void Queues::remove(Queue* queue) {
  std::unique_ptr<Queue> removed;  // ends outside of the lock
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(queues_, queue, &std::unique_ptr<Queue>::get);
  if (found == queues_.end()) return;
  removed = std::move(*found);
  queues_.erase(found);
}

// A packet may be claimed and not written yet: whoever has something left is rung again.
bool Queues::ring_those_that_wait() {
  const std::scoped_lock lock(mutex_);
  bool has_any = false;
  for (const std::unique_ptr<Queue>& queue : queues_) {
    if (queue->dispatches == nullptr) continue;
    const std::uint64_t read = std::atomic_ref(queue->fields->read_index).load(std::memory_order_relaxed);
    if (read >= std::atomic_ref(queue->fields->write_index).load(std::memory_order_relaxed)) continue;
    queue->dispatches->ring_doorbell();
    has_any = true;
  }
  return has_any;
}

void Queues::watch() {
  static_cast<void>(prctl(PR_SET_NAME, "wavejit queues", 0, 0, 0));
  // Otherwise every pause takes 50 µs more than it says.
  static_cast<void>(prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0));
  constexpr std::chrono::microseconds shortest(10);
  constexpr std::chrono::microseconds longest(1000);
  std::chrono::microseconds pause = longest;
  while (!stops_) {
    pause = ring_those_that_wait() ? shortest : std::min(pause + (pause / 8) + (shortest / 10), longest);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace wavejit::simgpu::model
