// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit cache`: what it says of an empty, a whole and a damaged cache, to people and to programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CacheCommandTest : public ::testing::Test {
 protected:
  void fill(const std::string& targets = "gfx942,gfx950") {
    const Outcome outcome =
        run_program(scratch_, {"prebuild", "--target", targets, "attention_forward fp16 b1 q200 k1 h1 d64"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  std::string one_entry() const {
    for (const auto& found : std::filesystem::recursive_directory_iterator(scratch_ / "xdg")) {
      if (found.path().extension() == ".wavejit") return found.path();
    }
    ADD_FAILURE() << "no entry";
    return {};
  }

  ScratchDirectory scratch_;
};

TEST_F(CacheCommandTest, EmptyCacheIsWholeAndIsNotMade) {
  EXPECT_THAT(run_program(scratch_, {"cache", "list"}).out, HasSubstr("empty"));
  EXPECT_EQ(nlohmann::json::parse(run_program(scratch_, {"cache", "list", "--json"}).out), nlohmann::json::array());
  EXPECT_THAT(run_program(scratch_, {"cache", "info"}).out, HasSubstr("entries  0"));
  const Outcome verify = run_program(scratch_, {"cache", "verify"});
  EXPECT_EQ(verify.code, 0);
  EXPECT_THAT(verify.out, HasSubstr("0 entries, 0 damaged"));
  EXPECT_TRUE(scratch_.names().empty());
}

TEST_F(CacheCommandTest, ListsAndCountsWhatIsThere) {
  fill();
  const Outcome list = run_program(scratch_, {"cache", "list"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("attention_forward fp16 d64"));
  EXPECT_THAT(list.out, HasSubstr("gfx942"));
  EXPECT_THAT(list.out, HasSubstr("gfx950"));
  const auto json = nlohmann::json::parse(run_program(scratch_, {"cache", "list", "--json"}).out);
  ASSERT_EQ(json.size(), 2U);
  for (const auto& entry : json) {
    EXPECT_TRUE(entry.at("damage").is_null());
    EXPECT_EQ(entry.at("key").get<std::string>().size(), 64U);
    EXPECT_GT(entry.at("code_object_bytes").get<int>(), 1000);
    EXPECT_GT(entry.at("vgprs").get<int>(), 0);
    EXPECT_EQ(entry.at("file_bytes").get<std::uintmax_t>(),
              std::filesystem::file_size(entry.at("path").get<std::string>()));
  }
  const auto info = nlohmann::json::parse(run_program(scratch_, {"cache", "info", "--json"}).out);
  EXPECT_EQ(info.at("entries"), 2);
  EXPECT_EQ(info.at("damaged"), 0);
  EXPECT_EQ(info.at("targets").at("gfx950").at("entries"), 1);
  EXPECT_EQ(run_program(scratch_, {"cache", "verify"}).code, 0);
}

TEST_F(CacheCommandTest, AFlippedByteIsDamageAndIsHealedByTheNextBuild) {
  fill();
  const std::string path = one_entry();
  std::string bytes = read_text(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  write_text(path, bytes);

  const Outcome verify = run_program(scratch_, {"cache", "verify"});
  EXPECT_EQ(verify.code, 1);
  EXPECT_THAT(verify.out, HasSubstr("damaged  " + path));
  EXPECT_THAT(verify.out, HasSubstr("checksum"));
  EXPECT_THAT(verify.out, HasSubstr("2 entries, 1 damaged"));
  const Outcome verify_json = run_program(scratch_, {"cache", "verify", "--json"});
  EXPECT_EQ(verify_json.code, 1);
  EXPECT_EQ(nlohmann::json::parse(verify_json.out).at("damaged").at(0).at("path"), path);
  EXPECT_THAT(run_program(scratch_, {"cache", "list"}).out, HasSubstr("damaged: "));
  EXPECT_EQ(read_text(path), bytes) << "looking changes nothing";

  const Outcome again =
      run_program(scratch_, {"prebuild", "--target", "gfx942,gfx950", "attention_forward fp16 b1 q200 k1 h1 d64"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("1 compiled, 1 already there"));
  EXPECT_EQ(run_program(scratch_, {"cache", "verify"}).code, 0);
}

TEST_F(CacheCommandTest, ListSortsByAgeAndSize) {
  fill();
  // The older entry is made the larger one: each order has another entry first.
  const std::string first = one_entry();
  const auto listed = [&](const char* by) {
    const auto rows = nlohmann::json::parse(run_program(scratch_, {"cache", "list", "--json", "--sort", by}).out);
    std::vector<std::pair<std::string, std::int64_t>> order;
    for (const auto& row : rows) order.emplace_back(row.at("path"), row.at("file_bytes"));
    return order;
  };
  std::filesystem::last_write_time(first, std::filesystem::last_write_time(first) - std::chrono::hours(1));
  ASSERT_EQ(listed("age").size(), 2U);
  EXPECT_EQ(listed("age").back().first, first);
  std::filesystem::resize_file(first, 100'000);  // damaged, and still an entry
  EXPECT_EQ(listed("size").front().first, first);
  EXPECT_GT(listed("size").front().second, listed("size").back().second);
}

TEST_F(CacheCommandTest, AnotherDirectory) {
  fill();
  const std::string other = scratch_ / "other";
  std::filesystem::rename(scratch_ / "xdg/wavejit", other);
  EXPECT_THAT(run_program(scratch_, {"cache", "verify"}).out, HasSubstr("0 entries"));
  EXPECT_THAT(run_program(scratch_, {"cache", "verify", "--cache-dir", other}).out, HasSubstr("2 entries"));
  EXPECT_THAT(run_program(scratch_, {"cache", "verify"}, {{"WAVEJIT_CACHE_DIR", other}}).out, HasSubstr("2 entries"));
}

// A layer is never written: what is damaged there is told as such, with its reason, and counts nowhere.
TEST_F(CacheCommandTest, ACutArchiveIsTold) {
  fill();
  const std::string archive = scratch_ / "kernels.wavejit-archive";
  ASSERT_EQ(run_program(scratch_, {"cache", "pack", archive}).code, 0);
  write_text(archive, read_text(archive).substr(0, 5000));
  const Outcome verify = run_program(scratch_, {"cache", "verify", "--cache-layers", archive});
  EXPECT_EQ(verify.code, 1);
  EXPECT_THAT(verify.out, HasSubstr("3 entries, 1 damaged\nlayers are never written: put a whole copy"));
  const Outcome info = run_program(scratch_, {"cache", "info", "--cache-layers", archive});
  EXPECT_THAT(info.out, HasSubstr("entries  2\n"));
  EXPECT_THAT(info.out, HasSubstr("damaged  1\ngfx942 "));
  for (const auto& words : {std::vector<std::string>{"cache", "import", archive},
                            std::vector<std::string>{"cache", "unpack", archive, scratch_ / "unpacked"}}) {
    const Outcome outcome = run_program(scratch_, words);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.out, HasSubstr("damaged  " + archive + ": "));
    EXPECT_THAT(outcome.out, HasSubstr("cut short"));
  }
}

TEST_F(CacheCommandTest, AFolderThatIsNotThereIsNoGoodCache) {
  const Outcome outcome = run_program(scratch_, {"cache", "verify", "--cache-dir", scratch_ / "typo"});
  expect_one_line_error(outcome, 3);
  EXPECT_THAT(outcome.err, HasSubstr("--cache-dir " + (scratch_ / "typo") + ": there is no such folder"));
}

// A cache folder by a wrong name packs nothing over an archive that took hours to make.
// An archive is looked into by its name, wherever one stands; the cache of this machine does not show.
TEST_F(CacheCommandTest, AnArchiveOrAFolderIsLookedAtByItsName) {
  const std::string archive = scratch_ / "one.wavejit-archive";
  fill("gfx942");
  ASSERT_EQ(run_program(scratch_, {"cache", "pack", archive}).code, 0);
  ASSERT_EQ(run_program(scratch_, {"cache", "unpack", archive, scratch_ / "unpacked"}).code, 0);
  fill("gfx950");
  for (const std::string& place : {archive, scratch_ / "unpacked", scratch_ / "unpacked/"}) {
    const Outcome info = run_program(scratch_, {"cache", "info", place});
    EXPECT_EQ(info.code, 0) << info.err;
    EXPECT_THAT(info.out, HasSubstr("gfx942   1 entry"));
    EXPECT_THAT(info.out, Not(HasSubstr("gfx950")));
    EXPECT_THAT(run_program(scratch_, {"cache", "list", place}).out, HasSubstr("attention_forward"));
    EXPECT_THAT(run_program(scratch_, {"cache", "verify", place}).out, HasSubstr("1 entry, 0 damaged"));
    const Outcome stats = run_program(scratch_, {"cache", "stats", place});
    EXPECT_THAT(stats.out, HasSubstr(": 1 entry, "));
    EXPECT_EQ(std::ranges::count(stats.out, '\n'), 1) << stats.out;
  }
  // As a user types it: from where they stand. Layers too.
  const std::string relative = std::filesystem::relative(archive).string();
  EXPECT_THAT(run_program(scratch_, {"cache", "info", relative}).out, HasSubstr("entries  1"));
  EXPECT_THAT(run_program(scratch_, {"cache", "info", "--cache-layers", relative}).out, HasSubstr("entries  3"));
  const Outcome missing = run_program(scratch_, {"cache", "info", scratch_ / "none"});
  expect_one_line_error(missing, 3);
  EXPECT_THAT(missing.err, HasSubstr("there is no such archive or folder"));
}

TEST_F(CacheCommandTest, AFileIsNoFolderOfACache) {
  write_text(scratch_ / "q.npy", "no cache");
  for (const char* command : {"list", "info", "stats", "verify"}) {
    const Outcome outcome = run_program(scratch_, {"cache", command, "--cache-dir", scratch_ / "q.npy"});
    expect_one_line_error(outcome, 3);
    EXPECT_THAT(outcome.err, HasSubstr("it is a file; a folder is accepted"));
    expect_one_line_error(run_program(scratch_, {"cache", command, "--cache-dir", scratch_ / "typo"}), 3);
  }
}

// Not in the words of the C interface.
TEST_F(CacheCommandTest, WhatIsNotThereIsNotCopied) {
  const Outcome outcome = run_program(scratch_, {"cache", "unpack", scratch_ / "nofile", scratch_ / "out"});
  expect_one_line_error(outcome, 3);
  EXPECT_THAT(outcome.err, HasSubstr("wavejit cache unpack: " + (scratch_ / "nofile") + ": there is no such archive"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "out"));
}

TEST_F(CacheCommandTest, NothingToPackLeavesTheArchiveAlone) {
  fill();
  const std::string archive = scratch_ / "kernels.wavejit-archive";
  ASSERT_EQ(run_program(scratch_, {"cache", "pack", archive}).code, 0);
  const std::string packed = read_text(archive);

  const std::string typo = scratch_ / "typo";
  const Outcome no_folder = run_program(scratch_, {"cache", "pack", archive, "--cache-dir", typo});
  expect_one_line_error(no_folder, 3);
  EXPECT_THAT(no_folder.err, HasSubstr(typo + "\": there is no such folder"));
  expect_one_line_error(run_program(scratch_, {"cache", "pack", archive}, {{"WAVEJIT_CACHE_DIR", typo}}), 3);
  expect_one_line_error(run_program(scratch_, {"cache", "export", scratch_ / "layer", "--cache-dir", typo}), 3);

  std::filesystem::create_directory(typo);
  std::filesystem::permissions(typo, std::filesystem::perms::owner_all);
  const Outcome no_entry = run_program(scratch_, {"cache", "pack", archive, "--cache-dir", typo});
  expect_one_line_error(no_entry, 3);
  EXPECT_THAT(no_entry.err, HasSubstr("there is nothing to pack"));
  const Outcome no_target = run_program(scratch_, {"cache", "pack", archive, "--target", "gfx1250"});
  expect_one_line_error(no_target, 3);
  EXPECT_EQ(read_text(archive), packed);
  EXPECT_EQ(scratch_.names().size(), 3U) << "xdg, the archive and the empty folder: nothing half is left";

  const Outcome of_layers = run_program(scratch_, {"cache", "pack", scratch_ / "again", "--cache-layers", archive},
                                        {{"XDG_CACHE_HOME", scratch_ / "nothing"}});
  EXPECT_EQ(of_layers.code, 0) << of_layers.err;
  EXPECT_TRUE(read_text(scratch_ / "again") == packed);  // megabytes would be printed
}

// pack, a layer, unpack, import, export: the same kernels everywhere, and a sealed folder is enough to run.
TEST_F(CacheCommandTest, ArchivesAndFoldersTravel) {
  fill();
  const std::string archive = scratch_ / "kernels.wavejit-archive";
  const Outcome pack = run_program(scratch_, {"cache", "pack", archive});
  ASSERT_EQ(pack.code, 0) << pack.err;
  EXPECT_THAT(pack.out, HasSubstr("2 entries copied"));
  const std::string packed = read_text(archive);
  ASSERT_EQ(run_program(scratch_, {"cache", "pack", archive}).code, 0);
  EXPECT_EQ(read_text(archive), packed) << "the same entries give the same bytes";

  // As a layer over an empty folder.
  const std::string empty = scratch_ / "empty";
  const std::vector<std::string> as_layer = {"--cache-dir", empty, "--cache-layers", archive};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Outcome prebuilt = run_program(
      scratch_, with({"prebuild", "--target", "gfx942,gfx950", "attention_forward fp16 b1 q200 k1 h1 d64"}, as_layer));
  EXPECT_THAT(prebuilt.out, HasSubstr("0 compiled, 2 already there"));
  EXPECT_FALSE(std::filesystem::exists(empty));
  const auto stats = nlohmann::json::parse(run_program(scratch_, with({"cache", "stats", "--json"}, as_layer)).out);
  ASSERT_EQ(stats.size(), 2U);
  EXPECT_EQ(stats.at(0).at("path"), archive);
  EXPECT_EQ(stats.at(0).at("entries"), 2);
  EXPECT_EQ(stats.at(0).at("writable"), false);
  EXPECT_EQ(stats.at(1).at("entries"), 0);
  EXPECT_EQ(stats.at(1).at("limit_bytes"), std::uint64_t{1} << 30U);
  EXPECT_THAT(run_program(scratch_, with({"cache", "list"}, as_layer)).out, HasSubstr("gfx942"));

  const std::string unpacked = scratch_ / "unpacked";
  EXPECT_EQ(run_program(scratch_, {"cache", "unpack", archive, unpacked}).code, 0);
  EXPECT_THAT(run_program(scratch_, {"cache", "verify", "--cache-dir", unpacked}).out,
              HasSubstr("2 entries, 0 damaged"));
  const std::string exported = scratch_ / "exported";
  EXPECT_THAT(run_program(scratch_, {"cache", "export", exported, "--target", "gfx950"}).out,
              HasSubstr("1 entry copied"));
  const Outcome import =
      run_program(scratch_, {"cache", "import", exported, "--cache-dir", scratch_ / "mine", "--json"});
  EXPECT_EQ(nlohmann::json::parse(import.out).at("copied"), 1);
  EXPECT_THAT(run_program(scratch_, {"cache", "import", archive, "--cache-dir", scratch_ / "mine"}).out,
              HasSubstr("1 entry copied"));
  EXPECT_THAT(run_program(scratch_, {"cache", "import", archive, "--cache-dir", scratch_ / "mine"}).out,
              HasSubstr("0 entries copied"));
}

TEST_F(CacheCommandTest, DamageIsLeftBehindAndSaidByTheExitCode) {
  fill();
  std::filesystem::resize_file(one_entry(), 100);
  const std::string archive = scratch_ / "a";
  const Outcome pack = run_program(scratch_, {"cache", "pack", archive});
  EXPECT_EQ(pack.code, 1);
  EXPECT_THAT(pack.out, HasSubstr("1 entry copied"));
  EXPECT_THAT(pack.out, HasSubstr("1 damaged and left behind"));
  std::filesystem::resize_file(archive, std::filesystem::file_size(archive) - 1);
  const Outcome verify =
      run_program(scratch_, {"cache", "verify", "--cache-layers", archive, "--cache-dir", scratch_ / "b"});
  EXPECT_EQ(verify.code, 1);
  EXPECT_THAT(verify.out, HasSubstr("cut short"));
}

TEST_F(CacheCommandTest, CollectKeepsTheLimit) {
  fill();
  for (const char* limit : {"1GiB", "none"}) {
    const Outcome nothing = run_program(scratch_, {"cache", "gc", "--cache-limit", limit, "--any-age"});
    EXPECT_EQ(nothing.code, 0) << nothing.err;
    EXPECT_THAT(nothing.out, HasSubstr("0 entries evicted"));
  }
  // More than the smallest limit, as large kernels are.
  std::filesystem::resize_file(one_entry(), 1'500'000);
  EXPECT_THAT(run_program(scratch_, {"cache", "gc", "--cache-limit", "1MiB"}).out, HasSubstr("0 entries evicted"))
      << "just published";
  const Outcome gc = run_program(scratch_, {"cache", "gc", "--cache-limit", "1MiB", "--any-age", "--json"});
  EXPECT_EQ(gc.code, 0) << gc.err;
  EXPECT_GE(nlohmann::json::parse(gc.out).at("evicted"), 1);
}

TEST_F(CacheCommandTest, WrongRequestsAreRefusedWithWhatIsAccepted) {
  expect_one_line_error(run_program(scratch_, {"cache", "import", scratch_ / "nowhere"}), 3);
  expect_one_line_error(run_program(scratch_, {"cache", "gc", "--cache-limit", "12"}), 2);
  expect_one_line_error(run_program(scratch_, {"cache", "gc", "--cache", "ro"}), 2);
  expect_one_line_error(run_program(scratch_, {"cache", "pack", scratch_ / "a", "--target", "gfx 950"}), 2);
  expect_one_line_error(run_program(scratch_, {"cache", "pack", "/proc/no/such/a"}), 3);
  expect_one_line_error(run_program(scratch_, {"cache", "stats", "--cache-layers", "a\nb"}), 2);
  fill();
  expect_one_line_error(run_program(scratch_, {"cache", "export", "/proc/no/such"}), 3);
}

}  // namespace
}  // namespace wavejit::tools
