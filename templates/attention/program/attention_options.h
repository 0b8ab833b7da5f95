// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The options of `wavejit run` that any attention has: mask, modifiers, splits, scale and type, from the command line to
// the device, the call and the reference. Which modifiers there are, their words and their places in a call come from
// kernel/modifiers.h.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/program/mask_options.h"
#include "templates/attention/program/reference.h"
#include "tools/call_memory.h"
#include "tools/family.h"
#include "tools/npy.h"

namespace wavejit::attention::program {

// Which of them a family has.
struct OfferedOptions {
  MaskKinds masks = MaskKinds::windows;
  bool causal_flags = false;
  Modifiers modifiers = {Modifier::softcap, Modifier::bias, Modifier::alibi, Modifier::sink};
  bool splits = false;
  const char* scale = "of q·k before the softmax (default: 1 / sqrt(head dim))";
  bool needs_scale = false;  // it has no default
  const char* type = "fp16";
};

class AttentionOptions {
 public:
  explicit AttentionOptions(const OfferedOptions& offered) : offered_(offered), dtype_(offered.type) {}

  void add_to(CLI::App& command);

  // Before any device is opened. `keys` is k's shape.
  tools::Result<void> read(const Shape& queries, const Shape& keys);
  std::vector<tools::NamedFile> inputs() const;

  HalfType type() const { return *parse_half_type(dtype_); }
  float scale() const { return scale_value_; }  // behind read
  wavejit_masking mask() const { return mask_.given(); }
  bool given(Modifier modifier) const { return !texts_[index(modifier)].empty(); }
  float number(Modifier modifier) const;  // 0: not given
  const std::optional<Array>& bias() const { return bias_; }
  // A number a head, or a head of each sequence.
  const std::optional<Vector>& vector(Modifier modifier) const { return vectors_[index(modifier)]; }

  // Fills in a family's call, with arrays in `memory`.
  template <typename Call>
  void describe(Call& call, tools::CallMemory& memory) const {
    mask_.describe(call.mask);
    call.mask.causal_flags = memory.in(causal_flags_);
    call.modifiers.scale = scale();
    if (scale() == 0) call.head.flags |= WAVEJIT_SCALE_IS_ZERO;
    call.split.splits = splits();
    for (const ModifierRow& row : modifier_rows) {
      if (row.number != nullptr) call.modifiers.*row.number = number(row.modifier);
      if (row.tensor != nullptr && given(row.modifier)) call.modifiers.*row.tensor = tensor(row.modifier, memory);
    }
  }
  void describe(AttentionArrays& problem) const;

 private:
  static constexpr std::size_t index(Modifier modifier) { return static_cast<std::size_t>(modifier); }
  tools::Result<void> read_flags(std::int64_t batch);
  std::int32_t splits() const;
  wavejit_tensor tensor(Modifier modifier, tools::CallMemory& memory) const;

  OfferedOptions offered_;
  MaskOptions mask_;
  std::string splits_;
  std::string scale_;
  std::string dtype_;
  std::string causal_flags_file_;
  std::array<std::string, modifier_count> texts_;  // of the command line: numbers and paths

  float scale_value_ = 0;
  std::optional<Array> bias_;
  std::array<std::optional<Vector>, modifier_count> vectors_;
  std::vector<std::uint8_t> causal_flags_;  // of sequences; empty: not given
};

}  // namespace wavejit::attention::program
