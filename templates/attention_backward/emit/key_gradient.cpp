// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/key_gradient.h"

#include <utility>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention_backward/emit/key_tensors.h"
#include "templates/attention_backward/emit/key_tile.h"
#include "templates/attention_backward/emit/run_parts.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward {
namespace {

using language::Accumulator;
using language::Kernel;
using language::OperandA;
using language::Strand;
using language::Value;
using language::Values;

// The walks over the tiles.
class KeyGradient : private KeyTile {
 public:
  KeyGradient(Kernel& kernel, const KeyKernel& spec)
      : KeyTile(kernel, spec), tensors_(kernel, spec, places_, matrix_) {}

  void emit() {
    if (!spec_.shared) {
      if (several_runs() && spec_.gradients_fp32) put_before();
      for (std::size_t walk = 0; walk < streams_.size(); ++walk) emit_walk(walk);
      return;
    }
    // Neighbouring waves share keys. Both pass the same barriers.
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* role = ir.CreateURem(kernel_.wave(), kernel_.constant(sharing_waves));
    for (std::size_t walk = 0; walk < streams_.size(); ++walk)
      language::if_uniform(kernel_, ir.CreateICmpEQ(role, kernel_.constant(static_cast<int>(walk))),
                           language::Likelihood::even, [&] {
                             begin_walk(walk);
                             if (several_runs() && spec_.gradients_fp32) put_before();
                             emit_walk(walk);
                           });
  }

 private:
  using Accumulators = std::vector<Accumulator>;

  void emit_walk(std::size_t walk) {
    begin_walk(walk);
    const bool has_keys = walk > 0 && !spec_.shared;
    // Where registers are few, V comes when dP is asked for.
    const bool loads_late = !has_registers_of_accumulation(kernel_.target());
    const bool is_late = has_keys && loads_late;
    const bool takes_keys = !is_taker() && !is_late;
    const bool takes_values = !is_giver() && (!loads_late || makes_keys(makes_));
    const Step first = {.tile = place_.first_tile, .head = kernel_.constant(0), .part = kernel_.constant(0)};
    if (several_runs()) {
      if (!has_keys || is_late) load_keys(takes_keys, takes_values);
      walk_runs(first);
    } else {
      // Nobody reads what the walk before left.
      if (has_keys) all_have_read();
      const Values started = stream_->fetch(0, first);
      if (!has_keys || is_late) load_keys(takes_keys, takes_values);
      this->walk(first, started, place_.tiles);
    }
    if (makes_values(makes_)) store(0, kernel_.constant(1.0F));
    if (makes_keys(makes_)) store(1, kernel_.argument_f32(offsetof(Arguments, dk_factor)));
  }

  bool several_runs() const { return spec_.runs == Runs::several; }
  llvm::IRBuilder<>& ir() { return kernel_.ir(); }

