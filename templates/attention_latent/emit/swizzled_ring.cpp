// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/swizzled_ring.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <memory>
#include <utility>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention_latent {
namespace {

using attention::KeyPages;
using attention::TilePages;
using attention::TileWalk;
using language::OperandA;
using language::Value;
using language::Values;

constexpr int region = 0;
constexpr int unit_bytes = 16;
constexpr int dword_bytes = 4;
constexpr int keys_of_fragment = 8;  // of a lane
// Scores of a wave take 128 bytes of each of the tile's first 32 rows: a pair of blocks of dims, two blocks of keys.
constexpr int score_row_bytes = 128;
constexpr int score_key_blocks = 2;

constexpr int scores_beside_two_images = 1;

// With one image where keys stand.
ScoreExchange::Place place_of_scores(const KeyRingPlan& plan, int pitch) {
  if (plan.buffers == 1)
    return {
        .region = region, .offset = 0, .row_bytes = score_row_bytes, .row_pitch = pitch, .wave_pitch = pitch / waves};
  return {.region = scores_beside_two_images,
          .offset = plan.scores_offset(),
          .row_bytes = plan.line_bytes,
          .row_pitch = plan.line_bytes,
          .wave_pitch = plan.wave_score_bytes};
}

// A thread that has one row looks one key up. Where rows follow each other longer runs take less: of pieces of 64 bytes
// of rows of 656 three in eight lie across two lines.
attention::Runs runs_of(const WalkKernel& spec) {
  return spec.has_row_scales() && spec.listed ? attention::Runs::row_a_thread : attention::Runs::long_ones;
}

}  // namespace

SwizzledRing::SwizzledRing(language::Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup,
                           const language::MatrixUnit& matrix)
    : kernel_(kernel),
      workgroup_(workgroup),
      matrix_(matrix),
      latent_blocks_(spec.dims_v() / language::wave_shape(kernel).fragment_k()),
      rope_dims_(spec.rope_dims()),
      pitch_(spec.dims_v() * bytes_of(spec.dtype)),
      pairs_(dims_of_wave(spec) * bytes_of(spec.dtype) / score_row_bytes),
      plan_(key_ring_plan(spec, kernel.target())),
      lds_(kernel, plan_.total_bytes(), plan_.buffers),
      scores_(kernel, lds_, place_of_scores(plan_, pitch_)),
      rope_slice_(workgroup.k_rope),
      latent_slice_(workgroup.k),
      has_row_scales_(spec.has_row_scales()),
      has_exponents_(spec.has_exponents()),
      scales_at_(spec.scales_at()),
      latent_bytes_(spec.bytes_before_rope()),
      pages_(attention::pages_of(kernel, spec.layout(), workgroup.keys(workgroup.k))),
      tile_pages_(attention::tile_pages_of(kernel, spec.layout(), workgroup.keys(workgroup.k))),
      cache_(spec.cache),
      latent_(kernel, lds_, matrix, workgroup.k, region, 0, spec.dims_v(), threads, workgroup.lane_group, pages_,
              tile_pages_, spec.cache, spec.columns_kept(), runs_of(spec)) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  latent_.begin_rows(scores_.own_block());
  // Lane i of 32 has dims 2i and 2i + 1 of 64, of keys 4h … 4h + 3 (and 8 behind): unit i / 4 of eight, xor key mod 8
  // as SwizzledRows writes it, dword i mod 4.
  Value* in_half = language::row_of_lane(kernel, kernel.lane());
  Value* unit = ir.CreateLShr(in_half, constant(2));
  Value* dword = ir.CreateMul(ir.CreateAnd(in_half, constant(3)), constant(dword_bytes));
  Value* share = ir.CreateMul(workgroup.share, constant(dims_of_wave(spec) * bytes_of(spec.dtype)));
  for (int key = 0; key < 4; ++key) {
    Value* row = ir.CreateAdd(ir.CreateMul(workgroup.lane_group, constant(4)), constant(key));
    Value* start = ir.CreateMul(ir.CreateXor(unit, row), constant(unit_bytes));
    start = ir.CreateAdd(ir.CreateAdd(start, dword), ir.CreateMul(row, constant(pitch_)));
    value_starts_[static_cast<std::size_t>(key)] = ir.CreateAdd(start, share);
  }
}

