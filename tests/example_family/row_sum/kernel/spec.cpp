// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/example_family/row_sum/kernel/spec.h"

#include <span>

#include "targets/targets.h"

namespace wavejit::row_sum {

// Every target of the table has what it takes.
std::optional<std::string> refusal_of(const RowSumKernel& spec) {
  if (targets::find_target(spec.target) != nullptr) return std::nullopt;
  return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
}

std::size_t argument_bytes(const RowSumKernel&) { return sizeof(Arguments); }

std::span<const families::KernelKind> own_kernel_kinds() { return families::only_kernel_kind<AskedWords>(); }

}  // namespace wavejit::row_sum
