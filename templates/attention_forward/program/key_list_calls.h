// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over a drawn batch of lists of keys, whole or in parts, and what each query gets of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "templates/attention_forward/program/key_list_batch.h"
#include "tools/exit_code.h"
#include "wavejit/simgpu.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program::key_lists {

// The rows of one query: O [head][dim], LSE [head].
struct Query {
  std::vector<std::uint16_t> o;
  std::vector<std::uint32_t> lse;
};

// Queries of one sequence, and heads that share a kv head or all.
struct Part {
  std::int64_t token = 0;
  std::int64_t head = 0;
  std::int64_t heads = 0;  // 0: the whole batch
};

struct Change {
  std::string text = {};
  std::int64_t page_size = 0;
  bool slots = false;
  std::int64_t first_entries = 0;  // of slots: what stands behind them is a second list over a second cache
  std::vector<Part> parts = {Part{}};
  std::int32_t splits = 0;
  bool dense_walks = false;
  bool reversed = false;  // lists, without counts
  std::optional<wavejit_simgpu_schedule> schedule = std::nullopt;
};

// Runs the call and returns what all queries get.
tools::Result<std::vector<Query>> run(wavejit_engine* engine, const KeyListBatch& batch, const Change& change);

}  // namespace wavejit::attention_forward::program::key_lists
