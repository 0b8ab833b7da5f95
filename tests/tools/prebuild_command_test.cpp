// `wavejit prebuild`: fills a cache once, says so line by line where no terminal is, and refuses bad lists whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

TEST(PrebuildCommandTest, SecondRunFindsEverything) {
  const ScratchDirectory scratch;
  write_text(scratch / "list.txt",
             "# what we serve\n"
             "attention_forward fp16 b1 q1 k1 h1 d64 causal   # decode\n"
             "\n"
             "  attention_forward bf16 b8 q512 k512 h8/2 d64 lse\r\n");
  const std::vector<std::string> words = {"prebuild", "--target", "gfx942,gfx950", "--list", scratch / "list.txt",
                                          "--jobs",   "2"};
  const Outcome first = run_program(scratch, words);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("4 kernels: 4 compiled, 0 already there, 0 failed"));
  EXPECT_EQ(std::ranges::count(first.err, '\n'), 4) << first.err;
  EXPECT_THAT(first.err, HasSubstr("[4/4] compiled attention_forward"));
  const Outcome second = run_program(scratch, words);
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("4 kernels: 0 compiled, 4 already there, 0 failed"));
  EXPECT_THAT(second.err, HasSubstr("present  attention_forward"));
  EXPECT_EQ(run_program(scratch, {"cache", "verify"}).code, 0);
}

// Sizes do not change code: one kernel serves them all.
TEST(PrebuildCommandTest, DescriptorsThatDifferInSizesAreOneKernel) {
  const ScratchDirectory scratch;
  const Outcome outcome =
      run_program(scratch, {"prebuild", "--target", "gfx950", "attention_forward fp16 b1 q70 k1 h1 d64",
                            "attention_forward fp16 b9 q100 k3000 h8/2 d64"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("1 kernel: 1 compiled"));
}

TEST(PrebuildCommandTest, ListsThatCannotBeReadOrAreEmpty) {
  const ScratchDirectory scratch;
  const Outcome missing = run_program(scratch, {"prebuild", "--target", "gfx950", "--list", scratch / "missing.txt"});
  expect_one_line_error(missing, 3);
  EXPECT_THAT(missing.err, HasSubstr("missing.txt"));
  write_text(scratch / "empty.txt", "# nothing\n\n");
  const Outcome empty = run_program(scratch, {"prebuild", "--target", "gfx950", "--list", scratch / "empty.txt"});
  expect_one_line_error(empty, 2);
  EXPECT_THAT(empty.err, HasSubstr("no descriptors"));
}

// One bad line refuses the list before anything is compiled.
TEST(PrebuildCommandTest, ABadDescriptorIsNamedAndNothingIsBuilt) {
  const ScratchDirectory scratch;
  const Outcome outcome =
      run_program(scratch, {"prebuild", "--target", "gfx950", "attention_forward fp16 b1 q1 k1 h1 d64",
                            "attention_forward fp16 b1 q1 k1 h1 d64 slanted"});
  expect_one_line_error(outcome, 2);
  EXPECT_THAT(outcome.err, HasSubstr("'slanted'"));
  EXPECT_TRUE(scratch.names().empty());
}

}  // namespace
}  // namespace wavejit::tools
