// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/room_lines.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "codegen/inspection.h"
#include "codegen/language/private_memory.h"
#include "codegen/link.h"
#include "codegen/lowering.h"
#include "templates/attention_forward/emit/emit.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/rules.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::tests {
namespace {

using namespace attention_forward;

bool has_kernel(const ForwardKernel& spec, const targets::Target& target) {
  return first_refusal({spec, target}, /*with_room=*/false).empty();
}

// ---- Lines

struct Walk {
  Pipeline pipeline = Pipeline::generic;
  int tile_queries = 128;
};
constexpr int rows_of_few = 32;

std::vector<Walk> walks_of(const targets::Target& target) {
  std::vector<Walk> walks;
  for (const Pipeline pipeline : all_pipelines)
    for (const int rows : tile_queries(target, pipeline)) walks.push_back({.pipeline = pipeline, .tile_queries = rows});
  return walks;
}

// The dims of each class that need most: padded ones with as many pieces as whole ones, and 40, which has a piece less than
// 56: in pages, where addresses need more than dims do, its kernels spill where those of 56 do not.
constexpr HeadDims dims_of_classes[] = {{64, 64}, {128, 128}, {192, 128}, {256, 256}, {56, 56},
                                        {40, 40}, {120, 120}, {184, 120}, {248, 248}};

// Floats of 8 bits are all widened by one kind of instruction, and integers by others: in the dual-wave pipeline now these
// and now those take a few registers more.
std::vector<AskedWords> numbers_of(const targets::Target& target) {
  const CacheType e5m2 = target.fp8 == targets::Fp8::fnuz ? CacheType::e5m2_fnuz : CacheType::e5m2;
  std::vector<AskedWords> numbers = {
      {},
      {.cache = e5m2},
      {.cache = CacheType::i8},
      {.cache = e5m2, .token_scales = true},
      {.cache = CacheType::i8, .token_scales = true},
      {.integers = true},
      {.integers = true, .half_scores = true},
      {.integers = true, .token_scales = true},
      {.integers = true, .half_scores = true, .token_scales = true},
      {.narrow_queries = true},
      {.narrow_queries = true, .token_scales = true},
  };
  const std::size_t narrow = numbers.size();
  for (std::size_t i = 0; i < narrow; ++i) {
    numbers.push_back(numbers[i]);
    numbers.back().query_fp32 = true;
  }
  return numbers;
}

// How keys are found: every set of the words, of which rules leave what there is.
std::vector<AskedWords> keys_of() {
  std::vector<AskedWords> all = {
      {}, {.trans_q = true, .trans_o = true}, {.trans_q = true, .trans_k = true, .trans_v = true, .trans_o = true}};
  for (const AskedWords& pages :
       {AskedWords{}, AskedWords{.paged = true}, AskedWords{.paged = true, .whole_tiles = true},
        AskedWords{.paged = true, .single_keys = true}, AskedWords{.paged = true, .vectorised = true}})
    for (const bool first : {false, true})
      for (const bool lists : {false, true})
        for (const bool mask : {false, true})
          for (const bool by_tile : {false, true})
            for (const bool listed : {false, true}) {
              if (first && (!pages.paged || lists)) continue;
              AskedWords words = pages;
              words.first_keys = first;
              words.block_lists = lists;
              words.bool_mask = mask;
              words.bias_by_tile = by_tile;
              words.listed = listed;
              words.slots = listed && words.paged;
              if (by_tile) words.modifiers.add(Modifier::bias);
              if (words != AskedWords{}) all.push_back(words);
            }
  return all;
}

ForwardKernel plain_kernel(const targets::Target& target, const Walk& walk, const HeadDims& dims,
                           const AskedWords& numbers, const AskedWords& keys) {
  ForwardKernel spec = {keys, {}};
  spec.head_dim_qk = dims.qk;
  spec.head_dim_v = dims.v;
  spec.cache = numbers.cache;
  spec.token_scales = numbers.token_scales;
  spec.integers = numbers.integers;
  spec.half_scores = numbers.half_scores;
  spec.narrow_queries = numbers.narrow_queries;
  spec.query_fp32 = numbers.query_fp32;
  spec.lse = true;
  spec.pipeline = walk.pipeline;
  spec.tile_queries = walk.tile_queries;
  spec.packed_heads = walk.pipeline == Pipeline::generic && !keys.block_lists;
  if (!spec.trans_o) spec.output_store = default_output_store(target);
  spec.target = target.id;
  return spec;
}

// ---- Cells

ForwardKernel kernel_of_cell(const ForwardKernel& plain, const RoomCell& cell, DataType dtype) {
  ForwardKernel spec = plain;
  spec.dtype = dtype;
  if (cell.end != RowEnd::whole) {
    spec.split_keys = spec.keys_of_chunk();
    spec.lse = false;
    spec.output_store = OutputStore::scalar;
    spec.merged = cell.end == RowEnd::merged;
  }
  const auto add = [&](std::initializer_list<Modifier> modifiers) {
    for (const Modifier each : modifiers) spec.modifiers.add(each);
  };
  switch (cell.scores) {
    case ScoreKind::plain:
      break;
    case ScoreKind::softcap:
      add({Modifier::softcap});
      break;
    case ScoreKind::alibi:
      add({Modifier::alibi});
      break;
    case ScoreKind::softcap_alibi:
      add({Modifier::softcap, Modifier::alibi});
      break;
    case ScoreKind::bias:
      add({Modifier::bias});
      break;
    case ScoreKind::wide:
      spec.bias_fp32 = true;
      [[fallthrough]];
    case ScoreKind::all:
      add({Modifier::softcap, Modifier::bias, Modifier::alibi});
      break;
  }
  constexpr Mask masks[] = {Mask::none, Mask::causal, Mask::window, Mask::chunked, Mask::causal};
  spec.mask = masks[static_cast<int>(cell.limits)];
  spec.causal_flags = cell.limits == LimitKind::flags;
  return spec;
}

// Kernels that merge parts or walk lists in the dual-wave pipeline fill the scalar registers. How
// many such a kernel needs goes up and down by a few with words that no cell has: LSE, the store of O, whether a mask is
// given. So a cell of these must do with eight scalars less.
bool is_short_of_scalars(const ForwardKernel& spec) {
  return spec.merged || (spec.pipeline == Pipeline::dualwave && spec.block_lists);
}
void keep_scalars_back(llvm::Module& module) {
  constexpr const char* scalars_with_reserved_ones = "100";  // of 108, six of which are reserved
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) function.addFnAttr("amdgpu-num-sgpr", scalars_with_reserved_ones);
}

