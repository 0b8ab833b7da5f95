// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// transformers writes into a config.json only what differs from the model type's class. What a file leaves out is the
// class's, is marked where it is told, and where there is no class it is refused by its field.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tools/served_model.h"

namespace wavejit::tools {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// "h16/8 d256 131072: 40 sliding 1024, 8 full", or why it is refused.
std::string attention_of(const Json& config) {
  const auto model = parse_model(config.dump(), "config.json");
  if (!model) return model.error().what;
  std::string layers;
  for (const LayerKind& kind : model->layers)
    layers += fmt::format("{}{} {}{}", layers.empty() ? "" : ", ", kind.layers, kind.name,
                          kind.window ? fmt::format(" {}", *kind.window) : "");
  return fmt::format("h{}/{} d{} {}: {}", model->heads, model->kv_heads, model->head_dim, model->longest, layers);
}

struct Told {
  const char* type;
  const char* attention;
};

// A file that has nothing but its type: each class's own figures, as transformers 5.23.0 makes it without an argument.
TEST(ModelDefaultsTest, AFileOfATypeAloneIsItsClass) {
  const Told classes[] = {
      {"llama", "h32/32 d128 2048: 32 full"},
      {"llama4_text", "h40/8 d128 131072: 36 chunked, 12 full"},
      {"mistral", "h32/8 d128 131072: 32 sliding 4096"},
      {"ministral", "h32/8 d128 131072: 32 sliding 4096"},
      {"ministral3", "h32/8 d128 262144: 34 full"},
      {"mistral4", "h32/1 d320 1048576: 36 full"},
      {"mixtral", "h32/8 d128 131072: 32 full"},
      {"qwen2", "h32/32 d128 32768: 32 full"},
      {"qwen2_moe", "h16/16 d128 32768: 24 full"},
      {"qwen2_vl_text", "h64/8 d128 32768: 80 full"},
      {"qwen2_5_vl_text", "h64/8 d128 32768: 80 full"},
      {"qwen3", "h32/32 d128 32768: 32 full"},
      {"qwen3_moe", "h32/4 d64 32768: 24 full"},
      {"qwen3_vl_text", "h32/32 d128 128000: 32 full"},
      {"qwen3_vl_moe_text", "h16/16 d128 128000: 24 full"},
      {"qwen3_next", "h16/2 d256 32768: 12 full"},
      {"qwen3_5_text", "h16/4 d256 32768: 8 full"},
      {"qwen3_5_moe_text", "h16/2 d256 32768: 10 full"},
      {"gemma", "h16/16 d256 8192: 28 full"},
      {"gemma2", "h8/4 d256 8192: 13 sliding 4096, 13 full"},
      {"gemma3_text", "h8/4 d256 131072: 22 sliding 4096, 4 full"},
      {"gemma3n_text", "h8/2 d256 32768: 28 sliding 512, 7 full"},
      {"gpt_oss", "h64/8 d64 131072: 18 sliding 128, 18 full"},
      {"phi", "h32/32 d64 2048: 24 full"},
      {"phi3", "h32/32 d96 4096: 32 full"},
      {"phimoe", "h32/8 d128 131072: 32 full"},
      {"olmo2", "h32/32 d128 2048: 32 full"},
      {"olmo3", "h32/32 d128 2048: 24 sliding 4096, 8 full"},
      {"cohere2", "h64/64 d128 8192: 30 sliding 4096, 10 full"},
      {"exaone4", "h32/32 d128 2048: 24 sliding 4096, 8 full"},
      {"ernie4_5", "h16/2 d128 131072: 18 full"},
      {"ernie4_5_moe", "h20/4 d128 131072: 28 full"},
      {"seed_oss", "h80/8 d128 524288: 64 full"},
      {"smollm3", "h16/4 d128 32768: 36 full"},
      {"minimax_m2", "h48/8 d128 196608: 62 full"},
      {"granite", "h32/32 d128 2048: 32 full"},
      {"starcoder2", "h24/2 d128 4096: 30 full"},
      {"glm", "h32/2 d128 131072: 40 full"},
      {"glm4", "h32/2 d128 131072: 40 full"},
      {"glm4v_text", "h32/2 d128 32768: 40 full"},
      {"glm4_moe_lite", "h20/1 d576 202752: 47 full"},
      {"deepseek_v2", "h32/1 d576 2048: 32 full"},
      {"deepseek_v3", "h128/1 d576 4096: 61 full"},
      {"deepseek_v32", "h128/1 d576 163840: 61 full"},
      {"kimi_linear", "h32/1 d576 1048576: 6 full"},
      {"glm_moe_dsa", "h64/1 d576 202752: 78 full"},
  };
  for (const auto& [type, attention] : classes) EXPECT_EQ(attention_of({{"model_type", type}}), attention) << type;
}

// Published config.json files on Hugging Face, without the fields that equal their class's default, as transformers
// saves them: google/gemma-3-{4b,12b,27b}-it, google/gemma-2-{2b,9b,27b}, Qwen/Qwen3-{0.6B,8B}, openai/gpt-oss-{20b,
// 120b}, meta-llama/Meta-Llama-3-{8B,70B}, mistralai/Mistral-7B-v0.{1,3} and Mistral-Nemo, Qwen/Qwen2.5-7B,
// mistralai/Mixtral-8x7B-v0.1, meta-llama/Llama-4-Scout, deepseek-ai/DeepSeek-V3.
TEST(ModelDefaultsTest, PublishedModels) {
  const auto gemma3 = [](Json text) {
    text["model_type"] = "gemma3_text";
    text["sliding_window"] = 1024;
    return Json{{"model_type", "gemma3"}, {"torch_dtype", "bfloat16"}, {"text_config", std::move(text)}};
  };
  EXPECT_EQ(attention_of(gemma3({{"hidden_size", 2560}, {"num_hidden_layers", 34}})),
            "h8/4 d256 131072: 29 sliding 1024, 5 full");
  EXPECT_EQ(
      attention_of(gemma3(
          {{"hidden_size", 3840}, {"num_attention_heads", 16}, {"num_key_value_heads", 8}, {"num_hidden_layers", 48}})),
      "h16/8 d256 131072: 40 sliding 1024, 8 full");
  EXPECT_EQ(attention_of(gemma3({{"hidden_size", 5376},
                                 {"num_attention_heads", 32},
                                 {"num_key_value_heads", 16},
                                 {"head_dim", 128},
                                 {"num_hidden_layers", 62}})),
            "h32/16 d128 131072: 52 sliding 1024, 10 full");
  struct Published {
    const char* config;
    const char* attention;
  };
  const Published published[] = {
      {R"({"model_type": "gemma2"})", "h8/4 d256 8192: 13 sliding 4096, 13 full"},
      {R"({"model_type": "gemma2", "hidden_size": 3584, "num_attention_heads": 16, "num_key_value_heads": 8,
           "num_hidden_layers": 42})",
       "h16/8 d256 8192: 21 sliding 4096, 21 full"},
      {R"({"model_type": "gemma2", "head_dim": 128, "hidden_size": 4608, "num_attention_heads": 32,
           "num_key_value_heads": 16, "num_hidden_layers": 46})",
       "h32/16 d128 8192: 23 sliding 4096, 23 full"},
      {R"({"model_type": "qwen3", "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 8,
           "num_hidden_layers": 28, "max_position_embeddings": 40960, "max_window_layers": 28, "sliding_window": null})",
       "h16/8 d128 40960: 28 full"},
      {R"({"model_type": "qwen3", "num_key_value_heads": 8, "num_hidden_layers": 36, "max_position_embeddings": 40960})",
       "h32/8 d128 40960: 36 full"},
      {R"({"model_type": "gpt_oss", "num_hidden_layers": 24})", "h64/8 d64 131072: 12 sliding 128, 12 full"},
      {R"({"model_type": "gpt_oss"})", "h64/8 d64 131072: 18 sliding 128, 18 full"},
      {R"({"model_type": "llama", "num_key_value_heads": 8, "max_position_embeddings": 8192})",
       "h32/8 d128 8192: 32 full"},
      {R"({"model_type": "llama", "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8,
           "num_hidden_layers": 80, "max_position_embeddings": 8192})",
       "h64/8 d128 8192: 80 full"},
      {R"({"model_type": "mistral", "max_position_embeddings": 32768})", "h32/8 d128 32768: 32 sliding 4096"},
      {R"({"model_type": "mistral", "max_position_embeddings": 32768, "sliding_window": null})",
       "h32/8 d128 32768: 32 full"},
      {R"({"model_type": "mistral", "hidden_size": 5120, "head_dim": 128, "num_hidden_layers": 40,
           "max_position_embeddings": 1024000, "sliding_window": null})",
       "h32/8 d128 1024000: 40 full"},
      {R"({"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
           "num_hidden_layers": 28, "max_position_embeddings": 131072})",
       "h28/4 d128 131072: 28 full"},
      {R"({"model_type": "mixtral", "max_position_embeddings": 32768})", "h32/8 d128 32768: 32 full"},
      {R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "max_position_embeddings": 10485760}})",
       "h40/8 d128 10485760: 36 chunked, 12 full"},
      {R"({"model_type": "deepseek_v3", "max_position_embeddings": 163840})", "h128/1 d576 163840: 61 full"},
  };
  for (const auto& [config, attention] : published) EXPECT_EQ(attention_of(Json::parse(config)), attention) << config;
  EXPECT_EQ(parse_model(R"({"model_type": "gemma2"})", "config.json").value().softcap, 50.0);
  EXPECT_EQ(parse_model(R"({"model_type": "gemma2", "attn_logit_softcapping": null})", "config.json").value().softcap,
            0)
      << "a null is an answer";
}

