// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model as an engine serves it. Families say which of their calls that takes (tools/family.h, serving_lines).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/exit_code.h"
#include "tools/model_config.h"

namespace wavejit::tools {

struct ServedModel {
  ModelConfig config;
  std::int64_t tensor_parallel = 1;  // ranks that share the heads
  std::int64_t page = 16;            // keys of a page of the cache

  // The KV heads of a rank. Ranks beyond the kv heads have one each, the same for several.
  std::int64_t heads() const { return config.heads / tensor_parallel; }
  std::int64_t kv_heads() const { return share(config.kv_heads); }
  std::int64_t kv_heads(const LayerKind& kind) const { return share(kind.kv_heads); }
  // "layout=paged:<n>" as lines have it: pages that hold whole tiles have kernels of their own, and so have the others
  // and those of one key.
  std::string layout() const;

 private:
  std::int64_t share(std::int64_t kv_heads) const;
};

// The rows that engines give to one step, and how many sequences. No kernel depends on these numbers themselves.
inline constexpr int rows_of_step = 8192;
inline constexpr int sequences_of_step = 64;

// Whether the ranks can share it. `where` is what failures call the model.
Result<void> check_served(const ServedModel& served, const std::string& where);
// What was read, a line of text each, as comments of a list have it.
std::vector<std::string> told(const ServedModel& served);

}  // namespace wavejit::tools
