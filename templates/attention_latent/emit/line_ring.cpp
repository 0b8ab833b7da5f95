// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/line_ring.h"

#include <algorithm>
#include <utility>

#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/streams_swizzled.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention_latent {
namespace {

using attention::LdsPlan;
using attention::LineStream;
using attention::TilePages;
using attention::TileWalk;
using language::OperandA;
using language::Value;
using language::Values;

// LDS regions, one alias scope each: V columns and those behind them, of both tiles; scores.
constexpr int regions = 3;
constexpr int score_region = 2;

// What is carried for listed keys (LineRing::start).
constexpr std::size_t entry_at = 1;
constexpr std::size_t looked_up_at = 2;
constexpr std::size_t named_at = 3;
constexpr std::size_t listed_at = 4;

// Keys that are looked up have late transfers: a wave begins this many of them when the tile before is complete in LDS,
// and the others after the scores have been multiplied. All of them at once would fill memory's queue, and waves that
// have products to compute would wait in it.
constexpr std::size_t late_when_whole = 2;

LineStream::Place place_of(const KeyRingPlan& plan, int region, int offset, bool bytes) {
  return {.line_bytes = plan.line_bytes,
          .buffers = {{{region, offset}, {region, offset + plan.image_bytes()}}},
          .permuted = true,
          .bytes = bytes,
          .waited_for = true};
}
LineStream::Place latent_in(const KeyRingPlan& plan, bool bytes) { return place_of(plan, 0, 0, bytes); }
LineStream::Place rope_in(const KeyRingPlan& plan, bool bytes) {
  return place_of(plan, 1, bytes ? plan.latent_bytes : plan.query_latent_bytes, bytes);
}

}  // namespace

LineRing::LineRing(language::Kernel& kernel, const WalkKernel& spec, const Workgroup& workgroup,
                   const language::MatrixUnit& matrix)
    : kernel_(kernel),
      workgroup_(workgroup),
      matrix_(matrix),
      cache_(spec.cache),
      rows_(count_of(spec.rows)),
      plan_(key_ring_plan(spec, kernel.target())),
      latent_blocks_(spec.dims_v() / language::wave_shape(kernel).fragment_k()),
      rope_blocks_(spec.rope_dims() / language::wave_shape(kernel).fragment_k()),
      lds_(kernel, plan_.total_bytes(), regions),
      scores_(kernel, lds_,
              {.region = score_region,
               .offset = plan_.scores_offset(),
               .row_bytes = plan_.line_bytes,
               .row_pitch = plan_.line_bytes,
               .wave_pitch = plan_.wave_score_bytes}),
      pages_(attention::pages_of(
          kernel, spec.layout(), workgroup.keys(workgroup.k),
          spec.listed ? spec.dims_v() * bytes_of(spec.key_type()) : attention::KeyPages::transfer_bytes)),
      tile_pages_(attention::tile_pages_of(kernel, spec.layout(), workgroup.keys(workgroup.k))),
      first_entries_(first_entries(kernel, workgroup, pages_)),
      shares_rows_(waves_of_rows(spec) > 1),
      between_products_(!pages_),
      images_(spec.listed ? 2 : plan_.buffers),
      found_tiles_(pages_ ? static_cast<std::size_t>(images_) : 2),
      latent_(kernel, lds_, matrix, workgroup.k, latent_in(plan_, spec.widens()), spec.dims_v(), waves, pages_,
              tile_pages_),
      query_(kernel, lds_, matrix, workgroup.q, latent_in(plan_, false), spec.dims_v(), waves, no_pages_,
             no_tile_pages_) {
  if (spec.rope_dims() != 0)
    query_rope_.emplace(kernel, lds_, matrix, workgroup.q_rope, rope_in(plan_, false), spec.rope_dims(), waves,
                        no_pages_, no_tile_pages_);
  if (spec.rope_dims() != 0)
    rope_.emplace(kernel, lds_, matrix, workgroup.k_rope, rope_in(plan_, spec.widens()), spec.rope_dims(), waves,
                  pages_, tile_pages_);
  latent_.keep_few_offsets();
  Value* own_block = shares_rows_ ? scores_.own_block() : nullptr;
  latent_.begin_rows(workgroup.lane_group, own_block);
  if (rope_) rope_->begin_rows(workgroup.lane_group, own_block);
  if (spec.widens()) {
    latent_.begin_narrow_transposed(workgroup.lane_group,
                                    kernel.ir().CreateMul(workgroup.share, kernel.constant(dims_of_wave(spec))));
    return;
  }
  const int pieces_of_share = dims_of_wave(spec) / LdsPlan::piece_elements;
  latent_.begin_transposed(workgroup.lane_group,
                           kernel.ir().CreateMul(workgroup.share, kernel.constant(pieces_of_share)));
}

