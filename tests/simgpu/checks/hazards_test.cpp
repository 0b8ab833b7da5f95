// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One wait state too few, and exactly enough, for each rule; and what LLVM has to say about it.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <format>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  std::string name;
  std::string target;
  std::string producer;
  int needed;
  std::string consumer;
  // The same two in LLVM's machine IR, with registers as the assembler writes them; +lanes and +float stand for what
  // vector instructions read besides.
  std::string machine_producer;
  std::string machine_consumer;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Hazard : public ::testing::TestWithParam<Case> {};

constexpr const char* wide = "v_mfma_f32_32x32x16_f16 v[16:31], v[0:3], v[4:7], v[16:31]";
constexpr const char* older = "v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[4:5], v[16:31]";

constexpr const char* machine_wide =
    "v[16:31] = V_MFMA_F32_32X32X16_F16_vgprcd_e64 v[0:3], v[4:7], v[16:31], 0, 0, 0 +float";
constexpr const char* machine_float = "v[16:31] = V_MFMA_F32_32X32X2F32_vgprcd_e64 v0, v4, v[16:31], 0, 0, 0 +float";
constexpr const char* machine_double =
    "v[16:23] = V_MFMA_F64_16X16X4F64_vgprcd_e64 v[0:1], v[4:5], v[16:23], 0, 0, 0 +float";
constexpr const char* machine_small_double =
    "v[16:17] = V_MFMA_F64_4X4X4F64_vgprcd_e64 v[0:1], v[4:5], v[16:17], 0, 0, 0 +float";
constexpr const char* float_matrix = "v_mfma_f32_32x32x2_f32 v[16:31], v0, v4, v[16:31]";
constexpr const char* double_matrix = "v_mfma_f64_16x16x4_f64 v[16:23], v[0:1], v[4:5], v[16:23]";
constexpr const char* small_double_matrix = "v_mfma_f64_4x4x4_4b_f64 v[16:17], v[0:1], v[4:5], v[16:17]";
constexpr const char* add = "v_add_f32 v8, v16, v16";
constexpr const char* machine_add = "v8 = V_ADD_F32_e32 v16, v16 +float";
constexpr const char* overlapping_c = "v_mfma_f32_16x16x4_f32 v[32:35], v0, v4, v[18:21]";
constexpr const char* machine_overlapping_c =
    "v[32:35] = V_MFMA_F32_16X16X4F32_vgprcd_e64 v0, v4, v[18:21], 0, 0, 0 +float";

// One accumulator: v[16:19].
constexpr const char* deep = "v_mfma_f32_16x16x32_f16 v[16:19], v[0:3], v[4:7], v[16:19]";
constexpr const char* machine_deep =
    "v[16:19] = V_MFMA_F32_16X16X32_F16_vgprcd_e64 v[0:3], v[4:7], v[16:19], 0, 0, 0 +float";
constexpr const char* deep_bf16 = "v_mfma_f32_16x16x32_bf16 v[16:19], v[0:3], v[4:7], v[16:19]";
constexpr const char* machine_deep_bf16 =
    "v[16:19] = V_MFMA_F32_16X16X32_BF16_vgprcd_e64 v[0:3], v[4:7], v[16:19], 0, 0, 0 +float";
constexpr const char* shallow = "v_mfma_f32_16x16x16_f16 v[16:19], v[0:1], v[4:5], v[16:19]";
constexpr const char* machine_shallow =
    "v[16:19] = V_MFMA_F32_16X16X16F16_vgprcd_e64 v[0:1], v[4:5], v[16:19], 0, 0, 0 +float";
constexpr const char* shallow_bf16 = "v_mfma_f32_16x16x16_bf16 v[16:19], v[0:1], v[4:5], v[16:19]";
constexpr const char* machine_shallow_bf16 =
    "v[16:19] = V_MFMA_F32_16X16X16BF16_1K_vgprcd_e64 v[0:1], v[4:5], v[16:19], 0, 0, 0 +float";
constexpr const char* small = "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[0:1], v[4:5], v[16:19]";
constexpr const char* machine_small =
    "v[16:19] = V_MFMA_F32_4X4X4F16_vgprcd_e64 v[0:1], v[4:5], v[16:19], 0, 0, 0 +float";
constexpr const char* of_floats = "v_mfma_f32_16x16x4_f32 v[16:19], v0, v4, v[16:19]";
constexpr const char* machine_of_floats =
    "v[16:19] = V_MFMA_F32_16X16X4F32_vgprcd_e64 v0, v4, v[16:19], 0, 0, 0 +float";
constexpr const char* small_of_floats = "v_mfma_f32_4x4x1_16b_f32 v[16:19], v0, v4, v[16:19]";
constexpr const char* machine_small_of_floats =
    "v[16:19] = V_MFMA_F32_4X4X1F32_vgprcd_e64 v0, v4, v[16:19], 0, 0, 0 +float";
