// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/invariance_rows.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "tools/array_problem.h"

namespace wavejit::attention::program {

using tools::FirstDifference;

std::vector<RowsOf> shuffled(std::vector<RowsOf> whole, tools::Draws& draws) {
  draws.shuffle(whole);
  return whole;
}

std::vector<RowsOf> in_pieces(std::span<const RowsOf> whole, tools::Draws& draws) {
  std::vector<RowsOf> pieces;
  for (const RowsOf& all : whole)
    for (std::int64_t at = 0; at < all.end;) {
      const std::int64_t end = std::min(all.end, at + 1 + draws.below(all.end));
      pieces.push_back({.sequence = all.sequence, .begin = at, .end = end});
      at = end;
    }
  return pieces;
}

std::vector<RowsOf> row_by_row(std::span<const RowsOf> whole, std::int64_t most_rows) {
  std::vector<RowsOf> pieces;
  for (const RowsOf& all : whole)
    for (std::int64_t row = 0; all.end <= most_rows && row < all.end; ++row)
      pieces.push_back({.sequence = all.sequence, .begin = row, .end = row + 1});
  return pieces;
}

const NamedSchedule& schedule_in_turn(std::uint64_t number) {
  static constexpr std::array<NamedSchedule, 3> all = {
      {{.text = "waves in reverse order", .schedule = WAVEJIT_SIMGPU_REVERSE},
       {.text = "waves in random order", .schedule = WAVEJIT_SIMGPU_RANDOM},
       {.text = "waves in order", .schedule = WAVEJIT_SIMGPU_IN_ORDER}}};
  return all[static_cast<std::size_t>(number % all.size())];
}

int drawn_runs(tools::Draws& draws) { return 2 + static_cast<int>(draws.below(15)); }

std::string text_of_runs(int runs) { return runs == 0 ? "splits=auto" : fmt::format("splits={}", runs); }

RowOutputs::RowOutputs(tools::CallMemory& memory, const AnswerShape& shape, std::int64_t rows)
    : shape_(shape),
      rows_(rows),
      o_(memory.out(numbers() * static_cast<std::size_t>(shape.dim) * sizeof(std::uint16_t))),
      lse_(memory.out(numbers() * sizeof(float))) {}

tools::Result<std::optional<std::vector<RowAnswer>>> RowOutputs::read(wavejit_engine* engine, tools::CallMemory& memory,
                                                                      std::span<const std::int32_t> starts) const {
  memory.keep(tools::checked(wavejit_device_synchronize(engine)));
  const auto o = memory.back<std::uint16_t>(o_, numbers() * static_cast<std::size_t>(shape_.dim));
  const auto lse = memory.back<std::uint32_t>(lse_, numbers());
  if (!memory.good()) return std::unexpected(memory.good().error());
  return by_piece(shape_, starts, o, lse);
}

tools::Result<std::optional<std::vector<RowAnswer>>> RowOutputs::read(wavejit_engine* engine,
                                                                      tools::CallMemory& memory) const {
  std::vector<std::int32_t> starts(static_cast<std::size_t>(rows_ + 1));
  std::ranges::iota(starts, 0);
  return read(engine, memory, starts);
}

std::vector<RowAnswer> by_piece(const AnswerShape& shape, std::span<const std::int32_t> starts,
                                const std::vector<std::uint16_t>& o, const std::vector<std::uint32_t>& lse) {
  std::vector<RowAnswer> answers;
  const std::int64_t rows = starts.back();
  const std::int64_t row_elements = shape.heads * shape.dim;
  for (std::size_t piece = 0; piece + 1 < starts.size(); ++piece) {
    const std::int64_t begin = starts[piece];
    const std::int64_t end = starts[piece + 1];
    RowAnswer answer;
    answer.o.assign(o.begin() + begin * row_elements, o.begin() + end * row_elements);
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t head = 0; head < shape.heads; ++head)
        answer.lse.push_back(lse[static_cast<std::size_t>((head * rows) + row)]);
    answers.push_back(std::move(answer));
  }
  return answers;
}

