// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The queues that ROCr made, by the numbers that it was given for them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "simgpu/front_ends/queues/aql_queue.h"
#include "simgpu/front_ends/queues/sdma_queue.h"
#include "simgpu/front_ends/thunk/abi.h"

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
  // The queue's kernels are cooperative; false: there is no such queue of kernels.
  bool make_cooperative(std::uint64_t id);
  // Somebody waits: copy engines, whose doorbells are silent, look at once.
  void wake_copies();
  bool exists(std::uint64_t id);

 private:
  // Both pointers are of copy engines' queues; others have theirs in their amd_queue_t.
  struct Row {
    std::uint64_t read_pointer = 0;
    std::uint64_t write_pointer = 0;
    std::unique_ptr<queues::AqlQueue> dispatches = nullptr;  // one of the two
    std::unique_ptr<queues::SdmaQueue> copies = nullptr;
  };
  std::shared_ptr<Row> make_dispatches(Device& device, std::uint64_t ring, std::uint64_t bytes,
                                       const QueueResource& resource, std::uint32_t error_event) const;
  std::shared_ptr<Row> make_copies(const Device& device, std::uint64_t ring, std::uint64_t bytes,
                                   QueueResource& resource) const;
  const QueueConfig config_ = read_queue_config();
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Row>> rows_;
  std::uint64_t next_ = 1;
};

}  // namespace wavejit::simgpu::thunk
