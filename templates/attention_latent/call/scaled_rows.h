// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// FlashMLA's rows of keys, which have scales of their own and a rope in bf16: 656 bytes, or 584 with exponents.
#pragma once

#include <cstdint>

#include "families/call/family.h"
#include "templates/attention_latent/kernel/spec.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_latent {

// Rows of 656 bytes have one format; of 584 there are others, so a call says which.
constexpr HeadDims scaled_dims = head_dims(Dims::d576);
constexpr std::int64_t scaled_row_bytes =
    scaled_dims.v + (scaled_dims.v / scaled_columns(RowScales::of_128) * std::int64_t{sizeof(float)}) +
    ((scaled_dims.qk - scaled_dims.v) * bytes_of(DataType::bf16));
static_assert(scaled_row_bytes == 656);
constexpr std::int64_t bare_row_bytes =
    head_dims(Dims::d512).v - wide_columns + std::int64_t{wide_columns * bytes_of(DataType::bf16)};
constexpr std::int64_t exponents_row_bytes = bare_row_bytes + exponent_row_bytes;
static_assert(exponents_row_bytes == 584);

// The scales of keys whose rows may be such by their bytes, or whose call says that they are.
families::Result<RowScales> row_scales_of_bytes(const wavejit_attention_latent_arguments& call);
// On the hot path.
inline families::Result<RowScales> row_scales_of(const wavejit_attention_latent_arguments& call) {
  const std::int64_t bytes = call.k.sizes[3];
  if (bytes != scaled_row_bytes && bytes != exponents_row_bytes && call.scales.row_scales == WAVEJIT_ROWS_AS_TYPED)
      [[likely]]
    return RowScales::none;
  return row_scales_of_bytes(call);
}

// What else such rows ask of a call.
families::Result<void> check_scaled_rows(const wavejit_attention_latent_arguments& call, RowScales scales,
                                         HeadDims dims);
// Rows with exponents stand as they are, and those behind all of a page, or of a sequence.
families::Result<void> check_exponent_rows(const wavejit_attention_latent_arguments& call);

// Rows with exponents without those: as they follow one another in memory.
wavejit_tensor rows_of_exponents(const wavejit_tensor& tensor);

}  // namespace wavejit::attention_latent
