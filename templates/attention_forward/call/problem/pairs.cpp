// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/problem/pairs.h"

#include <cstdint>

#include "templates/attention_forward/call/problem/route.h"

namespace wavejit::attention_forward {
namespace {

constexpr std::uint64_t rounded_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

bool pairs_tiles(const AttentionProblem& problem, const targets::Target& target) {
  const AttentionShape& shape = problem.shape;
  if (shape.mask != Mask::causal || shape.query_rows != QueryRows::more || shape.packed_heads) return false;
  if (default_pipeline(target, shape.query_rows) != Pipeline::dualwave) return false;
  const auto tile = static_cast<std::uint64_t>(tile_queries_of(shape, target, Pipeline::dualwave));
  const std::uint64_t tiles = rounded_up(problem.query_length, tile);
  const std::uint64_t heads = std::uint64_t{problem.batch} * problem.query_heads;
  const auto units = static_cast<std::uint64_t>(target.compute_units);
  return tiles >= 2 && heads * rounded_up(tiles, 2) >= units;
}

}  // namespace wavejit::attention_forward
