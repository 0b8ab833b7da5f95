// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/walks/block_lists/order.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <array>
#include <bit>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/cross_lane.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention_forward/kernel/walks/block_lists/arguments.h"
#include "templates/attention_forward/kernel/walks/block_lists/spec.h"
#include "templates/attention_forward/kernel/walks/block_lists/walks.h"

namespace wavejit::attention_block_lists {
namespace {

using attention::maximum;
using attention::minimum;
using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int dword_bytes = 4;
constexpr std::uint32_t no_place = 0x80000000;
constexpr int part_bits = std::countr_zero(static_cast<unsigned>(ordered_units));
static_assert(1 << part_bits == ordered_units && ordered_units <= marked_tiles);
static_assert(length_classes == threads, "a lane has the count of a class");

Value* wide(Kernel& kernel, Value* value) { return kernel.ir().CreateZExt(value, kernel.i64()); }

// The value of a lane, uniform.
Value* of_lane(Kernel& kernel, Value* value, Value* lane) {
  return kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_readlane, {kernel.i32()}, {value, lane});
}

}  // namespace

Value* order_workgroups(Kernel& kernel) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* units = kernel.argument_i32(offsetof(Arguments, units));
  return ir.CreateLShr(ir.CreateAdd(units, kernel.constant(ordered_units - 1)), part_bits);
}

UnitOrder::UnitOrder(Kernel& kernel, const language::Lds& lds, Value* query_length)
    : kernel_(kernel), ir_(kernel.ir()), lds_(lds), query_length_(query_length) {
  Value* heads = number(offsetof(Arguments, heads));
  of_head_ = ir_.CreateAdd(ir_.CreateMul(kernel.workgroup_z(), heads), kernel.workgroup_y());
  Value* batch = ir_.CreateAnd(kernel.workgroup_z(), number(offsetof(Arguments, batch_mask)));
  lists_of_head_ = ir_.CreateMul(ir_.CreateAdd(ir_.CreateMul(batch, heads), kernel.workgroup_y()),
                                 number(offsetof(Arguments, row_blocks)));
  first_ = ir_.CreateShl(kernel.workgroup_x(), part_bits);
  count_ = minimum(kernel, ir_.CreateSub(number(offsetof(Arguments, units)), first_), kernel.constant(ordered_units));
}

void UnitOrder::emit() {
  Value* zero = kernel_.constant(0);
  const auto more = [&](const Values& at) { return ir_.CreateICmpSLT(at[0], count_); };
  const auto lanes_at = [&](Value* first) {
    return language::lanes_where(kernel_, ir_.CreateICmpSLT(ir_.CreateAdd(first, kernel_.lane()), count_));
  };
  const auto next = [&](Value* first) { return ir_.CreateAdd(first, kernel_.constant(threads)); };
  const auto place_in_lds = [&](Value* first) { return ir_.CreateShl(ir_.CreateAdd(first, kernel_.lane()), 2); };

  // How many units each class has: lane l counts class l.
  const Values counted = language::loop_in_phases(
      kernel_, 1, {zero, zero},
      [&](int, const Values& at) -> Values {
        Value* unit = unit_of(ir_.CreateAdd(at[0], kernel_.lane()));
        Value* classes = class_of(length_of(unit));
        lds_.write(0, classes, place_in_lds(at[0]), 0);
        const Values counts =
            by_class(classes, lanes_at(at[0]), {at[1]}, [&](Value* each, Value* lanes, const Values& before) -> Values {
              Value* own = ir_.CreateICmpEQ(kernel_.lane(), each);
              Value* some = ir_.CreateSelect(own, language::count_of(kernel_, lanes), zero);
              return {ir_.CreateAdd(before[0], some)};
            });
        return {next(at[0]), counts[0]};
      },
      more);

  Value* bytes = ir_.CreateShl(count_, 2);
  Value* begin =
      ir_.CreateAdd(wide(kernel_, ir_.CreateMul(of_head_, number(offsetof(Arguments, units)))), wide(kernel_, first_));
  const Buffer order(kernel_, ir_.CreateAdd(kernel_.argument_i64(offsetof(Arguments, order)), ir_.CreateShl(begin, 2)),
                     bytes);
  // Units of one class keep their own order, so the place of a unit does not depend on when another class was counted.
  language::loop_in_phases(
      kernel_, 1, {zero, places_of_classes(counted[1])},
      [&](int, const Values& at) -> Values {
        Value* classes = lds_.read(0, dword_bytes, place_in_lds(at[0]), 0);
        const Values placed = by_class(
            classes, lanes_at(at[0]), {at[1], ir_.getInt32(no_place)},
            [&](Value* each, Value* lanes, const Values& before) -> Values {
              Value* place = language::count_below(kernel_, lanes, of_lane(kernel_, before[0], each));
              Value* here = ir_.CreateICmpEQ(classes, each);
              Value* exists = ir_.CreateICmpSLT(ir_.CreateAdd(at[0], kernel_.lane()), count_);
              here = ir_.CreateAnd(here, exists);
              Value* own = ir_.CreateICmpEQ(kernel_.lane(), each);
              Value* some = ir_.CreateSelect(own, language::count_of(kernel_, lanes), zero);
              return {ir_.CreateAdd(before[0], some), ir_.CreateSelect(here, ir_.CreateShl(place, 2), before[1])};
            });
        order.store(unit_of(ir_.CreateAdd(at[0], kernel_.lane())), placed[1], zero);
        return {next(at[0]), placed[0]};
      },
      more);
}

