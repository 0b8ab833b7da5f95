// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/vector/execute.h"

#include <xmmintrin.h>

#include <bit>
#include <map>
#include <memory>
#include <mutex>

#include "simgpu/machine/vector/kernel_lists.h"
#include "simgpu/machine/vector/vector.h"

namespace wavejit::simgpu::vector {
namespace {

bool is_packed16(Kind kind) { return kind == Kind::pk_f16 || kind == Kind::pk_b16 || kind == Kind::pk_bf16; }

// MODE bits 0..1 round float32, 2..3 float16 and float64; 4..5 and 6..7 say which denormals are kept.
std::uint32_t rounding_bits(Kind kind) {
  switch (kind) {
    case Kind::f32:
    case Kind::pk_f32:
      return 0x03;
    case Kind::f16:
    case Kind::pk_f16:
    case Kind::f64:
      return 0x0c;
    default:
      return 0;
  }
}
std::uint32_t denormal_bits(Kind kind) {
  switch (kind) {
    case Kind::f32:
    case Kind::pk_f32:
      return 0x30;
    case Kind::f16:
    case Kind::pk_f16:
    case Kind::f64:
      return 0xc0;
    case Kind::mixed:
      return 0xf0;
    default:
      return 0;
  }
}

// As broadcast_constant, for 64-bit operands: 64 low words, then 64 high words.
const std::uint32_t* broadcast_pair(std::uint32_t low, std::uint32_t high) {
  static std::mutex mutex;
  static std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<LaneBlock>> pool;
  const std::scoped_lock lock(mutex);
  auto& entry = pool[{low, high}];
  if (entry == nullptr) {
    entry = std::make_unique<LaneBlock>();
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      entry->words[lane] = low;
      entry->words[lane + lane_places] = high;
    }
  }
  return entry->words;
}

void rewrite_constant(Operand& operand, Kind kind) {
  switch (kind) {
    case Kind::f16:
    case Kind::b16:
    case Kind::pk_f16:
    case Kind::pk_b16:
      operand.lanes = broadcast_constant(operand.constant16());
      break;
    case Kind::bf16:
    case Kind::pk_bf16:
      operand.lanes = broadcast_constant(operand.constant_bf16());
      break;
    case Kind::f64:
    case Kind::b64:
    case Kind::i64: {
      const std::uint64_t bits = kind == Kind::f64 ? operand.constant_f64() : operand.constant_b64(kind == Kind::i64);
      operand.lanes = broadcast_pair(static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32));
      break;
    }
    // The constant is the low half; op_sel_hi:0 makes it both (LLVM's code for a splat 1.0 and for <1.0, 0.0>).
    case Kind::pk_f32:
      operand.lanes = broadcast_pair(operand.bits, 0);
      break;
    default:
      operand.lanes = broadcast_constant(operand.bits);
      break;
  }
}

struct ScalarBlocks {
  LaneBlock block[3];
};

// An unmodified source: the registers themselves, or copies of a scalar.
const std::uint32_t* plain_source(const Wave& wave, const Operand& operand, Kind kind, LaneBlock& block) {
  if (operand.is_vector()) return wave.vgpr[operand.index];
  if (operand.lanes != nullptr) return operand.lanes;
  std::uint64_t value = 0;
  const bool pair = dwords_of(kind) == 2;
  if (pair) {
    value = wave.scalar64(operand);
  } else {
    value = wave.scalar(operand);
  }
  const auto low = static_cast<std::uint32_t>(value);
  for (unsigned lane = 0; lane < lane_places; ++lane) block.words[lane] = low;
  if (pair) {
    const auto high = static_cast<std::uint32_t>(value >> 32);
    for (unsigned lane = lane_places; lane < 2 * lane_places; ++lane) block.words[lane] = high;
  }
  return block.words;
}

void write_masks(Wave& wave, const Instruction& instruction, const Bound& bound, std::uint64_t exec,
                 std::uint64_t mask) {
  if ((bound.flags & flag_mask_result) != 0) {
    // RDNA4's v_cmpx names no destination: it writes EXEC alone.
    if (instruction.destination_count != 0) wave.set_mask(instruction.destination[0], mask & exec);
    if ((bound.flags & flag_writes_exec) != 0) wave.set_exec(mask & exec);
  } else {
    wave.set_mask(instruction.destination[1], mask & exec);
  }
}

std::uint64_t mask_source(const Wave& wave, const Instruction& instruction, const Bound& bound) {
  if ((bound.flags & flag_implicit_vcc) != 0) return wave.vcc();
  return wave.mask(instruction.source[bound.operation->source_count - 1u]);
}

void fill_call(Call& call, const Wave& wave, const Instruction& instruction) {
  call.mode = wave.mode;
  call.transcendentals_key = wave.transcendentals_key;
  call.op_sel = instruction.op_sel;
  call.truth_table = instruction.truth_table;
  call.byte_select = instruction.byte_select;
  call.negations = instruction.neg_lo;
}

