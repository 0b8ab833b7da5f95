// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tools/model_defaults.h"

namespace wavejit::tools {
namespace {

using Json = nlohmann::json;

// Which layers of a model see a window only, where `layer_types` does not say it.
enum class Windows : std::uint8_t {
  none,           // no layer, whatever sliding_window says
  if_given,       // all layers, where sliding_window is a number
  if_used,        // with use_sliding_window, from layer max_window_layers on
  turns_if_used,  // with use_sliding_window, every other layer before layer max_window_layers, the first included
  in_turns,       // every other layer, the first included
  by_pattern,     // all but each sliding_window_pattern-th, where sliding_window is a number
  without_rope,   // with use_sliding_window, each no_rope_layer_interval-th, or those that no_rope_layers has 0 for
  in_chunks,      // attention_chunk_size; but those layers
};

struct ModelType {
  std::string_view name;
  Windows windows = Windows::none;
  bool sinks = false;
  bool softcap = false;  // attn_logit_softcapping
  bool latent = false;
  std::int64_t pattern = 6;  // where sliding_window_pattern does not say it
  bool linear = false;  // some layers are linear attention: layer_types, or all but each full_attention_interval-th
  bool last_is_full = false;  // whatever the pattern and layer_types say
};
constexpr auto model_types = std::to_array<ModelType>({
    {.name = "llama"},
    {.name = "llama4_text", .windows = Windows::in_chunks},
    {.name = "mistral", .windows = Windows::if_given},
    {.name = "ministral", .windows = Windows::if_given},
    {.name = "ministral3", .windows = Windows::if_given},
    {.name = "mistral4", .latent = true},
    {.name = "mixtral", .windows = Windows::if_given},
    {.name = "qwen2", .windows = Windows::if_used},
    {.name = "qwen2_moe", .windows = Windows::turns_if_used},
    {.name = "qwen2_vl_text", .windows = Windows::if_used},
    {.name = "qwen2_5_vl_text", .windows = Windows::if_used},
    {.name = "qwen3", .windows = Windows::if_used},
    {.name = "qwen3_moe", .windows = Windows::if_used},
    {.name = "qwen3_vl_text"},
    {.name = "qwen3_vl_moe_text"},
    {.name = "qwen3_next", .linear = true},
    {.name = "qwen3_5_text", .linear = true},
    {.name = "qwen3_5_moe_text", .linear = true},
    {.name = "gemma"},
    {.name = "gemma2", .windows = Windows::in_turns, .softcap = true},
    {.name = "gemma3_text", .windows = Windows::by_pattern},
    {.name = "gemma3n_text", .windows = Windows::by_pattern, .pattern = 5},
    {.name = "gemma4_text", .windows = Windows::by_pattern, .last_is_full = true},
    {.name = "gpt_oss", .windows = Windows::in_turns, .sinks = true},
    {.name = "phi"},
    {.name = "phi3", .windows = Windows::if_given},
    {.name = "phimoe", .windows = Windows::if_given},
    {.name = "olmo2"},
    {.name = "olmo3", .windows = Windows::by_pattern, .pattern = 4},
    {.name = "cohere2", .windows = Windows::by_pattern, .pattern = 4},
    {.name = "exaone4", .windows = Windows::by_pattern, .pattern = 4},
    {.name = "ernie4_5"},
    {.name = "ernie4_5_moe"},
    {.name = "seed_oss"},
    {.name = "smollm3", .windows = Windows::without_rope},
    {.name = "minimax_m2"},
    {.name = "granite"},
    {.name = "starcoder2", .windows = Windows::if_given},
    {.name = "glm"},
    {.name = "glm4"},
    {.name = "glm4_moe"},
    {.name = "glm4v_text"},
    {.name = "glm4v_moe_text"},
    {.name = "glm4_moe_lite", .latent = true},
    {.name = "deepseek_v2", .latent = true},
    {.name = "deepseek_v3", .latent = true},
    {.name = "deepseek_v32", .latent = true},
    {.name = "kimi_k2", .latent = true},
    {.name = "kimi_linear", .latent = true, .linear = true},
    {.name = "glm_moe_dsa", .latent = true},
});

// Types of several kinds of input whose published files have the language model's fields beside the others', and not in
// a text_config.
constexpr auto flat_types = std::to_array<std::string_view>({"qwen2_vl", "qwen2_5_vl"});

// Fields of an unknown model that say most of its attention.
constexpr auto telling_fields = std::to_array<const char*>(
    {"num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size", "num_hidden_layers", "layer_types",
     "sliding_window", "attn_logit_softcapping", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
     "index_topk", "attention_chunk_size", "max_position_embeddings", "torch_dtype"});

class Reader {
 public:
  Reader(const Json& config, std::string where) : config_(config), where_(std::move(where)) {}

