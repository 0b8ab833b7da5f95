// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: operands and sums of v_mfma_f32_16x16x32_fp8_fp8 (src/simgpu/machine/matrix)
// risk: 2
// targets: gfx942 gfx950
// check: bits
// inputs: products_8_bits 8
// outputs: 4
// workgroups: 8
// lds: 0
  v_mfma_f32_16x16x32_fp8_fp8 v[64:67], v[16:17], v[18:19], v[20:23]
