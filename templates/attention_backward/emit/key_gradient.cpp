// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/key_gradient.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/query.h"
#include "templates/attention_backward/emit/key_place.h"
#include "templates/attention_backward/emit/row_modifiers.h"
#include "templates/attention_backward/emit/row_store.h"
#include "templates/attention_backward/emit/row_stream.h"
#include "templates/attention_backward/emit/run_parts.h"
#include "templates/attention_backward/emit/schedule.h"
#include "templates/attention_backward/emit/score_gradient.h"
#include "templates/attention_backward/emit/shared_weights.h"
#include "templates/attention_backward/emit/weave.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/canon.h"
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {
namespace {

using attention::Slice;
using language::Accumulator;
using language::Element;
using language::Kernel;
using language::OperandA;
using language::OperandB;
using language::Strand;
using language::Value;
using language::Values;

class KeyGradient : private Weaver {
 public:
  KeyGradient(Kernel& kernel, const KeyKernel& spec)
      : kernel_(kernel),
        spec_(spec),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        place_(find_key_place(kernel, spec)),
        cap_rate_(cap_rate(kernel, spec)),
        plans_(plans_of(kernel, spec)),
        lds_(lds_of(kernel, spec, plans_)),
        ladder_(ladder_of(spec, kernel.target())),
        score_gradient_(kernel, matrix_, spec, spec.modifiers.any() ? kernel.constant(1.0F) : place_.scale_log2e) {
    for (int block = 0; block < spec.blocks; ++block) places_.push_back(place_of_block(kernel, place_, block));
    for (const RowStreamPlan& plan : plans_) streams_.emplace_back(kernel, spec, matrix_, place_, lds_, plan);
    if (spec.shared)
      shared_.emplace(kernel, lds_, plans_.front().rows / wave_.rows, plans_.front().total_bytes(),
                      plans_.front().regions());
    modifiers_.reserve(places_.size());
    for (const KeyPlace& place : places_) modifiers_.emplace_back(kernel, spec, place, cap_rate_);
  }

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
  using Accumulators = std::vector<Accumulator>;  // dVᵀ, then dKᵀ: of each block of keys, a block of dims each

  // Of the sums: one walk makes both, or each has a walk, or a wave.
  static std::span<const Sums> walks_of_all(const KeyKernel& spec, const targets::Target& target) {
    static constexpr std::array shared = {Sums::values, Sums::keys};
    return spec.shared ? shared : walks_of(spec, target);
  }
  void begin_walk(std::size_t walk) {
    makes_ = walks_of_all(spec_, kernel_.target())[walk];
    stream_ = &streams_[walk];
  }
  void emit_walk(std::size_t walk) {
    begin_walk(walk);
    const bool has_keys = walk > 0 && !spec_.shared;
    const Step first = {.tile = place_.first_tile, .head = kernel_.constant(0), .part = kernel_.constant(0)};
    if (several_runs()) {
      if (!has_keys) load_keys();
      walk_runs(first);
    } else {
      // Nobody reads what the walk before left.
      if (has_keys) all_have_read();
      const Values started = stream_->fetch(0, first);
      if (!has_keys) load_keys();
      this->walk(first, started, place_.tiles);
    }
    if (makes_values(makes_)) store(0, kernel_.constant(1.0F));
    if (makes_keys(makes_)) store(1, kernel_.argument_f32(offsetof(Arguments, dk_factor)));
  }

  static std::vector<RowStreamPlan> plans_of(const Kernel& kernel, const KeyKernel& spec) {
    std::vector<RowStreamPlan> plans;
    for (const Sums sums : walks_of_all(spec, kernel.target()))
      plans.push_back(plan_row_stream(kernel.target(), spec, sums));
    return plans;
  }
  // One object for all walks: the largest's.
  static language::Lds lds_of(Kernel& kernel, const KeyKernel& spec, const std::vector<RowStreamPlan>& plans) {
    int bytes = 0;
    for (const RowStreamPlan& plan : plans) bytes = std::max(bytes, plan.total_bytes());
    int regions = plans.front().regions();
    if (spec.shared) {
      const int buffers = plans.front().q.buffers();
      bytes += SharedWeights::bytes(kernel, plans.front().rows / language::wave_shape(kernel).rows, buffers);
      regions += buffers;
    }
    return {kernel, bytes, regions};
  }

  int dims_of(int gradient) const { return gradient == 0 ? spec_.head_dim_v : spec_.head_dim_qk; }
  int dim_blocks(int gradient) const { return dims_of(gradient) / wave_.rows; }
  // Of all sums of the kernel, and of those of the walk at hand, the number of a gradient's first.
  std::size_t first_of(int gradient) const {
    // A wave that shares keys has one of them.
    return gradient == 0 || spec_.shared
               ? 0
               : static_cast<std::size_t>(spec_.blocks) * static_cast<std::size_t>(dim_blocks(0));
  }
  std::size_t first_of_walk() const { return first_of(makes_values(makes_) ? 0 : 1); }
  std::size_t sums_of_walk() const {
    const int both = (makes_values(makes_) ? dim_blocks(0) : 0) + (makes_keys(makes_) ? dim_blocks(1) : 0);
    return static_cast<std::size_t>(spec_.blocks) * static_cast<std::size_t>(both);
  }
  int fragments_of_block() const { return wave_.rows / wave_.fragment_k(); }
  int row_blocks() const { return stream_->rows() / wave_.rows; }
  // Sums of two blocks and 128 dims, or of one and 256, are 256 registers.
  bool sums_apart() const {
    return spec_.blocks == 2 || (plans_.size() == 1 && held_registers(spec_) > vector_registers);
  }
  bool several_runs() const { return spec_.runs == Runs::several; }

  static void add(Values& values, const Accumulators& sums) {
    for (const Accumulator& sum : sums) values.push_back(sum.value);
  }
  Accumulators from(const Values& values, std::size_t first, std::size_t count) const {
    Accumulators sums;
    for (std::size_t i = first; i < first + count; ++i) sums.push_back({values[i], matrix_.accumulator_layout()});
    return sums;
  }
  // Of dV (0) or dK (1).
  std::span<Accumulator> sums_of(int gradient, int block) {
    const auto dims = static_cast<std::size_t>(dim_blocks(gradient));
    const std::size_t first = first_of(gradient) - first_of_walk();
    return std::span(sums_).subspan(first + (static_cast<std::size_t>(block) * dims), dims);
  }

  // ---- The walk

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
  int parts_of_tile() const { return tile_rows / stream_->rows(); }
  // Whether numbers of the row tile to which the step so many ahead belongs are due: with its first part.
  bool are_numbers_due(int ahead) const { return (at_.phase + ahead) % parts_of_tile() == 0; }
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
  // Behind the last tile comes that one again: nobody reads it, and no branch is needed.
  Value* last_before(Value* tile, Value* end) {
    return attention::minimum(kernel_, tile, ir().CreateSub(end, kernel_.constant(1)));
  }
  bool is_giver() const { return spec_.shared && makes_values(makes_); }
  bool is_taker() const { return spec_.shared && makes_keys(makes_); }
  bool sums_trail() const { return spec_.shared && stream_->buffers() == 1; }
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

  llvm::IRBuilder<>& ir() { return kernel_.ir(); }
  int next_buffer() const { return (at_.buffer + 1) % stream_->buffers(); }
  int fetched_buffer() const { return (at_.buffer + (is_taker() ? taker_lead : giver_lead)) % stream_->buffers(); }
  const schedule::Schedule& table() const {
    const auto order = stream_->buffers() > 1 ? schedule::Order::hiding : schedule::Order::rows_first;
    if (spec_.shared) return schedule::shared_schedule(order, makes_);
    return schedule::key_schedule(row_blocks(), order, makes_);
  }

  Fragments begin_reading(const Step& first, const Values& started) {
    Strand rows;
    stream_->add_rows(rows, 0, first, started);
    rows.write_rest();
    stream_->turn();
    return read_first(*this, table(), ladder_, 0);
  }

  // A tile, with its first fragments; returns the next one's.
  Fragments attend(const Values& before) {
    blocks_.assign(static_cast<std::size_t>(row_blocks()), std::vector<Block>(places_.size()));
    shifts_.assign(static_cast<std::size_t>(row_blocks()), {});
    Fragments ahead;
    for (Value* value : before) ahead.push_back(matrix_.operand_a(value, language::KOrder::contiguous));
    return weave(*this, table(), ladder_, {.own = at_.buffer, .next = next_buffer()}, ahead);
  }

  Strand fetch() override {
    Strand strand;
    if (sums_trail()) {
      if (are_numbers_due(2)) stream_->add_fetch_of_numbers(strand, at_.fetched, at_.numbers_in_flight);
      stream_->add_fetch_of_matrices(strand, 0, at_.fetched, at_.in_flight);
    } else {
      stream_->add_fetch(strand, fetched_buffer(), at_.next, at_.in_flight);
    }
    return strand;
  }
  Strand receive() override {
    Strand strand;
    if (sums_trail()) {
      if (is_taker()) add_trailing_columns(strand);
      stream_->add_rows_of_matrices(strand, at_.received, 0);
      if (are_numbers_due(1)) stream_->add_numbers(strand, 0, at_.next, at_.numbers, end_);
      if (is_taker()) add_next_deltas(strand, at_.phase + 1);
    } else {
      stream_->add_rows(strand, fetched_buffer(), at_.next, at_.in_flight);
    }
    return strand;
  }
  Strand receive_columns() override {
    Strand strand;
    if (!sums_trail())
      stream_->add_columns(strand, at_.arrived);
    else if (is_giver())
      add_trailing_columns(strand);
    return strand;
  }
  // The wave that weighs has time for them while rows are read, the other one while columns are.
  void add_trailing_columns(Strand& strand) { stream_->add_columns_of_matrices(strand, at_.arrived, 0, at_.phase % 2); }
  // −delta of the step in `phase`, which products of gradients start from. The numbers are the wave's own: they are
  // read in front of the barrier.
  void add_next_deltas(Strand& strand, int phase) {
    at_.next_deltas = matrix_.zeros().value;
    const int block = phase % parts_of_tile() * row_blocks();
    for (int r = 0; r < matrix_.accumulator_layout().registers(); r += 4)
      strand.add(
          [=, this] {
            Value* four = stream_->four_numbers(RowStream::Number::minus_delta, 0, block, r / 4);
            at_.read_deltas.push_back(four);
            for (int i = 0; i < 4; ++i)
              at_.next_deltas = ir().CreateInsertElement(at_.next_deltas,
                                                         ir().CreateExtractElement(four, static_cast<std::uint64_t>(i)),
                                                         static_cast<std::uint64_t>(r + i));
          },
          load_slots);
  }
  void turn() override {
    // The backend would sink what the next tile alone uses behind the barrier.
    if (!at_.read_deltas.empty()) language::pin(kernel_, at_.read_deltas);
    stream_->turn();
  }

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
          if (spec_.gradients_fp32)
            are_before = ir.CreateOr(are_before, ir.CreateICmpNE(dk_dv_before(), kernel_.constant(0)));
          RunParts(kernel_, spec_, place_).add(sums_, first_of_walk(), are_before);
          return Values{end};
        },
        [&](const Values& state) { return ir.CreateICmpSLT(state[0], place_.tiles); });
  }

  // ---- Keys

  Slice keys_of(std::size_t at, int dims, Value* keys, int element_bytes) {
    return attention::slice_of(kernel_, tensor_fields(at), place_.batch, place_.kv_head, place_.sequence.key_start,
                               keys, dims * element_bytes);
  }

  // Rows past the end of the keys are zeros; what comes of them is not stored.
  void load_keys() {
    keys_.clear();
    values_.clear();
    for (const KeyPlace& place : places_) {
      const LaneKey own = lane_key(kernel_, place);
      attention::QueryTile as_rows = {};
      as_rows.row = own.key;
      as_rows.lane_group = own.lane_group;
      as_rows.query_sign = place.sign;
      const auto load = [&](std::size_t at, int dims) {
        return attention::load_query(
            kernel_, dims, keys_of(at, dims, place.sequence.key_length, attention::bytes_of(spec_.dtype)), as_rows);
      };
      // Scores take K, gradients V.
      const Values k = is_taker() ? Values() : load(offsetof(Arguments, k), spec_.head_dim_qk);
      const Values v = is_giver() ? Values() : load(offsetof(Arguments, v), spec_.head_dim_v);
      keys_.push_back(attention::query_operands(kernel_, as_rows, matrix_, k));
      std::vector<OperandB>& values = values_.emplace_back();
      for (Value* dwords : v) values.push_back(matrix_.operand_b(dwords, language::KOrder::contiguous));
    }
  }

  static std::size_t argument_of(int gradient) {
    return gradient == 0 ? offsetof(Arguments, dv) : offsetof(Arguments, dk);
  }

  // f32 gradients as a call before left them; nothing, which reads as zeros, where none did.
  Slice before(int gradient) {
    Value* keys = kernel_.ir().CreateAnd(place_.keys_of_tensor, dk_dv_before());
    return keys_of(argument_of(gradient), dims_of(gradient), keys, sizeof(float));
  }

  // What the first run is added to, where a call before left something. In front of the walk: in its loop there are no
  // scalar registers for two more tensors.
  void put_before() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    language::if_uniform(
        kernel_, ir.CreateICmpNE(dk_dv_before(), kernel_.constant(0)), language::Likelihood::rarely, [&] {
          const RunParts parts(kernel_, spec_, place_);
          for (int gradient = 0; gradient < 2; ++gradient) {
            if (!(gradient == 0 ? makes_values(makes_) : makes_keys(makes_))) continue;
            const Slice slice = before(gradient);
            for (int block = 0; block < spec_.blocks; ++block) {
              const LaneKey own = lane_key(kernel_, places_[static_cast<std::size_t>(block)]);
              const auto dims = static_cast<std::size_t>(dim_blocks(gradient));
              parts.put(load_rows(kernel_, slice, own.key, own.lane_group, matrix_.accumulator_layout(), dims),
                        first_of(gradient) + (static_cast<std::size_t>(block) * dims));
            }
          }
        });
  }
  Value* dk_dv_before() { return kernel_.argument_i32(offsetof(Arguments, dk_dv_before)); }

  // Keys that key_lengths cuts get zeros: rows do not see them.
  void store(int gradient, Value* factor) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const Slice slice = keys_of(argument_of(gradient), dims_of(gradient), place_.keys_of_tensor, gradient_bytes(spec_));
    for (int block = 0; block < spec_.blocks; ++block) {
      const KeyPlace& place = places_[static_cast<std::size_t>(block)];
      const LaneKey own = lane_key(kernel_, place);
      Value* counts = ir.CreateICmpSLT(own.key, place.sequence.key_length);
      const std::span<Accumulator> sums = sums_of(gradient, block);
      if (several_runs())
        RunParts(kernel_, spec_, place_)
            .take(sums, first_of_walk() + static_cast<std::size_t>(sums.data() - sums_.data()));
      std::vector<Accumulator> earlier;
      if (spec_.gradients_fp32)
        earlier =
            load_rows(kernel_, before(gradient), own.key, own.lane_group, matrix_.accumulator_layout(), sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) {
        Value* all = ir.CreateVectorSplat(static_cast<unsigned>(sums[i].layout.registers()), counts);
        Value* otherwise = earlier.empty() ? matrix_.zeros().value : earlier[i].value;
        // Behind several runs they are in the sum.
        if (!earlier.empty() && !several_runs()) sums[i].value = ir.CreateFAdd(otherwise, sums[i].value);
        sums[i].value = ir.CreateSelect(all, sums[i].value, otherwise);
      }
      store_rows(kernel_, slice, own.key, own.lane_group, matrix_.element(), spec_.gradients_fp32, sums, factor);
    }
  }

  // ---- A block of rows

  // `before`: of the tile before.
  std::vector<Block>& blocks_at(int block, bool before = false) {
    return (before ? before_ : blocks_)[static_cast<std::size_t>(block)];
  }

  // Products of gradients start from −delta. The first shifts are asked for before scores are there.
  void prepare(const schedule::Multiply& multiply) override {
    using schedule::Product;
    if (multiply.product == Product::scores) {
      for (Block& block : blocks_at(multiply.block)) block.scores = matrix_.zeros();
      std::vector<Value*>& shifts = shifts_[static_cast<std::size_t>(multiply.block)];
      while (shifts.size() < quarters_of_half) read_shifts(multiply.block);
    }
    if (multiply.product != Product::gradients) return;
    const Accumulator minus_delta = {sums_trail() ? at_.deltas : minus_delta_of(multiply.block),
                                     matrix_.accumulator_layout()};
    for (Block& block : blocks_at(multiply.block)) block.gradients = minus_delta;
  }
  void begin(const schedule::Multiply& multiply) override {
    if (is_sum(multiply) && sums_apart()) matrix_.begin_apart();
  }
  void end(const schedule::Multiply& multiply) override {
    for (Block& block : blocks_at(multiply.block, multiply.before)) {
      if (multiply.product == schedule::Product::values) block.weights.fragments.clear();
      if (multiply.product == schedule::Product::keys) block.d_scores.fragments.clear();
    }
  }
  static bool is_sum(const schedule::Multiply& multiply) {
    return multiply.product == schedule::Product::values || multiply.product == schedule::Product::keys;
  }

  // Where sums trail, LDS has the numbers of all parts of a row tile.
  int block_of_numbers(int block) const {
    return sums_trail() ? (at_.phase % parts_of_tile() * row_blocks()) + block : block;
  }
  Value* minus_delta_of(int block) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const int registers = matrix_.accumulator_layout().registers();
    Value* all = llvm::PoisonValue::get(kernel_.vector(kernel_.f32(), registers));
    Value* four = nullptr;
    for (int r = 0; r < registers; ++r) {
      if (r % 4 == 0) four = stream_->four_numbers(RowStream::Number::minus_delta, at_.buffer, block, r / 4);
      all = ir.CreateInsertElement(all, ir.CreateExtractElement(four, static_cast<std::uint64_t>(r % 4)),
                                   static_cast<std::uint64_t>(r));
    }
    return all;
  }

  // Those of the other half are read while the last block of keys weighs with the first: all at once would not fit
  // beside the rest of 64 keys and 128 dims.
  static constexpr std::size_t quarters_of_half = 2;
  void read_shifts(int block) {
    Values& shifts = shifts_[static_cast<std::size_t>(block)];
    shifts.push_back(stream_->four_numbers(RowStream::Number::shift, at_.buffer, block_of_numbers(block),
                                           static_cast<int>(shifts.size())));
  }
  Value* shift(int block, std::size_t keys, int r) {
    Values& shifts = shifts_[static_cast<std::size_t>(block)];
    const std::size_t quarters = keys + 1 == places_.size() ? 2 * quarters_of_half : quarters_of_half;
    if (r % 4 == 0 && shifts.size() < quarters) read_shifts(block);
    return kernel_.ir().CreateExtractElement(shifts[static_cast<std::size_t>(r / 4)],
                                             static_cast<std::uint64_t>(r % 4));
  }

  std::vector<Multiplication> multiplications(const schedule::Multiply& multiply) override {
    using schedule::Product;
    switch (multiply.product) {
      case Product::scores:
        return from_rows(stream_->queries(), multiply.block, &Block::scores, keys_);
      case Product::gradients:
        return from_rows(stream_->output_gradients(), multiply.block, &Block::gradients, values_);
      case Product::values:
        return from_columns(stream_->output_gradients(), multiply, &Block::weights, 0);
      case Product::keys:
        return from_columns(stream_->queries(), multiply, &Block::d_scores, 1);
      case Product::queries:
        break;
    }
    return {};
  }

  // Rows times the keys' operands.
  std::vector<Multiplication> from_rows(attention::TileStream& tile, int block, Accumulator Block::* into,
                                        const std::vector<std::vector<OperandB>>& operands) {
    std::vector<Multiplication> all;
    for (int dims = 0; dims < std::ssize(operands.front()); ++dims) {
      Multiplication one = {.read = [&tile, block, dims](int buffer) { return tile.rows(buffer, block, dims); },
                            .instructions = {},
                            .is_made = {}};
      for (std::size_t keys = 0; keys < places_.size(); ++keys)
        for (int step = 0; step < matrix_.steps(); ++step)
          one.instructions.emplace_back([=, this, &operands](const OperandA& rows) {
            Accumulator& sum = blocks_at(block)[keys].*into;
            sum = matrix_.mma_step(rows, operands[keys][static_cast<std::size_t>(dims)], sum, step);
          });
      all.push_back(std::move(one));
    }
    return all;
  }

  // Columns times what was made of scores, a fragment of rows at a time.
  std::vector<Multiplication> from_columns(attention::TileStream& tile, const schedule::Multiply& multiply,
                                           Rounded Block::* operands, int gradient) {
    const int block = multiply.block;
    const bool before = multiply.before;
    std::vector<Multiplication> all;
    for (int rows = 0; rows < fragments_of_block(); ++rows)
      for (int dims = 0; dims < dim_blocks(gradient); ++dims) {
        Multiplication one = {
            .read = [this, &tile, block, rows,
                     dims](int buffer) { return tile.transposed(buffer, dims, (fragments_of_block() * block) + rows); },
            .instructions = {},
            .made = rows,
            .is_made =
                [=, this] {
                  return std::ranges::all_of(blocks_at(block, before),
                                             [=](const Block& each) { return (each.*operands).has(rows); });
                }};
        for (std::size_t keys = 0; keys < places_.size(); ++keys)
          for (int step = 0; step < matrix_.steps(); ++step)
            one.instructions.emplace_back([=, this](const OperandA& columns) {
              Accumulator& sum = sums_of(gradient, static_cast<int>(keys))[static_cast<std::size_t>(dims)];
              const OperandB& of_rows =
                  (blocks_at(block, before)[keys].*operands).fragments[static_cast<std::size_t>(rows)];
              sum = sums_apart() ? matrix_.mma_step_apart(columns, of_rows, sum, step)
                                 : matrix_.mma_step(columns, of_rows, sum, step);
            });
        all.push_back(std::move(one));
      }
    return all;
  }

  void modify(const schedule::Modify& modify) override {
    Values unused;
    for (const auto* tile : {&before_, &blocks_})
      for (const std::vector<Block>& blocks : *tile)
        for (const Block& block : blocks) add_unused(kernel_, block, unused);
    if (!unused.empty()) language::pin(kernel_, unused);
    Value* first_row =
        kernel_.ir().CreateAdd(stream_->first_row_of(at_.step), kernel_.constant(wave_.rows * modify.block));
    for (std::size_t keys = 0; keys < places_.size(); ++keys) {
      Block& block = blocks_at(modify.block)[keys];
      block.slopes = cap_slopes(kernel_, spec_, cap_rate_, block.scores);
      modifiers_[keys].apply(stream_->head_of(at_.step), first_row, block.scores);
    }
  }

  Strand strand(const schedule::Queue& queue) override {
    using schedule::Vector;
    if (queue.vector == Vector::give || queue.vector == Vector::take) return handed_over(queue);
    Strand strand;
    for (int half = 0; half < fragments_of_block(); ++half)
      for (std::size_t keys = 0; keys < places_.size(); ++keys) {
        Block& block = blocks_at(queue.block, queue.before)[keys];
        if (queue.vector == Vector::weigh)
          score_gradient_.add_weights(
              strand, block, half, [=, this](int r) { return shift(queue.block, keys, r); },
              makes_values(makes_) && !sums_trail());
        else if (queue.vector == Vector::round)
          score_gradient_.add_rounded_weights(strand, block, half);
        else
          score_gradient_.add_d_scores(strand, block, half);
      }
    return strand;
  }
  // One block of keys, whole.
  Strand handed_over(const schedule::Queue& queue) {
    Strand strand;
    Block& block = blocks_at(queue.block, queue.before).front();
    if (queue.vector == schedule::Vector::give)
      shared_->add_give(strand, block.scores, at_.buffer, queue.block);
    else
      shared_->add_take(strand, block.scores, matrix_.accumulator_layout(), at_.buffer, queue.block);
    return strand;
  }

  Kernel& kernel_;
  const KeyKernel& spec_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  KeyPlace place_;                // of the first block
  std::vector<KeyPlace> places_;  // of each
  Value* cap_rate_;
  std::vector<RowModifiers> modifiers_;
  std::vector<RowStreamPlan> plans_;  // of each walk
  language::Lds lds_;
  std::deque<RowStream> streams_;
  std::optional<SharedWeights> shared_;
  Ladder ladder_;
  ScoreGradient score_gradient_;
  std::vector<std::vector<OperandB>> keys_;  // of each block of keys, a fragment of dims each
  std::vector<std::vector<OperandB>> values_;
  // Of the walk at hand.
  Sums makes_ = Sums::both;
  RowStream* stream_ = nullptr;
  // Of the tile at hand.
  struct {
    int buffer = 0;
    Step step = {};
    Step next = {};
    Values arrived = {};    // of the step, through registers; where sums trail, of the step before
    Values in_flight = {};  // of the next one
    // Where sums trail, what is in flight is of `fetched`, which is behind the next one, received is of the next one;
    // and numbers of rows have registers of their own, of the next one and of `fetched`.
    Step fetched = {};
    Values received = {};
    Values numbers = {};
    Values numbers_in_flight = {};
    int phase = 0;
    Value* deltas = nullptr;  // −delta of the step and of the next one, in an accumulator's registers
    Value* next_deltas = nullptr;
    Values read_deltas = {};
  } at_;
  Value* end_ = nullptr;  // of the row tiles, where sums trail
  Accumulators sums_;
  std::vector<std::vector<Block>> blocks_;  // of rows, of keys
  std::vector<std::vector<Block>> before_;  // the same of the tile before, where sums trail
  std::vector<Values> shifts_;              // of each block of rows, four each
};

}  // namespace

void emit_key_gradient(Kernel& kernel, const KeyKernel& spec) { KeyGradient(kernel, spec).emit(); }

}  // namespace wavejit::attention_backward