  Result<ModelConfig> read() {
    const Json* type = field("model_type");
    if (type == nullptr || !type->is_string()) return refused("model_type", "the name of a model's type");
    model_.type = type->get<std::string>();
    const auto* const known = std::ranges::find(model_types, model_.type, &ModelType::name);
    if (known == model_types.end()) return std::unexpected(unknown());
    type_ = *known;
    model_.defaults_of = name_of_class(model_.type);
    read_dtype();
    model_.heads = number("num_attention_heads");
    if (type_.latent)
      read_latent();
    else
      read_heads();
    model_.longest = number("max_position_embeddings");
    model_.sinks = type_.sinks;
    if (type_.softcap)
      if (const Json* cap = field("attn_logit_softcapping"); cap != nullptr && cap->is_number())
        model_.softcap = cap->get<double>();
    read_layers();
    if (failure_) return std::unexpected(*failure_);
    return model_;
  }

 private:
  // What the file says. A null there is an answer, too: the class's default does not take its place.
  const Json* in_file(const char* name) const {
    const auto found = config_.find(name);
    return found == config_.end() ? nullptr : &*found;
  }
  // The file's, or the class's where the file has none; nullptr where that is null, or there is none.
  const Json* field(const char* name) {
    if (const Json* given = in_file(name)) return given->is_null() ? nullptr : given;
    const Json* by_class = default_of(model_.type, name);
    if (by_class != nullptr && by_class->is_number() && *by_class != 0) not_in_file(name, by_class->dump());
    return by_class;
  }
  void not_in_file(const char* name, std::string value) {
    if (!model_.is_default(name)) model_.defaults.push_back({.field = name, .value = std::move(value)});
  }
  std::unexpected<Failure> refused(const char* name, const std::string& accepted) {
    const Json* given = in_file(name);
    const Json* by_class = given == nullptr ? default_of(model_.type, name) : nullptr;
    std::string found = "is not there";
    if (given != nullptr) found = "is " + given->dump();
    if (by_class != nullptr) found = fmt::format("is {}, the default of {}", by_class->dump(), model_.defaults_of);
    return failed(ExitCode::usage, fmt::format("{}: {} {}; {} is accepted", where_, name, found, accepted));
  }
  void refuse(const char* name, const std::string& accepted) {
    if (!failure_) failure_ = refused(name, accepted).error();
  }
  std::int64_t number(const char* name, std::optional<std::int64_t> otherwise = {}) {
    const Json* given = field(name);
    if (given == nullptr && otherwise) {
      not_in_file(name, std::to_string(*otherwise));
      return *otherwise;
    }
    if (given == nullptr || !given->is_number_integer() || given->get<std::int64_t>() < 1 ||
        given->get<std::int64_t>() > std::int64_t{1} << 31) {
      refuse(name, given != nullptr && given->is_array()
                       ? "one number for all layers; layers whose heads differ are lines of their own (--list)"
                       : "a positive number");
      return 1;
    }
    return given->get<std::int64_t>();
  }

