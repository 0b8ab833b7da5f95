// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Completions and the manual page are made from what the program has: every command and every option is in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

// What bash offers for the last of these words.
std::string offered(const ScratchDirectory& scratch, const std::string& words) {
  const Outcome script = run_program(scratch, {"completion", "bash"});
  EXPECT_EQ(script.code, 0) << script.err;
  const std::string file = scratch / "completion.bash";
  std::ofstream(file) << script.out;
  const std::string command = "bash -c 'source " + file + "; COMP_WORDS=(" + words +
                              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _wavejit; echo \"${COMPREPLY[*]}\"'";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0);
  return text;
}

TEST(Completion, BashOffersCommandsOptionsAndValues) {
  const ScratchDirectory scratch;
  EXPECT_EQ(offered(scratch, "wavejit exp"), "explain");
  EXPECT_EQ(offered(scratch, "wavejit cache pu"), "push pull");
  EXPECT_EQ(offered(scratch, "wavejit cache list --js"), "--json");
  EXPECT_EQ(offered(scratch, "wavejit explain --jso"), "--json");
  EXPECT_EQ(offered(scratch, "wavejit explain --cache \"\""), "off ro rw");
  EXPECT_EQ(offered(scratch, "wavejit explain list --i"), "--ir --isa") << "a word that is no command of it";
  EXPECT_THAT(offered(scratch, "wavejit completion \"\""), HasSubstr("bash zsh fish man"));
}

TEST(Completion, EveryShellAndThePageHaveEveryCommand) {
  const ScratchDirectory scratch;
  const std::string bash = run_program(scratch, {"completion", "bash"}).out;
  const std::string zsh = run_program(scratch, {"completion", "zsh"}).out;
  const std::string fish = run_program(scratch, {"completion", "fish"}).out;
  const std::string page = run_program(scratch, {"completion", "man"}).out;
  EXPECT_THAT(page, ::testing::StartsWith(".\\\" Made by"));
  EXPECT_THAT(page, HasSubstr(".SH \"EXIT STATUS\"\n"));
  for (const std::string command : {"run", "explain", "prebuild", "sweep", "invariance", "profile", "compare", "tune",
                                    "doctor", "sim", "cache", "variants", "supported", "version"}) {
    EXPECT_THAT(bash, HasSubstr("      \" " + command + "\") accepted=("));
    EXPECT_THAT(zsh, HasSubstr("      \" " + command + "\") accepted=("));
    EXPECT_THAT(fish, HasSubstr("-f -a " + command + " -d '"));
    EXPECT_THAT(page, HasSubstr("\n.SS wavejit " + command + "\n"));
  }
  EXPECT_THAT(fish, HasSubstr("__fish_seen_subcommand_from cache; and __fish_seen_subcommand_from list' -l json"));
  EXPECT_THAT(page, HasSubstr("\n.SS wavejit cache list\n"));
  EXPECT_THAT(page, HasSubstr("\\-\\-target TARGET\n"));
  const Outcome wrong = run_program(scratch, {"completion", "tcsh"});
  expect_one_line_error(wrong, 2);
  EXPECT_THAT(wrong.err, HasSubstr("bash, zsh, fish, man are"));
}

}  // namespace
}  // namespace wavejit::tools
