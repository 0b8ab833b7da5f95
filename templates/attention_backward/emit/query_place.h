// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which rows a workgroup of the dQ kernel owns, and which keys they see.
#pragma once

#include <vector>

#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

struct QueryPlace {
  attention::Sequence sequence;
  language::Value* kv_head;
  std::vector<attention::QueryTile> queries;  // of each block of the wave
  // Tiles of keys.
  language::Value* first_tile;
  language::Value* tiles;
};

QueryPlace find_query_place(language::Kernel& kernel, const QueryKernel& spec);

}  // namespace wavejit::attention_backward
