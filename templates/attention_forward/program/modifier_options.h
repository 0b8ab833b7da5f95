// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The masks and modifiers of `wavejit run`: from the command line to the device, the call and the reference. Which
// modifiers there are, their words and their places in a call come from kernel/modifiers.h.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "templates/attention_forward/kernel/modifier_fields.h"
#include "templates/attention_forward/program/reference.h"
#include "tools/device_array.h"
#include "tools/npy.h"

namespace wavejit::attention_forward::program {

// Must end before its engine.
struct ModifiersOnDevice {
  std::array<std::optional<DeviceArray>, modifier_count> tensors;
  std::int64_t bias_row_stride = 0;
};

class ModifierOptions {
 public:
  void add_to(CLI::App& command);

  // Before any device is opened. `keys` is k's shape.
  Result<void> read(HalfType type, const Shape& queries, const Shape& keys);
  Result<ModifiersOnDevice> copy_to(wavejit_engine* engine) const;
  // The call knows q.
  void describe(wavejit_attention_forward_arguments& call, const ModifiersOnDevice& arrays) const;
  void describe(AttentionProblem& problem) const;

 private:
  const std::string& text_of(Modifier modifier) const { return texts_[static_cast<std::size_t>(modifier)]; }

  bool causal_ = false;
  std::string prefix_;
  std::string window_;
  std::string splits_;
  std::array<std::string, modifier_count> texts_;  // of the command line: numbers and paths

  std::optional<Array> bias_;
  std::array<std::optional<Vector>, modifier_count> vectors_;  // a number a head
};

}  // namespace wavejit::attention_forward::program
