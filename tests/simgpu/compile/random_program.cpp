// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/simgpu/compile/random_program.h"

#include <array>
#include <bit>
#include <format>
#include <span>
#include <string_view>

#include "tests/simgpu/compile/program_shapes.h"

namespace wavejit::simgpu::test {
namespace {

constexpr unsigned registers = 24;

constexpr std::array shapes = {
    Shape{"v_mov_b32_e32", "vx"},
    Shape{"v_mov_b32_e32", "vs"},
    Shape{"v_mov_b64_e32", "VV"},
    Shape{"v_not_b32_e32", "vv"},
    Shape{"v_and_b32_e32", "vxv"},
    Shape{"v_or_b32_e64", "vvs"},
    Shape{"v_xor_b32_e32", "vxv"},
    Shape{"v_xnor_b32_e32", "vvv"},
    Shape{"v_and_or_b32", "vvxv"},
    Shape{"v_or3_b32", "vvvv"},
    Shape{"v_xad_u32", "vvvv"},
    Shape{"v_bfi_b32", "vvvv"},
    Shape{"v_lshlrev_b32_e32", "vxv"},
    Shape{"v_lshrrev_b32_e32", "vvv"},
    Shape{"v_ashrrev_i32_e32", "vxv"},
    Shape{"v_lshl_or_b32", "vvxv"},
    Shape{"v_lshl_add_u32", "vvvv"},
    Shape{"v_add_lshl_u32", "vvvx"},
    Shape{"v_bfe_u32", "vvxx"},
    Shape{"v_perm_b32", "vvvs"},
    Shape{"v_perm_b32", "vvvv"},
    Shape{"v_add_u32_e32", "vxv"},
    Shape{"v_sub_u32_e32", "vvv"},
    Shape{"v_subrev_u32_e32", "vxv"},
    Shape{"v_add3_u32", "vvvx"},
    Shape{"v_mul_lo_u32", "vvv"},
    Shape{"v_mul_u32_u24_e32", "vxv"},
    Shape{"v_mad_u32_u24", "vvxv"},
    Shape{"v_min_u32_e32", "vvv"},
    Shape{"v_max_u32_e32", "vxv"},
    Shape{"v_min_i32_e32", "vxv"},
    Shape{"v_max_i32_e32", "vvv"},
    Shape{"v_add_f32_e32", "vvv"},
    Shape{"v_add_f32_e64", "vff"},
    Shape{"v_sub_f32_e32", "vvv"},
    Shape{"v_subrev_f32_e32", "vvv"},
    Shape{"v_mul_f32_e32", "vvv"},
    Shape{"v_mul_f32_e64", "vff"},
    Shape{"v_mul_f32_e64", "vfs"},
    Shape{"v_fma_f32", "vfff"},
    Shape{"v_fma_f32", "vvsv"},
    Shape{"v_fmac_f32_e32", "vvv"},
    Shape{"v_min_f32_e32", "vvv"},
    Shape{"v_max_f32_e32", "vvv"},
    Shape{"v_max_f32_e64", "vff"},
    Shape{"v_max3_f32", "vfff"},
    Shape{"v_min3_f32", "vvvv"},
    Shape{"v_exp_f32_e32", "vv"},
    Shape{"v_exp_f32_e64", "vf"},
    Shape{"v_rcp_f32_e32", "vv"},
    Shape{"v_pk_fma_f32", "VVVV"},
    Shape{"v_pk_mul_f32", "VVV"},
    Shape{"v_pk_add_f32", "VVV"},
    Shape{"v_pk_mul_f32", "VVV op_sel:[0,1] op_sel_hi:[1,0]"},
    Shape{"v_pk_fma_f32", "VVVS op_sel_hi:[1,1,0] neg_lo:[0,0,1] neg_hi:[0,0,1]"},
    Shape{"v_cvt_f16_f32_e32", "vv"},
    Shape{"v_cvt_f32_f16_e32", "vv"},
    Shape{"v_cvt_f32_i32_e32", "vv"},
    Shape{"v_cvt_f32_u32_e32", "vv"},
    Shape{"v_cvt_i32_f32_e32", "vv"},
    Shape{"v_cvt_u32_f32_e32", "vv"},
    Shape{"v_pack_b32_f16", "vvv"},
    Shape{"v_pack_b32_f16", "vvv op_sel:[1,0,0]"},
    Shape{"v_accvgpr_write_b32", "av"},
    Shape{"v_accvgpr_read_b32", "va"},
    Shape{"v_cndmask_b32_e32", "vvv, vcc"},
    Shape{"v_cndmask_b32_e64", "vvvm"},
    Shape{"v_cmp_lt_f32_e32", "cvv"},
    Shape{"v_cmp_nge_f32_e64", "mvf"},
    Shape{"v_cmp_u_f32_e64", "mvv"},
    Shape{"v_cmp_lg_f32_e64", "mvv"},
    Shape{"v_cmp_eq_u32_e32", "cvv"},
    Shape{"v_cmp_gt_i32_e64", "mvs"},
    Shape{"v_cmp_le_u32_e64", "mvv"},
    Shape{"v_cvt_pk_bf16_f32", "vvv", Only::gfx950},
    Shape{"v_cvt_pk_f16_f32", "vvv", Only::gfx950},
    Shape{"v_bitop3_b32", "vvvv bitop3:0xd8", Only::gfx950},
    // Matrix instructions wait for the end of a run where that makes no difference.
    Shape{"v_mfma_f32_16x16x16_f16", "QVVQ"},
    Shape{"v_mfma_f32_16x16x16_f16", "QVVQ"},
    Shape{"v_mfma_f32_4x4x4_16b_f16", "QVV, 0"},
    Shape{"v_mfma_i32_16x16x32_i8", "QVVQ"},
    Shape{"v_mfma_i32_4x4x4_16b_i8", "Qvv, 0"},
    Shape{"v_mfma_f32_16x16x32_fp8_fp8", "QVVQ"},
    Shape{"v_mfma_f32_16x16x32_bf8_fp8", "QVVQ"},
    Shape{"v_mfma_i32_16x16x64_i8", "QQQQ", Only::gfx950},
    Shape{"v_mfma_f32_16x16x128_f8f6f4", "QOOQ", Only::gfx950},
    Shape{"v_mfma_f32_16x16x128_f8f6f4", "QOQQ cbsz:1 blgp:4", Only::gfx950},
    Shape{"v_mfma_scale_f32_16x16x128_f8f6f4", "QOOQvv op_sel:[0,0,0] op_sel_hi:[0,0,0]", Only::gfx950},
    Shape{"v_mfma_scale_f32_16x16x128_f8f6f4", "QQQQvv op_sel:[1,0,0] op_sel_hi:[0,1,0] cbsz:4 blgp:4", Only::gfx950},
    // Numbers of 8 bits and fewer.
    Shape{"v_cvt_f32_fp8_e32", "vv"},
    Shape{"v_cvt_pk_f32_bf8_e32", "Vv"},
    Shape{"v_cvt_pk_fp8_f32", "vvv"},
    Shape{"v_cvt_pk_bf8_f32", "vvv op_sel:[0,0,1]"},
    Shape{"v_cvt_sr_fp8_f32", "vvv op_sel:[0,0,1,0]"},
    Shape{"v_cvt_scalef32_pk_bf16_fp8", "vvv", Only::gfx950},
    Shape{"v_cvt_scalef32_pk_f16_bf8", "vvv op_sel:[1,0,0]", Only::gfx950},
    Shape{"v_cvt_scalef32_pk_f32_fp4", "Vvv op_sel:[0,1,0]", Only::gfx950},
    Shape{"v_cvt_scalef32_pk_fp8_f32", "vvvv op_sel:[0,0,0,1]", Only::gfx950},
    Shape{"v_cvt_scalef32_sr_bf8_f16", "vvvv op_sel:[0,0,0,1]", Only::gfx950},
    Shape{"v_cvt_f32_i32_sdwa", "vv src0_sel:BYTE_2"},
    // Not translated: what runs in between.
    Shape{"v_sqrt_f32_e32", "vv"},
    Shape{"v_readfirstlane_b32", "sv"},
    Shape{"v_mov_b32_dpp", "vv row_shr:1 row_mask:0xf bank_mask:0xf"},
    Shape{"v_add_f32_e64", "vff clamp"},
    Shape{"v_med3_f32", "vvvv"},
    Shape{"s_mov_b32", "sx"},
    Shape{"s_mov_b64", "SS"},
    Shape{"s_movk_i32", "s#"},
    Shape{"s_not_b32", "ss"},
    Shape{"s_and_b32", "sss"},
    Shape{"s_and_b64", "SSS"},
    Shape{"s_or_b64", "SSS"},
    Shape{"s_xor_b32", "ssx"},
    Shape{"s_andn2_b64", "SSS"},
    Shape{"s_lshl_b32", "ssx"},
    Shape{"s_lshl_b64", "SSs"},
    Shape{"s_lshr_b64", "SSx"},
    Shape{"s_ashr_i32", "sss"},
    Shape{"s_ashr_i64", "SSx"},
    Shape{"s_add_u32", "sss"},
    Shape{"s_sub_u32", "ssx"},
    Shape{"s_add_i32", "sss"},
    Shape{"s_sub_i32", "sss"},
    Shape{"s_addc_u32", "sss"},
    Shape{"s_subb_u32", "sss"},
    Shape{"s_addk_i32", "s#"},
    Shape{"s_mulk_i32", "s#"},
    Shape{"s_mul_i32", "sss"},
    Shape{"s_mul_hi_u32", "sss"},
    Shape{"s_mul_hi_i32", "sss"},
    Shape{"s_lshl2_add_u32", "sss"},
    Shape{"s_min_i32", "sss"},
    Shape{"s_max_u32", "ssx"},
    Shape{"s_cselect_b32", "sss"},
    Shape{"s_cselect_b64", "SSS"},
    Shape{"s_cmp_lt_i32", "ss"},
    Shape{"s_cmp_ge_u32", "sx"},
    Shape{"s_cmp_lg_u64", "SS"},
    Shape{"s_cmpk_gt_i32", "s#"},
    Shape{"s_cmpk_le_u32", "s#"},
    Shape{"s_ff1_i32_b32", "ss"},
    Shape{"s_nop", "1"},
    Shape{"s_setprio", "2"},
};

constexpr std::array number_shapes = {
    Shape{"v_mov_b32_e32", "vv"},
    Shape{"v_mov_b64_e32", "VV"},
    Shape{"v_add_f32_e32", "vvv"},
    Shape{"v_add_f32_e64", "vff"},
    Shape{"v_sub_f32_e64", "vff"},
    Shape{"v_subrev_f32_e32", "vvv"},
    Shape{"v_mul_f32_e64", "vff"},
    Shape{"v_mul_f32_e32", "vsv"},
    Shape{"v_fma_f32", "vfff"},
    Shape{"v_fmac_f32_e32", "vvv"},
    Shape{"v_min_f32_e64", "vff"},
    Shape{"v_max_f32_e64", "vff"},
    Shape{"v_max3_f32", "vfff"},
    Shape{"v_min3_f32", "vfff"},
    Shape{"v_exp_f32_e32", "vv"},
    Shape{"v_pk_fma_f32", "VVVV"},
    Shape{"v_pk_mul_f32", "VVS"},
    Shape{"v_pk_add_f32", "VVV"},
    Shape{"v_pk_mul_f32", "VVV op_sel:[0,1] op_sel_hi:[1,0]"},
    Shape{"v_pk_fma_f32", "VVVS op_sel_hi:[1,1,0] neg_lo:[0,0,1] neg_hi:[0,0,1]"},
    Shape{"v_cvt_f16_f32_e32", "vv"},
    Shape{"v_cndmask_b32_e32", "vvv, vcc"},
    Shape{"v_cndmask_b32_e64", "vvvm"},
    Shape{"v_cmp_lt_f32_e32", "cvv"},
    Shape{"v_cmp_nge_f32_e64", "mvf"},
    Shape{"v_cmp_eq_f32_e64", "mvv"},
    Shape{"v_cvt_pk_bf16_f32", "vvv", Only::gfx950},
    Shape{"v_cvt_pk_f16_f32", "vvv", Only::gfx950},
    Shape{"s_mov_b32", "sx"},
    Shape{"s_nop", "0"},
};

class Writer {
 public:
  Writer(std::mt19937_64& random, const Dialect& dialect) : random_(random), dialect_(dialect) {}

