// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Q of the second tile of a pair (ForwardKernel::paired_tiles), on its way while the first one walks.
//
// Each lane fetches what it will multiply, 16 bytes for every 16 dims, into the slots of LDS in which a walk over
// several chunks keeps what it has merged (MergedRowsPlan): a walk of one chunk needs none of them, and a longer one
// has Q read at its end instead, which it hardly notices. Two fetches stand before each pair of tiles, outside the
// tables: nobody but the lane itself touches its slots, and a wait that counts the tables' fetches only waits for a
// little more.
#pragma once

#include "codegen/language/lane_place.h"
#include "templates/attention/emit/tiles_lines.h"
#include "templates/attention_forward/emit/byte_products.h"
#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward {

class SecondQuery {
 public:
  // `tile`: the query tile that `workgroup` walks.
  SecondQuery(language::Kernel& kernel, const ForwardKernel& spec, const WorkgroupPlace& place,
              const Workgroup& workgroup, const LineTiles& tiles, language::Value* tile);

  // Uniform: the tile that walks is the first of two.
  language::Value* follows() const { return follows_; }
  // Uniform: whether blocks are still to be fetched while the walk is at `key_tile`, an even number of tiles after the
  // first.
  language::Value* is_left(language::Value* key_tile) const;
  // Each such tile fetches two blocks, if some are left: this wave issues this many fetches.
  static constexpr int fetches = 2;
  void fetch(language::Value* key_tile) const;
  // What is not on its way yet when the walk has come to `key_tile`.
  void fetch_rest(language::Value* key_tile) const;
  // As load_query gives them, when all fetches have been waited for. For waves that `follows` is true of.
  language::Values take() const;

 private:
  language::Value* lane_offset() const;
  int blocks() const { return ByteProducts::loaded_dims(spec_) / language::wave_shape(kernel_).fragment_k(); }

  language::Kernel& kernel_;
  const ForwardKernel& spec_;
  const Workgroup& workgroup_;
  const LineTiles& tiles_;
  language::Value* second_tile_;
  language::Value* follows_;
  language::Value* ahead_;  // uniform: blocks to fetch while the first tile walks, none or all
};

}  // namespace wavejit::attention_forward
