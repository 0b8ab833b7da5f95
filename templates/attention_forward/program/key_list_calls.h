// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls over a drawn batch of lists of keys, whole or in parts, and what each query gets of them.
#pragma once

#include <vector>

#include "templates/attention_forward/program/key_list_batch.h"
#include "tools/exit_code.h"

namespace wavejit::attention_forward::program {

// Runs the call and returns what all queries get.
tools::Result<std::vector<attention::program::RowAnswer>> run_key_lists(wavejit_engine* engine,
                                                                        const KeyListBatch& batch,
                                                                        const attention::program::ListChange& change);

}  // namespace wavejit::attention_forward::program
