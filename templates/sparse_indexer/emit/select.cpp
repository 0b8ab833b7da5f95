// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SelectKernel → IR.
//
// A workgroup has one row. Scores become 32-bit numbers that ascend with them (row_scores.h): a digit of 11, 11 and 10
// bits at a time, all waves count in LDS how often each digit occurs among the scores that are still candidates, and
// one wave finds the digit in which the k-th largest lies. So the k-th largest number is known after three walks of the
// row, and how many of its equals belong to the k.
//
// Of a long row, workgroups have a part each, and one more the parts' lists, whose scores say which keys they stand
// for.
//
// The fourth walk writes. Waves take neighbouring runs of keys; ballots and one sum over waves tell each key how many
// before it are chosen, which is its place in the list. Equals are chosen from the lowest key up.
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "codegen/language/lds.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/sparse_indexer/emit/emit.h"
#include "templates/sparse_indexer/emit/histogram.h"
#include "templates/sparse_indexer/emit/row_keys.h"
#include "templates/sparse_indexer/emit/row_scores.h"

namespace wavejit::sparse_indexer {
namespace {

using attention::maximum;
using attention::minimum;
using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

constexpr std::array<Digit, 3> digits = {
    {{.shift = 21, .bits = 11, .zero_is_none = true}, {.shift = 10, .bits = 11}, {.shift = 0, .bits = 10}}};

// What one wave found, for all: an entry of 16 bytes for each lane of it, of which the first is read.
constexpr int found_bytes = select_lanes * quad_bytes;
// Counts of the waves, twice: while some read, others are at the next.
constexpr int totals_bytes = select_waves * 4;
constexpr int found_at = static_cast<int>(digits.size()) * Histogram::bytes;
constexpr int totals_at = found_at + (static_cast<int>(digits.size()) * found_bytes);
constexpr int lds_bytes = totals_at + (2 * totals_bytes);
enum Region : std::uint8_t { digit_counts, found, totals, regions };

// Two counts of up to 2¹⁵ in a dword: larger ones, and equals.
constexpr int count_bits = 16;

class SelectEmission {
 public:
  explicit SelectEmission(Kernel& kernel) : kernel_(kernel), lds_(kernel, lds_bytes, regions) {}

  void emit() {
    place();
    clear();
    // The k-th largest number, and how many of its equals are chosen. Where there are no more than k: all but 0.
    Value* zero = kernel_.constant(0);
    const Values end = narrow(0, {zero, kernel_.argument_i32(offsetof(SelectArguments, top_k)), ir().getTrue()});
    Value* least = ir().CreateSelect(end[2], end[0], zero);
    Value* equals = ir().CreateSelect(end[2], end[1], zero);
    Value* chosen = write(least, equals);
    fill_from(chosen);
  }

 private:
  llvm::IRBuilder<>& ir() { return kernel_.ir(); }
  Value* argument(std::size_t field) { return kernel_.argument_i64(field); }