constexpr const char* into_accumulation = "v_mfma_f32_16x16x32_f16 a[16:19], v[0:3], v[4:7], a[16:19]";
constexpr const char* machine_into_accumulation =
    "a[16:19] = V_MFMA_F32_16X16X32_F16_e64 v[0:3], v[4:7], a[16:19], 0, 0, 0 +float";
constexpr const char* older_wide = "v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[4:5], v[16:31]";
constexpr const char* overlapping_part = "v_mfma_f32_16x16x16_f16 v[32:35], v[0:1], v[4:5], v[18:21]";
constexpr const char* machine_overlapping_part =
    "v[32:35] = V_MFMA_F32_16X16X16F16_vgprcd_e64 v[0:1], v[4:5], v[18:21], 0, 0, 0 +float";

constexpr const char* machine_older =
    "v[16:31] = V_MFMA_F32_32X32X8F16_vgprcd_e64 v[0:1], v[4:5], v[16:31], 0, 0, 0 +float";
constexpr const char* dot = "v_dot2_f32_f16 v16, v9, v10, v16";
constexpr const char* machine_dot = "v16 = V_DOT2_F32_F16 8, v9, 8, v10, 0, v16, 0, 0, 0, 0, 0 +float";
constexpr const char* older_c = "v_mfma_f32_32x32x8_f16 v[32:47], v[0:1], v[4:5], v[16:31]";
constexpr const char* machine_older_c =
    "v[32:47] = V_MFMA_F32_32X32X8F16_vgprcd_e64 v[0:1], v[4:5], v[16:31], 0, 0, 0 +float";
constexpr const char* write_part = "v_mov_b32_sdwa v8, v9 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_0";
constexpr const char* machine_write_part =
    "v8 = V_MOV_B32_sdwa 0, v9, 0, 5, 2, 4, implicit $exec, implicit killed v8(tied-def 0)";
constexpr const char* load_over = "global_load_dword v16, v1, s[6:7]";
constexpr const char* machine_load_over = "v16 = GLOBAL_LOAD_DWORD_SADDR s[6:7], v1, 0, 0 +lanes";
constexpr const char* store = "global_store_dword v1, v16, s[6:7]";
constexpr const char* machine_store = "GLOBAL_STORE_DWORD_SADDR v1, v16, s[6:7], 0, 0 +lanes";
constexpr const char* overwrite = "v_mov_b32 v16, 0";
constexpr const char* machine_overwrite = "v16 = V_MOV_B32_e32 0 +lanes";

constexpr const char* into_accumulators = "v_mfma_f32_32x32x16_f16 a[16:31], v[0:3], v[4:7], a[16:31]";
constexpr const char* machine_into_accumulators =
    "a[16:31] = V_MFMA_F32_32X32X16_F16_e64 v[0:3], v[4:7], a[16:31], 0, 0, 0 +float";

