// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// prebuild for lists: lines that lead nowhere, parts for several machines, folders and archives as output.
#include "runtime/offline/prebuild.h"

#include <fstream>
#include <map>
#include <set>

#include "runtime_fixture.h"

namespace wavejit::tests {
namespace {

using runtime::PrebuildMode;
using runtime::PrebuildProgress;
using runtime::PrebuildRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* causal = "attention_forward fp16 b2 q255 k512 h8/2 d128 causal";
constexpr const char* plain = "attention_forward fp16 b2 q255 k512 h8/2 d128";

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PrebuildTest : public RuntimeTest {
 protected:
  runtime::Result<void> run(const PrebuildRequest& request) {
    specs_.clear();
    refused_.clear();
    return runtime::prebuild(config_, request, *codegen_, [&](const PrebuildProgress& progress) {
      last_ = progress;
      if (progress.kernel_spec != nullptr) specs_.insert(*progress.kernel_spec);
      if (progress.descriptor != nullptr) {
        refused_.push_back(std::to_string(progress.line) + (progress.target != nullptr ? " " + *progress.target : "") +
                           ": " + *progress.failure);
      }
    });
  }
  static std::string failure_of(const runtime::Result<void>& outcome) {
    return outcome ? std::string("it ran") : outcome.error().detail;
  }
  PrebuildRequest to_archive(std::vector<std::string> lines) const {
    return {.descriptors = std::move(lines),
            .targets = "gfx950",
            .whole = false,
            .output = elsewhere_.path() + "/out",
            .archive = true};
  }

  ScratchDirectory elsewhere_;
  std::set<std::string> specs_;
  std::vector<std::string> refused_;
  PrebuildProgress last_;
};

TEST_F(PrebuildTest, LinesWithoutAKernelAreToldAndTheOthersBuilt) {
  const auto outcome = run({.descriptors = {plain, "attention_forward fp16 b1 q1 k1 h1 d64 slanted",
                                            "attention_forward fp16 b1 q1 k1 h1 d256 cache=e4m3", causal},
                            .targets = "gfx942,gfx950",
                            .whole = false});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().status, WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(outcome.error().detail, HasSubstr("descriptors[1]: "));
  EXPECT_THAT(refused_, ElementsAre(HasSubstr("1: descriptor: word 8 'slanted'"), HasSubstr("2 gfx942: ")));
  EXPECT_EQ(last_.refused, 2U);
  EXPECT_EQ(last_.compiled, 5U) << "two lines on two targets, one on one";
  EXPECT_EQ(cache_files().size(), 5U);
}

TEST_F(PrebuildTest, PartsShareNothingAndAreTogetherAll) {
  ASSERT_TRUE(run({.descriptors = {}, .everything = true, .targets = "gfx942,gfx950"}));
  const std::set<std::string> all = specs_;
  for (const int shards : {1, 2, 3, 7}) {
    std::set<std::string> together;
    std::size_t sum = 0;
    for (int shard = 1; shard <= shards; ++shard) {
      ASSERT_TRUE(
          run({.descriptors = {}, .everything = true, .targets = "gfx942,gfx950", .shard = shard, .shards = shards}));
      sum += specs_.size();
      together.insert(specs_.begin(), specs_.end());
      EXPECT_LT(specs_.size(), 2 * all.size() / shards + 8) << "a part is about its share";
    }
    EXPECT_EQ(sum, all.size());
    EXPECT_EQ(together, all);
  }
}

// Whoever has another list still agrees on whose kernel it is.
TEST_F(PrebuildTest, AKernelIsInTheSamePartOfEveryList) {
  std::map<std::string, int> part_of;
  for (int shard = 1; shard <= 3; ++shard) {
    ASSERT_TRUE(run({.descriptors = {}, .everything = true, .targets = "gfx950", .shard = shard, .shards = 3}));
    for (const std::string& spec : specs_) part_of[spec] = shard;
  }
  for (const char* line : {plain, causal}) {
    for (int shard = 1; shard <= 3; ++shard) {
      ASSERT_TRUE(run({.descriptors = {line}, .targets = "gfx950", .shard = shard, .shards = 3}));
      for (const std::string& spec : specs_) EXPECT_EQ(part_of.at(spec), shard);
    }
  }
}

TEST_F(PrebuildTest, PartsThatAreNoneAreRefused) {
  for (const auto& [shard, shards] : {std::pair{0, 3}, {4, 3}, {1, 0}, {-1, -1}, {1, 1'000'001}}) {
    EXPECT_THAT(failure_of(run({.descriptors = {plain}, .targets = "gfx950", .shard = shard, .shards = shards})),
                HasSubstr("shard = " + std::to_string(shard)));
  }
  EXPECT_EQ(fake_codegen().compiles, 0U);
}

TEST_F(PrebuildTest, AFolderTakesWhatTheCacheHasAndCompilesTheRest) {
  ASSERT_TRUE(run({.descriptors = {plain}, .targets = "gfx950"}));
  const std::string folder = elsewhere_.path() + "/layer";
  const PrebuildRequest request{.descriptors = {plain, causal}, .targets = "gfx950", .output = folder};
  ASSERT_TRUE(run(request));
  EXPECT_EQ(last_.copied, 1U);
  EXPECT_EQ(last_.compiled, 1U);
  EXPECT_EQ(fake_codegen().compiles, 2U);
  ASSERT_TRUE(run(request));
  EXPECT_EQ(last_.present, 2U);
  // It serves as a layer.
  config_.cache_mode.value = cache::Mode::read_only;
  config_.cache_directory.value = elsewhere_.path() + "/nothing";
  config_.cache_layers.value = {folder};
  auto call = good_call();
  const auto engine = make_engine();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(statistics_of(*engine).disk_hits, 1U);
}

TEST_F(PrebuildTest, AnArchiveHoldsTheListAndNothingElse) {
  ASSERT_TRUE(run({.descriptors = {"attention_forward bf16 b1 q1 k1 h1 d64"}, .targets = "gfx950"}));
  ASSERT_TRUE(run(to_archive({plain, causal, plain})));
  const std::string first = bytes_of(elsewhere_.path() + "/out");
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(fake_codegen().compiles, 4U);
  ASSERT_TRUE(run(to_archive({causal, plain})));
  EXPECT_EQ(fake_codegen().compiles, 4U) << "the cache has them";
  EXPECT_EQ(bytes_of(elsewhere_.path() + "/out"), first) << "the order of lines does not show";
  config_.cache_directory.value = elsewhere_.path() + "/nothing";
  config_.cache_mode.value = cache::Mode::read_only;
  config_.cache_layers.value = {elsewhere_.path() + "/out"};
  const auto engine = make_engine();
  auto call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(statistics_of(*engine).disk_hits, 2U);
}

TEST_F(PrebuildTest, AnArchiveIsWrittenWholeOrNotAtAll) {
  ASSERT_TRUE(run(to_archive({plain})));
  const std::string before = bytes_of(elsewhere_.path() + "/out");
  // A line that leads nowhere.
  EXPECT_FALSE(run(to_archive({plain, causal, "attention_forward fp16 wide"})));
  EXPECT_EQ(last_.compiled, 1U) << "the other lines are built";
  EXPECT_EQ(bytes_of(elsewhere_.path() + "/out"), before);
  // A compile that fails.
  fake_codegen().status = WAVEJIT_CODEGEN_CRASHED;
  const auto failed = run(to_archive({plain, "attention_forward bf16 b1 q1 k1 h1 d64"}));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().status, WAVEJIT_COMPILE_FAILED);
  EXPECT_EQ(bytes_of(elsewhere_.path() + "/out"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(elsewhere_.path()), {}), 1) << "nothing else is left";
}

TEST_F(PrebuildTest, OutputsThatCannotBeWritten) {
  config_.log_level.value = runtime::LogLevel::off;
  auto archive = to_archive({plain});
  archive.output = "/proc/no/such/place";
  const auto unwritten = run(archive);
  ASSERT_FALSE(unwritten);
  EXPECT_EQ(unwritten.error().status, WAVEJIT_IO_ERROR);
  EXPECT_THAT(unwritten.error().detail, HasSubstr("output = /proc/no/such/place"));
  const auto folder = run({.descriptors = {plain}, .targets = "gfx950", .output = "/proc/no/such/place"});
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().status, WAVEJIT_IO_ERROR) << "the disk failed, not the compiler";
  archive.output.reset();
  EXPECT_THAT(failure_of(run(archive)), HasSubstr("an archive needs a name"));
  archive.output = "";
  EXPECT_THAT(failure_of(run(archive)), HasSubstr("output = \"\""));
  config_.cache_mode.value = cache::Mode::read_only;
  EXPECT_THAT(failure_of(run(to_archive({plain}))), HasSubstr("cache_mode = ro"));
}

