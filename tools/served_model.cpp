// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/served_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace wavejit::tools {

std::int64_t ServedModel::kv_heads() const { return std::max<std::int64_t>(config.kv_heads / tensor_parallel, 1); }

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
  if (!model.latent && model.kv_heads % ranks != 0 && ranks % model.kv_heads != 0)
    return failed(ExitCode::usage, fmt::format("--tp {}: {} has {} kv heads; divisors and multiples of it are accepted",
                                               ranks, where, model.kv_heads));
  return {};
}

std::vector<std::string> told(const ServedModel& served) {
  const ModelConfig& model = served.config;
  std::vector<std::string> lines;
  std::string heads = fmt::format("{} heads", model.heads);
  if (model.latent)
    heads += fmt::format(" over a latent of {} and a rope of {}, head dims {} and {} expanded", model.latent->rank,
                         model.latent->rope, model.latent->key_dims, model.latent->value_dims);
  else
    heads += fmt::format(", {} kv heads, head dim {}", model.kv_heads, model.head_dim);
  if (model.softcap != 0) heads += fmt::format(", soft-cap {}", model.softcap);
  if (model.sinks) heads += ", sinks";
  lines.push_back(fmt::format("{}, {}: {}, {} keys at most", model.type, model.dtype, heads, model.longest));
  if (model.latent && model.latent->top_k != 0)
    lines.push_back(fmt::format("an indexer of {} heads of {} dims chooses {} keys", model.latent->index_heads,
                                model.latent->index_dims, model.latent->top_k));
  for (const LayerKind& kind : model.layers)
    lines.push_back(fmt::format("{} layers: {}{}", kind.layers, kind.name,
                                kind.window ? fmt::format(", windows of {} keys", *kind.window) : ""));
  lines.insert(lines.end(), model.notes.begin(), model.notes.end());
  lines.push_back(fmt::format("--tp {}: a rank has {} heads{}; pages of {} keys", served.tensor_parallel,
                              served.heads(), model.latent ? "" : fmt::format(" over {}", served.kv_heads()),
                              served.page));
  return lines;
}

}  // namespace wavejit::tools
