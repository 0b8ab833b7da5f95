// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Control flow, calls, private memory, atomics, addressing.
#include "device.h"

NOINLINE uint32_t mix(uint32_t a, uint32_t b) { return (a ^ b >> 3) * 0x85ebca6bU + (b << 7); }
NOINLINE uint32_t mix_many(uint32_t a, uint32_t b, uint32_t c, uint32_t d, const uint32_t* table) {
  return mix(a, table[b % 8]) + mix(c, d);
}

// Device functions that are not inlined: calls, a stack, registers kept across calls.
KERNEL void noinline_calls(const uint32_t* in, const uint32_t* table, uint32_t* out, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  uint32_t hash = in[i];
  for (uint32_t round = 0; round < 3 + i % 3; ++round) hash = mix_many(hash, i + round, round, hash >> 5, table);
  out[i] = hash;
}

// An array that only scratch memory can hold, indexed by data.
KERNEL void scratch_array(const uint32_t* in, uint32_t* out, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  uint32_t values[48];
  for (uint32_t j = 0; j < 48; ++j) values[j] = in[i] * (j + 1);
  uint32_t at = in[i] % 48;
  for (uint32_t step = 0; step < 40; ++step) {
    values[(at * 7 + step) % 48] ^= values[at] + step;
    at = (at + values[at]) % 48;
  }
  out[i] = values[at] + values[(at + 13) % 48];
}

// Insertion sort of a private array of shorts: sub-word scratch.
KERNEL void scratch_sort(const int16_t* in, int16_t* out) {
  int16_t keys[16];
  for (uint32_t j = 0; j < 16; ++j) keys[j] = in[global_x() * 16 + j];
  for (int j = 1; j < 16; ++j) {
    const int16_t key = keys[j];
    int k = j - 1;
    while (k >= 0 && keys[k] > key) {
      keys[k + 1] = keys[k];
      --k;
    }
    keys[k + 1] = key;
  }
  for (uint32_t j = 0; j < 16; ++j) out[global_x() * 16 + j] = keys[j];
}

KERNEL void switch_table(const uint32_t* in, int* out, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  int value = static_cast<int>(in[i] >> 8);
  switch (in[i] % 13) {
    case 0:
      value += 17;
      break;
    case 1:
      value *= 3;
      break;
    case 2:
      value ^= 0x1234;
      [[fallthrough]];
    case 3:
      value -= 99;
      break;
    case 4:
      value = value / 5;
      break;
    case 5:
      value = -value;
      break;
    case 6:
      value <<= 2;
      break;
    case 7:
      value = value % 101;
      break;
    case 8:
      value |= 0x800000;
      break;
    case 9:
      value = value > 5000 ? value : 5000;
      break;
    case 10:
      return;
    default:
      value = ~value;
      break;
  }
  out[i] = value;
}

// A switch over a uniform value: scalar branches instead of masks.
KERNEL void uniform_switch(int* out, uint32_t selector) {
  int value = static_cast<int>(thread_x());
  switch (selector) {
    case 0:
      value += 1000;
      break;
    case 1:
      value *= value;
      break;
    case 2:
      value = 7 - value;
      break;
    case 3:
      value = value << 5 | 3;
      break;
    case 4:
      value = value % 9;
      break;
    case 5:
      value ^= 0xff;
      break;
    default:
      value = -1;
      break;
  }
  out[global_x()] = value;
}

// Collatz lengths: loops of very different lengths in neighbouring lanes.
KERNEL void collatz(const uint32_t* in, uint32_t* steps, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  uint64_t value = in[i];
  uint32_t count = 0;
  while (value > 1) {
    value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    ++count;
    if (count == 400) break;
  }
  steps[i] = count;
}

struct Totals {
  uint64_t sum;
  uint64_t most;
  uint64_t least;
  uint64_t bits_or;
  uint64_t bits_xor;
  uint64_t exchanged;
  int64_t signed_least;
};

KERNEL void atomics_64(const uint64_t* in, Totals* totals, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  constexpr int order = __ATOMIC_RELAXED;
  constexpr int scope = __HIP_MEMORY_SCOPE_AGENT;
  __hip_atomic_fetch_add(&totals->sum, in[i], order, scope);
  __hip_atomic_fetch_max(&totals->most, in[i], order, scope);
  __hip_atomic_fetch_min(&totals->least, in[i], order, scope);
  __hip_atomic_fetch_or(&totals->bits_or, in[i], order, scope);
  __hip_atomic_fetch_xor(&totals->bits_xor, in[i], order, scope);
  __hip_atomic_fetch_min(&totals->signed_least, static_cast<int64_t>(in[i]), order, scope);
  // A running maximum by compare and swap, as a program would write what the hardware has no instruction for.
  uint64_t seen = __hip_atomic_load(&totals->exchanged, order, scope);
  const uint64_t mine = in[i] % 1000003;
  while (mine > seen && !__hip_atomic_compare_exchange_strong(&totals->exchanged, &seen, mine, order, order, scope)) {
  }
}

