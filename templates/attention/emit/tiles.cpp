// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tiles.h"

#include "templates/attention/emit/tiles_lines.h"
#include "templates/attention/emit/tiles_swizzled.h"
#include "templates/attention/emit/tiles_vectorised.h"

namespace wavejit::attention {

std::unique_ptr<Tiles> make_tiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan,
                                  const KeyTensors& tensors, language::Value* lane_group,
                                  const language::MatrixUnit& matrix) {
  if (shape.layout.vectorised && plan.layout == LdsLayout::lines)
    return std::make_unique<LineUnits>(kernel, shape, plan, tensors, lane_group, matrix);
  if (shape.layout.vectorised) return std::make_unique<RegisterUnits>(kernel, shape, plan, tensors, lane_group, matrix);
  if (plan.layout == LdsLayout::lines && !shape.through_registers())
    return std::make_unique<LineTiles>(kernel, shape, plan, tensors, lane_group, matrix);
  return std::make_unique<SwizzledTiles>(kernel, shape, plan, tensors, lane_group, matrix);
}

}  // namespace wavejit::attention
