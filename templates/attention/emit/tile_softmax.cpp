// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tile_softmax.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"

namespace wavejit::attention {
namespace {

using language::Accumulator;
using language::SoftmaxState;
using language::Strand;
using language::Value;
using language::Values;

// An exponential is used only after this many later operations, because its result is not forwarded at once.
constexpr int lag = 2;

}  // namespace

Strand TileSoftmax::begin(std::span<const Accumulator> scores, SoftmaxState& state, TileWeights& weights,
                          Growth& growth, const Scaled& scaled) const {
  struct Progress {
    Values scores;  // scaled
    Value* maximum = nullptr;
    std::pair<Value*, Value*> halves;
    language::Softmax::PowerSteps power;
    Value* shift = nullptr;
  };
  auto progress = std::make_shared<Progress>();
  const int registers = this->registers();
  weights.values.assign(2 * static_cast<std::size_t>(registers), nullptr);

  Strand strand;
  llvm::IRBuilder<>& ir = kernel_.ir();
  const std::vector<Accumulator> parts(scores.begin(), scores.end());
  const auto raw = [&ir, parts, registers](int index) {
    return ir.CreateExtractElement(parts[static_cast<std::size_t>(index / registers)].value, index % registers);
  };
  const auto score = [progress, raw](int index) {
    return progress->scores.empty() ? raw(index) : progress->scores[static_cast<std::size_t>(index)];
  };
  // The next ones, before a maximum takes them.
  if (scaled) progress->scores.resize(2 * static_cast<std::size_t>(registers));
  int scaled_scores = 0;
  const auto scale_up_to = [&](int end) {
    for (; scaled && scaled_scores < std::min(end, 2 * registers); ++scaled_scores)
      strand.add([=, index = scaled_scores] {
        progress->scores[static_cast<std::size_t>(index)] = scaled(index / registers, index % registers, raw(index));
      });
  };
  // max3 takes two more scores each time; the last one twice.
  int first = 3;
  if (softmax_.least() != nullptr) first = 2;
  scale_up_to(first);
  if (Value* least = softmax_.least()) {
    strand.add([=, this] { progress->maximum = softmax_.larger(least, score(0), score(1)); });
  } else {
    strand.add([=, this] { progress->maximum = softmax_.larger(score(0), score(1), score(2)); }, slots_.first_maximum);
  }
  for (int index = first; index < 2 * registers; index += 2) {
    scale_up_to(index + 2);
    strand.add([=, this] {
      progress->maximum =
          softmax_.larger(progress->maximum, score(index), score(std::min(index + 1, 2 * registers - 1)));
    });
  }
  strand.add([=, this] { progress->halves = language::both_halves(kernel_, progress->maximum); }, slots_.swap);
  strand.add([] {}, slots_.exchange);
  if (state.scale == nullptr) {
    strand.add([=, this, &state, &growth] {
      growth.before = state.maximum;
      growth.raised = softmax_.larger(progress->halves.first, progress->halves.second, state.maximum);
    });
    strand.add([this, &state, &growth] { growth.grows = softmax_.grows(state.maximum, growth.raised); }, slots_.grows);
    strand.add([&ir, &state, &growth] { state.maximum = ir.CreateSelect(growth.grows, growth.raised, state.maximum); },
               slots_.choose);
    strand.add([=, this, &state] { progress->shift = softmax_.shift(state.maximum); }, slots_.shift);
  } else {
    strand.add([=, this] { softmax_.multiply(progress->power, progress->halves.first, progress->halves.second); }, 2);
    strand.add([=, this] { softmax_.add_margin(progress->power); });
    strand.add([=, this] { softmax_.round_up(progress->power); });
    strand.add([=, this, &state, &growth] {
      growth.before = state.maximum;
      state.maximum = softmax_.power(progress->power, state.maximum);
    });
    strand.add([=, this, &state] { progress->shift = softmax_.shift(state.maximum); });
  }
  // All exponents; the first of them become weights.
  for (int index = 0; index < 2 * registers + lag; ++index) {
    if (index < 2 * registers) {
      strand.add([=, this, &weights] {
        weights.values[static_cast<std::size_t>(index)] = softmax_.exponent(score(index), progress->shift);
      });
    }
    if (const int ready = index - lag; ready >= 0 && ready < weighed_) {
      strand.add(
          [=, this, &weights] {
            Value*& weight = weights.values[static_cast<std::size_t>(ready)];
            weight = softmax_.exp2(weight);
          },
          slots_.exp2);
    }
  }
  return strand;
}

void TileSoftmax::rescale(const Growth& growth, SoftmaxState& state, std::span<Accumulator> outputs,
                          const std::function<Value*()>& begins_chunk) const {
  if (state.scale != nullptr) {
    state = softmax_.scaled(state, growth.before, outputs);
    return;
  }
  Values values(state.sums.begin(), state.sums.end());
  for (const Accumulator& output : outputs) values.push_back(output.value);
  const auto onto_new_maximum = [&](const Values& before) {
    Value* factor = softmax_.rescale_factor(growth.before, growth.raised, growth.grows);
    Values after;
    for (Value* value : before) after.push_back(softmax_.rescaled(value, factor));
    return after;
  };
  // Two branches, and the second behind the first: a tile on which no row grows pays for one.
  values = language::if_uniform(kernel_, language::any_lane(kernel_, growth.grows), language::Likelihood::rarely,
                                values, [&](const Values& before) {
                                  return language::if_uniform(kernel_, kernel_.ir().CreateNot(begins_chunk()),
                                                              language::Likelihood::even, before, onto_new_maximum);
                                });
  std::copy_n(values.begin(), state.sums.size(), state.sums.begin());
  for (std::size_t index = 0; index < outputs.size(); ++index) outputs[index].value = values[index + state.sums.size()];
}

Strand TileSoftmax::finish(TileWeights& weights, SoftmaxState& state, std::vector<language::OperandB>& packed,
                           const Scaled& scaled) const {
  struct Progress {
    Values sums;    // of weights: terms of the tree behind its first level
    Values dwords;  // two weights each, in key order
  };
  const int registers = this->registers();
  auto progress = std::make_shared<Progress>();
  progress->sums.resize(static_cast<std::size_t>(registers));
  progress->dwords.resize(static_cast<std::size_t>(registers));
  llvm::IRBuilder<>& ir = kernel_.ir();
  Strand strand;

  const auto weight = [&weights, registers](int part, int r) -> Value*& {
    const int at = (part * registers) + r;
    return weights.values[static_cast<std::size_t>(at)];
  };
  const std::vector<std::vector<language::Addition>> tree = language::sum_tree(registers);
  const auto add_sum = [=, &ir, &weights](Strand& to, std::size_t level, int index) {
    const language::Addition addition = tree[level][static_cast<std::size_t>(index)];
    const auto into = static_cast<std::size_t>(addition.into);
    const auto other = static_cast<std::size_t>(addition.other);
    to.add([=, &ir, &weights] {
      const Values& terms = level == 0 ? weights.values : progress->sums;
      progress->sums[into] = ir.CreateFAdd(terms[into], terms[other]);
    });
  };
  const auto add_pack = [=, this, &ir](Strand& to, int part, int r) {
    const auto pack = [=, this, &ir] {
      Value* pair = llvm::PoisonValue::get(kernel_.vector(kernel_.f32(), 2));
      const auto rounded = [&](int at) { return scaled ? scaled(part, at, weight(part, at)) : weight(part, at); };
      pair = ir.CreateInsertElement(pair, rounded(r), std::uint64_t{0});
      pair = ir.CreateInsertElement(pair, rounded(r + 1), std::uint64_t{1});
      progress->dwords[static_cast<std::size_t>((part * registers + r) / 2)] =
          language::convert_pair(kernel_, pair, matrix_.element(), language::NanInput::irrelevant);
    };
    to.add(pack, slots_.convert + (scaled ? 2 : 0));
  };

  for (int r = 0; r < registers + lag; ++r) {
    for (int part = 0; part < 2 && r < registers; ++part) {
      if (part * registers + r < weighed_) continue;
      strand.add([=, this] { weight(part, r) = softmax_.exp2(weight(part, r)); }, slots_.exp2);
    }
    const int ready = r - lag;
    if (ready < 0) continue;
    add_sum(strand, 0, ready);
    if (ready % 2 == 1) {
      add_pack(strand, 0, ready - 1);
      add_pack(strand, 1, ready - 1);
    }
    // After the first level of the tree: two neighbouring pairs of a running sum, then one pair, then the running sum
    // itself.
    const int j = ready / 4;
    if (ready % 4 >= 2) add_sum(strand, 1, (2 * j) + (ready % 4) - 2);
    if (ready % 4 == 3) {
      add_sum(strand, 2, j);
      strand.add([=, this, &state] {
        Value*& running = state.sums[static_cast<std::size_t>(j)];
        running = softmax_.accumulated(running, progress->sums[4 * static_cast<std::size_t>(j)]);
      });
    }
  }
  strand.add([=, this, &packed] {
    packed.clear();
    constexpr std::size_t dwords = language::OperandLayout::dwords;
    for (std::size_t at = 0; at < progress->dwords.size(); at += dwords) {
      packed.push_back(
          matrix_.operand_b(language::gather_dwords(kernel_, std::span(progress->dwords).subspan(at, dwords)),
                            language::KOrder::accumulator_rows));
    }
  });
  return strand;
}

Strand TileSoftmax::finish(TileWeights& weights, const language::ByteMatrix& bytes,
                           language::ByteOperand& packed) const {
  constexpr int in_dword = 4;
  const int all = 2 * registers();
  auto dwords =
      std::make_shared<Values>(static_cast<std::size_t>(all / in_dword), llvm::PoisonValue::get(kernel_.i32()));
  const auto weight = [&weights](int index) -> Value*& { return weights.values[static_cast<std::size_t>(index)]; };
  Strand strand;
  for (int index = 0; index < all + lag; ++index) {
    if (index >= weighed_ && index < all)
      strand.add([=, this] { weight(index) = softmax_.exp2(weight(index)); }, slots_.exp2);
    const int ready = index - lag;
    if (ready < 0 || ready % 2 == 0) continue;
    strand.add(
        [=, &bytes] {
          Value*& dword = (*dwords)[static_cast<std::size_t>(ready / in_dword)];
          dword = bytes.rounded(weight(ready - 1), weight(ready), dword, ready % in_dword / 2);
        },
        slots_.convert);
  }
  strand.add(
      [=, this, &packed] {
        packed = {.value = language::gather_dwords(kernel_, *dwords), .k_order = language::KOrder::accumulator_rows};
      },
      0);
  return strand;
}

}  // namespace wavejit::attention
