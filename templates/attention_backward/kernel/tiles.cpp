// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/kernel/tiles.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace wavejit::attention_backward {
namespace {

struct TunedDefault {
  std::string_view target;
  Grid grid;
  int tile;
};
constexpr TunedDefault tuned_defaults[] = {
#include "templates/attention_backward/kernel/tuned_defaults.inc"
};

}  // namespace

bool has_tile(const targets::Target& target, int tile) {
  KeyKernel plain;
  plain.head_dim_qk = plain.head_dim_v = 128;
  plain.target = target.id;
  if (tile == rows_of_workgroup) return true;
  if (tile == rows_of_workgroup * most_blocks) return default_key_blocks(plain, target) == most_blocks;
  return tile == rows_of_workgroup / sharing_waves && !sharing_refusal(plain);
}

int default_tile(const targets::Target& target, Grid grid) {
  const auto* const tuned = std::ranges::find_if(
      tuned_defaults, [&](const TunedDefault& each) { return each.target == target.id && each.grid == grid; });
  const int wanted = tuned != std::end(tuned_defaults) ? tuned->tile : tile_sizes[static_cast<std::size_t>(grid)];
  return has_tile(target, wanted) ? wanted : rows_of_workgroup;
}

}  // namespace wavejit::attention_backward
