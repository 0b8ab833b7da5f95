// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the generic pipeline does with one tile of keys, which is all that its kinds differ in:
//
//   wide     16-bit products of tiles that stand as lines or swizzled; Q and K may be integers, caches may have a scale
//            a token                                                                                  attend_wide.cpp
//   padded   16-bit products of tiles that stand in padded rows, with barriers in two halves        attend_padded.cpp
//   bytes    products of Q, K and V in 8 bits                                                        attend_bytes.cpp
//
// Each kind computes
//
//   Sᵀ = K · Qᵀ      a lane owns a query row (a column of Sᵀ), so that row statistics stay in the lane
//   P  = softmax weights of S, rounded to the storage type in the registers where S stood
//   Oᵀ += Vᵀ · Pᵀ    with the keys in the order in which the score registers hold them: P never crosses lanes
#pragma once

#include <memory>
#include <vector>

#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/tiles.h"
#include "templates/attention_forward/emit/fragment_reads.h"
#include "templates/attention_forward/emit/merged_rows.h"
#include "templates/attention_forward/emit/workgroup.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// A kernel of the generic pipeline, with what its walk and its attends share. The members are in the order in which
// their instructions stand in the kernel.
struct GenericKernel {
  GenericKernel(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan);
  GenericKernel(const GenericKernel&) = delete;
  GenericKernel& operator=(const GenericKernel&) = delete;

  int output_blocks() const { return blocks_of_dims(spec.head_dim_v, wave.rows); }
  // The steps of S: its accumulators take turns, so that neighbours do not wait for each other.
  std::vector<FragmentStep> key_steps() const;
  // The steps of O: keys in blocks of 16 from key 0 of the tile upward.
  std::vector<FragmentStep> value_steps() const;
  // Raw scores, dims in blocks of 16 from dim 0 upward. `all_read`: as FragmentReads::consume.
  std::vector<language::Accumulator> multiply_keys(FragmentReads& keys, const std::vector<language::OperandB>& query,
                                                   const std::function<void()>& all_read = {}) const;

  language::Kernel& kernel;
  const ForwardKernel& spec;
  const LdsPlan& plan;
  targets::WaveShape wave;
  language::MatrixUnit matrix;
  Workgroup workgroup;
  ScoreModifiers modifiers;
  std::unique_ptr<Tiles> tiles;  // null where they stand padded
  language::Softmax softmax;
  std::unique_ptr<TileWalk> walk;
  MergedRows merged;
};

// What the loop over tiles carries.
struct TileState {
  language::Value* place = nullptr;  // of the tile in the walk
  language::Values entries;          // what stands there and at the next place, where it is read ahead
  language::SoftmaxState softmax;
  std::vector<language::Accumulator> outputs;  // Oᵀ, a block of dims each
  language::Values merged;                     // the chunks before, as far as registers hold them
  language::Values scales;                     // of the tile's keys and values, where each has its own
  language::Values in_flight;                  // the next tile, as far as it waits in registers
  void each(this auto& state, auto visit) {
    visit(state.place);
    visit(state.softmax);
    visit(state.outputs);
    visit(state.merged);
    visit(state.entries);
    visit(state.scales);
    visit(state.in_flight);
  }
};

// The functions are called in the order in which they stand here.
class Attend {
 public:
  virtual ~Attend() = default;

  // Scales of the first tile's keys and values, where each has its own.
  virtual language::Values start_scales() { return {}; }
  // Begins the loads of the first tile; returns what is in flight in registers.
  virtual language::Values start(const Stops& first) = 0;
  // Takes Q as load_query loads it, and returns what is in flight then.
  virtual language::Values take_query(const Stops& first, const language::Values& query,
                                      const language::Values& in_flight) = 0;
  // The tile at the first of `stops`; `buffer` of LDS is its own. Called for each tile.
  virtual TileState attend(TileState state, int buffer, const Stops& stops) = 0;
  // Called behind the last tile.
  virtual void end() {}
};

std::unique_ptr<Attend> attend_wide(GenericKernel& generic);
std::unique_ptr<Attend> attend_padded(GenericKernel& generic);
std::unique_ptr<Attend> attend_bytes(GenericKernel& generic);

}  // namespace wavejit::attention_forward