int SwizzledRing::rope_blocks() const { return rope_dims_ / language::wave_shape(kernel_).fragment_k(); }

// The wave's own 32 keys and 16 dims each, as scores take them: lane i of 32 has key i, its group the first or the last
// 8 dims.
std::vector<attention::SwizzledStream::Load> SwizzledRing::rope_loads(Value* tile, Value* entries) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  const targets::WaveShape wave = language::wave_shape(kernel_);
  std::vector<attention::SwizzledStream::Load> loads;
  if (rope_dims_ == 0) return loads;
  Value* in_tile = ir.CreateAdd(language::row_of_lane(kernel_, kernel_.lane()),
                                ir.CreateMul(scores_.own_block(), constant(wave.rows)));
  // With bytes half as much.
  const int narrower = rope_is_narrow() ? 2 : 1;
  const int lane_bytes = wave.operand_bytes / narrower;
  const int block_bytes = wave.fragment_bytes() / narrower;
  Value* column = ir.CreateMul(language::group_of_lane(kernel_, kernel_.lane()), constant(lane_bytes));
  if (pages_) {
    // Found where the first load asks for it: before the others, on the same path.
    const auto found = std::make_shared<std::optional<KeyPages::KeyPlace>>();
    for (int block = 0; block < rope_blocks(); ++block)
      loads.emplace_back([=, this] {
        if (!found->has_value()) *found = pages_->place_of_any_key(tile, entries, in_tile);
        Value* at = kernel_.ir().CreateAdd(column, kernel_.constant(block * block_bytes));
        return language::load_lanes(kernel_, pages_->row(rope_slice_, **found, at), lane_bytes);
      });
    return loads;
  }
  Value* offset = ir.CreateAdd(ir.CreateMul(in_tile, rope_slice_.row_stride), column);
  const bool in_page = tile_pages_.has_value();
  const language::Buffer from =
      in_page ? tile_pages_->rows(rope_slice_, rope_dims_ * targets::bytes_of(matrix_.element()) / narrower,
                                  tile_pages_->look_up(tile, TilePages::Way::scalar))
              : rope_slice_.buffer;
  Value* tile_offset =
      in_page ? constant(0) : ir.CreateMul(ir.CreateMul(tile, constant(attention::tile_keys)), rope_slice_.row_stride);
  for (int block = 0; block < rope_blocks(); ++block)
    loads.emplace_back([=, this] {
      Value* at = kernel_.ir().CreateAdd(offset, kernel_.constant(block * block_bytes));
      return from.load(lane_bytes, at, tile_offset);
    });
  return loads;
}

std::vector<attention::SwizzledStream::Load> SwizzledRing::latent_loads(Value* place, const TileWalk& walk,
                                                                        Value* entries) {
  Value* tile = walk.tile_at(walk.at_most_last(place));
  const TilePages::Place in_page =
      tile_pages_ ? tile_pages_->look_up(tile, TilePages::Way::scalar) : TilePages::Place{};
  std::vector<attention::SwizzledStream::Load> loads = latent_.loads_of(tile, in_page, entries, walk.exists(place));
  if (has_row_scales_)
    loads.insert(loads.begin(),
                 has_exponents_ ? exponent_load(tile, in_page, entries) : scale_load(tile, in_page, entries));
  return loads;
}

Value* SwizzledRing::entries_of(Value* place, const TileWalk& walk) const {
  return pages_->entries(walk.tile_at(walk.at_most_last(place)));
}

Values SwizzledRing::entries_behind(Value* place, const TileWalk& walk, Value* listed) const {
  Value* behind = walk.ahead(place, 1);
  if (!is_listed()) return {entries_of(behind, walk)};
  const auto listed_at = [&](Value* at) { return pages_->listed(walk.tile_at(walk.at_most_last(at))); };
  // The list's entries came a tile ago, so that nobody waits for what is on its way before them.
  return {pages_->resolved(listed != nullptr ? listed : listed_at(behind)), listed_at(walk.ahead(behind, 1))};
}

