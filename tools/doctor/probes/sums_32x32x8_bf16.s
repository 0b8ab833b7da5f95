// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: how v_mfma_f32_32x32x8_bf16 adds 8 products: groups of 8 or of 16, what is cut, denormals (src/simgpu/machine/matrix; WAVEJIT_SIM_MATRIX chooses)
// risk: 2
// targets: gfx942 gfx950
// check: sums bf16 32 4
// inputs: products_bf16 20
// outputs: 16
// workgroups: 8
// lds: 0
  v_mfma_f32_32x32x8_bf16 v[64:79], v[16:17], v[18:19], v[20:35]