  static void add(Values& values, const Accumulators& sums) {
    for (const Accumulator& sum : sums) values.push_back(sum.value);
  }
  Accumulators from(const Values& values, std::size_t first, std::size_t count) const {
    Accumulators sums;
    for (std::size_t i = first; i < first + count; ++i) sums.push_back({values[i], matrix_.accumulator_layout()});
    return sums;
  }
  // From `first`, which is on its way into buffer 0, to the row tile `end`: sums_ are theirs. The first fragments of a
  // tile come from the tile before, and what is on its way in registers.
  void walk(const Step& first, const Values& started, Value* end) {
    if (sums_trail()) {
      walk_trailing(first, started, end);
      return;
    }
    const Accumulators zeros(sums_of_walk(), matrix_.zeros());
    Values initial = {first.tile, first.head, first.part};
    add(initial, zeros);
    add(initial, begin_reading(first, started));
    add(initial, started);
    if (is_taker()) receive_second(first, end);
    const std::size_t sums_at = 3;
    const std::size_t ahead_at = sums_at + zeros.size();
    const std::size_t arrived_at = ahead_at + static_cast<std::size_t>(ladder_.read_ahead);
    const Values last = language::loop_in_phases(
        kernel_, stream_->buffers(), initial,
        [&](int buffer, const Values& state) {
          const auto from_state = [&](std::size_t at) { return state.begin() + static_cast<std::ptrdiff_t>(at); };
          const Step step = {
              .tile = kernel_.uniform(state[0]), .head = kernel_.uniform(state[1]), .part = kernel_.uniform(state[2])};
          const Step next = stream_->behind(step);
          at_ = {.buffer = buffer, .step = step, .next = next, .arrived = {from_state(arrived_at), state.end()}};
          if (is_taker()) at_.next = stream_->behind(next);
          at_.next.tile = last_before(at_.next.tile, end);
          sums_ = from(state, sums_at, zeros.size());
          const Fragments ahead = attend({from_state(ahead_at), from_state(arrived_at)});
          Values after = {next.tile, next.head, next.part};
          add(after, sums_);
          add(after, ahead);
          add(after, at_.in_flight);
          return after;
        },
        [&](const Values& state) { return ir().CreateICmpSLT(state[0], end); });
    sums_ = from(last, sums_at, zeros.size());
    if (sums_apart()) matrix_.settle(sums_);
    if (is_giver()) language::barrier(kernel_);  // behind which its last weights are taken
  }
  // Waves that share keys and have one buffer: products of columns are those of the tile before. In front of the first
  // stand zeros, whose products are zeros.
  //
  // Registers bring a tile's rows into LDS when the one before ends. Its columns have two images: they are written
  // while those of the tile before are read. Memory is asked two tiles ahead. Four tiles are walked in a row, so
  // registers and images take turns; which part of a row tile each has is known, and the numbers of rows come for all
  // parts at once. Behind the last tile, which needs one more for its sums, come such whose rows weigh nothing.
  void walk_trailing(const Step& first, const Values& started, Value* end) {
    end_ = end;
    const Accumulators zeros(sums_of_walk(), matrix_.zeros());
    const Accumulators nothing(static_cast<std::size_t>(row_blocks()), matrix_.zeros());
    const std::size_t numbers = stream_->numbers();
    const std::size_t matrices = started.size() - numbers;
    const Step at_second = stream_->behind(first);
    const Values second = stream_->fetch(0, clamped(at_second, end));
    const auto some = [](const Values& values, std::size_t from, std::size_t count) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(from);
      return Values(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    Values initial = {first.tile, first.head, at_second.tile, at_second.head, first.tile};
    const std::size_t sums_at = initial.size();
    add(initial, zeros);
    begin_with_nothing(some(started, numbers, matrices));
    add(initial, begin_reading(first, started));
    add(initial, nothing);
    Strand first_deltas;
    if (is_taker()) add_next_deltas(first_deltas, 0);
    first_deltas.write_rest();
    if (is_taker()) initial.push_back(at_.next_deltas);
    add(initial, some(second, 0, numbers));
    add(initial, some(started, numbers, matrices));
    add(initial, some(second, numbers, matrices));
    // A tile of the state, which becomes the next one's.
    const auto walk_tile = [&](int phase, const Values& state) {
      std::size_t at = sums_at;
      const auto take = [&](std::size_t count) { return some(state, std::exchange(at, at + count), count); };
      const auto step_of = [&](std::size_t i, int ahead) {
        return Step{.tile = kernel_.uniform(state[i]),
                    .head = kernel_.uniform(state[i + 1]),
                    .part = kernel_.constant((phase + ahead) % parts_of_tile())};
      };
      const Step step = step_of(0, 0);
      const Step next = step_of(2, 1);
      const Step fetched = stream_->behind(next);
      at_ = {.step = clamped(step, end), .next = next};
      at_.fetched = clamped(fetched, end);
      at_.phase = phase;
      sums_ = from(take(zeros.size()), 0, zeros.size());
      const Values fragments = take(static_cast<std::size_t>(ladder_.read_ahead));
      take_up(from(take(nothing.size()), 0, nothing.size()));
      if (is_taker()) at_.deltas = take(1).front();
      at_.numbers = take(numbers);
      at_.arrived = take(matrices);
      at_.received = take(matrices);
      stream_->read_columns_from((phase + 1) % 2);
      const Fragments ahead = attend(fragments);
      Values after = {next.tile, next.head, fetched.tile, fetched.head, step.tile};
      add(after, sums_);
      add(after, ahead);
      for (const std::vector<Block>& blocks : blocks_)
        after.push_back((is_giver() ? blocks.front().scores : blocks.front().gradients).value);
      if (is_taker()) after.push_back(at_.next_deltas);
      add(after, at_.numbers_in_flight.empty() ? at_.numbers : at_.numbers_in_flight);
      add(after, at_.received);
      add(after, at_.in_flight);
      return after;
    };
    const Values last = language::loop_in_phases(
        kernel_, 1, initial,
        [&](int, Values state) {
          for (int phase = 0; phase < trailing_phases; ++phase) state = walk_tile(phase, state);
          return state;
        },
        [&](const Values& state) { return ir().CreateICmpSLT(state[sums_at - 1], end); });
    sums_ = from(last, sums_at, zeros.size());
  }
  static constexpr int trailing_phases = 4;
  Step clamped(Step step, Value* end) {
    step.tile = last_before(step.tile, end);
    return step;
  }
  // What a tile left: weights, or dP − delta.
  void take_up(const Accumulators& left) {
    before_.assign(static_cast<std::size_t>(row_blocks()), std::vector<Block>(places_.size()));
    for (std::size_t block = 0; block < left.size(); ++block)
      (is_giver() ? before_[block].front().scores : before_[block].front().gradients) = left[block];
  }
  // In front of the first tile: no weights, and columns of zeros.
  void begin_with_nothing(Values matrices) {
    const Accumulator zeros = matrix_.zeros();
    for (Value*& value : matrices) value = llvm::Constant::getNullValue(value->getType());
    Strand strand;
    for (int block = 0; is_giver() && block < row_blocks(); ++block) shared_->add_give(strand, zeros, 0, block);
    stream_->add_columns_of_matrices(strand, matrices, 0, 1);
    strand.write_rest();
  }
  // After the last tile the last one is fetched again. It is not read, and no branch is needed.
  Value* last_before(Value* tile, Value* end) {
    return attention::minimum(kernel_, tile, ir().CreateSub(end, kernel_.constant(1)));
  }
  // The tile behind the first, while the wave that gives is at the first.
  void receive_second(const Step& first, Value* end) {
    Step second = stream_->behind(first);
    second.tile = last_before(second.tile, end);
    const Values started = stream_->fetch(1, second);
    Strand rows;
    stream_->add_rows(rows, 1, second, started);
    rows.write_rest();
    stream_->turn();
  }

  static void add(Values& values, const Fragments& fragments) {
    for (const OperandA& fragment : fragments) values.push_back(fragment.value);
  }
  static void add(Values& values, const Values& more) { values.insert(values.end(), more.begin(), more.end()); }

  // Nobody reads the run before any more.
  void all_have_read() {
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);
  }

