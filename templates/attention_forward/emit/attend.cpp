// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/attend.h"

#include "templates/attention_forward/emit/walks/list_walk.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {

using language::Accumulator;
using language::Element;
using language::Kernel;

GenericKernel::GenericKernel(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan)
    : kernel(kernel),
      spec(spec),
      plan(plan),
      wave(language::wave_shape(kernel)),
      matrix(kernel, wave.rows, wave.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
      workgroup(begin_workgroup(kernel, spec)),
      modifiers(kernel, spec.modifiers, spec.bias_type(), score_fields, workgroup),
      tiles(plan.layout == LdsLayout::padded ? nullptr
                                             : make_tiles(kernel, tile_shape(spec, kernel.target()), plan,
                                                          workgroup.keys(), workgroup.lane_group, matrix)),
      softmax(kernel, modifiers.softmax_scale(), workgroup.rescale_threshold,
              spec.narrow_queries ? language::WeightType::bytes : language::WeightType::wide),
      walk(walk_of(kernel, workgroup)),
      merged(kernel, spec, plan, workgroup, *walk, softmax) {}

std::vector<FragmentStep> GenericKernel::key_steps() const {
  std::vector<FragmentStep> steps;
  for (int dims = 0; dims < blocks_of_dims(spec.head_dim_qk, wave.fragment_k()); ++dims)
    for (int keys = 0; keys < spec.tile_keys / wave.rows; ++keys) steps.push_back({keys, dims});
  return steps;
}

std::vector<FragmentStep> GenericKernel::value_steps() const {
  std::vector<FragmentStep> steps;
  for (int keys = 0; keys < spec.tile_keys / wave.fragment_k(); ++keys)
    for (int dims = 0; dims < output_blocks(); ++dims) steps.push_back({keys, dims});
  return steps;
}

std::vector<Accumulator> GenericKernel::multiply_keys(FragmentReads& keys, const std::vector<language::OperandB>& query,
                                                      const std::function<void()>& all_read) const {
  std::vector<Accumulator> scores(static_cast<std::size_t>(spec.tile_keys / wave.rows), matrix.zeros());
  const auto use = [&](const FragmentStep& step, const language::OperandA& fragment) {
    Accumulator& sum = scores[static_cast<std::size_t>(step.keys)];
    sum = matrix.mma(fragment, query[static_cast<std::size_t>(step.dims)], sum);
  };
  keys.consume(use, all_read);
  return scores;
}

}  // namespace wavejit::attention_forward
