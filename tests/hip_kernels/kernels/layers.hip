// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a transformer's layers are made of, each at any size: edges are masked, nothing needs to be a multiple of
// anything.
#include "device.h"

typedef half half4 __attribute__((ext_vector_type(4)));
typedef float float16v __attribute__((ext_vector_type(16)));

constexpr float minus_infinity = -__builtin_inff();

template <typename Combine>
inline DEVICE float across_wave(float value, Combine combine) {
  for (uint32_t mask = wave_size / 2; mask > 0; mask /= 2) value = combine(value, shuffle_xor(value, mask));
  return value;
}
inline DEVICE float larger(float a, float b) { return __builtin_fmaxf(a, b); }
inline DEVICE float sum_of(float a, float b) { return a + b; }
// 2^(value − shift), where a row that has seen nothing yet has a shift of −∞.
inline DEVICE float weight_of(float value, float shift) {
  return __builtin_amdgcn_exp2f(value - (shift == minus_infinity ? 0 : shift));
}

// C[m×n] = A[m×k]·B[k×n] through 16×16 tiles in LDS; what lies beyond an edge counts as zero.
KERNEL void matmul_any(const float* a, const float* b, float* c, uint32_t m, uint32_t n, uint32_t k) {
  SHARED static float tile_a[16][16];
  SHARED static float tile_b[16][17];
  const uint32_t row = block_y() * 16 + thread_y();
  const uint32_t column = block_x() * 16 + thread_x();
  float sum = 0;
  for (uint32_t start = 0; start < k; start += 16) {
    const uint32_t along = start + thread_x();
    const uint32_t down = start + thread_y();
    tile_a[thread_y()][thread_x()] = row < m && along < k ? a[row * k + along] : 0;
    tile_b[thread_y()][thread_x()] = down < k && column < n ? b[down * n + column] : 0;
    barrier();
    for (uint32_t i = 0; i < 16; ++i) sum += tile_a[thread_y()][i] * tile_b[i][thread_x()];
    barrier();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

#if !defined(__GFX12__)  // MFMA

// The same over halves: a block of four waves makes a 64×64 tile, a wave 32×32 of it by matrix instructions.
KERNEL void matmul_any_mfma(const half* a, const half* b, float* c, uint32_t m, uint32_t n, uint32_t k) {
  constexpr uint32_t depth = 16;
  alignas(16) SHARED static half tile_a[64][depth + 4];
  alignas(16) SHARED static half tile_bt[64][depth + 4];
  const uint32_t wave = thread_x() / wave_size;
  const uint32_t first_row = block_y() * 64;
  const uint32_t first_column = block_x() * 64;
  const uint32_t place = lane() % 32;
  const uint32_t group = lane() / 32;
  float16v sum = {};
  for (uint32_t start = 0; start < k; start += depth) {
    for (uint32_t i = thread_x(); i < 64 * depth; i += 256) {
      const uint32_t row = first_row + i / depth;
      const uint32_t along = start + i % depth;
      tile_a[i / depth][i % depth] = row < m && along < k ? a[row * k + along] : static_cast<half>(0);
      const uint32_t column = first_column + i % 64;
      const uint32_t down = start + i / 64;
      tile_bt[i % 64][i / 64] = column < n && down < k ? b[down * n + column] : static_cast<half>(0);
    }
    barrier();
    for (uint32_t step = 0; step < depth; step += 8) {
      const half4 left = *reinterpret_cast<const half4*>(&tile_a[wave / 2 * 32 + place][step + 4 * group]);
      const half4 right = *reinterpret_cast<const half4*>(&tile_bt[wave % 2 * 32 + place][step + 4 * group]);
      sum = __builtin_amdgcn_mfma_f32_32x32x8f16(left, right, sum, 0, 0, 0);
    }
    barrier();
  }
  const uint32_t column = first_column + wave % 2 * 32 + place;
#pragma unroll
  for (uint32_t r = 0; r < 16; ++r) {
    const uint32_t row = first_row + wave / 2 * 32 + 8 * (r / 4) + 4 * group + r % 4;
    if (row < m && column < n) c[row * n + column] = sum[r];
  }
}

#endif

// Sum of all elements, and the largest of their magnitudes: waves by exchange, blocks through LDS, the grid by atomics.
KERNEL void reduce_any(const float* in, float* sum, uint32_t* largest, uint32_t n) {
  SHARED static float sums[16];
  SHARED static float mosts[16];
  float total = 0;
  float most = 0;
  for (uint32_t i = global_x(); i < n; i += grid_size(0) * block_size(0)) {
    total += in[i];
    most = larger(most, __builtin_fabsf(in[i]));
  }
  total = across_wave(total, sum_of);
  most = across_wave(most, larger);
  if (lane() == 0) {
    sums[thread_x() / wave_size] = total;
    mosts[thread_x() / wave_size] = most;
  }
  barrier();
  if (thread_x() != 0) return;
  for (uint32_t wave = 1; wave < block_size(0) / wave_size; ++wave) {
    total += sums[wave];
    most = larger(most, mosts[wave]);
  }
  __hip_atomic_fetch_add(sum, total, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  // Magnitudes are ordered as their bits are.
  __hip_atomic_fetch_max(largest, __builtin_bit_cast(uint32_t, most), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Row softmax, a wave a row, statistics by exchange between lanes.
KERNEL void softmax_rows(const float* in, float* out, uint32_t rows, uint32_t columns) {
  constexpr float log2e = 1.44269504F;
  const uint32_t row = global_x() / wave_size;
  if (row >= rows) return;
  const float* from = in + row * columns;
  float most = minus_infinity;
  for (uint32_t i = lane(); i < columns; i += wave_size) most = larger(most, from[i]);
  most = across_wave(most, larger) * log2e;
  float sum = 0;
  for (uint32_t i = lane(); i < columns; i += wave_size) sum += weight_of(from[i] * log2e, most);
  const float scale = 1 / across_wave(sum, sum_of);
  for (uint32_t i = lane(); i < columns; i += wave_size) {
    out[row * columns + i] = weight_of(from[i] * log2e, most) * scale;
  }
}

// Tensors of the attentions: [length][heads][dims]. Causal: the last row sees all keys, whatever the two lengths.
inline DEVICE bool visible(uint32_t row, uint32_t key, uint32_t queries, uint32_t keys, uint32_t causal) {
  return key < keys &&
         (causal == 0 || static_cast<int>(key) <= static_cast<int>(row + keys) - static_cast<int>(queries));
}

// Attention forward with online softmax, plainly: a wave a row, a key a lane at a time, up to 128 dims.
KERNEL void attention_rows(const half* q, const half* k, const half* v, float* o, uint32_t queries, uint32_t keys,
                           uint32_t heads, uint32_t dims, uint32_t causal, float scale_log2e) {
  SHARED static float weights[4][wave_size];
  const uint32_t wave = thread_x() / wave_size;
  const uint32_t row = block_x() * 4 + wave;
  const uint32_t head = block_y();
  if (row >= queries) return;
  const half* mine = q + (row * heads + head) * dims;
  float most = minus_infinity;
  float sum = 0;
  constexpr uint32_t parts = 128 / wave_size;
  float part[parts] = {};  // of the result: dims lane, lane + wave_size and so on
  for (uint32_t start = 0; start < keys; start += wave_size) {
    const uint32_t key = start + lane();
    float score = minus_infinity;
    if (visible(row, key, queries, keys, causal)) {
      const half* other = k + (key * heads + head) * dims;
      score = 0;
      for (uint32_t d = 0; d < dims; ++d) score += static_cast<float>(mine[d]) * static_cast<float>(other[d]);
      score *= scale_log2e;
    }
    const float before = most;
    most = larger(most, across_wave(score, larger));
    const float weight = weight_of(score, most);
    const float shrink = weight_of(before, most);
    sum = sum * shrink + across_wave(weight, sum_of);
    weights[wave][lane()] = weight;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
    const uint32_t tile = keys - start < wave_size ? keys - start : wave_size;
    for (uint32_t part_of = 0; part_of < parts; ++part_of) {
      const uint32_t d = lane() + part_of * wave_size;
      if (d >= dims) continue;
      float value = part[part_of] * shrink;
      for (uint32_t i = 0; i < tile; ++i) {
        value += weights[wave][i] * static_cast<float>(v[((start + i) * heads + head) * dims + d]);
      }
      part[part_of] = value;
    }
    __builtin_amdgcn_wave_barrier();
  }
  const float inverse = sum == 0 ? 0 : 1 / sum;
  for (uint32_t part_of = 0; part_of < parts; ++part_of) {
    const uint32_t d = lane() + part_of * wave_size;
    if (d < dims) o[(row * heads + head) * dims + d] = part[part_of] * inverse;
  }
}

#if !defined(__GFX12__)

// The same by matrix instructions, 64 dims: a block of four waves has 128 rows, a wave 32 of them, and walks over tiles
// of 32 keys. Scores are made transposed, keys × rows: then a lane holds one row's scores, in just the places in which
// the second product wants its weights.
KERNEL void attention_mfma(const half* q, const half* k, const half* v, float* o, uint32_t queries, uint32_t keys,
                           uint32_t heads, uint32_t causal, float scale_log2e) {
  constexpr uint32_t dims = 64;
  constexpr uint32_t tile = 32;
  alignas(16) SHARED static half tile_k[tile][dims + 4];
  alignas(16) SHARED static half tile_vt[dims][tile + 4];
  const uint32_t place = lane() % 32;
  const uint32_t group = lane() / 32;
  const uint32_t row = block_x() * 128 + thread_x() / wave_size * 32 + place;
  const uint32_t head = block_y();
  half4 mine[dims / 8];
#pragma unroll
  for (uint32_t step = 0; step < dims / 8; ++step) {
    mine[step] = half4{};
    if (row < queries) {
      mine[step] = *reinterpret_cast<const half4*>(q + (row * heads + head) * dims + step * 8 + group * 4);
    }
  }
  float16v result[2] = {};
  float most = minus_infinity;
  float sum = 0;
  for (uint32_t start = 0; start < keys; start += tile) {
    barrier();
    for (uint32_t i = thread_x(); i < tile * dims; i += 256) {
      const uint32_t key = start + i / dims;
      const uint32_t from = (key * heads + head) * dims + i % dims;
      tile_k[i / dims][i % dims] = key < keys ? k[from] : static_cast<half>(0);
      tile_vt[i % dims][i / dims] = key < keys ? v[from] : static_cast<half>(0);
    }
    barrier();
    float16v scores = {};
#pragma unroll
    for (uint32_t step = 0; step < dims / 8; ++step) {
      const half4 left = *reinterpret_cast<const half4*>(&tile_k[place][step * 8 + group * 4]);
      scores = __builtin_amdgcn_mfma_f32_32x32x8f16(left, mine[step], scores, 0, 0, 0);
    }
    float largest = minus_infinity;
#pragma unroll
    for (uint32_t r = 0; r < 16; ++r) {
      const uint32_t key = start + 8 * (r / 4) + 4 * group + r % 4;
      scores[r] = visible(row, key, queries, keys, causal) ? scores[r] * scale_log2e : minus_infinity;
      largest = larger(largest, scores[r]);
    }
    const float before = most;
    most = larger(most, larger(largest, shuffle_xor(largest, 32)));
    const float shrink = weight_of(before, most);
    float added = 0;
#pragma unroll
    for (uint32_t r = 0; r < 16; ++r) {
      scores[r] = weight_of(scores[r], most);
      added += scores[r];
    }
    sum = sum * shrink + added + shuffle_xor(added, 32);
#pragma unroll
    for (uint32_t part = 0; part < 2; ++part) {
      result[part] *= shrink;
#pragma unroll
      for (uint32_t step = 0; step < tile / 8; ++step) {
        const half4 left = *reinterpret_cast<const half4*>(&tile_vt[part * 32 + place][step * 8 + group * 4]);
        half4 weights;
        for (uint32_t i = 0; i < 4; ++i) weights[i] = static_cast<half>(scores[step * 4 + i]);
        result[part] = __builtin_amdgcn_mfma_f32_32x32x8f16(left, weights, result[part], 0, 0, 0);
      }
    }
  }
  if (row >= queries) return;
  const float inverse = sum == 0 ? 0 : 1 / sum;
#pragma unroll
  for (uint32_t part = 0; part < 2; ++part) {
#pragma unroll
    for (uint32_t r = 0; r < 16; ++r) {
      o[(row * heads + head) * dims + part * 32 + 8 * (r / 4) + 4 * group + r % 4] = result[part][r] * inverse;
    }
  }
}

#endif
