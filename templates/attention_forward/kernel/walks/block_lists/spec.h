// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled attention_block_lists kernel is, and its text (the cache key):
//
//   attention_block_lists target=gfx950 lowering=llvm
//
// It makes walks (walks.h) of the lists of a call, whatever the kernel that walks them. One wave has a unit's lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_block_lists {

using attention_forward::Lowering;

// A workgroup is one wave.
inline constexpr int threads = 64;

struct BlockListsKernel {
  static constexpr std::string_view kernel = "attention_block_lists";
  static constexpr std::string_view family = attention_forward::ForwardKernel::family;

  bool first_keys = false;  // of dense keys: they say how many a sequence has
  std::string target;       // processor name: a row of the target table
  Lowering lowering = Lowering::llvm;
  bool operator==(const BlockListsKernel&) const = default;
};

std::string to_text(const BlockListsKernel& spec);
std::expected<BlockListsKernel, std::string> parse_spec(std::string_view text);
std::string kernel_name(const BlockListsKernel& spec);
std::optional<std::string> refusal_of(const BlockListsKernel& spec);
std::size_t argument_bytes(const BlockListsKernel& spec);

// What makes the walks of such a kernel.
BlockListsKernel lists_of(const attention_forward::ForwardKernel& walker);

// Workgroups: x = those that sort units, then a unit each; y = head of the lists, z = sequence.
attention_forward::LaunchGeometry launch_geometry(std::uint32_t units, std::uint32_t heads, std::uint32_t batch);

}  // namespace wavejit::attention_block_lists
