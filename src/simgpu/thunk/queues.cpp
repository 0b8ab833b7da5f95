// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/thunk/queues.h"

#include <cstddef>

#include "simgpu/queues/packets.h"
#include "simgpu/thunk/events.h"
#include "simgpu/thunk/topology.h"

namespace wavejit::simgpu::thunk {

Queues& Queues::instance() {
  // Never destroyed: programs end without telling, and their queues' threads with them.
  static auto* const queues = new Queues();
  return *queues;
}

KmtStatus Queues::create(std::uint32_t node, QueueType type, void* ring, std::uint64_t bytes, QueueResource& resource,
                         const Event* error_event) {
  Device* const device = device_of(node);
  if (device == nullptr) return KmtStatus::invalid_node;
  if (type != QueueType::compute_aql) return KmtStatus::not_supported;
  if (ring == nullptr || bytes < queues::packet_bytes || resource.read_pointer == 0)
    return KmtStatus::invalid_parameter;
  auto row = std::make_shared<Row>();
  row->doorbell = std::make_unique<std::uint64_t>(0);
  const std::uint64_t fields = resource.read_pointer - offsetof(queues::QueueFields, read_index);
  const queues::QueuePlace place{.fields = fields,
                                 .ring = reinterpret_cast<std::uint64_t>(ring),
                                 .packets = bytes / queues::packet_bytes,
                                 .error_reason = resource.error_reason,
                                 .error_event = error_event == nullptr ? 0 : error_event->id,
                                 .config = config_};
  row->queue = std::make_unique<queues::AqlQueue>(*device, place,
                                                  [](std::uint32_t event_id) { Events::instance().set(event_id); });
  const std::scoped_lock lock(mutex_);
  resource.id = next_++;
  resource.doorbell = reinterpret_cast<std::uint64_t>(row->doorbell.get());
  rows_[resource.id] = std::move(row);
  return KmtStatus::success;
}

KmtStatus Queues::destroy(std::uint64_t id) {
  std::shared_ptr<Row> row;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = rows_.find(id);
    if (found == rows_.end()) return KmtStatus::invalid_handle;
    row = std::move(found->second);
    rows_.erase(found);
  }
  return KmtStatus::success;  // the queue ends with its row, outside of the lock
}

bool Queues::ring_doorbell(std::uint64_t id) {
  std::shared_ptr<Row> row;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = rows_.find(id);
    if (found == rows_.end()) return false;
    row = found->second;
  }
  row->queue->ring_doorbell();
  return true;
}

bool Queues::exists(std::uint64_t id) {
  const std::scoped_lock lock(mutex_);
  return rows_.contains(id);
}

}  // namespace wavejit::simgpu::thunk
