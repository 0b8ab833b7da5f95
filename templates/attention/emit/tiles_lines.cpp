// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tiles_lines.h"

#include "codegen/language/control.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/entries_ahead.h"
#include "templates/attention/emit/unseen_keys.h"

namespace wavejit::attention {
namespace {

using language::Value;
using language::Values;

constexpr int kept_lane_bytes = 16;

// A stream counts in elements of operands: two bytes are one.
int stream_dims(int dims, DataType type, const language::MatrixUnit& matrix) {
  return dims * bytes_of(type) / targets::bytes_of(matrix.element());
}

// LDS regions, one alias scope each: K0, V0, K1, V1. Of more buffers than two a tile's is known at run time only, and
// the pipeline waits.
LineStream::Place keys_in(const LdsPlan& plan, const TileShape& shape) {
  return {.line_bytes = plan.k_line_bytes,
          .buffers = {{{0, plan.k_offset(0)}, {2, plan.k_offset(1)}}},
          .whole_pieces = !is_narrow(shape.k_type),
          .waited_for = plan.buffers > 2,
          .neighbours = shape.has_neighbours() ? NeighbourRows::by_rows : NeighbourRows::none};
}
LineStream::Place values_in(const LdsPlan& plan, const TileShape& shape) {
  return {.line_bytes = plan.v_line_bytes,
          .buffers = {{{1, plan.v_offset(0)}, {3, plan.v_offset(1)}}},
          .whole_pieces = !is_narrow(shape.v_type),
          .waited_for = plan.buffers > 2,
          .neighbours = shape.has_neighbours() ? NeighbourRows::transposed : NeighbourRows::none};
}

}  // namespace

LineTiles::LineTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
                     Value* lane_group, const language::MatrixUnit& matrix)
    : kernel_(kernel),
      plan_(plan),
      lds_(kernel, plan.total_bytes(), 2 * plan.buffers + (plan.merged_slots != 0 ? 1 : 0)),
      waves_(shape.waves),
      apart_(shape.apart),
      pages_(pages_of(kernel, shape.layout, tensors)),
      tile_pages_(tile_pages_of(kernel, shape.layout, tensors, shape.waves)),
      first_seen_(tensors.first_seen),
      k_(kernel, lds_, matrix, tensors.k, keys_in(plan, shape), stream_dims(shape.dims_k, shape.k_type, matrix),
         shape.waves, pages_, tile_pages_),
      v_(kernel, lds_, matrix, tensors.v, values_in(plan, shape), stream_dims(shape.dims_v, shape.v_type, matrix),
         shape.waves, pages_, tile_pages_) {
  k_.begin_rows(lane_group);
  if (is_narrow(shape.v_type)) {
    v_.begin_transposed_bytes(lane_group);
  } else {
    v_.begin_transposed(lane_group);
  }
  if (shape.cache == CacheType::as_queries) return;
  narrow_k_ = std::make_unique<NarrowLines>(kernel, lds_, matrix, tensors.k, keys_in(plan, shape), shape.dims_k,
                                            shape.waves, pages_, tile_pages_, shape.cache);
  narrow_v_ = std::make_unique<NarrowLines>(kernel, lds_, matrix, tensors.v, values_in(plan, shape), shape.dims_v,
                                            shape.waves, pages_, tile_pages_, shape.cache);
}

Value* LineTiles::unseen_of(Value* tile) const { return unseen_keys(kernel_, first_seen_, tile); }

void LineTiles::fill_tile(int buffer, Value* tile, Value* entries, Value* unseen) {
  if (!pages_) {
    k_.fetch(buffer, tile);
    v_.fetch(buffer, tile, {}, unseen);
    return;
  }
  if (pages_->looks_up_each_key()) {
    // Scores of keys that nobody sees do not matter: their rows may be zeros, too.
    const std::vector<KeyPages::KeyPlace> places = k_.places_of_lines(tile, entries, unseen);
    k_.gather(buffer, places);
    // A line of halves of pieces has other keys.
    v_.gather(buffer, v_.lines() == k_.lines() ? places : v_.places_of_lines(tile, entries, unseen));
    return;
  }
  k_.gather(buffer, tile, entries);
  v_.gather(buffer, tile, entries, unseen);
}

