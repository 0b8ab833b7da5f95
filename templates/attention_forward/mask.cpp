#include "templates/attention_forward/mask.h"

#include <limits>

#include "codegen/language/control.h"

namespace wavejit::attention_forward {

using language::Value;
using language::Values;

void apply_mask(language::Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup, Value* tile,
                std::span<language::Accumulator> scores) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* first_key = ir.CreateMul(tile, kernel.constant(spec.tile_keys));
  Value* last_key = ir.CreateAdd(first_key, kernel.constant(spec.tile_keys - 1));
  Value* reaches_past = ir.CreateICmpSGT(last_key, workgroup.wave_limit);

  Values values;
  for (const language::Accumulator& part : scores) values.push_back(part.value);
  values = language::if_uniform(kernel, reaches_past, language::Likelihood::even, values, [&](const Values& before) {
    // Keys the lane may keep, counted from the first key of its own group: one register, compared with a constant per
    // score. Thresholds up to 64 are inline constants.
    const language::AccumulatorLayout& layout = scores.front().layout;
    Value* kept = ir.CreateSub(ir.CreateSub(workgroup.row_limit, first_key),
                               ir.CreateMul(workgroup.lane_group, kernel.constant(layout.row_block)));
    Value* hidden = kernel.constant(-std::numeric_limits<float>::infinity());
    Values after;
    for (std::size_t part = 0; part < before.size(); ++part) {
      Value* masked = before[part];
      for (int r = 0; r < layout.registers(); ++r) {
        const int key = static_cast<int>(part) * layout.rows + layout.row_of_register(r);
        Value* score = ir.CreateExtractElement(before[part], r);
        Value* is_hidden = ir.CreateICmpSLT(kept, kernel.constant(key));
        masked = ir.CreateInsertElement(masked, ir.CreateSelect(is_hidden, hidden, score), r);
      }
      after.push_back(masked);
    }
    return after;
  });
  for (std::size_t part = 0; part < scores.size(); ++part) scores[part].value = values[part];
}

}  // namespace wavejit::attention_forward
