// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rotary embedding of the first dims of a head: two dims x, y become x · cos − y · sin and y · cos + x · sin, each the
// f32 fma(x, cos, −(y · sin)), fma(y, cos, x · sin), rounded once. The other dims stay as they are, bit by bit.
//
// From a base: the frequency of a pair is a fraction of a revolution in 64 bits, so that its product with the position,
// of which the whole revolutions fall away, is exact whatever the position.
#pragma once

#include "templates/cache_append/emit/places.h"

namespace wavejit::cache_append {

// How a lane's dims are turned, whatever the token.
class Rotation {
 public:
  Rotation(language::Kernel& kernel, const AppendKernel& spec, const SideFields& side, const Lane& lane);

  // What a token's rotation needs from memory, on its way: the dims that the lane's are turned with, cosines, sines.
  struct Loaded {
    language::Values partner;  // of halves
    language::Values cosines;  // as memory has them
    language::Values sines;
    language::Value* position;  // of a base
  };
  Loaded load(const Token& token, const language::Buffer& source, language::Value* source_offset) const;
  // The lane's dwords, turned.
  language::Values turned(const language::Values& dwords, const Loaded& loaded) const;

 private:
  int pairs() const { return spec_.rotary == Rotary::halves ? dims_of_lane : dims_of_lane / 2; }
  language::Values load_table(const Number& position, const Token& token, std::size_t pointer,
                              std::size_t stride) const;
  language::Values table_numbers(const language::Values& dwords) const;
  void angles(const Loaded& loaded, language::Values& cosines, language::Values& sines) const;

  language::Kernel& kernel_;
  const AppendKernel& spec_;
  const SideFields& side_;
  language::Value* turns_;        // i1: the lane's dims are among those that are turned
  language::Value* first_;        // i1, of halves: they are in the first half
  language::Value* to_partner_;   // i32, bytes from them to the others
  language::Value* first_pair_;   // i32
  language::Values frequencies_;  // of a base: dwords, lower and upper half in turn
};

// The numbers of 16-bit dims.
language::Values numbers_of(language::Kernel& kernel, const language::Values& dwords, DataType type);
// And back: rounded to nearest even, two to a dword.
language::Values rounded(language::Kernel& kernel, const language::Values& numbers, DataType type);

}  // namespace wavejit::cache_append
