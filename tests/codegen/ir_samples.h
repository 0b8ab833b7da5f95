// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small kernels as IR text: one that is fine, and one for every way in which the backend fails.
#pragma once

#include <string>

namespace wavejit::codegen::samples {

// p[i] += addend; distinct addends are distinct kernels.
std::string add_constant(int addend, const std::string& name = "add_constant");

// Needs v_permlane32_swap_b32: "Cannot select" (an abort) where the target lacks it.
std::string permlane32_swap();
// Needs v_permlane64_b32: segfaults in the backend on every gfx9.
std::string permlane64();
// v_cvt_scalef32_pk_fp8_f32: on gfx942 LLVM emits an encoding that this target does not have, without a word.
std::string scaled_convert();
// Static LDS of this many bytes.
std::string static_lds(int bytes);
// 256 threads that keep `values` <4 x float> alive over a barrier.
std::string register_pressure(int values);
// An array of 256 bytes in scratch, indexed at run time, in a kernel that declares this many; 0: none.
std::string scratch_array(int declared = 0);
// A loop whose LDS reads stand before a barrier, all uses behind a branch: what machine sinking moves. `dma_after`
// issues one LDS DMA after the reads.
std::string reads_before_branch(int reads, bool dma_after = false);
// LDS reads through inline assembly.
std::string inline_assembly_read();
// Loads through a generic pointer.
std::string flat_load();
// A call to a second function.
std::string function_call();

}  // namespace wavejit::codegen::samples
