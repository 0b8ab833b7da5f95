// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/row_stream.h"

#include <cstddef>
#include <limits>
#include <utility>

#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/slice.h"
#include "templates/attention_backward/emit/row_numbers.h"
#include "templates/attention_backward/emit/shared_weights.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/canon.h"
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {

using language::Kernel;
using language::Strand;
using language::Value;
using language::Values;

namespace {

constexpr int four_bytes = 16;  // of four rows

Value* stride_of(Kernel& kernel, std::size_t at) { return kernel.argument_i32(tensor_fields(at).row_stride); }

}  // namespace

RowStreamPlan plan_row_stream(const targets::Target& target, const KeyKernel& spec, Sums sums) {
  const int rows = rows_of_step(spec, target);
  const int element_bytes = attention::bytes_of(spec.dtype);
  RowStreamPlan plan = {.rows = rows, .waves = waves_of(target), .q = {}, .d_o = {}};
  const int buffers = spec.shared ? shared_buffers : 2;
  // Waves that share keys need all images, whatever the sums of each.
  const bool all_images = spec.shared && !target.transpose_read;
  const int column_images = all_images ? 2 : 1;
  plan.q = plan_wide_tile(target,
                          {.rows = rows,
                           .dims = spec.head_dim_qk,
                           .element_bytes = element_bytes,
                           .by_columns = all_images || makes_keys(sums),
                           .filled_buffers = buffers,
                           .waves_of_filling = waves_of_block(spec),
                           .column_images = column_images},
                          0, 0);
  plan.d_o = plan_wide_tile(target,
                            {.rows = rows,
                             .dims = spec.head_dim_v,
                             .element_bytes = element_bytes,
                             .by_columns = all_images || makes_values(sums),
                             .by_rows = all_images || makes_keys(sums),
                             .filled_buffers = buffers,
                             .waves_of_filling = waves_of_block(spec),
                             .column_images = column_images},
                            plan.q.total_bytes(), plan.q.regions());
  if (spec.shared) {
    plan.shifts = makes_values(sums);
    plan.deltas = makes_keys(sums);
    plan.brings_q = makes_keys(sums);
    plan.brings_d_o = makes_values(sums);
  }
  return plan;
}

RowStream::RowStream(Kernel& kernel, const KeyKernel& spec, const language::MatrixUnit& matrix, const KeyPlace& place,
                     const language::Lds& lds, const RowStreamPlan& plan)
    : kernel_(kernel),
      spec_(spec),
      matrix_(matrix),
      place_(place),
      lds_(lds),
      plan_(plan),
      queries_(kernel, lds, matrix, plan.q, stride_of(kernel, offsetof(Arguments, q))),
      output_gradients_(kernel, lds, matrix, plan.d_o, stride_of(kernel, offsetof(Arguments, d_o))) {
  // An offset of an LDS instruction has 16 bits: what stands behind 64 KiB would have an address for each read.
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* of_wave = ir.CreateMul(kernel.wave(), kernel.constant(plan_.numbers_of_wave()));
  const int group_bytes = kernel.target().row_block * static_cast<int>(sizeof(float));
  numbers_read_ = ir.CreateAdd(ir.CreateMul(lane_key(kernel, place).lane_group, kernel.constant(group_bytes)),
                               ir.CreateAdd(of_wave, kernel.constant(plan_.numbers_byte())));
}

Step RowStream::behind(const Step& step) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* one = kernel_.constant(1);
  Value* zero = kernel_.constant(0);
  Step next = step;
  Value* carries = ir.getTrue();
  if (rows() < tile_rows) {
    Value* part = ir.CreateAdd(step.part, one);
    carries = ir.CreateICmpEQ(part, kernel_.constant(tile_rows / rows()));
    next.part = ir.CreateSelect(carries, zero, part);
  }
  Value* head = ir.CreateSelect(carries, ir.CreateAdd(step.head, one), step.head);
  Value* wraps = ir.CreateICmpEQ(head, place_.group);
  next.head = ir.CreateSelect(wraps, zero, head);
  next.tile = ir.CreateSelect(wraps, ir.CreateAdd(step.tile, one), step.tile);
  return next;
}

Value* RowStream::first_row_of(const Step& step) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateAdd(ir.CreateMul(step.tile, kernel_.constant(tile_rows)),
                      ir.CreateMul(step.part, kernel_.constant(rows())));
}

Value* RowStream::head_of(const Step& step) const { return kernel_.ir().CreateAdd(place_.first_head, step.head); }

void RowStream::add_fetch(Strand& strand, int buffer, const Step& step, Values& in_flight) {
  add_fetch_of_numbers(strand, step, in_flight);
  add_fetch_of_matrices(strand, buffer, step, in_flight);
}

void RowStream::add_fetch_of_numbers(Strand& strand, const Step& step, Values& in_flight) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* head = head_of(step);
  Value* row = first_row_of(step);
  for (const auto& [at, is_taken] :
       {std::pair{offsetof(Arguments, lse), plan_.shifts}, {offsetof(Arguments, delta), plan_.deltas}}) {
    if (!is_taken) continue;
    strand.add(
        [=, this, &in_flight, &ir] {
          const language::Buffer all = row_numbers(kernel_, at, place_.batch, head, place_.sequence);
          Value* own = ir.CreateAdd(row, attention::lane_made_anew(kernel_));
          in_flight.push_back(ir.CreateBitCast(all.load(4, ir.CreateShl(own, 2), kernel_.constant(0)), kernel_.f32()));
        },
        address_slots);
  }
}

