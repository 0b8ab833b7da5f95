// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_merge/program/invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/array_problem.h"
#include "tools/call_memory.h"
#include "tools/empty_call.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/runner.h"
#include "tools/stored_numbers.h"

namespace wavejit::attention_merge::program {
namespace {

using tools::CallMemory;
using tools::checked;
using tools::Draws;
using tools::FirstDifference;
using tools::InvarianceRequest;
using tools::Result;

struct PartBatch {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t dims = 0;
  std::int64_t parts = 0;
  std::int32_t type = WAVEJIT_BF16;  // of the parts
  std::int32_t result = WAVEJIT_BF16;
  std::vector<float> o;    // [part][token][head][dim], numbers of the type
  std::vector<float> lse;  // [part][token][head]

  std::string descriptor() const {
    const auto word = [](std::int32_t of) {
      return of == WAVEJIT_FP32 ? "fp32" : of == WAVEJIT_FP16 ? "fp16" : "bf16";
    };
    return fmt::format("attention_merge {} b1 q1 h{} d{} parts={} out={} lse", word(type), heads, dims, parts,
                       word(result));
  }
};

// Parts in this order; −1 is one that saw no key.
struct MergeChange {
  std::string text = {};
  std::vector<std::vector<std::int64_t>> calls = {};  // of tokens
  std::vector<std::int64_t> parts = {};
  std::vector<std::int64_t> stacks = {};  // lengths of the runs of parts that stand at one distance; none: 1 each
  bool token_a_sequence = false;
  bool heads_first = false;  // of O and LSE in memory
  bool in_place = false;
  std::optional<wavejit_simgpu_schedule> schedule = std::nullopt;
};

// Bits of O [head][dim], then of LSE [head].
using MergedBits = std::vector<std::uint32_t>;

std::vector<std::int64_t> counted(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<std::uint8_t> as_stored(const std::vector<float>& numbers, std::int32_t type) {
  const auto half = tools::half_of(type);
  const std::size_t size = half ? 2 : 4;
  std::vector<std::uint8_t> bytes(numbers.size() * size);
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    const std::uint32_t bits =
        half ? tools::encode(*half, static_cast<double>(numbers[at])) : std::bit_cast<std::uint32_t>(numbers[at]);
    for (std::size_t byte = 0; byte < size; ++byte)
      bytes[(at * size) + byte] = static_cast<std::uint8_t>(bits >> (8 * byte));
  }
  return bytes;
}

// How the rows of a call lie: O [tokens, heads, dims] or [heads, tokens, dims], LSE without the dims.
struct Rows {
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t dims;
  bool heads_first;
  bool token_a_sequence;

  std::int64_t count() const { return tokens * heads; }
  std::int64_t place(std::int64_t token, std::int64_t head) const {
    return heads_first ? (head * tokens) + token : (token * heads) + head;
  }
  wavejit_tensor o(void* memory, std::int32_t type) const { return tensor(memory, type, dims, false); }
  wavejit_tensor lse(void* memory) const { return tensor(memory, WAVEJIT_FP32, 1, true); }

