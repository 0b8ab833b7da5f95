// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A descriptor of cache_append as numbers: what is appended, where to, and what stands there then.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention/program/row_layout.h"
#include "templates/cache_append/kernel/spec.h"
#include "templates/cache_append/program/reference.h"
#include "tools/array_problem.h"

namespace wavejit::cache_append {
struct ProblemDescriptor;
}

namespace wavejit::cache_append::program {

using attention::program::Index;
using attention::program::RowLayout;
using Order = RowLayout::Order;
using tools::HalfType;

inline constexpr double base_of_angles = 10000;
inline constexpr std::int64_t table_rows = 4096;

// What a descriptor says, as arrays and calls take it.
struct Said {
  std::string text;
  std::int32_t type = WAVEJIT_BF16;
  std::int64_t batch = 0;
  std::int64_t tokens = 0;  // of a batch
  std::int64_t heads = 0;
  std::int64_t query_heads = 0;
  std::int64_t key_dims = 0;
  std::int64_t value_dims = 0;
  std::int64_t page_size = 0;
  std::int32_t page_layout = WAVEJIT_PAGES_OF_ROWS;
  bool heads_first = false;
  std::int32_t rotary = WAVEJIT_ROTARY_NONE;
  std::int64_t rotary_dims = 0;
  double base = base_of_angles;
  std::int32_t table_type = WAVEJIT_FP32;  // WAVEJIT_DTYPE_NONE: a base
  std::string elements;
  std::int32_t cache = WAVEJIT_DTYPE_NONE;  // of 8 bits; else that of what is appended
  Scales scales = Scales::none;
  bool head_scales = false;
  bool holes = false;
  std::uint64_t seed = 1;
  std::int64_t told_pages = 0;  // of the cache; 0: a quarter more than the tokens fill

  HalfType half() const { return type == WAVEJIT_BF16 ? HalfType::bf16 : HalfType::fp16; }
  std::int64_t all_tokens() const { return batch * tokens; }
  std::int64_t pages() const {
    if (told_pages != 0) return told_pages;
    return std::max<std::int64_t>((all_tokens() + page_size - 1) / page_size * 5 / 4, 1);
  }
  bool apart(std::string_view tensor) const { return elements.find(tensor) != std::string::npos; }
};

Said said_of(const ProblemDescriptor& from, std::string text);

// A tensor of the call: where its elements lie, and in which input, or at which element of the output.
struct Placed {
  RowLayout layout;
  std::int64_t first = 0;
  wavejit_tensor tensor(void* memory, std::int32_t type) const {
    return layout.tensor(static_cast<char*>(memory) + (first * 2), type);
  }
};

// The whole problem: what is appended, and where to.
struct Appended {
  Said said;
  std::vector<std::vector<float>> sources;  // K, V, Q: [token][head][dim], numbers of the type
  std::vector<Placed> sources_placed;
  std::vector<Placed> targets;
  std::vector<std::int64_t> slots;  // of tokens
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> owners;    // of slots: the token, or −1
  std::vector<float> given_scales[2];  // of heads of K and V in 8 bits; empty: found, or 1
  std::vector<float> cosines;          // [position][pair]
  std::vector<float> sines;

  std::int64_t dims(std::size_t side) const { return side == 1 ? said.value_dims : said.key_dims; }
  std::int64_t heads(std::size_t side) const { return side == 2 ? said.query_heads : said.heads; }

  // What an element of the output belongs to.
  struct Owner {
    std::size_t side;
    Index index;
    std::int64_t token;  // −1: it is nobody's
  };
  Owner owner(std::int64_t element) const;
  // A number on its way, turned.
  Turned of(std::size_t side, std::int64_t token, std::int64_t head, std::int64_t dim) const;
  Turned at(std::int64_t element) const;
  double allowed(const Turned& exact) const;
};

std::shared_ptr<Appended> make_appended(const Said& said);

// The inputs of a call as memory has them.
std::vector<std::byte> table_bytes(const Said& said, const std::vector<float>& values);
std::vector<std::byte> source_bytes(const Appended& all, std::size_t side);

}  // namespace wavejit::cache_append::program
