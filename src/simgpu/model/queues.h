// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queues of the model. No doorbell comes as a call: one thread looks at all of them, often while there is something
// to do and seldom while there is not.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "simgpu/model/interface.h"
#include "simgpu/queues/aql_queue.h"

namespace wavejit::simgpu::model {

struct Queue {
  queues::AqlQueue processor;
  queues::QueueFields* fields;
};

// Thread-safe.
class Queues {
 public:
  Queues() = default;
  ~Queues();
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  // Null: a queue of a kind that is not run here, which one line on stderr says.
  Queue* add(Device& device, const QueueInfo& info, queues::RaiseEvent raise);
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
