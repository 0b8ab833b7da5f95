// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Into how many runs of whole chunks the keys of each sequence are cut, and how many rows a workgroup has. Neither
// shows in a bit.
#pragma once

#include <cstdint>
#include <string>

#include "boards/board.h"
#include "templates/attention_latent/call/problem.h"

namespace wavejit::attention_latent {

struct Runs {
  Rows rows = Rows::r32;           // of a workgroup
  std::uint32_t count = 1;         // 1: a workgroup walks all keys, and leaves no parts unless there is a second list
  std::uint32_t second_count = 0;  // of a second list
  std::uint32_t chunks = 0;        // of a run
  std::uint64_t workspace_bytes = 0;
  std::uint32_t sequences_a_round = 0;  // 0: all at once
  bool merged = false;                  // in one launch, by the last workgroup to arrive
  bool operator==(const Runs&) const = default;
  bool parts() const { return count > 1 || second_count != 0; }
};
inline constexpr std::uint64_t any_reach = ~std::uint64_t{0};
// `reach`: bytes of the caller's workspace; any_reach: the engine's own.
Runs plan_runs(const LatentProblem& problem, const boards::Board& board, std::uint64_t reach);
// Counters of arrivals that a launch needs; 0: nobody counts.
std::uint32_t arrivals_of(const LatentProblem& problem, const Runs& runs);
// The kernels of such a call.
LatentShape shape_of(const LatentProblem& problem, const Runs& runs);
std::string describe(const Runs& runs, const LatentProblem& problem, const boards::Board& board);

}  // namespace wavejit::attention_latent
