// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One call of cache_append on a simulated device. Everything that is not named lies as noise: the slots that no token
// has, what stands around and between tensors, and rows of tokens without a slot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/attention_run.h"
#include "templates/attention/program/row_layout.h"
#include "templates/cache_append/kernel/spec.h"

namespace wavejit::tests {

struct AppendCase {
  using Order = attention::program::RowLayout::Order;
  cache_append::DataType type = cache_append::DataType::bf16;
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t heads = 1;
  std::int64_t query_heads = 0;
  std::int64_t key_dims = 64;
  std::int64_t value_dims = 64;
  std::int64_t pages = 4;
  std::int64_t page_size = 16;
  Order source = Order::nhd;
  Order keys = Order::nhd;
  Order values = Order::nhd;
  std::int32_t page_layout = WAVEJIT_PAGES_OF_ROWS;
  std::vector<std::int64_t> slots = {};
  bool wide_slots = true;  // of 8 bytes, else of 4
  std::int32_t rotary = WAVEJIT_ROTARY_NONE;
  std::int64_t rotary_dims = 0;
  bool base = false;
  bool in_place = false;  // q_out is q
  std::vector<std::int64_t> positions = {};
  std::int64_t table_rows = 50;
  std::vector<float> cosines = {};
  std::vector<float> sines = {};
  // A cache of 8 bits: its type, and what bytes are counted in: numbers for each head, or none, or found ones.
  wavejit_dtype narrow = WAVEJIT_DTYPE_NONE;
  bool token_scales = false;
  std::vector<float> k_scales = {};
  std::vector<float> v_scales = {};
  // [token][head][dim], as bits.
  std::vector<std::uint16_t> k = {};
  std::vector<std::uint16_t> v = {};
  std::vector<std::uint16_t> q = {};
};

// Fills K, V, Q, tables; slots and positions where there are none.
AppendCase filled(AppendCase which, std::uint64_t seed);

struct AppendOutput {
  wavejit_status status = WAVEJIT_OK;
  std::string detail;
  // [token][head][dim], of a cache of 8 bits a byte each; of tokens without a slot what `noise` is.
  std::vector<std::uint16_t> k;
  std::vector<std::uint16_t> v;
  std::vector<std::uint16_t> q;
  // [token][head], of token_scales; of tokens without a slot 0.
  std::vector<float> k_scales;
  std::vector<float> v_scales;
  bool rest_intact = true;  // all that no token names
  std::string reports;
  std::string kernel_spec;
};
inline constexpr std::uint16_t append_noise = 0xFFFF;
AppendOutput run_append(wavejit_engine* engine, const AppendCase& which);

// What a call must give, by std::fma, IEEE division, a table of the format's numbers and this file's own rounding; with
// tables.
AppendOutput expected_append(const AppendCase& which);

// The bits that rotation must give, by std::fma and this file's own rounding; with tables.
std::vector<std::uint16_t> turned_bits(const AppendCase& which, const std::vector<std::uint16_t>& rows,
                                       std::int64_t heads, std::int64_t dims);

}  // namespace wavejit::tests