  Failure unknown() const {
    std::string fields;
    for (const char* name : telling_fields)
      if (const Json* given = in_file(name); given != nullptr && !given->is_null())
        fields += fmt::format("{}{} {}", fields.empty() ? "" : ", ", name,
                              given->is_array() ? fmt::format("of {} layers", given->size()) : given->dump());
    return {
        ExitCode::unsupported,
        fmt::format("{}: model_type {} is not known; {} are. It has {}: `wavejit prebuild --list` takes lines that are "
                    "written by hand (docs/problem-descriptors.md), `--preset` those of a model that is alike",
                    where_, model_.type, known_model_types(), fields.empty() ? "none of the usual fields" : fields)};
  }

  void read_dtype() {
    const Json* given = field("torch_dtype") != nullptr ? field("torch_dtype") : field("dtype");
    if (given == nullptr) model_.notes.emplace_back("torch_dtype is not in the file: bf16");
    const std::string dtype = given != nullptr && given->is_string() ? given->get<std::string>() : "bfloat16";
    model_.dtype = dtype == "float16" ? "fp16" : "bf16";
    if (dtype != "float16" && dtype != "bfloat16")
      model_.notes.push_back(fmt::format("weights are {}: engines serve them in bf16 here", dtype));
  }

  void read_heads() {
    model_.kv_heads = number("num_key_value_heads", model_.heads);  // null: as many
    if (model_.heads % model_.kv_heads != 0)
      refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads {}", model_.heads));
    read_head_dim();
    // Full layers may have heads of their own, where others have windows (Gemma 4).
    if (field("global_head_dim") != nullptr) full_head_dim_ = number("global_head_dim");
    if (field("num_global_key_value_heads") != nullptr) full_kv_heads_ = number("num_global_key_value_heads");
    if (full_kv_heads_ && model_.heads % *full_kv_heads_ != 0)
      refuse("num_global_key_value_heads", fmt::format("a divisor of num_attention_heads {}", model_.heads));
    if (in_file("per_layer_config") != nullptr && !in_file("per_layer_config")->is_null())
      refuse("per_layer_config", "none: layers whose heads differ are lines of their own (--list)");
    if (const Json* both = field("use_bidirectional_attention"); both != nullptr && *both == true)
      refuse("use_bidirectional_attention", "false: these lines are causal; `--list` takes others");
    if (field("num_kv_shared_layers") != nullptr && *field("num_kv_shared_layers") != 0)
      model_.notes.push_back(fmt::format("the last {} layers read keys of layers before them: the same lines",
                                         number("num_kv_shared_layers")));
  }

  // A class without a default of its own divides.
  void read_head_dim() {
    if (field("head_dim") != nullptr || default_of(model_.type, "head_dim") != nullptr) {
      model_.head_dim = number("head_dim");
      return;
    }
    const std::int64_t hidden = number("hidden_size");
    if (!failure_ && hidden % model_.heads != 0)
      refuse("head_dim", fmt::format("a number: hidden_size {} is no multiple of {} heads", hidden, model_.heads));
    model_.head_dim = hidden / model_.heads;
    not_in_file("head_dim", fmt::format("{} (hidden_size / num_attention_heads)", model_.head_dim));
  }

  void read_latent() {
    LatentDims latent;
    latent.rank = number("kv_lora_rank");
    latent.rope = number("qk_rope_head_dim");
    latent.key_dims = number("qk_nope_head_dim") + latent.rope;
    latent.value_dims = number("v_head_dim");
    if (field("index_topk") != nullptr) {
      latent.top_k = number("index_topk");
      latent.index_heads = number("index_n_heads");
      latent.index_dims = number("index_head_dim");
    }
    model_.kv_heads = 1;
    model_.head_dim = latent.rank + latent.rope;
    model_.latent = latent;
  }

