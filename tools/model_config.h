// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a model's config.json says of its attention: kinds of layers, each with heads, dims, window and modifiers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/exit_code.h"

namespace wavejit::tools {

// Layers that go through the same kernels.
struct LayerKind {
  std::string name;  // "full", "sliding", "chunked"
  std::int64_t layers = 0;
  std::optional<std::int64_t> window;  // keys that a row sees, its own included
  std::int64_t kv_heads = 0;           // the model's, but where full layers have others (Gemma 4)
  std::int64_t head_dim = 0;           // as above
  bool operator==(const LayerKind&) const = default;
};

// Latent attention (MLA). `heads` of it are the model's.
struct LatentDims {
  std::int64_t rank = 0;  // kv_lora_rank: columns that are keys and values
  std::int64_t rope = 0;
  std::int64_t key_dims = 0;     // of a head, expanded: those without rope and those with
  std::int64_t value_dims = 0;   // the same of V
  std::int64_t index_heads = 0;  // of the indexer of sparse attention; 0: there is none
  std::int64_t index_dims = 0;
  std::int64_t top_k = 0;
};

// A figure that the file does not have.
struct DefaultFigure {
  std::string field;
  std::string value;
};

struct ModelConfig {
  std::string type;   // model_type
  std::string dtype;  // of Q and O: "bf16", "fp16"
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t longest = 0;  // keys of a sequence
  double softcap = 0;        // of scores; 0: none
  bool sinks = false;
  std::optional<LatentDims> latent;
  std::vector<LayerKind> layers;
  std::int64_t linear_layers = 0;  // layers of linear attention, which have no keys and are in no kind
  std::vector<std::string> notes;  // what somebody should know who reads the lines
  std::vector<DefaultFigure> defaults;
  std::string defaults_of;  // whose they are: "Gemma3TextConfig of transformers 5.23.0"

  bool is_default(std::string_view field) const;
};

// Reads the folder's config.json, or the file itself. A type of model that is not known is refused with its fields.
Result<ModelConfig> read_model(const std::string& folder_or_file);
// Reads the text; `where` is what failures call it.
Result<ModelConfig> parse_model(std::string_view text, const std::string& where);
// The types that are known, in one line.
std::string known_model_types();

}  // namespace wavejit::tools
