// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the dK/dV kernel reads of its keys, and where it writes their gradients. Gradient 0 is dV, 1 is dK.
#pragma once

#include <span>
#include <vector>

#include "codegen/language/matrix.h"
#include "templates/attention/emit/slice.h"
#include "templates/attention_backward/emit/key_place.h"

namespace wavejit::attention_backward {

class KeyTensors {
 public:
  // `places`: one for each block of keys.
  KeyTensors(language::Kernel& kernel, const KeyKernel& spec, const std::vector<KeyPlace>& places,
             const language::MatrixUnit& matrix)
      : kernel_(kernel), spec_(spec), places_(places), place_(places.front()), matrix_(matrix) {}

  struct Operands {
    std::vector<language::OperandB> keys, values;  // a fragment of dims each
  };
  // Operands of a block. Scores take K, gradients V.
  Operands load(const KeyPlace& place, bool takes_keys, bool takes_values) const;

  // Whether a call before left something, i1: the first run is added to it.
  language::Value* are_before() const;
  // In front of the walk: in its loop there are no scalar registers for two more tensors. `first`: number of the
  // gradient's first sum in the workspace.
  void put_before(int gradient, std::size_t first) const;
  // Sums of all blocks, times `factor`.
  void store(int gradient, std::span<language::Accumulator> sums, std::size_t first, language::Value* factor) const;

 private:
  attention::Slice keys_of(std::size_t at, int dims, language::Value* keys, int element_bytes) const;
  attention::Slice before(int gradient) const;
  int dims_of(int gradient) const { return gradient == 0 ? spec_.head_dim_v : spec_.head_dim_qk; }
  std::size_t dim_blocks(int gradient) const;
  language::Value* dk_dv_before() const;

  language::Kernel& kernel_;
  const KeyKernel& spec_;
  const std::vector<KeyPlace>& places_;
  const KeyPlace& place_;  // of the first
  const language::MatrixUnit& matrix_;
};

}  // namespace wavejit::attention_backward
