// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The file that gains rows: each is there as soon as it was written, and only whole ones.
#include "tools/row_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

TEST(RowFileTest, RowsAreThereAtOnce) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "rows.csv";
  write_text(path, "of an earlier run\n");
  auto rows = RowFile::open("csv", path);
  ASSERT_TRUE(rows) << rows.error().what;
  EXPECT_EQ(read_text(path), "");
  ASSERT_TRUE(rows->write("a,b\n"));
  EXPECT_EQ(read_text(path), "a,b\n");
  RowFile moved = std::move(*rows);
  ASSERT_TRUE(moved.write("1,2\n"));
  EXPECT_EQ(read_text(path), "a,b\n1,2\n");
}

TEST(RowFileTest, OnlyRegularFilesAreAccepted) {
  const ScratchDirectory scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  for (const std::string& path : {scratch.path(), scratch / "pipe", std::string("/dev/full")}) {
    const auto rows = RowFile::open("csv", path);
    ASSERT_FALSE(rows) << path;
    EXPECT_EQ(rows.error().code, ExitCode::file);
    EXPECT_THAT(rows.error().what, HasSubstr("--csv " + path + ": it is a folder, device or pipe"));
  }
  const auto nowhere = RowFile::open("csv", scratch / "no/such/folder");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().what, HasSubstr("cannot write to it: No such file or directory"));
}

// A disk that is full in the middle of a row: a limit on the size of files of this process stands for it.
TEST(RowFileTest, HalfARowIsTakenBack) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "rows.csv";
  auto rows = RowFile::open("csv", path);
  ASSERT_TRUE(rows);
  ASSERT_TRUE(rows->write("whole\n"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  void (*const handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 10, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto cut = rows->write("more than ten bytes\n");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().what, HasSubstr("cannot write: File too large"));
  EXPECT_EQ(read_text(path), "whole\n");
}

}  // namespace
}  // namespace wavejit::tools
