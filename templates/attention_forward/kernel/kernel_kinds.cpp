// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels of this family, by the first word of their specs.
#include <array>
#include <span>

#include "templates/attention_forward/kernel/combine/spec.h"
#include "templates/attention_forward/kernel/spec.h"
#include "templates/attention_forward/kernel/walks/block_lists/spec.h"
#include "templates/attention_forward/kernel/walks/mask_lists/spec.h"

namespace wavejit::attention_forward {

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {
      families::kind_of<ForwardKernel,
                        static_cast<std::expected<ForwardKernel, std::string> (*)(std::string_view)>(parse_spec)>,
      families::kind_of<attention_combine::CombineKernel, attention_combine::parse_spec>,
      families::kind_of<attention_block_lists::BlockListsKernel, attention_block_lists::parse_spec>,
      families::kind_of<attention_mask_lists::MaskListsKernel, attention_mask_lists::parse_spec>,
  };
  return kinds;
}

}  // namespace wavejit::attention_forward
