// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Split keys: which keys a workgroup of a split kernel walks, and what it leaves for attention_combine.
//
// A sequence's keys are cut into chunks of spec.split_keys, counted from key 0, and its chunks into `splits` runs, as
// even as whole chunks allow. Both are functions of the sequence's own length, so that nothing of the batch around it
// shows. A workgroup walks the tiles of its run that its rows see; no pipeline knows of more. docs/split-keys.md has
// the formulas.
#pragma once

#include <span>

#include "codegen/language/matrix.h"
#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward {

// x of the grid is split · query heads + query head.
struct GridPlace {
  language::Value* query_head;
  language::Value* split;
};
GridPlace place_of(language::Kernel& kernel, language::Value* grid_x);

// The tiles of a run of whole chunks, uniform: may reach past the sequence, and first > last where there are none.
struct KeyTiles {
  language::Value* first;
  language::Value* last;
};
KeyTiles tiles_of_run(language::Kernel& kernel, const KernelSpec& spec, language::Value* split,
                      language::Value* key_length);

// O, m and l of the workgroup's rows as they are, in f32 (combine/workspace.h). A run that a row sees nothing
// of leaves 0, −inf and 0.
void store_partial_results(language::Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup,
                           std::span<const language::Accumulator> outputs, language::Value* maximum,
                           language::Value* sum);

}  // namespace wavejit::attention_forward
