// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tile_walk.h"

#include "codegen/language/control.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"

namespace wavejit::attention {

using language::Value;

Value* TileWalk::last() const { return kernel_.ir().CreateSub(end_, kernel_.constant(1)); }
Value* TileWalk::ahead(Value* place, int tiles) const { return kernel_.ir().CreateAdd(place, kernel_.constant(tiles)); }
Value* TileWalk::at_most_last(Value* place) const { return minimum(kernel_, place, last()); }
Value* TileWalk::exists(Value* place) const { return kernel_.ir().CreateICmpSLT(place, end_); }
Value* TileWalk::fetches(const Stop& stop) const {
  Value* seen = sees(stop);
  return seen == nullptr ? exists(stop.place) : kernel_.ir().CreateAnd(exists(stop.place), seen);
}

// Set in a multiple of a chunk's tiles: no bit; nor is such a number negative.
std::uint32_t TileInterval::part_of_chunk() const {
  return 0x80000000U | static_cast<std::uint32_t>(tiles_of_chunk_ - 1);
}

void TileInterval::prepare_chunks() {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* tiles_before = kernel_.constant(-tiles_of_chunk_);
  first_border_ = ir.CreateAdd(ir.CreateAnd(first(), tiles_before), kernel_.constant(tiles_of_chunk_));
  last_border_ = ir.CreateAnd(last(), tiles_before);
}

// A multiple of a chunk's tiles away from the first border, and not before it: one subtraction, one mask. Made anew for
// each branch: kept for a second one it would pass through a vector register, whose port the partner wave needs.
Value* TileInterval::begins_chunk(const Stop& stop) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* place = language::opaque(kernel_, stop.place);
  return ir.CreateICmpEQ(ir.CreateAnd(ir.CreateSub(place, first_border_), ir.getInt32(part_of_chunk())),
                         kernel_.constant(0));
}

// At the last border at the latest.
Value* TileInterval::exists_and_begins_chunk(const Stop& stop) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateICmpEQ(ir.CreateAnd(ir.CreateSub(last_border_, stop.place), ir.getInt32(part_of_chunk())),
                         kernel_.constant(0));
}

Value* TileInterval::chunk_of(const Stop& stop) const {
  return kernel_.ir().CreateUDiv(stop.place, kernel_.constant(tiles_of_chunk_));
}

Value* TileInterval::several_chunks() const { return kernel_.ir().CreateICmpSGE(last_border_, first_border_); }

}  // namespace wavejit::attention
