// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of sparse_indexer in plain numbers: what is left of the struct when every field was looked at.
#pragma once

#include <cstdint>

#include "boards/board.h"
#include "families/call/family.h"
#include "families/call/shape_of.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/mask.h"
#include "templates/attention/call/paging.h"
#include "templates/sparse_indexer/kernel/spec.h"

namespace wavejit::sparse_indexer {

using families::fail;
using families::Failure;
using families::Result;

const families::Family& family();

struct ShapeWords {
  bool scores = true;  // they are computed; else they are given
  bool selects = true;
  DataType type = DataType::bf16;
  int blocks = 0;  // of heads; 0 where scores are given
  bool cut = false;
  bool paged = false;
  bool shared = false;  // rows share keys (kernel/rows.h)
  bool operator==(const ShapeWords&) const = default;

  // Sets the words that follow from the number of heads.
  void set_heads(std::int64_t heads);
};
using ShapeBits = families::BitFields<families::Bits<&ShapeWords::scores, 1>, families::Bits<&ShapeWords::selects, 1>,
                                      families::Bits<&ShapeWords::type, 3>, families::Bits<&ShapeWords::blocks, 3>,
                                      families::Bits<&ShapeWords::cut, 1>, families::Bits<&ShapeWords::paged, 1>,
                                      families::Bits<&ShapeWords::shared, 1>>;
// Everything of a call that changes code.
using IndexerShape = families::ShapeOf<ShapeWords, ShapeBits, family>;

// Pointers and strides stay where the caller put them.
struct IndexerProblem {
  IndexerShape shape;
  std::uint32_t batch = 0;
  std::uint32_t query_length = 0;
  std::uint32_t key_length = 0;
  std::uint32_t heads = 0;
  std::uint32_t top_k = 0;
  attention::SeenKeys seen = {};
  bool keeps_scores = false;  // no tensor takes them: they stand in the workspace until the list is made

  std::uint64_t rows() const { return std::uint64_t{batch} * query_length; }
};

// Batches are a dimension of the grid of 65,535 at most.
using attention::max_batch;
// A row's number among all is a signed one of 32 bits.
inline constexpr std::int64_t max_rows = 0x7FFFFFFF;

// Reads the struct only as far as its size allows. Does not touch what the tensors point to.
Result<IndexerProblem> check(const wavejit_sparse_indexer_arguments* arguments);
// Whether its rows share keys: what the target's table says, or a developer.
void take_rows(IndexerProblem& problem, const targets::Target& target, const families::Toggles& toggles);

// ---- Scores that no tensor takes

// A row of them.
std::uint64_t score_row_bytes(const IndexerProblem& problem);

// How a long row's list is made: of parts of its keys by a workgroup each, and then of what those have chosen. The k
// largest of a row are among the k largest of its parts, and parts lie in the order of their keys: the list is the
// same.
struct Parts {
  std::uint32_t count = 1;
  std::uint32_t keys = 0;  // of a part
};
Parts parts_of(const IndexerProblem& problem, const boards::Board& board);
// What the parts of a row choose: keys, and behind those of all rows their scores.
std::uint64_t chosen_row_bytes(const IndexerProblem& problem, const Parts& parts);

// The rounds in which a call's rows use a workspace: all rows of `sequences` sequences at a time, or `rows` rows of
// one.
struct Rounds {
  std::uint32_t sequences = 0;
  std::uint32_t rows = 0;
  std::uint64_t workspace_bytes = 0;
  std::uint32_t count = 1;
};
// `reach`: bytes of the workspace; at least a row is taken.
Rounds rounds_of(const IndexerProblem& problem, const Parts& parts, std::uint64_t reach);
// What an engine takes on its own.
inline constexpr std::uint64_t most_workspace = std::uint64_t{256} << 20;
// Bytes with which a call takes its fewest rounds; 0: it needs none.
std::uint64_t useful_workspace(const IndexerProblem& problem, const boards::Board& board);

}  // namespace wavejit::sparse_indexer
