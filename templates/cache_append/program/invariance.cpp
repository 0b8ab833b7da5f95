// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/program/invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/program/cache_formats.h"
#include "templates/attention/program/row_layout.h"
#include "tools/array_problem.h"
#include "tools/byte_float.h"
#include "tools/call_memory.h"
#include "tools/empty_call.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/runner.h"

namespace wavejit::cache_append::program {
namespace {

using attention::program::RowLayout;
using tools::CallMemory;
using tools::checked;
using tools::Draws;
using tools::FirstDifference;
using tools::HalfType;
using tools::InvarianceRequest;
using tools::Result;

constexpr std::size_t tensor_sides = 3;  // K, V, Q
constexpr std::int64_t table_positions = 512;

struct TokenBatch {
  std::int64_t tokens = 0;
  std::int64_t heads[tensor_sides] = {};
  std::int64_t dims[tensor_sides] = {};
  HalfType type = HalfType::bf16;
  std::optional<tools::ByteType> cache = std::nullopt;  // of 8 bits
  std::int32_t cache_type = WAVEJIT_DTYPE_NONE;
  std::string cache_words = {};
  bool found_scales = false;
  std::int32_t rotary = WAVEJIT_ROTARY_NONE;
  std::int64_t rotary_dims = 0;
  bool base = false;
  std::vector<std::uint16_t> sources[tensor_sides] = {};  // [token][head][dim]
  std::vector<std::int32_t> positions = {};
  std::vector<float> cosines = {};  // [position][pair]
  std::vector<float> sines = {};
  std::vector<float> scales = {};  // of heads

  std::int32_t dtype() const { return type == HalfType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16; }
  std::size_t row(std::size_t side) const { return static_cast<std::size_t>(heads[side] * dims[side]); }
  std::string descriptor() const {
    std::string text =
        fmt::format("cache_append {} b1 q1 h{} d{}/{} page=16", to_text(type), heads[0], dims[0], dims[1]);
    if (rotary != WAVEJIT_ROTARY_NONE)
      text += fmt::format(" queries={} rotary={}:{}{}", heads[2],
                          rotary == WAVEJIT_ROTARY_HALVES ? "halves" : "interleaved", rotary_dims,
                          base ? " angles=base" : "");
    return text + cache_words;
  }
};

struct TokenChange {
  std::string text = {};
  std::vector<std::vector<std::int64_t>> calls = {};  // of tokens; all into one cache
  bool token_a_sequence = false;
  std::int64_t strangers = 0;  // this many tokens without a slot before each token
  std::int64_t page = 16;
  RowLayout::Order order = RowLayout::Order::nhd;
  bool other_slots = false;
  std::int64_t gap = 0;  // elements behind each row of what is appended
  bool other_numbers = false;
  std::optional<wavejit_simgpu_schedule> schedule = std::nullopt;
};

// What a token left: bits of elements and of found scales.
using TokenBits = std::array<std::vector<std::uint32_t>, 5>;
constexpr const char* tensor_names[] = {"k", "v", "q", "k scale", "v scale"};

std::vector<std::int64_t> in_order(const TokenBatch& batch) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(batch.tokens));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// Pages, and where tokens stand in them: by lot.
struct Cache {
  std::int64_t page;
  std::int64_t pages;
  RowLayout::Order order;
  std::vector<std::int64_t> slots;  // of tokens

