// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies and fills. Everything goes through a stream; what HIP lets return before it is done does so, except copies
// from or to memory that HIP does not know (pageable), which HIP stages and which therefore are done on return.

#include <cstdint>
#include <cstring>

#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/capture.h"
#include "simgpu/front_ends/hip/front.h"
#include "simgpu/front_ends/hip/symbols.h"
#include "simgpu/machine/allocations/memory.h"
#include "simgpu/process/ledger.h"

namespace wavejit::hip_abi {

using namespace simgpu;
using namespace simgpu::hip_front;

namespace {

struct Rectangle {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t to_pitch = 0;
  std::size_t from_pitch = 0;
  std::size_t width = 0;  // bytes
  std::size_t height = 1;
  std::size_t to_slice = 0;
  std::size_t from_slice = 0;
  std::size_t depth = 1;
};

enum class Wait : std::uint8_t { never, if_pageable, always };

bool known_kind(hipMemcpyKind kind) { return kind <= hipMemcpyDefault || kind == hipMemcpyDeviceToDeviceNoCU; }

struct Range {
  bool inside = false;    // of the allocation that it starts in, or in none at all
  bool pageable = false;  // in none
};

Range classify(const void* pointer, std::size_t bytes) {
  const Allocation allocation = DeviceMemory::instance().lookup(pointer);
  if (allocation.bytes == 0) return {.inside = bytes != SIZE_MAX, .pageable = true};
  return {.inside = allocation.holds(reinterpret_cast<std::uint64_t>(pointer), bytes), .pageable = false};
}

// The bytes from the first row's start to the last row's end; SIZE_MAX when that many cannot exist. Sizes are not 0.
std::size_t extent(std::size_t width, std::size_t height, std::size_t depth, std::size_t pitch, std::size_t slice) {
  std::size_t slices = 0;
  std::size_t rows = 0;
  std::size_t sum = 0;
  const bool overflow = __builtin_mul_overflow(depth - 1, slice, &slices) ||
                        __builtin_mul_overflow(height - 1, pitch, &rows) ||
                        __builtin_add_overflow(slices, rows, &sum) || __builtin_add_overflow(sum, width, &sum);
  return overflow ? SIZE_MAX : sum;
}

hipError_t run(hipStream_t handle, hipGraphNodeType type, GraphWork work, Wait wait, bool waits) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) return current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed;
  DeviceContext& context = stream->context();
  if (context.error() != hipSuccess) return context.error();
  if (wait == Wait::always && stream == context.null_stream()) {
    if (const hipError_t refused = refuse_null_stream_wait(); refused != hipSuccess) return refused;
  }
  if (const auto captured = capture_work(stream, {type, &context, work})) return *captured;
  const Stream::Ticket ticket = context.submit(stream, std::move(work));
  if (!waits) return hipSuccess;
  stream->wait(ticket);
  return context.error();
}

// What is wrong with the block, or hipSuccess; `pageable` says whether HIP would stage it.
hipError_t check(const Rectangle& block, bool& pageable) {
  if (block.to == nullptr || block.from == nullptr) return hipErrorInvalidValue;
  if (block.height > 1 && (block.to_pitch < block.width || block.from_pitch < block.width)) {
    return hipErrorInvalidPitchValue;
  }
  const Range to = classify(block.to, extent(block.width, block.height, block.depth, block.to_pitch, block.to_slice));
  const Range from =
      classify(block.from, extent(block.width, block.height, block.depth, block.from_pitch, block.from_slice));
  pageable = to.pageable || from.pageable;
  return to.inside && from.inside ? hipSuccess : hipErrorInvalidValue;
}

