// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads working together: LDS, barriers, lane exchange, atomics.
#include "device.h"

// Block sums by a tree in LDS.
KERNEL void reduce_lds(const float* in, float* out, uint32_t n) {
  SHARED static float partial[256];
  float sum = 0;
  for (uint32_t i = global_x(); i < n; i += grid_size(0) * block_size(0)) sum += in[i];
  partial[thread_x()] = sum;
  barrier();
  for (uint32_t step = block_size(0) / 2; step > 0; step /= 2) {
    if (thread_x() < step) partial[thread_x()] += partial[thread_x() + step];
    barrier();
  }
  if (thread_x() == 0) out[block_x()] = partial[0];
}

// Sums of waves by exchange, then of the block, then of the grid by an atomic.
KERNEL void reduce_shuffle(const int* in, int* total, uint32_t n) {
  SHARED static int waves[16];
  int sum = global_x() < n ? in[global_x()] : 0;
  for (uint32_t mask = wave_size / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  if (lane() == 0) waves[thread_x() / wave_size] = sum;
  barrier();
  if (thread_x() == 0) {
    int block = 0;
    for (uint32_t i = 0; i < block_size(0) / wave_size; ++i) block += waves[i];
    atomic_add(total, block);
  }
}

// The same through DPP: rows of 16 lanes shifted inside the register file.
KERNEL void reduce_dpp(const int* in, int* out) {
  int value = in[global_x()];
  value += __builtin_amdgcn_update_dpp(0, value, 0x111, 0xf, 0xf, true);  // row_shr:1
  value += __builtin_amdgcn_update_dpp(0, value, 0x112, 0xf, 0xf, true);  // row_shr:2
  value += __builtin_amdgcn_update_dpp(0, value, 0x114, 0xf, 0xf, true);  // row_shr:4
  value += __builtin_amdgcn_update_dpp(0, value, 0x118, 0xf, 0xf, true);  // row_shr:8
#if defined(__GFX12__)  // no broadcasts between rows: lane 15 of the other row, which the upper one adds
  const int other = __builtin_amdgcn_permlanex16(0, value, ~0U, ~0U, true, false);
  if (lane() % 32 >= 16) value += other;
  if constexpr (wave_size == 64) {
    const int lower = __builtin_amdgcn_readlane(value, 31);
    if (lane() >= 32) value += lower;
  }
#else
  value += __builtin_amdgcn_update_dpp(0, value, 0x142, 0xa, 0xf, false);  // row_bcast:15
  value += __builtin_amdgcn_update_dpp(0, value, 0x143, 0xc, 0xf, false);  // row_bcast:31
#endif
  out[global_x()] = value;
}

// Inclusive prefix sums of a block, doubling distances.
KERNEL void scan_block(const uint32_t* in, uint32_t* out) {
  SHARED static uint32_t buffer[2][512];
  uint32_t current = 0;
  buffer[0][thread_x()] = in[global_x()];
  barrier();
  for (uint32_t distance = 1; distance < block_size(0); distance *= 2) {
    uint32_t value = buffer[current][thread_x()];
    if (thread_x() >= distance) value += buffer[current][thread_x() - distance];
    current ^= 1;
    buffer[current][thread_x()] = value;
    barrier();
  }
  out[global_x()] = buffer[current][thread_x()];
}

// Work-efficient exclusive scan of 2·block elements (up and down a tree) in LDS that the launch sizes.
extern "C" SHARED uint32_t dynamic_lds[];
KERNEL void scan_tree(const uint32_t* in, uint32_t* out) {
  const uint32_t t = thread_x();
  const uint32_t n = 2 * block_size(0);
  const uint32_t* from = in + block_x() * n;
  dynamic_lds[2 * t] = from[2 * t];
  dynamic_lds[2 * t + 1] = from[2 * t + 1];
  uint32_t stride = 1;
  for (uint32_t active = n / 2; active > 0; active /= 2, stride *= 2) {
    barrier();
    if (t < active) dynamic_lds[stride * (2 * t + 2) - 1] += dynamic_lds[stride * (2 * t + 1) - 1];
  }
  if (t == 0) dynamic_lds[n - 1] = 0;
  for (uint32_t active = 1; active < n; active *= 2) {
    stride /= 2;
    barrier();
    if (t < active) {
      const uint32_t left = stride * (2 * t + 1) - 1;
      const uint32_t right = stride * (2 * t + 2) - 1;
      const uint32_t kept = dynamic_lds[left];
      dynamic_lds[left] = dynamic_lds[right];
      dynamic_lds[right] += kept;
    }
  }
  barrier();
  out[block_x() * n + 2 * t] = dynamic_lds[2 * t];
  out[block_x() * n + 2 * t + 1] = dynamic_lds[2 * t + 1];
}

// Transposes tiles of 32×32 through padded LDS; any size.
KERNEL void transpose(const float* in, float* out, uint32_t rows, uint32_t columns) {
  SHARED static float tile[32][33];
  const uint32_t column = block_x() * 32 + thread_x();
  for (uint32_t i = 0; i < 32; i += 8) {
    const uint32_t row = block_y() * 32 + thread_y() + i;
    if (row < rows && column < columns) tile[thread_y() + i][thread_x()] = in[row * columns + column];
  }
  barrier();
  const uint32_t to_column = block_y() * 32 + thread_x();
  for (uint32_t i = 0; i < 32; i += 8) {
    const uint32_t to_row = block_x() * 32 + thread_y() + i;
    if (to_row < columns && to_column < rows) out[to_row * rows + to_column] = tile[thread_x()][thread_y() + i];
  }
}

// Byte histogram: LDS atomics first, then global ones.
KERNEL void histogram(const uint8_t* in, uint32_t* bins, uint32_t n) {
  SHARED static uint32_t local[256];
  for (uint32_t i = thread_x(); i < 256; i += block_size(0)) local[i] = 0;
  barrier();
  for (uint32_t i = global_x(); i < n; i += grid_size(0) * block_size(0)) {
    __hip_atomic_fetch_add(&local[in[i]], 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  }
  barrier();
  for (uint32_t i = thread_x(); i < 256; i += block_size(0)) {
    if (local[i] != 0) atomic_add(&bins[i], local[i]);
  }
}

// Bitonic sort of one block's keys in LDS.
KERNEL void bitonic_sort(int* data) {
  SHARED static int keys[1024];
  const uint32_t n = block_size(0) * 2;
  int* mine = data + block_x() * n;
  for (uint32_t i = thread_x(); i < n; i += block_size(0)) keys[i] = mine[i];
  for (uint32_t span = 2; span <= n; span *= 2) {
    for (uint32_t step = span / 2; step > 0; step /= 2) {
      barrier();
      const uint32_t low = 2 * step * (thread_x() / step) + thread_x() % step;
      const bool ascending = (low & span) == 0;
      const int a = keys[low];
      const int b = keys[low + step];
      if ((a > b) == ascending) {
        keys[low] = b;
        keys[low + step] = a;
      }
    }
  }
  barrier();
  for (uint32_t i = thread_x(); i < n; i += block_size(0)) mine[i] = keys[i];
}

// One wave sorts a key a lane by radix: a bit at a time, ranks from ballots.
KERNEL void radix_sort_wave(uint32_t* data) {
  SHARED static uint32_t keys[wave_size];
  uint32_t key = data[global_x()];
  for (uint32_t bit = 0; bit < 32; ++bit) {
    const bool one = (key >> bit & 1) != 0;
    const uint64_t ones = __builtin_amdgcn_ballot_w64(one);
    const uint32_t zeros = wave_size - static_cast<uint32_t>(__builtin_popcountll(ones));
    const uint32_t ones_before = __builtin_amdgcn_mbcnt_hi(static_cast<uint32_t>(ones >> 32),
                                                           __builtin_amdgcn_mbcnt_lo(static_cast<uint32_t>(ones), 0U));
    keys[one ? zeros + ones_before : lane() - ones_before] = key;
    barrier();
    key = keys[lane()];
    barrier();
  }
  data[global_x()] = key;
}

// Votes and broadcasts of a wave.
KERNEL void wave_votes(const int* in, uint64_t* ballots, int* first, int* any_all) {
  const int value = in[global_x()];
  const uint64_t odd = __builtin_amdgcn_ballot_w64((value & 1) != 0);
  constexpr uint64_t everyone = ~0ULL >> (64 - wave_size);
  const uint32_t wave = global_x() / wave_size;
  if (lane() == 0) ballots[wave] = odd;
  int seen = -1;
  if (value > 100) {  // only the lanes inside take part
    seen = __builtin_amdgcn_readfirstlane(value);
  }
  first[global_x()] = seen;
  any_all[global_x()] = (odd != 0 ? 1 : 0) | (odd == everyone ? 2 : 0) | __builtin_amdgcn_readlane(value, 5) << 2;
}

// Five-point stencil with a halo in LDS.
KERNEL void stencil(const float* in, float* out, int width, int height) {
#pragma clang fp contract(off)
  SHARED static float tile[18][18];
  const int x = static_cast<int>(block_x() * 16 + thread_x());
  const int y = static_cast<int>(block_y() * 16 + thread_y());
  const auto at = [&](int column, int row) {
    column = column < 0 ? 0 : column >= width ? width - 1 : column;
    row = row < 0 ? 0 : row >= height ? height - 1 : row;
    return in[row * width + column];
  };
  const int tx = static_cast<int>(thread_x()) + 1;
  const int ty = static_cast<int>(thread_y()) + 1;
  tile[ty][tx] = at(x, y);
  if (tx == 1) tile[ty][0] = at(x - 1, y);
  if (tx == 16) tile[ty][17] = at(x + 1, y);
  if (ty == 1) tile[0][tx] = at(x, y - 1);
  if (ty == 16) tile[17][tx] = at(x, y + 1);
  barrier();
  if (x < width && y < height) {
    const float sum = tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx];
    out[y * width + x] = 0.5F * tile[ty][tx] + 0.125F * sum;
  }
}

// Where a pattern occurs in a text; a list in no order, made with an atomic counter.
KERNEL void string_search(const char* text, uint32_t length, const char* pattern, uint32_t pattern_length,
                          uint32_t* found, uint32_t* count) {
  const uint32_t start = global_x();
  if (start + pattern_length > length) return;
  uint32_t i = 0;
  while (i < pattern_length && text[start + i] == pattern[i]) ++i;
  if (i == pattern_length) found[atomic_add(count, 1U)] = start;
}

// The block that arrives last adds up what each has left in memory, and puts the counter back. `each_thread`: releases
// what it has left by itself, and acquires by itself; else the one that counts does so for all.
KERNEL void last_block_adds(const int* in, uint32_t n, int* parts, uint32_t* arrived, int* out, uint32_t each_thread) {
  SHARED static uint32_t ticket;
  const uint32_t width = block_size(0);
  int part = 0;
  for (uint32_t i = global_x(); i < n; i += width * grid_size(0)) part += in[i];
  parts[global_x()] = part;
  if (each_thread != 0) __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  barrier();
  if (thread_x() == 0) {
    ticket = each_thread != 0 ? __hip_atomic_fetch_add(arrived, 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
                              : __hip_atomic_fetch_add(arrived, 1U, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
  }
  barrier();
  if (ticket != grid_size(0) - 1) return;
  if (each_thread != 0) __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  int sum = 0;
  for (uint32_t block = 0; block < grid_size(0); ++block) sum += parts[block * width + (thread_x() ^ 64U)];
  out[thread_x()] = sum;
  if (thread_x() == 0) *arrived = 0;
}

// Sums of everything before, a block each: a block waits for the one before it, whose sum it finds beside its flag.
KERNEL void sums_in_turn(const int* in, int* sums, uint32_t* done) {
  if (thread_x() != 0) return;
  int sum = 0;
  for (uint32_t i = 0; i < block_size(0); ++i) sum += in[block_x() * block_size(0) + i];
  if (block_x() != 0) {
    while (__hip_atomic_load(&done[block_x() - 1], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) == 0) {
      __builtin_amdgcn_s_sleep(1);
    }
    sum += sums[block_x() - 1];
  }
  sums[block_x()] = sum;
  __hip_atomic_store(&done[block_x()], 1U, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