const Case cases[] = {
    {"MatrixToVector950", "gfx950", wide, 12, add, machine_wide, machine_add},
    {"MatrixToVector942", "gfx942", older, 11, add, machine_older, machine_add},
    {"SmallMatrixToVector950", "gfx950", "v_mfma_f32_16x16x32_f16 v[16:19], v[0:3], v[4:7], 0", 8, add,
     "v[16:19] = V_MFMA_F32_16X16X32_F16_vgprcd_e64 v[0:3], v[4:7], 0, 0, 0, 0 +float", machine_add},
    {"TwoPassMatrixToVector950", "gfx950", "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[0:1], v[4:5], 0", 5, add,
     "v[16:19] = V_MFMA_F32_4X4X4F16_vgprcd_e64 v[0:1], v[4:5], 0, 0, 0, 0 +float", machine_add},
    {"MatrixToStore", "gfx950", wide, 12, "ds_write_b32 v0, v31", machine_wide,
     "DS_WRITE_B32_gfx9 v0, v31, 0, 0 +lanes"},
    {"MatrixToAccumulatorRead", "gfx950", into_accumulators, 12, "v_accvgpr_read_b32 v8, a31",
     machine_into_accumulators, "v8 = V_ACCVGPR_READ_B32_e64 a31 +lanes"},
    {"MatrixToAccumulatorWrite", "gfx950", into_accumulators, 12, "v_accvgpr_write_b32 a20, v8",
     machine_into_accumulators, "a20 = V_ACCVGPR_WRITE_B32_e64 v8 +lanes"},
    {"MatrixToAccumulatorRead942", "gfx942", "v_mfma_f32_32x32x8_f16 a[16:31], v[0:1], v[4:5], a[16:31]", 11,
     "v_accvgpr_read_b32 v8, a16", "a[16:31] = V_MFMA_F32_32X32X8F16_e64 v[0:1], v[4:5], a[16:31], 0, 0, 0 +float",
     "v8 = V_ACCVGPR_READ_B32_e64 a16 +lanes"},
    {"MatrixOverwritten", "gfx950", wide, 12, "v_mov_b32 v20, 0", machine_wide, "v20 = V_MOV_B32_e32 0 +lanes"},
    {"MatrixToA", "gfx950", wide, 12, "v_mfma_f32_32x32x16_f16 v[32:47], v[16:19], v[4:7], 0", machine_wide,
     "v[32:47] = V_MFMA_F32_32X32X16_F16_vgprcd_e64 v[16:19], v[4:7], 0, 0, 0, 0 +float"},
    {"MatrixToOverlappingC", "gfx950", wide, 10, "v_mfma_f32_16x16x32_f16 v[32:35], v[0:3], v[4:7], v[16:19]",
     machine_wide, "v[32:35] = V_MFMA_F32_16X16X32_F16_vgprcd_e64 v[0:3], v[4:7], v[16:19], 0, 0, 0 +float"},
    {"FourPassMatrixToOverlappingC950", "gfx950", deep, 6, overlapping_part, machine_deep, machine_overlapping_part},
    {"FourPassMatrixToOverlappingC942", "gfx942", shallow, 5, overlapping_part, machine_shallow,
     machine_overlapping_part},
    {"TwoPassMatrixToOverlappingC950", "gfx950", small, 4, overlapping_part, machine_small, machine_overlapping_part},
    {"TwoPassMatrixToOverlappingC942", "gfx942", small, 3, overlapping_part, machine_small, machine_overlapping_part},
    {"TwoPassMatrixToOverlappingFloatC950", "gfx950", small, 3, "v_mfma_f32_16x16x4_f32 v[32:35], v0, v4, v[18:21]",
     machine_small, machine_overlapping_c},
    {"CStillRead", "gfx942", older_c, 7, overwrite, machine_older_c, machine_overwrite},
    {"FloatMatrixToVector", "gfx942", float_matrix, 18, add, machine_float, machine_add},
    {"VectorToMatrix", "gfx950", "v_mov_b32 v0, 0", 2, wide, "v0 = V_MOV_B32_e32 0 +lanes", machine_wide},
    {"VectorToDpp", "gfx950", "v_mov_b32 v8, 0", 2, "v_mov_b32_dpp v9, v8 row_shr:1", "v8 = V_MOV_B32_e32 0 +lanes",
     "v9 = V_MOV_B32_dpp undef v9, v8, 273, 15, 15, 0 +lanes"},
    {"VectorToLaneSwap", "gfx950", "v_mov_b32 v8, 0", 2, "v_permlane32_swap_b32 v9, v8", "v8 = V_MOV_B32_e32 0 +lanes",
     "v9, v8 = V_PERMLANE32_SWAP_B32_e32 v9, v8 +lanes"},
    {"VectorToReadlane", "gfx950", "v_mov_b32 v8, 0", 1, "v_readfirstlane_b32 s8, v8", "v8 = V_MOV_B32_e32 0 +lanes",
     "s8 = V_READFIRSTLANE_B32 v8 +lanes"},
    {"TransToVector", "gfx942", "v_exp_f32 v8, v9", 1, "v_add_f32 v10, v8, v8", "v8 = V_EXP_F32_e32 v9 +float",
     "v10 = V_ADD_F32_e32 v8, v8 +float"},
    {"PartToVector", "gfx942", write_part, 1, "v_add_u32 v10, v8, v8", machine_write_part,
     "v10 = V_ADD_U32_e32 v8, v8 +lanes"},
    {"MaskToVector", "gfx950", "v_cmp_eq_u32 vcc, v8, v9", 2, "v_cndmask_b32 v10, v8, v9, vcc",
     "V_CMP_EQ_U32_e32 v8, v9, implicit-def $vcc +lanes", "v10 = V_CNDMASK_B32_e32 v8, v9, implicit $vcc +lanes"},
    {"ScalarToBuffer", "gfx950", "v_readfirstlane_b32 s8, v1", 5, "buffer_load_dword v9, off, s[12:15], s8",
     "s8 = V_READFIRSTLANE_B32 v1 +lanes", "v9 = BUFFER_LOAD_DWORD_OFFSET s[12:15], s8, 0, 0, 0 +lanes"},
    {"ScalarToLaneSelect", "gfx950", "v_readfirstlane_b32 s8, v1", 4, "v_readlane_b32 s9, v10, s8",
     "s8 = V_READFIRSTLANE_B32 v1 +lanes", "s9 = V_READLANE_B32 v10, s8"},
    {"ExecToMatrix", "gfx950", "v_cmpx_eq_u32 vcc, v1, v1", 4, wide,
     "V_CMPX_EQ_U32_e32 v1, v1, implicit-def $exec, implicit-def $vcc +lanes", machine_wide},
    {"ExecToDpp", "gfx950", "v_cmpx_eq_u32 vcc, v1, v1", 5, "v_mov_b32_dpp v9, v8 row_shr:1",
     "V_CMPX_EQ_U32_e32 v1, v1, implicit-def $exec, implicit-def $vcc +lanes",
     "v9 = V_MOV_B32_dpp undef v9, v8, 273, 15, 15, 0 +lanes"},
    {"M0ToDma", "gfx950", "s_mov_b32 m0, 0", 1, "buffer_load_dword off, s[12:15], 0 lds", "$m0 = S_MOV_B32 0",
     "BUFFER_LOAD_DWORD_LDS_OFFSET s[12:15], 0, 0, 0, 0, implicit $exec, implicit $m0"},
    {"WideStoreOverwritten", "gfx950", "global_store_dwordx4 v1, v[8:11], s[6:7]", 2, "v_mov_b32 v11, 0",
     "GLOBAL_STORE_DWORDX4_SADDR v1, v[8:11], s[6:7], 0, 0 +lanes", "v11 = V_MOV_B32_e32 0 +lanes"},
    {"WideBufferStoreOverwritten", "gfx942", "buffer_store_dwordx4 v[8:11], v1, s[12:15], 0 offen", 2,
     "v_mov_b32 v8, 0", "BUFFER_STORE_DWORDX4_OFFEN v[8:11], v1, s[12:15], 0, 0, 0, 0 +lanes",
     "v8 = V_MOV_B32_e32 0 +lanes"},
    {"ModeToGetreg", "gfx950", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0", 2,
     "s_getreg_b32 s8, hwreg(HW_REG_MODE)", "S_SETREG_IMM32_B32 0, 6145, implicit-def $mode, implicit $mode",
     "s8 = S_GETREG_B32 63489, implicit $mode"},
    {"DoubleMatrixToVector942", "gfx942", double_matrix, 11, add, machine_double, machine_add},
    {"DoubleMatrixToA942", "gfx942", double_matrix, 11, "v_mfma_f64_16x16x4_f64 v[32:39], v[16:17], v[4:5], 0",
     machine_double, "v[32:39] = V_MFMA_F64_16X16X4F64_vgprcd_e64 v[16:17], v[4:5], 0, 0, 0, 0 +float"},
    {"DoubleMatrixToOverlappingC942", "gfx942", double_matrix, 9, overlapping_c, machine_double, machine_overlapping_c},
    {"DoubleMatrixToVector950", "gfx950", double_matrix, 19, add, machine_double, machine_add},
    {"DoubleMatrixToA950", "gfx950", double_matrix, 19, "v_mfma_f64_16x16x4_f64 v[32:39], v[16:17], v[4:5], 0",
     machine_double, "v[32:39] = V_MFMA_F64_16X16X4F64_vgprcd_e64 v[16:17], v[4:5], 0, 0, 0, 0 +float"},
    {"DoubleMatrixToOverlappingC950", "gfx950", double_matrix, 17, overlapping_c, machine_double,
     machine_overlapping_c},
    {"DoubleMatrixToStore", "gfx942", double_matrix, 18, store, machine_double, machine_store},
    {"DoubleMatrixOverwritten", "gfx942", double_matrix, 11, overwrite, machine_double, machine_overwrite},
    {"DoubleMatrixLoadedOver", "gfx942", double_matrix, 11, load_over, machine_double, machine_load_over},
    {"SmallDoubleMatrixToVector", "gfx942", small_double_matrix, 6, add, machine_small_double, machine_add},
    {"SmallDoubleMatrixToStore", "gfx942", small_double_matrix, 9, store, machine_small_double, machine_store},
    {"SmallDoubleMatrixOverwritten", "gfx942", small_double_matrix, 6, overwrite, machine_small_double,
     machine_overwrite},
    {"SmallDoubleMatrixLoadedOver", "gfx942", small_double_matrix, 6, load_over, machine_small_double,
     machine_load_over},
    {"SmallDoubleMatrixToA", "gfx942", small_double_matrix, 6, "v_mfma_f64_4x4x4_4b_f64 v[32:33], v[16:17], v[4:5], 0",
     machine_small_double, "v[32:33] = V_MFMA_F64_4X4X4F64_vgprcd_e64 v[16:17], v[4:5], 0, 0, 0, 0 +float"},
    {"SmallDoubleMatrixChain", "gfx942", small_double_matrix, 4, small_double_matrix, machine_small_double,
     machine_small_double},
    {"SmallDoubleMatrixToOverlappingC", "gfx942", small_double_matrix, 4,
     "v_mfma_f64_16x16x4_f64 v[32:39], v[0:1], v[4:5], v[16:23]", machine_small_double,
     "v[32:39] = V_MFMA_F64_16X16X4F64_vgprcd_e64 v[0:1], v[4:5], v[16:23], 0, 0, 0 +float"},
    {"FloatMatrixToA", "gfx942", float_matrix, 18, "v_mfma_f32_32x32x2_f32 v[32:47], v16, v4, 0", machine_float,
     "v[32:47] = V_MFMA_F32_32X32X2F32_vgprcd_e64 v16, v4, 0, 0, 0, 0 +float"},
    {"FloatMatrixToStore", "gfx942", float_matrix, 18, store, machine_float, machine_store},
    {"FloatMatrixOverwritten", "gfx942", float_matrix, 18, overwrite, machine_float, machine_overwrite},
    {"FloatMatrixLoadedOver", "gfx942", float_matrix, 18, load_over, machine_float, machine_load_over},
    {"FloatMatrixToOverlappingC", "gfx942", "v_mfma_f32_16x16x4_f32 v[16:19], v0, v4, v[16:19]", 8, overlapping_c,
     "v[16:19] = V_MFMA_F32_16X16X4F32_vgprcd_e64 v0, v4, v[16:19], 0, 0, 0 +float", machine_overlapping_c},
    {"TwoPassFloatMatrixChain", "gfx942", "v_mfma_f32_4x4x1_16b_f32 v[16:19], v0, v4, v[16:19]", 2,
     "v_mfma_f32_4x4x1_16b_f32 v[16:19], v0, v4, v[16:19]",
     "v[16:19] = V_MFMA_F32_4X4X1F32_vgprcd_e64 v0, v4, v[16:19], 0, 0, 0 +float",
     "v[16:19] = V_MFMA_F32_4X4X1F32_vgprcd_e64 v0, v4, v[16:19], 0, 0, 0 +float"},
    {"TwoPassMatrixChain", "gfx950", "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[0:1], v[4:5], v[16:19]", 2,
     "v_mfma_f32_4x4x4_16b_f16 v[16:19], v[0:1], v[4:5], v[16:19]",
     "v[16:19] = V_MFMA_F32_4X4X4F16_vgprcd_e64 v[0:1], v[4:5], v[16:19], 0, 0, 0 +float",
     "v[16:19] = V_MFMA_F32_4X4X4F16_vgprcd_e64 v[0:1], v[4:5], v[16:19], 0, 0, 0 +float"},
    {"MatrixLoadedOver", "gfx950", wide, 12, load_over, machine_wide, machine_load_over},
    {"MatrixToOverlappingFloatC", "gfx942", older, 9, overlapping_c, machine_older, machine_overlapping_c},
    {"CLoadedOver", "gfx942", older_c, 7, load_over, machine_older_c, machine_load_over},
    {"DotToVector", "gfx942", dot, 3, add, machine_dot, machine_add},
    {"DotToStore", "gfx942", dot, 3, store, machine_dot, machine_store},
    {"DotOverwritten", "gfx942", dot, 3, overwrite, machine_dot, machine_overwrite},
    {"DotToFactorOfDot", "gfx942", dot, 3, "v_dot2_f32_f16 v8, v9, v16, v10", machine_dot,
     "v8 = V_DOT2_F32_F16 8, v9, 8, v16, 0, v10, 0, 0, 0, 0, 0 +float"},
    {"DotToFactorAndAddend", "gfx942", dot, 3, "v_dot2_f32_f16 v8, v9, v16, v16", machine_dot,
     "v8 = V_DOT2_F32_F16 8, v9, 8, v16, 0, v16, 0, 0, 0, 0, 0 +float"},
    {"DotToAddendOfAnother", "gfx942", dot, 3, "v_dot4_i32_i8 v8, v9, v10, v16", machine_dot,
     "v8 = V_DOT4_I32_I8 8, v9, 8, v10, 8, v16, 0, 0, 0 +lanes"},
    {"MaskToDivFmas", "gfx950", "v_cmp_eq_u32 vcc, v8, v9", 4, "v_div_fmas_f32 v10, v8, v9, v11",
     "V_CMP_EQ_U32_e32 v8, v9, implicit-def $vcc +lanes",
     "v10 = V_DIV_FMAS_F32_e64 0, v8, 0, v9, 0, v11, 0, 0, implicit $mode, implicit $vcc +lanes"},
    {"ScalarToVector", "gfx950", "v_readfirstlane_b32 s8, v1", 2, "v_add_u32 v10, s8, v9",
     "s8 = V_READFIRSTLANE_B32 v1 +lanes", "v10 = V_ADD_U32_e32 s8, v9 +lanes"},
    {"PartToTrans", "gfx942", write_part, 1, "v_exp_f32 v10, v8", machine_write_part, "v10 = V_EXP_F32_e32 v8 +float"},
    {"VectorToC", "gfx942", overwrite, 2, older, machine_overwrite, machine_older},
    {"VectorToFloatC", "gfx942", overwrite, 2, float_matrix, machine_overwrite, machine_float},
    {"WideVectorToDoubleC", "gfx942", "v_mov_b64 v[16:17], 0", 2, small_double_matrix,
     "v[16:17] = V_MOV_B64_e32 0 +lanes", machine_small_double},
    {"ExecToLane", "gfx950", "v_cmpx_eq_u32 vcc, v1, v1", 4, "v_readfirstlane_b32 s9, v10",
     "V_CMPX_EQ_U32_e32 v1, v1, implicit-def $exec, implicit-def $vcc +lanes", "s9 = V_READFIRSTLANE_B32 v10 +lanes"},
    {"M0ToAddtid", "gfx950", "s_mov_b32 m0, 0", 1, "ds_read_addtid_b32 v8", "$m0 = S_MOV_B32 0",
     "v8 = DS_READ_ADDTID_B32 0, 0, implicit $m0 +lanes"},
};