Values LineRing::look_up(Value* place, const TileWalk& walk) const {
  Value* tile = walk.tile_at(walk.at_most_last(place));
  if (pages_) return {pages_->entries(tile)};
  if (!tile_pages_) return {};
  const TilePages::Place found = tile_pages_->look_up(tile, TilePages::Way::scalar);
  return {found.entry, found.granule, found.live};
}

Value* LineRing::image_behind(Value* image, int tiles) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (images_ == 2) return ir.CreateSub(kernel_.constant(plan_.image_bytes()), image);
  Value* all = kernel_.constant(images_ * plan_.image_bytes());
  Value* behind = ir.CreateAdd(image, kernel_.constant(tiles * plan_.image_bytes()));
  return ir.CreateSelect(ir.CreateICmpUGE(behind, all), ir.CreateSub(behind, all), behind);
}

// What is found of one tile, of those that are carried.
std::size_t LineRing::found_values(const Values& carried) const {
  return is_listed() ? 1 : carried.size() / found_tiles_;
}

LineRing::Transfers LineRing::of_line(std::size_t line, Value* image, Value* place, const TileWalk& walk,
                                      std::span<Value* const> found) {
  Value* tile = walk.tile_at(walk.at_most_last(place));
  Value* exists = walk.exists(place);
  const TilePages::Place in_page =
      tile_pages_ ? TilePages::Place{.entry = found[0], .granule = found[1], .live = found[2]} : TilePages::Place{};
  Value* entries = pages_ ? found[0] : nullptr;
  Transfers all = latent_.transfers_of_line(image, tile, in_page, entries, line, exists);
  // With bytes a wave has one line of the rope.
  if (!rope_ || (rope_->lines() == 1 && line == 0)) return all;
  if (rope_->lines() == 1) line = 0;
  for (auto& one : rope_->transfers_of_line(image, tile, in_page, entries, line, exists)) all.push_back(std::move(one));
  return all;
}

// Enough that memory has work while waves meet at the tile's beginning. More would fill its queue, in which waves that
// have products to do would stand. Where addresses are looked up, a whole line, whose lookup is made once.
std::size_t LineRing::early_count() const {
  constexpr int few = 4;  // KiB of this wave
  return static_cast<std::size_t>(between_products_ ? std::min(few, transfers_of_first_line())
                                                    : transfers_of_first_line());
}

LineRing::Transfers LineRing::early(Value* image, Value* place, const TileWalk& walk, std::span<Value* const> found) {
  Transfers all = of_line(0, image, place, walk, found);
  all.resize(early_count());
  return all;
}

Values LineRing::first_entries(language::Kernel& kernel, const Workgroup& workgroup,
                               const std::optional<attention::KeyPages>& pages) {
  Values entries;
  if (!pages || !pages->is_listed()) return entries;
  const attention::TileInterval walk(kernel, workgroup.first_tile, workgroup.tiles);
  for (int tile = 0; tile < entries_ahead; ++tile)
    entries.push_back(pages->listed(walk.tile_at(walk.at_most_last(walk.ahead(walk.first(), tile)))));
  return entries;
}

Value* LineRing::resolved(const Values& carried) const {
  return pages_->resolved(carried[entry_at], carried[looked_up_at]);
}

Value* LineRing::listed(Value* place, const TileWalk& walk) const {
  return pages_->listed(walk.tile_at(walk.at_most_last(place)));
}

// Rows of a lane's own would be lines of their own for each 16 bytes that lanes fetch; a line of LDS is eight lanes to
// a row.
void LineRing::fetch_query() {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* image = kernel_.constant(plan_.query_offset());
  const auto begins_in = [&](const attention::Slice& slice) {
    return [this, &ir, &slice](Value* row) {
      Value* of_all = ir.CreateAdd(workgroup_.first_of_tile, row);
      attention::QueryTile lane = workgroup_;
      lane.row = attention::divided(kernel_, of_all, kernel_.argument_i32(offsetof(Arguments, head_multiplier)));
      lane.head_in_group = ir.CreateSub(of_all, ir.CreateMul(lane.row, workgroup_.group));
      lane.has_row =
          ir.CreateAnd(ir.CreateICmpULT(of_all, workgroup_.rows), ir.CreateICmpULT(row, kernel_.constant(rows_)));
      return attention::lane_row_offset(kernel_, lane, lane.row, slice.row_stride, slice.head_stride);
    };
  };
  for (std::size_t line = 0; line < query_.lines(); ++line) {
    for (const auto& transfer : query_.transfers_of_rows(image, line, begins_in(workgroup_.q))) transfer();
    if (!query_rope_) continue;
    for (const auto& transfer : query_rope_->transfers_of_rows(image, line, begins_in(workgroup_.q_rope))) transfer();
  }
}

