// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which tiles of keys a workgroup walks, and where chunks begin among them.
//
// A walk moves from place to place, one by one. What stands at a place is a tile of keys. Of an interval the two are
// one number; a list of tiles would look up which tile its place has. Pipelines ask a walk and never add to a tile:
//
//   first       the first place. There is at least one
//   ahead       a place some tiles further, or the last one
//   begins      the place begins a chunk (docs/canonical-arithmetic.md), and is not the first that is walked
//
// What stands in memory takes its time. A pipeline that knows tiles ahead where it goes reads there, carries what it
// read, and asks by a Stop.
#pragma once

#include <array>
#include <cstdint>

#include "codegen/language/kernel.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::attention {

// A place, and what stands there as far as it is known: where it is not, asking may read it.
struct Stop {
  // A stop with a place alone, which is all that there is of an interval.
  Stop(language::Value* number, language::Value* read = nullptr) : place(number), entry(read) {}

  language::Value* place;
  language::Value* entry;  // TileWalk::read
};
// A tile and the two tiles after it.
using Stops = std::array<Stop, 3>;

class TileWalk {
 public:
  virtual ~TileWalk() = default;

  language::Value* first() const { return first_; }
  language::Value* last() const;
  // May be before the first and behind the last.
  language::Value* ahead(language::Value* place, int tiles) const;
  language::Value* at_most_last(language::Value* place) const;
  // Uniform: the place is no further than the last.
  language::Value* exists(language::Value* place) const;

  // What stands at a place, behind the last what stands there, on its way from memory; null: nothing stands in memory.
  virtual language::Value* read(language::Value* /*place*/) const { return nullptr; }

  // The tile at a place that is walked: its keys are tile · tile_keys and on.
  virtual language::Value* tile_at(const Stop& stop) const = 0;
  // The same with its marks, if it has any: what modifiers and masks are asked with.
  virtual language::Value* marked_at(const Stop& stop) const { return tile_at(stop); }
  // Uniform: whether any row sees the tile at a place that is walked: else it is neither fetched nor multiplied. Null:
  // that is not known, or always so.
  virtual language::Value* sees(const Stop& /*stop*/) const { return nullptr; }
  // The place is no further than the last, and its tile is to be fetched.
  language::Value* fetches(const Stop& stop) const;

  // Chunks are prepared once, in a block that all questions about them come behind.
  virtual void prepare_chunks() = 0;
  // Uniform: the place, which is walked, begins a chunk, and is not the first.
  virtual language::Value* begins_chunk(const Stop& stop) const = 0;
  // Uniform: the same of a place that may be behind the last, and then does not.
  virtual language::Value* exists_and_begins_chunk(const Stop& stop) const = 0;
  virtual language::Value* chunk_of(const Stop& stop) const = 0;
  // More than one is walked, and which is the last.
  virtual language::Value* several_chunks() const = 0;
  virtual language::Value* last_chunk() const = 0;

 protected:
  // Places first … end − 1.
  TileWalk(language::Kernel& kernel, language::Value* first, language::Value* end)
      : kernel_(kernel), first_(first), end_(end) {}

  language::Kernel& kernel_;

 private:
  language::Value* first_;
  language::Value* end_;
};

// All tiles from one to another. `tiles_of_chunk`: a power of two.
class TileInterval : public TileWalk {
 public:
  TileInterval(language::Kernel& kernel, language::Value* first, language::Value* end, int tiles_of_chunk = chunk_tiles)
      : TileWalk(kernel, first, end), tiles_of_chunk_(tiles_of_chunk) {}

  language::Value* tile_at(const Stop& stop) const override { return stop.place; }
  void prepare_chunks() override;
  language::Value* begins_chunk(const Stop& stop) const override;
  language::Value* exists_and_begins_chunk(const Stop& stop) const override;
  language::Value* chunk_of(const Stop& stop) const override;
  language::Value* several_chunks() const override;
  language::Value* last_chunk() const override { return chunk_of(last_border_); }

 private:
  std::uint32_t part_of_chunk() const;

  int tiles_of_chunk_;
  language::Value* first_border_ = nullptr;  // uniform: the first tile that may begin a second chunk …
  language::Value* last_border_ = nullptr;   // … and where the last chunk begins
};

}  // namespace wavejit::attention
