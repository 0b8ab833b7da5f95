// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the compiler made of each kernel: counts and sizes read back from its code object, one line a spec. Compared
// with the tables in golden/, so that a change that costs registers, spills or matrix instructions shows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/codegen_api.h"
#include "families/kernel/kernel_spec.h"
#include "templates/attention_forward/kernel/combine/spec.h"
#include "templates/attention_forward/kernel/spec.h"
#include "templates/attention_latent/kernel/spec.h"

namespace wavejit::tests {

// Those that change code.
attention_forward::Modifiers all_code_modifiers();

// Every kernel that can be built without modifiers and windows: target × pipeline × query rows of a
// workgroup × O store × data type × head dim × mask × LSE.
// With them: each alone and all together, in bf16.
std::vector<attention_forward::ForwardKernel> all_kernel_specs();

// Kernels that split keys and those that merge what they leave, in golden/splits.txt: data type × head dim × mask, and
// with a window and all modifiers.
std::vector<families::KernelSpec> split_kernel_specs();

// Every kernel of softmax_lse, in golden/softmax_lse.txt.
std::vector<families::KernelSpec> softmax_kernel_specs();
// Every access, rotation, kind of angles and of scales of cache_append, in golden/cache_append.txt.
std::vector<families::KernelSpec> append_kernel_specs();

// Every kernel of sparse_indexer, in golden/sparse_indexer.txt.
std::vector<families::KernelSpec> indexer_kernel_specs();

// Private bytes of a walk over all keys: R.
std::uint32_t planned_private_bytes(const attention_latent::WalkKernel& spec);

// Kernels of attention_latent and their combine kernels, in golden/attention_latent.txt.
std::vector<families::KernelSpec> latent_kernel_specs();

// Kernels of attention_backward, in golden/attention_backward.txt: every mask, and all modifiers with f32 gradients.
std::vector<families::KernelSpec> backward_kernel_specs();

// Private memory of a lane by the plan (call/merged_rows_plan.h), and the 16 bytes that the backend keeps for itself.
std::uint32_t planned_private_bytes(const attention_forward::ForwardKernel& spec);

struct CompiledKernel {
  std::string error;  // empty: it compiled
  std::vector<std::byte> code_object;
  wavejit_codegen_facts facts{};
};
// Compiled now: for tests of what the compiler makes.
CompiledKernel compile_kernel(const families::KernelSpec& spec);
// The same, perhaps as another test of this build compiled it (support/kept.h): for tests of what a kernel does.
CompiledKernel known_kernel(const families::KernelSpec& spec);

// "<spec>: matrix=… exp=… …", or "<spec>: <status> <detail>" when it does not compile.
std::string facts_line(const families::KernelSpec& spec);

}  // namespace wavejit::tests
