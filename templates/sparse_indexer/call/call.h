// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checked call of sparse_indexer on the stack of its C function.
#pragma once

#include <string>

#include "families/call/call_of.h"
#include "templates/sparse_indexer/call/problem.h"

namespace wavejit::sparse_indexer {

// How rows and keys lie in the grid of the scores: shows in no bit.
struct Geometry {
  std::uint32_t rows_shift = 0;  // 1 << rows_shift rows of a workgroup
  std::uint32_t wave_tiles = 1;  // of a wave's run of keys
  std::uint32_t runs = 1;        // workgroups along the keys
};
// The geometry of a round of `sequences` sequences, with `rows` rows of each.
Geometry geometry_of(const IndexerProblem& problem, std::uint32_t sequences, std::uint32_t rows,
                     const boards::Board& board);

class IndexerCall final : public families::CallOf<wavejit_sparse_indexer_arguments, IndexerProblem> {
 public:
  IndexerCall(const wavejit_sparse_indexer_arguments& call, const IndexerProblem& problem, const boards::Board& board,
              const families::Toggles& toggles);
  Result<void> plan(Kernels kernels, const void* memory, families::LaunchPlan& plan) override;
  std::string descriptor(Line line) const override;
  Result<void> judge(families::DeviceMemory& memory) const override;
  families::WorkspaceWords workspace_words() const override;

 private:
  RowArguments rows_of_round() const;
  void add_scores(const RowArguments& rows, families::LaunchPlan& plan);
  void add_select(const RowArguments& rows, const void* memory, families::LaunchPlan& plan);

  Parts parts_;
  Rounds rounds_;
  // The scores of the round that is planned, as if they began with batch 0, row 0.
  std::uint64_t scores_ = 0;
  std::uint64_t scores_batch_stride_ = 0;
  std::uint64_t scores_row_stride_ = 0;
  std::uint32_t sequences_ = 0;
  ScoresArguments scores_arguments_;
  SelectArguments select_arguments_;
  SelectArguments merge_arguments_;
};

}  // namespace wavejit::sparse_indexer