// Qwen/Qwen2.5-VL-7B-Instruct has its language model's fields beside those of pictures.
TEST(ModelDefaultsTest, FilesWithoutAPartForTheLanguageModel) {
  const Json config = {{"model_type", "qwen2_5_vl"},        {"hidden_size", 3584},
                       {"num_attention_heads", 28},         {"num_key_value_heads", 4},
                       {"num_hidden_layers", 28},           {"sliding_window", 32768},
                       {"max_position_embeddings", 128000}, {"max_window_layers", 28},
                       {"use_sliding_window", false},       {"torch_dtype", "bfloat16"},
                       {"vision_config", {{"depth", 32}}}};
  EXPECT_EQ(attention_of(config), "h28/4 d128 128000: 28 full");
  EXPECT_THAT(
      attention_of({{"model_type", "gemma3"}, {"head_dim", 256}}),
      HasSubstr("text_config is not there; of a gemma3 an object with its language model's fields is accepted"));
}

TEST(ModelDefaultsTest, ANameOfAHubIsToldHowToBeHad) {
  EXPECT_THAT(read_model("Qwen/Qwen3-8B").error().what,
              HasSubstr("or that file. A model of Hugging Face is fetched before: "
                        "hf download Qwen/Qwen3-8B config.json --local-dir FOLDER"));
  for (const char* path : {"/Qwen/Qwen3-8B", "./Qwen3-8B", "Qwen/", "models/config.json", "Qwen3-8B"})
    EXPECT_THAT(read_model(path).error().what, ::testing::EndsWith("or that file")) << path;
}

