// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SelectKernel → IR.
//
// A workgroup has one row. Scores become 32-bit numbers that ascend with them (ordered): a digit of 11, 11 and 10 bits
// at a time, all waves count in LDS how often each digit occurs among the scores that are still candidates, and one
// wave finds the digit in which the k-th largest lies. So the k-th largest number is known after three walks of the
// row, and how many of its equals belong to the k.
//
// The fourth walk writes. Waves take neighbouring runs of keys; ballots and one sum over waves tell each key how many
// before it are chosen, which is its place in the list. Equals are chosen from the lowest key up.
#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <array>
#include <functional>
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

namespace wavejit::sparse_indexer {
namespace {

using attention::minimum;
using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int quad_keys = 4;  // of a lane's load
constexpr int quad_bytes = 16;
constexpr int loads = 2;  // of a lane at a time
constexpr int load_keys = select_lanes * quad_keys;
constexpr int wave_keys = load_keys * loads;
constexpr int walk_keys = wave_keys * select_waves;

constexpr std::array<Digit, 3> digits = {
    {{.shift = 21, .bits = 11}, {.shift = 10, .bits = 11}, {.shift = 0, .bits = 10}}};

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

constexpr int magnitude_bits = 31;
constexpr std::uint32_t nan_number = 0xFFFFFFFF;

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
    count_ = ir().CreateSub(seen_.end, seen_.begin);
    Value* base = moved(kernel_, argument(offsetof(SelectArguments, scores)), batch,
                        argument(offsetof(SelectArguments, scores_batch_stride)));
    base = moved(kernel_, base, row, argument(offsetof(SelectArguments, scores_row_stride)));
    base = ir().CreateAdd(base, ir().CreateShl(ir().CreateZExt(seen_.begin, kernel_.i64()), 2));
    scores_.emplace(kernel_, base, ir().CreateShl(count_, 2));

    number_ =
        ir().CreateAdd(ir().CreateMul(batch, kernel_.argument_i32(offsetof(SelectArguments, rows.query_length))), row);
    top_k_ = kernel_.argument_i32(offsetof(SelectArguments, top_k));
    Value* bytes = ir().CreateShl(top_k_, 2);
    Value* stride = argument(offsetof(SelectArguments, indices_row_stride));
    indices_.emplace(kernel_, moved(kernel_, argument(offsetof(SelectArguments, indices)), number_, stride), bytes);
    Value* values = argument(offsetof(SelectArguments, values));
    has_values_ = ir().CreateIsNotNull(values);
    values_.emplace(kernel_, moved(kernel_, values, number_, stride), bytes);
    wave_first_ = ir().CreateMul(kernel_.wave(), kernel_.constant(wave_keys));
    lane_first_ = ir().CreateAdd(wave_first_, ir().CreateShl(kernel_.lane(), 2));
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

  // Scores of load `load` of a lane, from key `first` of the walk on: as f32 bits and as numbers that ascend with them.
  struct Four {
    Value* first;  // key of the row's
    std::array<Value*, quad_keys> bits;
    std::array<Value*, quad_keys> numbers;
  };
  Value* read(Value* first, int load) {
    Value* key = ir().CreateAdd(lane_first_, ir().CreateAdd(first, kernel_.constant(load * load_keys)));
    return scores_->load(quad_bytes, ir().CreateShl(key, 2), kernel_.constant(0));
  }
  Four ordered(Value* quad, Value* first, int load) {
    Four four{};
    four.first = ir().CreateAdd(lane_first_, ir().CreateAdd(first, kernel_.constant(load * load_keys)));
    Value* zero = kernel_.constant(0);
    for (int each = 0; each < quad_keys; ++each) {
      Value* bits = ir().CreateExtractElement(quad, static_cast<std::uint64_t>(each));
      Value* score = ir().CreateBitCast(bits, kernel_.f32());
      // −0 is +0.
      Value* same = ir().CreateBitCast(ir().CreateFAdd(score, kernel_.constant(0.0F)), kernel_.i32());
      Value* flipped =
          ir().CreateXor(same, ir().CreateOr(ir().CreateAShr(same, magnitude_bits), ir().getInt32(0x80000000)));
      Value* number = ir().CreateSelect(ir().CreateFCmpUNO(score, score), ir().getInt32(nan_number), flipped);
      Value* exists = ir().CreateAnd(ir().CreateICmpSLT(ir().CreateAdd(four.first, kernel_.constant(each)), count_),
                                     ir().CreateICmpNE(bits, ir().getInt32(minus_infinity_bits)));
      four.bits[static_cast<std::size_t>(each)] = bits;
      four.numbers[static_cast<std::size_t>(each)] = ir().CreateSelect(exists, number, zero);
    }
    return four;
  }

  // body(first key of the walk's step, state) over the row; state 0 is that key.
  Values walk(const Values& initial, const std::function<Values(Value*, const Values&)>& body) {
    Values state = {kernel_.constant(0)};
    state.insert(state.end(), initial.begin(), initial.end());
    const Values end =
        language::if_uniform(kernel_, ir().CreateICmpSGT(count_, kernel_.constant(0)), language::Likelihood::even,
                             state, [&](const Values& start) {
                               return language::loop_in_phases(
                                   kernel_, 1, start,
                                   [&](int, const Values& at) {
                                     Values next = body(at[0], Values(at.begin() + 1, at.end()));
                                     next.insert(next.begin(), ir().CreateAdd(at[0], kernel_.constant(walk_keys)));
                                     return next;
                                   },
                                   [&](const Values& at) { return ir().CreateICmpSLT(at[0], count_); });
                             });
    return {end.begin() + 1, end.end()};
  }

