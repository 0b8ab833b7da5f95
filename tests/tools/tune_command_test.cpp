// wavejit tune, as a user starts it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using Json = nlohmann::json;

const std::string tiny = "attention_forward bf16 b1 q256 k256 h2 d64";

class Tune : public ::testing::Test {
 protected:
  ScratchDirectory scratch_;
  std::string path(const std::string& name) const { return scratch_ / name; }
  Outcome run_program(const std::vector<std::string>& arguments) const {
    return tools::run_program(scratch_, arguments);
  }
};

TEST_F(Tune, TriesEveryCombinationAndWritesWhatWasFound) {
  const Outcome tuned = run_program({"tune", tiny, "--target", "gfx950", "--json", "--output", path("defaults.inc"),
                                     "--rows", path("rows.jsonl"), "--jobs", "2"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const Json report = Json::parse(tuned.out);
  EXPECT_EQ(report.at("trials").size(), 7U);  // the default, two plain pipelines, four of dualwave
  int ran = 0;
  for (const Json& trial : report.at("trials")) {
    EXPECT_TRUE(trial.at("predicted").get<bool>());
    if (trial.contains("cycles") && trial.at("cycles").get<std::uint64_t>() > 0) ++ran;
  }
  EXPECT_EQ(ran, 6);  // gfx950 has no interleaved
  ASSERT_EQ(report.at("decisions").size(), 1U);
  EXPECT_EQ(report.at("decisions")[0].at("query_rows"), "more");
  const std::string file = read_text(path("defaults.inc"));
  EXPECT_TRUE(file.contains("{\"gfx950\", QueryRows::more, Pipeline::")) << file;

  // The rows hold everything: nothing is run again, and the answer is the same.
  const Outcome again = run_program(
      {"tune", tiny, "--target", "gfx950", "--json", "--rows", path("rows.jsonl"), "--check", path("defaults.inc")});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(again.err.contains("7 of 7 trials")) << again.err;
  EXPECT_EQ(again.out, tuned.out);

  // A run that was interrupted after three trials does the other four.
  const std::string rows = read_text(path("rows.jsonl"));
  std::size_t end = 0;
  for (int i = 0; i < 3; ++i) end = rows.find('\n', end) + 1;
  write_text(path("part.jsonl"), rows.substr(0, end));
  const Outcome rest = run_program({"tune", tiny, "--target", "gfx950", "--json", "--rows", path("part.jsonl")});
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_TRUE(rest.err.contains("3 of 7 trials")) << rest.err;
  EXPECT_EQ(rest.out, tuned.out);

  // What the trials contradict is told.
  std::string wrong = file;
  wrong.replace(wrong.find("Pipeline::"), wrong.size(), "Pipeline::none},\n");
  write_text(path("wrong.inc"), wrong);
  const Outcome differs =
      run_program({"tune", tiny, "--target", "gfx950", "--rows", path("rows.jsonl"), "--check", path("wrong.inc")});
  EXPECT_EQ(differs.code, 1);
  EXPECT_TRUE(differs.err.contains("queries of more rows")) << differs.err;
}

TEST_F(Tune, TellsWhatItCannotTake) {
  write_text(path("empty.txt"), "# nothing\n");
  write_text(path("bad.txt"), "attention_forward bf16 b1 q256 k256 h2 d64 upside_down\n");
  write_text(path("rows.jsonl"), "something else\n");
  const std::pair<std::vector<std::string>, std::pair<int, std::string>> cases[] = {
      {{"tune", tiny, "--parameters", "pipeline,colour"}, {2, "'colour' is no parameter"}},
      {{"tune", tiny, "--parameters", ""}, {2, "--parameters"}},
      {{"tune"}, {2, "nothing to tune for"}},
      {{"tune", "--list", path("empty.txt")}, {2, "no descriptors"}},
      {{"tune", "--list", path("nowhere.txt")}, {3, "nowhere.txt"}},
      {{"tune", "--list", path("bad.txt")}, {2, "line 1"}},
      {{"tune", tiny, "--target", "gfx9000"}, {2, "gfx9000"}},
      {{"tune", tiny, "--margin", "lots"}, {2, "'lots' is not accepted"}},
      {{"tune", tiny, "--check", path("nowhere.inc")}, {3, "nowhere.inc"}},
      {{"tune", tiny, "--output", path("no/such/folder.inc")}, {3, "folder.inc"}},
      {{"tune", tiny, "--rows", path("rows.jsonl")}, {3, "line 1 is no row"}},
  };
  for (const auto& [arguments, expected] : cases) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.code, expected.first) << expected.second << ": " << outcome.err;
    EXPECT_TRUE(outcome.err.contains(expected.second)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(path("no")));
  EXPECT_EQ(read_text(path("rows.jsonl")), "something else\n");  // not ours: left as it is
}

}  // namespace
}  // namespace wavejit::tools
