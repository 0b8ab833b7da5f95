// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tiles_swizzled.h"

#include <utility>

#include "codegen/language/control.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/entries_ahead.h"
#include "templates/attention/emit/streams_narrow.h"
#include "templates/attention/emit/unseen_keys.h"

namespace wavejit::attention {
namespace {

using language::Value;
using language::Values;

constexpr int k_region = 0;
constexpr int v_region = 1;

}  // namespace

SwizzledTiles::SwizzledTiles(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan,
                             const KeyTensors& tensors, Value* lane_group, const language::MatrixUnit& matrix)
    : kernel_(kernel),
      late_(shape.late),
      lds_(kernel, plan.total_bytes(), 2),
      pages_(pages_of(kernel, shape.layout, tensors)),
      tile_pages_(tile_pages_of(kernel, shape.layout, tensors, shape.waves)),
      first_seen_(tensors.first_seen) {
  const int threads = shape.waves * kernel.target().wave_size;
  // A stream counts in elements of operands: two bytes are one, but for a cache's, which are widened.
  const int dims_k = shape.cache == CacheType::as_queries && is_narrow(shape.k_type)
                         ? shape.dims_k / targets::bytes_of(matrix.element())
                         : shape.dims_k;
  if (plan.layout == LdsLayout::swizzled) {
    k_ = std::make_unique<SwizzledRows>(kernel, lds_, matrix, tensors.k, k_region, plan.k_offset(0), dims_k, threads,
                                        lane_group, pages_, tile_pages_, shape.cache);
    v_ = std::make_unique<SwizzledTransposed>(kernel, lds_, matrix, tensors.v, v_region, plan.v_offset(0), shape.dims_v,
                                              threads, lane_group, pages_, tile_pages_, shape.cache);
    return;
  }
  const auto lines = [&](const Slice& slice, int region, int line_bytes, int offset, int dims) {
    const LineStream::Place place = {
        .line_bytes = line_bytes, .buffers = {{{region, offset}, {region, offset}}}, .whole_pieces = true};
    return std::make_unique<NarrowLines>(kernel, lds_, matrix, slice, place, dims, shape.waves, pages_, tile_pages_,
                                         shape.cache);
  };
  auto keys = lines(tensors.k, k_region, plan.k_line_bytes, plan.k_offset(0), dims_k);
  auto values = lines(tensors.v, v_region, plan.v_line_bytes, plan.v_offset(0), shape.dims_v);
  keys->begin_rows(lane_group);
  values->begin_transposed(lane_group);
  k_ = std::move(keys);
  v_ = std::move(values);
}

Value* SwizzledTiles::unseen_of(Value* tile) const { return unseen_keys(kernel_, first_seen_, tile); }

Values SwizzledTiles::load(const Stop& stop, const TileWalk& walk, Value* entries, Value* unseen) {
  Value* tile = walk.tile_at(stop);
  Values loaded = pages_ ? k_->fetch_from_pages(tile, entries) : k_->fetch(tile, {});
  const Values values = pages_ ? v_->fetch_from_pages(tile, entries, unseen) : v_->fetch(tile, {}, unseen);
  loaded.insert(loaded.end(), values.begin(), values.end());
  return loaded;
}

Values SwizzledTiles::start(const Stops& stops, const TileWalk& walk) {
  Value* entries = pages_ ? pages_->entries(walk.tile_at(stops[0])) : nullptr;
  if (late_) return pages_ ? Values{entries} : Values{};
  Values loaded = load(stops[0], walk, entries, unseen_of(walk.tile_at(stops[0])));
  if (pages_)
    for (Value* ahead : EntriesAhead::at_start(*pages_, walk, stops, entries)) loaded.push_back(ahead);
  return loaded;
}

void SwizzledTiles::move(const Stop& stop, const TileWalk& walk, Value* entries) {
  Value* tile = walk.tile_at(stop);
  const auto through = [&](SwizzledStream& stream, Value* unseen) {
    stream.write(pages_ ? stream.fetch_from_pages(tile, entries, unseen) : stream.fetch(tile, {}, unseen)).write_rest();
  };
  through(*k_, nullptr);
  through(*v_, unseen_of(tile));
}

Values SwizzledTiles::advance_late(const Stops& stops, const TileWalk& walk, const Values& entries) {
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  move(stops[0], walk, pages_ ? entries.front() : nullptr);
  const Values next = pages_ ? Values{pages_->entries(walk.tile_at(stops[1]))} : Values{};
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  return next;
}

Values SwizzledTiles::advance(int /*buffer*/, const Stops& stops, const TileWalk& walk, const Values& in_flight) {
  if (late_) return advance_late(stops, walk, in_flight);
  // Nobody reads the previous tile any more …
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  const auto values = in_flight.begin() + k_->values_in_flight();
  const auto write = [&] {
    k_->write({in_flight.begin(), values}).write_rest();
    v_->write({values, values + v_->values_in_flight()}).write_rest();
  };
  if (Value* seen = walk.sees(stops[0])) {
    language::if_uniform(kernel_, seen, language::Likelihood::even, write);
  } else {
    write();
  }
  const Values ahead(values + v_->values_in_flight(), in_flight.end());
  if (pages_ && pages_->is_listed()) named_ = EntriesAhead::named(ahead);
  // … and everybody's part of this one has arrived.
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  Values nothing;
  for (Value* value : in_flight) nothing.push_back(llvm::PoisonValue::get(value->getType()));
  return language::if_uniform(kernel_, walk.fetches(stops[1]), language::Likelihood::even, nothing, [&](const Values&) {
    Values loaded = load(stops[1], walk, pages_ ? EntriesAhead::of_next(ahead) : nullptr);
    if (pages_)
      for (Value* further : EntriesAhead::at(*pages_, walk, stops, ahead)) loaded.push_back(further);
    return loaded;
  });
}

}  // namespace wavejit::attention