  void place() {
    Value* row = ir().CreateAdd(kernel_.argument_i32(offsetof(SelectArguments, rows.first_row)), kernel_.workgroup_x());
    Value* batch =
        ir().CreateAdd(kernel_.argument_i32(offsetof(SelectArguments, rows.first_batch)), kernel_.workgroup_y());
    seen_ = keys_of_row(kernel_, offsetof(SelectArguments, rows), batch, row);
    // The keys of a part among these.
    Value* part_keys = kernel_.argument_i32(offsetof(SelectArguments, part_keys));
    Value* part_first = ir().CreateMul(kernel_.workgroup_z(), part_keys);
    seen_.begin = maximum(kernel_, seen_.begin, part_first);
    seen_.end = maximum(kernel_, minimum(kernel_, seen_.end, ir().CreateAdd(part_first, part_keys)), seen_.begin);
    count_ = ir().CreateSub(seen_.end, seen_.begin);
    Value* base = moved(kernel_, argument(offsetof(SelectArguments, scores)), batch,
                        argument(offsetof(SelectArguments, scores_batch_stride)));
    base = moved(kernel_, base, row, argument(offsetof(SelectArguments, scores_row_stride)));
    base = ir().CreateAdd(base, ir().CreateShl(ir().CreateZExt(seen_.begin, kernel_.i64()), 2));
    const Buffer scores(kernel_, base, ir().CreateShl(count_, 2));
    Value* keys = argument(offsetof(SelectArguments, keys));
    has_keys_ = ir().CreateIsNotNull(keys);
    keys = ir().CreateAdd(keys, ir().CreateSub(base, argument(offsetof(SelectArguments, scores))));
    keys_.emplace(kernel_, keys, ir().CreateShl(count_, 2));

    number_ = ir().CreateAdd(
        ir().CreateMul(batch, kernel_.argument_i32(offsetof(SelectArguments, rows.seen.query_length))), row);
    top_k_ = kernel_.argument_i32(offsetof(SelectArguments, top_k));
    Value* bytes = ir().CreateShl(top_k_, 2);
    Value* stride = argument(offsetof(SelectArguments, indices_row_stride));
    const auto list = [&](Value* first) {
      Value* of_row = moved(kernel_, first, number_, stride);
      return moved(kernel_, of_row, kernel_.workgroup_z(), argument(offsetof(SelectArguments, part_stride)));
    };
    indices_.emplace(kernel_, list(argument(offsetof(SelectArguments, indices))), bytes);
    Value* values = argument(offsetof(SelectArguments, values));
    has_values_ = ir().CreateIsNotNull(values);
    values_.emplace(kernel_, list(values), bytes);
    row_.emplace(kernel_, scores, count_);
  }

  void clear() {
    Value* zeros = llvm::Constant::getNullValue(kernel_.vector(kernel_.i32(), 4));
    static_assert(found_at % quad_bytes == 0);
    for (int at = 0; at < found_at; at += select_threads * quad_bytes) {
      // The last ones write zeros twice rather than beyond.
      Value* offset = minimum(kernel_, ir().CreateAdd(ir().CreateShl(kernel_.thread(), 4), kernel_.constant(at)),
                              kernel_.constant(found_at - quad_bytes));
      if (at + (select_threads * quad_bytes) <= found_at) {
        lds_.write(digit_counts, zeros, offset, 0);
        continue;
      }
      const int rest_waves = ((found_at - at) + (select_lanes * quad_bytes) - 1) / (select_lanes * quad_bytes);
      language::if_uniform(kernel_, ir().CreateICmpSLT(kernel_.wave(), kernel_.constant(rest_waves)),
                           language::Likelihood::even, [&] { lds_.write(digit_counts, zeros, offset, 0); });
    }
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);
  }

  // state: the number's digits so far, how many of its equals are wanted, whether there are as many. Walks once a
  // digit.
  Values narrow(std::size_t digit, const Values& state) {
    if (digit == digits.size()) return state;
    return language::if_uniform(kernel_, state[2], language::Likelihood::even, state,
                                [&](const Values& at) { return narrow(digit + 1, count(digit, at)); });
  }

  void count_step(std::size_t which, const Histogram& histogram, Value* first, const Values& quads, Value* known) {
    for (int load = 0; load < loads; ++load) {
      const RowScores::Four four = row_->ordered(quads[static_cast<std::size_t>(load)], first, load);
      if (which == 0) {
        // What does not exist has the number 0, a digit that no score has.
        for (Value* number : four.numbers) histogram.add(number);
        continue;
      }
      std::array<Value*, quad_keys> counts_here{};
      Value* any = ir().getFalse();
      for (std::size_t each = 0; each < quad_keys; ++each) {
        counts_here[each] = candidate(which, four.numbers[each], known);
        any = ir().CreateOr(any, counts_here[each]);
      }
      language::if_uniform(kernel_, language::any_lane(kernel_, any), language::Likelihood::even, [&] {
        for (std::size_t each = 0; each < quad_keys; ++each) histogram.add(four.numbers[each], counts_here[each]);
      });
    }
  }

