// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one compiled attention_mask_lists kernel is, and its text (the cache key):
//
//   attention_mask_lists target=gfx950 lowering=llvm
//   attention_mask_lists bias=bf16 target=gfx950 lowering=llvm
//
// It reads a call's bool mask, before attention_block_lists makes walks: blocks of 64 rows by the 64 keys of a tile
// become entries of lists, where some row of the block sees some key of the tile, and a bit for each row and key. Or it
// reads a bias, of which −∞ hides: blocks of nothing else become no entries, blocks of 0 those of whole tiles. No bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "templates/attention/kernel/types.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_mask_lists {

using attention_forward::Lowering;

// A workgroup is one wave, for a block of rows by a tile of keys.
inline constexpr int threads = 64;

struct MaskListsKernel {
  static constexpr std::string_view kernel = "attention_mask_lists";
  static constexpr std::string_view family = attention_forward::ForwardKernel::family;

  attention::DataType elements = attention::DataType::i8;  // bytes of a bool mask, or what a bias is of
  std::string target;                                      // processor name: a row of the target table
  Lowering lowering = Lowering::llvm;
  bool reads_bias() const { return elements != attention::DataType::i8; }
  bool operator==(const MaskListsKernel&) const = default;
};

std::string to_text(const MaskListsKernel& spec);
std::expected<MaskListsKernel, std::string> parse_spec(std::string_view text);
std::string kernel_name(const MaskListsKernel& spec);
std::optional<std::string> refusal_of(const MaskListsKernel& spec);
std::size_t argument_bytes(const MaskListsKernel& spec);

// What reads the mask, or the bias, of such a kernel's call.
MaskListsKernel mask_of(const attention_forward::ForwardKernel& walker);

}  // namespace wavejit::attention_mask_lists
