// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/call/scales.h"

#include <string>

#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::cache_append {
namespace {

using attention::type_of;
using families::refusal::bad_size;
using families::refusal::bad_stride;
using families::refusal::dtype_text;
using families::refusal::field;
using families::refusal::Named;
using families::refusal::pointer_text;
using families::refusal::refuse;
using families::refusal::refused;

using Check = Result<void>;

constexpr std::int64_t scale_bytes = sizeof(float);
// Rows of latent attention are written four bytes at a time and more.
constexpr std::int64_t row_granule_bytes = 4;

bool has_narrow_cache(const wavejit_cache_append_arguments& call) {
  const auto type = type_of(call.k_cache.dtype);
  return type && is_narrow(*type);
}

// fp32, of `sizes`; strides positive below 2^31, whatever their order. `one_head`: there may be one for all.
Check check_scale(const Named& named, const std::int64_t (&sizes)[4], bool one_head) {
  const wavejit_tensor& t = *named.tensor;
  if (t.dtype != WAVEJIT_FP32) return refused(field(named, "dtype"), dtype_text(t.dtype), "3 (fp32)");
  if (auto memory = attention::check_memory(named, scale_bytes); !memory) return memory;
  for (int d = 0; d < 4; ++d) {
    if (t.sizes[d] != sizes[d] && !(one_head && d == 2 && t.sizes[d] == 1))
      return refuse(bad_size(named, d, std::to_string(sizes[d]) + (one_head && d == 2 ? " or 1" : "")));
    const std::int64_t most = d == 0 ? attention::max_batch_stride : attention::max_slice_stride / scale_bytes;
    if (t.sizes[d] > 1 && (t.strides[d] < 1 || t.strides[d] >= most))
      return refuse(bad_stride(named, d, "positive, below 2^29, of pages below 2^46"));
  }
  return {};
}

Check check_found_scale(const Named& named, const wavejit_tensor& cache) {
  const std::int64_t sizes[4] = {cache.sizes[0], cache.sizes[1], cache.sizes[2], 1};
  if (auto good = check_scale(named, sizes, false); !good) return good;
  if (families::elements_overlap(*named.tensor)) return refuse(attention::overlapping(named));
  return {};
}

Check check_none(const Named& named, const std::string& why) {
  if (named.tensor->data == nullptr) return {};
  return refused(field(named, "data"), pointer_text(named.tensor->data), "null " + why);
}

}  // namespace

Scales rows_of(const wavejit_cache_append_arguments& call) {
  if (call.v.data == nullptr || call.v_cache.data != nullptr || !has_narrow_cache(call)) return Scales::none;
  for (const Scales rows : {Scales::tiles, Scales::exponents})
    if (call.k_cache.sizes[3] == latent_row(rows).columns) return rows;
  return Scales::none;
}

Scales scales_of(const wavejit_cache_append_arguments& call) {
  if (!has_narrow_cache(call)) return Scales::none;
  if (const Scales rows = rows_of(call); rows != Scales::none) return rows;
  return call.scales.token_scales != 0 ? Scales::tokens : Scales::heads;
}

Check check_latent_rows(const wavejit_cache_append_arguments& call, Scales rows) {
  const LatentRow& row = latent_row(rows);
  const Named k = {"k", &call.k};
  const Named v = {"v", &call.v};
  const Named cache = {"k_cache", &call.k_cache};
  const wavejit_tensor& t = call.k_cache;
  const std::string beside = " beside k_cache of " + std::to_string(row.columns) + " columns";
  if (call.k.sizes[2] != 1) return refuse(bad_size(k, 2, "1" + beside));
  if (call.k.sizes[3] != rope_dims) return refuse(bad_size(k, 3, std::to_string(rope_dims) + ", the rope," + beside));
  if (call.v.sizes[3] != row.latent_dims)
    return refuse(bad_size(v, 3, std::to_string(row.latent_dims) + ", the latent," + beside));
  if (call.page_layout != WAVEJIT_PAGES_OF_ROWS)
    return refused("page_layout", std::to_string(call.page_layout), "0" + beside);
  if (auto memory = attention::check_memory(cache, row_granule_bytes); !memory) return memory;
  if (t.sizes[2] != 1) return refuse(bad_size(cache, 2, "1" + beside));
  if (t.strides[3] != 1) return refuse(bad_stride(cache, 3, "1"));
  const bool apart = rows == Scales::tiles;
  if (t.sizes[1] > 1 && (t.strides[1] < row.columns || t.strides[1] % row_granule_bytes != 0 ||
                         t.strides[1] >= attention::max_slice_stride || (!apart && t.strides[1] != row.columns)))
    return refuse(bad_stride(cache, 1,
                             apart ? "656 and more, below 2^31, multiples of 4"
                                   : "584: rows of 576, and 8 bytes for each behind all of a page"));
  if (t.sizes[0] > 1 &&
      (t.strides[0] < 1 || t.strides[0] % row_granule_bytes != 0 || t.strides[0] >= attention::max_batch_stride ||
       t.strides[0] >= static_cast<std::int64_t>(attention::tensor_limit_bytes) / t.sizes[0]))
    return refuse(bad_stride(cache, 0, "positive multiples of 4, with a tensor that spans less than 2^48 bytes"));
  if (families::elements_overlap(t)) return refuse(attention::overlapping(cache));
  return {};
}

