// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/described_slices.h"

#include "templates/attention/call/data_type.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::attention {

families::Result<void> check_described_slices(std::initializer_list<DescribedTensor> tensors) {
  for (const DescribedTensor& of : tensors) {
    if (of.rows == 0) continue;
    wavejit_tensor tensor = {.data = nullptr,
                             .dtype = told_type(of.type),
                             .reserved = 0,
                             .sizes = {1, of.rows, of.heads, of.dims},
                             .strides = {of.rows * of.heads * of.dims, of.heads * of.dims, of.dims, 1}};
    if (of.heads_outside || of.scattered) {
      tensor.strides[1] = of.scattered ? 1 : of.dims;
      tensor.strides[2] = of.rows * of.dims;
      tensor.strides[3] = of.scattered ? of.rows : 1;
    }
    if (auto slice = check_slice({of.name, &tensor}, {.dtype = tensor.dtype,
                                                      .by_head = of.by_head,
                                                      .longest = of.packed ? of.rows : -1,
                                                      .scattered = of.scattered});
        !slice)
      return slice;
  }
  return {};
}

}  // namespace wavejit::attention
