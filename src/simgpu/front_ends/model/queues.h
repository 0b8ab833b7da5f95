// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queues of the model. No doorbell comes as a call: one thread looks at all that dispatch kernels, often while
// there is something to do and seldom while there is not. Those of copy engines look by themselves, as everywhere.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "simgpu/front_ends/model/interface.h"
#include "simgpu/front_ends/queues/aql_queue.h"
#include "simgpu/front_ends/queues/sdma_queue.h"

namespace wavejit::simgpu::model {

// A queue of one kind or the other.
struct Queue {
  std::unique_ptr<queues::AqlQueue> dispatches;
  queues::QueueFields* fields = nullptr;  // of dispatches
  std::unique_ptr<queues::SdmaQueue> copies;
};

// Thread-safe.
class Queues {
 public:
  Queues() = default;
  ~Queues();
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  // Null: a queue of a kind that is not run here, which one line on stderr says. `copies_stopped`: a copy engine found
  // something wrong and said it.
  Queue* add(Device& device, const QueueInfo& info, queues::RaiseEvent raise, void (*copies_stopped)());
  // Waits for a packet that runs; nobody looks at the queue afterwards.
  void remove(Queue* queue);

 private:
  void watch();
  bool ring_those_that_wait();

  const QueueConfig config_ = read_queue_config();
  std::mutex mutex_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::atomic<bool> stops_ = false;
  std::thread watcher_;  // made with the first queue
};

}  // namespace wavejit::simgpu::model
