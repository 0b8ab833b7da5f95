// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One process of the group, from its engine to its last token.
#pragma once

#include <wavejit/wavejit.h>

#include <array>
#include <cstdint>

#include "attention.h"
#include "group.h"
#include "model.h"
#include "options.h"
#include "scheduler.h"
#include "stalls.h"

namespace serving {

// How much the engine takes on at a time.
constexpr Limits limits = {.slots = 4, .tokens_per_step = 48, .pages = 6};

// The part of the model's heads that each of `ranks` processes has.
HeadShape heads_of_a_rank(const ModelShape& shape, int ranks);

// What a rank tells the parent. Plain numbers: it lies in shared memory.
struct RankReport {
  bool ended;  // in good order
  std::array<char, 1024> failure;
  wavejit_statistics statistics;
  StallTable stalls;
  std::uint64_t steps;
  std::uint64_t mixed_steps;  // in which prompts and answers shared a batch
  std::uint64_t most_rows;
  std::uint64_t tokens;
  std::uint64_t wrong_tokens;
  std::uint64_t alone_requests;  // served again, each alone
  std::uint64_t changed_logits;  // of these: rows whose bits differ
  std::uint64_t shared_pages;    // taken from other requests with the same tokens in front
  std::uint64_t preemptions;     // of requests whose pages went to older ones
  std::uint64_t other_orders;    // of arrival, in which all requests were served again
  std::uint64_t changed_rows;    // of these: rows of logits whose bits differ, or tokens
  std::uint64_t logit_digest;    // of the bits of all logits
  double largest_error;          // of a logit
  double smallest_margin;        // of the reference's choices
  std::uint64_t milliseconds;    // of serving
};

// Throws what goes wrong.
void serve(const Options& options, const Model& model, Group& group, int rank, RankReport& report);

}  // namespace serving
