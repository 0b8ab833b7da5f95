// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ScoresKernel → IR, where each wave reads its keys itself.
//
// A wave has one row, whose queries stay in registers (score_row.h). Nothing crosses waves, and no LDS is used.
//
// Keys come from memory into registers, a tile of 32 at a time, two tiles ahead. A lane reads its own key, wherever it
// stands: dense, or in the page that the block table names, whose entry it has asked for two tiles before that. A lane
// whose key the row does not see reads the nearest one that it sees, and its score is −∞.
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "templates/attention/emit/integers.h"
#include "templates/sparse_indexer/emit/emit.h"
#include "templates/sparse_indexer/emit/key_places.h"
#include "templates/sparse_indexer/emit/score_row.h"
#include "templates/sparse_indexer/emit/shared_scores.h"

namespace wavejit::sparse_indexer {
namespace {

using attention::maximum;
using attention::minimum;
using language::Accumulator;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int phases = 2;

// What a lane knows of one tile: half of a key as memory has it, its scale, and the entry of the tile that comes into
// its place.
struct Tile {
  KeyHalf key;
  Value* scale;
  Value* entry;  // of pages, else null
};

class ScoresEmission {
 public:
  ScoresEmission(Kernel& kernel, const ScoresKernel& spec) : kernel_(kernel), spec_(spec), row_(kernel, spec) {}

  void emit() {
    place();
    Value* from = maximum(kernel_, first_tile_, row_.first_seen());
    Value* to = minimum(kernel_, end_tile_, row_.behind_seen());
    language::if_uniform(kernel_, ir().CreateICmpSLT(from, to), language::Likelihood::even, [&] {
      row_.load();
      keys_.emplace(kernel_, spec_, batch_, row_.seen());
      walk(from, to);
    });
    Value* fills = kernel_.argument_i32(offsetof(ScoresArguments, fill_hidden));
    language::if_uniform(kernel_, ir().CreateICmpNE(fills, kernel_.constant(0)), language::Likelihood::even, [&] {
      row_.fill(first_tile_, minimum(kernel_, end_tile_, row_.first_seen()));
      row_.fill(maximum(kernel_, first_tile_, row_.behind_seen()), end_tile_);
    });
  }

 private:
  llvm::IRBuilder<>& ir() { return kernel_.ir(); }

  // Which row and which tiles the wave has; ends those that have none.
  void place() {
    Value* shift = kernel_.argument_i32(offsetof(ScoresArguments, rows_shift));
    Value* one = kernel_.constant(1);
    Value* in_group = ir().CreateAnd(kernel_.wave(), ir().CreateSub(ir().CreateShl(one, shift), one));
    Value* row = ir().CreateAdd(kernel_.argument_i32(offsetof(ScoresArguments, rows.first_row)),
                                ir().CreateAdd(ir().CreateShl(kernel_.workgroup_x(), shift), in_group));
    batch_ = ir().CreateAdd(kernel_.argument_i32(offsetof(ScoresArguments, rows.first_batch)), kernel_.workgroup_z());
    language::leave_if(kernel_, ir().CreateICmpSGE(row, kernel_.argument_i32(offsetof(ScoresArguments, rows.end_row))));

    Value* runs = ir().CreateLShr(kernel_.constant(scores_waves), shift);
    Value* run = ir().CreateAdd(ir().CreateMul(kernel_.workgroup_y(), runs), ir().CreateLShr(kernel_.wave(), shift));
    Value* tiles = kernel_.argument_i32(offsetof(ScoresArguments, wave_tiles));
    first_tile_ = ir().CreateMul(run, tiles);
    Value* all = tiles_of(kernel_, kernel_.argument_i32(offsetof(ScoresArguments, rows.seen.key_length)));
    end_tile_ = minimum(kernel_, ir().CreateAdd(first_tile_, tiles), all);
    row_.place(batch_, row);
  }

  // Per lane: its key of a tile, or the nearest that the row sees.
  Value* key_of(Value* tile) { return keys_->in_range(ir().CreateAdd(ir().CreateShl(tile, tile_bits), row_.column())); }
  Value* entry_of(Value* tile) { return spec_.paged ? keys_->entry_of(key_of(tile)) : nullptr; }

  Tile load(Value* tile, Value* entry) {
    const KeyPlaces::Place place = keys_->place_of(key_of(tile), entry);
    const int bytes = in_pairs() ? load_bytes : stored_bytes(spec_, load_bytes);
    Value* of_half = ir().CreateShl(row_.half(), in_pairs() ? load_bits : stored_bits(spec_));
    Value* address = ir().CreateAdd(place.key, ir().CreateZExt(of_half, kernel_.i64()));
    Tile loaded{};
    for (std::size_t load = 0; load < loads(); ++load) {
      const auto at = load * 2 * static_cast<std::uint64_t>(bytes);
      loaded.key[load] = language::load_lanes(kernel_, ir().CreateAdd(address, ir().getInt64(at)), bytes);
    }
    loaded.scale = keys_->load_scale(place.scale);
    return loaded;
  }

