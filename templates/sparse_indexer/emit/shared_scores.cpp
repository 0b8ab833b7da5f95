// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ScoresKernel → IR, where the rows of a workgroup share their keys: for many rows of a sequence.
//
// A workgroup has four neighbouring rows, one a wave, whose queries stay in registers (score_row.h), and walks the
// tiles that some of its rows see. A tile stands in LDS once for all of them: fetched in whole lines, 16 lanes to a
// key, and read by each wave as the products want it. Where each wave reads keys itself a lane has a line of its own
// for each 16 bytes, and that is what all wait for.
//
// Two tiles stand in LDS. While one is multiplied, the next is written, and two more are on their way in registers; of
// pages, entries two tiles ahead of these. Keys of a tile that none of the rows sees are not read: the nearest one is.
//
// Arithmetic is that of scores.cpp, instruction for instruction: who shares keys shows in no bit.
#include "templates/sparse_indexer/emit/shared_scores.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <array>
#include <optional>

#include "codegen/language/control.h"
#include "codegen/language/lds.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/sparse_indexer/emit/key_places.h"
#include "templates/sparse_indexer/emit/score_row.h"

namespace wavejit::sparse_indexer {
namespace {

using attention::maximum;
using attention::minimum;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int tiles_in_lds = 2;
// Lanes that fetch a key, and how often all threads fetch.
constexpr int key_lanes_bits = 4;
constexpr int key_lanes = row_bytes / load_bytes;
static_assert(key_lanes == 1 << key_lanes_bits);
constexpr int fetched_keys = scores_threads / key_lanes;
constexpr std::size_t fetches = tile_keys / fetched_keys;
// Keys stand 16 bytes further apart than they are long: eight lanes that read eight keys' same columns find eight
// different groups of banks.
constexpr int key_pitch = row_bytes + load_bytes;
constexpr int tile_bytes = tile_keys * key_pitch;
// What each wave's row wants, for all: an entry of 16 bytes for each lane of it, of which the first is read. Before the
// walk, where its tiles stand.
constexpr int wanted_bytes = (scores_threads / scores_waves) * load_bytes;
constexpr int shared_lds_bytes = tiles_in_lds * tile_bytes;
static_assert(scores_waves * wanted_bytes <= shared_lds_bytes);
constexpr int nothing_begins = 0x7FFFFFFF;

class SharedScores {
 public:
  SharedScores(Kernel& kernel, const ScoresKernel& spec)
      : kernel_(kernel), spec_(spec), row_(kernel, spec), lds_(kernel, shared_lds_bytes, tiles_in_lds) {}

  void emit() {
    place();
    const Wanted all = wanted_by_all();
    language::if_uniform(kernel_, ir().CreateICmpSLT(all.from, all.to), language::Likelihood::even, [&] {
      row_.load();
      keys_.emplace(kernel_, spec_, batch_, all.range);
      walk(all.from, all.to);
    });
    Value* fills = ir().CreateICmpNE(kernel_.argument_i32(offsetof(ScoresArguments, fill_hidden)), kernel_.constant(0));
    language::if_uniform(kernel_, ir().CreateAnd(fills, exists_), language::Likelihood::even, [&] {
      row_.fill(first_tile_, minimum(kernel_, end_tile_, row_.first_seen()));
      row_.fill(maximum(kernel_, first_tile_, row_.behind_seen()), end_tile_);
    });
  }

 private:
  llvm::IRBuilder<>& ir() { return kernel_.ir(); }
  Value* plus(Value* number, int more) { return ir().CreateAdd(number, kernel_.constant(more)); }

  // Which row the wave has, and which of its tiles are the workgroup's. The last rows come first: with a causal mask
  // they have the most keys. A wave without a row goes with the others as one that sees nothing.
  void place() {
    Value* first = kernel_.argument_i32(offsetof(ScoresArguments, rows.first_row));
    Value* end = kernel_.argument_i32(offsetof(ScoresArguments, rows.end_row));
    Value* groups = ir().CreateLShr(plus(ir().CreateSub(end, first), scores_waves - 1), shared_rows_shift);
    Value* group = ir().CreateSub(plus(groups, -1), kernel_.workgroup_x());
    Value* row = ir().CreateAdd(first, ir().CreateAdd(ir().CreateShl(group, shared_rows_shift), kernel_.wave()));
    exists_ = ir().CreateICmpSLT(row, end);
    row = minimum(kernel_, row, plus(end, -1));
    batch_ = ir().CreateAdd(kernel_.argument_i32(offsetof(ScoresArguments, rows.first_batch)), kernel_.workgroup_z());
    Value* tiles = kernel_.argument_i32(offsetof(ScoresArguments, wave_tiles));
    first_tile_ = ir().CreateMul(kernel_.workgroup_y(), tiles);
    Value* all = tiles_of(kernel_, kernel_.argument_i32(offsetof(ScoresArguments, rows.seen.key_length)));
    end_tile_ = minimum(kernel_, ir().CreateAdd(first_tile_, tiles), all);
    row_.place(batch_, row, exists_);
    own_from_ = maximum(kernel_, first_tile_, row_.first_seen());
    own_to_ = minimum(kernel_, end_tile_, row_.behind_seen());
    Value* sees = ir().CreateAnd(exists_, ir().CreateICmpSLT(own_from_, own_to_));
    own_from_ = ir().CreateSelect(sees, own_from_, kernel_.constant(nothing_begins));
    own_to_ = ir().CreateSelect(sees, own_to_, kernel_.constant(0));
    own_range_ = {.begin = ir().CreateSelect(sees, row_.seen().begin, kernel_.constant(nothing_begins)),
                  .end = ir().CreateSelect(sees, row_.seen().end, kernel_.constant(0))};
  }

