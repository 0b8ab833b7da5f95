// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/dualwave_scales.h"

#include <memory>
#include <utility>
#include <vector>

#include "codegen/language/control.h"

namespace wavejit::attention_forward::dualwave {

using attention::TileSoftmax;
using language::Accumulator;
using language::Value;
using language::Values;

void Scales::modify(const attention::ScoreModifiers& modifiers, Value* tile, const Values& fetched,
                    std::span<Accumulator> scores) {
  // Modifiers take scores that are scaled.
  if (spec_.modified()) {
    scales_.scale_scores(scales_.unfolded(std::exchange(of_keys_, nullptr)), scores);
    modifiers.apply(tile, fetched, scores);
    return;
  }
  Values values;
  for (const Accumulator& part : scores) values.push_back(part.value);
  values.push_back(of_keys_);
  values =
      language::if_uniform(kernel_, hides_keys(tile), language::Likelihood::even, values, [&](const Values& before) {
        std::vector<Accumulator> masked(scores.begin(), scores.end());
        for (std::size_t part = 0; part < masked.size(); ++part) masked[part].value = before[part];
        scales_.scale_scores(scales_.unfolded(before.back()), masked);
        modifiers.apply(tile, fetched, masked);
        Values after;
        for (const Accumulator& part : masked) after.push_back(part.value);
        after.push_back(kernel_.constant(1.0F));
        return after;
      });
  for (std::size_t part = 0; part < scores.size(); ++part) scores[part].value = values[part];
  of_keys_ = values.back();
}

// As the mask asks (templates/attention/emit/mask.cpp).
Value* Scales::hides_keys(Value* tile) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* first_key = ir.CreateMul(tile, kernel_.constant(tile_keys));
  Value* last_key = ir.CreateAdd(first_key, kernel_.constant(tile_keys - 1));
  Value* hides = ir.CreateICmpSGT(last_key, workgroup_.wave_limit);
  if (workgroup_.begin_offset == nullptr) return hides;
  return ir.CreateOr(hides, ir.CreateICmpSLT(first_key, workgroup_.wave_begin));
}

namespace {

// Two registers from the first use on.
TileSoftmax::Scaled scaled_by(const TokenScales& scales, Value* folded) {
  auto unfolded = std::make_shared<Values>();
  return [&scales, folded, unfolded](int part, int r, Value* number) {
    if (unfolded->empty()) *unfolded = scales.unfolded(folded);
    return scales.scaled(*unfolded, part, r, number);
  };
}

}  // namespace

TileSoftmax::Scaled Scales::of_scores() {
  if (of_keys_ == nullptr) return {};
  return scaled_by(scales_, std::exchange(of_keys_, nullptr));
}

TileSoftmax::Scaled Scales::of_weights(const State& state) const { return scaled_by(scales_, state.value_scales); }

}  // namespace wavejit::attention_forward::dualwave