  // In 8 bits a lane's 16 bytes are two steps', of which the lane half has one whole: halves of lanes that change
  // places make each lane's part of both. Where nothing swaps them, loads are half as long.
  bool in_pairs() const { return spec_.widens() && kernel_.target().permlane32_swap; }
  std::size_t loads() const { return in_pairs() ? steps / 2 : steps; }
  KeyHalf as_multiplied(const KeyHalf& loaded) {
    KeyHalf key{};
    for (std::size_t load = 0; load < loads(); ++load) {
      if (!in_pairs()) {
        key[load] = widened(kernel_, spec_, loaded[load]);
        continue;
      }
      const auto dword = [&](std::uint64_t at) { return ir().CreateExtractElement(loaded[load], at); };
      const auto [first, third] = language::swap_halves(kernel_, dword(0), dword(2));
      const auto [second, fourth] = language::swap_halves(kernel_, dword(1), dword(3));
      key[2 * load] = widened(kernel_, spec_, language::gather_dwords(kernel_, std::array{first, second}));
      key[(2 * load) + 1] = widened(kernel_, spec_, language::gather_dwords(kernel_, std::array{third, fourth}));
    }
    return key;
  }

  void walk(Value* from, Value* to) {
    const auto plus = [&](Value* tile, int more) { return ir().CreateAdd(tile, kernel_.constant(more)); };
    std::array<Value*, phases> first{};
    for (int phase = 0; phase < phases; ++phase) first[static_cast<std::size_t>(phase)] = entry_of(plus(from, phase));
    Values state = {from};
    for (int phase = 0; phase < phases; ++phase) {
      Tile tile = load(plus(from, phase), first[static_cast<std::size_t>(phase)]);
      tile.entry = entry_of(plus(from, phases + phase));
      put(state, tile);
    }
    language::loop_in_phases(
        kernel_, phases, state,
        [&](int phase, const Values& at) {
          Values next = at;
          const Tile tile = tile_in(at, phase);
          const std::vector<Accumulator> products = row_.multiply(as_multiplied(tile.key));
          // The next but one takes its place.
          Tile later = load(plus(at[0], phases), tile.entry);
          later.entry = entry_of(plus(at[0], 2 * phases));
          put_at(next, phase, later);
          row_.store(at[0], ir().CreateFMul(row_.sum_of(products), tile.scale));
          next[0] = plus(at[0], 1);
          return next;
        },
        [&](const Values& at) { return ir().CreateICmpSLT(at[0], to); });
  }

  std::size_t values_of_tile() const { return loads() + (spec_.paged ? 2 : 1); }
  void put(Values& state, const Tile& tile) const {
    state.insert(state.end(), tile.key.begin(), tile.key.begin() + static_cast<std::ptrdiff_t>(loads()));
    state.push_back(tile.scale);
    if (spec_.paged) state.push_back(tile.entry);
  }
  std::size_t place_in(int phase) const { return 1 + (static_cast<std::size_t>(phase) * values_of_tile()); }
  void put_at(Values& state, int phase, const Tile& tile) const {
    Values values;
    put(values, tile);
    std::ranges::copy(values, state.begin() + static_cast<std::ptrdiff_t>(place_in(phase)));
  }
  Tile tile_in(const Values& state, int phase) const {
    const std::size_t at = place_in(phase);
    Tile tile{};
    for (std::size_t load = 0; load < loads(); ++load) tile.key[load] = state[at + load];
    tile.scale = state[at + loads()];
    tile.entry = spec_.paged ? state[at + loads() + 1] : nullptr;
    return tile;
  }

  Kernel& kernel_;
  const ScoresKernel& spec_;
  ScoreRow row_;
  std::optional<KeyPlaces> keys_;
  Value* batch_ = nullptr;
  Value* first_tile_ = nullptr;
  Value* end_tile_ = nullptr;
};

}  // namespace

families::EmittedModule emit(const ScoresKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  Kernel kernel(context, target,
                {.name = families::name_of_kernel(families::texts_of(scores_words), spec),
                 .threads = scores_threads,
                 .waves_per_simd = scores_waves_per_simd(spec.blocks),
                 .argument_bytes = sizeof(ScoresArguments)});
  // Ids are made where they are first asked for: here, where every block can see them.
  (void)kernel.wave();
  (void)kernel.lane();
  if (spec.shared)
    emit_shared_scores(kernel, spec);
  else
    ScoresEmission(kernel, spec).emit();
  return kernel.finish();
}

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<ScoresKernel>, families::emitter_of<SelectKernel>};
  return all;
}

}  // namespace wavejit::sparse_indexer