GraphWork copying(const Rectangle& block) {
  return [block] {
    Ledger::instance().copied(block.width * block.height * block.depth);
    for (std::size_t slice = 0; slice < block.depth; ++slice) {
      for (std::size_t row = 0; row < block.height; ++row) {
        std::byte* to = static_cast<std::byte*>(block.to) + slice * block.to_slice + row * block.to_pitch;
        const std::byte* from =
            static_cast<const std::byte*>(block.from) + slice * block.from_slice + row * block.from_pitch;
        std::memmove(to, from, block.width);
        DeviceMemory::instance().define_copy(to, from, block.width);
      }
    }
  };
}

hipError_t copy(const Rectangle& block, hipStream_t stream, Wait wait) {
  if (block.width == 0 || block.height == 0 || block.depth == 0) return hipSuccess;
  bool pageable = false;
  if (const hipError_t error = check(block, pageable); error != hipSuccess) return error;
  const bool waits = wait == Wait::always || (wait == Wait::if_pageable && pageable);
  return run(stream, hipGraphNodeTypeMemcpy, copying(block), wait, waits);
}

hipError_t copy_line(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t stream, Wait wait) {
  if (!known_kind(kind)) return hipErrorInvalidMemcpyDirection;
  return copy({.to = to, .from = from, .width = bytes}, stream, wait);
}

hipError_t copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                     std::size_t height, hipMemcpyKind kind, hipStream_t stream, Wait wait) {
  if (!known_kind(kind)) return hipErrorInvalidMemcpyDirection;
  if (width > to_pitch || width > from_pitch) return hipErrorInvalidPitchValue;
  return copy(
      {.to = to, .from = from, .to_pitch = to_pitch, .from_pitch = from_pitch, .width = width, .height = height},
      stream, wait);
}

hipError_t copy_box(const hipMemcpy3DParms* box, hipStream_t stream, Wait wait) {
  if (box == nullptr) return hipErrorInvalidValue;
  if (!known_kind(box->kind)) return hipErrorInvalidMemcpyDirection;
  if (box->srcArray != nullptr || box->dstArray != nullptr) return hipErrorNotSupported;  // textures are not simulated
  const auto& [width, height, depth] = box->extent;
  if (width == 0 || height == 0 || depth == 0) return hipSuccess;
  const auto start = [](const hipPitchedPtr& memory, const hipPos& position) {
    return static_cast<std::byte*>(memory.ptr) + position.z * memory.pitch * memory.ysize + position.y * memory.pitch +
           position.x;
  };
  if (box->srcPtr.ptr == nullptr || box->dstPtr.ptr == nullptr) return hipErrorInvalidValue;
  if (box->srcPos.x + width > box->srcPtr.pitch || box->dstPos.x + width > box->dstPtr.pitch) {
    return hipErrorInvalidPitchValue;
  }
  return copy({.to = start(box->dstPtr, box->dstPos),
               .from = start(box->srcPtr, box->srcPos),
               .to_pitch = box->dstPtr.pitch,
               .from_pitch = box->srcPtr.pitch,
               .width = width,
               .height = height,
               .to_slice = box->dstPtr.pitch * box->dstPtr.ysize,
               .from_slice = box->srcPtr.pitch * box->srcPtr.ysize,
               .depth = depth},
              stream, wait);
}

hipError_t copy_parameters(const hip_Memcpy2D* block, hipStream_t stream, Wait wait) {
  if (block == nullptr) return hipErrorInvalidValue;
  if (block->srcMemoryType == hipMemoryTypeArray || block->dstMemoryType == hipMemoryTypeArray) {
    return hipErrorNotSupported;
  }
  const void* from = block->srcMemoryType == hipMemoryTypeHost ? block->srcHost : block->srcDevice;
  void* to = block->dstMemoryType == hipMemoryTypeHost ? block->dstHost : block->dstDevice;
  if (from == nullptr || to == nullptr) return hipErrorInvalidValue;
  const std::size_t from_pitch = block->srcPitch != 0 ? block->srcPitch : block->WidthInBytes + block->srcXInBytes;
  const std::size_t to_pitch = block->dstPitch != 0 ? block->dstPitch : block->WidthInBytes + block->dstXInBytes;
  return copy_rows(static_cast<std::byte*>(to) + block->dstY * to_pitch + block->dstXInBytes, to_pitch,
                   static_cast<const std::byte*>(from) + block->srcY * from_pitch + block->srcXInBytes, from_pitch,
                   block->WidthInBytes, block->Height, hipMemcpyDefault, stream, wait);
}

