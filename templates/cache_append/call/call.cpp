// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/call/call.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "templates/attention/call/data_type.h"
#include "templates/attention/call/numbers.h"
#include "templates/cache_append/call/descriptor.h"
#include "templates/cache_append/call/scales.h"

namespace wavejit::cache_append {
namespace {

using attention::address;
using attention::ceil_div;
using attention::element_bytes_of;
using attention::stride_bytes;

constexpr std::uint32_t keys_of_group = 8;

std::uint32_t dword(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

// How far apart dims are of a head that may have one alone.
std::uint64_t dim_stride_bytes(const wavejit_tensor& t) { return stride_bytes(t, 3, element_bytes_of(t)); }

std::uint32_t parts_of(const Side& side) { return (side.heads + side.heads_of_part - 1) / side.heads_of_part; }

std::uint32_t number_shift(std::int32_t bytes) { return bytes == 8 ? 3 : 2; }

// Revolutions a position of every pair, times 2^64. base^(−2i / dims) by repeated multiplication: 128 roundings of a
// double are below 2^−45 of it, and of 2^31 positions below 2^−14 of a revolution where the frequency is greatest.
void fill_frequencies(std::array<std::uint64_t, max_pairs>& frequencies, float base, std::int32_t dims) {
  const double step = std::exp2(-2 * std::log2(static_cast<double>(base)) / dims);
  double revolutions = 0x1p64 / (2 * std::numbers::pi);
  for (std::size_t pair = 0; pair < static_cast<std::size_t>(dims / 2); ++pair) {
    frequencies[pair] = static_cast<std::uint64_t>(revolutions);
    revolutions *= step;
  }
}

}  // namespace

Side AppendCall::side_of(const wavejit_tensor& source, const wavejit_tensor& target, Access access,
                         bool vectorised) const {
  const auto source_bytes = element_bytes_of(source);
  const auto target_bytes = element_bytes_of(target);
  const auto dims = static_cast<std::uint64_t>(source.sizes[3]);
  const auto heads = static_cast<std::uint64_t>(source.sizes[2]);
  const std::uint64_t source_dim = dim_stride_bytes(source);
  const std::uint64_t source_head = stride_bytes(source, 2, source_bytes);
  const std::uint64_t target_head = stride_bytes(target, 2, target_bytes);
  const std::uint64_t key_stride = stride_bytes(target, 1, target_bytes);
  // From one access to the next: of whole pieces, or of elements.
  std::uint64_t piece = dim_stride_bytes(target);
  std::uint64_t last = piece * (dims - 1) + target_bytes;
  if (access == Access::vectors) {
    piece = vectorised ? problem_.page_size * dims_of_lane * target_bytes : dims_of_lane * target_bytes;
    last = piece * (dims / dims_of_lane - 1) + dims_of_lane * target_bytes;
  }
  const auto pieces = dword(dims / dims_of_lane);
  const std::uint32_t lanes = std::bit_ceil(pieces);
  return {.source = address(source.data),
          .source_batch_stride = stride_bytes(source, 0, source_bytes),
          .source_token_stride = stride_bytes(source, 1, source_bytes),
          .target = address(target.data),
          .page_stride = stride_bytes(target, 0, target_bytes),
          .group_stride = keys_of_group * key_stride,
          .key_stride = key_stride,
          .source_head_stride = dword(source_head),
          .source_dim_stride = dword(source_dim),
          .source_row_bytes = dword((heads - 1) * source_head + (dims - 1) * source_dim + source_bytes),
          .target_head_stride = dword(target_head),
          .target_piece_stride = dword(piece),
          .target_row_bytes = dword((heads - 1) * target_head + last),
          .heads = dword(heads),
          .pieces = pieces,
          .lane_shift = dword(static_cast<std::uint64_t>(std::countr_zero(lanes))),
          .heads_of_part = static_cast<std::uint32_t>(board_.wave_size) / lanes};
}

// The rope in 16 bits and the latent in 8, in rows of one tensor.
void AppendCall::fill_latent_rows(Arguments& all) const {
  const LatentRow& row = latent_row(problem_.shape.scales);
  const wavejit_tensor& cache = call_.k_cache;
  const std::uint64_t row_bytes =
      problem_.shape.scales == Scales::tiles ? stride_bytes(cache, 1, 1) : static_cast<std::uint64_t>(row.stride);
  const auto placed = [&](const wavejit_tensor& source, int at, std::uint64_t element_bytes) {
    Side side = side_of(source, source, Access::vectors, false);
    side.target = address(cache.data) + static_cast<std::uint64_t>(at);
    side.page_stride = stride_bytes(cache, 0, 1);
    side.key_stride = row_bytes;
    side.group_stride = keys_of_group * row_bytes;
    side.target_head_stride = 0;
    side.target_piece_stride = dword(dims_of_lane * element_bytes);
    side.target_row_bytes = dword(static_cast<std::uint64_t>(source.sizes[3]) * element_bytes);
    return side;
  };
  all.sides[0] = placed(call_.k, row.rope, element_bytes_of(call_.k));
  all.sides[1] = placed(call_.v, 0, 1);
}

Result<void> AppendCall::plan(Kernels /*kernels*/, const void* /*memory*/, families::LaunchPlan& plan) {
  Arguments& all = arguments_.narrow.call;
  const bool vectorised = call_.page_layout != WAVEJIT_PAGES_OF_ROWS;
  const AppendShape& shape = problem_.shape;
  if (in_rows(shape.scales))
    fill_latent_rows(all);
  else
    all.sides[0] = side_of(call_.k, call_.k_cache, shape.key_access, vectorised);
  std::uint32_t parts = parts_of(all.sides[0]);
  all.value_part = parts;
  if (problem_.values) {
    if (!in_rows(shape.scales)) all.sides[1] = side_of(call_.v, call_.v_cache, shape.value_access, false);
    if (call_.page_layout == WAVEJIT_PAGES_VECTORISED_KEYS)
      all.sides[1].group_stride =
          keys_of_group * static_cast<std::uint64_t>(call_.v.sizes[3]) * element_bytes_of(call_.v_cache);
    parts += parts_of(all.sides[1]);
  }
  all.query_part = parts;
  if (shape.queries != Access::none) {
    all.sides[2] = side_of(call_.q, call_.q_out, shape.queries, false);
    parts += parts_of(all.sides[2]);
  }
  all.slots = address(call_.slots);
  all.slot_shift = number_shift(call_.slot_bytes);
  all.slot_count = problem_.slots;
  // slot · multiplier >> shift is slot / page size for every slot of 31 bits: the multiplier is too large by less than
  // 1 / 2^31 of a page's part.
  constexpr int slot_bits = 31;
  const int page_bits = std::bit_width(problem_.page_size - 1);
  const std::uint64_t whole = std::uint64_t{1} << static_cast<unsigned>(slot_bits + page_bits);
  all.page_size = problem_.page_size;
  all.page_multiplier = dword(ceil_div(whole, problem_.page_size));
  all.page_shift = static_cast<std::uint32_t>(slot_bits + page_bits);
  std::size_t bytes = sizeof(Arguments);
  if (is_narrow(shape.cache)) {
    for (const int side : {0, 1})
      arguments_.narrow.scales[static_cast<std::size_t>(side)] = scale_side(call_, shape.scales, side);
    bytes = sizeof(NarrowArguments);
  }
  if (shape.rotary != Rotary::none) {
    all.positions = address(call_.positions);
    all.position_shift = number_shift(call_.position_bytes);
    all.rotary_pieces = static_cast<std::uint32_t>(call_.rotary_dim / dims_of_lane);
    all.table_rows = static_cast<std::uint32_t>(max_slots) + 1;
    if (shape.angles == Angles::base) {
      fill_frequencies(arguments_.frequencies, call_.rotary_base, call_.rotary_dim);
      bytes = sizeof arguments_;
    } else {
      all.cosines = address(call_.cos.data);
      all.sines = address(call_.sin.data);
      all.cosine_stride = stride_bytes(call_.cos, 1, element_bytes_of(call_.cos));
      all.sine_stride = stride_bytes(call_.sin, 1, element_bytes_of(call_.sin));
      all.table_rows = static_cast<std::uint32_t>(call_.cos.sizes[1]);
    }
  }
  all.tokens = problem_.tokens;
  std::uint32_t batch = problem_.batch;
  merge_batches(batch);
  const std::uint32_t tokens_of_workgroup = threads / static_cast<std::uint32_t>(board_.wave_size) * tokens_of_wave;
  plan.add({.grid_x = (all.tokens + tokens_of_workgroup - 1) / tokens_of_workgroup,
            .grid_y = batch,
            .grid_z = parts,
            .threads = threads,
            .arguments = &arguments_,
            .argument_bytes = bytes});
  return {};
}

// Batches whose tokens stand one behind the other everywhere are one: a step of decoding has a token a batch.
void AppendCall::merge_batches(std::uint32_t& batch) {
  Arguments& all = arguments_.narrow.call;
  if (batch == 1) return;
  const std::uint64_t tokens = all.tokens;
  const auto follows = [&](std::uint64_t of_batch, std::uint64_t of_token) {
    return tokens == 1 || of_batch == tokens * of_token;
  };
  for (const Side& side : all.sides)
    if (side.heads != 0 && !follows(side.source_batch_stride, side.source_token_stride)) return;
  Side& queries = all.sides[2];
  if (queries.heads != 0 && !follows(queries.page_stride, queries.key_stride)) return;
  if (tokens == 1) {
    for (Side& side : all.sides) side.source_token_stride = side.source_batch_stride;
    queries.key_stride = queries.page_stride;
    queries.group_stride = keys_of_group * queries.page_stride;
  }
  all.tokens *= batch;
  batch = 1;
}

std::string AppendCall::descriptor(Line /*line*/) const {
  const AppendShape& shape = problem_.shape;
  ProblemDescriptor descriptor;
  static_cast<AskedWords&>(descriptor) = shape;
  descriptor.batch = problem_.batch;
  descriptor.tokens = problem_.tokens;
  descriptor.heads = call_.k.sizes[2];
  descriptor.query_heads = shape.queries != Access::none ? call_.q.sizes[2] : 0;
  descriptor.key_dims = call_.k.sizes[3];
  descriptor.value_dims = problem_.values ? call_.v.sizes[3] : 0;
  descriptor.page_size = problem_.page_size;
  descriptor.rotary_dims = call_.rotary_dim;
  descriptor.head_scales = call_.scales.k_scale.data != nullptr && call_.scales.token_scales == 0;
  descriptor.pages =
      call_.page_layout == WAVEJIT_PAGES_VECTORISED        ? PageOrder::vectorised
      : call_.page_layout == WAVEJIT_PAGES_VECTORISED_KEYS ? PageOrder::vectorised_keys
      : call_.k_cache.sizes[2] > 1 && call_.k_cache.sizes[1] > 1 && call_.k_cache.strides[2] > call_.k_cache.strides[1]
          ? PageOrder::hnd
          : PageOrder::nhd;
  return to_text(descriptor);
}

}  // namespace wavejit::cache_append
