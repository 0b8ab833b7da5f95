// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the assembler spells the matrix instructions of the table: for lines that emission writes itself.
#pragma once

#include <string_view>

#include "targets/targets.h"

namespace wavejit::targets {

constexpr std::string_view mnemonic_of(MatrixId id) {
  using enum MatrixId;
  switch (id) {
    case f32_32x32x16_bf16:
      return "v_mfma_f32_32x32x16_bf16";
    case f32_32x32x16_f16:
      return "v_mfma_f32_32x32x16_f16";
    case f32_16x16x32_bf16:
      return "v_mfma_f32_16x16x32_bf16";
    case f32_16x16x32_f16:
      return "v_mfma_f32_16x16x32_f16";
    case f32_32x32x8_bf16:
      return "v_mfma_f32_32x32x8_bf16";
    case f32_32x32x8_f16:
      return "v_mfma_f32_32x32x8_f16";
    case f32_16x16x16_bf16:
      return "v_mfma_f32_16x16x16_bf16";
    case f32_16x16x16_f16:
      return "v_mfma_f32_16x16x16_f16";
    case f32_32x32x8_bf16_1k:
      return "v_mfma_f32_32x32x8bf16_1k";
    case f32_32x32x8_f16_cdna2:
      return "v_mfma_f32_32x32x8f16";
    case f32_16x16x16_bf16_1k:
      return "v_mfma_f32_16x16x16bf16_1k";
    case f32_16x16x16_f16_cdna2:
      return "v_mfma_f32_16x16x16f16";
    case wmma_f32_16x16x16_bf16:
      return "v_wmma_f32_16x16x16_bf16";
    case wmma_f32_16x16x16_f16:
      return "v_wmma_f32_16x16x16_f16";
    case none:
      break;
  }
  return {};
}

}  // namespace wavejit::targets