// Values of the tile at the place: V's columns, for looked-up keys its entries and those of the next one, the rope.
Values SwizzledRing::start(const TileWalk& walk, const TakeQuery& take) {
  // On their way before the keys, which they would wait behind.
  Values query = attention::load_query(kernel_, latent_blocks_ * language::wave_shape(kernel_).fragment_k(),
                                       workgroup_.q, workgroup_);
  for (Value* rope : attention::load_query(kernel_, rope_dims_, workgroup_.q_rope, workgroup_)) query.push_back(rope);
  if (has_two_images()) return start_ahead(walk, take, query);
  Value* entries = pages_ ? entries_of(walk.first(), walk) : nullptr;
  Values carried;
  for (const auto& load : latent_loads(walk.first(), walk, entries)) carried.push_back(load());
  if (pages_) {
    carried.push_back(entries);
    for (Value* value : entries_behind(walk.first(), walk, nullptr)) carried.push_back(value);
  }
  for (const auto& load : rope_loads(walk.tile_at(walk.first()), entries)) carried.push_back(load());
  take(query);
  return carried;
}

Values SwizzledRing::starts() const {
  Values all = latent_.starts();
  all.insert(all.end(), value_starts_.begin(), value_starts_.end());
  return all;
}

Values SwizzledRing::starts_behind() const {
  Values all = starts();
  for (Value*& start : all) start = kernel_.ir().CreateXor(start, kernel_.constant(plan_.image_bytes()));
  return all;
}

void SwizzledRing::set_starts(const Values& carried) {
  const auto first = carried.end() - static_cast<std::ptrdiff_t>(start_count);
  const auto of_values = first + static_cast<std::ptrdiff_t>(attention::SwizzledRows::start_count);
  latent_.set_starts({first, of_values});
  std::copy(of_values, carried.end(), value_starts_.begin());
}

// The first tile stands in its image. Carried: V's columns of the second, entries of three tiles, the rope of the
// first.
Values SwizzledRing::start_ahead(const TileWalk& walk, const TakeQuery& take, const Values& query) {
  const std::array<Value*, 3> places = {walk.first(), walk.ahead(walk.first(), 1), walk.ahead(walk.first(), 2)};
  Values entries;
  if (pages_)
    for (Value* place : places) entries.push_back(entries_of(place, walk));
  const auto loaded = [&](std::size_t tile) {
    Values values;
    for (const auto& load : latent_loads(places[tile], walk, pages_ ? entries[tile] : nullptr))
      values.push_back(load());
    return values;
  };
  const Values first = loaded(0);
  Values carried = loaded(1);
  carried.insert(carried.end(), entries.begin(), entries.end());
  if (is_listed()) carried.push_back(pages_->listed(walk.tile_at(walk.at_most_last(walk.ahead(places[2], 1)))));
  for (const auto& load : rope_loads(walk.tile_at(walk.first()), pages_ ? entries.front() : nullptr))
    carried.push_back(load());
  take(query);
  language::Strand writes = write_latent(first);
  while (!writes.empty()) writes.write_one();
  Values begin = starts();
  // What is written from here on is the second tile.
  Value*& write = begin[attention::SwizzledRows::start_count - 1];
  write = kernel_.ir().CreateXor(write, kernel_.constant(plan_.image_bytes()));
  carried.insert(carried.end(), begin.begin(), begin.end());
  return carried;
}

