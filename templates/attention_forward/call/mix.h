// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls whose packed queries are a mix: a few long ones (prefill, chunks of it) among many of one or a few rows
// (decode). One kernel for all would give each short sequence a tile that stands nearly empty, and leave its keys
// whole. Two kernels then walk the keys, one after the other: a long sequence's as ever, a short one's as a call of
// few rows would have them, its keys split where that helps. Which sequence is which only the device knows
// (row_limits.h), and what the host guesses shows in no bit.
#pragma once

#include <cstdint>

#include "templates/attention_forward/call/problem.h"

namespace wavejit::attention_forward {

// The query rows up to which a sequence counts as short: as many as fill the smallest tile with all heads of a kv head,
// or several such tiles if the sequences beside one of the longest have more than a few tokens. 0: one kernel for all,
// because queries are not packed, or nothing suggests that many are short.
std::uint32_t few_rows_of(const AttentionProblem& problem);

// The short sequences as a problem of their own: as if each had `few_rows` rows. The smallest tile, however many rows
// that are: most have one.
AttentionProblem of_few_rows(const AttentionProblem& problem, std::uint32_t few_rows);

}  // namespace wavejit::attention_forward
