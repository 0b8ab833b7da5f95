// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/key_tile.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention_backward/emit/schedule.h"
#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward {

using language::Accumulator;
using language::Element;
using language::Kernel;
using language::OperandA;
using language::OperandB;
using language::Strand;
using language::Value;
using language::Values;

namespace {

// The walks that make the sums: one walk makes both, or each has a walk, or a wave.
std::span<const Sums> walks_of_all(const KeyKernel& spec, const targets::Target& target) {
  static constexpr std::array shared = {Sums::values, Sums::keys};
  return spec.shared ? shared : walks_of(spec, target);
}
std::vector<RowStreamPlan> plans_of(const Kernel& kernel, const KeyKernel& spec) {
  std::vector<RowStreamPlan> plans;
  for (const Sums sums : walks_of_all(spec, kernel.target()))
    plans.push_back(plan_row_stream(kernel.target(), spec, sums));
  return plans;
}
// One object for all walks: the largest's.
language::Lds lds_of(Kernel& kernel, const KeyKernel& spec, const std::vector<RowStreamPlan>& plans) {
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

}  // namespace

KeyTile::KeyTile(Kernel& kernel, const KeyKernel& spec)
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

void KeyTile::begin_walk(std::size_t walk) {
  makes_ = walks_of_all(spec_, kernel_.target())[walk];
  stream_ = &streams_[walk];
}

// The number of a gradient's first sum, among all sums of the kernel and among those of the walk at hand.
std::size_t KeyTile::first_of(int gradient) const {
  // A wave that shares keys has one of them.
  return gradient == 0 || spec_.shared
             ? 0
             : static_cast<std::size_t>(spec_.blocks) * static_cast<std::size_t>(dim_blocks(0));
}

std::size_t KeyTile::sums_of_walk() const {
  const int both = (makes_values(makes_) ? dim_blocks(0) : 0) + (makes_keys(makes_) ? dim_blocks(1) : 0);
  return static_cast<std::size_t>(spec_.blocks) * static_cast<std::size_t>(both);
}

// Sums of two blocks and 128 dims, or of one and 256, are 256 registers.
bool KeyTile::sums_apart() const {
  return spec_.blocks == 2 || (plans_.size() == 1 && held_registers(spec_) > vector_registers);
}

// The sums of dV (0) or dK (1).
std::span<Accumulator> KeyTile::sums_of(int gradient, int block) {
  const auto dims = static_cast<std::size_t>(dim_blocks(gradient));
  const std::size_t first = first_of(gradient) - first_of_walk();
  return std::span(sums_).subspan(first + (static_cast<std::size_t>(block) * dims), dims);
}

const schedule::Schedule& KeyTile::table() const {
  const schedule::Order order = schedule::order_of(kernel_.target(), stream_->buffers());
  if (spec_.shared) return schedule::shared_schedule(order, makes_);
  return schedule::key_schedule(row_blocks(), order, makes_);
}

Fragments KeyTile::begin_reading(const Step& first, const Values& started) {
  Strand rows;
  stream_->add_rows(rows, 0, first, started);
  rows.write_rest();
  stream_->turn();
  return read_first(*this, table(), ladder_, 0);
}

// A tile, with its first fragments; returns the next one's.
Fragments KeyTile::attend(const Values& before) {
  blocks_.assign(static_cast<std::size_t>(row_blocks()), std::vector<Block>(places_.size()));
  shifts_.assign(static_cast<std::size_t>(row_blocks()), {});
  Fragments ahead;
  for (Value* value : before) ahead.push_back(matrix_.operand_a(value, language::KOrder::contiguous));
  return weave(*this, table(), ladder_, {.own = at_.buffer, .next = next_buffer()}, ahead);
}

Strand KeyTile::fetch() {
  Strand strand;
  if (sums_trail()) {
    if (are_numbers_due(2)) stream_->add_fetch_of_numbers(strand, at_.fetched, at_.numbers_in_flight);
    stream_->add_fetch_of_matrices(strand, 0, at_.fetched, at_.in_flight);
  } else {
    stream_->add_fetch(strand, fetched_buffer(), at_.next, at_.in_flight);
  }
  return strand;
}
Strand KeyTile::receive() {
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
Strand KeyTile::receive_columns() {
  Strand strand;
  if (!sums_trail())
    stream_->add_columns(strand, at_.arrived);
  else if (is_giver())
    add_trailing_columns(strand);
  return strand;
}
// −delta of the step in `phase`, which products of gradients start from. The numbers are the wave's own: they are
// read in front of the barrier.
void KeyTile::add_next_deltas(Strand& strand, int phase) {
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
                                                       static_cast<std::uint64_t>(r) + static_cast<std::uint64_t>(i));
        },
        load_slots);
}
void KeyTile::turn() {
  // The backend would sink what the next tile alone uses behind the barrier.
  if (!at_.read_deltas.empty()) language::pin(kernel_, at_.read_deltas);
  stream_->turn();
}