Check check_scales(const wavejit_cache_append_arguments& call) {
  const Named k = {"k_scale", &call.scales.k_scale};
  const Named v = {"v_scale", &call.scales.v_scale};
  if (call.scales.token_scales != 0 && call.scales.token_scales != 1)
    return refused("token_scales", std::to_string(call.scales.token_scales), "0, 1");
  const Scales scales = scales_of(call);
  if (scales == Scales::none || in_rows(scales)) {
    const std::string why = scales == Scales::none ? "beside caches of 16 bits" : "beside rows that have their own";
    if (call.scales.token_scales != 0) return refused("token_scales", "1", "0 " + why);
    if (auto good = check_none(k, why); !good) return good;
    return check_none(v, why);
  }
  if (call.page_layout != WAVEJIT_PAGES_OF_ROWS)
    return refused("page_layout", std::to_string(call.page_layout), "0 (pages of rows) beside caches of 8 bits",
                   WAVEJIT_UNSUPPORTED);
  if (call.v.data == nullptr)
    if (auto good = check_none(v, "without v"); !good) return good;
  if (scales == Scales::tokens) {
    if (auto good = check_found_scale(k, call.k_cache); !good) return good;
    return call.v.data == nullptr ? Check{} : check_found_scale(v, call.v_cache);
  }
  const std::int64_t sizes[4] = {1, 1, call.k.sizes[2], 1};
  for (const Named& named : {k, v})
    if (named.tensor->data != nullptr)
      if (auto good = check_scale(named, sizes, true); !good) return good;
  return {};
}

ScaleSide scale_side(const wavejit_cache_append_arguments& call, Scales scales, int side) {
  const auto bytes = [](const wavejit_tensor& t, int dimension) {
    return attention::stride_bytes(t, dimension, scale_bytes);
  };
  if (!in_rows(scales)) {
    const wavejit_tensor& t = side == 0 ? call.scales.k_scale : call.scales.v_scale;
    if (t.data == nullptr) return {};
    // Heads that there are not stand behind the only one.
    const bool one = scales == Scales::tokens && t.sizes[2] == 1;
    return {.scale = attention::address(t.data),
            .page_stride = bytes(t, 0),
            .key_stride = bytes(t, 1),
            .head_stride = one ? static_cast<std::uint32_t>(scale_bytes) : static_cast<std::uint32_t>(bytes(t, 2)),
            .row_bytes =
                static_cast<std::uint32_t>(bytes(t, 2) * static_cast<std::uint64_t>(t.sizes[2] - 1) + scale_bytes)};
  }
  if (side == 0) return {};
  const LatentRow& row = latent_row(scales);
  const wavejit_tensor& t = call.k_cache;
  const auto tiles = static_cast<std::uint32_t>(row.latent_dims / row.tile_dims);
  const std::uint64_t page_stride = attention::stride_bytes(t, 0, 1);
  if (scales == Scales::tiles)
    return {.scale = attention::address(t.data) + static_cast<std::uint64_t>(row.latent_dims),
            .page_stride = page_stride,
            .key_stride = attention::stride_bytes(t, 1, 1),
            .head_stride = scale_bytes,
            .row_bytes = tiles * static_cast<std::uint32_t>(scale_bytes)};
  return {.scale = attention::address(t.data) + static_cast<std::uint64_t>(row.stride * t.sizes[1]),
          .page_stride = page_stride,
          .key_stride = exponents_of_row,
          .head_stride = 1,
          .row_bytes = tiles};
}

}  // namespace wavejit::cache_append