TEST(ModelDefaultsTest, WhatIsNotInTheFileIsMarked) {
  const Json text = {{"model_type", "gemma3_text"}, {"hidden_size", 3840},     {"num_attention_heads", 16},
                     {"num_key_value_heads", 8},    {"num_hidden_layers", 48}, {"sliding_window", 1024},
                     {"torch_dtype", "bfloat16"}};
  EXPECT_THAT(told({.config = parse_model(text.dump(), "config.json").value()}),
              ElementsAre("gemma3_text, bf16: 16 heads, 8 kv heads, head dim 256*, 131072* keys at most",
                          "40* layers: sliding, windows of 1024 keys", "8* layers: full",
                          "* is not in the file and comes from Gemma3TextConfig of transformers 5.23.0: "
                          "head_dim 256, max_position_embeddings 131072, sliding_window_pattern 6",
                          StartsWith("--tp 1: ")));
  // Which layers have windows is the class's, too.
  for (const char* type : {"gpt_oss", "gemma2"}) {
    Json turns = text;
    turns["model_type"] = type;
    EXPECT_THAT(told({.config = parse_model(turns.dump(), "config.json").value()}),
                ::testing::IsSupersetOf(
                    {::testing::Matcher<std::string>(HasSubstr("24* layers: sliding, windows of 1024 keys")),
                     ::testing::Matcher<std::string>("24* layers: full"),
                     ::testing::Matcher<std::string>(HasSubstr("layer_types sliding and full in turns"))}));
    for (int layer = 0; layer < 48; ++layer)
      turns["layer_types"].push_back(layer % 2 == 0 ? "sliding_attention" : "full_attention");
    EXPECT_THAT(told({.config = parse_model(turns.dump(), "config.json").value()}),
                ::testing::Contains("24 layers: full"));
  }
  const Json whole = {
      {"model_type", "llama"},  {"num_attention_heads", 32},       {"num_key_value_heads", 8},  {"hidden_size", 4096},
      {"num_hidden_layers", 2}, {"max_position_embeddings", 8192}, {"torch_dtype", "bfloat16"}, {"head_dim", 128}};
  EXPECT_THAT(parse_model(whole.dump(), "config.json").value().defaults, IsEmpty());
  // Full layers of Gemma 4 are wider where the file does not say it, too.
  EXPECT_THAT(told({.config = parse_model(R"({"model_type": "gemma4_text"})", "config.json").value()}),
              ::testing::Contains("5* layers: full, head dim 512*"));
  EXPECT_THAT(
      told({.config = parse_model(R"({"model_type": "llama"})", "config.json").value()}),
      ::testing::IsSupersetOf({std::string("llama, bf16: 32* heads, 32* kv heads, head dim 128*, 2048* keys at most"),
                               std::string("torch_dtype is not in the file: bf16")}));
}

