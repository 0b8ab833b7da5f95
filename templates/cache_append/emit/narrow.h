// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dims of 16 bits to 8: the byte that is next to x / scale, one division in f32, ties to even; beyond the format's
// range its greatest number. The scale of a token's head, or of a tile of a row, is found from the greatest of its
// dims.
//
//   bytes = narrowed(x / s)        s = max(max |x| / limit, least)
#pragma once

#include "templates/cache_append/emit/places.h"

namespace wavejit::cache_append {

// The scales of one side of a launch.
class Narrowing {
 public:
  // side: 0 of K, 1 of V.
  Narrowing(language::Kernel& kernel, const AppendKernel& spec, int side, const SideFields& fields, const Lane& lane);

  // A scale from memory on its way, where it is not found: before what it waits for.
  void load();
  // Dwords of two 16-bit dims each to dwords of four bytes.
  language::Values narrowed(const language::Values& dwords);
  // That of the last `narrowed`, into the row of a slot.
  void store_scale(const Number& slot, const Place& place, language::Value* inside) const;

 private:
  language::Value* found(const language::Values& numbers) const;
  language::Value* greatest_of_lanes(language::Value* value) const;
  language::Value* next_power_of_two(language::Value* scale) const;
  void store_into(const Place& place) const;
  struct Fields;
  Fields fields() const;

  language::Kernel& kernel_;
  const AppendKernel& spec_;
  const SideFields& side_;
  const Lane& lane_;
  std::size_t at_;                    // of its struct ScaleSide in the arguments
  language::Value* scale_ = nullptr;  // f32, of the lane
};

}  // namespace wavejit::cache_append