// After the query's transfers `younger` others were begun.
Values LineRing::read_query(int younger) {
  language::wait_for_lds_and_fills(kernel_, younger);
  language::barrier(kernel_);
  Value* image = kernel_.constant(plan_.query_offset());
  Value* own_rows = kernel_.ir().CreateUDiv(kernel_.wave(), kernel_.constant(waves * wave_rows / rows_));
  Values query;
  const auto read = [&](LineStream& stream, int blocks) {
    stream.begin_rows(workgroup_.lane_group, own_rows);
    stream.enter_rows(image);
    for (int block = 0; block < blocks; ++block) query.push_back(stream.rows(0, 0, block).value);
  };
  read(query_, latent_blocks_);
  if (query_rope_) read(*query_rope_, rope_blocks_);
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  return query;
}

// Carried: where the tile stands of which some transfers are begun, and those behind it. Of listed keys: where the next
// tile stands; of the one behind it the list's entries and what the block table has for them, still on its way; which
// of the tile's own are named; and the list's entries of the tile behind those.
Values LineRing::start(const TileWalk& walk, const TakeQuery& take) {
  // On its way before the keys, which it would wait behind. More rows than an image has would have to come in turn.
  const bool in_image = rows_ <= attention::tile_keys;
  Values query;
  if (in_image) {
    fetch_query();
  } else {
    const int fragment = language::wave_shape(kernel_).fragment_k();
    query = attention::load_query(kernel_, latent_blocks_ * fragment, workgroup_.q, workgroup_);
    for (Value* rope : attention::load_query(kernel_, rope_blocks_ * fragment, workgroup_.q_rope, workgroup_))
      query.push_back(rope);
  }
  Value* first_image = kernel_.constant(0);
  if (!is_listed()) return start_along(walk, take, query);
  Value* second = walk.ahead(walk.first(), 1);
  Values looked_up;
  for (std::size_t tile = 0; tile < entries_ahead - 1; ++tile)
    looked_up.push_back(pages_->looked_up(first_entries_[tile]));
  const Values first_found = {pages_->resolved(first_entries_[0], looked_up[0])};
  Values found = {pages_->resolved(first_entries_[1], looked_up[1])};
  const Transfers first_line = of_line(0, first_image, walk.first(), walk, first_found);
  for (const auto& transfer : first_line) transfer();
  if (query.empty()) query = read_query(static_cast<int>(first_line.size()));
  // A walk of a list is short, and its query is there before its first keys: what memory's queue has no room for waits
  // until registers have the query.
  take(query);
  for (const auto& transfer : of_line(1, first_image, walk.first(), walk, first_found)) transfer();
  for (const auto& transfer : early(image_behind(first_image, 1), second, walk, found)) transfer();
  found.insert(found.end(), {first_entries_[2], looked_up[2], pages_->named(first_found.front()),
                             first_entries_[entries_ahead - 1], first_image});
  return found;
}

// Tiles up to the last image's, which is early. The query passes through the last half of them.
Values LineRing::start_along(const TileWalk& walk, const TakeQuery& take, Values query) {
  std::vector<Value*> places = {walk.first()};
  std::vector<Values> found;
  const auto last = static_cast<std::size_t>(images_ - 1);
  while (places.size() < last + found_tiles_) places.push_back(walk.ahead(places.back(), 1));
  found.reserve(places.size());
  for (Value* place : places) found.push_back(look_up(place, walk));
  Value* image = kernel_.constant(0);
  const auto whole_tile = [&](std::size_t tile) {
    Transfers all = of_line(0, image, places[tile], walk, found[tile]);
    for (auto& transfer : of_line(1, image, places[tile], walk, found[tile])) all.push_back(std::move(transfer));
    for (const auto& transfer : all) transfer();
    image = image_behind(image, 1);
    return static_cast<int>(all.size());
  };
  int younger = 0;
  std::size_t tile = 0;
  for (; tile < static_cast<std::size_t>(images_ / 2); ++tile) younger += whole_tile(tile);
  if (query.empty()) query = read_query(younger);
  for (; tile < last; ++tile) whole_tile(tile);
  for (const auto& transfer : early(image, places[last], walk, found[last])) transfer();
  take(query);
  Values carried;
  for (tile = last; tile < places.size(); ++tile) carried.insert(carried.end(), found[tile].begin(), found[tile].end());
  carried.push_back(kernel_.constant(0));
  return carried;
}