RowAnswer joined(std::span<const RowsOf> pieces, std::span<const RowAnswer> answers, std::size_t sequence) {
  RowAnswer whole;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].sequence != sequence) continue;
    whole.o.insert(whole.o.end(), answers[i].o.begin(), answers[i].o.end());
    whole.lse.insert(whole.lse.end(), answers[i].lse.begin(), answers[i].lse.end());
  }
  return whole;
}

RowAnswer cut(const AnswerShape& shape, RowAnswer answer, std::int64_t rows) {
  const auto numbers = static_cast<std::size_t>(rows * shape.heads);
  answer.o.resize(answer.o.size() - (numbers * static_cast<std::size_t>(shape.dim)));
  answer.lse.resize(answer.lse.size() - numbers);
  return answer;
}

std::optional<FirstDifference> first_difference(const AnswerShape& shape, const RowAnswer& before,
                                                const RowAnswer& after) {
  const auto place = [&](std::size_t row_and_head) {
    const auto at = static_cast<std::int64_t>(row_and_head);
    return FirstDifference{.tensor = "O", .token = at / shape.heads, .head = at % shape.heads};
  };
  const auto [o, other_o] = std::ranges::mismatch(before.o, after.o);
  if (o != before.o.end() || other_o != after.o.end()) {
    const auto at = static_cast<std::size_t>(o - before.o.begin());
    const auto dim = static_cast<std::size_t>(shape.dim);
    FirstDifference first = place(at / dim);
    first.dim = static_cast<std::int64_t>(at % dim);
    if (o != before.o.end()) first.before = static_cast<double>(tools::decode(shape.type, *o));
    if (other_o != after.o.end()) first.after = static_cast<double>(tools::decode(shape.type, *other_o));
    return first;
  }
  const auto [lse, other_lse] = std::ranges::mismatch(before.lse, after.lse);
  if (lse == before.lse.end() && other_lse == after.lse.end()) return std::nullopt;
  FirstDifference first = place(static_cast<std::size_t>(lse - before.lse.begin()));
  first.tensor = "LSE";
  if (lse != before.lse.end()) first.before = static_cast<double>(std::bit_cast<float>(*lse));
  if (other_lse != after.lse.end()) first.after = static_cast<double>(std::bit_cast<float>(*other_lse));
  return first;
}

std::vector<std::uint16_t> drawn_halves(tools::HalfType type, tools::Draws& draws, std::int64_t count) {
  static constexpr std::array<std::uint16_t, 8> exponents = {0, 1, 2, 3, 4, 1, 2, 3};
  const bool fp16 = type == tools::HalfType::fp16;
  const unsigned mantissa_bits = fp16 ? 10 : 7;
  const unsigned least_exponent = fp16 ? 12 : 124;
  const auto element = [&](unsigned bits) {
    const unsigned exponent = least_exponent + exponents[(bits >> 12U) & 7U];
    return static_cast<std::uint16_t>((bits & 0x8000U) | (exponent << mantissa_bits) |
                                      (bits & ((1U << mantissa_bits) - 1)));
  };
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    bits = i % 4 == 0 ? draws.next() : bits >> 16U;
    values[i] = element(static_cast<unsigned>(bits & 0xFFFFU));
  }
  return values;
}

std::vector<float> drawn_numbers(tools::Draws& draws, std::int64_t count, float scale) {
  std::vector<float> values = tools::seeded_values(draws.next(), static_cast<std::size_t>(count));
  for (float& value : values) value *= scale;
  return values;
}

const char* to_text(Garbage garbage) {
  return garbage == Garbage::nan ? "NaN" : garbage == Garbage::infinity ? "infinity" : "-infinity";
}

std::uint16_t bits_of(Garbage garbage, tools::HalfType type) {
  if (garbage == Garbage::nan) return 0x7FFF;
  const unsigned infinity = type == tools::HalfType::bf16 ? 0x7F80 : 0x7C00;
  return static_cast<std::uint16_t>(garbage == Garbage::infinity ? infinity : infinity | 0x8000U);
}

}  // namespace wavejit::attention::program
