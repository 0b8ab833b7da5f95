#include "codegen/comgr.h"

namespace wavejit::codegen::comgr {

std::expected<std::string, Failure> identity() { return fail(Status::unavailable, "comgr is not built in yet"); }

std::expected<void, Failure> lower(llvm::Module&, const targets::Target&, llvm::SmallVectorImpl<char>&) {
  return fail(Status::unavailable, "comgr is not built in yet");
}

std::expected<Bytes, Failure> link(std::span<const char>, const targets::Target&) {
  return fail(Status::unavailable, "comgr is not built in yet");
}

}  // namespace wavejit::codegen::comgr