// Each wave waits for its own transfers into the tile. Younger are those of the tiles behind, and of the last one the
// early ones, which may stay on their way.
Values LineRing::whole(int /*buffer*/, Value* place, const TileWalk& walk, const Values& carried) {
  language::wait_for_lds_and_fills(kernel_, ((images_ - 2) * transfers()) + static_cast<int>(early_count()));
  language::barrier(kernel_);
  image_ = carried.back();
  latent_.enter_rows(image_);
  if (rope_) rope_->enter_rows(image_);
  if (is_listed()) named_ = carried[named_at];
  if (between_products_) return carried;
  // Transfers from lanes' own addresses are flat instructions, which the backend counts as LDS reads, too: between such
  // reads it would wait for too few. So they go before them.
  late_ = late(place, walk, carried);
  std::ranges::reverse(late_);
  begin_late(shares_rows_ && is_listed() ? late_when_whole : late_.size());
  return carried;
}

void LineRing::begin_late(std::size_t most) {
  for (; most != 0 && !late_.empty(); --most) {
    late_.back()();
    late_.pop_back();
  }
}

std::vector<std::function<void()>> LineRing::fetches(int /*buffer*/, Value* place, const TileWalk& walk,
                                                     const Values& carried) {
  return between_products_ ? late(place, walk, carried) : Transfers();
}

LineRing::Transfers LineRing::late(Value* place, const TileWalk& walk, const Values& carried) {
  Value* other = image_behind(image_, images_ - 1);
  Value* next = walk.ahead(place, images_ - 1);
  const std::span<Value* const> found = std::span(carried).first(found_values(carried));
  Transfers all;
  if (between_products_) {
    all = of_line(0, other, next, walk, found);
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(early_count()));
  }
  for (auto& one : of_line(1, other, next, walk, found)) all.push_back(std::move(one));
  return all;
}

Values LineRing::release(int /*buffer*/, Value* place, const TileWalk& walk, const Values& carried) {
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  Value* next = walk.ahead(place, images_);
  if (is_listed()) {
    // Before the transfers: who waits for what is found here then waits for older ones. What the table answers is
    // looked at when the tile behind has passed.
    Value* found = resolved(carried);
    Value* entry = carried[listed_at];
    Value* looked_up = pages_->looked_up(entry);
    Value* listed_behind = listed(walk.ahead(next, 2), walk);
    const Values of_next = {found};
    for (const auto& transfer : early(image_, next, walk, of_next)) transfer();
    return {found, entry, looked_up, pages_->named(carried.front()), listed_behind, image_behind(image_, 1)};
  }
  // The values of the tile that comes into this image, and of those behind it.
  const auto of_tile = static_cast<std::ptrdiff_t>(found_values(carried));
  Values found(carried.begin() + of_tile, carried.begin() + (of_tile * static_cast<std::ptrdiff_t>(found_tiles_)));
  // Before the transfers: who waits for what is found here then waits for older ones.
  const Values later = look_up(walk.ahead(next, static_cast<int>(found_tiles_) - 1), walk);
  for (const auto& transfer : early(image_, next, walk, std::span(found).first(found_values(carried)))) transfer();
  found.insert(found.end(), later.begin(), later.end());
  found.push_back(image_behind(image_, 1));
  return found;
}

int LineRing::key_blocks_of_wave() const { return shares_rows_ ? 1 : KeyRing::key_blocks_of_wave(); }

std::vector<language::Accumulator> LineRing::all_scores(std::vector<language::Accumulator> own) {
  if (!shares_rows_) return own;
  return scores_.exchange(own.front(), [&] { begin_late(late_.size()); });
}

OperandA LineRing::keys(int buffer, int key_block, int dim_block) {
  LineStream& stream = dim_block < latent_blocks_ ? latent_ : *rope_;
  const int of_stream = dim_block < latent_blocks_ ? dim_block : dim_block - latent_blocks_;
  if (cache_ == attention::CacheType::as_queries) return stream.rows(buffer, key_block, of_stream);
  return matrix_.operand_a(stream.narrow_rows(buffer, key_block, of_stream), language::KOrder::contiguous);
}

OperandA LineRing::values(int buffer, int dim_block, int key_block) {
  if (cache_ == attention::CacheType::as_queries) return latent_.transposed(buffer, dim_block, key_block);
  return matrix_.operand_a(latent_.narrow_transposed(buffer, dim_block, key_block), language::KOrder::accumulator_rows);
}

OperandA LineRing::widened(const OperandA& read) {
  if (cache_ == attention::CacheType::as_queries) return read;
  return {attention::widened_fragment(kernel_, read.value, cache_, matrix_.element()), read.layout};
}

}  // namespace wavejit::attention_latent