template <typename Value>
struct Filling {
  void* to = nullptr;
  Value value = 0;
  std::size_t pitch = 0;
  std::size_t width = 0;  // elements
  std::size_t height = 1;
};

template <typename Value>
hipError_t check(const Filling<Value>& fill) {
  if (fill.to == nullptr) return hipErrorInvalidValue;
  if (fill.width > SIZE_MAX / sizeof(Value)) return hipErrorInvalidValue;
  if (fill.height > 1 && fill.pitch < fill.width * sizeof(Value)) return hipErrorInvalidValue;
  // HIP fills only memory that it knows.
  const Range range = classify(fill.to, extent(fill.width * sizeof(Value), fill.height, 1, fill.pitch, 0));
  return range.pageable || !range.inside ? hipErrorInvalidValue : hipSuccess;
}

template <typename Value>
GraphWork filling(const Filling<Value>& fill) {
  return [fill] {
    for (std::size_t row = 0; row < fill.height; ++row) {
      std::byte* line = static_cast<std::byte*>(fill.to) + row * fill.pitch;
      if constexpr (sizeof(Value) == 1) {
        std::memset(line, fill.value, fill.width);
      } else {
        for (std::size_t i = 0; i < fill.width; ++i) std::memcpy(line + i * sizeof(Value), &fill.value, sizeof(Value));
      }
      DeviceMemory::instance().define(line, fill.width * sizeof(Value));
    }
  };
}

template <typename Value>
hipError_t fill(void* to, Value value, std::size_t pitch, std::size_t width, std::size_t height, hipStream_t stream,
                Wait wait) {
  if (width == 0 || height == 0) return hipSuccess;
  const Filling<Value> wanted{.to = to, .value = value, .pitch = pitch, .width = width, .height = height};
  if (const hipError_t error = check(wanted); error != hipSuccess) return error;
  return run(stream, hipGraphNodeTypeMemset, filling(wanted), wait, wait == Wait::always);
}

template <typename Value>
hipError_t add_fill_node(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                         std::size_t dependency_count, const hipMemsetParams& fill) {
  const Filling<Value> wanted{.to = fill.dst,
                              .value = static_cast<Value>(fill.value),
                              .pitch = fill.pitch,
                              .width = fill.width,
                              .height = fill.height};
  if (fill.width == 0 || fill.height == 0) return hipErrorInvalidValue;
  if (const hipError_t error = check(wanted); error != hipSuccess) return error;
  return add_node(node, graph, dependencies, dependency_count,
                  {hipGraphNodeTypeMemset, current_context(), filling(wanted)});
}

// A __device__ variable by its host shadow, and the place `offset` bytes into it.
hipError_t symbol_place(const void* symbol, std::size_t bytes, std::size_t offset, void** place) {
  void* start = nullptr;
  std::size_t size = 0;
  if (const hipError_t error = find_variable(symbol, &start, &size); error != hipSuccess) return error;
  if (offset > size || bytes > size - offset) return hipErrorInvalidValue;
  *place = static_cast<std::byte*>(start) + offset;
  return hipSuccess;
}

hipError_t copy_to_symbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                          hipMemcpyKind kind, hipStream_t stream, Wait wait) {
  void* place = nullptr;
  if (const hipError_t error = symbol_place(symbol, bytes, offset, &place); error != hipSuccess) return error;
  return copy_line(place, from, bytes, kind, stream, wait);
}

hipError_t copy_from_symbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset, hipMemcpyKind kind,
                            hipStream_t stream, Wait wait) {
  void* place = nullptr;
  if (const hipError_t error = symbol_place(symbol, bytes, offset, &place); error != hipSuccess) return error;
  return copy_line(to, place, bytes, kind, stream, wait);
}

}  // namespace

hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  return finish(copy_line(to, from, bytes, kind, nullptr, Wait::always));
}
hipError_t hipMemcpy_spt(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  return finish(copy_line(to, from, bytes, kind, stream_per_thread(), Wait::always));
}
hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return finish(copy_line(to, from, bytes, kind, stream, Wait::if_pageable));
}
hipError_t hipMemcpyAsync_spt(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return finish(copy_line(to, from, bytes, kind, per_thread_default(stream), Wait::if_pageable));
}
hipError_t hipMemcpyWithStream(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  return finish(copy_line(to, from, bytes, kind, stream, Wait::always));
}
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void* from, std::size_t bytes) {
  return finish(copy_line(to, from, bytes, hipMemcpyHostToDevice, nullptr, Wait::always));
}
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void* from, std::size_t bytes, hipStream_t stream) {
  return finish(copy_line(to, from, bytes, hipMemcpyHostToDevice, stream, Wait::if_pageable));
}
hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, std::size_t bytes) {
  return finish(copy_line(to, from, bytes, hipMemcpyDeviceToHost, nullptr, Wait::always));
}
hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, std::size_t bytes, hipStream_t stream) {
  return finish(copy_line(to, from, bytes, hipMemcpyDeviceToHost, stream, Wait::if_pageable));
}
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, std::size_t bytes) {
  return finish(copy_line(to, from, bytes, hipMemcpyDeviceToDevice, nullptr, Wait::always));
}
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, std::size_t bytes, hipStream_t stream) {
  return finish(copy_line(to, from, bytes, hipMemcpyDeviceToDevice, stream, Wait::if_pageable));
}
hipError_t hipMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                       std::size_t height, hipMemcpyKind kind) {
  return finish(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, nullptr, Wait::always));
}
hipError_t hipMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                            std::size_t height, hipMemcpyKind kind, hipStream_t stream) {
  return finish(copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream, Wait::if_pageable));
}
hipError_t hipMemcpy3D(const hipMemcpy3DParms* box) { return finish(copy_box(box, nullptr, Wait::always)); }
hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms* box, hipStream_t stream) {
  return finish(copy_box(box, stream, Wait::if_pageable));
}
hipError_t hipMemcpyParam2D(const hip_Memcpy2D* block) { return finish(copy_parameters(block, nullptr, Wait::always)); }
hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D* block, hipStream_t stream) {
  return finish(copy_parameters(block, stream, Wait::if_pageable));
}
hipError_t hipMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t bytes) {
  if (find_context(to_device) == nullptr || find_context(from_device) == nullptr) return finish(hipErrorInvalidDevice);
  return finish(copy_line(to, from, bytes, hipMemcpyDeviceToDevice, nullptr, Wait::always));
}
hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                              hipStream_t stream) {
  if (find_context(to_device) == nullptr || find_context(from_device) == nullptr) return finish(hipErrorInvalidDevice);
  return finish(copy_line(to, from, bytes, hipMemcpyDeviceToDevice, stream, Wait::if_pageable));
}
hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                             hipMemcpyKind kind) {
  return finish(copy_to_symbol(symbol, from, bytes, offset, kind, nullptr, Wait::always));
}
hipError_t hipMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes, std::size_t offset,
                                  hipMemcpyKind kind, hipStream_t stream) {
  return finish(copy_to_symbol(symbol, from, bytes, offset, kind, stream, Wait::if_pageable));
}
hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                               hipMemcpyKind kind) {
  return finish(copy_from_symbol(to, symbol, bytes, offset, kind, nullptr, Wait::always));
}
hipError_t hipMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                    hipMemcpyKind kind, hipStream_t stream) {
  return finish(copy_from_symbol(to, symbol, bytes, offset, kind, stream, Wait::if_pageable));
}
hipError_t hipGetSymbolAddress(void** pointer, const void* symbol) {
  std::size_t bytes = 0;
  if (pointer == nullptr) return finish(hipErrorInvalidValue);
  return finish(find_variable(symbol, pointer, &bytes));
}
hipError_t hipGetSymbolSize(std::size_t* bytes, const void* symbol) {
  void* pointer = nullptr;
  if (bytes == nullptr) return finish(hipErrorInvalidValue);
  return finish(find_variable(symbol, &pointer, bytes));
}

