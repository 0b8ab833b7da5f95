// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/instruction/instruction.h"

#include <array>
#include <bit>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "simgpu/machine/instruction/lane_places.h"

namespace wavejit::simgpu {
namespace {

// The nine inline floats in every width (CDNA3 ISA, "Scalar ALU operands", codes 240..248).
struct InlineFloat {
  std::uint32_t f32;
  std::uint16_t f16;
  std::uint16_t bf16;
  std::uint64_t f64;
};
constexpr std::array<InlineFloat, 9> inline_floats = {{
    {0x3f000000, 0x3800, 0x3f00, 0x3fe0000000000000},  // 0.5
    {0xbf000000, 0xb800, 0xbf00, 0xbfe0000000000000},
    {0x3f800000, 0x3c00, 0x3f80, 0x3ff0000000000000},  // 1
    {0xbf800000, 0xbc00, 0xbf80, 0xbff0000000000000},
    {0x40000000, 0x4000, 0x4000, 0x4000000000000000},  // 2
    {0xc0000000, 0xc000, 0xc000, 0xc000000000000000},
    {0x40800000, 0x4400, 0x4080, 0x4010000000000000},  // 4
    {0xc0800000, 0xc400, 0xc080, 0xc010000000000000},
    {0x3e22f983, 0x3118, 0x3e22, 0x3fc45f306dc9c882},  // 1/(2π)
}};

const InlineFloat* find_inline(const Operand& operand) {
  if (operand.kind != OperandKind::inline_float) return nullptr;
  for (const InlineFloat& entry : inline_floats) {
    if (entry.f32 == operand.bits) return &entry;
  }
  return nullptr;
}

}  // namespace

std::uint32_t Operand::constant16() const {
  const InlineFloat* entry = find_inline(*this);
  return entry != nullptr ? entry->f16 : bits;
}

std::uint32_t Operand::constant_bf16() const {
  const InlineFloat* entry = find_inline(*this);
  return entry != nullptr ? entry->bf16 : bits;
}

std::uint64_t Operand::constant_f64() const {
  if (const InlineFloat* entry = find_inline(*this)) return entry->f64;
  if (kind == OperandKind::literal) return static_cast<std::uint64_t>(bits) << 32;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(bits)));
}

std::uint64_t Operand::constant_b64(bool literal_is_signed) const {
  if (const InlineFloat* entry = find_inline(*this)) return entry->f64;
  if (kind == OperandKind::literal && !literal_is_signed) return bits;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(bits)));
}

const std::uint32_t* broadcast_constant(std::uint32_t bits) {
  struct alignas(64) Lanes {
    std::array<std::uint32_t, lane_places> values;
  };
  static std::mutex mutex;
  static std::unordered_map<std::uint32_t, std::unique_ptr<Lanes>> pool;
  const std::scoped_lock lock(mutex);
  auto& entry = pool[bits];
  if (entry == nullptr) {
    entry = std::make_unique<Lanes>();
    entry->values.fill(bits);
  }
  return entry->values.data();
}

}  // namespace wavejit::simgpu
