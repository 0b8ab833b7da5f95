#include "codegen/generator_id.h"

#include "generator_id_generated.h"

namespace wavejit::codegen {

std::string_view generator_id() { return WAVEJIT_GENERATOR_ID; }

std::string_view llvm_version() { return WAVEJIT_LLVM_VERSION; }

}  // namespace wavejit::codegen