Checked run(const Case& c, int states) {
  std::string body =
      std::string(prologue) +
      "s_mov_b32 s12, 0\ns_mov_b32 s13, 0\ns_mov_b32 s14, 0\ns_mov_b32 s15, 0x27000\ns_nop 7\ns_nop 7\ns_nop 7\n" +
      c.producer + "\n";
  for (; states > 0; states -= std::min(states, 8)) body += std::format("s_nop {}\n", std::min(states, 8) - 1);
  body += c.consumer + "\ns_nop 7\ns_nop 7\ns_nop 7\n";
  const Assembled kernel(KernelSource{.body = body, .target = c.target, .lds_bytes = 256});
  Buffer<std::uint32_t> memory(256, 7);
  return run_checked(kernel, {memory.address()}, {.checks = static_cast<std::uint32_t>(Check::hazards)});
}

TEST_P(Hazard, OneWaitStateTooFewIsReported) {
  const Checked checked = run(GetParam(), GetParam().needed - 1);
  ASSERT_THAT(checked.names(), ElementsAre("hazards"));
  EXPECT_THAT(checked.text(), HasSubstr(std::format("{} wait states after", GetParam().needed - 1)));
  EXPECT_THAT(checked.text(), HasSubstr(std::format("{} are needed", GetParam().needed)));
}
TEST_P(Hazard, EnoughOfThemAreSilent) {
  const Checked checked = run(GetParam(), GetParam().needed);
  EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
}

