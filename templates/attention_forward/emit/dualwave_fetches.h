// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the dual-wave pipeline brings into LDS, and what it must know of a tile before: its entry of a walk that stands
// in memory, and its page.
#pragma once

#include "templates/attention/emit/tiles_lines.h"
#include "templates/attention_forward/emit/dualwave_schedule.h"
#include "templates/attention_forward/emit/dualwave_state.h"
#include "templates/attention_forward/emit/walks/list_walk.h"
#include "templates/attention_forward/kernel/lds_plan.h"

namespace wavejit::attention_forward::dualwave {

// Where the walk is: at tile t, and its buffer.
struct Place {
  language::Value* walked;
  int buffer;
};

class Fetches {
 public:
  Fetches(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan, LineTiles& tiles, TileWalk& walk);

  // The stop of tile t + `ahead`.
  Stop stop(const State& state, const Place& place, int ahead, bool may_be_past_the_end = false) const;

  // The place of keys in pages, as looked up; else none.
  attention::TilePages::Place page(const State& state, int ahead) const;

  void perform(const LookUp& look, State& state, const Place& place) const;
  void perform(const ReadWalk& read, State& state, const Place& place) const;
  void perform(const Fetch& fetch, State& state, const Place& place) const;

  // Where three buffers begin; none if there are two.
  const language::Values& images() const { return images_; }

 private:
  // `unseen`: for the values of the first tile (attention/emit/unseen_keys.h).
  void fetch_narrow(const Fetch& fetch, int into, language::Value* wanted, const attention::TilePages::Place& found,
                    language::Value* unseen, State& state, const Place& place) const;

  const ForwardKernel& spec_;
  LineTiles& tiles_;
  TileWalk& walk_;
  language::Values images_;
};

}  // namespace wavejit::attention_forward::dualwave
