// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constraints and sizes of the attention_combine kernels, and of the workspace that lies between them and the split
// kernels. Pure functions; no LLVM, no environment.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/combine/arguments.h"
#include "templates/attention_forward/kernel/combine/spec.h"

namespace wavejit::attention_combine {

// What one chunk leaves of one row, in f32: O [head dim], and m, l and nothing up to the next 16 bytes.
constexpr int output_bytes(int head_dim) { return head_dim * 4; }
inline constexpr int statistics_bytes = 16;
constexpr int record_bytes(int head_dim) { return output_bytes(head_dim) + statistics_bytes; }

// Rows stand [batch][query head][row] (packed: [query head][row of all sequences]), each with O of all slots, then m
// and l of all slots. `rows` counts a head's: batch · query length, or the rows of the packed tensor. Nothing if it
// does not fit 64 bits.
std::optional<std::uint64_t> workspace_bytes(std::uint64_t rows, std::uint64_t query_heads, std::uint64_t slots,
                                             int head_dim);
inline constexpr std::uint64_t workspace_alignment = 256;

// Slots of a row, one for each chunk: two million keys. The records of a query tile then stay far below the 4 GiB of a
// descriptor, and the divisions of a split kernel by multiplication (attention_forward/split.cpp) are exact.
inline constexpr std::uint32_t max_slots = 2048;

// A workgroup is one wave and takes one row: decoding has one of a head. Dims that a lane has of it: a dword of o at
// least.
int threads_of(const CombineKernel& spec);
int dims_per_lane(const CombineKernel& spec);

// Workgroups: x = row of one head of one sequence, y = query head, z = batch or sequence.
attention_forward::LaunchGeometry launch_geometry(const CombineKernel& spec, std::uint32_t batch,
                                                  std::uint32_t query_heads, std::uint32_t query_length);

}  // namespace wavejit::attention_combine