 private:
  wavejit_tensor tensor(void* memory, std::int32_t type, std::int64_t width, bool by_heads) const {
    const std::int64_t sequences = token_a_sequence ? tokens : 1;
    const std::int64_t own = tokens / sequences;
    const std::int64_t of_token = place(1, 0) * width;
    const std::int64_t of_head = place(0, 1) * width;
    wavejit_tensor tensor = wavejit_dense_tensor(memory, static_cast<wavejit_dtype>(type), sequences,
                                                 by_heads ? heads : own, by_heads ? own : heads, width);
    tensor.strides[0] = own * of_token;
    tensor.strides[1] = by_heads ? of_head : of_token;
    tensor.strides[2] = by_heads ? of_token : of_head;
    return tensor;
  }
};

// One call over some tokens; their merged rows.
void run_call(wavejit_engine* engine, const PartBatch& batch, const MergeChange& change,
              const std::vector<std::int64_t>& tokens, CallMemory& arrays, std::vector<MergedBits>& rows) {
  const Rows places = {.tokens = std::ssize(tokens),
                       .heads = batch.heads,
                       .dims = batch.dims,
                       .heads_first = change.heads_first,
                       .token_a_sequence = change.token_a_sequence};
  const std::vector<std::int64_t> stacks =
      change.stacks.empty() ? std::vector<std::int64_t>(change.parts.size(), 1) : change.stacks;
  auto call = tools::empty_call<wavejit_attention_merge_arguments>(WAVEJIT_ATTENTION_MERGE);
  call.part_count = static_cast<std::int32_t>(stacks.size());
  std::size_t next = 0;
  for (std::size_t stack = 0; stack < stacks.size(); ++stack) {
    std::vector<float> o;
    std::vector<float> lse;
    for (std::int64_t member = 0; member < stacks[stack]; ++member) {
      const std::int64_t part = change.parts[next++];
      // O of a part without keys means nothing.
      std::vector<float> own(static_cast<std::size_t>(places.count() * batch.dims),
                             std::numeric_limits<float>::quiet_NaN());
      std::vector<float> own_lse(static_cast<std::size_t>(places.count()), -std::numeric_limits<float>::infinity());
      for (std::int64_t at = 0; part >= 0 && at < places.tokens; ++at)
        for (std::int64_t head = 0; head < batch.heads; ++head) {
          const std::int64_t from =
              (((part * batch.tokens) + tokens[static_cast<std::size_t>(at)]) * batch.heads) + head;
          const std::int64_t to = places.place(at, head);
          std::copy_n(batch.o.begin() + (from * batch.dims), batch.dims, own.begin() + (to * batch.dims));
          own_lse[static_cast<std::size_t>(to)] = batch.lse[static_cast<std::size_t>(from)];
        }
      o.insert(o.end(), own.begin(), own.end());
      lse.insert(lse.end(), own_lse.begin(), own_lse.end());
    }
    wavejit_attention_part& part = call.parts[stack];
    part.o = places.o(arrays.in(as_stored(o, batch.type)), batch.type);
    part.lse = places.lse(arrays.in(lse));
    part.count = stacks[stack];
    if (part.count == 1) continue;
    part.o_stride = places.count() * batch.dims;
    part.lse_stride = places.count();
  }
  const auto elements = static_cast<std::size_t>(places.count() * batch.dims);
  const std::size_t size = tools::half_of(batch.result) ? 2 : 4;
  call.o = change.in_place ? call.parts[0].o : places.o(arrays.out(elements * size), batch.result);
  call.lse = change.in_place ? call.parts[0].lse
                             : places.lse(arrays.out(static_cast<std::size_t>(places.count()) * sizeof(float)));
  if (!arrays.good()) return;
  arrays.keep(checked(wavejit_attention_merge(engine, &call, nullptr)));
  arrays.keep(checked(wavejit_device_synchronize(engine)));
  const auto o = arrays.back<std::uint8_t>(call.o.data, elements * size);
  const auto lse = arrays.back<std::uint32_t>(call.lse.data, static_cast<std::size_t>(places.count()));
  if (!arrays.good()) return;
  for (std::int64_t at = 0; at < places.tokens; ++at) {
    MergedBits& row = rows[static_cast<std::size_t>(tokens[static_cast<std::size_t>(at)])];
    for (std::int64_t head = 0; head < batch.heads; ++head)
      for (std::int64_t dim = 0; dim < batch.dims; ++dim) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &o[static_cast<std::size_t>((places.place(at, head) * batch.dims) + dim) * size], size);
        row.push_back(bits);
      }
    for (std::int64_t head = 0; head < batch.heads; ++head)
      row.push_back(lse[static_cast<std::size_t>(places.place(at, head))]);
  }
}

Result<std::vector<MergedBits>> merged_rows(wavejit_engine* engine, const PartBatch& batch, const MergeChange& change) {
  std::vector<MergedBits> rows(static_cast<std::size_t>(batch.tokens));
  for (const std::vector<std::int64_t>& tokens : change.calls) {
    CallMemory arrays(engine);
    run_call(engine, batch, change, tokens, arrays, rows);
    if (!arrays.good()) return std::unexpected(arrays.good().error());
  }
  return rows;
}

PartBatch draw_parts(const InvarianceRequest& request) {
  Draws draws(request.seed, request.batch);
  PartBatch batch;
  constexpr std::array<std::int64_t, 6> widths = {64, 128, 40, 512, 80, 256};
  constexpr std::array<std::int32_t, 3> types = {WAVEJIT_BF16, WAVEJIT_FP16, WAVEJIT_FP32};
  batch.tokens = std::max<std::int64_t>(request.sequences, 2);
  batch.heads = 1 + draws.below(12);
  batch.dims = widths[static_cast<std::size_t>(draws.below(6))];
  batch.parts = 2 + draws.below(6);
  batch.type = types[static_cast<std::size_t>(draws.below(3))];
  batch.result = batch.type == WAVEJIT_FP32 ? types[static_cast<std::size_t>(draws.below(3))]
                 : draws.one_in(3)          ? WAVEJIT_FP32
                                            : batch.type;
  const auto count = static_cast<std::size_t>(batch.parts * batch.tokens * batch.heads);
  const std::uint64_t seed = (request.seed * 64) + (request.batch * 2);
  batch.o = tools::seeded_values(seed, count * static_cast<std::size_t>(batch.dims));
  if (const auto half = tools::half_of(batch.type))
    for (float& value : batch.o) value = tools::decode(*half, tools::encode(*half, static_cast<double>(value)));
  batch.lse = tools::seeded_values(seed + 1, count);
  // Parts of some weight, of nearly none, and without a key.
  for (float& lse : batch.lse) lse = draws.one_in(7) ? -std::numeric_limits<float>::infinity() : lse * 6;
  return batch;
}

