// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/key_ring.h"

#include "templates/attention_latent/emit/line_ring.h"
#include "templates/attention_latent/emit/swizzled_ring.h"

namespace wavejit::attention_latent {

std::unique_ptr<KeyRing> make_key_ring(language::Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup,
                                       const language::MatrixUnit& matrix) {
  if (stands_swizzled(spec, kernel.target())) return std::make_unique<SwizzledRing>(kernel, spec, workgroup, matrix);
  return std::make_unique<LineRing>(kernel, spec, workgroup, matrix);
}

}  // namespace wavejit::attention_latent
