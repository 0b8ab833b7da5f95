// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tiles that a walk of attention_block_lists names (kernel/block_lists/walks.h), and who sees them.
#pragma once

#include <memory>

#include "templates/attention/emit/tile_walk.h"
#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward {

// The query tile of the workgroup at place `y` of its head and sequence: the longest units come first.
language::Value* tile_in_order(language::Kernel& kernel, const ForwardKernel& spec, language::Value* batch,
                               language::Value* query_head, language::Value* y);

// The walk of a workgroup that begins at `first_row`.
WalkPlace walk_of(language::Kernel& kernel, language::Value* batch, language::Value* query_head,
                  language::Value* first_row, language::Value* first_row_of_wave);

class ListWalk final : public TileWalk {
 public:
  ListWalk(language::Kernel& kernel, const WalkPlace& place);

  language::Value* read(language::Value* place) const override;
  language::Value* tile_at(const attention::Stop& stop) const override;
  language::Value* marked_at(const attention::Stop& stop) const override { return entry(stop); }
  void prepare_chunks() override {}
  language::Value* begins_chunk(const attention::Stop& stop) const override;
  language::Value* exists_and_begins_chunk(const attention::Stop& stop) const override;
  language::Value* chunk_of(const attention::Stop& stop) const override;
  language::Value* several_chunks() const override { return place_.several_chunks; }
  language::Value* last_chunk() const override { return chunk_of(last()); }

 private:
  language::Value* entry(const attention::Stop& stop) const;

  WalkPlace place_;
};

// All tiles from one to another, of which a bool mask of few rows says whether somebody sees them: marks stand beside
// its bits (kernel/mask_lists/arguments.h).
class MarkedInterval final : public attention::TileInterval {
 public:
  // `bits` (i64): of the workgroup's sequence.
  MarkedInterval(language::Kernel& kernel, language::Value* first, language::Value* end, language::Value* bits)
      : TileInterval(kernel, first, end), bits_(bits) {}

  language::Value* read(language::Value* place) const override;
  language::Value* marked_at(const attention::Stop& stop) const override;
  language::Value* sees(const attention::Stop& stop) const override;

 private:
  language::Value* mark(const attention::Stop& stop) const;

  language::Value* bits_;
};

// The tiles of an interval from `first` on, which is the workgroup's first or one before it.
std::unique_ptr<attention::TileInterval> interval_of(language::Kernel& kernel, const Workgroup& workgroup,
                                                     language::Value* first);

// What the workgroup walks.
std::unique_ptr<TileWalk> walk_of(language::Kernel& kernel, const Workgroup& workgroup);

}  // namespace wavejit::attention_forward
