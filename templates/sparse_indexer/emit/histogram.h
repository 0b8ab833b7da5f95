// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How often each digit occurs among the keys of a row, counted in LDS by all waves, and where the k largest end.
//
// Counts are sums of ones, so the order in which waves add shows in nothing. A lane that has nothing to count adds to a
// place of its own behind the digits, or to a digit that no key has: nothing in the kernel branches by lane.
#pragma once

#include "codegen/language/kernel.h"
#include "codegen/language/lds.h"
#include "templates/sparse_indexer/kernel/spec.h"

namespace wavejit::sparse_indexer {

// A digit of a key: (key >> shift) mod digits.
struct Digit {
  int shift;
  int bits;
  bool zero_is_none = false;  // of the highest: no key has the digit 0, and what is counted there counts as nothing
  constexpr int count() const { return 1 << bits; }
};

class Histogram {
 public:
  static constexpr int most_digits = 2048;
  // Bytes of LDS that a histogram takes, from `base` of the region on.
  static constexpr int bytes = (most_digits + select_lanes) * 4;

  Histogram(language::Kernel& kernel, const language::Lds& lds, int region, int base, Digit digit);

  // Called by one wave: every lane adds 1 to its digit; with `counts`, those lanes do.
  void add(language::Value* key) const;
  void add(language::Value* key, language::Value* counts) const;

  // Where the `wanted` largest end, by one wave: the digit with which the count from the top reaches `wanted`, and how
  // many of that digit are wanted. Uniform. `reached` false: there are fewer than `wanted`.
  struct End {
    language::Value* digit;
    language::Value* wanted;
    language::Value* reached;
  };
  End end_of_largest(language::Value* wanted) const;

 private:
  language::Value* digit_of(language::Value* key) const;
  void add_at(language::Value* place) const;

  language::Kernel& kernel_;
  const language::Lds& lds_;
  int region_;
  int base_;
  Digit digit_;
};

// Over the lanes up to and with each: the sum of `value`.
language::Value* sum_up_to_lane(language::Kernel& kernel, language::Value* value);

}  // namespace wavejit::sparse_indexer
