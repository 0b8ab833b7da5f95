// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/mask.h"

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>

#include "codegen/language/control.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/kernel/marked_tile.h"

namespace wavejit::attention {
namespace {

using language::Accumulator;
using language::Kernel;
using language::Value;
using language::Values;

// Where `compares`, a uniform condition, holds: scores of keys for which `edge hides key` become −inf. `edge` is per
// lane and counts from the first key of the lane's own group: one register, compared with a constant per score.
// Thresholds up to 64 are inline constants. Where lanes own keys, rows take the keys' part. `seen`, uniform: all become
// −inf unless it holds, without a comparison. Null: it holds.
void hide(Kernel& kernel, Value* compares, Value* seen, const std::function<Value*()>& edge,
          llvm::CmpInst::Predicate hides, std::span<Accumulator> scores, std::size_t first_part) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Values values;
  for (const Accumulator& part : scores) values.push_back(part.value);
  const language::AccumulatorLayout& layout = scores.front().layout;
  // `is_hidden` says whether a key of the tile is hidden.
  const auto hide_where = [&](const Values& before, const auto& is_hidden) {
    Value* hidden = kernel.constant(-std::numeric_limits<float>::infinity());
    Values after;
    for (std::size_t part = 0; part < before.size(); ++part) {
      Value* masked = before[part];
      for (int r = 0; r < layout.registers(); ++r) {
        const int key = static_cast<int>(first_part + part) * layout.rows + layout.row_of_register(r);
        Value* score = ir.CreateExtractElement(before[part], r);
        masked = ir.CreateInsertElement(masked, ir.CreateSelect(is_hidden(key), hidden, score), r);
      }
      after.push_back(masked);
    }
    return after;
  };
  const auto compared = [&](const Values& before) {
    Value* bound = edge();
    return hide_where(before, [&](int key) { return ir.CreateICmp(hides, bound, kernel.constant(key)); });
  };
  if (seen == nullptr) {
    values = language::if_uniform(kernel, compares, language::Likelihood::even, values, compared);
  } else {
    // One branch where nothing is hidden.
    Value* unseen = ir.CreateNot(seen);
    Value* needed = ir.CreateOr(compares, unseen);
    values = language::if_uniform(kernel, needed, language::Likelihood::even, values, [&](const Values& before) {
      const Values shown =
          language::if_uniform(kernel, unseen, language::Likelihood::even, before,
                               [&](const Values& all) { return hide_where(all, [&](int) { return unseen; }); });
      return language::if_uniform(kernel, seen, language::Likelihood::even, shown, compared);
    });
  }
  for (std::size_t part = 0; part < scores.size(); ++part) scores[part].value = values[part];
}

}  // namespace

Marks marks_of(Kernel& kernel, const QueryTile& queries, Value* marked) {
  if (queries.block == nullptr) return {};
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto is_set = [&](int bits) {
    Value* own = ir.CreateShl(kernel.constant(bits), queries.block);
    return ir.CreateICmpNE(ir.CreateAnd(marked, own), kernel.constant(0));
  };
  return {.sees = is_set(1 << masked_bit | 1 << whole_bit), .whole = is_set(1 << whole_bit)};
}

Value* tile_of(Kernel& kernel, const QueryTile& queries, Value* tile) {
  if (queries.block == nullptr) return tile;
  return kernel.ir().CreateAnd(tile, kernel.ir().getInt32(marked_tile_number));
}

void apply_mask(Kernel& kernel, const QueryTile& queries, Value* marked, std::span<Accumulator> scores,
                std::size_t first_part) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const Marks marks = marks_of(kernel, queries, marked);
  Value* tile = tile_of(kernel, queries, marked);
  Value* first_key = ir.CreateMul(tile, kernel.constant(tile_keys));
  Value* last_key = ir.CreateAdd(first_key, kernel.constant(tile_keys - 1));
  // From the tile's first key to that of the lane's group.
  const auto in_group = [&](const LanePlace& place, Value* in_tile) {
    return ir.CreateSub(in_tile, ir.CreateMul(place.lane_group, kernel.constant(scores.front().layout.row_block)));
  };
  const auto limit = [&] {
    const LanePlace place = lane_place(kernel, queries);
    Value* row_limit = queries.last_key;
    if (queries.limit_offset) {
      Value* last = last_key_at(kernel, queries.kind, ir.CreateAdd(place.row, queries.limit_offset));
      Value* of_mask = minimum(kernel, last, row_limit);
      row_limit = marks.whole ? ir.CreateSelect(marks.whole, row_limit, of_mask) : of_mask;
    }
    if (marks.sees && !queries.unseen_tiles) row_limit = ir.CreateSelect(marks.sees, row_limit, kernel.constant(-1));
    return in_group(place, ir.CreateSub(row_limit, first_key));
  };
  // Whether a wave sees a tile is a branch of its own where many are unseen, else a limit that nothing reaches.
  Value* seen = queries.unseen_tiles ? marks.sees : nullptr;
  Value* reaches_past = ir.CreateICmpSGT(last_key, queries.wave_limit);
  if (marks.sees) {
    Value* wave_limit = ir.CreateSelect(marks.whole, queries.last_key, queries.wave_limit);
    reaches_past = ir.CreateICmpSGT(last_key, wave_limit);
    if (!queries.unseen_tiles) reaches_past = ir.CreateOr(reaches_past, ir.CreateNot(marks.sees));
  }
  hide(kernel, reaches_past, seen, limit, llvm::CmpInst::ICMP_SLT, scores, first_part);
  if (queries.begin_offset) {
    const auto begin = [&] {
      const LanePlace place = lane_place(kernel, queries);
      if (!queries.kind) return in_group(place, ir.CreateAdd(place.row, ir.CreateSub(queries.begin_offset, first_key)));
      Value* first = first_key_at(kernel, queries.kind, ir.CreateAdd(place.row, queries.begin_offset));
      return in_group(place, ir.CreateSub(first, first_key));
    };
    Value* begins_before = ir.CreateICmpSLT(first_key, queries.wave_begin);
    if (marks.whole) begins_before = ir.CreateAnd(begins_before, ir.CreateNot(marks.whole));
    hide(kernel, begins_before, nullptr, begin, llvm::CmpInst::ICMP_SGT, scores, first_part);
  }
}