  // Whether layer `layer` is narrowed by the type's own rule.
  bool is_narrow(std::int64_t layer) {
    switch (type_.windows) {
      case Windows::none:
        return false;
      case Windows::if_given:
        return field("sliding_window") != nullptr;
      case Windows::if_used:
        return windows_are_used() && layer >= first_window_layer();
      case Windows::turns_if_used:
        return windows_are_used() && layer % 2 == 0 && layer < first_window_layer();
      case Windows::in_turns:
        return layer % 2 == 0;
      case Windows::by_pattern:
        return field("sliding_window") != nullptr && (layer + 1) % number("sliding_window_pattern", type_.pattern) != 0;
      case Windows::without_rope:
        return windows_are_used() && !has_rope(layer);
      case Windows::in_chunks:
        return has_rope(layer);
    }
    return false;
  }
  bool has_rope(std::int64_t layer) {
    const Json* rope = field("no_rope_layers");
    if (rope != nullptr && rope->is_array() && static_cast<std::size_t>(layer) < rope->size())
      return (*rope)[static_cast<std::size_t>(layer)] != 0;
    return (layer + 1) % number("no_rope_layer_interval", 4) != 0;
  }
  bool windows_are_used() {
    const Json* used = field("use_sliding_window");
    return used != nullptr && used->is_boolean() && used->get<bool>() && field("sliding_window") != nullptr;
  }
  std::int64_t first_window_layer() {
    const Json* first = field("max_window_layers");
    return first != nullptr && first->is_number_integer() ? first->get<std::int64_t>() : 0;
  }

  // Layers with linear attention, where layer_types does not say it: Kimi Linear lists the others, counted from 1.
  bool is_linear(std::int64_t layer) {
    if (!type_.linear) return false;
    if (const Json* parts = field("linear_attn_config"); parts != nullptr && parts->is_object()) {
      const auto full = parts->find("full_attn_layers");
      if (full != parts->end() && full->is_array()) return std::ranges::find(*full, Json(layer + 1)) == full->end();
    }
    if (type_.latent) return layer == 0 || layer % 4 != 0;  // Kimi Linear without that list
    return (layer + 1) % number("full_attention_interval", 4) != 0;
  }

  std::string kind_of(std::int64_t layer, bool last) {
    if (last && type_.last_is_full) return "full";
    const Json* types = field("layer_types");
    if (types == nullptr || !types->is_array() || static_cast<std::size_t>(layer) >= types->size()) {
      if (is_linear(layer)) return "linear";
      if (!is_narrow(layer)) return "full";
      return type_.windows == Windows::in_chunks ? "chunked" : "sliding";
    }
    const Json& given = (*types)[static_cast<std::size_t>(layer)];
    for (const char* kind : {"full", "sliding", "chunked"})
      if (given == std::string(kind) + "_attention") return kind;
    if (type_.linear && given == "linear_attention") return "linear";
    if (model_.latent && model_.latent->top_k != 0 &&
        (given == "indexed_attention" || given == "deepseek_sparse_attention"))
      return "full";
    if (!failure_)
      failure_ = failed(ExitCode::usage,
                        fmt::format("{}: layer_types has {} for layer {}; full_attention, sliding_attention and "
                                    "chunked_attention{} are accepted",
                                    where_, given.dump(), layer, type_.linear ? ", linear_attention" : ""))
                     .error();
    return "full";
  }

  void read_layers() {
    const std::int64_t layers = number("num_hidden_layers");
    constexpr std::int64_t most = 4096;
    if (layers > most) refuse("num_hidden_layers", fmt::format("up to {}", most));
    // Layers behind num_hidden_layers may be in the list: those that predict tokens ahead.
    const Json* types = in_file("layer_types");
    const bool in_file_by_layer = types != nullptr && types->is_array();
    if (in_file_by_layer && std::cmp_less(types->size(), layers) && !failure_)
      failure_ =
          failed(ExitCode::usage, fmt::format("{}: layer_types has {} layers; the {} of num_hidden_layers are accepted",
                                              where_, types->size(), layers))
              .error();
    for (std::int64_t layer = 0; !failure_ && layer < layers; ++layer) {
      const std::string name = kind_of(layer, layer + 1 == layers);
      if (name == "linear") {
        ++model_.linear_layers;
        continue;
      }
      auto kind = std::ranges::find(model_.layers, name, &LayerKind::name);
      if (kind == model_.layers.end()) {
        const bool full = name == "full";
        model_.layers.push_back({.name = name,
                                 .window = {},
                                 .kv_heads = full ? full_kv_heads_.value_or(model_.kv_heads) : model_.kv_heads,
                                 .head_dim = full ? full_head_dim_.value_or(model_.head_dim) : model_.head_dim});
        kind = std::prev(model_.layers.end());
        if (name == "sliding") kind->window = number("sliding_window");
        if (name == "chunked")
          model_.notes.push_back(
              fmt::format("chunked layers attend within {} keys: engines give each chunk as a sequence "
                          "of its own, by the lines of full layers",
                          number("attention_chunk_size")));
      }
      ++kind->layers;
    }
    if (model_.layers.size() > 1 && type_.windows == Windows::in_turns && !in_file_by_layer)
      not_in_file("layer_types", "sliding and full in turns");
    if (model_.linear_layers > 0)
      model_.notes.push_back(
          fmt::format("{} layers of linear attention have no keys: no lines of these", model_.linear_layers));
  }