  RowLayout layout(const TokenBatch& batch, std::size_t side) const {
    return {order, {pages, page, batch.heads[side], batch.dims[side]}};
  }
};

Cache cache_of(const TokenBatch& batch, const TokenChange& change) {
  Cache cache = {.page = change.page, .pages = (batch.tokens / change.page) + 3, .order = change.order, .slots = {}};
  cache.slots.resize(static_cast<std::size_t>(cache.page * cache.pages));
  std::iota(cache.slots.begin(), cache.slots.end(), 0);
  Draws draws(change.other_slots ? 7 : 3, static_cast<std::uint64_t>(batch.tokens));
  draws.shuffle(cache.slots);
  cache.slots.resize(static_cast<std::size_t>(batch.tokens));
  return cache;
}

// The arrays of all calls of a change.
struct Targets {
  void* memory[tensor_sides - 1] = {};
  void* scales[tensor_sides - 1] = {};
};

// One call, which leaves the bits of its turned queries in `rows`.
void run_call(wavejit_engine* engine, const TokenBatch& batch, const TokenChange& change, const Cache& cache,
              const std::vector<std::int64_t>& tokens, const Targets& targets, CallMemory& arrays,
              std::vector<TokenBits>& rows) {
  // A stranger has the numbers of the token beside it, and position 0.
  std::vector<std::int64_t> all;
  for (const std::int64_t token : tokens) {
    all.insert(all.end(), static_cast<std::size_t>(change.strangers), -1 - token);
    all.push_back(token);
  }
  const std::int64_t count = std::ssize(all);
  const std::int64_t sequences = change.token_a_sequence ? count : 1;
  std::vector<std::int64_t> slots;
  std::vector<std::int32_t> positions;
  for (const std::int64_t token : all) {
    slots.push_back(token < 0 ? -1 : cache.slots[static_cast<std::size_t>(token)]);
    if (batch.rotary != WAVEJIT_ROTARY_NONE)
      positions.push_back(token < 0 ? 0 : batch.positions[static_cast<std::size_t>(token)]);
  }
  auto call = tools::empty_call<wavejit_cache_append_arguments>(WAVEJIT_CACHE_APPEND);
  wavejit_tensor* sources[] = {&call.k, &call.v, &call.q};
  for (std::size_t side = 0; side < tensor_sides; ++side) {
    const std::int64_t row = batch.dims[side] + change.gap;
    std::vector<std::uint16_t> numbers(static_cast<std::size_t>(count * batch.heads[side] * row), 0xFFFF);
    for (std::int64_t place = 0; place < count; ++place) {
      const std::int64_t token = all[static_cast<std::size_t>(place)];
      const std::int64_t from = token < 0 ? -1 - token : token;
      for (std::int64_t head = 0; head < batch.heads[side]; ++head)
        for (std::int64_t dim = 0; dim < batch.dims[side]; ++dim) {
          std::uint16_t bits =
              batch.sources[side]
                           [static_cast<std::size_t>((((from * batch.heads[side]) + head) * batch.dims[side]) + dim)];
          if (change.other_numbers)
            bits = tools::encode(batch.type, static_cast<double>(tools::decode(batch.type, bits)) * 0.75);
          numbers[static_cast<std::size_t>((((place * batch.heads[side]) + head) * row) + dim)] = bits;
        }
    }
    if (numbers.empty()) continue;
    *sources[side] = wavejit_dense_tensor(arrays.in(numbers), static_cast<wavejit_dtype>(batch.dtype()), sequences,
                                          count / sequences, batch.heads[side], row);
    sources[side]->sizes[3] = batch.dims[side];
  }
  wavejit_tensor* caches[] = {&call.k_cache, &call.v_cache};
  wavejit_tensor* scales[] = {&call.scales.k_scale, &call.scales.v_scale};
  for (std::size_t side = 0; side < tensor_sides - 1; ++side) {
    *caches[side] =
        cache.layout(batch, side).tensor(targets.memory[side], batch.cache ? batch.cache_type : batch.dtype());
    if (!batch.cache) continue;
    *scales[side] =
        batch.found_scales
            ? wavejit_dense_tensor(targets.scales[side], WAVEJIT_FP32, cache.pages, cache.page, batch.heads[side], 1)
            : wavejit_dense_tensor(targets.scales[side], WAVEJIT_FP32, 1, 1, batch.heads[side], 1);
  }
  call.scales.token_scales = batch.found_scales ? 1 : 0;
  const std::size_t queries = batch.row(2) * static_cast<std::size_t>(count);
  void* turned = arrays.out(queries * 2);
  if (queries > 0)
    call.q_out = wavejit_dense_tensor(turned, static_cast<wavejit_dtype>(batch.dtype()), sequences, count / sequences,
                                      batch.heads[2], batch.dims[2]);
  call.slots = arrays.in(slots);
  call.slot_bytes = sizeof(std::int64_t);
  call.rotary = batch.rotary;
  if (batch.rotary != WAVEJIT_ROTARY_NONE) {
    call.rotary_dim = static_cast<std::int32_t>(batch.rotary_dims);
    call.positions = arrays.in(positions);
    call.position_bytes = sizeof(std::int32_t);
    if (batch.base) {
      call.rotary_base = 10000;
    } else {
      call.cos =
          wavejit_dense_tensor(arrays.in(batch.cosines), WAVEJIT_FP32, 1, table_positions, 1, batch.rotary_dims / 2);
      call.sin =
          wavejit_dense_tensor(arrays.in(batch.sines), WAVEJIT_FP32, 1, table_positions, 1, batch.rotary_dims / 2);
    }
  }
  if (!arrays.good()) return;
  arrays.keep(checked(wavejit_cache_append(engine, &call, nullptr)));
  arrays.keep(checked(wavejit_device_synchronize(engine)));
  const auto bits = arrays.back<std::uint16_t>(turned, queries);
  for (std::size_t place = 0; place < all.size(); ++place) {
    if (all[place] < 0) continue;
    std::vector<std::uint32_t>& row = rows[static_cast<std::size_t>(all[place])][2];
    row.assign(bits.begin() + static_cast<std::ptrdiff_t>(place * batch.row(2)),
               bits.begin() + static_cast<std::ptrdiff_t>((place + 1) * batch.row(2)));
  }
}

// What all calls of a change left of each token.
Result<std::vector<TokenBits>> appended(wavejit_engine* engine, const TokenBatch& batch, const TokenChange& change) {
  const Cache cache = cache_of(batch, change);
  CallMemory arrays(engine);
  Targets targets;
  const std::int64_t slots = cache.page * cache.pages;
  const std::size_t element = batch.cache ? 1 : 2;
  const auto elements = [&](std::size_t side) { return static_cast<std::size_t>(slots) * batch.row(side); };
  for (std::size_t side = 0; side < tensor_sides - 1; ++side) {
    targets.memory[side] = arrays.out(elements(side) * element);
    if (batch.cache)
      targets.scales[side] = batch.found_scales
                                 ? arrays.out(static_cast<std::size_t>(slots * batch.heads[side]) * sizeof(float))
                                 : arrays.in(batch.scales);
  }
  std::vector<TokenBits> rows(static_cast<std::size_t>(batch.tokens));
  for (const std::vector<std::int64_t>& tokens : change.calls)
    run_call(engine, batch, change, cache, tokens, targets, arrays, rows);
  for (std::size_t side = 0; side < tensor_sides - 1; ++side) {
    const auto bytes = arrays.back<std::uint8_t>(targets.memory[side], elements(side) * element);
    const auto scales = arrays.back<std::uint32_t>(
        targets.scales[side], batch.found_scales ? static_cast<std::size_t>(slots * batch.heads[side]) : 0);
    if (!arrays.good()) break;
    const RowLayout layout = cache.layout(batch, side);
    for (std::size_t token = 0; token < rows.size(); ++token) {
      const std::int64_t slot = cache.slots[token];
      for (std::int64_t head = 0; head < batch.heads[side]; ++head) {
        for (std::int64_t dim = 0; dim < batch.dims[side]; ++dim) {
          const auto at = static_cast<std::size_t>(layout.place_of({slot / cache.page, slot % cache.page, head, dim}));
          rows[token][side].push_back(element == 1 ? bytes[at] : bytes[2 * at] + (256U * bytes[(2 * at) + 1]));
        }
        if (batch.found_scales)
          rows[token][3 + side].push_back(scales[static_cast<std::size_t>((slot * batch.heads[side]) + head)]);
      }
    }
  }
  if (!arrays.good()) return std::unexpected(arrays.good().error());
  return rows;
}

TokenBatch draw_tokens(const InvarianceRequest& request, wavejit_engine* engine) {
  Draws draws(request.seed, request.batch);
  TokenBatch batch;
  batch.tokens = std::max<std::int64_t>(request.sequences, 2);
  constexpr std::array<std::int64_t, 6> widths = {64, 128, 40, 96, 256, 80};
  const std::int64_t heads = 1 + draws.below(9);
  batch.heads[0] = batch.heads[1] = heads;
  batch.heads[2] = heads * (1 + draws.below(4));
  batch.dims[0] = batch.dims[2] = widths[static_cast<std::size_t>(draws.below(6))];
  batch.dims[1] = draws.one_in(3) ? widths[static_cast<std::size_t>(draws.below(6))] : batch.dims[0];
  batch.type = draws.one_in(2) ? HalfType::bf16 : HalfType::fp16;
  // By turns: 16 bits, int8 and e4m3 with scales that are found, and that are given.
  const std::string e4m3 = attention::program::e4m3_of(wavejit_engine_target(engine));
  if (const std::uint64_t turn = request.batch % 5; turn != 0) {
    const bool integers = turn % 2 == 1 || e4m3.empty();
    batch.cache_type = attention::program::format_on(wavejit_engine_target(engine),
                                                     integers ? tools::ByteType::i8 : tools::ByteType::e4m3);
    batch.cache = tools::byte_type_of(batch.cache_type);
    batch.found_scales = turn <= 2;
    batch.cache_words = fmt::format(" cache={} cache_scales={}", integers ? std::string("i8") : e4m3,
                                    batch.found_scales ? "token" : "h");
    for (std::int64_t head = 0; head < heads; ++head)
      batch.scales.push_back((integers ? 0.03F : 0.01F) * static_cast<float>(1 + draws.below(5)));
  }
  if (const std::int64_t kind = draws.below(3); kind == 0) {
    batch.heads[2] = 0;  // queries come along to be turned
  } else {
    batch.rotary = kind == 1 ? WAVEJIT_ROTARY_HALVES : WAVEJIT_ROTARY_INTERLEAVED;
    batch.rotary_dims = draws.one_in(2) ? batch.dims[0] / 16 * 16 : 16;
    batch.base = draws.one_in(2);
  }
  for (std::int64_t token = 0; token < batch.tokens; ++token)
    batch.positions.push_back(static_cast<std::int32_t>(draws.below(batch.base ? 1000000 : table_positions)));
  for (std::int64_t position = 0; !batch.base && position < table_positions; ++position)
    for (std::int64_t pair = 0; pair < batch.rotary_dims / 2; ++pair) {
      const double angle = static_cast<double>(position) * std::pow(0.9, static_cast<double>(pair));
      batch.cosines.push_back(static_cast<float>(std::cos(angle)));
      batch.sines.push_back(static_cast<float>(std::sin(angle)));
    }
  for (std::size_t side = 0; side < tensor_sides; ++side)
    for (const float value : tools::seeded_values((request.seed * 64) + (request.batch * 4) + side,
                                                  static_cast<std::size_t>(batch.tokens) * batch.row(side)))
      batch.sources[side].push_back(tools::encode(batch.type, static_cast<double>(value) * 4));
  return batch;
}

TokenChange in_one_call(const TokenBatch& batch) { return {.calls = {in_order(batch)}}; }

using Dimension = tools::DimensionOf<TokenBatch, TokenChange, TokenChange>;

const std::vector<Dimension>& append_dimensions() {
  static const std::vector<Dimension> all = {
      {{.name = "append-alone", .changes = "each token in a call of its own"},
       [](const TokenBatch& batch, Draws&) {
         TokenChange change;
         for (const std::int64_t token : in_order(batch)) change.calls.push_back({token});
         return change;
       }},
      {{.name = "append-order", .changes = "tokens in another order"},
       [](const TokenBatch& batch, Draws& draws) {
         TokenChange change = in_one_call(batch);
         draws.shuffle(change.calls.front());
         return change;
       }},
      {{.name = "append-batch", .changes = "each token a sequence, among tokens without a slot"},
       [](const TokenBatch& batch, Draws& draws) {
         const std::int64_t strangers = draws.below(4);
         return TokenChange{.text = fmt::format("strangers={}", strangers),
                            .calls = {in_order(batch)},
                            .token_a_sequence = true,
                            .strangers = strangers};
       }},
      {{.name = "append-pages", .changes = "pages of 1, 48, 64 or 256 keys, other slots, heads or keys first"},
       [](const TokenBatch& batch, Draws& draws) {
         constexpr std::array<std::int64_t, 4> sizes = {1, 48, 64, 256};
         TokenChange change = {.calls = {in_order(batch)}, .other_slots = true};
         change.page = sizes[static_cast<std::size_t>(draws.below(4))];
         change.order = draws.one_in(2) ? RowLayout::Order::hnd : RowLayout::Order::nhd;
         change.text = fmt::format("page={}:{}", change.page, change.order == RowLayout::Order::hnd ? "hnd" : "nhd");
         return change;
       }},
      {{.name = "append-elements", .changes = "a cache whose dims of a row stand apart"},
       [](const TokenBatch& batch, Draws&) {
         return TokenChange{.calls = {in_order(batch)}, .order = RowLayout::Order::dims_apart};
       }},
      {{.name = "append-strides", .changes = "gaps of NaN behind the rows of what is appended"},
       [](const TokenBatch& batch, Draws& draws) {
         const std::int64_t gap = 1 + draws.below(24);
         return TokenChange{.text = fmt::format("gap={}", gap), .calls = {in_order(batch)}, .gap = gap};
       }},
      {{.name = "append-schedule", .changes = "the order in which waves run (simulated GPUs)"},
       [](const TokenBatch& batch, Draws& draws) {
         const bool reverse = draws.one_in(2);
         return TokenChange{.text = reverse ? "reverse" : "random",
                            .calls = {in_order(batch)},
                            .schedule = reverse ? WAVEJIT_SIMGPU_REVERSE : WAVEJIT_SIMGPU_RANDOM};
       }},
      {{.name = "append-other", .changes = "numbers times 0.75: shows", .control = true},
       [](const TokenBatch& batch, Draws&) { return TokenChange{.calls = {in_order(batch)}, .other_numbers = true}; }},
  };
  return all;
}

std::optional<FirstDifference> first_difference(const TokenBatch& batch, const TokenBits& before,
                                                const TokenBits& after, std::int64_t token) {
  for (std::size_t tensor = 0; tensor < before.size(); ++tensor) {
    const auto [a, b] = std::ranges::mismatch(before[tensor], after[tensor]);
    if (a == before[tensor].end() && b == after[tensor].end()) continue;
    const bool scale = tensor > 2;
    const auto number = [&](std::uint32_t bits) {
      if (scale) return static_cast<double>(std::bit_cast<float>(bits));
      if (tensor == 2 || !batch.cache)
        return static_cast<double>(tools::decode(batch.type, static_cast<std::uint16_t>(bits)));
      return static_cast<double>(tools::decode(*batch.cache, static_cast<std::uint8_t>(bits)));
    };
    const std::int64_t at = a - before[tensor].begin();
    const std::int64_t row = scale ? 1 : batch.dims[tensor];
    return FirstDifference{.tensor = tensor_names[tensor],
                           .token = token,
                           .head = at / row,
                           .dim = scale ? -1 : at % row,
                           .before = number(*a),
                           .after = number(*b)};
  }
  return std::nullopt;
}

struct Laboratory {
  static constexpr auto& dimensions = append_dimensions;
  static constexpr auto& draw = draw_tokens;
  static constexpr auto& unchanged = in_one_call;
  static constexpr auto& changed = appended;
  static constexpr auto& difference = first_difference;
};

}  // namespace

const tools::Invariance& append_invariance() { return tools::only<tools::InvarianceOf<Laboratory>>(); }

}  // namespace wavejit::cache_append::program