// On a worker's thread an exception would end the process.
TEST_F(PrebuildTest, ACallbackThatThrowsStopsNothing) {
  config_.log_level.value = runtime::LogLevel::off;
  const PrebuildRequest request{.descriptors = {plain, causal, "attention_forward fp16 wide"},
                                .targets = "gfx942,gfx950",
                                .jobs = 4,
                                .whole = false};
  const auto outcome = runtime::prebuild(config_, request, *codegen_,
                                         [](const PrebuildProgress&) { throw std::runtime_error("of the host"); });
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().detail, HasSubstr("descriptors[2]")) << "the line's failure, not the callback's";
  EXPECT_EQ(cache_files().size(), 4U);
}

TEST_F(PrebuildTest, ALineWithARangeIsAllItsClassesOfLength) {
  ASSERT_TRUE(run({.descriptors = {"attention_forward bf16 b1 q1..4096 k1 h1 d64"}, .targets = "gfx950"}));
  const std::uint64_t all = last_.total;
  EXPECT_GE(all, 3U);
  std::vector<std::string> lines;
  for (const int queries : {1, 33, 65, 256, 4096})
    lines.push_back("attention_forward bf16 b1 q" + std::to_string(queries) + " k1 h1 d64");
  ASSERT_TRUE(run({.descriptors = lines, .targets = "gfx950"}));
  EXPECT_EQ(last_.present, all);
  EXPECT_EQ(last_.compiled, 0U);
}

TEST_F(PrebuildTest, VerifyCompilesAndWritesNothing) {
  config_.log_level.value = runtime::LogLevel::off;
  const PrebuildRequest verify{.descriptors = {plain}, .targets = "gfx950", .mode = PrebuildMode::verify};
  const auto missing = run(verify);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().status, WAVEJIT_NOT_FOUND);
  EXPECT_THAT(missing.error().detail, HasSubstr("not in " + directory_.path()));
  EXPECT_EQ(fake_codegen().compiles, 0U);
  EXPECT_THAT(cache_files(), IsEmpty());
  // The fake compiler's work passes every check of the cache and is no code object.
  ASSERT_TRUE(run({.descriptors = {plain}, .targets = "gfx950"}));
  EXPECT_THAT(failure_of(run(verify)), HasSubstr("code object: it is no ELF file"));
  config_.cache_mode.value = cache::Mode::off;
  EXPECT_THAT(failure_of(run(verify)), HasSubstr("there is no cache"));
}

}  // namespace
}  // namespace wavejit::tests
