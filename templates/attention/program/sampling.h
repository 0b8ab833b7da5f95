// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chooses the part of a long problem that is run and compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention/program/rows.h"
#include "tools/family.h"

namespace wavejit::attention::program {

// Workgroups of `tile_rows` rows worth about `limit` multiplications, about two at least, spread over heads, tiles and
// sequences from one end of the grid to the other. `pairs`: each owns two tiles, but for the middle one of odd numbers.
Workgroups choose_workgroups(const Experiment& problem, std::int64_t tile_rows, double limit, bool pairs = false);
// The tiles that they own.
std::uint64_t tiles_of(const Experiment& problem, const Workgroups& workgroups, std::int64_t tile_rows, bool pairs);

// Runs of rows worth about `limit` multiplications, at least one, spread in the same way: for kernels in several
// launches, whose workgroups do not correspond.
std::vector<View> choose_views(const Experiment& problem, double limit);
Rows rows_of(const Experiment& problem, const std::vector<View>& views);

// Host memory, at most, that the simulated GPU's check of races takes beside the tensors: 40 bytes for each dword that
// is touched, in pages. `pieces` workgroups or runs of `rows` rows of a head each; 0: the whole problem.
std::uint64_t race_shadow_bytes(const Experiment& problem, std::uint64_t pieces, std::int64_t rows);

// All rows of a problem.
Rows all_rows(const Experiment& problem);
// Those of `rows` that are compared: all, or runs of neighbours worth about `limit` multiplications, the last run of
// all among them.
Rows choose_rows(const Experiment& problem, const Rows& rows, double limit);

// "" if the rows are whole tiles of `tile_rows` rows, as workgroups write them; else the tile that is not.
std::string partial_tile(const Experiment& problem, const Rows& rows, std::int64_t tile_rows, std::int64_t& tiles);

}  // namespace wavejit::attention::program
