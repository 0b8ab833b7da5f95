// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The linker is LLD, which can compile bitcode, and for that refers to every optimisation that LLVM has: nine million
// bytes. It is given objects only. In the wheels, which are to be small, these functions stand in for LLVM's
// (LLVM/LTO/LTOBackend.h): bitcode would be refused, with these words.
#include <llvm/LTO/LTO.h>
#include <llvm/LTO/LTOBackend.h>
#include <llvm/Support/Error.h>

namespace {

llvm::Error refused() {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "this linker compiles no bitcode: it takes objects");
}

}  // namespace

namespace llvm::lto {

Error Config::addSaveTemps(std::string, bool, const DenseSet<StringRef>&) { return refused(); }

Error backend(const Config&, AddStreamFn, unsigned, Module&, ModuleSummaryIndex&) { return refused(); }

Error thinBackend(const Config&, unsigned, AddStreamFn, Module&, const ModuleSummaryIndex&,
                  const FunctionImporter::ImportMapTy&, const GVSummaryMapTy&, MapVector<StringRef, BitcodeModule>*,
                  bool, AddStreamFn, const std::vector<std::uint8_t>&) {
  return refused();
}

Error finalizeOptimizationRemarks(LLVMRemarkFileHandle) { return Error::success(); }

}  // namespace llvm::lto
