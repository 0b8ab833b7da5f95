// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit supported` about models and GPUs: each kind of attention by a small config.json, what is refused, names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tool_test_support.h"
#include "tools/published_models.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Json = nlohmann::json;
using Words = std::vector<std::string>;

Outcome ask(const ScratchDirectory& scratch, const Json& config, const std::string& target, Words more = {}) {
  write_text(scratch / "config.json", config.dump());
  Words words = {"supported", "--model", scratch / "config.json"};
  if (!target.empty()) words.insert(words.end(), {"--target", target});
  words.insert(words.end(), more.begin(), more.end());
  return run_program(scratch, words);
}

Json qwen3() {
  return {{"model_type", "qwen3"}, {"num_attention_heads", 32}, {"num_key_value_heads", 8},
          {"head_dim", 128},       {"num_hidden_layers", 36},   {"max_position_embeddings", 40960}};
}
Json deepseek() {
  return {{"model_type", "deepseek_v3"}, {"num_attention_heads", 128}, {"max_position_embeddings", 163840}};
}

TEST(SupportedCommandTest, GroupedHeads) {
  const ScratchDirectory scratch;
  const Outcome outcome = ask(scratch, qwen3(), "mi325x");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("  qwen3, bf16: 32 heads, 8 kv heads, head dim 128, 40960 keys at most\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("\n\ngfx942 (MI325X)\n  bf16 KV cache: yes\n    attention_forward bf16 b64 q1..8192 "
                        "k0..40960 h32/8 d128 causal layout=paged:16   (full layers)\n      prefill  "
                        "interleaved 128x64, "));
  EXPECT_THAT(outcome.out, HasSubstr("\n      decode   generic 32x64, "));
  EXPECT_THAT(outcome.out, HasSubstr("\n    cache_append bf16 b1 q1 h8 d128 page=16   (full layers)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\n  fp8 KV cache: yes\n"));
  const Outcome ranks = ask(scratch, qwen3(), "mi325x", {"--tp", "8", "--page", "64"});
  EXPECT_EQ(ranks.code, 0) << ranks.err;
  EXPECT_THAT(ranks.out, HasSubstr(" h4/1 d128 causal layout=paged:64   (full layers)\n"));
  expect_one_line_error(ask(scratch, qwen3(), "mi325x", {"--tp", "3"}), 2);
  EXPECT_THAT(outcome.out, Not(HasSubstr("refused")));
}