// A part of a tile may begin beyond the sequence: then its rows are none.
void RowStream::add_fetch_of_matrices(Strand& strand, int buffer, const Step& step, Values& in_flight) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* head = head_of(step);
  Value* row = first_row_of(step);
  Value* is_inside = ir.CreateICmpSLT(row, place_.sequence.query_length);
  Value* rows = ir.CreateSelect(is_inside, place_.sequence.query_length, kernel_.constant(0));
  Value* from = ir.CreateSelect(is_inside, row, kernel_.constant(0));
  const auto rows_of = [=, this](std::size_t at, int dims) {
    return attention::slice_of(kernel_, tensor_fields(at), place_.batch, head, place_.sequence.query_start, rows,
                               dims * attention::bytes_of(spec_.dtype))
        .buffer;
  };
  if (plan_.brings_q)
    queries_.add_fetch(
        strand, buffer, [=, this] { return rows_of(offsetof(Arguments, q), spec_.head_dim_qk); }, from, in_flight);
  if (plan_.brings_d_o)
    output_gradients_.add_fetch(
        strand, buffer, [=, this] { return rows_of(offsetof(Arguments, d_o), spec_.head_dim_v); }, from, in_flight);
}

Values RowStream::fetch(int buffer, const Step& step) {
  Values in_flight;
  Strand strand;
  add_fetch(strand, buffer, step, in_flight);
  strand.write_rest();
  return in_flight;
}

void RowStream::add_rows(Strand& strand, int buffer, const Step& step, const Values& in_flight) {
  add_rows_of_matrices(strand, in_flight, plan_.numbers());
  add_numbers(strand, buffer, step, in_flight);
}

void RowStream::add_rows_of_matrices(Strand& strand, const Values& in_flight, std::size_t first) {
  if (plan_.brings_q) queries_.add_rows(strand, in_flight, first);
  if (plan_.brings_d_o) output_gradients_.add_rows(strand, in_flight, first + in_flight_of_q());
}

// Rows beyond the sequence weigh nothing. Nothing of a lane's number lives through the products.
void RowStream::add_numbers(Strand& strand, int buffer, const Step& step, const Values& in_flight, Value* end) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto write = [=, this, &ir](Value* lane, Value* number, int at) {
    Value* of_wave = ir.CreateMul(kernel_.wave(), kernel_.constant(plan_.numbers_of_wave()));
    Value* own = ir.CreateAdd(ir.CreateShl(lane, 2), ir.CreateAdd(of_wave, kernel_.constant(plan_.numbers_byte())));
    lds_.write(plan_.numbers_region() + buffer, ir.CreateBitCast(number, kernel_.i32()), own,
               (buffer * RowStreamPlan::numbers_bytes) + at);
  };
  constexpr int slots = 6;
  if (plan_.shifts)
    strand.add(
        [=, this, &in_flight, &ir] {
          Value* lane = attention::lane_made_anew(kernel_);
          Value* rows = place_.sequence.query_length;
          if (end != nullptr) rows = attention::minimum(kernel_, rows, ir.CreateMul(end, kernel_.constant(tile_rows)));
          Value* has_row = ir.CreateICmpSLT(ir.CreateAdd(first_row_of(step), lane), rows);
          Value* shift = ir.CreateSelect(has_row, shift_of(kernel_, in_flight.front()),
                                         kernel_.constant(-std::numeric_limits<float>::infinity()));
          write(lane, shift, 0);
        },
        slots);
  if (plan_.deltas)
    strand.add(
        [=, this, &in_flight, &ir] {
          write(attention::lane_made_anew(kernel_), ir.CreateFNeg(in_flight[plan_.numbers() - 1]), tile_rows * 4);
        },
        slots);
}

void RowStream::add_columns(Strand& strand, const Values& in_flight) {
  add_columns_of_matrices(strand, in_flight, plan_.numbers());
}

void RowStream::add_columns_of_matrices(Strand& strand, const Values& in_flight, std::size_t first, int image) {
  if (plan_.brings_q) queries_.add_columns(strand, in_flight, first, image);
  if (plan_.brings_d_o) output_gradients_.add_columns(strand, in_flight, first + in_flight_of_q(), image);
}

void RowStream::read_columns_from(int image) {
  queries_.read_columns_from(image);
  output_gradients_.read_columns_from(image);
}

void RowStream::turn() const {
  if (buffers() > 1)
    language::wait_for_lds_fills(kernel_);
  else
    language::wait_for_lds(kernel_);
  language::barrier(kernel_);
}

Value* RowStream::four_numbers(Number number, int buffer, int block, int quarter) const {
  const int row =
      (language::wave_shape(kernel_).rows * block) + matrix_.accumulator_layout().row_of_register(4 * quarter);
  const int at =
      (buffer * RowStreamPlan::numbers_bytes) + (number == Number::minus_delta ? tile_rows * 4 : 0) + (4 * row);
  return kernel_.ir().CreateBitCast(lds_.read(plan_.numbers_region() + buffer, four_bytes, numbers_read_, at),
                                    kernel_.vector(kernel_.f32(), 4));
}

}  // namespace wavejit::attention_backward
