// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem's arrays on the device, and the call.
//
// Around Q, K and V lie rows of NaN, around O and LSE a pattern that must survive; O and LSE themselves hold that
// pattern before a run, so that what a run has written can be told from what it has not.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention/program/inputs.h"
#include "templates/attention/program/key_lists.h"
#include "templates/attention/program/modifiers.h"
#include "templates/attention/program/rows.h"
#include "templates/attention/program/written_rows.h"
#include "templates/attention_forward/program/vocabulary.h"
#include "tools/call_memory.h"
#include "tools/device_array.h"

namespace wavejit::attention_forward::program {

class DeviceCase {
 public:
  static Result<DeviceCase> prepare(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                    const HeadValues& head_values);
  // Leaves Q, K, V and O as the device gives them. The simulated GPU gives zeros that cost nothing until they are
  // touched: where little of a launch runs, its arrays may be larger than the host.
  static Result<DeviceCase> prepare_unfilled(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                             const HeadValues& head_values);

  // Marks O and LSE as not written.
  Result<void> erase();
  // Launches and waits. `engine` may be another one on the same device.
  Result<void> run(wavejit_engine* engine, wavejit_call_report* report);
  Result<void> run(wavejit_engine* engine, const View& view, wavejit_call_report* report);
  // Launches without waiting, in a stream of the caller's and with its workspace: what may be captured.
  struct Workspace {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  Result<void> start(wavejit_engine* engine, const Workspace& workspace, ihipStream_t* stream) const;
  // What the engine would take beside the arrays.
  Result<std::uint64_t> workspace_bytes(wavejit_engine* engine) const;

  // Rows of which anything was written, by LSE if there is one, else by O.
  Result<Rows> written() const;
  Result<WrittenRows> read(const Rows& rows) const;
  // "" or what outside O and LSE was written.
  Result<std::string> broken_fence() const;

 private:
  // All bits set: NaN in fp16, bf16 and fp32, and no result of a finite input.
  static constexpr int mark = 0xFF;
  static constexpr std::uint16_t marked_element = 0xFFFF;
  static constexpr std::uint32_t marked_lse = 0xFFFFFFFF;

  struct Tensor {
    Placement placement;
    std::size_t element = 0;  // bytes
    std::size_t margin = 0;   // bytes on either side
    DeviceArray memory;

    std::size_t bytes() const { return static_cast<std::size_t>(placement.elements()) * element; }
    // The place of a row of a head, in bytes from the beginning of the memory.
    std::size_t at(std::int64_t token, std::int64_t head) const {
      return margin + static_cast<std::size_t>(placement.offset(token, head)) * element;
    }
    char* pointer(std::int64_t token, std::int64_t head) const {
      return static_cast<char*>(memory.data()) + at(token, head);
    }
  };
  // Modifiers' tensors, starts, lengths; null: there is none.
  struct Extra {
    CallMemory memory;
    std::array<void*, modifier_count> modifiers{};
    std::int32_t* query_starts = nullptr;
    std::int32_t* key_starts = nullptr;
    std::int32_t* key_lengths = nullptr;
    std::int32_t* first_keys = nullptr;
    std::int32_t* block_table = nullptr;
    std::uint8_t* causal_flags = nullptr;
    std::uint8_t* bool_mask = nullptr;
    std::int32_t* list_counts = nullptr;
    std::int32_t* list_indices = nullptr;
    float* q_scale = nullptr;
    float* k_scale = nullptr;
    float* v_scale = nullptr;
    wavejit_key_list key_list{};
    wavejit_key_list second_list{};
    std::int64_t list_row_blocks = 0;
    std::int64_t list_capacity = 0;

    char* of(Modifier one) const { return static_cast<char*>(modifiers[index_of(one)]); }
  };

  // The second cache, without rows where there is none.
  struct SecondCache {
    Tensor k, v;
  };

  DeviceCase(const Experiment& problem, Tensor q, Tensor k, Tensor v, SecondCache second, Tensor o, Tensor lse,
             Extra extra);

  // device_case_arrays.cpp.
  static Result<Tensor> make(wavejit_engine* engine, const Placement& placement, std::size_t element);
  static Result<Extra> make_extra(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                  const HeadValues& head_values);
  static Result<DeviceArray> make_bias(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs);
  static Result<void> fill_with_mark(const DeviceArray& memory, std::size_t first, std::size_t bytes, int byte = mark);
  static Result<void> fill_margins(const Tensor& tensor, int byte = mark);
  // `turned`: places from the last to the first.
  Result<void> fill(const Tensor& tensor, Operand operand, const Inputs& inputs, bool turned = false) const;
  Result<void> fill_transposed(const Tensor& tensor, Operand operand, const Inputs& inputs) const;
  // device_case.cpp.
  // A row of O, of which `outputs` is all.
  std::vector<std::uint16_t> row_in(const std::vector<std::uint16_t>& outputs, std::int64_t token,
                                    std::int64_t head) const;
  wavejit_tensor described(const Tensor& tensor, wavejit_dtype dtype) const;
  wavejit_tensor row_scales(const Tensor& of, void* data) const;
  static wavejit_tensor described_lse(const Tensor& tensor);
  wavejit_tensor described_bias(wavejit_dtype dtype) const;
  void describe();
  void describe_tensors();
  void describe_mask();
  void describe_sequences();
  void describe_modifiers();
  void describe_lists();
  wavejit_dtype query_type() const;
  wavejit_dtype key_type() const;  // of K and V, unless they are integers

  Experiment problem_;
  std::vector<Sequence> sequences_;
  PageTable pages_;  // without entries if there are none
  Tensor q_;
  Tensor k_;
  Tensor v_;
  SecondCache second_;
  Tensor o_;
  Tensor lse_;  // without rows if it is not wanted
  Extra extra_;
  wavejit_attention_forward_arguments call_{};
};

}  // namespace wavejit::attention_forward::program
