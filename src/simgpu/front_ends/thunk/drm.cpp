// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What ROCr asks of libdrm: how fast the GPU's clock counts, and what maps memory that has no address of its own. And
// what would share memory between processes, which is refused.
// Signatures: libdrm's amdgpu.h.
#include <cerrno>
#include <cstdint>

#include "simgpu/front_ends/queues/queue_thread.h"
#include "simgpu/front_ends/queues/signals.h"
#include "simgpu/front_ends/thunk/abi.h"
#include "simgpu/front_ends/thunk/memory.h"
#include "simgpu/front_ends/thunk/virtual_memory.h"

namespace wavejit::simgpu::thunk {
namespace {

int answer(bool yes) { return yes ? 0 : -EINVAL; }

// One line a process.
KmtStatus refuse_sharing() {
  static const bool said = [] {
    simgpu::queues::print(
        {.code = 1,
         .text = "refused: memory is not shared between processes (IPC handles, exported and imported files)"});
    return true;
  }();
  static_cast<void>(said);
  return KmtStatus::not_supported;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

KmtStatus hsaKmtGetAMDGPUDeviceHandle(std::uint32_t node, void** handle) {
  *handle = VirtualMemory::instance().device(node);
  return *handle != nullptr ? KmtStatus::success : KmtStatus::invalid_node;
}

int amdgpu_query_gpu_info(const void* /*handle*/, GpuInfo* info) {
  constexpr std::uint64_t hz_per_khz = 1000;
  *info = {.counter_khz = static_cast<std::uint32_t>(simgpu::queues::clock_hz / hz_per_khz)};
  return 0;
}

// Memory with an address is no file: it cannot be given to others. Where it lies in its block is asked for all the
// same.
KmtStatus hsaKmtExportDMABufHandle(void* memory, std::uint64_t /*bytes*/, int* file, std::uint64_t* offset) {
  *offset = 0;
  *file = VirtualMemory::instance().export_file(memory);
  if (*file >= 0) return KmtStatus::success;
  PointerInfo info;
  if (!Memory::instance().describe(memory, info)) return KmtStatus::invalid_parameter;
  *offset = reinterpret_cast<std::uint64_t>(memory) - info.cpu_address;
  return refuse_sharing();
}

KmtStatus hsaKmtShareMemory() { return refuse_sharing(); }
KmtStatus hsaKmtRegisterSharedHandle() { return refuse_sharing(); }
KmtStatus hsaKmtRegisterSharedHandleToNodes() { return refuse_sharing(); }
KmtStatus hsaKmtRegisterGraphicsHandleToNodes() { return refuse_sharing(); }
KmtStatus hsaKmtRegisterGraphicsHandleToNodesExt() { return refuse_sharing(); }

int amdgpu_bo_import(const void* /*device*/, std::uint32_t kind, std::uint32_t file, ImportResult* result) {
  if (kind != handle_file) return -ENOSYS;
  VirtualMemory& memory = VirtualMemory::instance();
  const std::uint64_t object = memory.import_file(static_cast<int>(file));
  if (object == 0) return -EINVAL;
  *result = {.object = object, .bytes = memory.bytes_of(object)};
  return 0;
}

int amdgpu_bo_export(std::uint64_t object, std::uint32_t kind, std::uint32_t* handle) {
  if (kind != handle_kms) return -ENOSYS;
  *handle = static_cast<std::uint32_t>(object);
  return 0;
}

int amdgpu_bo_free(std::uint64_t object) { return answer(VirtualMemory::instance().drop(object)); }

int amdgpu_bo_va_op(std::uint64_t object, std::uint64_t offset, std::uint64_t bytes, std::uint64_t address,
                    std::uint64_t /*flags*/, std::uint32_t operation) {
  VirtualMemory& memory = VirtualMemory::instance();
  if (operation == address_map) return answer(memory.map(object, offset, bytes, address));
  return operation == address_unmap ? answer(memory.unmap(address, bytes)) : -ENOSYS;
}

// From the object's number to its place in the GPU's file, in the same 8 bytes.
int drmCommandWriteRead(int /*file*/, unsigned long command, void* data, unsigned long bytes) {
  if (command != command_map_file || bytes < sizeof(std::uint64_t)) return -ENOSYS;
  const std::uint32_t object = *static_cast<std::uint32_t*>(data);
  return answer(VirtualMemory::instance().offset_of(object, *static_cast<std::uint64_t*>(data)));
}

int amdgpu_device_get_fd(const DrmDevice* device) { return device->file; }

}  // extern "C"
#pragma GCC visibility pop

}  // namespace wavejit::simgpu::thunk
