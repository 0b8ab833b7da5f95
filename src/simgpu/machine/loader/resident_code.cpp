// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/loader/resident_code.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <format>
#include <iterator>
#include <string_view>
#include <utility>

#include "isa/instruction_set.h"
#include "simgpu/machine/allocations/memory.h"
#include "simgpu/machine/decode/disassembler.h"
#include "simgpu/machine/decode/registry.h"

namespace wavejit::simgpu {
namespace {

// ROCr's own kernels for copies and fills have an older header, amd_kernel_code_t (hsa/amd_hsa_kernel_code.h), whose
// entry offset, registers and properties stand where the descriptor has them. What else is in it must not be read as
// sizes or preloaded arguments.

struct OldHeader {
  std::uint32_t major;
  std::uint32_t minor;
  std::uint16_t machine_kind;
  std::uint16_t machine_major;
  std::uint32_t machine_minor_and_stepping;
  std::int64_t entry_offset;
};
constexpr std::int64_t old_header_bytes = 256;

bool is_old_header(std::span<const std::byte, descriptor_bytes> bytes) {
  OldHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  constexpr std::uint16_t amdgpu = 1;
  return header.major == 1 && header.minor <= 2 && header.machine_kind == amdgpu && header.machine_major >= 7 &&
         header.entry_offset == old_header_bytes;
}

// Those of ROCm 7.2 for gfx942 and later: a descriptor that says nothing of arguments, with its code right behind the
// 256 bytes of such a header, and no code object around it.
bool is_bare(const KernelDescriptor& descriptor) {
  return descriptor.entry_offset == old_header_bytes && descriptor.kernarg_size == 0 &&
         descriptor.group_segment_fixed_size == 0 && descriptor.private_segment_fixed_size == 0;
}

// HIP compiles its own kernels into one code object, which has no others. A program's kernel may be called likewise.
bool is_of_hip(const CodeObject& object) {
  constexpr std::string_view prefix = "__amd_rocclr_";
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(object.kernels,
                               [&](const KernelDescription& kernel) { return kernel.info.name == name; });
  };
  const bool no_others = std::ranges::all_of(
      object.kernels, [&](const KernelDescription& kernel) { return kernel.info.name.starts_with(prefix); });
  return no_others && has("__amd_rocclr_copyBuffer") && has("__amd_rocclr_fillBufferAligned");
}

// Which of HIP's internal kernels end by themselves: streamOpsWait and batchMemOp wait for a write, scheduler waits for
// other kernels.
bool ends_by_itself(std::string_view name) {
  constexpr std::array<std::string_view, 4> prefixes = {"__amd_rocclr_copyBuffer", "__amd_rocclr_fillBuffer",
                                                        "__amd_rocclr_streamOpsWrite", "__amd_rocclr_initHeap"};
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Finders go by where code objects begin: behind the last one other memory may follow.
bool covers(const CodeObject& object, std::uint64_t place) {
  return std::ranges::any_of(object.segments, [&](const Segment& segment) {
    constexpr std::uint64_t page = 4096;
    return place < (segment.address + segment.memory_bytes + page - 1) / page * page;
  });
}

// Memory that held an image may hold another one's by now: headers and notes tell them apart.
bool is_loaded(const CodeObject& object, const CodeImage& image, std::uint64_t base,
               std::span<const std::byte> memory) {
  const Segment& first = object.segments.front();
  if (image.load_address != base || first.address != 0 || first.file_offset != 0) return true;
  constexpr std::uint64_t enough = 4096;
  const std::uint64_t bytes = std::min<std::uint64_t>({first.file_bytes, enough, memory.size()});
  return std::ranges::equal(std::span(image.bytes).first(bytes), memory.first(bytes));
}

}  // namespace

ResidentCode::ResidentCode(std::uint64_t base, std::uint64_t bytes, const targets::Target& target,
                           const Registry& registry, FindImage find_image)
    : base_(base),
      bytes_(bytes),
      target_(&target),
      disassembler_(Disassembler::for_processor(target.id)),
      registry_(&registry),
      find_image_(std::move(find_image)) {}

ResidentCode::~ResidentCode() = default;

void ResidentCode::look_for_image() {
  const std::span<const std::byte> memory(host_pointer<const std::byte>(base_), bytes_);
  if (const std::optional<CodeImage> image = find_image_ ? find_image_(base_) : std::nullopt) {
    auto object = read_code_object(image->bytes);
    if (object && covers(*object, base_ - image->load_address) && is_loaded(*object, *image, base_, memory)) {
      object_ = std::move(*object);
      load_address_ = image->load_address;
      lines_ = SourceLines::read(image->bytes);
      return;
    }
  }
  // Images of compressed bundles are gone once they are loaded. What was loaded has its headers.
  if (auto object = read_code_object(code_object_in_memory(memory))) {
    object_ = std::move(*object);
    load_address_ = base_;
  }
}

// Code for waves of 64 lanes has the bytes of code for 32 and means other registers: masks are pairs there.
std::string ResidentCode::take_lanes(const KernelDescriptor& descriptor) {
  if (registry_->instruction_set() != isa::InstructionSet::rdna4) return {};
  const unsigned lanes = descriptor.lanes();
  if (lanes == lanes_) return {};
  if (lanes_ != 0 && !functions_.empty()) {
    return std::format(
        "kernels of waves of {} lanes and of {} lanes beside each other in the executable memory [{:#x}, {:#x})",
        lanes_, lanes, base_, base_ + bytes_);
  }
  Disassembler* const disassembler = Disassembler::for_processor(target_->id, lanes);
  if (disassembler == nullptr) return std::format("no disassembler for {} with waves of {} lanes", target_->id, lanes);
  // What was looked at before, without knowing.
  std::ranges::move(functions_, std::back_inserter(retired_));
  functions_.clear();
  disassembler_ = disassembler;
  lanes_ = lanes;
  return {};
}

std::expected<std::shared_ptr<const ResidentKernel>, std::string> ResidentCode::kernel_at(
    std::uint64_t descriptor_address) {
  const std::uint64_t offset = descriptor_address - base_;
  if (descriptor_address < base_ || offset > bytes_ || bytes_ - offset < descriptor_bytes ||
      descriptor_address % descriptor_bytes != 0) {
    return std::unexpected(std::format("a kernel descriptor at {:#x}: 64 aligned bytes of executable memory are wanted",
                                       descriptor_address));
  }
  const std::scoped_lock lock(mutex_);
  const std::span<const std::byte, descriptor_bytes> now(host_pointer<const std::byte>(descriptor_address),
                                                         descriptor_bytes);
  const auto known = kernels_.find(descriptor_address);
  if (known != kernels_.end() && std::ranges::equal(known->second->bytes, now)) return known->second;

  auto kernel = std::make_shared<ResidentKernel>();
  std::ranges::copy(now, kernel->bytes.begin());
  kernel->descriptor = read_descriptor(now, target_);
  kernel->descriptor_address = descriptor_address;
  kernel->entry = descriptor_address + static_cast<std::uint64_t>(kernel->descriptor.entry_offset);
  if (!std::exchange(looked_for_image_, true)) look_for_image();
  const bool has_old_header = is_old_header(now);
  kernel->is_of_runtime = has_old_header || (!object_ && is_bare(kernel->descriptor));
  kernel->is_short = kernel->is_of_runtime;
  if (has_old_header) {
    kernel->descriptor.group_segment_fixed_size = 0;
    kernel->descriptor.private_segment_fixed_size = 0;
    kernel->descriptor.kernarg_size = 0;
    kernel->descriptor.resource3 = 0x3f;  // no accumulation registers
    kernel->descriptor.kernarg_preload = 0;
  }
  if (kernel->entry < base_ || kernel->entry - base_ >= bytes_ || kernel->entry % 4 != 0) {
    return std::unexpected(
        std::format("the kernel descriptor at {:#x} says that code begins at {:#x}, outside of the "
                    "executable memory [{:#x}, {:#x})",
                    descriptor_address, kernel->entry, base_, base_ + bytes_));
  }
  if (std::string problem = take_lanes(kernel->descriptor); !problem.empty()) {
    return std::unexpected(std::format("the kernel descriptor at {:#x}: {}", descriptor_address, problem));
  }
  kernel->info.name = std::format("kernel at {:#x}", descriptor_address);
  kernel->info.kernarg_bytes = kernel->descriptor.kernarg_size;
  kernel->info.vgprs = kernel->descriptor.vgprs();
  if (object_) {
    const auto described =
        std::ranges::find(object_->kernels, descriptor_address - load_address_, &KernelDescription::descriptor_address);
    // Code that changed is another kernel's.
    if (described != object_->kernels.end() && described->descriptor == kernel->descriptor) {
      kernel->info = described->info;
    }
    kernel->is_of_runtime = is_of_hip(*object_);
    kernel->is_short = kernel->is_of_runtime && ends_by_itself(kernel->info.name);
  }
  kernels_[descriptor_address] = kernel;
  return kernel;
}

std::unique_ptr<ResidentCode::Decoded> ResidentCode::decode(std::uint64_t address) const {
  auto decoded = std::make_unique<Decoded>();
  FunctionExtent extent{.name = std::format("code at {:#x}", address), .first = address, .end = base_ + bytes_};
  if (object_) {
    const std::uint64_t place = address - load_address_;
    for (const Segment& segment : object_->segments) {
      if (!segment.executable || place < segment.address || place - segment.address >= segment.file_bytes) continue;
      extent = function_around(object_->symbols, place, segment.address, segment.address + segment.file_bytes);
      extent.first += load_address_;
      extent.end = std::min(extent.end + load_address_, base_ + bytes_);
    }
  }
  const std::span<const std::uint8_t> memory(host_pointer<const std::uint8_t>(extent.first), extent.end - extent.first);
  const std::uint64_t size =
      extent.named ? memory.size() : reachable_bytes(memory, extent.first, *disassembler_, *registry_);
  decoded->code.assign(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(size));
  decoded->function = decode_function(std::move(extent.name), decoded->code, extent.first, *disassembler_, *registry_);
  decoded->function->lines = lines_.get();
  decoded->function->load_address = load_address_;
  return decoded;
}

const Instruction* ResidentCode::instruction_at(std::uint64_t address) {
  if (address < base_ || address - base_ >= bytes_) return nullptr;
  const std::scoped_lock lock(mutex_);
  const auto start = [](const auto& decoded) { return decoded->function->address; };
  const auto after = std::ranges::upper_bound(functions_, address, {}, start);
  if (after != functions_.begin()) {
    const Function& candidate = *(*std::prev(after))->function;
    if (address - candidate.address < candidate.bytes) {
      if (const Instruction* found = candidate.at(address)) return found;
      return nullptr;
    }
  }
  const auto place = functions_.insert(after, decode(address));
  return (*place)->function->at(address);
}

void ResidentCode::invalidate() {
  const std::scoped_lock lock(mutex_);
  for (auto& decoded : functions_) {
    const auto* memory = host_pointer<const std::uint8_t>(decoded->function->address);
    if (std::memcmp(memory, decoded->code.data(), decoded->code.size()) != 0) retired_.push_back(std::move(decoded));
  }
  std::erase(functions_, nullptr);
}

}  // namespace wavejit::simgpu
