// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/loader/loaded_code.h"

#include <algorithm>
#include <cstring>
#include <format>

#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu {
namespace {

// Relocation types (LLVM's AMDGPU usage document, "Relocation Records").
constexpr std::uint32_t relocation_none = 0;
constexpr std::uint32_t relocation_abs32_lo = 1;
constexpr std::uint32_t relocation_abs32_hi = 2;
constexpr std::uint32_t relocation_abs64 = 3;
constexpr std::uint32_t relocation_abs32 = 6;
constexpr std::uint32_t relocation_relative64 = 13;

}  // namespace

std::expected<std::unique_ptr<LoadedCode>, Status> LoadedCode::load(std::span<const std::byte> image, CodeObject object,
                                                                    int device, Disassembler& disassembler,
                                                                    const Registry& registry) {
  std::unique_ptr<LoadedCode> loaded(new LoadedCode(std::move(object), disassembler, registry));
  const CodeObject& read = loaded->object_;
  void* memory = DeviceMemory::instance().allocate(read.memory_bytes, MemoryKind::code, device, 4096);
  if (memory == nullptr) {
    return std::unexpected(Status{hip_error_out_of_memory,
                                  std::format("no device memory for a code object of {} bytes", read.memory_bytes)});
  }
  loaded->base_ = reinterpret_cast<std::uint64_t>(memory);
  loaded->lines_ = SourceLines::read(image);
  for (const Segment& segment : read.segments) {
    std::memcpy(host_pointer(loaded->base_ + segment.address), image.data() + segment.file_offset, segment.file_bytes);
  }
  if (Status status = loaded->relocate(); !status.ok()) return std::unexpected(std::move(status));
  for (const Segment& segment : read.segments) {
    std::vector<std::uint8_t>& copy = loaded->code_.emplace_back();
    if (!segment.executable) continue;
    const std::uint8_t* start = host_pointer(loaded->base_ + segment.address);
    copy.assign(start, start + segment.file_bytes);
  }
  return loaded;
}

LoadedCode::~LoadedCode() {
  if (base_ != 0) DeviceMemory::instance().free(host_pointer(base_));
}

Status LoadedCode::relocate() {
  for (const Relocation& relocation : object_.relocations) {
    const Symbol& symbol = object_.dynamic_symbols[relocation.symbol];
    const bool wide = relocation.type == relocation_abs64 || relocation.type == relocation_relative64;
    const std::uint64_t bytes = wide ? 8 : 4;
    if (relocation.offset > object_.memory_bytes || object_.memory_bytes - relocation.offset < bytes) {
      return {hip_error_invalid_image, std::format("code object: a relocation writes to {:#x}, beyond its {} bytes",
                                                   relocation.offset, object_.memory_bytes)};
    }
    if (relocation.type == relocation_none) continue;
    std::uint64_t value = base_ + static_cast<std::uint64_t>(relocation.addend);
    if (relocation.type != relocation_relative64) {
      constexpr std::uint8_t weak = 2;
      if (!symbol.defined && symbol.binding != weak) {
        return {hip_error_shared_object_init_failed,
                std::format("code object: symbol {} is undefined, and nothing else is linked to it", symbol.name)};
      }
      value = static_cast<std::uint64_t>(relocation.addend) + (symbol.defined ? base_ + symbol.value : 0);
    }
    std::uint8_t* place = host_pointer(base_ + relocation.offset);
    if (relocation.type == relocation_abs32_hi) value >>= 32;
    switch (relocation.type) {
      case relocation_abs64:
      case relocation_relative64:
        std::memcpy(place, &value, 8);
        break;
      case relocation_abs32:
      case relocation_abs32_lo:
      case relocation_abs32_hi: {
        const auto half = static_cast<std::uint32_t>(value);
        std::memcpy(place, &half, 4);
        break;
      }
      default:
        return {hip_error_invalid_image,
                std::format("code object: relocation type {}; the loader takes 1, 2, 3, 6 and 13", relocation.type)};
    }
  }
  return {};
}

Function* LoadedCode::function_at(std::uint64_t address) {
  const auto after =
      std::ranges::upper_bound(functions_, address, {}, [](const auto& function) { return function->address; });
  if (after != functions_.begin()) {
    Function* candidate = std::prev(after)->get();
    if (address - candidate->address < candidate->bytes) return candidate;
  }
  const std::uint64_t place = address - base_;
  const auto segment = std::ranges::find_if(object_.segments, [&](const Segment& candidate) {
    return candidate.executable && place >= candidate.address && place - candidate.address < candidate.file_bytes;
  });
  if (address < base_ || segment == object_.segments.end()) return nullptr;
  const FunctionExtent extent =
      function_around(object_.symbols, place, segment->address, segment->address + segment->file_bytes);
  const std::vector<std::uint8_t>& code = code_[static_cast<std::size_t>(segment - object_.segments.begin())];
  auto function =
      decode_function(extent.name, std::span(code).subspan(extent.first - segment->address, extent.end - extent.first),
                      base_ + extent.first, *disassembler_, *registry_);
  function->lines = lines_.get();
  function->load_address = base_;
  const auto position =
      std::ranges::upper_bound(functions_, function->address, {}, [](const auto& known) { return known->address; });
  return functions_.insert(position, std::move(function))->get();
}

const Instruction* LoadedCode::instruction_at(std::uint64_t address) {
  const std::scoped_lock lock(mutex_);
  Function* function = function_at(address);
  return function == nullptr ? nullptr : function->at(address);
}

}  // namespace wavejit::simgpu
