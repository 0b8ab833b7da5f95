// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// f32 to 8 bits, once for every kernel that writes them.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "codegen/language/kernel.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

using FourFloats = std::array<language::Value*, 4>;

// Between two numbers; a NaN becomes one of them.
language::Value* between(language::Kernel& kernel, language::Value* value, float least, float most);
float least_of(DataType type);

// A dword of the nearest numbers of floats in the type's range: what the target's instruction makes.
language::Value* four_floats(language::Kernel& kernel, const FourFloats& numbers, DataType type);
// Whole numbers in the range of a byte.
language::Value* four_integers(language::Kernel& kernel, const FourFloats& numbers);

// O in 8 bits: O · (1 / scale), rounded to the nearest number (to the even one of two), and no larger than the largest.
// NaN stays NaN; in int8 it becomes 0.
class OutputBytes {
 public:
  // `at`: where the kernel's arguments have an OutputScale.
  OutputBytes(language::Kernel& kernel, DataType type, std::size_t at);
  // `address_at`, `value_at`: where they stand apart.
  OutputBytes(language::Kernel& kernel, DataType type, std::size_t address_at, std::size_t value_at);

  // A dword of four elements of O.
  language::Value* of(const FourFloats& numbers) const;
  // `count` elements of a vector from `first` on, four a dword.
  std::vector<language::Value*> of(language::Value* vector, int first, int count) const;

 private:
  language::Value* as_other_encoding(const FourFloats& numbers) const;

  language::Kernel& kernel_;
  DataType type_;
  language::Value* reciprocal_;
};

}  // namespace wavejit::attention
