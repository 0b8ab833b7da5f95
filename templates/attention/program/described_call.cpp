// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/described_call.h"

namespace wavejit::attention::program {

wavejit_tensor tensor_of(const Placement& of, void* data, std::int32_t dtype) {
  return {.data = data,
          .dtype = dtype,
          .reserved = 0,
          .sizes = {of.batch, of.length, of.heads, of.head_dim},
          .strides = {of.stride_of_batch(), of.stride_of_token(), of.stride_of_head(), of.stride_of_dim()}};
}

wavejit_tensor tensor_of(const BiasPlacement& of, void* data, std::int32_t dtype) {
  wavejit_tensor made =
      wavejit_dense_tensor(data, static_cast<wavejit_dtype>(dtype), of.batches, of.heads, of.rows, of.row_stride);
  made.sizes[3] = of.columns;
  return made;
}

}  // namespace wavejit::attention::program
