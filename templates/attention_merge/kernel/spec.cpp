// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_merge/kernel/spec.h"

#include <span>

#include "targets/targets.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/attention/kernel/output_scale.h"

namespace wavejit::attention_merge {

std::optional<std::string> refusal_of(const MergeKernel& spec) {
  if (auto unknown = attention::unknown_target(spec.target)) return unknown;
  if (auto refusal = attention::refusal_of_output(spec.out, *targets::find_target(spec.target), "out=")) return refusal;
  if (is_narrow(spec.out)) return std::nullopt;
  if (spec.out != spec.parts && spec.out != DataType::fp32 && spec.parts != DataType::fp32)
    return "out=" + std::string(families::name_in(output_types, spec.out)) + " of parts in " +
           std::string(families::name_in(output_types, spec.parts)) +
           "; accepted: their type, fp32, and types of 8 bits";
  return std::nullopt;
}

std::size_t argument_bytes(const MergeKernel& /*spec*/) { return sizeof(Arguments); }

std::span<const families::KernelKind> own_kernel_kinds() { return families::only_kernel_kind<AskedWords>(); }

}  // namespace wavejit::attention_merge