// False: it spills, or cannot be emitted so.
bool compiles(const ForwardKernel& spec, const targets::Target& target, int budget) {
  llvm::LLVMContext context;
  auto module = emit_unasked(spec, resources_with(spec, target, budget), target, context);
  if (!module) {
    std::fprintf(stderr, "%s: %s\n", to_text(spec).c_str(), module.error().c_str());
    return false;
  }
  if (is_short_of_scalars(spec)) keep_scalars_back(**module);
  const int private_bytes = language::declared_private_bytes(**module);
  llvm::SmallVector<char, 0> object;
  const auto told = [&](const std::string& detail) {
    const bool known = detail.contains("spilled") || detail.contains("scratch") || detail.contains("registers");
    if (!known) std::fprintf(stderr, "%s: %s\n", to_text(spec).c_str(), detail.c_str());
    return false;
  };
  if (auto lowered = codegen::lower(**module, target, {}, object); !lowered) return told(lowered.error().detail);
  const auto code = codegen::link_code_object(object);
  if (!code) return told(code.error().detail);
  const auto facts = codegen::inspect(*code, target, std::nullopt, private_bytes);
  // Where LDS leaves a SIMD one wave, LLVM hands out all registers, whatever it is told.
  return facts ? facts->vgprs <= static_cast<std::uint32_t>(budget) : told(facts.error().detail);
}