void execute_general(Wave& wave, const Instruction& instruction);

// No modifiers: kernels read registers directly and, with all lanes active, write them directly.
void execute_plain(Wave& wave, const Instruction& instruction) {
  const auto& bound = *std::bit_cast<const Bound*>(instruction.payload);
  if ((wave.mode & bound.mode_mask) != bound.mode_value) return execute_general(wave, instruction);
  const Operation& operation = *bound.operation;
  Call call;
  fill_call(call, wave, instruction);
  ScalarBlocks scalars;
  for (unsigned i = 0; i < operation.source_count; ++i) {
    const Kind kind = operation.source[i];
    if (kind == Kind::mask) {
      call.mask_in = mask_source(wave, instruction, bound);
    } else if (i < instruction.source_count) {
      call.source[i] = plain_source(wave, instruction.source[i], kind, scalars.block[i < 3 ? i : 2]);
    } else {
      call.source[i] = wave.vgpr[instruction.destination[0].index];
    }
  }
  const std::uint64_t exec = wave.exec();
  if ((bound.flags & flag_mask_result) != 0) {
    bound.kernel(call);
    write_masks(wave, instruction, bound, exec, call.mask_out);
    return;
  }
  std::uint32_t* destination = wave.vgpr[instruction.destination[0].index];
  if (exec == wave.all_lanes) {
    call.result = destination;
    bound.kernel(call);
  } else {
    alignas(64) std::uint32_t result[4 * lane_places];
    call.result = result;
    bound.kernel(call);
    blend(destination, result, exec, dwords_of(operation.result));
  }
  if (instruction.destination_count == 2) write_masks(wave, instruction, bound, exec, call.mask_out);
}

// Wide conversions: register blocks of many dwords, no modifiers.
void execute_wide(Wave& wave, const Instruction& instruction) {
  const auto& bound = *std::bit_cast<const Bound*>(instruction.payload);
  const Operation& operation = *bound.operation;
  Call call;
  fill_call(call, wave, instruction);
  ScalarBlocks scalars;
  for (unsigned i = 0; i < operation.source_count; ++i) {
    call.source[i] = plain_source(wave, instruction.source[i], operation.source[i], scalars.block[i]);
  }
  const unsigned dwords = instruction.destination[0].dwords;
  const auto result = std::make_unique<std::uint32_t[]>(32 * lane_places);
  call.result = result.get();
  bound.kernel(call);
  blend(wave.vgpr[instruction.destination[0].index], result.get(), wave.exec(), dwords);
}

// Runs a kernel under another rounding mode of the host. MODE counts nearest, up, down, zero; MXCSR nearest, down, up,
// zero.
void run_rounded(Kernel kernel, Call& call, unsigned mode) {
  constexpr unsigned host_modes[4] = {_MM_ROUND_NEAREST, _MM_ROUND_UP, _MM_ROUND_DOWN, _MM_ROUND_TOWARD_ZERO};
  const unsigned saved = _mm_getcsr();
  _mm_setcsr((saved & ~_MM_ROUND_MASK) | host_modes[mode]);
  kernel(call);
  _mm_setcsr(saved);
}

void execute_general(Wave& wave, const Instruction& instruction) {
  const auto& bound = *std::bit_cast<const Bound*>(instruction.payload);
  const Operation& operation = *bound.operation;
  Call call;
  fill_call(call, wave, instruction);
  LaneBlock blocks[4];
  std::uint64_t unwritten = 0;
  for (unsigned i = 0; i < operation.source_count; ++i) {
    if (operation.source[i] == Kind::mask) {
      call.mask_in = mask_source(wave, instruction, bound);
      continue;
    }
    const Operand& operand = i < instruction.source_count ? instruction.source[i] : instruction.destination[0];
    if (dwords_of(operation.source[i]) > 2) {
      call.source[i] = plain_source(wave, operand, operation.source[i], blocks[i]);
      continue;
    }
    fetch_modified(wave, instruction, operation, i, operand, blocks[i], unwritten);
    call.source[i] = blocks[i].words;
  }
  alignas(64) std::uint32_t result[4 * lane_places];
  call.result = result;
  const std::uint32_t rounding = rounding_bits(operation.result);
  unsigned mode = 0;
  if ((operation.flags & (flag_own_rounding | flag_moves_bits)) == 0) {
    mode = rounding == 0x03 ? wave.round_f32() : (rounding == 0x0c ? wave.round_f16_f64() : 0);
  }
  call.rounding = rounding == 0x0c ? static_cast<std::uint8_t>(mode) : 0;
  if (mode == 0) {
    bound.kernel(call);
  } else {
    run_rounded(bound.kernel, call, mode);
  }
  const std::uint64_t exec = wave.exec();
  if ((bound.flags & flag_mask_result) != 0) {
    write_masks(wave, instruction, bound, exec, call.mask_out);
    return;
  }
  finish_result(wave, instruction, operation, result);
  std::uint32_t* destination = wave.vgpr[instruction.destination[0].index];
  merge_partial(instruction, operation, bound.flags, destination, result);
  blend(destination, result, exec & ~unwritten, dwords_of(operation.result));
  if (instruction.destination_count == 2) write_masks(wave, instruction, bound, exec, call.mask_out);
}

}  // namespace

