// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wavejit tune, as a user starts it.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

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
  const std::vector<std::string> toggles = {"tune",   tiny,           "--target",
                                            "gfx950", "--parameters", "pipeline,stagger,setprio"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = toggles;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  const Outcome tuned = with({"--json", "--output", path("defaults.inc"), "--rows", path("rows.jsonl"), "--jobs", "2"});
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
  const Outcome again = with({"--json", "--rows", path("rows.jsonl"), "--check", path("defaults.inc")});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(again.err.contains("7 of 7 trials")) << again.err;
  EXPECT_EQ(again.out, tuned.out);

  // A run that was interrupted after three trials does the other four.
  const std::string rows = read_text(path("rows.jsonl"));
  std::size_t end = 0;
  for (int i = 0; i < 3; ++i) end = rows.find('\n', end) + 1;
  write_text(path("part.jsonl"), rows.substr(0, end));
  const Outcome rest = with({"--json", "--rows", path("part.jsonl")});
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_TRUE(rest.err.contains("3 of 7 trials")) << rest.err;
  EXPECT_EQ(rest.out, tuned.out);

  // What the trials contradict is told.
  std::string wrong = file;
  wrong.replace(wrong.find("Pipeline::"), wrong.size(), "Pipeline::none},\n");
  write_text(path("wrong.inc"), wrong);
  const Outcome differs = with({"--rows", path("rows.jsonl"), "--check", path("wrong.inc")});
  EXPECT_EQ(differs.code, 1);
  EXPECT_TRUE(differs.err.contains("queries of more rows")) << differs.err;
}

