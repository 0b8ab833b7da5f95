// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/emit.h"

#include <array>
#include <span>

#include "templates/attention_latent/emit/combine.h"
#include "templates/attention_latent/emit/walk.h"
#include "templates/attention_latent/kernel/arguments.h"

namespace wavejit::attention_latent {
namespace {

template <typename Spec, typename Emit>
families::EmittedModule emit_with(const Spec& spec, const targets::Target& target, llvm::LLVMContext& context,
                                  int threads_of_workgroup, int waves_per_simd, Emit body) {
  if (const auto refusal = refusal_of(spec)) return std::unexpected(*refusal);
  language::Kernel kernel(context, target,
                          {.name = kernel_name(spec),
                           .threads = threads_of_workgroup,
                           .waves_per_simd = waves_per_simd,
                           .argument_bytes = static_cast<int>(argument_bytes(spec)),
                           .strength_reduction = false});
  body(kernel, spec);
  return kernel.finish();
}

}  // namespace

families::EmittedModule emit(const WalkKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  return emit_with(spec, target, context, threads, 1, emit_walk);
}

families::EmittedModule emit(const CombineKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  return emit_with(spec, target, context, combine_threads, 4, emit_combine);
}

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<WalkKernel>, families::emitter_of<CombineKernel>};
  return all;
}

}  // namespace wavejit::attention_latent
