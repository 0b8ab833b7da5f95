// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The call of a problem's arrays that stand in device memory.
#pragma once

#include "templates/attention_latent/program/latent_arrays.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_latent::program {

// Device memory of each array; null: there is none.
struct DevicePointers {
  void* q = nullptr;
  void* q_rope = nullptr;
  void* k = nullptr;
  void* k_rope = nullptr;
  void* o = nullptr;
  void* lse = nullptr;
  void* k_scale = nullptr;
  void* sinks = nullptr;
  void* query_starts = nullptr;
  void* key_starts = nullptr;
  void* key_lengths = nullptr;
  void* table = nullptr;
  void* table_starts = nullptr;
  void* key_indices = nullptr;
  void* key_counts = nullptr;
  void* second_k = nullptr;
  void* second_indices = nullptr;
  void* second_counts = nullptr;
};
wavejit_attention_latent_arguments call_of(const LatentArrays& arrays, const DevicePointers& memory);

}  // namespace wavejit::attention_latent::program
