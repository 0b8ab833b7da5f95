// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: how v_mfma_f32_16x16x32_bf16 adds 32 products: groups of 8 or of 16, what is cut, denormals (src/simgpu/machine/matrix; WAVEJIT_SIM_MATRIX chooses)
// risk: 2
// targets: gfx950
// check: sums bf16 16 8
// inputs: products_bf16 12
// outputs: 4
// workgroups: 8
// lds: 0
  v_mfma_f32_16x16x32_bf16 v[64:67], v[16:19], v[20:23], v[24:27]
