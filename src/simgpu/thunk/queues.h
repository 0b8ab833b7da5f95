// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queues that ROCr made, by the numbers that it was given for them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "simgpu/queues/aql_queue.h"
#include "simgpu/thunk/abi.h"

namespace wavejit::simgpu::thunk {

// Thread-safe.
class Queues {
 public:
  static Queues& instance();

  // `error_event`: raised when the queue stops.
  KmtStatus create(std::uint32_t node, QueueType type, void* ring, std::uint64_t bytes, QueueResource& resource,
                   const Event* error_event = nullptr);
  KmtStatus destroy(std::uint64_t id);
  bool ring_doorbell(std::uint64_t id);
  bool exists(std::uint64_t id);

 private:
  struct Row {
    std::unique_ptr<queues::AqlQueue> queue;
    std::unique_ptr<std::uint64_t> doorbell;  // nobody looks at it: doorbells come as calls
  };
  const QueueConfig config_ = read_queue_config();
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Row>> rows_;
  std::uint64_t next_ = 1;
};

}  // namespace wavejit::simgpu::thunk