Values SwizzledRing::whole_ahead(Value* place, const TileWalk& walk, const Values& carried) {
  set_starts(carried);
  const auto behind = carried.begin() + latent_values();
  Values entries;
  if (pages_) {
    entries = {*(behind + 1), *(behind + 2)};
    Value* third = walk.ahead(place, 3);
    // A list's entry came a tile ago, so that nobody waits for what is on its way before it.
    entries.push_back(is_listed() ? pages_->resolved(*(behind + 3)) : entries_of(third, walk));
    if (is_listed()) entries.push_back(pages_->listed(walk.tile_at(walk.at_most_last(walk.ahead(third, 1)))));
    if (is_listed()) named_ = pages_->named(*behind);
  }
  next_loads_ = latent_loads(walk.ahead(place, 2), walk, pages_ ? *(behind + 2) : nullptr);
  next_.clear();
  writes_ = write_latent({carried.begin(), behind});
  rope_.assign(behind + entries_ahead(), carried.end() - static_cast<std::ptrdiff_t>(start_count));
  read_pair_ = read_keys_ = -1;
  // Everybody's part of this tile has arrived, and nobody reads the one before any more.
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  return entries;
}

// Carried until the end of the tile: of looked-up keys the entries of the next one and of the one behind it.
Values SwizzledRing::whole(int /*buffer*/, Value* place, const TileWalk& walk, const Values& carried) {
  if (has_two_images()) return whole_ahead(place, walk, carried);
  const auto behind = carried.begin() + latent_values();
  Value* next = walk.ahead(place, 1);
  Values entries;
  if (pages_) {
    entries = entries_behind(next, walk, is_listed() ? *(behind + 2) : nullptr);
    entries.insert(entries.begin(), *(behind + 1));
  }
  next_loads_ = latent_loads(next, walk, pages_ ? entries.front() : nullptr);
  next_.clear();
  // Nobody reads the previous tile any more …
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  language::Strand writes = write_latent({carried.begin(), behind});
  while (!writes.empty()) {
    writes.write_one();
    if (static_cast<int>(next_.size()) < latent_values() / 2) next_.push_back(next_loads_[next_.size()]());
  }
  rope_.assign(behind + entry_values(), carried.end());
  if (is_listed()) named_ = pages_->named(*behind);
  read_pair_ = read_keys_ = -1;
  // … and everybody's part of this one has arrived.
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  return entries;
}

std::vector<std::function<void()>> SwizzledRing::fetches(int /*buffer*/, Value* /*place*/, const TileWalk& /*walk*/,
                                                         const Values& /*carried*/) {
  std::vector<std::function<void()>> rest;
  if (has_two_images()) {
    // Scales are there for the whole tile. Then a load comes into the registers that two writes have left.
    rest.emplace_back([this] { next_.push_back(next_loads_.front()()); });
    for (std::size_t load = 1; load < next_loads_.size(); ++load) {
      for (int write = latent_.writes_of(static_cast<int>(load) - 1); write > 0; --write)
        rest.emplace_back([this] { writes_.write_one(); });
      rest.emplace_back([this, load] { next_.push_back(next_loads_[load]()); });
    }
    return rest;
  }
  for (std::size_t load = next_.size(); load < next_loads_.size(); ++load)
    rest.emplace_back([this, load] { next_.push_back(next_loads_[load]()); });
  return rest;
}

// Into the registers of the rope that has been multiplied. Behind the last tile it is read once more, so that nothing
// branches.
std::vector<std::function<void()>> SwizzledRing::fetches_behind_scores(Value* place, const TileWalk& walk,
                                                                       const Values& carried) {
  next_rope_.clear();
  std::vector<std::function<void()>> all;
  // Listed keys leave no registers for another tile's rope beside the products of O.
  if (is_listed()) return all;
  next_rope_loads_ = next_rope_loads(place, walk, carried);
  for (std::size_t load = 0; load < next_rope_loads_.size(); ++load)
    all.emplace_back([this, load] { next_rope_.push_back(next_rope_loads_[load]()); });
  return all;
}

std::vector<attention::SwizzledStream::Load> SwizzledRing::next_rope_loads(Value* place, const TileWalk& walk,
                                                                           const Values& carried) const {
  return rope_loads(walk.tile_at(walk.at_most_last(walk.ahead(place, 1))), pages_ ? carried.front() : nullptr);
}