  std::string line(const Shape& shape) {
    if (shape.mnemonic == pair_shape) return pair();
    std::string text(shape.mnemonic);
    const char* separator = " ";
    for (std::size_t i = 0; i < shape.operands.size(); ++i) {
      const char letter = shape.operands[i];
      if (letter == ' ' || letter == ',') return text + std::string(shape.operands.substr(i));
      text += separator + operand(letter);
      separator = ", ";
    }
    return text;
  }
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

 private:
  std::string operand(char letter) {
    const unsigned even = below(registers / 2) * 2;
    switch (letter) {
      case 'v':
        return std::format("v{}", below(registers));
      case 'V':
        return std::format("v[{}:{}]", even, even + 1);
      case 'Q':
        return std::format("v[{}:{}]", even / 4 * 4, (even / 4 * 4) + 3);
      case 'O':
        return std::format("v[{}:{}]", even / 8 * 8, (even / 8 * 8) + 7);
      case 'h':
        return std::format("v{}.{}", below(registers), below(2) == 0 ? 'l' : 'h');
      case 'a':
        return std::format("a{}", below(registers));
      case 'x': {
        constexpr std::array<std::string_view, 8> constants = {"0", "1", "-1", "17", "1.0", "-0.5", "64", "4.0"};
        if (below(3) == 0) return std::string(constants[below(constants.size())]);
        return "";  // replaced below
      }
      case 's':
        return std::format("s{}", below(registers));
      case 'S':
        return std::format("s[{}:{}]", even, even + 1);
      case 'f': {
        const std::string name = std::format("v{}", below(registers));
        constexpr std::array<std::string_view, 4> forms = {"{}", "-{}", "|{}|", "-|{}|"};
        const std::string_view form = forms[below(forms.size())];
        const std::size_t at = form.find('{');
        return std::string(form.substr(0, at)) + name + std::string(form.substr(at + 2));
      }
      case 'm':
        if (below(2) == 0) return operand('c');
        return dialect_.lanes == 32 ? operand('s') : operand('S');
      case 'c':
        return dialect_.lanes == 32 ? "vcc_lo" : "vcc";
      case '#':
        return std::format("{:#x}", below(0x8000));
      default:
        return std::string(1, letter);
    }
  }
  // Two in one: results of different parity, sources of different banks.
  std::string pair() {
    constexpr std::array<std::string_view, 8> either = {"mov_b32",  "mul_f32",     "add_f32",     "sub_f32",
                                                        "fmac_f32", "max_num_f32", "min_num_f32", "cndmask_b32"};
    constexpr std::array<std::string_view, 3> second_only = {"add_nc_u32", "lshlrev_b32", "and_b32"};
    const unsigned parity = below(2);
    const unsigned bank[2] = {below(4), below(4)};
    const unsigned distance[2] = {below(3) + 1, below(3) + 1};
    std::string text;
    for (unsigned part = 0; part < 2; ++part) {
      const unsigned choice = below(part == 0 ? either.size() : either.size() + second_only.size());
      const std::string_view name = choice < either.size() ? either[choice] : second_only[choice - either.size()];
      const auto source = [&](unsigned i) {
        return (4 * below(registers / 4)) + ((bank[i] + (part * distance[i])) % 4);
      };
      text += std::format("{}v_dual_{} v{}, v{}", part == 0 ? "" : " :: ", name,
                          (2 * below(registers / 2)) + ((parity + part) % 2), source(0));
      if (name != "mov_b32") text += std::format(", v{}", source(1));
    }
    return text;
  }