// Kinds of scores by what they need, most first, where more of them need more. A bias may change the order of a kernel's
// work, and one in f32 when its tiles come.
constexpr ScoreKind wide_kinds[] = {ScoreKind::wide};
constexpr ScoreKind biased_kinds[] = {ScoreKind::all, ScoreKind::bias};
constexpr ScoreKind other_kinds[] = {ScoreKind::softcap_alibi, ScoreKind::alibi, ScoreKind::plain};
// Softcap alone may need more than beside slopes: d64 in pages of one key on gfx942 spills where both together do not.
constexpr ScoreKind capped_kinds[] = {ScoreKind::softcap};
constexpr std::span<const ScoreKind> kinds_by_need[] = {wide_kinds, biased_kinds, other_kinds, capped_kinds};
constexpr DataType types[] = {DataType::bf16, DataType::fp16};
constexpr LimitKind limits_by_need[] = {LimitKind::chunked, LimitKind::window, LimitKind::flags, LimitKind::diagonal};

// Cells of one end of a line. Parts need no more vector registers than whole rows, of which R lives from chunk to chunk.
class End {
 public:
  End(const RoomKernels& kernels, RowEnd end, const End* heavier)
      : kernels_(kernels),
        target_(*targets::find_target(kernels.plains.front().target)),
        end_(end),
        heavier_(heavier) {}

  std::string measure() {
    for (const std::span<const ScoreKind> alike : kinds_by_need) measure_cells(alike);
    for (std::size_t scores = score_kinds; scores-- > 0;) measure_none(scores);
    return text();
  }

 private:
  std::vector<RoomCell> all_places() const {
    std::vector<RoomCell> all;
    for (std::size_t scores = 0; scores < score_kinds; ++scores)
      for (std::size_t limits = 0; limits < limit_kinds; ++limits) all.push_back(at(scores, limits));
    return all;
  }
  RoomCell at(std::size_t scores, std::size_t limits) const {
    return {.end = end_, .scores = static_cast<ScoreKind>(scores), .limits = static_cast<LimitKind>(limits)};
  }
  // Rules may name types of 16 bits in no word that a line has.
  bool exists(const RoomCell& cell) const {
    const ForwardKernel spec = kernel_of_cell(plain(), cell, DataType::bf16);
    return room_line(spec, target_) == kernels_.line && room_cell(spec).place() == cell.place() &&
           has_kernel(spec, target_);
  }
  const ForwardKernel& plain() const { return kernels_.plains.front(); }
  bool all_compile(const RoomCell& cell, int budget) const {
    return std::ranges::all_of(kernels_.plains, [&](const ForwardKernel& each) {
      return std::ranges::all_of(types, [&](DataType type) {
        const ForwardKernel spec = kernel_of_cell(each, cell, type);
        return !has_kernel(spec, target_) || compiles(spec, target_, budget);
      });
    });
  }
  // The fewest of all numbers and both types.
  int waves_of(const RoomCell& cell) {
    std::optional<int>& known = cells_[cell.place()];
    if (known) return *known;
    if (end_ == RowEnd::split && !is_short_of_scalars(plain()) && heavier_ != nullptr &&
        heavier_->cells_[cell.place()].value_or(0) != 0)
      return *(known = heavier_->cells_[cell.place()]);
    known = 0;
    for (const int budget : vgpr_budgets(kernel_of_cell(plain(), cell, DataType::bf16), target_))
      if (all_compile(cell, budget)) {
        known = targets::waves_with(target_, budget);
        break;
      }
    return *known;
  }
  // Cells between one that needs most and one that needs least are like these if they agree.
  void measure_cells(std::span<const ScoreKind> scores) {
    std::vector<RoomCell> cells;
    for (const ScoreKind each : scores) {
      const std::size_t before = cells.size();
      for (const LimitKind limits : limits_by_need)
        if (const RoomCell cell{.end = end_, .scores = each, .limits = limits}; exists(cell)) cells.push_back(cell);
      // Lists of keys take no mask.
      if (const RoomCell none{.end = end_, .scores = each}; cells.size() == before && exists(none))
        cells.push_back(none);
    }
    if (cells.empty()) return;
    const int heaviest = waves_of(cells.front());
    if (waves_of(cells.back()) == heaviest) {
      for (const RoomCell& cell : cells) cells_[cell.place()] = heaviest;
      return;
    }
    if (scores.size() == 1) {
      for (const RoomCell& cell : cells) waves_of(cell);
      return;
    }
    measure_cells(scores.first(1));
    measure_cells(scores.subspan(1));
  }
  // Without a mask a kernel of the generic pipeline needs no more than with a diagonal, and is measured where that one
  // spills. Overlapped ones may need more: those of each kind that need most are measured, and all if these do.
  void measure_none(std::size_t scores) {
    const bool overlaps = plain().pipeline != Pipeline::generic;
    const auto kind = static_cast<ScoreKind>(scores);
    const bool needs_most = kind == ScoreKind::wide || kind == ScoreKind::all || kind == ScoreKind::bias ||
                            kind == ScoreKind::softcap_alibi;
    const RoomCell none = at(scores, static_cast<std::size_t>(LimitKind::none));
    const int diagonal = cells_[at(scores, static_cast<std::size_t>(LimitKind::diagonal)).place()].value_or(0);
    if (cells_[none.place()] || !exists(none)) return;
    const bool as_diagonal = diagonal != 0 && !(overlaps && (needs_most || needs_more_));
    if (as_diagonal) cells_[none.place()] = diagonal;
    needs_more_ = waves_of(none) != diagonal || needs_more_;
  }
  std::string text() const {
    std::string text;
    std::optional<char> one;
    bool alike = true;
    for (const RoomCell& cell : all_places()) {
      const auto& waves = cells_[cell.place()];
      const char digit = waves ? digit_of_waves(*waves) : unmeasured;
      if (!text.empty() && cell.limits == LimitKind::none) text += ' ';
      text += digit;
      if (digit == unmeasured) continue;
      alike = alike && (!one || *one == digit);
      one = digit;
    }
    return alike && one ? std::string(1, *one) : text;
  }

