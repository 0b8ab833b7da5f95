// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/offline/kernel_text.h"

#include <utility>

#include "runtime/offline/explain.h"

namespace wavejit::runtime {
namespace {

Result<std::string> text_of(const std::string& spec, const Config& config, wavejit_kernel_form form,
                            CodegenLibrary& codegen) {
  if (form == WAVEJIT_KERNEL_IR) return codegen.emit_ir(spec);
  const auto compiled = codegen.compile(spec, config.compile.value);
  if (!compiled) return std::unexpected(compiled.error());
  return codegen.disassemble(compiled->code_object());
}

}  // namespace

Result<std::vector<KernelText>> kernel_texts(const Config& config, std::string_view descriptor, std::string_view target,
                                             wavejit_kernel_form form, CodegenLibrary& codegen) {
  auto specs = kernels_of(config, descriptor, target);
  if (!specs) return std::unexpected(std::move(specs.error()));
  std::vector<KernelText> texts;
  for (std::string& spec : *specs) {
    auto text = text_of(spec, config, form, codegen);
    if (!text) return std::unexpected(std::move(text.error()));
    texts.push_back({.spec = std::move(spec), .text = *std::move(text)});
  }
  return texts;
}

}  // namespace wavejit::runtime