  std::mt19937_64& random_;
  const Dialect& dialect_;
};

}  // namespace

std::string random_program(std::mt19937_64& random, unsigned count, const Dialect& dialect, Mixture mixture) {
  Writer writer(random, dialect);
  const std::span<const Shape> every = dialect.rdna4 ? rdna4_shapes() : std::span<const Shape>(shapes);
  const std::span<const Shape> numbers = dialect.rdna4 ? rdna4_number_shapes() : std::span<const Shape>(number_shapes);
  const std::span<const Shape> chosen = mixture == Mixture::numbers ? numbers : every;
  std::string text;
  for (unsigned i = 0; i < count;) {
    const Shape& shape = chosen[writer.below(static_cast<unsigned>(chosen.size()))];
    if (shape.only == Only::gfx950 && !dialect.gfx950) continue;
    if (shape.only == Only::lanes_32 && dialect.lanes != 32) continue;
    std::string line = writer.line(shape);
    // "x" that is no constant is a register of the kind that the instruction works on.
    const char kind = shape.mnemonic.starts_with("s_") ? 's' : 'v';
    for (std::size_t at = line.find(", ,"); at != std::string::npos; at = line.find(", ,")) {
      line.replace(at, 3, std::format(", {}{},", kind, writer.below(registers)));
    }
    if (line.ends_with(", ")) line += std::format("{}{}", kind, writer.below(registers));
    text += line + "\n";
    ++i;
  }
  return text;
}

void fill_with_hard_values(Wave& wave, std::mt19937_64& random, bool with_nan) {
  constexpr std::array<std::uint32_t, 14> hard = {0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x7f800000,
                                                  0xff800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0x00800000,
                                                  0x3f800001, 0x33800000, 0x42c80000, 0xc2fc0000};
  constexpr std::array<std::uint32_t, 4> nan = {0x7fc00000, 0xffc12345, 0x7f800001, 0xffa00000};
  const auto word = [&]() -> std::uint32_t {
    switch (random() % 4) {
      case 0:
        return hard[random() % hard.size()];
      case 1:
        return static_cast<std::uint32_t>(random());
      default:
        return std::bit_cast<std::uint32_t>((static_cast<float>(random() % 20001) - 10000.0F) * 0.001F);
    }
  };
  const bool nan_here = with_nan;
  for (unsigned i = 0; i < 2 * accumulation_base; ++i) {
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      std::uint32_t value = word();
      const bool is_nan = (value & 0x7fffffffU) > 0x7f800000U;
      if (is_nan && !nan_here) value = 0x40490fdb;
      if (nan_here && random() % 200 == 0) value = nan[random() % nan.size()];
      wave.vgpr[i][lane] = value;
    }
  }
  for (std::uint32_t& scalar : wave.sgpr)
    scalar = random() % 3 == 0 ? 0x07060302U & static_cast<std::uint32_t>(random()) : word();
  wave.scc = static_cast<std::uint32_t>(random() & 1);
}

void fill_with_numbers(Wave& wave, std::mt19937_64& random) {
  constexpr std::array<std::uint32_t, 6> hard = {0x00000000, 0x80000000, 0x00000001,
                                                 0x807fffff, 0x3f800001, 0x00800000};
  const auto word = [&]() -> std::uint32_t {
    if (random() % 4 == 0) return hard[random() % hard.size()];
    return std::bit_cast<std::uint32_t>((static_cast<float>(random() % 20001) - 10000.0F) * 0.0003F);
  };
  for (auto& row : wave.vgpr) {
    for (std::uint32_t& value : row) value = word();
  }
  for (std::uint32_t& scalar : wave.sgpr) scalar = word();
  wave.scc = static_cast<std::uint32_t>(random() & 1);
}

}  // namespace wavejit::simgpu::test
