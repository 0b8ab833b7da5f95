// The masks and modifiers of `wavejit run`: from the command line to the device, the call and the reference.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "templates/attention_forward/program/reference.h"
#include "tools/device_array.h"
#include "tools/npy.h"

namespace wavejit::attention_forward::program {

// Must end before its engine.
struct ModifiersOnDevice {
  std::optional<DeviceArray> bias;
  std::int64_t bias_row_stride = 0;
  std::optional<DeviceArray> alibi;
  std::optional<DeviceArray> sink;
};

class Modifiers {
 public:
  void add_options(CLI::App& command);

  // Before any device is opened. `keys` is k's shape.
  Result<void> read(HalfType type, const Shape& queries, const Shape& keys);
  Result<ModifiersOnDevice> copy_to(wavejit_engine* engine) const;
  // The call knows q.
  void describe(wavejit_attention_forward_arguments& call, const ModifiersOnDevice& arrays) const;
  void describe(AttentionProblem& problem) const;

 private:
  bool causal_ = false;
  std::string prefix_;
  std::string window_;
  std::string softcap_;
  std::string splits_;
  std::string bias_path_;
  std::string alibi_path_;
  std::string sink_path_;

  std::optional<Array> bias_;
  std::optional<Vector> alibi_;
  std::optional<Vector> sink_;
};

}  // namespace wavejit::attention_forward::program
