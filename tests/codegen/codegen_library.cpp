// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <format>

#include "targets/targets.h"

namespace wavejit::codegen {
namespace {

Answer take(wavejit_codegen_result& result) {
  Answer answer;
  answer.status = result.status;
  answer.detail = result.detail;
  answer.bytes.assign(result.code_object, result.code_object + result.code_object_bytes);
  answer.facts = result.facts;
  answer.nanoseconds = result.emit_ns + result.lower_ns + result.link_ns + result.inspect_ns;
  library().release(&result);
  return answer;
}

}  // namespace

const struct wavejit_codegen_table& library() {
  static const struct wavejit_codegen_table* const table = [] {
    void* handle = dlopen(WAVEJIT_CODEGEN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    return reinterpret_cast<wavejit_codegen_table_function>(dlsym(handle, "wavejit_codegen_table"))(
        WAVEJIT_CODEGEN_ABI);
  }();
  return *table;
}

TableService::TableService(int containment, const char* program, unsigned time_limit_ms) {
  wavejit_codegen_options options = {};
  options.size = sizeof options;
  options.containment = containment;
  options.time_limit_ms = time_limit_ms;
  options.compiler_program = program ? program : WAVEJIT_COMPILE_PROGRAM;
  char error[256] = "";
  service_ = library().create(&options, error, sizeof error);
  if (!service_) {
    std::fprintf(stderr, "%s\n", error);
    std::abort();
  }
}

TableService::~TableService() { library().destroy(service_); }

Answer compile(const TableService& service, const std::string& spec) {
  wavejit_codegen_result result = {};
  library().compile(service.get(), spec.c_str(), &result);
  return take(result);
}

Answer compile_ir(const TableService& service, const std::string& target, const std::string& ir, const char* lowering) {
  wavejit_codegen_result result = {};
  library().compile_ir(service.get(), target.c_str(), lowering, ir.c_str(), &result);
  return take(result);
}

std::vector<std::string> supported_specs(const char* lowering) {
  std::vector<std::string> specs;
  for (const targets::Target& target : targets::complete_targets()) {
    for (const char* dtype : {"bf16", "fp16"}) {
      for (const int head_dim : {64, 128}) {
        for (const char* modifiers : {"", " causal", " lse", " causal lse"}) {
          for (const char* store : {"permlane", "scalar"}) {
            if (std::string(store) == "permlane" && !target.permlane32_swap) continue;
            specs.push_back(
                std::format("attention_forward {} d{}{} pipeline=generic tile=128x64 o_store={} target={} lowering={}",
                            dtype, head_dim, modifiers, store, target.id, lowering));
          }
        }
      }
    }
  }
  return specs;
}

}  // namespace wavejit::codegen