Values SwizzledRing::release(int /*buffer*/, Value* place, const TileWalk& walk, const Values& carried) {
  if (is_listed())
    for (const auto& load : next_rope_loads(place, walk, carried)) next_rope_.push_back(load());
  Values all = next_;
  all.insert(all.end(), carried.begin(), carried.end());
  all.insert(all.end(), next_rope_.begin(), next_rope_.end());
  if (!has_two_images()) return all;
  const Values starts = starts_behind();
  all.insert(all.end(), starts.begin(), starts.end());
  return all;
}

OperandA SwizzledRing::keys(int buffer, int key_block, int dim_block) {
  if (dim_block < latent_blocks_) return latent_.rows(buffer, key_block, dim_block);
  Value* rope = rope_[static_cast<std::size_t>(dim_block - latent_blocks_)];
  if (rope_is_narrow()) rope = attention::widened_fragment(kernel_, rope, cache_, matrix_.element());
  return matrix_.operand_a(rope, language::KOrder::contiguous);
}

// Whether scores take the place of this pair: the first of a wave's share of V's columns, and where two waves have the
// share, the one in the middle.
bool SwizzledRing::stands_in_the_way(int pair, int key_block) const {
  return key_block < score_key_blocks && pair % (pitch_ / waves / score_row_bytes) == 0;
}

std::vector<language::Accumulator> SwizzledRing::all_scores(std::vector<language::Accumulator> own) {
  if (has_two_images()) return scores_.exchange(own.front());
  kept_.clear();
  for (int key_block = 0; key_block < score_key_blocks; ++key_block)
    for (int pair = 0; pair < pairs_; ++pair)
      if (stands_in_the_way(pair, key_block)) kept_[{pair, key_block}] = read_values(pair, key_block);
  // Nobody reads them, or these keys for scores, any more.
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  return scores_.exchange(own.front());
}

Values SwizzledRing::read_values(int pair, int key_block) const {
  const targets::WaveShape wave = language::wave_shape(kernel_);
  Values dwords;
  for (int key = 0; key < keys_of_fragment; ++key) {
    const int offset = (((key_block * wave.fragment_k()) + (key / 4 * keys_of_fragment)) * pitch_) +
                       (pair * 2 * wave.rows * targets::bytes_of(matrix_.element()));
    dwords.push_back(lds_.read(region, dword_bytes, value_starts_[static_cast<std::size_t>(key % 4)], offset));
  }
  return dwords;
}

Values SwizzledRing::kept_or_read(int pair, int key_block) const {
  const auto kept = kept_.find({pair, key_block});
  return kept != kept_.end() ? kept->second : read_values(pair, key_block);
}

int SwizzledRing::slots_of_values() const { return keys_of_fragment / 2; }

OperandA SwizzledRing::values(int /*buffer*/, int dim_block, int key_block) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int pair = dim_block / 2;
  if (pair != read_pair_ || key_block != read_keys_) {
    // A permutation waits for what it permutes: the pair that comes next is on its way before. Listed keys leave no
    // registers for it.
    read_ = read_pair_ < 0 || is_listed() ? kept_or_read(pair, key_block) : std::move(read_ahead_);
    read_pair_ = pair;
    read_keys_ = key_block;
    const int behind = pair + 1 < pairs_ ? key_block : key_block + 1;
    const int key_blocks = attention::tile_keys / language::wave_shape(kernel_).fragment_k();
    if (behind < key_blocks && !is_listed()) read_ahead_ = kept_or_read(pair + 1 < pairs_ ? pair + 1 : 0, behind);
  }
  // Two bytes of one dword behind two of the other: the low halves, or the high ones.
  constexpr std::uint32_t low_halves = 0x05040100;
  constexpr std::uint32_t high_halves = 0x07060302;
  Values dwords;
  for (std::size_t key = 0; key < keys_of_fragment; key += 2)
    dwords.push_back(
        ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_perm, {},
                           {read_[key + 1], read_[key], ir.getInt32(dim_block % 2 == 0 ? low_halves : high_halves)}));
  return matrix_.operand_a(language::gather_dwords(kernel_, dwords), language::KOrder::accumulator_rows);
}

}  // namespace wavejit::attention_latent
