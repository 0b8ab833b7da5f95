// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/queues.h"

#include <cstddef>
#include <cstdlib>
#include <utility>

#include "simgpu/front_ends/queues/packets.h"
#include "simgpu/front_ends/thunk/child.h"
#include "simgpu/front_ends/thunk/events.h"
#include "simgpu/front_ends/thunk/topology.h"

namespace wavejit::simgpu::thunk {
namespace {

void raise(std::uint32_t event_id) { Events::instance().set(event_id); }

bool is_for_copies(QueueType type) {
  return type == QueueType::sdma || type == QueueType::sdma_xgmi || type == QueueType::sdma_by_engine;
}

// A copy that touches what is no memory ends a program on a GPU as well: ROCr aborts it.
void end_program() {
  queues::print({.code = 1, .text = "AMD's runtime is not told of it and would wait for ever: the program ends here"});
  std::abort();
}

}  // namespace

Queues& Queues::instance() {
  // Never destroyed: programs end without telling, and their queues' threads with them.
  static auto* const queues = new Queues();
  return *queues;
}

std::shared_ptr<Queues::Row> Queues::make_dispatches(Device& device, std::uint64_t ring, std::uint64_t bytes,
                                                     const QueueResource& resource, std::uint32_t error_event) const {
  if (resource.read_pointer == 0) return nullptr;
  auto row = std::make_shared<Row>();
  const queues::QueuePlace place{.fields = resource.read_pointer - offsetof(queues::QueueFields, read_index),
                                 .ring = ring,
                                 .packets = bytes / queues::packet_bytes,
                                 .error_reason = resource.error_reason,
                                 .error_event = error_event,
                                 .config = config_};
  row->dispatches = std::make_unique<queues::AqlQueue>(device, place, raise);
  return row;
}

std::shared_ptr<Queues::Row> Queues::make_copies(const Device& device, std::uint64_t ring, std::uint64_t bytes,
                                                 QueueResource& resource) const {
  auto row = std::make_shared<Row>();
  resource.read_pointer = reinterpret_cast<std::uint64_t>(&row->read_pointer);
  resource.write_pointer = reinterpret_cast<std::uint64_t>(&row->write_pointer);
  row->copies = std::make_unique<queues::SdmaQueue>(queues::SdmaPlace{.ring = ring,
                                                                      .bytes = bytes,
                                                                      .read_pointer = resource.read_pointer,
                                                                      .write_pointer = resource.write_pointer,
                                                                      .layout = device.target().sdma,
                                                                      .config = config_,
                                                                      .stopped = end_program},
                                                    raise);
  return row;
}

KmtStatus Queues::create(std::uint32_t node, QueueType type, void* ring, std::uint64_t bytes, QueueResource& resource,
                         const Event* error_event) {
  Device* const device = device_of(node);
  if (device == nullptr) return KmtStatus::invalid_node;
  const bool dispatches = type == QueueType::compute_aql;
  if (!dispatches && !is_for_copies(type)) return KmtStatus::not_supported;
  if (ring == nullptr || bytes < queues::packet_bytes) return KmtStatus::invalid_parameter;
  if (doorbell_place() == 0) return KmtStatus::no_memory;
  const auto place = reinterpret_cast<std::uint64_t>(ring);
  const std::uint32_t event = error_event == nullptr ? 0 : error_event->id;
  auto row = dispatches ? make_dispatches(*device, place, bytes, resource, event)
                        : make_copies(*device, place, bytes, resource);
  if (row == nullptr) return KmtStatus::invalid_parameter;
  const std::scoped_lock lock(mutex_);
  resource.id = next_++;
  resource.doorbell = doorbell_place();
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
  if (row->dispatches != nullptr) {
    row->dispatches->ring_doorbell();
  } else {
    row->copies->ring_doorbell();
  }
  return true;
}

bool Queues::make_cooperative(std::uint64_t id) {
  const std::scoped_lock lock(mutex_);
  const auto found = rows_.find(id);
  if (found == rows_.end() || found->second->dispatches == nullptr) return false;
  found->second->dispatches->set_cooperative();
  return true;
}

void Queues::wake_copies() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [id, row] : rows_) {
    if (row->copies != nullptr) row->copies->ring_doorbell();
  }
}

bool Queues::exists(std::uint64_t id) {
  const std::scoped_lock lock(mutex_);
  return rows_.contains(id);
}

}  // namespace wavejit::simgpu::thunk
