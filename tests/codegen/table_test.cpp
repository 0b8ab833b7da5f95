// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C table: what the runtime calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "codegen_library.h"
#include "ir_samples.h"
#include "support/part.h"

namespace wavejit::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const char* const small_spec =
    "attention_forward fp16 d64 pipeline=generic tile=128x64 o_store=scalar target=gfx942 lowering=llvm";

TEST(Table, SpeaksOneVersion) {
  EXPECT_EQ(library().abi, static_cast<std::uint32_t>(WAVEJIT_CODEGEN_ABI));
  EXPECT_THAT(library().generator_id("attention_forward"), MatchesRegex("[0-9a-f]{16}"));
  EXPECT_EQ(library().generator_id("attention_combine"), nullptr) << "a kernel, not a family";
  EXPECT_EQ(library().generator_id(nullptr), nullptr);
  EXPECT_THAT(library().llvm_version, MatchesRegex("22\\.[0-9]+\\.[0-9]+"));
}

TEST(Table, CreateRefusesBadOptions) {
  char error[128] = "";
  wavejit_codegen_options options = {};
  options.size = sizeof options;
  options.containment = 7;
  EXPECT_EQ(library().create(&options, error, sizeof error), nullptr);
  EXPECT_THAT(error, HasSubstr("containment is 7"));
  options.size = 2;
  EXPECT_EQ(library().create(&options, error, sizeof error), nullptr);
  EXPECT_THAT(error, HasSubstr("options.size is 2"));
  char cut[8] = "";
  EXPECT_EQ(library().create(&options, cut, sizeof cut), nullptr);
  EXPECT_EQ(std::strlen(cut), sizeof cut - 1);
  EXPECT_EQ(library().create(&options, nullptr, 0), nullptr);
  wavejit_codegen_service* defaults = library().create(nullptr, error, sizeof error);
  EXPECT_NE(defaults, nullptr);
  library().destroy(defaults);
  library().destroy(nullptr);
}

// ./dev test has a fifth of them.
TEST(Table, CompilesEverySupportedSpecWithinTheGates) {
  const TableService service;
  std::size_t index = 0;
  for (const std::string& spec : supported_specs()) {
    if (!(!tests::sampled() || index++ % 5 == 0)) continue;
    const Answer answer = compile(service, spec);
    ASSERT_EQ(answer.status, WAVEJIT_CODEGEN_OK) << spec << ": " << answer.detail;
    EXPECT_GT(answer.facts.matrix_instructions, 0U) << spec;
    EXPECT_EQ(answer.facts.vgpr_spills + answer.facts.sgpr_spills, 0U) << spec;
    EXPECT_EQ(answer.facts.threads, 256U) << spec;
  }
}

TEST(Table, BadSpecsAreAnsweredInOneLine) {
  const TableService service;
  for (
      const char* text :
      {"", " ", "attention_forward", "attention_forward fp16 d64", "gemm fp16", "attention_forward fp16 d64 d64",
       "attention_forward fp16 d64 pipeline=generic tile=128x64 o_store=scalar target=gfx942 lowering=llvm extra",
       "attention_forward fp16 d999999999999999999999 pipeline=generic tile=128x64 o_store=scalar target=gfx942 lowering=llvm"}) {
    const Answer answer = compile(service, text);
    EXPECT_EQ(answer.status, WAVEJIT_CODEGEN_INVALID) << "'" << text << "': " << answer.detail;
    EXPECT_FALSE(answer.detail.empty());
    EXPECT_EQ(answer.detail.find('\n'), std::string::npos);
    EXPECT_TRUE(answer.bytes.empty());
  }
  for (const char* text :
       {"attention_forward fp16 d64 pipeline=generic tile=128x64 o_store=permlane target=gfx942 lowering=llvm",
        "attention_forward fp16 d100 pipeline=generic tile=128x64 o_store=scalar target=gfx942 lowering=llvm",
        "attention_forward fp16 d64 pipeline=generic tile=128x32 o_store=scalar target=gfx942 lowering=llvm"}) {
    const Answer answer = compile(service, text);
    EXPECT_TRUE(answer.status == WAVEJIT_CODEGEN_UNSUPPORTED || answer.status == WAVEJIT_CODEGEN_INVALID)
        << answer.status;
    EXPECT_FALSE(answer.detail.empty());
  }
}

TEST(Table, NullArgumentsAreStatuses) {
  const TableService service;
  wavejit_codegen_result result = {};
  library().compile(nullptr, small_spec, &result);
  EXPECT_EQ(result.status, WAVEJIT_CODEGEN_INVALID);
  library().compile(service.get(), nullptr, &result);
  EXPECT_EQ(result.status, WAVEJIT_CODEGEN_INVALID);
  library().compile(service.get(), small_spec, nullptr);
  library().compile_ir(service.get(), "gfx942", "gcc", "", &result);
  EXPECT_EQ(result.status, WAVEJIT_CODEGEN_INVALID);
  library().disassemble(service.get(), nullptr, 0, &result);
  EXPECT_EQ(result.status, WAVEJIT_CODEGEN_INVALID);
  library().release(&result);
  library().release(&result);
  library().release(nullptr);
}

TEST(Table, EmitsIrAndDisassembles) {
  const TableService service;
  wavejit_codegen_result text = {};
  library().emit_ir(service.get(), small_spec, &text);
  ASSERT_EQ(text.status, WAVEJIT_CODEGEN_OK) << text.detail;
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(text.code_object), text.code_object_bytes),
              HasSubstr("amdgpu_kernel"));
  library().release(&text);
  const Answer compiled = compile(service, small_spec);
  wavejit_codegen_result listing = {};
  library().disassemble(service.get(), compiled.bytes.data(), compiled.bytes.size(), &listing);
  ASSERT_EQ(listing.status, WAVEJIT_CODEGEN_OK) << listing.detail;
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(listing.code_object), listing.code_object_bytes),
              HasSubstr("s_endpgm"));
  library().release(&listing);
}

TEST(Table, IdentifiesLowerings) {
  EXPECT_EQ(library().lowering_identity("llvm"), std::string("llvm=") + library().llvm_version);
  EXPECT_EQ(library().lowering_identity("gcc"), nullptr);
  EXPECT_EQ(library().lowering_identity(nullptr), nullptr);
}

TEST(Table, ALostCompileDoesNotStopTheLibrary) {
  const TableService service;
  const Answer lost = compile_ir(service, "gfx942", samples::permlane32_swap());
  EXPECT_EQ(lost.status, WAVEJIT_CODEGEN_CRASHED);
  EXPECT_THAT(lost.detail, HasSubstr("permlane32.swap"));
  EXPECT_EQ(compile(service, small_spec).status, WAVEJIT_CODEGEN_OK);
}

}  // namespace
}  // namespace wavejit::codegen
