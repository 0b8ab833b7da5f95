// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/call/scaled_rows.h"

#include <optional>
#include <string>

#include "families/call/refusal.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention_latent/kernel/words.h"

namespace wavejit::attention_latent {
namespace {

using families::refusal::bad;
using families::refusal::bad_size;
using families::refusal::dtype_text;
using families::refusal::Named;
using families::refusal::pointer_text;
using families::refusal::refuse;

using Call = wavejit_attention_latent_arguments;

[[gnu::cold, gnu::noinline]] std::unexpected<families::Failure> wrong_row_scales(const Call& call,
                                                                                 const std::string& accepted) {
  return refuse(bad(
      WAVEJIT_INVALID_ARGUMENT, "row_scales", std::to_string(call.scales.row_scales),
      accepted + " beside k of " + dtype_text(call.k.dtype) + " with " + std::to_string(call.k.sizes[3]) + " columns"));
}

}  // namespace

families::Result<RowScales> row_scales_of_bytes(const Call& call) {
  const std::int64_t bytes = call.k.sizes[3];
  const std::optional<DataType> type = attention::type_of(call.k.dtype);
  const bool may_have = bytes == scaled_row_bytes || bytes == exponents_row_bytes;
  if (!may_have || !type || !is_narrow(*type)) {
    if (call.scales.row_scales != WAVEJIT_ROWS_AS_TYPED) return wrong_row_scales(call, "0 (WAVEJIT_ROWS_AS_TYPED)");
    return RowScales::none;
  }
  if (bytes == scaled_row_bytes) {
    if (call.scales.row_scales != WAVEJIT_ROWS_AS_TYPED && call.scales.row_scales != WAVEJIT_SCALES_IN_ROWS)
      return wrong_row_scales(call, "0, 1 (WAVEJIT_SCALES_IN_ROWS)");
    return RowScales::of_128;
  }
  if (call.scales.row_scales != WAVEJIT_EXPONENTS_BEHIND_ROWS)
    return wrong_row_scales(call,
                            "2 (WAVEJIT_EXPONENTS_BEHIND_ROWS, behind all rows of a page: rows that end in their own "
                            "exponents have the same shape, and are not taken)");
  return RowScales::of_64;
}

families::Result<void> check_scaled_rows(const Call& call, RowScales scales, HeadDims dims) {
  const std::string rows =
      "rows of " + std::to_string(scales == RowScales::of_64 ? exponents_row_bytes : scaled_row_bytes) + " bytes";
  if (const int columns = head_dims(dims_of(scales)).qk; dims.qk != columns)
    return refuse(
        bad_size({"k", &call.k}, 3, std::to_string(columns) + " columns of V and rope in " + rows + ", as q has then"));
  if (call.k.dtype != WAVEJIT_E4M3 && call.k.dtype != WAVEJIT_E4M3_FNUZ)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "k.dtype", dtype_text(call.k.dtype), "4 (e4m3), 6 (e4m3_fnuz) in " + rows));
  if (call.q.dtype != WAVEJIT_BF16)
    return refuse(bad(WAVEJIT_UNSUPPORTED, "q.dtype", dtype_text(call.q.dtype),
                      "2 (bf16) over " + rows + ", whose rope is in bf16"));
  if (call.k_rope.data != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "k_rope.data", pointer_text(call.k_rope.data),
                      "null beside " + rows + ", which have the rope"));
  if (call.scales.k_scale.data != nullptr)
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "k_scale.data", pointer_text(call.scales.k_scale.data),
                      "null beside " + rows + ", which have scales of their own"));
  return {};
}

families::Result<void> check_exponent_rows(const Call& call) {
  for (const Named& named : {Named{"k", &call.k}, Named{"second_k", &call.second_k}}) {
    const wavejit_tensor& tensor = *named.tensor;
    if (tensor.data == nullptr || tensor.sizes[1] <= 1 || tensor.strides[1] == exponents_row_bytes) continue;
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, std::string(named.name) + ".strides[1]",
                      std::to_string(tensor.strides[1]),
                      std::to_string(exponents_row_bytes) + " of rows of " + std::to_string(exponents_row_bytes) +
                          " bytes, " + std::to_string(bare_row_bytes) + " of which follow one another and then " +
                          std::to_string(exponent_row_bytes) + " of each"));
  }
  if (call.second_list.indices != nullptr && call.second_k.sizes[3] != exponents_row_bytes)
    return refuse(bad_size({"second_k", &call.second_k}, 3, std::to_string(exponents_row_bytes) + " (k.sizes[3])"));
  return {};
}

wavejit_tensor rows_of_exponents(const wavejit_tensor& tensor) {
  wavejit_tensor rows = tensor;
  rows.sizes[3] = rows.strides[1] = bare_row_bytes;
  return rows;
}

}  // namespace wavejit::attention_latent
