// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model's config.json becomes lines: each kind of model by a small file, what is refused by its field, and every line
// a descriptor that the library knows.
#include "tools/served_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tools/families.h"

namespace wavejit::tools {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Json llama() {
  return {
      {"model_type", "llama"},  {"num_attention_heads", 32}, {"num_key_value_heads", 8},         {"hidden_size", 4096},
      {"num_hidden_layers", 4}, {"torch_dtype", "bfloat16"}, {"max_position_embeddings", 131072}};
}
Json deepseek() {
  return {{"model_type", "deepseek_v3"}, {"num_attention_heads", 128}, {"num_key_value_heads", 128},
          {"kv_lora_rank", 512},         {"qk_rope_head_dim", 64},     {"qk_nope_head_dim", 128},
          {"v_head_dim", 128},           {"num_hidden_layers", 61},    {"max_position_embeddings", 163840}};
}

ModelConfig read(const Json& config) {
  auto model = parse_model(config.dump(), "config.json");
  EXPECT_TRUE(model.has_value()) << model.error().what;
  return model.value_or(ModelConfig{});
}
std::string refusal(const Json& config) {
  const auto model = parse_model(config.dump(), "config.json");
  return model ? "none" : model.error().what;
}

// The lines of all families, each of which the library reads and prints as it stands.
std::vector<std::string> lines(const Json& config, std::int64_t ranks = 1, std::int64_t page = 16) {
  const ServedModel served = {.config = read(config), .tensor_parallel = ranks, .page = page};
  EXPECT_TRUE(check_served(served, "config.json").has_value());
  std::vector<std::string> all;
  for (const Family* family : all_families())
    for (const std::string& line : family->serving_lines(served)) all.push_back(line);
  for (const std::string& line : all) {
    std::string canonical;
    const auto keep = [](void* to, const char* text) { *static_cast<std::string*>(to) = text; };
    // A range counts by its end.
    const std::string one = std::regex_replace(line, std::regex(R"(\d+\.\.)"), "");
    EXPECT_EQ(wavejit_describe(one.c_str(), keep, &canonical), WAVEJIT_OK) << line << wavejit_last_detail();
    EXPECT_EQ(canonical, one);
  }
  return all;
}
std::vector<std::string> names(const ModelConfig& model) {
  std::vector<std::string> all;
  for (const LayerKind& kind : model.layers) {
    std::string& name = all.emplace_back(fmt::format("{} {}", kind.layers, kind.name));
    if (kind.window) name += fmt::format(" {}", *kind.window);
  }
  return all;
}

TEST(ServedModelTest, OneKindOfLayers) {
  EXPECT_THAT(lines(llama(), 2, 64),
              ElementsAre("attention_forward bf16 b64 q1..8192 k0..131072 h16/4 d128 causal layout=paged:64",
                          "attention_forward bf16 b1 q1..8192 k0..131072 h16/4 d128 causal layout=paged:64",
                          "attention_forward bf16 b1 q1..8192 k0..8192 h16/4 d128 causal",
                          "cache_append bf16 b1 q1 h4 d128 page=64"));
  // More ranks than kv heads: one each. Other pages.
  EXPECT_THAT(lines(llama(), 16, 1), Contains(HasSubstr("h2/1 d128 causal layout=paged:1")));
  EXPECT_THAT(lines(llama(), 1, 48), Contains(HasSubstr("layout=paged:16")));
  Json half = llama();
  half["torch_dtype"] = "float16";
  half["head_dim"] = 96;
  half.erase("num_key_value_heads");
  EXPECT_THAT(lines(half), Contains("cache_append fp16 b1 q1 h32 d96 page=16"));
}

TEST(ServedModelTest, WindowsOfEachType) {
  Json config = llama();
  config["sliding_window"] = 4096;
  EXPECT_THAT(names(read(config)), ElementsAre("4 full")) << "Llama has none, whatever stands there";
  config["model_type"] = "mistral";
  EXPECT_THAT(names(read(config)), ElementsAre("4 sliding 4096"));
  EXPECT_THAT(lines(config), Contains(HasSubstr("causal window=4095,0 layout")));
  config["sliding_window"] = nullptr;
  EXPECT_THAT(names(read(config)), ElementsAre("4 full"));
  config["sliding_window"] = 4096;
  config["model_type"] = "qwen2";
  EXPECT_THAT(names(read(config)), ElementsAre("4 full"));
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 3;
  EXPECT_THAT(names(read(config)), ElementsAre("3 full", "1 sliding 4096"));
  config["model_type"] = "gemma3_text";
  config["num_hidden_layers"] = 13;
  EXPECT_THAT(names(read(config)), ElementsAre("11 sliding 4096", "2 full"));
  // Where each layer is told, that counts.
  config["num_hidden_layers"] = 2;
  config["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_THAT(names(read(config)), ElementsAre("1 full", "1 sliding 4096"));
  // Layers behind num_hidden_layers predict tokens ahead; a list that ends before leaves layers untold.
  config["layer_types"] = {"full_attention", "sliding_attention", "full_attention"};
  EXPECT_THAT(names(read(config)), ElementsAre("1 full", "1 sliding 4096"));
  config["num_hidden_layers"] = 28;
  EXPECT_THAT(refusal(config), HasSubstr("layer_types has 3 layers; the 28 of num_hidden_layers are accepted"));
  config["num_hidden_layers"] = 2;
  config["layer_types"] = {"full_attention", "linear_attention"};
  EXPECT_THAT(refusal(config), HasSubstr("layer_types"));
}

TEST(ServedModelTest, SinksAndSoftCaps) {
  Json config = llama();
  config["sliding_window"] = 128;
  config["model_type"] = "gpt_oss";
  EXPECT_THAT(names(read(config)), ElementsAre("2 sliding 128", "2 full"));
  EXPECT_THAT(lines(config), Contains(HasSubstr("causal window=127,0 layout=paged:16 sink")));
  config["model_type"] = "gemma2";
  config["attn_logit_softcapping"] = 50.0;
  EXPECT_THAT(lines(config), Contains(HasSubstr("causal layout=paged:16 softcap=50")));
  config["model_type"] = "gemma3_text";
  EXPECT_THAT(lines(config), Not(Contains(HasSubstr("softcap"))));
}

// Several kinds of input: what they say of the language.
TEST(ServedModelTest, ChunksAndTextConfig) {
  Json text = llama();
  text["model_type"] = "llama4_text";
  text["attention_chunk_size"] = 8192;
  text["no_rope_layers"] = {1, 1, 1, 0};
  text.erase("torch_dtype");
  const Json config = {{"model_type", "llama4"}, {"torch_dtype", "float16"}, {"text_config", text}};
  const ModelConfig model = read(config);
  EXPECT_EQ(model.dtype, "fp16");
  EXPECT_THAT(names(model), ElementsAre("3 chunked", "1 full"));
  EXPECT_THAT(model.notes, Contains(HasSubstr("within 8192 keys")));
  EXPECT_EQ(lines(config).size(), 4U) << "both kinds go through the same lines";
}

TEST(ServedModelTest, LatentAttentionAndItsIndexer) {
  EXPECT_THAT(
      lines(deepseek(), 8, 64),
      ElementsAre("attention_forward bf16 b1 q1..8192 k0..8192 h16 d192/128 causal",
                  "attention_forward bf16 b1 q1..8192 k0..8192 h16 d192/128 causal lse",
                  "attention_forward bf16 b1 q1..8192 k0..8192 h16 d192/128 lse",
                  "attention_latent bf16 b64 q1 k163840 h16 d576/512 layout=paged:64",
                  "attention_latent bf16 b64 q4 k163840 h16 d576/512 causal layout=paged:64",
                  "attention_latent bf16 b64 q64 k163840 h16 d576/512 causal layout=paged:64",
                  "cache_append bf16 b1 q1 h1 d64/512 page=64", "attention_merge bf16 b1 q8192 h16 d128 parts=2 lse"));
  Json sparse = deepseek();
  sparse["model_type"] = "deepseek_v32";
  sparse["index_topk"] = 2048;
  EXPECT_EQ(read(sparse).latent->index_heads, 64) << "the class's";
  sparse["index_n_heads"] = "many";
  EXPECT_THAT(refusal(sparse), HasSubstr("index_n_heads is \"many\""));
  sparse["index_n_heads"] = 64;
  sparse["index_head_dim"] = 128;
  EXPECT_THAT(lines(sparse, 8, 64), Contains("sparse_indexer bf16 b64 q4 k163840 h64 page=64 top=2048 causal"));
  EXPECT_THAT(lines(sparse, 8, 64),
              Contains("attention_latent bf16 b64 q1 k163840 h16 d576/512 layout=paged:64 top_k=2048"));
}

// GLM-5: heads of 256 both ways, and layers told as what they are in files of today. GLM-4.7 Flash and Mistral 4 have
// no indexer.
TEST(ServedModelTest, LatentAttentionOfOtherDims) {
  Json config = deepseek();
  config["model_type"] = "glm_moe_dsa";
  config["num_attention_heads"] = 64;
  config["qk_nope_head_dim"] = 192;
  config["v_head_dim"] = 256;
  config["index_topk"] = 2048;
  config["index_n_heads"] = 32;
  config["index_head_dim"] = 128;
  config["num_hidden_layers"] = 3;
  config["layer_types"] = {"indexed_attention", "indexed_attention", "indexed_attention"};
  EXPECT_THAT(names(read(config)), ElementsAre("3 full"));
  EXPECT_THAT(lines(config, 8, 64), Contains("attention_forward bf16 b1 q1..8192 k0..8192 h8 d256 causal lse"));
  EXPECT_THAT(lines(config, 8, 64), Contains("sparse_indexer bf16 b64 q4 k163840 h32 page=64 top=2048 causal"));
  // GLM-5.2 calls them so.
  Json other = config;
  other["layer_types"] = {"deepseek_sparse_attention", "deepseek_sparse_attention", "deepseek_sparse_attention"};
  EXPECT_EQ(lines(other, 8, 64), lines(config, 8, 64));
  config["model_type"] = "deepseek_v3";
  for (const char* field : {"index_topk", "index_n_heads", "index_head_dim"}) config.erase(field);
  EXPECT_THAT(refusal(config), HasSubstr("layer_types has \"indexed_attention\" for layer 0"));
  Json mistral = deepseek();
  mistral["model_type"] = "mistral4";
  mistral["kv_lora_rank"] = 256;
  mistral["qk_nope_head_dim"] = 64;
  EXPECT_THAT(lines(mistral, 4), Contains("attention_latent bf16 b64 q1 k163840 h32 d320/256 layout=paged:16"));
  EXPECT_THAT(lines(mistral, 4), Contains("attention_forward bf16 b1 q1..8192 k0..8192 h32 d128 causal"));
}

// Layers of linear attention have no keys; the others have their lines.
TEST(ServedModelTest, LayersOfLinearAttention) {
  Json config = llama();
  config["model_type"] = "qwen3_next";
  config["head_dim"] = 256;
  config["num_hidden_layers"] = 8;
  EXPECT_THAT(names(read(config)), ElementsAre("2 full"));
  EXPECT_THAT(read(config).notes, Contains("6 layers of linear attention have no keys: no lines of these"));
  config["layer_types"] = {"linear_attention", "full_attention"};
  config["num_hidden_layers"] = 2;
  EXPECT_THAT(names(read(config)), ElementsAre("1 full"));
  EXPECT_THAT(lines(config), Contains(HasSubstr("h32/8 d256 causal layout=paged:16")));
  config["layer_types"] = {"linear_attention", "mamba"};
  EXPECT_THAT(refusal(config), HasSubstr("layer_types has \"mamba\" for layer 1; full_attention, sliding_attention and "
                                         "chunked_attention, linear_attention are accepted"));
  Json kimi = deepseek();
  kimi["model_type"] = "kimi_linear";
  kimi["num_hidden_layers"] = 8;
  kimi["linear_attn_config"] = {{"full_attn_layers", {4, 8}}, {"kda_layers", {1, 2, 3, 5, 6, 7}}};
  EXPECT_THAT(names(read(kimi)), ElementsAre("2 full"));
}

// Gemma 3n reads keys of other layers; full layers of Gemma 4 may have head dims of their own.
TEST(ServedModelTest, GemmaOfToday) {
  Json config = llama();
  config["model_type"] = "gemma3n_text";
  config["head_dim"] = 256;
  config["sliding_window"] = 512;
  config["num_kv_shared_layers"] = 2;
  config["num_hidden_layers"] = 5;
  EXPECT_THAT(names(read(config)), ElementsAre("4 sliding 512", "1 full"));
  EXPECT_THAT(read(config).notes, Contains(HasSubstr("the last 2 layers read keys of layers before them")));
  config["model_type"] = "gemma4_text";
  config["global_head_dim"] = 256;
  EXPECT_THAT(names(read(config)), ElementsAre("4 sliding 512", "1 full"));
  config["global_head_dim"] = 512;
  config["num_global_key_value_heads"] = 2;
  EXPECT_EQ(lines(config, 2).size(), 8U) << "each kind of layers has lines of its own";
  EXPECT_THAT(lines(config, 2), Contains("attention_forward bf16 b64 q1..8192 k0..131072 h16/4 d256 causal "
                                         "window=511,0 layout=paged:16"));
  EXPECT_THAT(lines(config, 2),
              Contains("attention_forward bf16 b64 q1..8192 k0..131072 h16/1 d512 causal layout=paged:16"));
  EXPECT_THAT(lines(config, 2), Contains("cache_append bf16 b1 q1 h4 d256 page=16"));
  EXPECT_THAT(lines(config, 2), Contains("cache_append bf16 b1 q1 h1 d512 page=16"));
  EXPECT_THAT(told({.config = read(config)}), Contains("1* layers: full, 2 kv heads, head dim 512"));
  config["num_global_key_value_heads"] = 5;
  EXPECT_THAT(refusal(config), HasSubstr("num_global_key_value_heads is 5; a divisor of num_attention_heads 32"));
  config["num_global_key_value_heads"] = 8;
  ServedModel shared = {.config = read(config), .tensor_parallel = 16};
  EXPECT_TRUE(check_served(shared, "x").has_value());
  shared.config.layers.back().kv_heads = 6;
  EXPECT_THAT(check_served(shared, "x").error().what, HasSubstr("x has 6 kv heads"));
  config["use_bidirectional_attention"] = true;
  EXPECT_THAT(refusal(config), HasSubstr("use_bidirectional_attention is true; false"));
}

TEST(ServedModelTest, RefusedByItsField) {
  const auto without = [](const char* field) {
    Json config = llama();
    config.erase(field);
    return refusal(config);
  };
  EXPECT_THAT(without("model_type"), HasSubstr("model_type is not there"));
  Json config = llama();
  config["num_key_value_heads"] = 5;
  EXPECT_THAT(refusal(config), HasSubstr("num_key_value_heads is 5; a divisor of num_attention_heads 32"));
  config["num_key_value_heads"] = {4, 8};
  EXPECT_THAT(refusal(config), HasSubstr("--list"));
  config = llama();
  config["num_attention_heads"] = 96;
  EXPECT_THAT(refusal(config),
              HasSubstr("head_dim is not there; a number: hidden_size 4096 is no multiple of 96 heads"));
  config = llama();
  config["model_type"] = "mistral";
  config["sliding_window"] = "wide";
  EXPECT_THAT(refusal(config), HasSubstr("sliding_window is \"wide\""));
  config["model_type"] = "jamba";
  EXPECT_THAT(refusal(config), HasSubstr("model_type jamba is not known; llama, "));
  EXPECT_THAT(refusal(config), HasSubstr("num_attention_heads 32"));
  EXPECT_THAT(parse_model("no JSON", "config.json").error().what, HasSubstr("a model's config.json"));
  EXPECT_EQ(read_model("/nowhere").error().code, ExitCode::file);
  ServedModel served = {.config = read(llama()), .tensor_parallel = 3};
  EXPECT_THAT(check_served(served, "x").error().what, HasSubstr("--tp 3: x has 32 heads"));
  served.config.heads = 36;
  served.config.layers.front().kv_heads = 4;
  EXPECT_THAT(check_served(served, "x").error().what, HasSubstr("--tp 3: x has 4 kv heads"));
}

}  // namespace
}  // namespace wavejit::tools
