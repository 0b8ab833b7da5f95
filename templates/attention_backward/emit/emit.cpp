// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/emit.h"

#include <array>
#include <span>

#include "templates/attention_backward/emit/key_gradient.h"
#include "templates/attention_backward/emit/query_gradient.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {
namespace {

std::string name_of(std::string_view kernel, const KernelWords& words) {
  std::string name(kernel);
  name += "_" + std::string(attention::to_text(words.dtype)) + "_d" + std::to_string(words.head_dim);
  if (words.mask != Mask::none) name += "_" + std::string(families::name_in(masks, words.mask));
  for (const attention::ModifierRow& row : attention::modifier_rows)
    if (words.has(row.modifier)) name += "_" + std::string(row.word);
  if (words.gradients_fp32) name += "_fp32";
  return name;
}

template <typename Spec, typename Emit>
families::EmittedModule emit_with(const Spec& spec, const targets::Target& target, llvm::LLVMContext& context,
                                  const std::string& name, Emit body) {
  if (const auto refusal = refusal_of(spec)) return std::unexpected(*refusal);
  language::Kernel kernel(context, target,
                          {.name = name + "_" + spec.target,
                           .threads = threads,
                           .waves_per_simd = waves_per_simd(spec, target),
                           .argument_bytes = sizeof(Arguments)});
  body(kernel, spec);
  return kernel.finish();
}

}  // namespace

families::EmittedModule emit(const QueryKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  return emit_with(spec, target, context, name_of(QueryKernel::kernel, spec), emit_query_gradient);
}

families::EmittedModule emit(const KeyKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  const std::string runs = spec.runs == Runs::several ? "_runs" : "";
  return emit_with(spec, target, context, name_of(KeyKernel::kernel, spec) + runs, emit_key_gradient);
}

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<QueryKernel>, families::emitter_of<KeyKernel>};
  return all;
}

}  // namespace wavejit::attention_backward
