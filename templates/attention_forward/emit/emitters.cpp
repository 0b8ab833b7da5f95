// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the kernels of this family are emitted.
#include <array>
#include <span>

#include "families/emit/emit.h"
#include "templates/attention_forward/emit/combine/emit.h"
#include "templates/attention_forward/emit/emit.h"
#include "templates/attention_forward/emit/walks/block_lists/emit.h"
#include "templates/attention_forward/emit/walks/mask_lists/emit.h"

namespace wavejit::attention_forward {

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<ForwardKernel>,
                                     families::emitter_of<attention_combine::CombineKernel>,
                                     families::emitter_of<attention_block_lists::BlockListsKernel>,
                                     families::emitter_of<attention_mask_lists::MaskListsKernel>};
  return all;
}

}  // namespace wavejit::attention_forward