  // state: the number's digits so far, how many of its equals are wanted, whether there are as many. Walks once a
  // digit.
  Values narrow(std::size_t digit, const Values& state) {
    if (digit == digits.size()) return state;
    return language::if_uniform(kernel_, state[2], language::Likelihood::even, state,
                                [&](const Values& at) { return narrow(digit + 1, count(digit, at)); });
  }

  Values count(std::size_t which, const Values& state) {
    const Digit digit = digits[which];
    const Histogram histogram(kernel_, lds_, digit_counts, static_cast<int>(which) * Histogram::bytes, digit);
    walk({}, [&](Value* first, const Values&) {
      std::array<Value*, loads> quads{};
      for (int load = 0; load < loads; ++load) quads[static_cast<std::size_t>(load)] = read(first, load);
      for (int load = 0; load < loads; ++load) {
        const Four four = ordered(quads[static_cast<std::size_t>(load)], first, load);
        for (Value* number : four.numbers) {
          Value* counts_here = candidate(which, number, state[0]);
          if (which == 0) {
            histogram.add(number, counts_here);
            continue;
          }
          language::if_uniform(kernel_, language::any_lane(kernel_, counts_here), language::Likelihood::even,
                               [&] { histogram.add(number, counts_here); });
        }
      }
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

  // Still to be told apart: it exists, and has the digits that are known.
  Value* candidate(std::size_t which, Value* number, Value* known) {
    if (which == 0) return ir().CreateICmpNE(number, kernel_.constant(0));
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
    const Values end = walk({zero, zero, zero}, [&](Value* first, const Values& at) {
      std::array<Value*, loads> quads{};
      for (int load = 0; load < loads; ++load) quads[static_cast<std::size_t>(load)] = read(first, load);
      // Of the wave: those before each load, and all.
      std::array<Four, loads> fours{};
      std::array<Value*, loads> larger_before{};
      std::array<Value*, loads> equal_before{};
      Value* larger_here = zero;
      Value* equal_here = zero;
      for (std::size_t load = 0; load < loads; ++load) {
        fours[load] = ordered(quads[load], first, static_cast<int>(load));
        larger_before[load] = larger_here;
        equal_before[load] = equal_here;
        for (Value* number : fours[load].numbers) {
          larger_here = ir().CreateAdd(larger_here, population(ballot(is_larger(number, least))));
          equal_here = ir().CreateAdd(equal_here, population(ballot(is_equal(number, least))));
        }
      }
      const auto [before, all] = over_waves(ir().CreateOr(larger_here, ir().CreateShl(equal_here, count_bits)), at[2]);
      const auto low = [&](Value* both) { return ir().CreateAnd(both, kernel_.constant((1 << count_bits) - 1)); };
      const auto high = [&](Value* both) { return ir().CreateLShr(both, count_bits); };
      Value* any = ir().CreateICmpNE(ir().CreateOr(larger_here, equal_here), zero);
      language::if_uniform(kernel_, any, language::Likelihood::even, [&] {
        for (std::size_t load = 0; load < loads; ++load) {
          Value* larger_rank = ir().CreateAdd(ir().CreateAdd(at[0], low(before)), larger_before[load]);
          Value* equal_rank = ir().CreateAdd(ir().CreateAdd(at[1], high(before)), equal_before[load]);
          write_load(fours[load], least, equals, larger_rank, equal_rank);
        }
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

  // Of the waves before this one, and of all: sums of both counts.
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

  // Ranks are those of the wave's first key of the load.
  void write_load(const Four& four, Value* known_least, Value* equals, Value* larger_rank, Value* equal_rank) {
    // Compared once more: what was compared before would take the scalar registers of a mask each.
    Value* least = language::opaque(kernel_, known_least);
    for (Value* number : four.numbers) {
      larger_rank = with_lanes_below(ballot(is_larger(number, least)), larger_rank);
      equal_rank = with_lanes_below(ballot(is_equal(number, least)), equal_rank);
    }
    for (std::size_t each = 0; each < quad_keys; ++each) {
      Value* own_least = language::opaque(kernel_, known_least);
      Value* larger = is_larger(four.numbers[each], own_least);
      Value* equal = is_equal(four.numbers[each], own_least);
      Value* chosen = ir().CreateOr(larger, ir().CreateAnd(equal, ir().CreateICmpULT(equal_rank, equals)));
      Value* place = ir().CreateAdd(larger_rank, ir().CreateBinaryIntrinsic(llvm::Intrinsic::umin, equal_rank, equals));
      larger_rank = ir().CreateAdd(larger_rank, ir().CreateZExt(larger, kernel_.i32()));
      equal_rank = ir().CreateAdd(equal_rank, ir().CreateZExt(equal, kernel_.i32()));
      language::if_uniform(kernel_, language::any_lane(kernel_, chosen), language::Likelihood::even, [&] {
        Value* offset = ir().CreateSelect(chosen, ir().CreateShl(place, 2), ir().getInt32(nowhere));
        Value* key = ir().CreateAdd(ir().CreateAdd(four.first, seen_.begin), kernel_.constant(static_cast<int>(each)));
        indices_->store(key, offset, kernel_.constant(0));
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
  Value* wave_first_ = nullptr;
  Value* lane_first_ = nullptr;  // of a step's keys, the lane's first
  std::optional<Buffer> scores_;
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