  // Tiles, and from which key to which: what some row of the workgroup sees. All uniform.
  struct Wanted {
    Value* from;
    Value* to;
    RowKeys range;
  };
  Wanted wanted_by_all() {
    Value* entry = llvm::Constant::getNullValue(kernel_.vector(kernel_.i32(), 4));
    std::uint64_t part = 0;
    for (Value* each : {own_from_, own_to_, own_range_.begin, own_range_.end})
      entry = ir().CreateInsertElement(entry, each, part++);
    Value* place = ir().CreateAdd(ir().CreateMul(kernel_.wave(), kernel_.constant(wanted_bytes)),
                                  ir().CreateShl(kernel_.lane(), 4));
    lds_.write(0, entry, place, 0);
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);
    Wanted all{};
    for (int wave = 0; wave < scores_waves; ++wave) {
      Value* four = lds_.read(0, load_bytes, kernel_.constant(0), wave * wanted_bytes);
      const auto of = [&](std::uint64_t each) { return kernel_.uniform(ir().CreateExtractElement(four, each)); };
      all.from = wave == 0 ? of(0) : minimum(kernel_, all.from, of(0));
      all.to = wave == 0 ? of(1) : maximum(kernel_, all.to, of(1));
      all.range.begin = wave == 0 ? of(2) : minimum(kernel_, all.range.begin, of(2));
      all.range.end = wave == 0 ? of(3) : maximum(kernel_, all.range.end, of(3));
    }
    // Its place is a tile's.
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);
    return all;
  }

  // A tile on its way: what this lane fetches of it.
  using Fetched = std::array<Value*, fetches>;

  // Per lane: its key of a tile, or the nearest that is wanted.
  Value* own_key(Value* tile) {
    return keys_->in_range(ir().CreateAdd(ir().CreateShl(tile, tile_bits), row_.column()));
  }
  Value* entry_of(Value* tile) { return spec_.paged ? keys_->entry_of(own_key(tile)) : nullptr; }
  KeyPlaces::Place place_of(Value* tile, Value* entry) { return keys_->place_of(own_key(tile), entry); }

  // Which key of a tile a thread fetches first, and which of its bytes.
  Value* fetched_key() { return ir().CreateLShr(kernel_.thread(), key_lanes_bits); }
  Value* fetched_part(int bits) {
    return ir().CreateShl(ir().CreateAnd(kernel_.thread(), kernel_.constant(key_lanes - 1)), bits);
  }