// Every ladder of the default pipeline, each a kernel of its own that ran.
TEST_F(Tune, TriesEveryLadderOfThePipeline) {
  const Outcome tuned =
      run_program({"tune", "attention_forward bf16 b1 q128 k192 h2 d64", "--target", "gfx942", "--parameters", "ladder",
                   "--json", "--jobs", "2", "--output", path("defaults.inc")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const Json report = Json::parse(tuned.out);
  std::set<std::string> kernels;
  for (const Json& trial : report.at("trials")) {
    const std::string candidate = trial.at("candidate");
    ASSERT_TRUE(trial.contains("cycles")) << trial;
    const std::string kernel = trial.at("kernel");
    EXPECT_TRUE(kernels.insert(kernel).second) << "twice: " << kernel;
    EXPECT_EQ(kernel.contains(" ladder="), candidate != "default") << kernel;
    if (candidate != "default") {
      EXPECT_TRUE(kernel.contains(" " + candidate + " ")) << candidate << ": " << kernel;
    }
  }
  const std::string listed = run_program({"tune", "--list-parameters", "--target", "gfx942"}).out;
  const std::string ladders = listed.substr(listed.find("ladder:"), listed.find("stagger:") - listed.find("ladder:"));
  EXPECT_EQ(std::ranges::count(ladders, '\n') - 2, std::ssize(kernels)) << "a line each behind two of heading\n"
                                                                        << ladders;
  const Json& decision = report.at("decisions").at(0);
  EXPECT_EQ(decision.at("scores").size(), kernels.size());
  EXPECT_EQ(decision.at("tile_queries"), 128);
  const std::string ladder = decision.at("ladder");
  EXPECT_TRUE(read_text(path("defaults.inc"))
                  .contains("{\"gfx942\", QueryRows::up_to_255, Pipeline::interleaved, 128, \"" + ladder + "\"},"))
      << read_text(path("defaults.inc"));
}

TEST_F(Tune, TriesEveryTileOfEachPipeline) {
  const Outcome tuned = run_program({"tune", "attention_forward bf16 b1 q32 k128 h2 d64", "--target", "gfx950",
                                     "--parameters", "pipeline,tile_queries", "--json", "--jobs", "2"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  std::set<std::string> seen;
  for (const Json& trial : Json::parse(tuned.out).at("trials")) {
    const std::string kernel = trial.value("kernel", std::string("refused"));
    const std::size_t at = kernel.find("pipeline=");
    seen.insert(trial.at("candidate").get<std::string>() + ": " +
                (at == std::string::npos ? kernel : kernel.substr(at, kernel.find(" o_store") - at)));
  }
  const std::set<std::string> wanted = {"default: pipeline=generic tile=32x64",
                                        "pipeline=generic: pipeline=generic tile=32x64",
                                        "pipeline=generic tile_queries=64: pipeline=generic tile=64x64",
                                        "pipeline=generic tile_queries=128: pipeline=generic tile=128x64",
                                        "pipeline=dualwave: pipeline=dualwave tile=256x64",
                                        "pipeline=interleaved: refused"};
  EXPECT_EQ(seen, wanted);
}

// Keys of a workgroup, by how many workgroups there are; of few, two waves share theirs on the target that can.
TEST_F(Tune, TriesEveryTileOfGradients) {
  const std::string few = "attention_backward bf16 b1 q128 k128 h1 d64";
  const Outcome tuned = run_program(
      {"tune", few, "--target", "gfx950", "--margin", "0", "--json", "--jobs", "2", "--output", path("defaults.inc")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const Json report = Json::parse(tuned.out);
  std::set<std::string> candidates;
  for (const Json& trial : report.at("trials")) {
    candidates.insert(trial.at("candidate").get<std::string>());
    EXPECT_GT(trial.at("cycles").get<std::uint64_t>(), 0U) << trial;
  }
  EXPECT_EQ(candidates, (std::set<std::string>{"default", "tile_queries=128", "tile_queries=256"}));
  const Json& decision = report.at("decisions").at(0);
  EXPECT_EQ(decision.at("workgroups"), "few");
  EXPECT_EQ(decision.at("default_tile_queries"), 64);
  const int best = decision.at("tile_queries");
  EXPECT_TRUE(read_text(path("defaults.inc")).contains("{\"gfx950\", Grid::few, " + std::to_string(best) + "},"))
      << read_text(path("defaults.inc"));
  // A line of another family has another table.
  const Outcome mixed = run_program({"tune", tiny, few, "--target", "gfx950"});
  EXPECT_EQ(mixed.code, 2);
  EXPECT_TRUE(mixed.err.contains("another family than")) << mixed.err;
}

// Rows of a workgroup, by the rows of a sequence.
TEST_F(Tune, TriesEveryTileOfLatentAttention) {
  const Outcome tuned = run_program({"tune", "attention_latent bf16 b1 q1 k70 h4 d576/512",
                                     "attention_latent bf16 b1 q3 k70 h12 d576/512", "--target", "gfx950", "--margin",
                                     "0", "--json", "--jobs", "2", "--output", path("defaults.inc")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const Json report = Json::parse(tuned.out);
  std::set<std::string> seen;
  for (const Json& trial : report.at("trials")) {
    EXPECT_GT(trial.at("cycles").get<std::uint64_t>(), 0U) << trial;
    const std::string kernel = trial.at("kernel");
    seen.insert(trial.at("candidate").get<std::string>() + ": " + kernel.substr(kernel.find("rows="), 7));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"default: rows=32", "tile_queries=64: rows=64", "default: rows=64",
                                         "tile_queries=32: rows=32"}));
  const std::string table = read_text(path("defaults.inc"));
  for (const Json& decision : report.at("decisions"))
    EXPECT_TRUE(table.contains("{\"gfx950\", RowCount::" + decision.at("sequence_rows").get<std::string>() +
                               ", Rows::r" + std::to_string(decision.at("tile_queries").get<int>()) + "},"))
        << table;
  EXPECT_EQ(report.at("decisions").size(), 2U);
}

// Rows of the indexer that share their keys, and rows that do not.
TEST_F(Tune, TriesWhetherRowsOfTheIndexerShareKeys) {
  const Outcome tuned =
      run_program({"tune", "sparse_indexer bf16 b1 q1 k70 h8", "sparse_indexer bf16 b1 q5 k70 h8 top=9", "--target",
                   "gfx942", "--margin", "0", "--json", "--jobs", "2", "--output", path("defaults.inc")});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const Json report = Json::parse(tuned.out);
  std::set<std::string> seen;
  for (const Json& trial : report.at("trials")) {
    EXPECT_GT(trial.at("cycles").get<std::uint64_t>(), 0U) << trial;
    const bool shared = trial.at("kernel").get<std::string>().contains(" shared ");
    seen.insert(trial.at("candidate").get<std::string>() + (shared ? ": shared" : ": own"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"default: own", "tile_queries=4: shared", "default: shared",
                                         "tile_queries=1: own"}));
  const std::string table = read_text(path("defaults.inc"));
  for (const Json& decision : report.at("decisions"))
    EXPECT_TRUE(table.contains("{\"gfx942\", RowCount::" + decision.at("sequence_rows").get<std::string>() +
                               (decision.at("tile_queries") == 4 ? ", true}," : ", false},")))
        << table;
  EXPECT_EQ(report.at("decisions").size(), 2U);
}

// Kernels over 8 bits have the rows that others have, and share their table.
TEST_F(Tune, TriesTilesOver8Bits) {
  const Outcome tuned = run_program({"tune", "attention_forward bf16 b1 q64 k128 h2 d64 cache=e4m3 cache_scales=h",
                                     "--target", "gfx950", "--parameters", "tile_queries", "--json"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  const Json report = Json::parse(tuned.out);
  std::set<std::string> kernels;
  for (const Json& trial : report.at("trials")) {
    if (trial.contains("kernel")) kernels.insert(trial.at("kernel"));
  }
  EXPECT_GE(kernels.size(), 3U) << tuned.out;
  for (const std::string& kernel : kernels) EXPECT_TRUE(kernel.contains(" cache=e4m3 ")) << kernel;
  ASSERT_EQ(report.at("decisions").size(), 1U);
  EXPECT_EQ(report.at("decisions")[0].at("query_rows"), "up_to_64");
}

TEST_F(Tune, SaysWhatCanVary) {
  const Outcome listed = run_program({"tune", "--list-parameters"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  for (const char* line : {"pipeline: ", "  gfx942 interleaved\n", "  gfx950 dualwave\n",
                           "  gfx950 generic: 32, 64, 128\n", "  gfx942 interleaved: 128\n", "  gfx950 dualwave: 256\n",
                           "      standard ", "      fetch_last ", "  gfx950 dualwave: on, off\n",
                           "xcd_swizzle: ", "attention_backward\ntile_queries: ", "  gfx950: 64, 128, 256\n",
                           "attention_latent\ntile_queries: ", "  gfx942: 32, 64\n",
                           "sparse_indexer\ntile_queries: ", "  gfx950: 1, 4\n"}) {
    EXPECT_TRUE(listed.out.contains(line)) << line << listed.out;
  }
  EXPECT_FALSE(listed.out.contains("gfx950 interleaved")) << listed.out;
  EXPECT_FALSE(run_program({"tune", "--list-parameters", "--target", "gfx942"}).out.contains("gfx950"));
}

TEST_F(Tune, TellsWhatItCannotTake) {
  write_text(path("empty.txt"), "# nothing\n");
  write_text(path("bad.txt"), "attention_forward bf16 b1 q256 k256 h2 d64 upside_down\n");
  write_text(path("rows.jsonl"), "something else\n");
  const std::pair<std::vector<std::string>, std::pair<int, std::string>> cases[] = {
      {{"tune", tiny, "--parameters", "pipeline,colour"}, {2, "'colour' is no parameter"}},
      {{"tune", tiny, "--parameters", ""}, {2, "--parameters"}},
      {{"tune", "--list-parameters", "--target", "gfx9000"}, {2, "gfx9000"}},
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
