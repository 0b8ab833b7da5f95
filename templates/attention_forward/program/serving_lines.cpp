// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <algorithm>

#include "templates/attention_forward/program/answers.h"

namespace wavejit::attention_forward::program {
namespace {

// Prompts with keys expanded per head; with LSE, and without the diagonal, where pieces of a context are merged.
std::vector<std::string> of_latent_layers(const ServedModel& served) {
  const LatentDims& latent = *served.config.latent;
  std::vector<std::string> lines;
  const std::string of_values = latent.key_dims == latent.value_dims ? "" : fmt::format("/{}", latent.value_dims);
  for (const char* words : {" causal", " causal lse", " lse"})
    lines.push_back(fmt::format("attention_forward {0} b1 q1..{1} k0..{1} h{2} d{3}{4}{5}", served.config.dtype,
                                rows_of_step, served.heads(), latent.key_dims, of_values, words));
  return lines;
}

}  // namespace

std::vector<std::string> serving_lines(const ServedModel& served) {
  const ModelConfig& model = served.config;
  if (model.latent) return of_latent_layers(served);
  std::string modifiers;
  if (model.sinks) modifiers += " sink";
  if (model.softcap != 0) modifiers += fmt::format(" softcap={}", model.softcap);
  std::vector<std::string> lines;
  std::vector<std::string> seen;
  for (const LayerKind& kind : model.layers) {
    const std::int64_t kv_heads = served.kv_heads(kind);
    std::string words = fmt::format("h{}{} d{} causal", served.heads(),
                                    served.heads() == kv_heads ? "" : fmt::format("/{}", kv_heads), kind.head_dim);
    if (kind.window) words += fmt::format(" window={},0", *kind.window - 1);
    // Kinds of layers that differ in name alone are one.
    if (std::ranges::contains(seen, words)) continue;
    seen.push_back(words);
    // Every mix of prompts, pieces of prompts and tokens; one sequence; a prompt whose keys stand in no cache yet.
    for (const int sequences : {sequences_of_step, 1})
      lines.push_back(fmt::format("attention_forward {} b{} q1..{} k0..{} {} {}{}", model.dtype, sequences,
                                  rows_of_step, model.longest, words, served.layout(), modifiers));
    lines.push_back(
        fmt::format("attention_forward {0} b1 q1..{1} k0..{1} {2}{3}", model.dtype, rows_of_step, words, modifiers));
  }
  return lines;
}

}  // namespace wavejit::attention_forward::program
