// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(OutputFileTest, AppearsAtCommitOnly) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "o.npy";
  auto file = OutputFile::open("out", path);
  ASSERT_TRUE(file) << file.error().what;
  ASSERT_TRUE(file->write("whole"));
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_text(path), "whole");
  EXPECT_THAT(scratch.names(), ElementsAre("o.npy"));
}

TEST(OutputFileTest, NothingIsLeftWithoutCommit) {
  const ScratchDirectory scratch;
  {
    auto file = OutputFile::open("out", scratch / "o.npy");
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("half"));
    const OutputFile moved = std::move(*file);
    EXPECT_EQ(scratch.names().size(), 1U);
  }
  EXPECT_THAT(scratch.names(), IsEmpty());
}

TEST(OutputFileTest, OldFileStaysUntilCommitAndKeepsItsPermissions) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "o.npy";
  write_text(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  {
    auto file = OutputFile::open("out", path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write("abandoned"));
  }
  EXPECT_EQ(read_text(path), "old");
  auto file = OutputFile::open("out", path);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("new"));
  ASSERT_TRUE(file->commit());
  EXPECT_EQ(read_text(path), "new");
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(OutputFileTest, SymbolicLinkIsFollowedNotReplaced) {
  const ScratchDirectory scratch;
  write_text(scratch / "real", "old");
  std::filesystem::create_symlink("real", scratch / "link");
  auto file = OutputFile::open("out", scratch / "link");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write("new"));
  ASSERT_TRUE(file->commit());
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
  EXPECT_EQ(read_text(scratch / "real"), "new");
}

TEST(OutputFileTest, WhatCannotBeWrittenIsToldAtOnce) {
  const ScratchDirectory scratch;
  for (const std::string& path :
       {std::string("/dev/null"), std::string(), scratch.path(), scratch / "new/", scratch / "missing/o.npy",
        scratch / std::string(300, 'n'), scratch / std::string(6000, 'n')}) {
    const auto file = OutputFile::open("out", path);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code, ExitCode::file);
    EXPECT_THAT(file.error().what, HasSubstr("--out " + path));
  }
  EXPECT_THAT(scratch.names(), IsEmpty());
  struct stat status{};
  ASSERT_EQ(::stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST(OutputFileTest, InterruptLeavesNothing) {
  const ScratchDirectory scratch;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto out = OutputFile::open("out", scratch / "o.npy");
    auto lse = OutputFile::open("lse", scratch / "l.npy");
    if (!out || !lse || !out->write("half") || !lse->write("half")) ::_exit(1);
    ::raise(SIGINT);
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  EXPECT_THAT(scratch.names(), IsEmpty());
}

}  // namespace
}  // namespace wavejit::tools
