// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SMEM: loads of 1 to 16 dwords into scalar registers. Semantics: CDNA3 ISA, chapter 7 and 12.6.
#include <algorithm>
#include <format>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/access.h"
#include "simgpu/machine/memory/device_memory.h"
#include "simgpu/machine/memory/rooms.h"
#include "simgpu/machine/memory/scalar_address.h"

namespace wavejit::simgpu {
namespace {

template <unsigned dwords>
void load(Wave& wave, const Instruction& instruction) {
  const std::uint64_t address = scalar_address(wave, instruction);
  const std::uint8_t* from = resolve(wave, instruction, address, dwords * 4, false, -1);
  if (from == nullptr) return;
  load_words<dwords>(&wave.sgpr[instruction.destination[0].index], from);
}

// Out of range dwords read as zero; the range is NUM_RECORDS bytes, times the stride when there is one.
template <unsigned dwords>
void buffer_load(Wave& wave, const Instruction& instruction) {
  const std::uint32_t* descriptor = &wave.sgpr[instruction.source[0].index];
  const std::uint64_t base = descriptor[0] | (std::uint64_t{descriptor[1] & 0xffff} << 32);
  const std::uint32_t stride = (descriptor[1] >> 16) & 0x3fff;
  const std::uint64_t range = std::uint64_t{descriptor[2]} * std::max(stride, 1u);
  const auto offset = static_cast<std::uint64_t>(scalar_offset(wave, instruction)) & ~std::uint64_t{3};
  for (unsigned i = 0; i < dwords; ++i) {
    const std::uint64_t at = offset + (4 * i);
    std::uint32_t value = 0;
    if (at + 4 <= range) {
      const std::uint8_t* from = resolve(wave, instruction, base + at, 4, false, -1);
      if (from == nullptr) return;
      value = load_device<std::uint32_t>(from);
    }
    wave.sgpr[instruction.destination[0].index + i] = value;
  }
}

}  // namespace

void register_scalar_memory(Registry& registry) {
  const auto add = [&](std::string_view name, Handler handler, Space space, unsigned dwords) {
    registry.add(name, handler,
                 {.instruction_class = InstructionClass::memory,
                  .kind = IssueKind::scalar_load,
                  .space = space,
                  .loads = true,
                  .counts_local = true,
                  .bytes = static_cast<std::uint8_t>(4 * dwords)});
  };
  add("s_load_dword", load<1>, Space::scalar, 1);
  add("s_load_dwordx2", load<2>, Space::scalar, 2);
  add("s_load_dwordx4", load<4>, Space::scalar, 4);
  add("s_load_dwordx8", load<8>, Space::scalar, 8);
  add("s_load_dwordx16", load<16>, Space::scalar, 16);
  add("s_buffer_load_dword", buffer_load<1>, Space::scalar_buffer, 1);
  add("s_buffer_load_dwordx2", buffer_load<2>, Space::scalar_buffer, 2);
  add("s_buffer_load_dwordx4", buffer_load<4>, Space::scalar_buffer, 4);
  add("s_buffer_load_dwordx8", buffer_load<8>, Space::scalar_buffer, 8);
  add("s_buffer_load_dwordx16", buffer_load<16>, Space::scalar_buffer, 16);
}

}  // namespace wavejit::simgpu
