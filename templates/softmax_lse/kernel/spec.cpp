// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/softmax_lse/kernel/spec.h"

#include <span>

#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/coverage.h"

namespace wavejit::softmax_lse {

std::optional<std::string> refusal_of(const SoftmaxKernel& spec) {
  if (auto unknown = attention::unknown_target(spec.target)) return unknown;
  if (spec.access == Access::elements && spec.scores == DataType::fp32 && spec.weights == DataType::fp32)
    return "access=elements of fp32 tensors; accepted: access=vectors, which takes fp32 rows of every kind";
  return std::nullopt;
}

std::size_t argument_bytes(const SoftmaxKernel&) { return sizeof(Arguments); }

Rows rows_of(std::int64_t keys) {
  return keys <= std::int64_t{tiles_of_workgroup} * attention::tile_keys ? Rows::resident : Rows::streamed;
}

Access access_of(DataType scores, DataType weights, std::int64_t keys, bool unaligned) {
  const bool narrow = scores != DataType::fp32 || weights != DataType::fp32;
  return narrow && (unaligned || keys % 2 != 0) ? Access::elements : Access::vectors;
}

std::span<const families::KernelKind> own_kernel_kinds() { return families::only_kernel_kind<AskedWords>(); }

}  // namespace wavejit::softmax_lse