// v8 → $vgpr8, v[8:9] → $vgpr8_vgpr9, likewise a and s.
std::string machine_ir(std::string text) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    if (const std::size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  };
  replace(" +lanes", ", implicit $exec");
  replace(" +float", ", implicit $mode, implicit $exec");
  static const std::regex one(R"(\b([vas])(\d+)\b(?!\[))");
  static const std::regex several(R"(\b([vas])\[(\d+):(\d+)\])");
  std::string result;
  for (std::smatch match; std::regex_search(text, match, several); text = match.suffix()) {
    result += std::regex_replace(match.prefix().str(), one, "$$$1gpr$2");
    for (int i = std::stoi(match[2]); i <= std::stoi(match[3]); ++i)
      result += std::format("{}{}gpr{}", i == std::stoi(match[2]) ? "$" : "_", match[1].str(), i);
  }
  return result + std::regex_replace(text, one, "$$$1gpr$2");
}

// Dot products that go on with one another's results, as clang writes products of 8-bit integers.
constexpr const char* accumulating_dot = "v_dot4c_i32_i8 v16, v9, v10";
constexpr const char* machine_accumulating_dot = "v16 = V_DOT4C_I32_I8_e32 v9, v10, v16 +lanes";
// LLVM takes the bit of op_sel_hi for a destination's half (getDstSelForwardingOperand); so these are without.
constexpr const char* low_dot = "v_dot2_f32_f16 v16, v9, v10, v16";
constexpr const char* machine_low_dot = "v16 = V_DOT2_F32_F16 0, v9, 0, v10, 0, v16, 0, 0, 0, 0, 0 +float";
const Case chains[] = {{"DotChain", "gfx942", low_dot, 0, low_dot, machine_low_dot, machine_low_dot},
                       {"DotChainToAnotherRegister", "gfx950", low_dot, 0, "v_dot2_f32_f16 v8, v9, v10, v16",
                        machine_low_dot, "v8 = V_DOT2_F32_F16 0, v9, 0, v10, 0, v16, 0, 0, 0, 0, 0 +float"},
                       {"DotWrittenAgain", "gfx942", low_dot, 0, "v_dot2_f32_f16 v16, v9, v10, v11", machine_low_dot,
                        "v16 = V_DOT2_F32_F16 0, v9, 0, v10, 0, v11, 0, 0, 0, 0, 0 +float"},
                       {"AccumulatingDotChain", "gfx942", accumulating_dot, 0, accumulating_dot,
                        machine_accumulating_dot, machine_accumulating_dot}};

