// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One machine instruction, decoded once per address and then executed by any number of waves. Handlers see nothing of
// LLVM: decode/*.cpp turns the disassembler's text into this form.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "simgpu/machine/instruction/record.h"

namespace wavejit::simgpu {

struct Wave;
struct Instruction;
struct Function;

// Executes one instruction for one wave. `wave.next` already names the following instruction.
using Handler = void (*)(Wave&, const Instruction&);

// Vector registers are numbered 0..255 for v0..v255 and 256..511 for a0..a255: one file, as `Wave::vgpr`.
inline constexpr std::uint16_t accumulation_base = 256;

// Scalar registers are numbered as the ISA encodes them (CDNA3 ISA, "Scalar ALU operands"): pairs such as VCC and EXEC
// are ordinary neighbours in `Wave::sgpr`.
enum ScalarRegister : std::uint16_t {
  sgpr_flat_scratch = 102,
  sgpr_xnack_mask = 104,
  sgpr_vcc = 106,
  sgpr_ttmp0 = 108,
  sgpr_m0 = 124,
  sgpr_exec = 126,
  sgpr_count = 128,
  // Read-only sources outside the file; `Wave::scalar` answers for them.
  source_shared_base = 235,
  source_shared_limit = 236,
  source_private_base = 237,
  source_private_limit = 238,
  source_vccz = 251,
  source_execz = 252,
  source_scc = 253,
  source_null = 254,
};

enum class OperandKind : std::uint8_t {
  none,            // absent, or printed as `off`
  vector,          // `index` in the vector file, `dwords` registers
  scalar,          // `index` in the scalar file (or a read-only source), `dwords` registers
  inline_integer,  // −16..64: `bits` is the sign-extended value
  inline_float,    // ±0.5, ±1, ±2, ±4, 1/(2π): `bits` is the float32 value
  literal,         // `bits` is the dword that follows the instruction (or an immediate field)
};

enum class SubDword : std::uint8_t { byte0, byte1, byte2, byte3, word0, word1, dword };
enum class UnusedBits : std::uint8_t { pad, sign_extend, preserve };

struct Operand {
  // Constants only: 64 copies of `bits`, shared by all instructions (never freed). Null for registers.
  const std::uint32_t* lanes = nullptr;
  std::uint32_t bits = 0;
  std::uint16_t index = 0;
  OperandKind kind = OperandKind::none;
  std::uint8_t dwords = 0;
  bool negate = false;       // -x
  bool absolute = false;     // |x|
  bool sign_extend = false;  // SDWA sext(x)
  SubDword select = SubDword::dword;

  bool is_vector() const { return kind == OperandKind::vector; }
  bool is_scalar() const { return kind == OperandKind::scalar; }
  bool is_constant() const { return kind >= OperandKind::inline_integer; }
  bool is_present() const { return kind != OperandKind::none; }
  // The constant as a 16-bit operand reads it (inline floats are float16 there).
  std::uint32_t constant16() const;
  // The constant as a bfloat16 operand reads it.
  std::uint32_t constant_bf16() const;
  // The constant as a float64 operand reads it: a literal is the upper half.
  std::uint64_t constant_f64() const;
  // The constant as a 64-bit integer operand reads it: inline integers sign-extend, inline floats are float64, a
  // literal is zero-extended, or sign-extended where the mnemonic says i64.
  std::uint64_t constant_b64(bool literal_is_signed = false) const;
};

enum class Encoding : std::uint8_t { plain, e32, e64, dpp, sdwa };

// DPP_CTRL values (CDNA3 ISA, "DPP"): quad_perm is 0x00..0xff, the others carry their count in the low bits.
enum DppControl : std::uint16_t {
  dpp_quad_perm = 0x000,
  dpp_row_shl = 0x100,
  dpp_row_shr = 0x110,
  dpp_row_ror = 0x120,
  dpp_wave_shl = 0x130,
  dpp_wave_rol = 0x134,
  dpp_wave_shr = 0x138,
  dpp_wave_ror = 0x13c,
  dpp_row_mirror = 0x140,
  dpp_row_half_mirror = 0x141,
  dpp_row_bcast15 = 0x142,
  dpp_row_bcast31 = 0x143,
  dpp_row_newbcast = 0x150,  // row_share of RDNA4
  dpp_row_xmask = 0x160,     // RDNA4
  dpp_eight = 0x170,         // dpp8 of RDNA4; `immediate` has the lanes
};

enum class OutputModifier : std::uint8_t { none, multiply2, multiply4, divide2 };

// The record of instructions that the registry does not know.
inline constexpr Record unknown_record{
    .instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar, .ends_block = true, .writes_scc = true};

struct Instruction {
  Handler execute = nullptr;