Value* UnitOrder::number(std::size_t field) { return kernel_.argument_i32(field); }

// Under a diagonal the last units have the most keys, whatever their lists say.
Value* UnitOrder::unit_of(Value* place) {
  Value* forward = ir_.CreateAdd(first_, place);
  Value* backward = ir_.CreateSub(ir_.CreateSub(number(offsetof(Arguments, units)), kernel_.constant(1)), forward);
  return ir_.CreateSelect(ir_.CreateIsNull(number(offsetof(Arguments, descending))), forward, backward);
}

Value* UnitOrder::length_of(Value* unit) {
  Value* shift = ir_.CreateSub(number(offsetof(Arguments, unit_shift)), number(offsetof(Arguments, rows_shift)));
  Value* lists = ir_.CreateShl(kernel_.constant(1), shift);
  const Values longest = language::loop_in_phases(
      kernel_, 1, {kernel_.constant(0), kernel_.constant(0)},
      [&](int, const Values& at) -> Values {
        Value* list = ir_.CreateAdd(ir_.CreateShl(unit, shift), at[0]);
        Value* length = ir_.CreateAdd(length_of_list(offsetof(Arguments, masked), list),
                                      length_of_list(offsetof(Arguments, whole), list));
        return {ir_.CreateAdd(at[0], kernel_.constant(1)), maximum(kernel_, at[1], length)};
      },
      [&](const Values& at) { return ir_.CreateICmpULT(at[0], lists); });
  // Nobody has the rows behind a sequence's last.
  Value* first_row = ir_.CreateShl(unit, number(offsetof(Arguments, unit_shift)));
  return ir_.CreateSelect(ir_.CreateICmpSLT(first_row, query_length_), longest[1], kernel_.constant(0));
}

