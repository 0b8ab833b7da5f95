// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The masks and modifiers of `wavejit run`: from the command line to the device, the call and the reference. Which
// modifiers there are, their words and their places in a call come from kernel/modifiers.h.
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
#include "tools/device_array.h"
#include "tools/npy.h"

namespace wavejit::attention::program {

// Must end before its engine.
struct ModifiersOnDevice {
  std::array<std::optional<DeviceArray>, modifier_count> tensors;
  std::optional<DeviceArray> causal_flags;
  std::int64_t bias_row_stride = 0;
};

class ModifierOptions {
 public:
  // `splits`: the operation may cut its keys.
  void add_to(CLI::App& command, bool splits);

  // Before any device is opened. `keys` is k's shape.
  Result<void> read(HalfType type, const Shape& queries, const Shape& keys);
  Result<ModifiersOnDevice> copy_to(wavejit_engine* engine) const;
  // Fills in a family's call: mask and modifiers. `type`: the type of a bias's elements.
  template <typename Call>
  void describe(Call& call, std::int32_t type, const ModifiersOnDevice& arrays) const {
    mask_.describe(call.mask);
    if (arrays.causal_flags) call.mask.causal_flags = static_cast<const std::uint8_t*>(arrays.causal_flags->data());
    for (const ModifierRow& row : modifier_rows) {
      if (row.number != nullptr) call.modifiers.*row.number = number(row.modifier);
      if (row.tensor != nullptr && arrays.tensors[static_cast<std::size_t>(row.modifier)])
        call.modifiers.*row.tensor = tensor(row.modifier, type, arrays);
    }
  }
  void describe(AttentionArrays& problem) const;
  // 0: the engine's choice.
  std::int32_t splits() const;

 private:
  Result<void> read_flags(std::int64_t batch);
  float number(Modifier modifier) const;  // 0: not given
  wavejit_tensor tensor(Modifier modifier, std::int32_t type, const ModifiersOnDevice& arrays) const;
  const std::string& text_of(Modifier modifier) const { return texts_[static_cast<std::size_t>(modifier)]; }

  MaskOptions mask_;
  std::string splits_;
  std::string causal_flags_file_;
  std::array<std::string, modifier_count> texts_;  // of the command line: numbers and paths

  std::optional<Array> bias_;
  std::array<std::optional<Vector>, modifier_count> vectors_;  // a number a head
  std::vector<std::uint8_t> causal_flags_;                     // of sequences; empty: not given
};

}  // namespace wavejit::attention::program