// What a file leaves out is the class's, and is marked; calls that both kinds of layers make stand once.
TEST(SupportedCommandTest, WindowsInSomeLayersAndDefaults) {
  const ScratchDirectory scratch;
  const Json config = {{"model_type", "gemma3_text"}, {"hidden_size", 5376},       {"head_dim", 128},
                       {"num_attention_heads", 32},   {"num_key_value_heads", 16}, {"num_hidden_layers", 62},
                       {"sliding_window", 1024}};
  const Outcome outcome = ask(scratch, config, "rx 9070");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("head dim 128, 131072* keys at most\n"));
  EXPECT_THAT(outcome.out, HasSubstr("* is not in the file and comes from Gemma3TextConfig of transformers "));
  EXPECT_THAT(outcome.out, HasSubstr("gfx1201 (RX 9070)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("causal window=1023,0 layout=paged:16   (sliding layers)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("d128 causal layout=paged:16   (full layers)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("cache_append bf16 b1 q1 h16 d128 page=16   (sliding, full layers)\n"));
}

TEST(SupportedCommandTest, SinksAndSoftCaps) {
  const ScratchDirectory scratch;
  const Outcome sinks = ask(scratch, {{"model_type", "gpt_oss"}}, "mi355x");
  EXPECT_EQ(sinks.code, 0) << sinks.err;
  EXPECT_THAT(sinks.out, HasSubstr("causal window=127,0 layout=paged:16 sink   (sliding layers)\n"));
  // Gemma 2 9B: head dim 256 with a soft-cap. The code is that of what was asked for: one target, or all.
  const Json gemma = {{"model_type", "gemma2"}, {"num_attention_heads", 16}, {"num_key_value_heads", 8}};
  EXPECT_EQ(ask(scratch, gemma, "gfx950").code, 0);
  EXPECT_EQ(ask(scratch, gemma, "gfx942").code, 0);
  const Outcome refused = ask(scratch, gemma, "gfx1201");
  EXPECT_EQ(refused.code, 4);
  EXPECT_EQ(refused.err, "");
  EXPECT_THAT(refused.out, HasSubstr("bf16 KV cache: no: head dim 256 has no kernel on gfx1201\n"));
  EXPECT_THAT(refused.out, HasSubstr("softcap=50   (sliding layers)\n      refused  head dim 256 has no kernel"));
  EXPECT_THAT(refused.out, HasSubstr("use head dim 192/128, 128 or 64; reason: "));
  EXPECT_EQ(ask(scratch, gemma, "").code, 4) << "one of all targets lacks a call";
}

TEST(SupportedCommandTest, LatentAttentionAndItsIndexer) {
  const ScratchDirectory scratch;
  const Outcome dense = ask(scratch, deepseek(), "mi300a");
  EXPECT_EQ(dense.code, 0) << dense.err;
  EXPECT_THAT(dense.out, HasSubstr("\n    attention_latent bf16 b64 q1 k163840 h128 d576/512 layout=paged:16   (full "
                                   "layers)\n      decode   tiles of "));
  EXPECT_THAT(dense.out, Not(HasSubstr("sparse_indexer")));
  Json sparse = deepseek();
  sparse["model_type"] = "deepseek_v32";
  const Outcome lists = ask(scratch, sparse, "gfx950");
  EXPECT_EQ(lists.code, 0) << lists.err;
  EXPECT_THAT(lists.out, HasSubstr("\n    sparse_indexer bf16 b64 q1 k163840 h64 page=16 top=2048   (full layers)\n"));
  const Outcome none = ask(scratch, deepseek(), "r9700");
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.out, HasSubstr("gfx1201 (Radeon AI PRO R9700)\n  bf16 KV cache: no: attention_latent has no kernels "
                                  "for gfx1201\n"));
}

// Full layers of Gemma 4 have no kernel, the others have; linear layers are nobody's call here.
TEST(SupportedCommandTest, PartOfTheLayers) {
  const ScratchDirectory scratch;
  const Outcome gemma = ask(scratch, {{"model_type", "gemma4_text"}}, "gfx950");
  EXPECT_EQ(gemma.code, 4);
  EXPECT_THAT(gemma.out, HasSubstr("  5* layers: full, head dim 512*\n"));
  EXPECT_THAT(gemma.out, HasSubstr("bf16 KV cache: partly: full layers: "));
  EXPECT_THAT(gemma.out, HasSubstr("d512 causal layout=paged:16   (full layers)\n      refused  "));
  const Outcome linear = ask(scratch, {{"model_type", "qwen3_next"}}, "gfx950");
  EXPECT_EQ(linear.code, 4);
  EXPECT_THAT(linear.out, HasSubstr("KV cache: partly: 36 layers of linear attention have no calls here\n"));
}

TEST(SupportedCommandTest, WhatCannotBeReadIsOneLine) {
  const ScratchDirectory scratch;
  const Outcome missing = run_program(scratch, {"supported", "--model", scratch / "nowhere"});
  expect_one_line_error(missing, 3);
  EXPECT_THAT(missing.err, HasSubstr("a folder with a model's config.json is accepted, or that file"));
  const Outcome hub = run_program(scratch, {"supported", "--model", "Somebody/Model-8B"});
  expect_one_line_error(hub, 3);
  EXPECT_THAT(hub.err, HasSubstr("hf download Somebody/Model-8B config.json"));
  write_text(scratch / "config.json", R"({"model_type": "qwen3",)");
  const Outcome broken = run_program(scratch, {"supported", "--model", scratch / "config.json"});
  expect_one_line_error(broken, 3);
  EXPECT_THAT(broken.err, HasSubstr("it is no JSON object"));
  const Outcome unknown = ask(scratch, {{"model_type", "jamba"}, {"num_attention_heads", 32}, {"head_dim", 80}}, "");
  expect_one_line_error(unknown, 4);
  EXPECT_THAT(unknown.err, HasSubstr("model_type jamba is not known"));
  EXPECT_THAT(unknown.err, HasSubstr("It has num_attention_heads 32, head_dim 80"));
}

TEST(SupportedCommandTest, JsonHasEachCall) {
  const ScratchDirectory scratch;
  const Outcome outcome = ask(scratch, {{"model_type", "gemma4_text"}, {"num_hidden_layers", 12}}, "", {"--json"});
  EXPECT_EQ(outcome.code, 4);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["model_type"], "gemma4_text");
  EXPECT_EQ(json["refusal"], "");
  EXPECT_THAT(json["defaults"]["of"].get<std::string>(), StartsWith("Gemma4TextConfig of transformers "));
  EXPECT_THAT(json["defaults"]["figures"].dump(), HasSubstr(R"({"field":"global_head_dim","value":"512"})"));
  ASSERT_EQ(json["targets"].size(), 4U);
  for (const Json& target : json["targets"]) {
    ASSERT_EQ(target["caches"].size(), 2U);
    EXPECT_EQ(target["caches"][0]["cache"], "bf16");
    EXPECT_EQ(target["caches"][1]["cache"], "fp8");
    for (const Json& cache : target["caches"]) {
      bool all = true;
      for (const Json& line : cache["lines"]) {
        EXPECT_EQ(line["supported"], line["refusal"].get<std::string>().empty()) << line;
        EXPECT_FALSE(line["layers"].empty()) << line;
        all = all && line["supported"];
        for (const Json& call : line["calls"]) {
          EXPECT_FALSE(call["route"].get<std::string>().empty()) << line;
          EXPECT_THAT(call["descriptor"].get<std::string>(), Not(HasSubstr(".."))) << "one call, no range";
        }
        if (line["supported"]) EXPECT_FALSE(line["calls"].empty()) << line;
      }
      EXPECT_EQ(cache["supported"] == "yes", all) << cache["cache"];
      EXPECT_EQ(cache["missing"].get<std::string>().empty(), all) << cache["cache"];
    }
  }
}