using Changed = std::optional<MergeChange>;
using Dimension = tools::DimensionOf<PartBatch, MergeChange, Changed>;

MergeChange unchanged(const PartBatch& batch) {
  return {.calls = {counted(batch.tokens)}, .parts = counted(batch.parts)};
}

const std::vector<Dimension>& merge_dimensions() {
  static const std::vector<Dimension> all = {
      {{.name = "merge-alone", .changes = "each token in a call of its own"},
       [](const PartBatch& batch, Draws&) -> Changed {
         MergeChange change = unchanged(batch);
         change.calls.clear();
         for (const std::int64_t token : counted(batch.tokens)) change.calls.push_back({token});
         return change;
       }},
      {{.name = "merge-order", .changes = "tokens in another order, each a sequence"},
       [](const PartBatch& batch, Draws& draws) -> Changed {
         MergeChange change = unchanged(batch);
         draws.shuffle(change.calls.front());
         change.token_a_sequence = true;
         return change;
       }},
      {{.name = "merge-stack", .changes = "parts in one tensor"},
       [](const PartBatch& batch, Draws&) -> Changed {
         MergeChange change = unchanged(batch);
         change.stacks = {batch.parts};
         return change;
       }},
      {{.name = "merge-stacks", .changes = "parts in two tensors of several"},
       [](const PartBatch& batch, Draws& draws) -> Changed {
         MergeChange change = unchanged(batch);
         const std::int64_t first = 1 + draws.below(batch.parts - 1);
         change.text = fmt::format("{}+{}", first, batch.parts - first);
         change.stacks = {first, batch.parts - first};
         return change;
       }},
      {{.name = "merge-strides", .changes = "heads in front of tokens in memory"},
       [](const PartBatch& batch, Draws&) -> Changed {
         MergeChange change = unchanged(batch);
         change.heads_first = true;
         return change;
       }},
      {{.name = "merge-empty", .changes = "a part without keys among them, O of NaN"},
       [](const PartBatch& batch, Draws& draws) -> Changed {
         MergeChange change = unchanged(batch);
         const std::int64_t place = draws.below(batch.parts + 1);
         change.text = fmt::format("place={}", place);
         change.parts.insert(change.parts.begin() + place, -1);
         return change;
       }},
      {{.name = "merge-in-place", .changes = "the result stands where the first part does"},
       [](const PartBatch& batch, Draws&) -> Changed {
         if (batch.type != batch.result) return std::nullopt;
         MergeChange change = unchanged(batch);
         change.in_place = true;
         return change;
       }},
      {{.name = "merge-schedule", .changes = "the order in which waves run (simulated GPUs)"},
       [](const PartBatch& batch, Draws& draws) -> Changed {
         MergeChange change = unchanged(batch);
         change.text = draws.one_in(2) ? "reverse" : "random";
         change.schedule = change.text == "reverse" ? WAVEJIT_SIMGPU_REVERSE : WAVEJIT_SIMGPU_RANDOM;
         return change;
       }},
      {{.name = "merge-reversed", .changes = "parts from the last: shows", .control = true},
       [](const PartBatch& batch, Draws&) -> Changed {
         if (batch.parts < 3 || batch.result != WAVEJIT_FP32) return std::nullopt;
         MergeChange change = unchanged(batch);
         change.text = "from the last";
         std::ranges::reverse(change.parts);
         return change;
       }},
  };
  return all;
}

std::optional<FirstDifference> first_difference(const PartBatch& batch, const MergedBits& before,
                                                const MergedBits& after, std::int64_t token) {
  const auto [a, b] = std::ranges::mismatch(before, after);
  if (a == before.end() && b == after.end()) return std::nullopt;
  const std::int64_t at = a - before.begin();
  const std::int64_t elements = batch.heads * batch.dims;
  const bool of_lse = at >= elements;
  const auto half = of_lse ? std::nullopt : tools::half_of(batch.result);
  const auto number = [&](std::uint32_t bits) {
    return static_cast<double>(half ? tools::decode(*half, static_cast<std::uint16_t>(bits))
                                    : std::bit_cast<float>(bits));
  };
  return FirstDifference{.tensor = of_lse ? "LSE" : "O",
                         .token = token,
                         .head = of_lse ? at - elements : at / batch.dims,
                         .dim = of_lse ? -1 : at % batch.dims,
                         .before = number(*a),
                         .after = number(*b)};
}

struct Laboratory {
  static constexpr auto& dimensions = merge_dimensions;
  static constexpr auto& draw = draw_parts;
  static constexpr auto& unchanged = program::unchanged;
  static constexpr auto& changed = merged_rows;
  static constexpr auto& difference = first_difference;
};

}  // namespace

const tools::Invariance& merge_invariance() { return tools::only<tools::InvarianceOf<Laboratory>>(); }

}  // namespace wavejit::attention_merge::program
