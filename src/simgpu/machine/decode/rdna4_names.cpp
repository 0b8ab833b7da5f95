// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/rdna4_names.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

namespace wavejit::simgpu {
namespace {

struct Pair {
  std::string_view cdna;
  std::string_view rdna4;
};

constexpr Pair whole_names[] = {
    {"v_add_u32", "v_add_nc_u32"},
    {"v_sub_u32", "v_sub_nc_u32"},
    {"v_subrev_u32", "v_subrev_nc_u32"},
    {"v_add_i32", "v_add_nc_i32"},
    {"v_sub_i32", "v_sub_nc_i32"},
    {"v_add_u16", "v_add_nc_u16"},
    {"v_sub_u16", "v_sub_nc_u16"},
    {"v_add_i16", "v_add_nc_i16"},
    {"v_sub_i16", "v_sub_nc_i16"},
    {"v_addc_co_u32", "v_add_co_ci_u32"},
    {"v_subb_co_u32", "v_sub_co_ci_u32"},
    {"v_subbrev_co_u32", "v_subrev_co_ci_u32"},
    {"v_mad_u64_u32", "v_mad_co_u64_u32"},
    {"v_mad_i64_i32", "v_mad_co_i64_i32"},
    {"v_mul_legacy_f32", "v_mul_dx9_zero_f32"},
    {"v_ffbh_u32", "v_clz_i32_u32"},
    {"v_ffbl_b32", "v_ctz_i32_b32"},
    {"v_ffbh_i32", "v_cls_i32"},
    {"v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"},
    {"v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"},
    {"v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"},
    {"v_cvt_pknorm_i16_f32", "v_cvt_pk_norm_i16_f32"},
    {"v_cvt_pknorm_u16_f32", "v_cvt_pk_norm_u16_f32"},
    {"v_cvt_pknorm_i16_f16", "v_cvt_pk_norm_i16_f16"},
    {"v_cvt_pknorm_u16_f16", "v_cvt_pk_norm_u16_f16"},
    {"s_add_u32", "s_add_co_u32"},
    {"s_sub_u32", "s_sub_co_u32"},
    {"s_add_i32", "s_add_co_i32"},
    {"s_sub_i32", "s_sub_co_i32"},
    {"s_addc_u32", "s_add_co_ci_u32"},
    {"s_subb_u32", "s_sub_co_ci_u32"},
    {"s_addk_i32", "s_addk_co_i32"},
    {"s_andn2_b32", "s_and_not1_b32"},
    {"s_andn2_b64", "s_and_not1_b64"},
    {"s_orn2_b32", "s_or_not1_b32"},
    {"s_orn2_b64", "s_or_not1_b64"},
    {"s_ff1_i32_b32", "s_ctz_i32_b32"},
    {"s_ff1_i32_b64", "s_ctz_i32_b64"},
    {"s_flbit_i32_b32", "s_clz_i32_u32"},
    {"s_flbit_i32_b64", "s_clz_i32_u64"},
    {"s_flbit_i32", "s_cls_i32"},
    {"s_flbit_i32_i64", "s_cls_i32_i64"},
    {"s_andn2_saveexec_b64", "s_and_not1_saveexec_b64"},
    {"s_orn2_saveexec_b64", "s_or_not1_saveexec_b64"},
    {"s_andn1_saveexec_b64", "s_and_not0_saveexec_b64"},
    {"s_orn1_saveexec_b64", "s_or_not0_saveexec_b64"},
    {"s_andn1_wrexec_b64", "s_and_not0_wrexec_b64"},
    {"s_andn2_wrexec_b64", "s_and_not1_wrexec_b64"},
    {"ds_wrxchg_rtn_b32", "ds_storexchg_rtn_b32"},
    {"ds_wrxchg_rtn_b64", "ds_storexchg_rtn_b64"},
    {"ds_read_addtid_b32", "ds_load_addtid_b32"},
    {"ds_write_addtid_b32", "ds_store_addtid_b32"},
};

// Not there, or there under rules of its own.
constexpr std::string_view left_out[] = {
    "v_mac_f16",
    "v_madmk_f16",
    "v_madak_f16",
    "v_mad_f16",
    "v_mad_legacy_f16",
    "v_fma_legacy_f16",
    "v_mad_legacy_u16",
    "v_mad_legacy_i16",
    "v_div_fixup_legacy_f16",
    "v_min_f16",
    "v_max_f16",
    "v_min3_f16",
    "v_max3_f16",
    "v_med3_f16",
    "v_min_f32",
    "v_max_f32",
    "v_min3_f32",
    "v_max3_f32",
    "v_med3_f32",
    "v_min_f64",
    "v_max_f64",
    "v_pk_min_f16",
    "v_pk_max_f16",
    "v_minimum3_f32",
    "v_maximum3_f32",
    "v_pk_minimum3_f16",
    "v_pk_maximum3_f16",
    "v_mov_b64",
    "v_accvgpr_read_b32",
    "v_accvgpr_write_b32",
    "v_accvgpr_mov_b32",
    "v_lshl_add_u64",
    "v_bitop3_b32",
    "v_bitop3_b16",
    "v_prng_b32",
    "v_ashr_pk_i8_i32",
    "v_ashr_pk_u8_i32",
    "v_pk_fma_f32",
    "v_pk_mul_f32",
    "v_pk_add_f32",
    "v_pk_mov_b32",
    "v_exp_legacy_f32",
    "v_log_legacy_f32",
    "v_cvt_f32_bf16",
    "v_cvt_pk_f16_f32",
    "v_cvt_pk_bf16_f32",
    "v_cvt_sr_f16_f32",
    "v_cvt_sr_bf16_f32",
    "v_cvt_pkaccum_u8_f32",
    "v_permlane16_swap_b32",
    "v_permlane32_swap_b32",
    "v_clrexcp",
    "v_subrev_u16",
    "v_cvt_f32_fp8",
    "v_cvt_pk_f32_fp8",
    "v_cvt_pk_f32_bf8",
    "v_cvt_f32_bf8",
    "v_cvt_sr_fp8_f32",
    "v_cvt_sr_bf8_f32",
    "s_ff0_i32_b32",
    "s_ff0_i32_b64",
    "s_memtime",
    "s_memrealtime",
    "s_set_gpr_idx_on",
    "s_set_gpr_idx_off",
    "s_set_gpr_idx_idx",
    "s_set_gpr_idx_mode",
    "s_waitcnt",
    "s_barrier",
    "s_getreg_b32",
    "s_setreg_b32",
    "s_setreg_imm32_b32",
    "buffer_wbl2",
    "buffer_inv",
    "buffer_wbinvl1",
    "buffer_wbinvl1_vol",
    "s_dcache_wb",
    "s_dcache_inv_vol",
    "s_dcache_wb_vol",
};

constexpr Pair accesses[] = {
    {"load_ubyte", "load_u8"},
    {"load_sbyte", "load_i8"},
    {"load_ushort", "load_u16"},
    {"load_sshort", "load_i16"},
    {"load_dword", "load_b32"},
    {"load_dwordx2", "load_b64"},
    {"load_dwordx3", "load_b96"},
    {"load_dwordx4", "load_b128"},
    {"load_dwordx8", "load_b256"},
    {"load_dwordx16", "load_b512"},
    {"store_byte", "store_b8"},
    {"store_byte_d16_hi", "store_d16_hi_b8"},
    {"store_short", "store_b16"},
    {"store_short_d16_hi", "store_d16_hi_b16"},
    {"store_dword", "store_b32"},
    {"store_dwordx2", "store_b64"},
    {"store_dwordx3", "store_b96"},
    {"store_dwordx4", "store_b128"},
    {"atomic_swap", "atomic_swap_b32"},
    {"atomic_cmpswap", "atomic_cmpswap_b32"},
    {"atomic_add", "atomic_add_u32"},
    {"atomic_sub", "atomic_sub_u32"},
    {"atomic_smin", "atomic_min_i32"},
    {"atomic_umin", "atomic_min_u32"},
    {"atomic_smax", "atomic_max_i32"},
    {"atomic_umax", "atomic_max_u32"},
    {"atomic_and", "atomic_and_b32"},
    {"atomic_or", "atomic_or_b32"},
    {"atomic_xor", "atomic_xor_b32"},
    {"atomic_inc", "atomic_inc_u32"},
    {"atomic_dec", "atomic_dec_u32"},
    {"atomic_swap_x2", "atomic_swap_b64"},
    {"atomic_cmpswap_x2", "atomic_cmpswap_b64"},
    {"atomic_add_x2", "atomic_add_u64"},
    {"atomic_sub_x2", "atomic_sub_u64"},
    {"atomic_smin_x2", "atomic_min_i64"},
    {"atomic_umin_x2", "atomic_min_u64"},
    {"atomic_smax_x2", "atomic_max_i64"},
    {"atomic_umax_x2", "atomic_max_u64"},
    {"atomic_and_x2", "atomic_and_b64"},
    {"atomic_or_x2", "atomic_or_b64"},
    {"atomic_xor_x2", "atomic_xor_b64"},
    {"atomic_inc_x2", "atomic_inc_u64"},
    {"atomic_dec_x2", "atomic_dec_u64"},
    {"atomic_add_f32", "atomic_add_f32"},
    {"atomic_pk_add_f16", "atomic_pk_add_f16"},
    {"atomic_pk_add_bf16", "atomic_pk_add_bf16"},
};

// Loads into halves keep the other half here, so that they are not CDNA's (memory/rdna4.cpp).
constexpr Pair lds_accesses[] = {
    {"ds_read2st64_", "ds_load_2addr_stride64_"},
    {"ds_write2st64_", "ds_store_2addr_stride64_"},
    {"ds_read2_", "ds_load_2addr_"},
    {"ds_write2_", "ds_store_2addr_"},
    {"ds_read_", "ds_load_"},
    {"ds_write_", "ds_store_"},
    {"ds_min_f32", "ds_min_num_f32"},
    {"ds_min_rtn_f32", "ds_min_num_rtn_f32"},
    {"ds_max_f32", "ds_max_num_f32"},
    {"ds_max_rtn_f32", "ds_max_num_rtn_f32"},
};

std::string_view find(std::span<const Pair> pairs, std::string_view cdna) {
  const auto found = std::ranges::find(pairs, cdna, &Pair::cdna);
  return found == pairs.end() ? std::string_view() : found->rdna4;
}

std::string lds_name(std::string_view cdna) {
  const bool differs = cdna.contains("_tr_b") || cdna.contains("cmpst") || cdna.ends_with("_f64") ||
                       (cdna.starts_with("ds_read_") && cdna.contains("_d16")) || cdna == "ds_nop";
  if (differs) return {};
  for (const Pair& pair : lds_accesses) {
    if (cdna.starts_with(pair.cdna)) return std::string(pair.rdna4) + std::string(cdna.substr(pair.cdna.size()));
  }
  return std::string(cdna);
}

}  // namespace

std::string rdna4_name(std::string_view cdna) {
  if (std::ranges::contains(left_out, cdna)) return {};
  if (const std::string_view whole = find(whole_names, cdna); !whole.empty()) return std::string(whole);
  if (cdna.starts_with("ds_")) return lds_name(cdna);
  for (const std::string_view space : {"flat_", "global_", "scratch_", "s_buffer_", "buffer_", "s_load_"}) {
    if (!cdna.starts_with(space)) continue;
    const std::size_t prefix = space == "s_load_" ? 2 : space.size();
    const std::string_view access = find(accesses, cdna.substr(prefix));
    return access.empty() ? std::string() : std::string(cdna.substr(0, prefix)) + std::string(access);
  }
  if (cdna.starts_with("v_mfma_") || cdna.starts_with("v_cvt_scalef32_") || cdna.starts_with("v_dot")) return {};
  // Compares that are always true or false, and those of classes of all floats but NaN, went with RDNA3.
  for (const std::string_view gone : {"v_cmp_f_", "v_cmp_t_", "v_cmp_tru_", "v_cmpx_f_", "v_cmpx_t_", "v_cmpx_tru_"}) {
    if (cdna.starts_with(gone)) return {};
  }
  return std::string(cdna);
}

}  // namespace wavejit::simgpu
