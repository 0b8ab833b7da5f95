// `wavejit cache`: what it says of an empty, a whole and a damaged cache, to people and to programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;

class CacheCommandTest : public ::testing::Test {
 protected:
  void fill() {
    const Outcome outcome =
        run_program(scratch_, {"prebuild", "--target", "gfx942,gfx950", "attention_forward fp16 b1 q1 k1 h1 d64"});
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
      run_program(scratch_, {"prebuild", "--target", "gfx942,gfx950", "attention_forward fp16 b1 q1 k1 h1 d64"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("1 compiled, 1 already there"));
  EXPECT_EQ(run_program(scratch_, {"cache", "verify"}).code, 0);
}

TEST_F(CacheCommandTest, AnotherDirectory) {
  fill();
  const std::string other = scratch_ / "other";
  std::filesystem::rename(scratch_ / "xdg/wavejit", other);
  EXPECT_THAT(run_program(scratch_, {"cache", "verify"}).out, HasSubstr("0 entries"));
  EXPECT_THAT(run_program(scratch_, {"cache", "verify", "--cache-dir", other}).out, HasSubstr("2 entries"));
  EXPECT_THAT(run_program(scratch_, {"cache", "verify"}, {{"WAVEJIT_CACHE_DIR", other}}).out, HasSubstr("2 entries"));
}

}  // namespace
}  // namespace wavejit::tools
