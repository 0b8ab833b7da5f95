// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/facts.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <format>

#include "support/kept.h"
#include "targets/targets.h"
#include "templates/attention_forward/kernel/merged_rows_plan.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::tests {

using attention_forward::ForwardKernel;

namespace {

// One service for the process, as the runtime has.
struct Compiler {
  const struct wavejit_codegen_table* table = wavejit_codegen_table(WAVEJIT_CODEGEN_ABI);
  wavejit_codegen_service* service = nullptr;
  std::array<char, 256> error{};

  Compiler() {
    wavejit_codegen_options options{};
    options.size = sizeof options;
    service = table->create(&options, error.data(), error.size());
  }
  ~Compiler() {
    if (service) table->destroy(service);
  }
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;
};

// A kernel that the library in its present form compiled: its file's size and time stand for it.
std::string key_of(const families::KernelSpec& spec) {
  static const std::string library = [] {
    Dl_info where{};
    struct stat file{};
    if (dladdr(reinterpret_cast<const void*>(&wavejit_codegen_table), &where) == 0 || stat(where.dli_fname, &file) != 0)
      return std::string("unknown");
    return std::format("{} {}.{}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  }();
  return std::format("kernel of codegen {}\n{}", library, spec.text());
}

// Facts, then the code object.
std::vector<std::byte> packed(const CompiledKernel& kernel) {
  if (!kernel.error.empty()) return {};
  const auto* const facts = reinterpret_cast<const std::byte*>(&kernel.facts);
  std::vector<std::byte> bytes(facts, facts + sizeof kernel.facts);
  bytes.insert(bytes.end(), kernel.code_object.begin(), kernel.code_object.end());
  return bytes;
}

}  // namespace

CompiledKernel known_kernel(const families::KernelSpec& spec) {
  CompiledKernel kernel;
  const std::vector<std::byte> bytes = kept(key_of(spec), [&] {
    kernel = compile_kernel(spec);
    return packed(kernel);
  });
  if (!kernel.code_object.empty() || bytes.size() <= sizeof kernel.facts) return kernel;
  std::memcpy(&kernel.facts, bytes.data(), sizeof kernel.facts);
  kernel.code_object.assign(bytes.begin() + sizeof kernel.facts, bytes.end());
  return kernel;
}

std::uint32_t planned_private_bytes(const ForwardKernel& spec) {
  constexpr int of_the_backend = 16;
  const auto resources = attention_forward::resources_of(spec);
  if (!resources) return 0;
  const targets::Target& target = *targets::find_target(spec.target);
  const attention_forward::LdsPlan lds = attention_forward::lds_plan(spec, target);
  const int planned = attention_forward::merged_rows_plan(spec, resources->vgpr_budget, lds).private_bytes;
  return static_cast<std::uint32_t>(planned == 0 ? 0 : planned + of_the_backend);
}

CompiledKernel compile_kernel(const families::KernelSpec& spec) {
  static const Compiler compiler;
  CompiledKernel kernel;
  if (!compiler.service) {
    kernel.error = std::string("no service: ") + compiler.error.data();
    return kernel;
  }
  wavejit_codegen_result result{};
  result.size = sizeof result;
  result.facts.size = sizeof result.facts;
  compiler.table->compile(compiler.service, spec.text().c_str(), &result);
  if (result.status == WAVEJIT_CODEGEN_OK) {
    const auto* bytes = reinterpret_cast<const std::byte*>(result.code_object);
    kernel.code_object.assign(bytes, bytes + result.code_object_bytes);
    kernel.facts = result.facts;
  } else {
    kernel.error = "status " + std::to_string(result.status) + ": " + result.detail;
  }
  compiler.table->release(&result);
  keep(key_of(spec), packed(kernel));
  return kernel;
}

std::string facts_line(const families::KernelSpec& spec) {
  const CompiledKernel kernel = known_kernel(spec);
  std::string line = spec.text() + ":";
  if (!kernel.error.empty()) return line + " " + kernel.error;
  const wavejit_codegen_facts& facts = kernel.facts;
  const auto field = [&](const char* name, std::uint32_t value) {
    line += ' ';
    line += name;
    line += '=' + std::to_string(value);
  };
  field("instructions", facts.instructions);
  field("matrix", facts.matrix_instructions);
  field("exp", facts.exp_instructions);
  field("lds_dma", facts.lds_dma_instructions);
  field("barriers", facts.barriers);
  field("lds", facts.lds_bytes);
  field("vgprs", facts.vgprs);
  field("agprs", facts.agprs);
  field("spills", facts.vgpr_spills + facts.sgpr_spills);
  field("private", facts.private_bytes);
  field("kernarg", facts.kernarg_bytes);
  field("threads", facts.threads);
  return line;
}

}  // namespace wavejit::tests