// Those of `beyond_llvm`, below.
std::vector<Case> ways_beyond_llvm();

// A product of sixteen passes on gfx950 and who reads it so many wait states later; `needed`: how many there are when
// LLVM's recognizer is done.
Case after_sixteen_passes(int states, int needed) {
  std::string waits;
  for (int left = states; left > 0; left -= std::min(left, 8))
    waits += std::format("\n    S_NOP {}", std::min(left, 8) - 1);
  return {std::format("SixteenPassesAnd{}", states),
          "gfx950",
          "v_mfma_f32_32x32x4_2b_f16 v[16:47], v[0:1], v[4:5], v[16:47]",
          needed,
          "v_add_f32 v10, v40, v40",
          "v[16:47] = V_MFMA_F32_32X32X4F16_vgprcd_e64 v[0:1], v[4:5], v[16:47], 0, 0, 0 +float" + waits,
          "v10 = V_ADD_F32_e32 v40, v40 +float"};
}
// LLVM 22 inserts nothing behind exactly 19 (llvm/llvm-project#222040): when that changes, the second row says so.
const Case distances[] = {after_sixteen_passes(18, 20), after_sixteen_passes(19, 19), after_sixteen_passes(20, 20)};

// Every case for one target through LLVM's hazard recognizer, at once: starting llc takes longer than a case. Of each
// case by its name, what came out.
std::map<std::string, std::string> recognized(const std::string& target) {
  const std::string file = ::testing::TempDir() + "simgpu_hazards_" + target + "_" + std::to_string(getpid()) + ".mir";
  std::ofstream written(file);
  const auto add = [&](const Case& c) {
    if (c.target != target) return;
    written << std::format("---\nname: {}\nbody: |\n  bb.0:\n    {}\n    {}\n    S_ENDPGM 0\n...\n", c.name,
                           machine_ir(c.machine_producer), machine_ir(c.machine_consumer));
  };
  std::ranges::for_each(cases, add);
  std::ranges::for_each(chains, add);
  std::ranges::for_each(distances, add);
  for (const Case& way : ways_beyond_llvm()) add(way);
  written.close();
  const std::string command =
      std::format("{} -mtriple=amdgcn-amd-amdhsa -mcpu={} -run-pass post-RA-hazard-rec -o - {} 2>&1", WAVEJIT_TEST_LLC,
                  target, file);
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  for (std::array<char, 4096> part{}; const std::size_t got = fread(part.data(), 1, part.size(), pipe);)
    output.append(part.data(), got);
  EXPECT_EQ(pclose(pipe), 0) << output;
  unlink(file.c_str());
  std::map<std::string, std::string> all;
  static const std::regex function(R"(\nname: +(\w+))");
  for (std::sregex_iterator at(output.begin(), output.end(), function), end; at != end;) {
    const std::smatch name = *at++;
    const std::size_t until = at == end ? output.size() : static_cast<std::size_t>(at->position());
    const auto from = static_cast<std::size_t>(name.position());
    all[name[1]] = output.substr(from, until - from);
  }
  return all;
}