Values LineTiles::start(const Stops& stops, const TileWalk& walk) {
  Value* tile = walk.tile_at(stops[0]);
  if (!pages_) {
    fill_tile(0, tile, nullptr, unseen_of(tile));
    return {};
  }
  Value* entries = pages_->entries(tile);
  fill_tile(0, tile, entries, unseen_of(tile));
  return EntriesAhead::at_start(*pages_, walk, stops, entries);
}

Values LineTiles::advance(int buffer, const Stops& stops, const TileWalk& walk, const Values& in_flight) {
  if (apart_) {
    // Younger than its keys: this tile's values.
    language::wait_for_lds_and_fills(kernel_, v_.transfers());
    language::barrier(kernel_);
    language::if_uniform(kernel_, walk.exists(stops[1].place), language::Likelihood::even,
                         [&] { k_.fetch((buffer + 1) % plan_.buffers, walk.tile_at(stops[1])); });
    return in_flight;
  }
  // Before the barrier every wave has its own share of this tile in LDS and its reads of the previous tile behind it;
  // after it, this tile is whole and the other buffer is free. A wave that runs ahead is held by the next barrier, one
  // tile later, before it could touch either.
  language::wait_for_lds_fills(kernel_);
  language::barrier(kernel_);
  if (pages_ && pages_->is_listed()) named_ = EntriesAhead::named(in_flight);
  return language::if_uniform(kernel_, walk.fetches(stops[1]), language::Likelihood::even, in_flight,
                              [&](const Values& ahead) -> Values {
                                fill_tile((buffer + 1) % plan_.buffers, walk.tile_at(stops[1]),
                                          pages_ ? EntriesAhead::of_next(ahead) : nullptr);
                                if (!pages_) return {};
                                return EntriesAhead::at(*pages_, walk, stops, ahead);
                              });
}

// As advance: the other buffer's values were read a tile ago.
void LineTiles::advance_values(int buffer, const Stops& stops, const TileWalk& walk) {
  if (!apart_) return;
  // Younger than this tile's values: the next one's keys, if there is one.
  Value* follows = walk.exists(stops[1].place);
  language::if_uniform(kernel_, follows, language::Likelihood::even,
                       [&] { language::wait_for_lds_and_fills(kernel_, k_.transfers()); });
  language::if_uniform(kernel_, kernel_.ir().CreateNot(follows), language::Likelihood::rarely,
                       [&] { language::wait_for_lds_fills(kernel_); });
  language::barrier(kernel_);
  language::if_uniform(kernel_, follows, language::Likelihood::even,
                       [&] { v_.fetch((buffer + 1) % plan_.buffers, walk.tile_at(stops[1])); });
}

// [wave][slot][lane]: slots apart by less than an instruction's offset reaches. Made anew where it is used: it would
// live through the whole walk.
Value* LineTiles::kept_wave() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateAdd(ir.CreateMul(kernel_.wave(), kernel_.constant(kept_wave_bytes())),
                      kernel_.constant(plan_.merged_offset()));
}
Value* LineTiles::kept_place() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* wave = kept_wave();
  return ir.CreateAdd(wave, ir.CreateMul(kernel_.lane(), kernel_.constant(kept_lane_bytes)));
}
void LineTiles::keep(Value* place, int slot, Value* dwords, int byte_in_slot) const {
  lds_.write(kept_region(), dwords, place, (slot * plan_.merged_slot_bytes / waves_) + byte_in_slot);
}
Value* LineTiles::kept(Value* place, int slot) const {
  return lds_.read(kept_region(), kept_lane_bytes, place, slot * plan_.merged_slot_bytes / waves_);
}
void LineTiles::fetch_kept(Value* slot, const language::Buffer& from, Value* lane_offset, Value* uniform_offset) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* place = ir.CreateAdd(ir.CreateMul(kernel_.wave(), kernel_.constant(kept_wave_bytes())),
                              ir.CreateMul(slot, kernel_.constant(plan_.merged_slot_bytes / waves_)));
  lds_.fill(kept_region(), from, kept_lane_bytes, lane_offset, uniform_offset, place, plan_.merged_offset());
}

}  // namespace wavejit::attention