  void walk_runs(const Step& first) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* length = kernel_.argument_i32(offsetof(Arguments, run_tiles));
    language::loop_in_phases(
        kernel_, 1, {first.tile},
        [&](int, const Values& state) {
          Step step = first;
          step.tile = kernel_.uniform(state[0]);
          Value* next = ir.CreateMul(ir.CreateAdd(ir.CreateUDiv(step.tile, length), kernel_.constant(1)), length);
          Value* end = attention::minimum(kernel_, next, place_.tiles);
          all_have_read();
          walk(step, stream_->fetch(0, step), end);
          Value* are_before = ir.CreateICmpSGT(step.tile, place_.first_tile);
          if (spec_.gradients_fp32) are_before = ir.CreateOr(are_before, tensors_.are_before());
          RunParts(kernel_, spec_, place_).add(sums_, first_of_walk(), are_before);
          return Values{end};
        },
        [&](const Values& state) { return ir.CreateICmpSLT(state[0], place_.tiles); });
  }

  // ---- Keys

  void load_keys(bool takes_keys, bool takes_values) {
    if (takes_keys || is_taker()) keys_.clear();
    values_.clear();
    for (const KeyPlace& place : places_) {
      KeyTensors::Operands operands = tensors_.load(place, takes_keys, takes_values);
      if (takes_keys || is_taker()) keys_.push_back(std::move(operands.keys));
      values_.push_back(std::move(operands.values));
    }
  }
  bool makes(int gradient) const { return gradient == 0 ? makes_values(makes_) : makes_keys(makes_); }
  void put_before() {
    language::if_uniform(kernel_, tensors_.are_before(), language::Likelihood::rarely, [&] {
      for (int gradient = 0; gradient < 2; ++gradient)
        if (makes(gradient)) tensors_.put_before(gradient, first_of(gradient));
    });
  }
  void store(int gradient, Value* factor) {
    const std::size_t first = first_of(gradient) - first_of_walk();
    const std::size_t count = static_cast<std::size_t>(spec_.blocks) * static_cast<std::size_t>(dim_blocks(gradient));
    tensors_.store(gradient, std::span(sums_).subspan(first, count), first_of(gradient), factor);
  }

  KeyTensors tensors_;
};

}  // namespace

void emit_key_gradient(Kernel& kernel, const KeyKernel& spec) { KeyGradient(kernel, spec).emit(); }

}  // namespace wavejit::attention_backward
