// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "fake_codegen.h"

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace wavejit::tests {
namespace {

FakeCodegen* state = nullptr;

wavejit_codegen_service* create(const wavejit_codegen_options*, char*, size_t) {
  ++fake_codegen().services;
  return reinterpret_cast<wavejit_codegen_service*>(new int(0));
}
void destroy(wavejit_codegen_service* service) { delete reinterpret_cast<int*>(service); }
void compile(wavejit_codegen_service*, const char* spec, wavejit_codegen_result* result) {
  FakeCodegen& codegen = fake_codegen();
  ++codegen.compiles;
  ++codegen.begun;
  const int under_way = ++codegen.under_way;
  for (int most = codegen.most_under_way; most < under_way;)
    if (codegen.most_under_way.compare_exchange_weak(most, under_way)) break;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (codegen.begun < codegen.together && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (codegen.begun >= codegen.together) ++codegen.met;
  while (codegen.awaits && !codegen.awaits() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(codegen.delay_ms));
  auto* text = new std::string(std::string("fake code object of ") + spec);
  result->status = codegen.judges ? codegen.judges(spec) : codegen.status.load();
  result->detail = result->status == WAVEJIT_CODEGEN_OK ? "" : "told to fail";
  result->code_object = reinterpret_cast<const unsigned char*>(text->data());
  result->code_object_bytes = text->size();
  std::strcpy(result->facts.kernel_name, "attention_forward");
  result->facts.kernarg_bytes = codegen.kernarg_bytes;
  result->facts.vgprs = 128;
  result->facts.lds_bytes = 65536;
  result->emit_ns = 1;
  result->lower_ns = 2;
  result->link_ns = 3;
  result->inspect_ns = 4;
  result->owner = text;
  --codegen.under_way;
}
void release(wavejit_codegen_result* result) {
  ++fake_codegen().released;
  delete static_cast<std::string*>(result->owner);
  result->owner = nullptr;
}
const char* lowering_identity(const char* lowering) {
  return std::strcmp(lowering, "comgr") == 0 ? "comgr=3.0.0-fake" : "llvm=fake";
}

}  // namespace

FakeCodegen& fake_codegen() {
  if (state == nullptr) reset_fake_codegen();
  return *state;
}

void reset_fake_codegen() {
  delete state;
  state = new FakeCodegen;
}

const runtime::CodegenTable* fake_codegen_table() {
  static const runtime::CodegenTable table = [] {
    runtime::CodegenTable t{};
    t.abi = WAVEJIT_CODEGEN_ABI;
    t.generator_id = [](const char*) { return "fake"; };
    t.llvm_version = "fake";
    t.create = create;
    t.destroy = destroy;
    t.compile = compile;
    t.release = release;
    t.lowering_identity = lowering_identity;
    return t;
  }();
  return &table;
}

}  // namespace wavejit::tests
