// The kernel arguments of attention_forward, byte for byte as the kernel reads them.
//
// The runtime fills this struct on the hot path, the emitter reads it by these offsets; both include this header, and
// the static_asserts pin the layout. Strides are in bytes. A descriptor is built per (batch, head) slice, so whole
// tensors may be larger than 4 GiB while a slice may not (runtime/problem checks that).
#pragma once

#include <cstddef>
#include <cstdint>

namespace wavejit::attention_forward {

struct Arguments {
  std::uint64_t q = 0;
  std::uint64_t k = 0;
  std::uint64_t v = 0;
  std::uint64_t o = 0;
  std::uint64_t lse = 0;  // read only by kernels whose spec says lse
  std::uint64_t q_batch_stride = 0;
  std::uint64_t k_batch_stride = 0;
  std::uint64_t v_batch_stride = 0;
  std::uint64_t o_batch_stride = 0;
  std::uint64_t lse_batch_stride = 0;
  std::uint64_t q_head_stride = 0;
  std::uint64_t k_head_stride = 0;
  std::uint64_t v_head_stride = 0;
  std::uint64_t o_head_stride = 0;
  std::uint64_t lse_head_stride = 0;  // LSE rows of one head are contiguous floats
  std::uint32_t q_row_stride = 0;
  std::uint32_t k_row_stride = 0;
  std::uint32_t v_row_stride = 0;
  std::uint32_t o_row_stride = 0;
  std::uint32_t query_length = 0;  // ≥ 1
  std::uint32_t key_length = 0;    // ≥ 0
  // Row q sees key k when k ≤ q + causal_offset; key_length − query_length aligns the diagonal bottom-right.
  std::int32_t causal_offset = 0;
  // kv head = floor(q head · multiplier / 2³²): exact for all q heads < 65536 with multiplier = ceil(2³² / group), and
  // 0 stands for 2³² (group 1).
  std::uint32_t kv_head_multiplier = 0;
  float scale_log2e = 0;  // softmax scale · log2 e, > 0 is not required
  std::uint32_t reserved = 0;
};

static_assert(sizeof(Arguments) == 160);
static_assert(offsetof(Arguments, q_batch_stride) == 40);
static_assert(offsetof(Arguments, q_row_stride) == 120);
static_assert(offsetof(Arguments, scale_log2e) == 152);

// Workgroups: x = query head, y = query tile (heaviest causal tiles first), z = batch.
struct LaunchGeometry {
  std::uint32_t grid_x = 1;
  std::uint32_t grid_y = 1;
  std::uint32_t grid_z = 1;
  std::uint32_t threads = 256;
  std::uint32_t dynamic_lds_bytes = 0;
};

}  // namespace wavejit::attention_forward