// `list`: per lane, the number of a list of the head. The length of a list that does not exist loads as 0.
Value* UnitOrder::length_of_list(std::size_t fields, Value* list) {
  Value* lists = number(offsetof(Arguments, row_blocks));
  Value* capacity = number(fields + offsetof(Lists, capacity));
  Value* offset = ir_.CreateShl(list, 2);
  const auto array = [&](std::size_t field, Value* entries) {
    Value* address = kernel_.argument_i64(fields + field);
    Value* there = ir_.CreateIsNotNull(address);
    Value* base = ir_.CreateAdd(address, ir_.CreateShl(wide(kernel_, lists_of_head_), 2));
    Value* bytes = ir_.CreateSelect(there, ir_.CreateShl(entries, 2), kernel_.constant(0));
    return std::pair(Buffer(kernel_, ir_.CreateSelect(there, base, kernel_.argument_address()), bytes), there);
  };
  const auto clamped = [&](Value* value, Value* least) {
    return minimum(kernel_, maximum(kernel_, value, least), capacity);
  };
  const auto [counts, has_counts] = array(offsetof(Lists, counts), lists);
  const auto [starts, has_starts] = array(offsetof(Lists, starts), ir_.CreateAdd(lists, kernel_.constant(1)));
  Value* zero = kernel_.constant(0);
  Value* counted = clamped(counts.load(dword_bytes, offset, zero), zero);
  Value* begin = clamped(starts.load(dword_bytes, offset, zero), zero);
  Value* end = clamped(starts.load(dword_bytes, ir_.CreateAdd(offset, kernel_.constant(dword_bytes)), zero), begin);
  Value* length =
      ir_.CreateSelect(has_starts, ir_.CreateSub(end, begin), ir_.CreateSelect(has_counts, counted, capacity));
  Value* exists = ir_.CreateAnd(ir_.CreateICmpULT(list, lists),
                                ir_.CreateIsNotNull(kernel_.argument_i64(fields + offsetof(Lists, indices))));
  return ir_.CreateSelect(exists, length, zero);
}

// Four classes an octave, longer ones above; 0: of no length.
Value* UnitOrder::class_of(Value* length) {
  constexpr int highest_bit = 31;
  constexpr int quarters = 4;
  Value* none = ir_.CreateICmpEQ(length, kernel_.constant(0));
  Value* octave = ir_.CreateSub(kernel_.constant(highest_bit),
                                ir_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, length, ir_.getFalse()));
  octave = ir_.CreateSelect(none, kernel_.constant(0), octave);
  Value* quarter = ir_.CreateAnd(ir_.CreateLShr(ir_.CreateShl(length, 2), octave), kernel_.constant(quarters - 1));
  Value* number = ir_.CreateAdd(ir_.CreateAdd(ir_.CreateShl(octave, 2), quarter), kernel_.constant(1));
  number = minimum(kernel_, number, kernel_.constant(length_classes - 1));
  return ir_.CreateSelect(none, kernel_.constant(0), number);
}

Values UnitOrder::by_class(Value* classes, Value* lanes, const Values& state, const OfClass& body) {
  Values initial = {lanes};
  initial.insert(initial.end(), state.begin(), state.end());
  Values end = language::loop_in_phases(
      kernel_, 1, initial,
      [&](int, const Values& at) {
        Value* first =
            ir_.CreateTrunc(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, at[0], ir_.getTrue()), kernel_.i32());
        Value* each = of_lane(kernel_, classes, first);
        Value* own = ir_.CreateAnd(language::lanes_where(kernel_, ir_.CreateICmpEQ(classes, each)), at[0]);
        Values left = {ir_.CreateAnd(at[0], ir_.CreateNot(own))};
        const Values after = body(each, own, Values(at.begin() + 1, at.end()));
        left.insert(left.end(), after.begin(), after.end());
        return left;
      },
      [&](const Values& at) { return ir_.CreateICmpNE(at[0], ir_.getInt64(0)); });
  end.erase(end.begin());
  return end;
}

// The place of each class: after all units of higher classes.
Value* UnitOrder::places_of_classes(Value* counts) {
  Value* zero = kernel_.constant(0);
  const Values end = language::loop_in_phases(
      kernel_, 1, {kernel_.constant(length_classes - 1), zero, zero},
      [&](int, const Values& at) -> Values {
        Value* own = ir_.CreateICmpEQ(kernel_.lane(), at[0]);
        return {ir_.CreateSub(at[0], kernel_.constant(1)), ir_.CreateAdd(at[1], of_lane(kernel_, counts, at[0])),
                ir_.CreateSelect(own, at[1], at[2])};
      },
      [&](const Values& at) { return ir_.CreateICmpSGE(at[0], zero); });
  return end[2];
}

}  // namespace wavejit::attention_block_lists
