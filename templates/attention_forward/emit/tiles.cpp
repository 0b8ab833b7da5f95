// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/tiles.h"

#include "templates/attention_forward/emit/tiles_lines.h"
#include "templates/attention_forward/emit/tiles_swizzled.h"
#include "templates/attention_forward/emit/tiles_vectorised.h"

namespace wavejit::attention_forward {

std::unique_ptr<Tiles> make_tiles(language::Kernel& kernel, const KernelSpec& spec, const LdsPlan& plan,
                                  const Workgroup& workgroup, const language::MatrixUnit& matrix) {
  if (spec.vectorised && plan.layout == LdsLayout::lines)
    return std::make_unique<LineUnits>(kernel, spec, plan, workgroup, matrix);
  if (spec.vectorised) return std::make_unique<RegisterUnits>(kernel, spec, plan, workgroup, matrix);
  if (plan.layout == LdsLayout::lines) return std::make_unique<LineTiles>(kernel, spec, plan, workgroup, matrix);
  return std::make_unique<SwizzledTiles>(kernel, spec, plan, workgroup, matrix);
}

}  // namespace wavejit::attention_forward
