// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a family's call says of a problem whose arrays stand in device memory: tensors as the problem places them, and
// what is no tensor.
#pragma once

#include <cstdint>

#include "templates/attention/program/experiment.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

wavejit_tensor tensor_of(const Placement& of, void* data, std::int32_t dtype);
// Rows by keys, of a bias or a bool mask.
wavejit_tensor tensor_of(const BiasPlacement& of, void* data, std::int32_t dtype);

// In device memory; null where the call says nothing of it.
struct SequencePointers {
  const std::int32_t* query_starts = nullptr;
  const std::int32_t* key_starts = nullptr;
  const std::int32_t* key_lengths = nullptr;
};
// `memory` has the fields of SequencePointers.
template <typename Call>
void describe(const Experiment& of, const auto& memory, Call& call) {
  call.modifiers.scale = of.scale;
  if (of.scale == 0) call.head.flags |= WAVEJIT_SCALE_IS_ZERO;
  if (of.says("launches=1")) call.head.flags |= WAVEJIT_ONE_LAUNCH;
  if (of.says("launches=2")) call.head.flags |= WAVEJIT_TWO_LAUNCHES;
  call.modifiers.softcap = of.of(Modifier::softcap).number;
  call.mask = of.mask;
  call.sequences.query_starts = static_cast<const std::int32_t*>(memory.query_starts);
  call.sequences.key_starts = static_cast<const std::int32_t*>(memory.key_starts);
  call.sequences.key_lengths = static_cast<const std::int32_t*>(memory.key_lengths);
  if (of.packed_queries()) {
    call.sequences.count = of.batch;
    call.sequences.max_query_length = of.query_length;
  }
  if (of.packed_keys() || of.paged()) call.sequences.max_key_length = of.key_length;
  if constexpr (requires { call.split.splits; }) call.split.splits = of.splits;
}

}  // namespace wavejit::attention::program
