// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/libraries/codegen_library.h"

#include <array>
#include <utility>

#include "codegen/generator_id.h"
#include "runtime/settings/shared_object.h"

namespace wavejit::runtime {
namespace {

constexpr const char* library_name = "libwavejit_codegen.so";

Result<const CodegenTable*> open_table() {
  const auto library = open_beside(library_name);
  if (!library) {
    return fail(WAVEJIT_NO_COMPILER, "the kernel is not in the cache and the code generator cannot be loaded (" +
                                         library.error() + "); accepted: " + library_name +
                                         " beside libwavejit.so, or a cache filled by `wavejit prebuild`");
  }
  const auto get = function_of<wavejit_codegen_table_function>(*library, "wavejit_codegen_table");
  const CodegenTable* table = get != nullptr ? get(WAVEJIT_CODEGEN_ABI) : nullptr;
  if (table == nullptr || table->abi != WAVEJIT_CODEGEN_ABI) {
    return fail(WAVEJIT_NO_COMPILER, std::string(library_name) + " does not speak version " +
                                         std::to_string(WAVEJIT_CODEGEN_ABI) +
                                         " of our interface; accepted: the one installed with this libwavejit.so");
  }
  // Keys promise a generator: another one would publish its kernels under our name.
  for (const codegen::FamilyGenerator& ours : codegen::family_generators()) {
    const char* theirs = table->generator_id(ours.family.data());  // NOLINT(bugprone-suspicious-stringview-data-usage)
    if (theirs != nullptr && ours.id == theirs && codegen::llvm_version() == table->llvm_version) continue;
    return fail(WAVEJIT_NO_COMPILER, std::string(library_name) + " is generator " +
                                         (theirs != nullptr ? theirs : "(none)") + " of " + std::string(ours.family) +
                                         " with LLVM " + table->llvm_version + "; accepted: generator " +
                                         std::string(ours.id) + " with LLVM " + std::string(codegen::llvm_version()) +
                                         ", as installed with this libwavejit.so");
  }
  return table;
}

wavejit_status status_of(std::int32_t status) {
  switch (status) {
    case WAVEJIT_CODEGEN_OK:
      return WAVEJIT_OK;
    case WAVEJIT_CODEGEN_UNSUPPORTED:
      return WAVEJIT_UNSUPPORTED;
    case WAVEJIT_CODEGEN_CRASHED:
    case WAVEJIT_CODEGEN_REJECTED:
      return WAVEJIT_COMPILE_FAILED;
    case WAVEJIT_CODEGEN_UNAVAILABLE:
      return WAVEJIT_NO_COMPILER;
    default:
      return WAVEJIT_INTERNAL;
  }
}

wavejit_codegen_result blank_result() {
  wavejit_codegen_result raw{};
  raw.size = sizeof raw;
  raw.facts.size = sizeof raw.facts;
  return raw;
}

std::string text_of(const CompileResult& result) {
  const auto bytes = result.code_object();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

CodegenLibrary::~CodegenLibrary() {
  for (wavejit_codegen_service* service : services_)
    if (service != nullptr) table_->destroy(service);
}

Result<const CodegenTable*> CodegenLibrary::table() {
  const std::scoped_lock lock(mutex_);
  if (!asked_) {
    auto opened = open_table();
    asked_ = opened.has_value();  // a library that is missing now may be installed before the next miss
    if (opened) {
      table_ = *opened;
    } else {
      refusal_ = std::move(opened.error());
    }
  }
  if (table_ == nullptr) return std::unexpected(refusal_);
  return table_;
}

Result<wavejit_codegen_service*> CodegenLibrary::service(CompileMode mode) {
  auto opened = table();
  if (!opened) return std::unexpected(std::move(opened.error()));
  const std::scoped_lock lock(mutex_);
  wavejit_codegen_service*& service = services_[static_cast<std::size_t>(mode)];
  if (service == nullptr) {
    wavejit_codegen_options options{};
    options.size = sizeof options;
    options.containment = mode == CompileMode::isolated ? WAVEJIT_CODEGEN_ISOLATED : WAVEJIT_CODEGEN_INPROCESS;
    std::array<char, 512> error{};
    service = (*opened)->create(&options, error.data(), error.size());
    if (service == nullptr)
      return fail(WAVEJIT_NO_COMPILER, std::string("the code generator does not start: ") + error.data());
  }
  return service;
}

// Takes the result over; a failure names `what` it was about.
Result<CompileResult> CodegenLibrary::judged(const wavejit_codegen_result& raw, const std::string& what) {
  CompileResult result(table_, raw);
  if (raw.status != WAVEJIT_CODEGEN_OK)
    return fail(status_of(raw.status), what + ": " + (raw.detail != nullptr ? raw.detail : "no detail"));
  return result;
}

Result<CompileResult> CodegenLibrary::compile(const std::string& spec_text, CompileMode mode) {
  auto ready = service(mode);
  if (!ready) return std::unexpected(std::move(ready.error()));
  wavejit_codegen_result raw = blank_result();
  table_->compile(*ready, spec_text.c_str(), &raw);
  return judged(raw, spec_text);
}

Result<std::string> CodegenLibrary::emit_ir(const std::string& spec_text) {
  auto ready = service(CompileMode::in_process);
  if (!ready) return std::unexpected(std::move(ready.error()));
  wavejit_codegen_result raw = blank_result();
  table_->emit_ir(*ready, spec_text.c_str(), &raw);
  return judged(raw, spec_text).transform(text_of);
}

Result<std::string> CodegenLibrary::disassemble(std::span<const std::byte> code_object) {
  auto ready = service(CompileMode::in_process);
  if (!ready) return std::unexpected(std::move(ready.error()));
  wavejit_codegen_result raw = blank_result();
  table_->disassemble(*ready, reinterpret_cast<const unsigned char*>(code_object.data()), code_object.size(), &raw);
  return judged(raw, "the disassembly").transform(text_of);
}

Result<std::string> CodegenLibrary::lowering_identity(families::Lowering lowering) {
  if (lowering == families::Lowering::llvm) return "llvm=" + std::string(codegen::llvm_version());
  auto opened = table();
  if (!opened) return std::unexpected(std::move(opened.error()));
  const std::string name(to_text(lowering));
  const char* identity = (*opened)->lowering_identity(name.c_str());
  if (identity == nullptr) {
    return fail(WAVEJIT_NO_COMPILER,
                "lowering = " + name + " is not available on this machine (WAVEJIT_LOWERING); accepted: llvm");
  }
  return identity;
}

CodegenLibrary& process_codegen() {
  // Never destroyed: threads of the host may still compile while static objects end.
  static auto* const library = new CodegenLibrary;
  return *library;
}

}  // namespace wavejit::runtime
