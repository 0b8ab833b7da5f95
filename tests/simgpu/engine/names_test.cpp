// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Symbols as people wrote them.
#include "gtest/gtest.h"
#include "simgpu/process/symbol_names.h"

namespace wavejit::simgpu::testing {
namespace {

struct Name {
  const char* symbol;
  const char* whole;
  const char* brief;
};

TEST(SymbolNames, AreReadable) {
  constexpr Name names[] = {
      {"k", "k", "k"},
      {"code at 0x40", "code at 0x40", "code at 0x40"},
      {"_Z", "_Z", "_Z"},
      {"_Z4loadPKfj", "load(float const*, unsigned int)", "load"},
      {"_ZN6faults5racesIfEEvPT_", "void faults::races<float>(float*)", "faults::races<float>"},
      {"_ZN12_GLOBAL__N_11kIfEEvPT_", "void (anonymous namespace)::k<float>(float*)",
       "(anonymous namespace)::k<float>"},
      {"_ZN1a12_GLOBAL__N_11kEv", "a::(anonymous namespace)::k()", "a::(anonymous namespace)::k"},
      {"_ZN1AclEi", "A::operator()(int)", "A::operator()"},
      {"_Z1fPFviE", "f(void (*)(int))", "f"},
      {"_Z5applyIXadL_Z1fvEEEvv", "void apply<&(f())>()", "apply<&(f())>"},
  };
  for (const Name& name : names) {
    EXPECT_EQ(demangled(name.symbol), name.whole);
    EXPECT_EQ(short_name(name.symbol), name.brief);
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
