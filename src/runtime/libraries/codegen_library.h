// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The code generator, opened at the first miss: libwavejit_codegen.so holds LLVM, and a process whose kernels are all
// in the cache never maps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "codegen/codegen_api.h"
#include "families/kernel/toggles.h"
#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"

namespace wavejit::runtime {

// A function of the same name hides the struct.
using CodegenTable = struct ::wavejit_codegen_table;

// What a compile gave. Move-only; the bytes belong to the library and go back to it at the end.
class CompileResult {
 public:
  CompileResult(const CodegenTable* table, const wavejit_codegen_result& result)
      : release_(table->release), result_(result) {}
  CompileResult(CompileResult&& other) noexcept : release_(other.release_), result_(other.result_) {
    other.release_ = nullptr;
  }
  CompileResult(const CompileResult&) = delete;
  CompileResult& operator=(const CompileResult&) = delete;
  CompileResult& operator=(CompileResult&&) = delete;
  ~CompileResult() {
    if (release_ != nullptr) release_(&result_);
  }

  std::span<const std::byte> code_object() const {
    return {reinterpret_cast<const std::byte*>(result_.code_object), result_.code_object_bytes};
  }
  const wavejit_codegen_facts& facts() const { return result_.facts; }
  const wavejit_codegen_result& raw() const { return result_; }

 private:
  void (*release_)(wavejit_codegen_result*);
  wavejit_codegen_result result_;
};

// Safe from any thread. One for the process (process_codegen), so that engines share its services and a kernel that
// several engines need at once is compiled once.
class CodegenLibrary {
 public:
  CodegenLibrary() = default;                                                          // opened when needed
  explicit CodegenLibrary(const CodegenTable* table) : table_(table), asked_(true) {}  // tests bring their own
  ~CodegenLibrary();
  CodegenLibrary(const CodegenLibrary&) = delete;
  CodegenLibrary& operator=(const CodegenLibrary&) = delete;

  // WAVEJIT_NO_COMPILER: not there or not the one that our keys promise. WAVEJIT_COMPILE_FAILED, WAVEJIT_UNSUPPORTED:
  // what the compiler said.
  Result<CompileResult> compile(const std::string& spec_text, CompileMode mode);
  // For people. The statuses of compile.
  Result<std::string> emit_ir(const std::string& spec_text);
  Result<std::string> disassemble(std::span<const std::byte> code_object);
  // "llvm=22.1.8" without opening anything; comgr's identity is the code generator's to say.
  Result<std::string> lowering_identity(families::Lowering lowering);

 private:
  Result<const CodegenTable*> table();
  Result<wavejit_codegen_service*> service(CompileMode mode);
  Result<CompileResult> judged(const wavejit_codegen_result& raw, const std::string& what);

  std::mutex mutex_;
  const CodegenTable* table_ = nullptr;
  bool asked_ = false;
  Failure refusal_;  // why there is no table, once asked
  wavejit_codegen_service* services_[2] = {nullptr, nullptr};
};

// Lives until the process ends.
CodegenLibrary& process_codegen();

}  // namespace wavejit::runtime
