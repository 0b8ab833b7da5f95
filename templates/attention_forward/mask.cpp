#include "templates/attention_forward/mask.h"

#include <array>
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
      // Compares in groups before the selects that use them: a select right behind its compare waits two slots.
      constexpr int group = 4;
      for (int first = 0; first < layout.registers(); first += group) {
        std::array<Value*, group> is_hidden;
        for (int i = 0; i < group; ++i) {
          const int key = static_cast<int>(part) * layout.rows + layout.row_of_register(first + i);
          is_hidden[static_cast<std::size_t>(i)] = ir.CreateICmpSLT(kept, kernel.constant(key));
        }
        for (int i = 0; i < group; ++i) {
          Value* score = ir.CreateExtractElement(before[part], first + i);
          Value* selected = ir.CreateSelect(is_hidden[static_cast<std::size_t>(i)], hidden, score);
          masked = ir.CreateInsertElement(masked, selected, first + i);
        }
      }
      after.push_back(masked);
    }
    return after;
  });
  for (std::size_t part = 0; part < scores.size(); ++part) scores[part].value = values[part];
}

}  // namespace wavejit::attention_forward
