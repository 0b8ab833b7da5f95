// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/combine.h"

#include <utility>

#include "codegen/language/control.h"
#include "codegen/language/loads_first.h"
#include "templates/attention/emit/cache_scale.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention_latent/emit/parts_merge.h"
#include "templates/attention_latent/emit/workgroup.h"
#include "templates/attention_latent/kernel/arguments.h"

namespace wavejit::attention_latent {
namespace {

using language::Kernel;
using language::Value;

// Rows of the sequence: the tile's first, and the one behind the last of those that tiles are cut from.
std::pair<Value*, Value*> rows_of_tile(Kernel& kernel, bool listed, const attention::Sequence& sequence, Value* heads) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* tile = kernel.workgroup_x();
  Value* before = kernel.constant(0);
  Value* count = ir.CreateMul(sequence.query_length, heads);
  if (listed) {
    Value* tiles = ir.CreateUDiv(ir.CreateAdd(heads, kernel.constant(wave_rows - 1)), kernel.constant(wave_rows));
    Value* query = kernel.uniform(ir.CreateUDiv(tile, tiles));
    tile = ir.CreateSub(tile, ir.CreateMul(query, tiles));
    language::leave_if(kernel, ir.CreateICmpUGE(query, sequence.query_length));
    before = ir.CreateMul(query, heads);
    count = heads;
  }
  Value* first = ir.CreateAdd(before, ir.CreateMul(tile, kernel.constant(wave_rows)));
  Value* behind = ir.CreateAdd(before, count);
  language::leave_if(kernel, ir.CreateICmpUGE(first, behind));
  return {first, behind};
}

}  // namespace

void emit_combine(Kernel& kernel, const CombineKernel& spec) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  if (spec.scaled)
    scale = attention::with_key_scale(kernel, scale, cache_scale(kernel, score_scale_at, kernel.workgroup_z()));
  scale = ir.CreateBitCast(attention::positive_scale(kernel, scale), kernel.f32());
  // Made where it is first asked for: here, where every block can see it.
  Value* lane = kernel.lane();
  Value* batch = kernel.workgroup_z();
  const attention::Sequence sequence = attention::sequence_of(kernel, length_fields, batch);
  Value* heads = kernel.argument_i32(offsetof(Arguments, heads));
  Value* multiplier = kernel.argument_i32(offsetof(Arguments, head_multiplier));
  const auto [first, behind] = rows_of_tile(kernel, spec.listed, sequence, heads);
  PartsMerge merge(kernel, spec, scale,
                   {.lane = lane,
                    .batch = batch,
                    .sequence = sequence,
                    .heads = heads,
                    .multiplier = multiplier,
                    .first = first,
                    .behind = behind},
                   combine_loads(spec), language::Reach::cached);
  Value* before = ir.CreateMul(kernel.workgroup_y(), merge.beside());
  language::leave_if(kernel, ir.CreateICmpUGE(before, kernel.constant(merge.parts())));
  merge.merge_from(before);
  language::loads_first(kernel);
}

}  // namespace wavejit::attention_latent
