// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "families/kernel/kernel_spec.h"

#include <vector>

// One line a family, from WAVEJIT_FAMILIES in CMakeLists.txt.
#define WAVEJIT_FAMILY(name)                                \
  namespace wavejit::name {                                 \
  std::span<const families::KernelKind> own_kernel_kinds(); \
  }
#include "registered_families.inc"
#undef WAVEJIT_FAMILY

namespace wavejit::families {

std::span<const KernelKind> kernel_kinds() {
  static const std::vector<KernelKind> all = [] {
    std::vector<KernelKind> kinds;
    const auto add = [&](std::span<const KernelKind> own) { kinds.insert(kinds.end(), own.begin(), own.end()); };
#define WAVEJIT_FAMILY(name) add(name::own_kernel_kinds());
#include "registered_families.inc"
#undef WAVEJIT_FAMILY
    return kinds;
  }();
  return all;
}

std::expected<KernelSpec, std::string> parse_spec(std::string_view text) {
  const std::string_view first = text.substr(0, text.find(' '));
  std::string accepted;
  for (const KernelKind& kind : kernel_kinds()) {
    if (kind.kernel == first) return kind.parse(text);
    accepted += (accepted.empty() ? "" : ", ") + std::string(kind.kernel);
  }
  return std::unexpected("kernel spec: word 1 '" + std::string(first) + "': accepted: " + accepted);
}

}  // namespace wavejit::families
