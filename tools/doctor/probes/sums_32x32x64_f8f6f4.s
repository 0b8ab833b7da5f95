// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// settles: src/simgpu/machine/matrix: 8-bit operands of f8f6f4 come in two runs of 16 k
// risk: 2
// targets: gfx950
// check: bits
// inputs: products_8_bits 32
// outputs: 16
// workgroups: 2
// lds: 0
  v_mfma_f32_32x32x64_f8f6f4 v[64:79], v[16:23], v[24:31], v[32:47]
