// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace wavejit::tools {

std::int64_t ServedModel::share(std::int64_t kv_heads) const {
  return std::max<std::int64_t>(kv_heads / tensor_parallel, 1);
}

std::string ServedModel::layout() const {
  constexpr int tile = 64;
  constexpr int granule = 16;
  return fmt::format("layout=paged:{}", page % tile == 0 ? tile : page == 1 ? 1 : granule);
}

Result<void> check_served(const ServedModel& served, const std::string& where) {
  const std::int64_t ranks = served.tensor_parallel;
  const ModelConfig& model = served.config;
  if (model.heads % ranks != 0)
    return failed(ExitCode::usage,
                  fmt::format("--tp {}: {} has {} heads; divisors of it are accepted", ranks, where, model.heads));
  for (const LayerKind& kind : model.layers)
    if (!model.latent && kind.kv_heads % ranks != 0 && ranks % kind.kv_heads != 0)
      return failed(ExitCode::usage,
                    fmt::format("--tp {}: {} has {} kv heads; divisors and multiples of it are accepted", ranks, where,
                                kind.kv_heads));
  return {};
}

namespace {

std::string told_defaults(const ModelConfig& model) {
  std::string figures;
  for (const DefaultFigure& each : model.defaults)
    figures += fmt::format("{}{} {}", figures.empty() ? "" : ", ", each.field, each.value);
  return fmt::format("* is not in the file{}: {}",
                     model.defaults_of.empty() ? "" : fmt::format(" and comes from {}", model.defaults_of), figures);
}

}  // namespace

std::vector<std::string> told(const ServedModel& served) {
  const ModelConfig& model = served.config;
  // A figure that the file does not have, with a mark.
  const auto figure = [&model](auto number, std::initializer_list<const char*> fields) {
    const bool marked = std::ranges::any_of(fields, [&model](const char* field) { return model.is_default(field); });
    return fmt::format("{}{}", number, marked ? "*" : "");
  };
  std::vector<std::string> lines;
  std::string heads = figure(model.heads, {"num_attention_heads"}) + " heads";
  if (model.latent)
    heads += fmt::format(" over a latent of {} and a rope of {}, head dims {} and {} expanded",
                         figure(model.latent->rank, {"kv_lora_rank"}), figure(model.latent->rope, {"qk_rope_head_dim"}),
                         figure(model.latent->key_dims, {"qk_nope_head_dim", "qk_rope_head_dim"}),
                         figure(model.latent->value_dims, {"v_head_dim"}));
  else
    heads += fmt::format(", {} kv heads, head dim {}", figure(model.kv_heads, {"num_key_value_heads"}),
                         figure(model.head_dim, {"head_dim"}));
  if (model.softcap != 0) heads += ", soft-cap " + figure(model.softcap, {"attn_logit_softcapping"});
  if (model.sinks) heads += ", sinks";
  lines.push_back(fmt::format("{}, {}: {}, {} keys at most", model.type, model.dtype, heads,
                              figure(model.longest, {"max_position_embeddings"})));
  if (model.latent && model.latent->top_k != 0)
    lines.push_back(fmt::format(
        "an indexer of {} heads of {} dims chooses {} keys", figure(model.latent->index_heads, {"index_n_heads"}),
        figure(model.latent->index_dims, {"index_head_dim"}), figure(model.latent->top_k, {"index_topk"})));
  for (const LayerKind& kind : model.layers) {
    const std::string layers = figure(kind.layers, {"num_hidden_layers", "layer_types", "sliding_window_pattern",
                                                    "no_rope_layer_interval", "full_attention_interval"});
    std::string& line = lines.emplace_back(fmt::format("{} layers: {}", layers, kind.name));
    if (kind.window) line += fmt::format(", windows of {} keys", figure(*kind.window, {"sliding_window"}));
    if (kind.kv_heads != model.kv_heads) line += fmt::format(", {} kv heads", kind.kv_heads);
    if (kind.head_dim != model.head_dim)
      line += fmt::format(", head dim {}", figure(kind.head_dim, {"global_head_dim"}));
  }
  if (!model.defaults.empty()) lines.push_back(told_defaults(model));
  lines.insert(lines.end(), model.notes.begin(), model.notes.end());
  lines.push_back(fmt::format("--tp {}: a rank has {} heads{}; pages of {} keys", served.tensor_parallel,
                              served.heads(), model.latent ? "" : fmt::format(" over {}", served.kv_heads()),
                              served.page));
  return lines;
}

}  // namespace wavejit::tools