void execute_on_scalars(Wave& wave, const Instruction& instruction) {
  const auto& bound = *std::bit_cast<const Bound*>(instruction.payload);
  const Operation& operation = *bound.operation;
  Call call;
  fill_call(call, wave, instruction);
  LaneBlock block;
  std::uint64_t unwritten = 0;
  fetch_modified(wave, instruction, operation, 0, instruction.source[0], block, unwritten);
  call.source[0] = block.words;
  alignas(64) std::uint32_t result[4 * lane_places];
  call.result = result;
  bound.kernel(call);
  finish_result(wave, instruction, operation, result);
  wave.set_scalar(instruction.destination[0], result[0]);
}

namespace {

bool is_plain(const Instruction& instruction, const Bound& bound) {
  const Operation& operation = *bound.operation;
  if (instruction.encoding == Encoding::dpp || instruction.encoding == Encoding::sdwa) return false;
  if (instruction.clamp && bound.kernel != operation.saturating) return false;
  if (instruction.output_modifier != OutputModifier::none) return false;
  if ((bound.flags & flag_keeps_high_half) != 0) return false;
  const bool own_op_sel = (bound.flags & flag_kernel_op_sel) != 0;
  if (!own_op_sel && instruction.op_sel != 0) return false;
  for (unsigned i = 0; i < operation.source_count; ++i) {
    const Kind kind = operation.source[i];
    const unsigned bit = 1u << i;
    if (kind == Kind::mixed && (instruction.op_sel_hi & bit) != 0) return false;
    if ((is_packed16(kind) || kind == Kind::pk_f32) && !own_op_sel &&
        (((instruction.op_sel_hi & bit) == 0) || ((instruction.neg_lo | instruction.neg_hi) & bit) != 0)) {
      // Accumulators that are not written out have no modifiers.
      if (i < instruction.source_count) return false;
    }
    if (((instruction.neg_lo | instruction.neg_hi) & bit) != 0 && kind != Kind::raw) return false;
    if (i >= instruction.source_count) continue;
    const Operand& operand = instruction.source[i];
    if (operand.negate || operand.absolute || operand.sign_extend || operand.select != SubDword::dword) return false;
  }
  return true;
}

}  // namespace

void (*const blend)(std::uint32_t*, const std::uint32_t*, std::uint64_t,
                    unsigned) = for_this_host(&x86_64_v2::blend_lanes, &x86_64_v3::blend_lanes,
                                              &x86_64_v4::blend_lanes);

Bound bind(const Operation& operation, unsigned extra_flags, bool saturating) {
  Bound bound{.operation = &operation,
              .kernel = saturating ? operation.saturating : operation.kernel,
              .flags = operation.flags | extra_flags};
  if ((operation.flags & flag_moves_bits) == 0) {
    bound.mode_mask |= denormal_bits(operation.result);
    for (unsigned i = 0; i < operation.source_count; ++i) bound.mode_mask |= denormal_bits(operation.source[i]);
    bound.mode_value = bound.mode_mask;
    if ((operation.flags & flag_own_rounding) == 0) bound.mode_mask |= rounding_bits(operation.result);
  }
  return bound;
}

Handler choose_handler(Instruction& instruction, const Bound& bound) {
  const Operation& operation = *bound.operation;
  const bool implicit = (bound.flags & (flag_accumulates | flag_implicit_vcc)) != 0;
  const unsigned expected = operation.source_count - (implicit ? 1u : 0u);
  if (instruction.source_count != expected) return nullptr;
  bool wide = operation.result == Kind::wide;
  for (unsigned i = 0; i < instruction.source_count; ++i) {
    const Kind kind = operation.source[i];
    wide = wide || kind == Kind::wide;
    if (!instruction.source[i].is_constant() || kind == Kind::mask) continue;
    // v_fma_mix: an inline constant that is read as float16 is one, in the low half (LLVM's code for fpext(a) + b).
    const bool half = kind == Kind::mixed && (instruction.op_sel_hi & (1u << i)) != 0;
    rewrite_constant(instruction.source[i], half ? Kind::f16 : kind);
  }
  if (wide) return &execute_wide;
  return is_plain(instruction, bound) ? &execute_plain : &execute_general;
}

}  // namespace wavejit::simgpu::vector
