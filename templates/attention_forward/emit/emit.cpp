// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/emit.h"

#include <utility>

#include "templates/attention_forward/emit/dualwave.h"
#include "templates/attention_forward/emit/generic_pipeline.h"
#include "templates/attention_forward/emit/interleaved.h"
#include "templates/attention_forward/emit/shared_register_walk.h"
#include "templates/attention_forward/emit/shared_walk.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

using language::Kernel;

// Straight-line strength reduction looks at all pairs of addresses: it took two thirds of what compiling these took,
// and 0.1 % of their predicted cycles.
bool has_many_addresses(const ForwardKernel& spec) {
  constexpr int usual_dims = 128;
  if (spec.pipeline != Pipeline::generic) return false;
  return spec.paged || spec.listed || (spec.chunk_waves != 0 && spec.head_dim_v > usual_dims);
}

}  // namespace

std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const ForwardKernel& spec, const targets::Target& target,
                                                               llvm::LLVMContext& context) {
  if (spec.target != target.id)
    return std::unexpected("the spec is for target=" + spec.target + ", not for " + std::string(target.id));
  const auto resources = resources_of(spec);
  if (!resources) return std::unexpected(resources.error());
  return emit_unasked(spec, *resources, target, context);
}

std::expected<std::unique_ptr<llvm::Module>, std::string> emit_unasked(const ForwardKernel& spec,
                                                                       const Resources& resources,
                                                                       const targets::Target& target,
                                                                       llvm::LLVMContext& context) {
  const LdsPlan plan = lds_plan(spec, target);
  Kernel kernel(context, target,
                {.name = kernel_name(spec),
                 .threads = resources.threads,
                 .waves_per_simd = targets::waves_with(target, resources.vgpr_budget),
                 .vgpr_budget = resources.vgpr_budget,
                 .argument_bytes = static_cast<int>(argument_bytes(spec)),
                 .strength_reduction = !has_many_addresses(spec)});
  switch (spec.pipeline) {
    case Pipeline::generic:
      if (spec.chunk_waves != 0) {
        plan.layout == LdsLayout::lines ? emit_shared_walk(kernel, spec, plan)
                                        : emit_shared_register_walk(kernel, spec, plan);
        break;
      }
      emit_generic(kernel, spec, plan);
      break;
    case Pipeline::dualwave:
      emit_dualwave(kernel, spec, plan);
      break;
    case Pipeline::interleaved:
      emit_interleaved(kernel, spec, plan);
      break;
  }
  return kernel.finish();
}

}  // namespace wavejit::attention_forward