  // Where the lane fetches. `own`: the address of the lane's own key of the tile; it goes to those who fetch that key.
  std::array<Value*, fetches> fetched_from(Value* own) {
    std::array<Value*, fetches> addresses{};
    Value* low = ir().CreateTrunc(own, kernel_.i32());
    Value* high = ir().CreateTrunc(ir().CreateLShr(own, attention::dword_bits), kernel_.i32());
    for (std::size_t each = 0; each < fetches; ++each) {
      Value* lane = ir().CreateShl(plus(fetched_key(), static_cast<int>(each) * fetched_keys), 2);
      const auto of_lane = [&](Value* half) {
        Value* told = ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {lane, half});
        return ir().CreateZExt(told, kernel_.i64());
      };
      addresses[each] = ir().CreateOr(of_lane(low), ir().CreateShl(of_lane(high), attention::dword_bits));
    }
    return addresses;
  }
  Fetched fetch(const std::array<Value*, fetches>& addresses) {
    Fetched fetched{};
    const int bytes = stored_bytes(spec_, load_bytes);
    Value* byte = ir().CreateZExt(fetched_part(stored_bits(spec_)), kernel_.i64());
    for (std::size_t each = 0; each < fetches; ++each)
      fetched[each] = language::load_lanes(kernel_, ir().CreateAdd(addresses[each], byte), bytes);
    return fetched;
  }

  // Bytes are widened once for all waves: from here on a tile is one of 16 bits.
  void write(int buffer, const Fetched& fetched) {
    Value* place = ir().CreateAdd(ir().CreateMul(fetched_key(), kernel_.constant(key_pitch)), fetched_part(load_bits));
    for (std::size_t each = 0; each < fetches; ++each)
      lds_.write(buffer, widened(kernel_, spec_, fetched[each]), place,
                 (buffer * tile_bytes) + (static_cast<int>(each) * fetched_keys * key_pitch));
  }

  KeyHalf read(int buffer) {
    Value* place =
        ir().CreateAdd(ir().CreateMul(row_.column(), kernel_.constant(key_pitch)), ir().CreateShl(row_.half(), 4));
    KeyHalf key{};
    for (std::size_t step = 0; step < steps; ++step)
      key[step] = lds_.read(buffer, load_bytes, place, (buffer * tile_bytes) + (static_cast<int>(step) * step_bytes));
    return key;
  }

  // What goes from one tile to the next. Slots are those of even and of odd tiles, counted from the first.
  struct State {
    Value* tile;
    Value* scale_address;                       // of the lane's key of the next tile but one
    std::array<Value*, tiles_in_lds> scales;    // of this tile's slot and of the next one's
    std::array<Fetched, tiles_in_lds> fetched;  // the next tile, and the one behind it
    std::array<Value*, tiles_in_lds> entries;   // of pages: two more tiles
  };
  Values values_of(const State& state) const {
    Values values = {state.tile, state.scale_address};
    for (std::size_t slot = 0; slot < tiles_in_lds; ++slot) {
      values.push_back(state.scales[slot]);
      values.insert(values.end(), state.fetched[slot].begin(), state.fetched[slot].end());
      if (spec_.paged) values.push_back(state.entries[slot]);
    }
    return values;
  }
  State state_of(const Values& values) const {
    auto at = values.begin();
    State state{};
    state.tile = *at++;
    state.scale_address = *at++;
    for (std::size_t slot = 0; slot < tiles_in_lds; ++slot) {
      state.scales[slot] = *at++;
      for (Value*& quad : state.fetched[slot]) quad = *at++;
      if (spec_.paged) state.entries[slot] = *at++;
    }
    return state;
  }

  void walk(Value* from, Value* to) {
    std::array<Value*, 5> entries{};
    for (std::size_t ahead = 0; ahead < entries.size(); ++ahead)
      entries[ahead] = entry_of(plus(from, static_cast<int>(ahead)));
    std::array<KeyPlaces::Place, 3> places{};
    std::array<Fetched, 3> fetched{};
    for (std::size_t ahead = 0; ahead < places.size(); ++ahead) {
      places[ahead] = place_of(plus(from, static_cast<int>(ahead)), entries[ahead]);
      fetched[ahead] = fetch(fetched_from(places[ahead].key));
    }
    const State first = {.tile = from,
                         .scale_address = places[2].scale,
                         .scales = {keys_->load_scale(places[0].scale), keys_->load_scale(places[1].scale)},
                         .fetched = {fetched[2], fetched[1]},
                         .entries = {entries[4], entries[3]}};
    write(0, fetched[0]);
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);
    language::loop_in_phases(
        kernel_, tiles_in_lds, values_of(first),
        [&](int phase, const Values& at) { return values_of(step(phase, state_of(at))); },
        [&](const Values& at) { return ir().CreateICmpSLT(at[0], to); });
  }

  State step(int phase, const State& at) {
    const auto slot = static_cast<std::size_t>(phase);
    const std::size_t other = 1 - slot;
    State next = at;
    write(1 - phase, at.fetched[other]);
    const KeyPlaces::Place place = place_of(plus(at.tile, 3), at.entries[other]);
    const std::array<Value*, fetches> addresses = fetched_from(place.key);
    const KeyHalf key = read(phase);
    next.fetched[other] = fetch(addresses);
    next.entries[other] = entry_of(plus(at.tile, 5));
    row_.store(at.tile, ir().CreateFMul(row_.multiplied_sum_of(key), at.scales[slot]));
    next.scales[slot] = keys_->load_scale(at.scale_address);
    next.scale_address = place.scale;
    next.tile = plus(at.tile, 1);
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);
    return next;
  }

  Kernel& kernel_;
  const ScoresKernel& spec_;
  ScoreRow row_;
  language::Lds lds_;
  std::optional<KeyPlaces> keys_;
  // Uniform.
  Value* exists_ = nullptr;
  Value* batch_ = nullptr;
  Value* first_tile_ = nullptr;
  Value* end_tile_ = nullptr;
  Value* own_from_ = nullptr;  // tiles of the workgroup's that the wave's row sees
  Value* own_to_ = nullptr;
  RowKeys own_range_{};
};

}  // namespace

void emit_shared_scores(Kernel& kernel, const ScoresKernel& spec) {
  (void)kernel.thread();
  SharedScores(kernel, spec).emit();
}

}  // namespace wavejit::sparse_indexer
