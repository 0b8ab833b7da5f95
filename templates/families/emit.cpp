#include "templates/families/emit.h"

#include "templates/attention_combine/emit/emit.h"
#include "templates/attention_forward/emit/emit.h"

namespace wavejit::families {

std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const KernelSpec& spec, const targets::Target& target,
                                                               llvm::LLVMContext& context) {
  return std::visit([&](const auto& one) { return emit(one, target, context); }, spec);
}

}  // namespace wavejit::families
