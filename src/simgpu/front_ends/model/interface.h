// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What ROCr asks of a library that models GPUs (HSA_MODEL_LIB): own declarations of what libhsakmt's
// hsakmtmodeliface.h lays out, version 0.4 (ROCm 7.1 and 7.2). Later ROCr wants 1.0, which is another interface, and
// says itself that this one is too old.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wavejit::simgpu::model {

class Model;  // a GPU; model.cpp
struct Queue;

inline constexpr std::uint32_t interface_major = 0;
inline constexpr std::uint32_t interface_minor = 4;

// GPU addresses begin at 0 and end here: what lies above is the host's memory at the host's address.
inline constexpr std::uint64_t aperture_bytes_of_model = std::uint64_t{1} << 38;

// How the kernel driver's interface numbers queues.
enum class QueueType : std::uint32_t { sdma = 1, aql = 2 };

// Addresses are the GPU's.
struct QueueInfo {
  std::uint64_t ring = 0;
  std::uint64_t write_pointer = 0;
  std::uint64_t read_pointer = 0;
  std::uint64_t* doorbell = nullptr;  // never filled
  std::uint32_t ring_bytes = 0;
  QueueType type = QueueType::aql;
};
static_assert(sizeof(QueueInfo) == 40);

// Flags of an allocation, as the kernel driver's interface has them.
enum AllocationFlag : std::uint32_t {
  allocation_vram = 1U << 0,
  allocation_host = 1U << 1,
  allocation_doorbell = 1U << 3,
  allocation_registers = 1U << 4,
  allocation_public = 1U << 29,  // the host maps it as well
  allocation_execute = 1U << 30,
  allocation_write = 1U << 31,
};

using SetEvent = void (*)(void* data, unsigned event_id);

struct Functions {
  std::uint32_t version_major = interface_major;
  std::uint32_t version_minor = interface_minor;
  Model* (*create)() = nullptr;
  void (*destroy)(Model* model) = nullptr;
  // GPU address 0 stands at `base` of this process.
  void (*set_global_aperture)(Model* model, void* base, std::uint64_t bytes) = nullptr;
  // `address` is the GPU's. Nothing is mapped there yet.
  void (*alloced_memory)(Model* model, void* address, std::uint64_t bytes, std::uint32_t flags) = nullptr;
  void (*freed_memory)(Model* model, void* address, std::uint64_t bytes) = nullptr;
  void (*set_notify_event)(Model* model, void (*callback)(void* data), void* data) = nullptr;
  void (*set_wait_event)(Model* model, void (*callback)(void* data, std::uint64_t address, std::uint64_t age),
                         void* data) = nullptr;
  Queue* (*register_queue)(Model* model, QueueInfo* info) = nullptr;
  void (*set_set_event)(Model* model, SetEvent set_event, void* data) = nullptr;
  void (*destroy_queue)(Model* model, Queue* queue) = nullptr;
};
static_assert(sizeof(Functions) == 88);

}  // namespace wavejit::simgpu::model