  // Operands in the order in which the assembler prints them, destinations first. A destination that is also read
  // (v_fmac, DPP's old value, v_swap) is listed once. The carry-out and carry-in masks of v_addc_co and the mask that a
  // compare writes are ordinary scalar operands in every encoding.
  std::array<Operand, 2> destination;
  std::array<Operand, 5> source;
  std::uint8_t destination_count = 0;
  std::uint8_t source_count = 0;

  Encoding encoding = Encoding::plain;
  InstructionClass instruction_class = InstructionClass::scalar;

  // VOP3 and VOP3P. Bit i of a mask belongs to source i; bit 3 of op_sel is the destination's half.
  std::uint8_t op_sel = 0;
  std::uint8_t op_sel_hi = 7;  // default of packed instructions; 0 for the fma_mix family and v_mfma_scale
  std::uint8_t neg_lo = 0;
  std::uint8_t neg_hi = 0;
  bool clamp = false;
  OutputModifier output_modifier = OutputModifier::none;

  // MFMA
  std::uint8_t cbsz = 0;
  std::uint8_t abid = 0;
  std::uint8_t blgp = 0;

  // DPP
  std::uint16_t dpp_control = 0;
  std::uint8_t row_mask = 0xf;
  std::uint8_t bank_mask = 0xf;
  bool bound_ctrl = false;
  bool fetches_inactive = false;  // fi: lanes that are off give the value of their register

  // Which byte of a register an 8-bit float is (RDNA4)
  std::uint8_t byte_select = 0;

  // SDWA destination
  SubDword destination_select = SubDword::dword;
  UnusedBits destination_unused = UnusedBits::pad;

  // VOP3 bit_op, v_bitop3 (gfx950): the truth table
  std::uint8_t truth_table = 0;

  // Memory
  bool offen = false;
  bool idxen = false;
  bool sc0 = false;
  bool sc1 = false;
  bool nt = false;
  bool lds = false;
  bool gds = false;
  std::int32_t offset = 0;   // signed for flat/global/scratch; offset0 of two-address LDS instructions
  std::int32_t offset1 = 0;  // second offset of two-address LDS instructions
  std::uint32_t format = 0;  // MTBUF data and number format, as encoded

  // Immediate operands that print as words: branch distance, s_waitcnt, hwreg, sendmsg, ds_swizzle pattern, s_nop.
  std::uint32_t immediate = 0;

  // For selectors (see Registry::add_select): what the chosen handler needs and would otherwise decode again.
  std::uint64_t payload = 0;

  // The handler that a wrapper calls: wrappers count matrix instructions, and move the registers of vector instructions
  // under relative addressing.
  Handler inner = nullptr;
  // Branches: the instruction that runs when taken; null if it is not in this function.
  const Instruction* target = nullptr;
  const Function* function = nullptr;
  // What is known from the mnemonic, in the registry of the device's target.
  const Record* record = &unknown_record;

  std::uint64_t address = 0;  // device address of the first byte
  std::uint32_t offset_in_function = 0;
  std::uint16_t id = 0;       // of the mnemonic, in the registry of the device's target
  std::uint8_t bytes = 0;     // size of the encoding
  std::string_view mnemonic;  // without encoding suffix: "v_add_f32"
};

// 64 copies of `bits`, one array per distinct value, alive until the process ends. Thread-safe; not for the hot path.
const std::uint32_t* broadcast_constant(std::uint32_t bits);

}  // namespace wavejit::simgpu
