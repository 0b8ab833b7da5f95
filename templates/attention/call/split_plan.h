// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Into how many runs the keys of a call are cut, so that few query rows fill a device (docs/split-keys.md).
//
// A *run* is the part of a sequence's keys, in whole chunks, that one workgroup walks. It leaves a part: what its rows
// come to over those keys. A *filling* is the device full of workgroups once. A *round* is as many sequences as have
// room for their parts in the workspace; rounds follow each other over the same memory. None of them shows in a bit.
//
// Families say what there is to cut, and which of their kernels walk it (attention_forward/call/splits.h,
// attention_latent/call/splits.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "families/call/family.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

struct SplitPlan {
  enum class Reason : std::uint8_t {
    asked_by_call,
    asked_by_engine,   // kv_splits
    one_chunk,         // there is nothing to cut
    whole,             // more than a few query rows
    fills_device,      // the plan's own choice
    device_is_full,    // cutting would not help
    beyond_kernels,    // more chunks, heads or rows than kernels count
    lists,             // walks of block lists are not cut
    beyond_workspace,  // there is one, and it has no room for the parts of one sequence
    two_lists,         // each walked by a launch of its own: parts are merged, however many runs there are
  };
  std::uint32_t runs = 1;             // 1: a workgroup walks all keys, and leaves no part unless there is a second list
  std::uint32_t second_runs = 0;      // of a second list; 0: there is none
  std::uint32_t run_chunks = 0;       // chunks of a run
  std::uint64_t workspace_bytes = 0;  // of one round; of block lists: their walks
  std::uint32_t sequences_a_round = 0;  // 0: all sequences in one round
  Reason reason = Reason::whole;
  bool merged = false;  // in the launch that leaves the parts, by the last workgroup to arrive

  bool operator==(const SplitPlan&) const = default;
  // The kernels leave parts, and the parts are merged.
  bool parts() const { return runs != 1 || second_runs != 0; }
  // Kernels that leave no parts give the call's numbers too.
  bool may_go_whole() const { return runs != 1 && second_runs == 0; }
  // Rounds that `batch` sequences take.
  std::uint32_t rounds(std::uint32_t batch) const {
    return sequences_a_round == 0 ? 1 : (batch + sequences_a_round - 1) / sequences_a_round;
  }
  // The first sequence of a round, and how many it has.
  std::uint32_t first_of(std::uint32_t round) const { return round * sequences_a_round; }
  std::uint32_t sequences_of(std::uint32_t round, std::uint32_t batch) const {
    return sequences_a_round == 0 ? batch : std::min(batch - first_of(round), sequences_a_round);
  }
};

// Bytes of a workspace that is there; any_reach: an engine's own, of which most_workspace is used.
inline constexpr std::uint64_t any_reach = ~std::uint64_t{0};
inline constexpr std::uint64_t most_workspace = std::uint64_t{256} << 20U;
inline std::uint64_t reach_of(const wavejit_split& split) {
  return split.workspace == nullptr ? any_reach : split.workspace_bytes;
}

// What is cut. `workgroups` walk all sequences where keys are whole.
struct KeysToCut {
  std::uint64_t keys = 0;
  std::uint64_t chunk_keys = 0;
  std::uint64_t chunks = 0;
  std::uint64_t workgroups = 0;
  bool uneven_lengths = false;  // sequences may have fewer keys
};
// The device that the keys are cut for. Costs are in tiles of keys: what a run costs beside its tiles, and what a second
// launch and its merge, about 5,400 cycles, cost. The clock's cycles of lists of 512 to 2,048 keys gave the latter; where
// chunks have 1,024 keys it decides nothing (docs/split-keys.md).
struct DeviceToFill {
  std::uint64_t places = 0;  // for workgroups at a time
  std::uint64_t merge_cost = 0;
  std::uint64_t fillings_of_uneven_lengths = 0;
  std::uint64_t run_cost = 1;
  std::uint64_t most_fillings = 8;
};
// Tiles of keys that a run of so many chunks has.
std::uint64_t tiles_of_run(const KeysToCut& cut, std::uint64_t run_chunks);
// Chunks a run, so that the device is full and little of it empty at the end. All of them: cutting does not help.
std::uint64_t chunks_a_run(const KeysToCut& cut, const DeviceToFill& device);

// Sequences a round, as even as whole sequences allow: `batch` where all have room. 0: not one has.
std::uint64_t sequences_within(std::uint64_t batch, std::uint64_t bytes_of_sequence, std::uint64_t room);

// The reason in words, which end a line of `explain`. A chunk has `chunk_keys` keys.
std::string describe(SplitPlan::Reason reason, std::uint64_t chunk_keys);
// "4, each up to 8 chunks of 1024 keys, 17301504 bytes of workspace" and how many rounds there are; behind it stand the
// reason and who merges. Keys that are whole give "1".
std::string describe_runs(const SplitPlan& plan, std::uint64_t chunk_keys, std::uint32_t batch);
families::WorkspaceWords words_of_parts(const SplitPlan& plan);

}  // namespace wavejit::attention
