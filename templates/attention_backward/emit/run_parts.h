// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of runs of rows. Registers hold one run; those of the runs before wait in the workspace, where the thread that
// wrote them finds them, and so do all of them in the end.
#pragma once

#include <cstddef>
#include <span>

#include "codegen/language/buffer.h"
#include "templates/attention_backward/emit/key_place.h"

namespace wavejit::attention_backward {

class RunParts {
 public:
  RunParts(language::Kernel& kernel, const KeyKernel& spec, const KeyPlace& place)
      : kernel_(kernel), spec_(spec), place_(place) {}

  // 0 + run 0 + run 1 …: sums of a run, from number `first` on, behind those before, if there `are` any.
  void add(std::span<const language::Accumulator> run, std::size_t first, language::Value* are_before) const;
  // Sums from number `first` on, as they are.
  void put(std::span<const language::Accumulator> sums, std::size_t first) const;
  // Sums from number `first` on.
  void take(std::span<language::Accumulator> sums, std::size_t first) const;

 private:
  language::Buffer parts(language::Value* are) const;
  language::Value* own_place() const;
  language::Value* place_of(language::Value* own, std::size_t sum, int r) const;
  language::Value* read(const language::Buffer& from, language::Value* own, std::size_t sum, int r) const;

  language::Kernel& kernel_;
  const KeyKernel& spec_;
  const KeyPlace& place_;
};

}  // namespace wavejit::attention_backward
