// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Offload bundles, compressed and not, at the end of mapped memory: HIP hands images over without a size.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "forge.h"
#include "simgpu/front_ends/hip/offload_bundle.h"
#include "simgpu/machine/allocations/memory.h"

namespace {

constexpr std::size_t room = 1U << 17U;

// Pages that can be read, and nothing mapped behind them. They lie where neither the kernel nor a sanitizer puts
// anything by itself: in a hole between other mappings, the next allocation would be behind them.
std::byte* mapped() {
  static std::byte* const memory = [] {
    void* const nowhere_near = wavejit::simgpu::host_pointer<void>(0x2000'0000'0000);
    void* all =
        ::mmap(nowhere_near, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    wavejit::fuzz::require(all == nowhere_near);
    return static_cast<std::byte*>(all);
  }();
  return memory;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wavejit::simgpu::hip_front;
  if (size > room) return 0;
  std::byte* image = mapped() + room - size;
  std::ranges::copy(std::as_bytes(std::span(data, size)), image);
  wavejit::fuzz::require(image_size(image) <= size);
  for (const char* target : {"gfx942:sramecc+:xnack-", "gfx950"}) {
    const auto chosen = select_code_object({image, size}, target);
    wavejit::fuzz::require(chosen || !chosen.error().text.empty());
  }
  return 0;
}