// Another source for the same wait states: those that LLVM's hazard recognizer inserts between the two.
void expect_inserted(const Case& c) {
  static std::map<std::string, std::map<std::string, std::string>> of_targets;
  const auto [of_target, first] = of_targets.try_emplace(c.target);
  if (first) of_target->second = recognized(c.target);
  const auto found = of_target->second.find(c.name);
  ASSERT_NE(found, of_target->second.end()) << "llc left it out";
  const std::string& output = found->second;
  ASSERT_TRUE(output.contains("S_ENDPGM")) << output;
  int states = 0;
  static const std::regex nop(R"(S_NOP (\d+))");
  for (std::sregex_iterator match(output.begin(), output.end(), nop); match != std::sregex_iterator(); ++match)
    states += std::stoi((*match)[1]) + 1;
  EXPECT_EQ(states, c.needed) << output;
}

TEST_P(Hazard, TheCompilerInsertsAsMany) { expect_inserted(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Each, Hazard, ::testing::ValuesIn(cases), [](const auto& info) { return info.param.name; });

class HazardChain : public ::testing::TestWithParam<Case> {};
TEST_P(HazardChain, NeedsNoWaitStates) {
  EXPECT_THAT(run(GetParam(), 0).findings, IsEmpty());
  expect_inserted(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Each, HazardChain, ::testing::ValuesIn(chains),
                         [](const auto& info) { return info.param.name; });

TEST(Hazards, TheCompilerLeavesOutTheTwentiethWaitState) {
  for (const Case& distance : distances) expect_inserted(distance);
  EXPECT_THAT(run(distances[0], 19).names(), ElementsAre("hazards"));
  EXPECT_THAT(run(distances[0], 20).findings, IsEmpty());
}

// What LLVM 22 knows nothing of, or too little: when that changes, `inserted` says so. Another matrix instruction that
// goes on with a result waits as for a part of it (llvm/llvm-project#218363). A wide store's data is not to be overwritten
// at once, even if its scalar offset is in a register (#197267).
struct Beyond {
  Case way;
  int inserted;
};
void PrintTo(const Beyond& beyond, std::ostream* out) { *out << beyond.way.name; }
const Beyond beyond_llvm[] = {
    {{"DeepThenShallow950", "gfx950", deep, 6, shallow, machine_deep, machine_shallow}, 0},
    {{"ShallowThenDeep950", "gfx950", shallow, 6, deep, machine_shallow, machine_deep}, 0},
    {{"AnotherType950", "gfx950", deep, 6, deep_bf16, machine_deep, machine_deep_bf16}, 0},
    {{"AnotherType942", "gfx942", shallow, 5, shallow_bf16, machine_shallow, machine_shallow_bf16}, 0},
    {{"ThenOfFloats950", "gfx950", deep, 6, of_floats, machine_deep, machine_of_floats}, 0},
    {{"ThenOfFloats942", "gfx942", shallow, 5, of_floats, machine_shallow, machine_of_floats}, 0},
    {{"WideThenWide950", "gfx950", wide, 10, older_wide, machine_wide, machine_older}, 0},
    {{"SmallThenShallow950", "gfx950", small, 4, shallow, machine_small, machine_shallow}, 2},
    {{"SmallThenShallow942", "gfx942", small, 3, shallow, machine_small, machine_shallow}, 2},
    {{"FloatsThenSmallFloats942", "gfx942", of_floats, 8, small_of_floats, machine_of_floats, machine_small_of_floats},
     0},
    {{"InAccumulationRegisters950", "gfx950", into_accumulation, 6,
      "v_mfma_f32_16x16x16_f16 a[16:19], v[0:1], v[4:5], a[16:19]", machine_into_accumulation,
      "a[16:19] = V_MFMA_F32_16X16X16F16_e64 v[0:1], v[4:5], a[16:19], 0, 0, 0 +float"},
     0},
    {{"StoreBehindOffset950", "gfx950", "buffer_store_dwordx4 v[8:11], v1, s[12:15], s8 offen", 1,
      "v_pk_mul_f32 v[8:9], v[4:5], v[4:5]", "BUFFER_STORE_DWORDX4_OFFEN v[8:11], v1, s[12:15], s8, 0, 0, 0 +lanes",
      "v[8:9] = V_PK_MUL_F32 8, v[4:5], 8, v[4:5], 0, 0, 0, 0, 0 +float"},
     0},
    {{"StoreBehindOffset942", "gfx942", "buffer_store_dwordx3 v[8:10], off, s[12:15], s8", 1, "v_mov_b32 v10, 0",
      "BUFFER_STORE_DWORDX3_OFFSET v[8:10], s[12:15], s8, 0, 0, 0 +lanes", "v10 = V_MOV_B32_e32 0 +lanes"},
     0},
};
std::vector<Case> ways_beyond_llvm() {
  std::vector<Case> ways;
  for (const Beyond& beyond : beyond_llvm) ways.push_back(beyond.way);
  return ways;
}
class HazardBeyondLlvm : public ::testing::TestWithParam<Beyond> {};
TEST_P(HazardBeyondLlvm, OneWaitStateTooFewIsReported) {
  const Case& way = GetParam().way;
  for (const int states : {0, way.needed - 1}) {
    const Checked checked = run(way, states);
    ASSERT_THAT(checked.names(), ElementsAre("hazards")) << states;
    EXPECT_THAT(checked.text(), HasSubstr(std::format("{} wait states after", states)));
    EXPECT_THAT(checked.text(), HasSubstr(std::format("{} are needed", way.needed)));
  }
}
TEST_P(HazardBeyondLlvm, EnoughOfThemAreSilent) {
  const Checked checked = run(GetParam().way, GetParam().way.needed);
  EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
}
TEST_P(HazardBeyondLlvm, TheCompilerInsertsTooFew) {
  Case way = GetParam().way;
  way.needed = GetParam().inserted;
  expect_inserted(way);
}
INSTANTIATE_TEST_SUITE_P(Each, HazardBeyondLlvm, ::testing::ValuesIn(beyond_llvm),
                         [](const auto& info) { return info.param.way.name; });

// Chains: the same instruction, scaled or not, with formats of as many bits. And what LLVM lets pass behind f32 inputs.
TEST(Hazards, ChainsOfOneInstructionNeedNone) {
  const std::string start = "v_mfma_f32_16x16x128_f8f6f4 v[16:19], v[0:7], v[8:15], v[16:19]";
  const auto states = [&](const std::string& first, const std::string& second) {
    return run({"", "gfx950", first, 0, second, "", ""}, 0).findings.size();
  };
  EXPECT_EQ(states(deep, deep), 0U);
  EXPECT_EQ(states(start, start), 0U);
  EXPECT_EQ(states(start, start + " cbsz:1 blgp:1"), 0U);
  EXPECT_EQ(states(start,
                   "v_mfma_scale_f32_16x16x128_f8f6f4 v[16:19], v[0:7], v[8:15], v[16:19], v30, v31 op_sel_hi:[0,0,0]"),
            0U);
  EXPECT_EQ(states(of_floats, shallow), 0U);
  // Formats of other sizes take other passes.
  EXPECT_EQ(states(start, "v_mfma_f32_16x16x128_f8f6f4 v[16:19], v[0:3], v[8:11], v[16:19] cbsz:4 blgp:4"), 1U);
}

TEST(Hazards, AccumulationNeedsNone) {
  const Case chain{"", "gfx950", wide, 0, wide, "", ""};
  EXPECT_THAT(run(chain, 0).findings, IsEmpty());
}

// A result of the float64 pipe lives for 35 clocks, and a product with C leaves two events in each.
TEST(Hazards, ManyProductsLaterAResultIsItsOwn) {
  std::string products = std::string(double_matrix) + "\n";
  for (int i = 0; i < 32; ++i) products += "v_mfma_f32_32x32x16_f16 v[24:39], v[0:3], v[4:7], v[40:55]\n";
  const Case later{"", "gfx950", products, 0, overwrite, "", ""};
  const Checked checked = run(later, 0);
  EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
}

}  // namespace
}  // namespace wavejit::simgpu::testing
