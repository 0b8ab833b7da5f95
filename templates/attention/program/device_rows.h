// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem's rows on the device.
//
// Around Q, K and V lie rows of NaN, around O and LSE a pattern that must survive; O and LSE themselves hold that
// pattern before a run, so that what a run has written can be told from what it has not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention/program/inputs.h"
#include "templates/attention/program/rows.h"
#include "templates/attention/program/written_rows.h"
#include "tools/call_memory.h"
#include "tools/fenced_memory.h"

namespace wavejit::attention::program {

// Without rows where a problem has none.
struct DeviceTensor {
  Placement placement;
  std::size_t element = 0;  // bytes
  tools::FencedMemory memory;

  // A row of a head.
  char* row(std::int64_t token, std::int64_t head) const {
    return memory.data() + (static_cast<std::size_t>(placement.offset(token, head)) * element);
  }
  wavejit_tensor described(std::int32_t dtype) const;
};

class DeviceRows {
 public:
  // Leaves Q, K, V and O as the device gives them. The simulated GPU gives zeros that cost nothing until they are
  // touched: where little of a launch runs, its arrays may be larger than the host.
  DeviceRows(wavejit_engine* engine, const Experiment& problem);
  Result<void> fill(const Inputs& inputs) const;

  // Marks O and LSE as not written.
  Result<void> erase() const;
  // Rows of which anything was written, by LSE if there is one, else by O.
  Result<Rows> written() const;
  Result<WrittenRows> read(const Rows& rows) const;
  // "" or what outside O and LSE was written.
  Result<std::string> broken_fence() const;

 protected:
  // The token of the problem that stands at a place in memory, and its number in its sequence; −1: none that counts.
  struct Token {
    std::int64_t number = 0;
    std::int64_t position = -1;
  };
  std::vector<Token> tokens_in_memory(Operand operand, std::int64_t places) const;
  void* filled_bias(const BiasPlacement& bias, const Inputs& inputs);

  wavejit_engine* engine_;
  Experiment problem_;
  std::vector<Sequence> sequences_;
  KeySlots slots_;
  tools::CallMemory memory_;
  DeviceTensor q_, k_, v_;
  DeviceTensor second_k_, second_v_;  // of a second cache
  DeviceTensor o_;
  DeviceTensor lse_;

 private:
  DeviceTensor make(const Placement& placement, std::size_t element, bool is_there = true);
  // `turned`: places from the last to the first.
  Result<void> fill(const DeviceTensor& tensor, Operand operand, const Inputs& inputs, bool turned) const;
  template <typename Element>
  Result<void> fill_rows(const DeviceTensor& tensor, Operand operand, const Inputs& inputs, Element nothing,
                         bool turned) const;
  // A row of O, of which `outputs` is all.
  std::vector<std::uint16_t> row_in(const std::vector<std::uint16_t>& outputs, std::int64_t token,
                                    std::int64_t head) const;
};

}  // namespace wavejit::attention::program
