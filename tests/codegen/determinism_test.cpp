// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same spec gives the same bytes: repeated, in parallel, beside others, in other processes and surroundings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>

#include "codegen_library.h"

namespace wavejit::codegen {
namespace {

std::string_view text_of(const std::vector<unsigned char>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> some_specs() {
  const std::vector<std::string> all = supported_specs();
  std::vector<std::string> some;
  for (std::size_t i = 0; i < all.size(); i += 6) some.push_back(all[i]);
  return some;
}

TEST(Determinism, OneThreadAndEight) {
  const std::vector<std::string> specs = some_specs();
  std::vector<Answer> alone;
  {
    const TableService service;
    for (const std::string& spec : specs) alone.push_back(compile(service, spec));
  }
  const TableService service;
  std::vector<Answer> together(specs.size());
  {
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (std::size_t t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < specs.size(); i += 8) together[i] = compile(service, specs[i]);
      });
    }
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    ASSERT_EQ(alone[i].status, WAVEJIT_CODEGEN_OK) << specs[i] << ": " << alone[i].detail;
    EXPECT_EQ(alone[i].bytes, together[i].bytes) << specs[i];
    EXPECT_EQ(alone[i].facts.instructions, together[i].facts.instructions) << specs[i];
  }
}

TEST(Determinism, AnotherProcessFolderAndEnvironment) {
  const std::string spec = some_specs().front();
  const TableService inprocess;
  const Answer here = compile(inprocess, spec);
  ASSERT_EQ(here.status, WAVEJIT_CODEGEN_OK) << here.detail;

  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path("/");
  setenv("LANG", "tr_TR.UTF-8", 1);
  setenv("TZ", "Pacific/Apia", 1);
  setenv("SOURCE_DATE_EPOCH", "1", 1);
  setenv("LLD_VERSION", "someone else's linker", 1);
  const TableService isolated(WAVEJIT_CODEGEN_ISOLATED);
  const Answer there = compile(isolated, spec);
  std::filesystem::current_path(before);
  for (const char* variable : {"LANG", "TZ", "SOURCE_DATE_EPOCH", "LLD_VERSION"}) unsetenv(variable);
  ASSERT_EQ(there.status, WAVEJIT_CODEGEN_OK) << there.detail;
  EXPECT_EQ(here.bytes, there.bytes);
}

// Neither paths, nor the names of files that the link went through, nor who linked it.
TEST(Determinism, NothingOfTheMachineIsInTheCodeObject) {
  const TableService service;
  for (const std::string& spec : some_specs()) {
    const Answer answer = compile(service, spec);
    ASSERT_EQ(answer.status, WAVEJIT_CODEGEN_OK) << answer.detail;
    const std::string_view bytes = text_of(answer.bytes);
    for (const char* trace : {"/proc", "memfd", "/tmp", "/usr", "LLD", "clang", "Linker", "Debian", "kernel 0"}) {
      EXPECT_EQ(bytes.find(trace), std::string_view::npos) << spec << " holds '" << trace << "'";
    }
  }
}

}  // namespace
}  // namespace wavejit::codegen