KERNEL void atomics_32(int* words, float* sums, double* wide, const int* in, uint32_t n) {
  SHARED static int local[4];
  SHARED static float local_sum;
  if (thread_x() < 4) local[thread_x()] = thread_x() == 2 ? 0x7fffffff : 0;
  if (thread_x() == 0) local_sum = 0;
  barrier();
  constexpr int order = __ATOMIC_RELAXED;
  constexpr int agent = __HIP_MEMORY_SCOPE_AGENT;
  constexpr int group = __HIP_MEMORY_SCOPE_WORKGROUP;
  const uint32_t i = global_x();
  if (i < n) {
    __hip_atomic_fetch_add(&local[0], in[i], order, group);
    __hip_atomic_fetch_max(&local[1], in[i], order, group);
    __hip_atomic_fetch_min(&local[2], in[i], order, group);
    __hip_atomic_fetch_xor(&local[3], in[i], order, group);
    __hip_atomic_fetch_add(&local_sum, static_cast<float>(in[i] % 16), order, group);
    __hip_atomic_fetch_and(&words[4], in[i] | 0x0f0f0f0f, order, agent);
    __hip_atomic_fetch_sub(&words[5], 3, order, agent);
    __hip_atomic_fetch_add(&wide[0], 0.25, order, agent);
  }
  barrier();
  if (thread_x() == 0) {
    __hip_atomic_fetch_add(&words[0], local[0], order, agent);
    __hip_atomic_fetch_max(&words[1], local[1], order, agent);
    __hip_atomic_fetch_min(&words[2], local[2], order, agent);
    __hip_atomic_fetch_xor(&words[3], local[3], order, agent);
    __hip_atomic_fetch_add(&sums[0], local_sum, order, agent);
  }
}

// Four waves hand values on through memory, as a tree of sums does: what one has stored behind a barrier another reads.
// On CDNA the compiler waits for no store in front of the barriers.
KERNEL void sum_through_memory(int* values, int* seen) {
  const uint32_t i = thread_x();
  values[i] = static_cast<int>(3 * i);
  barrier();
  seen[i] = values[(i + 64) % 256];
  barrier();
  values[(i + 64) % 256] = static_cast<int>(i);
  barrier();
  for (uint32_t distance = 128; distance != 0; distance /= 2) {
    if (i < distance) values[i] += values[i + distance];
    barrier();
  }
  seen[256 + i] = values[0];
}

// All who find something raise the same flag.
KERNEL void raise_flags(int* flags, const int* in, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  flags[in[i] % 3] = 1;
}

// CDNA has no atomic maximum of floats: a loop over compare-and-swap.
KERNEL void greatest_float(float* most, const float* in, uint32_t n) {
  const uint32_t i = global_x();
  if (i < n) __hip_atomic_fetch_max(&most[i % 3], in[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Every width of load and store, at odd addresses too.
struct __attribute__((packed)) Record {
  uint8_t tag;
  uint32_t word;
  uint16_t half_word;
  uint64_t wide;
};
KERNEL void packed_records(const Record* in, uint64_t* out, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  const Record record = in[i];
  out[i] = record.wide + record.word * 3ULL + static_cast<uint64_t>(record.half_word) * record.tag;
}

// Where a thread stands in a three-dimensional grid, and what the launch tells a kernel about itself.
KERNEL void grid_geometry(uint32_t* out) {
  const uint32_t width = grid_size(0) * block_size(0);
  const uint32_t height = grid_size(1) * block_size(1);
  const uint32_t x = block_x() * block_size(0) + thread_x();
  const uint32_t y = block_y() * block_size(1) + thread_y();
  const uint32_t z = block_z() * block_size(2) + thread_z();
  out[(z * height + y) * width + x] = x + 1000 * y + 1000000 * z + grid_size(2);
}

// Volatile memory is read and written as often as the source says.
KERNEL void volatile_steps(volatile uint32_t* words) {
  volatile uint32_t* mine = words + global_x();
  for (uint32_t i = 0; i < 5; ++i) *mine = *mine * 3 + i;
}

DEVICE uint32_t device_counter;
CONSTANT uint32_t constant_table[16] = {1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225, 256};
KERNEL void module_globals(uint32_t* out) {
  const uint32_t ticket = atomic_add(&device_counter, 1U);
  out[ticket] = constant_table[thread_x() % 16];
}

struct Parameters {
  float scale;
  uint8_t flag;
  uint64_t offset;
  uint16_t counts[5];
};
// Arguments of every size, by value, with the gaps that alignment leaves.
KERNEL void many_arguments(uint8_t a, uint64_t b, uint16_t c, Parameters p, float d, int64_t* out, double e) {
  int64_t sum = a + static_cast<int64_t>(b) + c + static_cast<int64_t>(d * p.scale) + static_cast<int64_t>(e) +
                static_cast<int64_t>(p.offset) + p.flag;
  for (const uint16_t count : p.counts) sum += count;
  out[global_x()] = sum + static_cast<int64_t>(thread_x());
}

// Generic pointers: the same load reads LDS or global memory, as data decides.
KERNEL void generic_pointers(const uint32_t* in, uint32_t* out) {
  SHARED static uint32_t local[256];
  local[thread_x()] = in[global_x()] * 2 + 1;
  barrier();
  const uint32_t* from = in[global_x()] % 3 == 0 ? local : in + block_x() * block_size(0);
  out[global_x()] = from[(thread_x() + 17) % block_size(0)];
}

// A block of 1024 threads passes values round a ring, barrier by barrier.
KERNEL void ring(uint32_t* data, uint32_t rounds) {
  SHARED static uint32_t slots[1024];
  uint32_t value = data[global_x()];
  for (uint32_t round = 0; round < rounds; ++round) {
    slots[thread_x()] = value;
    barrier();
    value = slots[(thread_x() + 61) % block_size(0)] + round;
    barrier();
  }
  data[global_x()] = value;
}
