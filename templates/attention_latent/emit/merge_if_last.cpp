// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/merge_if_last.h"

#include "codegen/language/control.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/arrivals.h"
#include "templates/attention_latent/emit/parts_merge.h"

namespace wavejit::attention_latent {

using language::Kernel;
using language::Likelihood;
using language::Value;
using language::Values;

namespace {

// Runs that leave parts of the tile of rows, but for one: those that begin no later than its last tile of keys.
Value* other_runs(Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* run_tiles = ir.CreateMul(kernel.argument_i32(offsetof(Arguments, run_chunks)),
                                  kernel.constant(spec.chunk_keys() / attention::tile_keys));
  return kernel.uniform(ir.CreateUDiv(kernel.uniform(workgroup.last_of_runs), run_tiles));
}

}  // namespace

void merge_if_last(Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup, Value* scale) {
  llvm::IRBuilder<>& ir = kernel.ir();
  kernel.read_arguments_anew();
  Value* counter = ir.CreateAdd(kernel.uniform(workgroup.arrivals), kernel.wave());
  Value* is_last = attention::arrives_last(kernel, kernel.argument_i64(offsetof(Arguments, arrivals)), counter,
                                           other_runs(kernel, spec, workgroup));
  // Those that share 32 rows have a share of their dims each. The last of a tile may have none.
  Value* has_rows = ir.CreateICmpULT(workgroup.first_of_wave, workgroup.rows);
  language::if_uniform(kernel, ir.CreateAnd(is_last, has_rows), Likelihood::rarely, [&] {
    const CombineKernel parts = {.dtype = spec.dtype,
                                 .head_dim = spec.dims_v(),
                                 .few = spec.rows == Rows::r32,
                                 .listed = spec.listed,
                                 .scaled = spec.widens(),
                                 .target = spec.target};
    // Anew: none of it lives through the walk.
    Value* batch = language::opaque(kernel, workgroup.batch);
    PartsMerge merge(kernel, parts, scale,
                     {.lane = attention::lane_made_anew(kernel),
                      .batch = batch,
                      .sequence = attention::sequence_of(kernel, length_fields, batch),
                      .heads = kernel.argument_i32(offsetof(Arguments, heads)),
                      .multiplier = kernel.argument_i32(offsetof(Arguments, head_multiplier)),
                      .first = workgroup.first_of_wave,
                      .behind = workgroup.rows},
                     merge_loads(spec), language::Reach::agent);
    const auto exists = [&](const Values& at) { return ir.CreateICmpULT(at[0], kernel.constant(merge.parts())); };
    Value* step = ir.CreateMul(merge.beside(), kernel.constant(waves_of_rows(spec)));
    const Values first = {ir.CreateMul(workgroup.share, merge.beside())};
    language::if_uniform(kernel, exists(first), Likelihood::even, [&] {
      language::loop_in_phases(
          kernel, 1, first,
          [&](int, const Values& at) {
            Value* before = kernel.uniform(at[0]);
            merge.merge_from(before);
            return Values{ir.CreateAdd(before, step)};
          },
          exists);
    });
  });
}

}  // namespace wavejit::attention_latent
