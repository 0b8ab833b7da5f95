// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The generic pipeline: waves of 32 query rows (16 on RDNA4), four or, with few rows, one or two of them, walk the key
// tiles together, one tile after the other. What they do with a tile stands in attend.h.
#include "templates/attention_forward/emit/generic_pipeline.h"

#include "codegen/language/carried.h"
#include "codegen/language/control.h"
#include "templates/attention/emit/query.h"
#include "templates/attention_forward/emit/attend.h"
#include "templates/attention_forward/emit/byte_products.h"
#include "templates/attention_forward/emit/output.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

using language::Kernel;
using language::Value;
using language::Values;

std::unique_ptr<Attend> make_attend(GenericKernel& generic) {
  if (generic.plan.layout == LdsLayout::padded) return attend_padded(generic);
  return generic.spec.narrow_queries ? attend_bytes(generic) : attend_wide(generic);
}

class GenericPipeline {
 public:
  GenericPipeline(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan)
      : generic_(kernel, spec, plan), walk_(*generic_.walk), attend_(make_attend(generic_)) {}

  void emit() {
    TileState end = walk_tiles();
    finish_rows(generic_.kernel, generic_.spec, generic_.workgroup, generic_.softmax, generic_.merged, end.softmax,
                end.merged, generic_.matrix.element(), end.outputs);
  }

 private:
  TileState walk_tiles() {
    const TileState start = first_state();
    const Values end = language::loop_in_phases(
        generic_.kernel, generic_.plan.buffers, language::carried(start),
        [&](int buffer, const Values& values) {
          return language::carried(next_state(language::state_of(start, values), buffer));
        },
        [&](const Values& values) { return walk_.exists(language::state_of(start, values).place); });
    attend_->end();
    return language::state_of(start, end);
  }

  TileState first_state() {
    TileState start{.place = walk_.first(),
                    .entries = {},
                    .softmax = generic_.softmax.initial(),
                    .outputs = {},
                    .merged = generic_.merged.start(),
                    .scales = {},
                    .in_flight = {}};
    if (reads_ahead())
      for (std::size_t ahead = 0; ahead < entries_carried; ++ahead)
        start.entries.push_back(walk_.read(walk_.ahead(walk_.first(), static_cast<int>(ahead))));
    start.scales = attend_->start_scales();
    const Stops first = stops_at(start, walk_.first());
    start.in_flight = attend_->start(first);
    start.outputs.assign(static_cast<std::size_t>(generic_.output_blocks()), generic_.matrix.zeros());
    const Values query = load_query(generic_.kernel, ByteProducts::loaded_dims(generic_.spec), generic_.workgroup.q,
                                    generic_.workgroup, query_numbers(generic_.spec));
    start.in_flight = attend_->take_query(first, query, start.in_flight);
    return start;
  }

  TileState next_state(TileState state, int buffer) {
    // Opaque to loop strength reduction, which would carry the tile's byte offsets round the loop in vector registers,
    // where a buffer instruction cannot take them from.
    Value* place = generic_.kernel.uniform(state.place);
    state.place = walk_.ahead(state.place, 1);
    if (reads_ahead()) state.entries.push_back(walk_.read(walk_.ahead(place, entries_carried)));
    const Stops stops = stops_at(state, place);
    if (reads_ahead()) state.entries.erase(state.entries.begin());
    return attend_->attend(std::move(state), buffer, stops);
  }

  // A walk in memory carries the entry of the tile, and of the next. Keys in pages leave no scalar registers for them:
  // there a tile is read where it is asked for.
  static constexpr std::size_t entries_carried = 2;
  bool reads_ahead() const { return (generic_.spec.block_lists || generic_.spec.bool_mask) && !generic_.spec.paged; }

  Stops stops_at(const TileState& state, Value* place) const {
    Value* next = walk_.ahead(place, 1);
    Stops stops = {place, next, walk_.ahead(next, 1)};
    for (std::size_t ahead = 0; ahead < state.entries.size() && ahead < stops.size(); ++ahead)
      stops[ahead].entry = state.entries[ahead];
    return stops;
  }

  GenericKernel generic_;
  TileWalk& walk_;
  std::unique_ptr<Attend> attend_;
};

}  // namespace

void emit_generic(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan) {
  GenericPipeline(kernel, spec, plan).emit();
}

}  // namespace wavejit::attention_forward