  const RoomKernels& kernels_;
  const targets::Target& target_;
  RowEnd end_;
  const End* heavier_;
  bool needs_more_ = false;  // a kernel without a mask than one with a diagonal
  std::array<std::optional<int>, cells_of_end> cells_;
};

}  // namespace

std::vector<RoomKernels> all_room_kernels(const targets::Target& target) {
  struct Line {
    AskedWords keys;
    std::vector<ForwardKernel> plains;
  };
  std::map<std::string, Line> lines;
  for (const Walk& walk : walks_of(target))
    for (const HeadDims& dims : dims_of_classes)
      for (const AskedWords& numbers : numbers_of(target))
        for (const AskedWords& keys : keys_of()) {
          const ForwardKernel spec = plain_kernel(target, walk, dims, numbers, keys);
          const std::string line = room_line(spec, target);
          if ((numbers.query_fp32 && !line.contains("q32")) || !has_kernel(spec, target)) continue;
          Line& known = lines.try_emplace(line, keys).first->second;
          if (known.keys != keys) continue;
          known.plains.push_back(spec);
          // Kernels of few rows that keep registers in accumulators may spill one or two more or less with words that no
          // cell has.
          if (walk.tile_queries != rows_of_few) continue;
          for (const auto& [rows, lse] :
               {std::pair{QueriesOf::few, true}, {QueriesOf::all, false}, {QueriesOf::few, false}}) {
            ForwardKernel other = spec;
            other.rows = rows;
            other.lse = lse;
            if (has_kernel(other, target)) known.plains.push_back(other);
          }
        }
  std::vector<RoomKernels> all;
  all.reserve(lines.size());
  for (auto& [line, known] : lines) all.push_back({.line = line, .plains = std::move(known.plains)});
  return all;
}

RoomTexts measure_room(const RoomKernels& kernels) {
  RoomTexts texts;
  std::optional<End> whole;
  for (const RowEnd end : all_row_ends) {
    End cells(kernels, end, whole ? &*whole : nullptr);
    texts[static_cast<std::size_t>(end)] = cells.measure();
    if (!whole) whole.emplace(cells);
  }
  return texts;
}

}  // namespace wavejit::tests