hipError_t hipMemset(void* to, int value, std::size_t bytes) {
  return finish(fill(to, static_cast<std::uint8_t>(value), bytes, bytes, 1, nullptr, Wait::always));
}
hipError_t hipMemset_spt(void* to, int value, std::size_t bytes) {
  return finish(fill(to, static_cast<std::uint8_t>(value), bytes, bytes, 1, stream_per_thread(), Wait::always));
}
hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t stream) {
  return finish(fill(to, static_cast<std::uint8_t>(value), bytes, bytes, 1, stream, Wait::never));
}
hipError_t hipMemsetAsync_spt(void* to, int value, std::size_t bytes, hipStream_t stream) {
  return finish(fill(to, static_cast<std::uint8_t>(value), bytes, bytes, 1, per_thread_default(stream), Wait::never));
}
hipError_t hipMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return finish(fill(to, static_cast<std::uint8_t>(value), pitch, width, height, nullptr, Wait::always));
}
hipError_t hipMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                            hipStream_t stream) {
  return finish(fill(to, static_cast<std::uint8_t>(value), pitch, width, height, stream, Wait::never));
}
hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, std::size_t count) {
  return finish(fill(to, static_cast<std::uint8_t>(value), 0, count, 1, nullptr, Wait::always));
}
hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, std::size_t count, hipStream_t stream) {
  return finish(fill(to, static_cast<std::uint8_t>(value), 0, count, 1, stream, Wait::never));
}
hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, std::size_t count) {
  return finish(fill(to, static_cast<std::uint16_t>(value), 0, count, 1, nullptr, Wait::always));
}
hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value, std::size_t count, hipStream_t stream) {
  return finish(fill(to, static_cast<std::uint16_t>(value), 0, count, 1, stream, Wait::never));
}
hipError_t hipMemsetD32(hipDeviceptr_t to, int value, std::size_t count) {
  return finish(fill(to, static_cast<std::uint32_t>(value), 0, count, 1, nullptr, Wait::always));
}
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, std::size_t count, hipStream_t stream) {
  return finish(fill(to, static_cast<std::uint32_t>(value), 0, count, 1, stream, Wait::never));
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                   std::size_t dependency_count, void* to, const void* from, std::size_t bytes,
                                   hipMemcpyKind kind) {
  if (!known_kind(kind)) return finish(hipErrorInvalidMemcpyDirection);
  const Rectangle block{.to = to, .from = from, .width = bytes};
  if (bytes == 0) return finish(hipErrorInvalidValue);
  bool pageable = false;
  if (const hipError_t error = check(block, pageable); error != hipSuccess) return finish(error);
  return finish(add_node(node, graph, dependencies, dependency_count,
                         {hipGraphNodeTypeMemcpy, current_context(), copying(block)}));
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                 std::size_t dependency_count, const hipMemsetParams* parameters) {
  if (parameters == nullptr) return finish(hipErrorInvalidValue);
  switch (parameters->elementSize) {
    case 1:
      return finish(add_fill_node<std::uint8_t>(node, graph, dependencies, dependency_count, *parameters));
    case 2:
      return finish(add_fill_node<std::uint16_t>(node, graph, dependencies, dependency_count, *parameters));
    case 4:
      return finish(add_fill_node<std::uint32_t>(node, graph, dependencies, dependency_count, *parameters));
    default:
      return finish(hipErrorInvalidValue);
  }
}

}  // namespace wavejit::hip_abi
