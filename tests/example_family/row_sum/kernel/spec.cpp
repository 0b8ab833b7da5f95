// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/example_family/row_sum/kernel/spec.h"

#include <array>
#include <span>

#include "targets/targets.h"

namespace wavejit::row_sum {

std::string to_text(const KernelSpec& spec) {
  return std::string(KernelSpec::kernel) + " " + std::string(families::name_in(data_types, spec.dtype)) +
         " target=" + spec.target + " lowering=" + std::string(to_text(spec.lowering));
}

std::expected<KernelSpec, std::string> parse_spec(std::string_view text) {
  // One text a spec: what to_text prints, word for word.
  for (const targets::Target& target : targets::all_targets())
    for (const auto& [dtype, dtype_name] : data_types)
      for (const auto& [lowering, lowering_name] : families::lowerings) {
        KernelSpec spec = {.dtype = dtype, .target = std::string(target.id), .lowering = lowering};
        if (to_text(spec) == text) return spec;
      }
  return std::unexpected("kernel spec '" + std::string(text) +
                         "'; accepted: row_sum <fp32|fp16> target=<processor> lowering=<llvm|comgr>");
}

// Every target of the table has what it takes.
std::optional<std::string> refusal_of(const KernelSpec& spec) {
  if (targets::find_target(spec.target) != nullptr) return std::nullopt;
  return "target=" + spec.target + " is not in the target table; accepted: " + targets::known_targets();
}

std::size_t argument_bytes(const KernelSpec&) { return sizeof(Arguments); }

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {families::kind_of<KernelSpec, parse_spec>};
  return kinds;
}

}  // namespace wavejit::row_sum