// Products of gradients start from −delta. The first shifts are asked for before scores are there.
void KeyTile::prepare(const schedule::Multiply& multiply) {
  using schedule::Product;
  if (multiply.product == Product::scores) {
    for (Block& block : blocks_at(multiply.block)) block.scores = matrix_.zeros();
    std::vector<Value*>& shifts = shifts_[static_cast<std::size_t>(multiply.block)];
    while (shifts.size() < std::min(quarters_of_half, quarters())) read_shifts(multiply.block);
  }
  if (multiply.product != Product::gradients) return;
  const Accumulator minus_delta = {sums_trail() ? at_.deltas : minus_delta_of(multiply.block),
                                   matrix_.accumulator_layout()};
  for (Block& block : blocks_at(multiply.block)) block.gradients = minus_delta;
}
void KeyTile::begin(const schedule::Multiply& multiply) {
  if (is_sum(multiply) && sums_apart()) matrix_.begin_apart();
}
void KeyTile::end(const schedule::Multiply& multiply) {
  for (Block& block : blocks_at(multiply.block, multiply.before)) {
    if (multiply.product == schedule::Product::values) block.weights.fragments.clear();
    if (multiply.product == schedule::Product::keys) block.d_scores.fragments.clear();
  }
}
bool KeyTile::is_sum(const schedule::Multiply& multiply) {
  return multiply.product == schedule::Product::values || multiply.product == schedule::Product::keys;
}

// Where sums trail, LDS has the numbers of all parts of a row tile.
int KeyTile::block_of_numbers(int block) const {
  return sums_trail() ? (at_.phase % parts_of_tile() * row_blocks()) + block : block;
}
Value* KeyTile::minus_delta_of(int block) {
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
void KeyTile::read_shifts(int block) {
  Values& shifts = shifts_[static_cast<std::size_t>(block)];
  shifts.push_back(stream_->four_numbers(RowStream::Number::shift, at_.buffer, block_of_numbers(block),
                                         static_cast<int>(shifts.size())));
}
Value* KeyTile::shift(int block, std::size_t keys, int r) {
  Values& shifts = shifts_[static_cast<std::size_t>(block)];
  const std::size_t wanted = keys + 1 == places_.size() ? quarters() : std::min(quarters_of_half, quarters());
  if (r % 4 == 0 && shifts.size() < wanted) read_shifts(block);
  return kernel_.ir().CreateExtractElement(shifts[static_cast<std::size_t>(r / 4)], static_cast<std::uint64_t>(r % 4));
}

std::vector<Multiplication> KeyTile::multiplications(const schedule::Multiply& multiply) {
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
std::vector<Multiplication> KeyTile::from_rows(attention::TileStream& tile, int block, Accumulator Block::* into,
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
std::vector<Multiplication> KeyTile::from_columns(attention::TileStream& tile, const schedule::Multiply& multiply,
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

void KeyTile::modify(const schedule::Modify& modify) {
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

Strand KeyTile::strand(const schedule::Queue& queue) {
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
Strand KeyTile::handed_over(const schedule::Queue& queue) {
  Strand strand;
  Block& block = blocks_at(queue.block, queue.before).front();
  if (queue.vector == schedule::Vector::give)
    shared_->add_give(strand, block.scores, at_.buffer, queue.block);
  else
    shared_->add_take(strand, block.scores, matrix_.accumulator_layout(), at_.buffer, queue.block);
  return strand;
}

}  // namespace wavejit::attention_backward
