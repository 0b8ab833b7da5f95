// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/emit.h"

#include <array>
#include <span>

#include "templates/attention_backward/emit/bias_gradient.h"
#include "templates/attention_backward/emit/key_gradient.h"
#include "templates/attention_backward/emit/query_gradient.h"
#include "templates/attention_backward/emit/sink_gradient.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/words.h"

namespace wavejit::attention_backward {
namespace {

// They lean on strength reduction: without it the largest, of wide heads with a bias in fp32, spill scalar registers.
// Others have no instruction of their walks less by it, and it was a fifth of their compile time.
template <typename Spec>
bool has_modifiers(const Spec& spec) {
  if constexpr (requires { spec.modifiers; }) return spec.modifiers.any();
  return false;
}

template <typename Spec, typename Emit>
families::EmittedModule emit_with(const Spec& spec, const targets::Target& target, llvm::LLVMContext& context,
                                  Emit body) {
  if (const auto refusal = refusal_of(spec)) return std::unexpected(*refusal);
  language::Kernel kernel(context, target,
                          {.name = kernel_name(spec),
                           .threads = threads,
                           .waves_per_simd = waves_per_simd(spec, target),
                           .argument_bytes = sizeof(Arguments),
                           .strength_reduction = has_modifiers(spec)});
  body(kernel, spec);
  return kernel.finish();
}

}  // namespace

families::EmittedModule emit(const QueryKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  return emit_with(spec, target, context, emit_query_gradient);
}

families::EmittedModule emit(const KeyKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  return emit_with(spec, target, context, emit_key_gradient);
}

families::EmittedModule emit(const BiasKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  return emit_with(spec, target, context, emit_bias_gradient);
}

families::EmittedModule emit(const SinkKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  return emit_with(spec, target, context,
                   [](language::Kernel& kernel, const SinkKernel&) { emit_sink_gradient(kernel); });
}

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<QueryKernel>, families::emitter_of<KeyKernel>,
                                     families::emitter_of<SinkKernel>, families::emitter_of<BiasKernel>};
  return all;
}

}  // namespace wavejit::attention_backward
