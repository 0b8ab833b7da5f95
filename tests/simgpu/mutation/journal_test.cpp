// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "journal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/scratch_directory.h"

namespace wavejit::tests {
namespace {

TEST(MutationJournal, GoesOnWhereARunWasCutOff) {
  const ScratchDirectory folder;
  {
    Journal journal(folder.path(), "kernel");
    journal.add(0xabc, {.problems = {1, 0xffffffffffffffff}, .outcome = "reported a race, twice"});
    journal.add(0xdef, {.problems = {7, 8}, .outcome = ""});
  }
  std::ofstream(folder.path() + "/kernel", std::ios::app) << "123 1 5";  // cut off
  for (int run = 0; run < 2; ++run) {
    Journal journal(folder.path(), "kernel");
    EXPECT_EQ(journal.find(0x123) == nullptr, run == 0);
    ASSERT_NE(journal.find(0xabc), nullptr);
    EXPECT_EQ(journal.find(0xabc)->outcome, "reported a race, twice");
    EXPECT_EQ(journal.find(0xabc)->problems, (std::vector<std::uint64_t>{1, 0xffffffffffffffff}));
    ASSERT_NE(journal.find(0xdef), nullptr);
    EXPECT_EQ(journal.find(0xdef)->outcome, "");
    EXPECT_EQ(journal.find(0xdef)->problems.size(), 2);
    if (run == 0) journal.add(0x123, {.problems = {5}, .outcome = "differs"});
  }
}

TEST(MutationJournal, WithoutAFolderKeepsNothing) {
  {
    Journal("", "kernel").add(1, {.problems = {1}, .outcome = "differs"});
  }
  EXPECT_EQ(Journal("", "kernel").find(1), nullptr);
}

TEST(MutationJournal, AnotherFileIsNotOverwritten) {
  const ScratchDirectory folder;
  std::ofstream(folder.path() + "/kernel") << "something else\n";
  EXPECT_THROW(Journal(folder.path(), "kernel"), std::runtime_error);
}

}  // namespace
}  // namespace wavejit::tests