  const Json& config_;
  std::string where_;
  ModelType type_;
  ModelConfig model_;
  std::optional<std::int64_t> full_head_dim_;  // of full layers
  std::optional<std::int64_t> full_kv_heads_;
  std::optional<Failure> failure_;
};

}  // namespace

bool ModelConfig::is_default(std::string_view field) const {
  return std::ranges::find(defaults, field, &DefaultFigure::field) != defaults.end();
}

std::string known_model_types() {
  std::string names;
  for (const ModelType& type : model_types) names += (names.empty() ? "" : ", ") + std::string(type.name);
  return names;
}

Result<ModelConfig> parse_model(std::string_view text, const std::string& where) {
  const Json config = Json::parse(text, nullptr, false);
  if (config.is_discarded() || !config.is_object())
    return failed(ExitCode::file, where + ": it is no JSON object; a model's config.json is accepted");
  // Models of several kinds of input keep what their language model is in a part of its own.
  const auto part = config.find("text_config");
  const auto outer = config.find("model_type");
  if (part == config.end() || !part->is_object()) {
    if (outer == config.end() || !outer->is_string()) return Reader(config, where).read();
    const std::string text_type = outer->get<std::string>() + "_text";
    if (std::ranges::find(flat_types, outer->get<std::string>()) != flat_types.end()) {
      Json language = config;
      language["model_type"] = text_type;
      return Reader(language, where).read();
    }
    if (std::ranges::find(model_types, text_type, &ModelType::name) != model_types.end())
      return failed(
          ExitCode::usage,
          fmt::format("{}: text_config is not there; of a {} an object with its language model's fields is accepted",
                      where, outer->get<std::string>()));
    return Reader(config, where).read();
  }
  Json language = *part;
  if (!language.contains("model_type") && outer != config.end() && outer->is_string())
    language["model_type"] = outer->get<std::string>() + "_text";
  for (const char* of_all : {"torch_dtype", "dtype"})
    if (!language.contains(of_all) && config.contains(of_all)) language[of_all] = config[of_all];
  return Reader(language, where).read();
}

namespace {

// "Qwen/Qwen3-8B": two words, where no such folder is.
bool is_name_of_a_hub(const std::string& given) {
  return std::ranges::count(given, '/') == 1 && given.front() != '/' && given.front() != '.' && given.front() != '~' &&
         given.back() != '/' && !given.ends_with(".json");
}

}  // namespace

Result<ModelConfig> read_model(const std::string& folder_or_file) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path given(folder_or_file);
  const fs::path file = fs::is_directory(given, none) ? given / "config.json" : given;
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream)
    return failed(
        ExitCode::file,
        fmt::format("--model {}: cannot read {}; a folder with a model's config.json is accepted, or that file{}",
                    folder_or_file, file.string(),
                    is_name_of_a_hub(folder_or_file) ? fmt::format(". A model of Hugging Face is fetched before: "
                                                                   "hf download {} config.json --local-dir FOLDER",
                                                                   folder_or_file)
                                                     : ""));
  return parse_model(text.str(), "--model " + file.string());
}

}  // namespace wavejit::tools