  Values count(std::size_t which, const Values& state) {
    const Digit digit = digits[which];
    const Histogram histogram(kernel_, lds_, digit_counts, static_cast<int>(which) * Histogram::bytes, digit);
    row_->walk({}, [&](Value* first, const Values& quads, const Values&) {
      // Waves that have no key of the row any more leave it to the others.
      Value* has_keys = ir().CreateICmpSLT(ir().CreateAdd(first, row_->wave_first()), count_);
      language::if_uniform(kernel_, has_keys, language::Likelihood::even,
                           [&] { count_step(which, histogram, first, quads, state[0]); });
      return Values{};
    });
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);

    const int at = found_at + (static_cast<int>(which) * found_bytes);
    language::if_uniform(
        kernel_, ir().CreateICmpEQ(kernel_.wave(), kernel_.constant(0)), language::Likelihood::even, [&] {
          const Histogram::End end = histogram.end_of_largest(state[1]);
          Value* entry = llvm::Constant::getNullValue(kernel_.vector(kernel_.i32(), 4));
          entry = ir().CreateInsertElement(entry, end.digit, std::uint64_t{0});
          entry = ir().CreateInsertElement(entry, end.wanted, std::uint64_t{1});
          entry = ir().CreateInsertElement(entry, ir().CreateZExt(end.reached, kernel_.i32()), std::uint64_t{2});
          lds_.write(found, entry, ir().CreateShl(kernel_.lane(), 4), at);
          language::wait_for_lds(kernel_);
        });
    language::barrier(kernel_);
    Value* entry = lds_.read(found, quad_bytes, kernel_.constant(at), 0);
    const auto part = [&](std::uint64_t each) { return kernel_.uniform(ir().CreateExtractElement(entry, each)); };
    Value* number = ir().CreateOr(state[0], ir().CreateShl(part(0), digit.shift));
    return {number, part(1), ir().CreateICmpNE(part(2), kernel_.constant(0))};
  }

  // Still to be told apart: it has the digits that are known.
  Value* candidate(std::size_t which, Value* number, Value* known) {
    const int shift = digits[which - 1].shift;
    return ir().CreateICmpEQ(ir().CreateLShr(number, shift), ir().CreateLShr(known, shift));
  }