// The question is prebuild's own, without a compile: no kernel is written, and caches of the environment change nothing.
TEST(SupportedCommandTest, NothingIsCompiledOrWritten) {
  const ScratchDirectory scratch;
  const Json gemma = {{"model_type", "gemma2"}, {"num_attention_heads", 16}, {"num_key_value_heads", 8}};
  const Outcome plain = ask(scratch, gemma, "gfx1201");
  const Words words = {"supported", "--model", scratch / "config.json", "--target", "gfx1201"};
  for (const auto& [name, value] : {std::pair{"WAVEJIT_CACHE_LAYERS", "/nowhere"}, std::pair{"WAVEJIT_CACHE", "ro"}}) {
    const Outcome with = run_program(scratch, words, {{name, value}});
    EXPECT_EQ(with.code, 4) << name;
    EXPECT_EQ(with.out, plain.out) << name;
  }
  EXPECT_EQ(ask(scratch, gemma, "gfx950", {"--json"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(scratch / "xdg"));
}

TEST(SupportedCommandTest, GpusByName) {
  const ScratchDirectory scratch;
  for (const auto& [given, heading] :
       {std::pair{"mi325x", "gfx942 (MI325X)\n"}, std::pair{"MI300A", "gfx942 (MI300A)\n"},
        std::pair{"rx-9070 xt", "gfx1201 (RX 9070 XT)\n"}, std::pair{"R9700", "gfx1201 (Radeon AI PRO R9700)\n"},
        std::pair{"radeon rx 9060", "gfx1200 (RX 9060)\n"}, std::pair{"GFX950", "gfx950 (MI355X)\n"}})
    EXPECT_THAT(run_program(scratch, {"supported", "--target", given}).out, StartsWith(heading)) << given;
  for (const auto& [given, target] :
       {std::pair{"mi250", "gfx90a"}, std::pair{"RX 7900 XTX", "gfx1100"}, std::pair{"strix halo", "gfx1151"}}) {
    const Outcome none = run_program(scratch, {"supported", "--target", given});
    expect_one_line_error(none, 4);
    EXPECT_THAT(none.err,
                HasSubstr(std::string(" is ") + target + ", for which no family has kernels; accepted: gfx942"));
  }
  const Outcome table = run_program(scratch, {"supported", "--gpus", "--markdown"});
  EXPECT_THAT(table.out, HasSubstr("\n| MI300X | gfx942 | yes: all families |\n"));
  EXPECT_THAT(table.out, HasSubstr("\n| RX 9070 | gfx1201 | partly: all families but `sparse_indexer`, "
                                   "`attention_latent` |\n"));
  EXPECT_THAT(table.out, HasSubstr("\n| MI250 | gfx90a | no: no family has kernels for gfx90a |\n"));
  // Every target of the library is some GPU of the table.
  const Json all = Json::parse(run_program(scratch, {"supported", "--json"}).out);
  const Json gpus = Json::parse(run_program(scratch, {"supported", "--gpus", "--json"}).out);
  for (const Json& row : all["rows"])
    EXPECT_TRUE(std::ranges::any_of(gpus, [&](const Json& gpu) { return gpu["target"] == row["target"]; })) << row;
}

// Each published model has a row in every form, and each row is one of them.
TEST(SupportedCommandTest, PublishedModels) {
  const ScratchDirectory scratch;
  const Outcome table = run_program(scratch, {"supported", "--models", "--markdown", "--target", "gfx950"});
  EXPECT_EQ(table.code, 0) << table.err;
  std::vector<std::string> rows;
  std::istringstream lines(table.out);
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  const auto& models = published_models();
  ASSERT_EQ(rows.size(), models.size() + 2);
  const Json json = Json::parse(run_program(scratch, {"supported", "--models", "--json", "--target", "gfx950"}).out);
  ASSERT_EQ(json.size(), models.size());
  for (std::size_t i = 0; i < models.size(); ++i) {
    EXPECT_THAT(rows[i + 2], StartsWith("| " + models[i].name + " | "));
    EXPECT_EQ(json[i]["model"], models[i].name);
    const bool read = json[i]["refusal"].get<std::string>().empty();
    EXPECT_EQ(rows[i + 2].contains("| no: model_type "), !read) << rows[i + 2];
  }
  EXPECT_THAT(table.out, HasSubstr("\n| deepseek-ai/DeepSeek-V4-Pro |  | no: model_type deepseek_v4 is not known |\n"));
  // A name of the list needs no file, in any case; a folder of that name wins.
  const Outcome named = run_program(scratch, {"supported", "--model", "qwen/qwen3-8b", "--target", "gfx950"});
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_THAT(named.out, StartsWith("Qwen/Qwen3-8B (config.json, as "));
}

TEST(SupportedCommandTest, OptionsThatDoNotGoTogether) {
  const ScratchDirectory scratch;
  for (const Words& more :
       {Words{"--models", "--model", "x"}, Words{"--gpus", "--models"}, Words{"--gpus", "--target", "gfx950"},
        Words{"--models", "--tp", "2"}, Words{"--markdown", "--json"}}) {
    Words words = {"supported"};
    words.insert(words.end(), more.begin(), more.end());
    expect_one_line_error(run_program(scratch, words), 2);
  }
}

}  // namespace
}  // namespace wavejit::tools