void hide_by_bits(Kernel& kernel, const QueryTile& queries, Value* marked, Value* bits, std::span<Accumulator> scores,
                  std::size_t first_part) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const language::AccumulatorLayout& layout = scores.front().layout;
  const Marks marks = marks_of(kernel, queries, marked);
  Values values;
  for (const Accumulator& part : scores) values.push_back(part.value);
  values = language::if_uniform(
      kernel, ir.CreateAnd(marks.sees, ir.CreateNot(marks.whole)), language::Likelihood::even, values,
      [&](const Values& before) {
        // Bits of the lane's own keys, from bit 0 on.
        Value* group = lane_place(kernel, queries).lane_group;
        Value* shift = ir.CreateMul(group, kernel.constant(layout.row_block));
        std::array<Value*, tile_keys / dword_bits> own{};
        for (std::uint64_t dword = 0; dword < own.size(); ++dword)
          own[dword] = ir.CreateLShr(ir.CreateExtractElement(bits, dword), shift);
        Value* hidden = ir.getInt32(std::bit_cast<std::uint32_t>(-std::numeric_limits<float>::infinity()));
        Values after;
        for (std::size_t part = 0; part < before.size(); ++part) {
          Value* masked = before[part];
          for (int r = 0; r < layout.registers(); ++r) {
            const int key = static_cast<int>(first_part + part) * layout.rows + layout.row_of_register(r);
            // All ones where it is set: two operations a score, one that spreads a bit, one that takes bits of either.
            Value* dword = own[static_cast<std::size_t>(key / dword_bits)];
            Value* seen = ir.CreateAShr(ir.CreateShl(dword, kernel.constant(dword_bits - 1 - key % dword_bits)),
                                        kernel.constant(dword_bits - 1));
            Value* score = ir.CreateBitCast(ir.CreateExtractElement(before[part], r), kernel.i32());
            Value* shown = ir.CreateOr(ir.CreateAnd(score, seen), ir.CreateAnd(hidden, ir.CreateNot(seen)));
            masked = ir.CreateInsertElement(masked, ir.CreateBitCast(shown, kernel.f32()), r);
          }
          after.push_back(masked);
        }
        return after;
      });
  for (std::size_t part = 0; part < scores.size(); ++part) scores[part].value = values[part];
}

void hide_rows(Kernel& kernel, const KeyLimits& limits, Value* first_key, Value* first_row, Accumulator& scores) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto edge_of = [&](Value* limit) {
    return [&, limit] {
      const LaneKey own = lane_key(kernel, first_key);
      Value* edge = ir.CreateSub(ir.CreateSub(own.key, limit), first_row);
      return ir.CreateSub(edge, ir.CreateMul(own.lane_group, kernel.constant(scores.layout.row_block)));
    };
  };
  // Rows before the first that sees the key. All rows see it where the last key of the block is seen by the first row.
  if (limits.to_limit) {
    Value* last_key = ir.CreateAdd(first_key, kernel.constant(scores.layout.columns - 1));
    hide(kernel, ir.CreateICmpSGT(ir.CreateSub(last_key, limits.to_limit), first_row), nullptr,
         edge_of(limits.to_limit), llvm::CmpInst::ICMP_SGT, {&scores, 1}, 0);
  }
  // And behind the last.
  if (limits.to_begin) {
    Value* last_row = ir.CreateAdd(first_row, kernel.constant(scores.layout.rows - 1));
    hide(kernel, ir.CreateICmpSLT(ir.CreateSub(first_key, limits.to_begin), last_row), nullptr,
         edge_of(limits.to_begin), llvm::CmpInst::ICMP_SLT, {&scores, 1}, 0);
  }
}

}  // namespace wavejit::attention