  Value* ballot(Value* condition) {
    return ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_ballot, {kernel_.i64()}, {condition});
  }
  Value* population(Value* lanes) {
    return ir().CreateTrunc(ir().CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, lanes), kernel_.i32());
  }
  // `count` and, of `lanes`, those below this one.
  Value* with_lanes_below(Value* lanes, Value* count) {
    Value* low = ir().CreateTrunc(lanes, kernel_.i32());
    Value* high = ir().CreateTrunc(ir().CreateLShr(lanes, attention::dword_bits), kernel_.i32());
    count = ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_lo, {}, {low, count});
    return ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_hi, {}, {high, count});
  }

  // Writes the list; how many are in it.
  Value* write(Value* least, Value* equals) {
    Value* zero = kernel_.constant(0);
    const Values end = row_->walk({zero, zero, zero}, [&](Value* first, const Values& quads, const Values& at) {
      // Counts of the wave: those before each load, and all.
      std::array<RowScores::Four, loads> fours{};
      std::array<Value*, loads> larger_before{};
      std::array<Value*, loads> equal_before{};
      std::array<Value*, loads> chosen_here{};  // or perhaps
      std::array<Value*, loads> equals_here{};
      Value* larger_here = zero;
      Value* equal_here = zero;
      for (std::size_t load = 0; load < loads; ++load) {
        fours[load] = row_->ordered(quads[load], first, static_cast<int>(load));
        larger_before[load] = larger_here;
        equal_before[load] = equal_here;
        for (Value* number : fours[load].numbers) {
          larger_here = ir().CreateAdd(larger_here, population(ballot(is_larger(number, least))));
          equal_here = ir().CreateAdd(equal_here, population(ballot(is_equal(number, least))));
        }
        equals_here[load] = ir().CreateSub(equal_here, equal_before[load]);
        chosen_here[load] = ir().CreateAdd(ir().CreateSub(larger_here, larger_before[load]), equals_here[load]);
      }
      const auto [before, all] = over_waves(ir().CreateOr(larger_here, ir().CreateShl(equal_here, count_bits)), at[2]);
      const auto low = [&](Value* both) { return ir().CreateAnd(both, kernel_.constant((1 << count_bits) - 1)); };
      const auto high = [&](Value* both) { return ir().CreateLShr(both, count_bits); };
      for (std::size_t load = 0; load < loads; ++load)
        language::if_uniform(kernel_, ir().CreateICmpNE(chosen_here[load], zero), language::Likelihood::even, [&] {
          Value* larger_rank = ir().CreateAdd(ir().CreateAdd(at[0], low(before)), larger_before[load]);
          Value* equal_rank = ir().CreateAdd(ir().CreateAdd(at[1], high(before)), equal_before[load]);
          // Loads with equals are few, and take twice the work.
          Value* has_equals = ir().CreateICmpNE(equals_here[load], zero);
          language::if_uniform(kernel_, has_equals, language::Likelihood::even,
                               [&] { write_load(fours[load], least, equals, larger_rank, equal_rank, true); });
          language::if_uniform(kernel_, ir().CreateNot(has_equals), language::Likelihood::even,
                               [&] { write_load(fours[load], least, equals, larger_rank, equal_rank, false); });
        });
      return Values{ir().CreateAdd(at[0], low(all)), ir().CreateAdd(at[1], high(all)),
                    ir().CreateXor(at[2], kernel_.constant(1))};
    });
    return ir().CreateAdd(end[0], ir().CreateBinaryIntrinsic(llvm::Intrinsic::umin, end[1], equals));
  }

  Value* is_larger(Value* number, Value* least) { return ir().CreateICmpUGT(number, least); }
  // 0 is no number of a key.
  Value* is_equal(Value* number, Value* least) {
    return ir().CreateAnd(ir().CreateICmpEQ(number, least), ir().CreateICmpNE(least, kernel_.constant(0)));
  }

  // Sums of both counts over the waves before this one, and over all.
  std::pair<Value*, Value*> over_waves(Value* own, Value* turn) {
    Value* base = ir().CreateMul(turn, kernel_.constant(totals_bytes));
    Value* place = ir().CreateAdd(base, ir().CreateShl(kernel_.wave(), 2));
    lds_.write(totals, own, place, totals_at);
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);
    Value* before = kernel_.constant(0);
    Value* all = kernel_.constant(0);
    for (int wave = 0; wave < select_waves; wave += 4) {
      Value* four = lds_.read(totals, quad_bytes, base, totals_at + (4 * wave));
      for (int each = 0; each < 4; ++each) {
        Value* one = kernel_.uniform(ir().CreateExtractElement(four, static_cast<std::uint64_t>(each)));
        Value* counts_before = ir().CreateICmpSGT(kernel_.wave(), kernel_.constant(wave + each));
        before = ir().CreateAdd(before, ir().CreateSelect(counts_before, one, kernel_.constant(0)));
        all = ir().CreateAdd(all, one);
      }
    }
    return {before, all};
  }

  // That the scores stand for.
  Values keys_of(const RowScores::Four& four) {
    Values keys;
    for (int each = 0; each < quad_keys; ++each)
      keys.push_back(ir().CreateAdd(ir().CreateAdd(four.first, seen_.begin), kernel_.constant(each)));
    return language::if_uniform(kernel_, has_keys_, language::Likelihood::rarely, keys, [&](const Values&) {
      Value* quad = keys_->load(quad_bytes, ir().CreateShl(four.first, 2), kernel_.constant(0));
      Values told;
      for (std::uint64_t each = 0; each < quad_keys; ++each) told.push_back(ir().CreateExtractElement(quad, each));
      return told;
    });
  }

  // Ranks are those of the wave's first key of the load. `with_equals`: there may be some in it.
  void write_load(const RowScores::Four& four, Value* known_least, Value* equals, Value* larger_rank, Value* equal_rank,
                  bool with_equals) {
    // Compared once more: what was compared before would take the scalar registers of a mask each.
    Value* least = language::opaque(kernel_, known_least);
    const Values keys = keys_of(four);
    for (Value* number : four.numbers) {
      larger_rank = with_lanes_below(ballot(is_larger(number, least)), larger_rank);
      if (with_equals) equal_rank = with_lanes_below(ballot(is_equal(number, least)), equal_rank);
    }
    for (std::size_t each = 0; each < quad_keys; ++each) {
      Value* own_least = language::opaque(kernel_, known_least);
      Value* larger = is_larger(four.numbers[each], own_least);
      Value* place = ir().CreateAdd(larger_rank, ir().CreateBinaryIntrinsic(llvm::Intrinsic::umin, equal_rank, equals));
      larger_rank = ir().CreateAdd(larger_rank, ir().CreateZExt(larger, kernel_.i32()));
      Value* chosen = larger;
      if (with_equals) {
        Value* equal = is_equal(four.numbers[each], own_least);
        chosen = ir().CreateOr(larger, ir().CreateAnd(equal, ir().CreateICmpULT(equal_rank, equals)));
        equal_rank = ir().CreateAdd(equal_rank, ir().CreateZExt(equal, kernel_.i32()));
      }
      language::if_uniform(kernel_, language::any_lane(kernel_, chosen), language::Likelihood::even, [&] {
        Value* offset = ir().CreateSelect(chosen, ir().CreateShl(place, 2), ir().getInt32(nowhere));
        indices_->store(keys[each], offset, kernel_.constant(0));
        language::if_uniform(kernel_, has_values_, language::Likelihood::even,
                             [&] { values_->store(four.bits[each], offset, kernel_.constant(0)); });
      });
    }
  }

  // −1 behind the list, and how long it is.
  void fill_from(Value* chosen) {
    language::if_uniform(kernel_, ir().CreateICmpSLT(chosen, top_k_), language::Likelihood::even, [&] {
      language::loop_in_phases(
          kernel_, 1, {chosen},
          [&](int, const Values& at) {
            Value* place = ir().CreateAdd(at[0], kernel_.thread());
            Value* offset =
                ir().CreateSelect(ir().CreateICmpSLT(place, top_k_), ir().CreateShl(place, 2), ir().getInt32(nowhere));
            indices_->store(kernel_.constant(-1), offset, kernel_.constant(0));
            language::if_uniform(kernel_, has_values_, language::Likelihood::even, [&] {
              values_->store(ir().getInt32(minus_infinity_bits), offset, kernel_.constant(0));
            });
            return Values{ir().CreateAdd(at[0], kernel_.constant(select_threads))};
          },
          [&](const Values& at) { return ir().CreateICmpSLT(at[0], top_k_); });
    });
    Value* counts = argument(offsetof(SelectArguments, counts));
    language::if_uniform(kernel_, ir().CreateIsNotNull(counts), language::Likelihood::even, [&] {
      const Buffer one(kernel_, moved(kernel_, counts, number_, ir().getInt64(4)), kernel_.constant(4));
      Value* first = ir().CreateICmpEQ(kernel_.thread(), kernel_.constant(0));
      one.store(chosen, ir().CreateSelect(first, kernel_.constant(0), ir().getInt32(nowhere)), kernel_.constant(0));
    });
  }

  Kernel& kernel_;
  language::Lds lds_;
  RowKeys seen_{};
  Value* count_ = nullptr;   // of keys that the row sees
  Value* number_ = nullptr;  // of the row among all
  Value* top_k_ = nullptr;
  Value* has_values_ = nullptr;
  Value* has_keys_ = nullptr;
  std::optional<RowScores> row_;
  std::optional<Buffer> keys_;
  std::optional<Buffer> indices_;
  std::optional<Buffer> values_;
};

}  // namespace

families::EmittedModule emit(const SelectKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  Kernel kernel(context, target,
                {.name = families::name_of_kernel(families::texts_of(select_words), spec),
                 .threads = select_threads,
                 .waves_per_simd = select_waves / target.simds_per_compute_unit,
                 .argument_bytes = sizeof(SelectArguments)});
  (void)kernel.thread();
  (void)kernel.wave();
  (void)kernel.lane();
  SelectEmission(kernel).emit();
  return kernel.finish();
}

}  // namespace wavejit::sparse_indexer