TEST(ModelDefaultsTest, WithoutADefaultItIsRefusedByItsField) {
  // Heads that do not divide the class's hidden_size; a class that Hugging Face's models bring themselves.
  EXPECT_THAT(attention_of({{"model_type", "glm4_moe"}}),
              HasSubstr("head_dim is not there; a number: hidden_size 4096 is no multiple of 96 heads is accepted"));
  Json kimi = {{"model_type", "kimi_k2"}, {"num_attention_heads", 64}, {"kv_lora_rank", 512},
               {"qk_rope_head_dim", 64},  {"qk_nope_head_dim", 128},   {"v_head_dim", 128},
               {"num_hidden_layers", 61}};
  EXPECT_THAT(attention_of(kimi), HasSubstr("max_position_embeddings is not there; a positive number is accepted"));
  kimi["max_position_embeddings"] = 131072;
  EXPECT_EQ(attention_of(kimi), "h64/1 d576 131072: 61 full");
  // A null where the class has a number, which transformers refuses.
  EXPECT_THAT(attention_of({{"model_type", "qwen3"}, {"head_dim", nullptr}}),
              HasSubstr("head_dim is null; a positive number is accepted"));
  // A field of newer files says heads by layer.
  EXPECT_THAT(
      attention_of({{"model_type", "gemma4_text"}, {"global_head_dim", 256}, {"per_layer_config", {{"5", {}}}}}),
      HasSubstr("per_layer_config is {\"5\":null}; none"));
}

// Rules of classes that decide where windows are, beside the fields.
TEST(ModelDefaultsTest, WindowsByTheRulesOfClasses) {
  EXPECT_EQ(attention_of({{"model_type", "qwen2"}, {"use_sliding_window", true}}),
            "h32/32 d128 32768: 28 full, 4 sliding 4096");
  EXPECT_EQ(attention_of({{"model_type", "qwen2_moe"}, {"use_sliding_window", true}, {"max_window_layers", 6}}),
            "h16/16 d128 32768: 3 sliding 4096, 21 full");
  EXPECT_EQ(attention_of({{"model_type", "smollm3"}, {"use_sliding_window", true}, {"sliding_window", 512}}),
            "h16/4 d128 32768: 27 full, 9 sliding 512");
  EXPECT_EQ(attention_of({{"model_type", "gemma4_text"}, {"global_head_dim", 256}, {"num_hidden_layers", 8}}),
            "h8/4 d256 131072: 6 sliding 512, 2 full");
}

}  // namespace
}  // namespace wavejit::tools
