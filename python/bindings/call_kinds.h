// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The fields of the argument structs of wavejit.h by name, and the functions that take them.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "wavejit/wavejit.h"

namespace wavejit::python {

namespace nb = nanobind;

template <typename Arguments>
struct TensorField {
  const char* name;
  wavejit_tensor Arguments::* member;
};
template <typename Arguments>
struct NumberField {
  const char* name;
  std::variant<float Arguments::*, std::int32_t Arguments::*, std::int64_t Arguments::*, std::uint32_t Arguments::*,
               std::size_t Arguments::*>
      member;
};
template <typename Arguments>
struct AddressField {
  const char* name;
  std::variant<const std::int32_t* Arguments::*, const std::uint8_t* Arguments::*, std::int32_t* Arguments::*,
               float* Arguments::*, void* Arguments::*, const void* Arguments::*>
      member;
};

// A field inside an array of the struct, by its byte.
struct PlacedField {
  const char* name;
  std::size_t at;
};

// A function of the C interface that is a call: its struct's fields and what can be asked of it.
template <typename Arguments>
struct Kind;

template <>
struct Kind<wavejit_attention_forward_arguments> {
  using A = wavejit_attention_forward_arguments;
  static constexpr const char* class_name = "AttentionForwardCall";
  static constexpr std::array tensors{
      TensorField<A>{"q", &A::q},
      TensorField<A>{"k", &A::k},
      TensorField<A>{"v", &A::v},
      TensorField<A>{"o", &A::o},
      TensorField<A>{"lse", &A::lse},
      TensorField<A>{"bias", &A::bias},
      TensorField<A>{"sink", &A::sink},
      TensorField<A>{"alibi", &A::alibi},
      TensorField<A>{"k_scale", &A::k_scale},
      TensorField<A>{"v_scale", &A::v_scale},
      TensorField<A>{"q_scale", &A::q_scale},
      TensorField<A>{"bool_mask", &A::bool_mask},
  };
  static constexpr std::array numbers{
      NumberField<A>{"scale", &A::scale},
      NumberField<A>{"score_rounding", &A::score_rounding},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"window_left", &A::window_left},
      NumberField<A>{"window_right", &A::window_right},
      NumberField<A>{"local_chunk", &A::local_chunk},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"sequences", &A::sequences},
      NumberField<A>{"max_query_length", &A::max_query_length},
      NumberField<A>{"max_key_length", &A::max_key_length},
      NumberField<A>{"softcap", &A::softcap},
      NumberField<A>{"token_scales", &A::token_scales},
      NumberField<A>{"splits", &A::splits},
      NumberField<A>{"workspace_bytes", &A::workspace_bytes},
      NumberField<A>{"flags", &A::flags},
      NumberField<A>{"table_columns", &A::table_columns},
      NumberField<A>{"table_row_stride", &A::table_row_stride},
      NumberField<A>{"page_layout", &A::page_layout},
      NumberField<A>{"max_total_keys", &A::max_total_keys},
      NumberField<A>{"list_row_blocks", &A::list_row_blocks},
      NumberField<A>{"list_capacity", &A::list_capacity},
      NumberField<A>{"full_capacity", &A::full_capacity},
      NumberField<A>{"list_rows", &A::list_rows},
      NumberField<A>{"list_keys", &A::list_keys},
      NumberField<A>{"list_batches", &A::list_batches},
      NumberField<A>{"list_heads", &A::list_heads},
      NumberField<A>{"top_k", &A::top_k},
      NumberField<A>{"key_indices_row_stride", &A::key_indices_row_stride},
      NumberField<A>{"key_slots", &A::key_slots},
      NumberField<A>{"key_list_heads", &A::key_list_heads},
      NumberField<A>{"second_top_k", &A::second_top_k},
      NumberField<A>{"second_indices_row_stride", &A::second_indices_row_stride},
  };
  static constexpr std::array addresses{
      AddressField<A>{"query_starts", &A::query_starts}, AddressField<A>{"key_starts", &A::key_starts},
      AddressField<A>{"key_lengths", &A::key_lengths},   AddressField<A>{"block_table", &A::block_table},
      AddressField<A>{"table_starts", &A::table_starts}, AddressField<A>{"first_keys", &A::first_keys},
      AddressField<A>{"causal_flags", &A::causal_flags}, AddressField<A>{"workspace", &A::workspace},
  };
  // launch_over leaves them as they are.
  static constexpr std::array kept_tensors{TensorField<A>{"second_k", &A::second_k},
                                           TensorField<A>{"second_v", &A::second_v}};
  static constexpr std::array kept_addresses{
      AddressField<A>{"list_counts", &A::list_counts},       AddressField<A>{"list_indices", &A::list_indices},
      AddressField<A>{"list_starts", &A::list_starts},       AddressField<A>{"full_counts", &A::full_counts},
      AddressField<A>{"full_indices", &A::full_indices},     AddressField<A>{"full_starts", &A::full_starts},
      AddressField<A>{"key_indices", &A::key_indices},       AddressField<A>{"key_counts", &A::key_counts},
      AddressField<A>{"second_indices", &A::second_indices}, AddressField<A>{"second_counts", &A::second_counts},
  };
  static constexpr auto launch = wavejit_attention_forward;
  static constexpr auto supported = wavejit_attention_forward_supported;
  static constexpr auto ready = wavejit_attention_forward_ready;
  static constexpr auto describe = wavejit_attention_forward_describe;
  static constexpr auto workspace = wavejit_attention_forward_workspace;
};

template <>
struct Kind<wavejit_softmax_lse_arguments> {
  using A = wavejit_softmax_lse_arguments;
  static constexpr const char* class_name = "SoftmaxLseCall";
  static constexpr std::array tensors{
      TensorField<A>{"scores", &A::scores},
      TensorField<A>{"weights", &A::weights},
      TensorField<A>{"lse", &A::lse},
  };
  static constexpr std::array numbers{
      NumberField<A>{"scale", &A::scale},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"window_left", &A::window_left},
      NumberField<A>{"window_right", &A::window_right},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"flags", &A::flags},
  };
  static constexpr std::array addresses{AddressField<A>{"key_lengths", &A::key_lengths}};
  static constexpr auto launch = wavejit_softmax_lse;
  static constexpr auto supported = wavejit_softmax_lse_supported;
  static constexpr auto ready = wavejit_softmax_lse_ready;
  static constexpr auto describe = wavejit_softmax_lse_describe;
};

template <>
struct Kind<wavejit_cache_append_arguments> {
  using A = wavejit_cache_append_arguments;
  static constexpr const char* class_name = "CacheAppendCall";
  static constexpr std::array tensors{
      TensorField<A>{"k", &A::k},
      TensorField<A>{"v", &A::v},
      TensorField<A>{"k_cache", &A::k_cache},
      TensorField<A>{"v_cache", &A::v_cache},
      TensorField<A>{"q", &A::q},
      TensorField<A>{"q_out", &A::q_out},
      TensorField<A>{"cos", &A::cos},
      TensorField<A>{"sin", &A::sin},
      TensorField<A>{"k_scale", &A::k_scale},
      TensorField<A>{"v_scale", &A::v_scale},
  };
  static constexpr std::array numbers{
      NumberField<A>{"token_scales", &A::token_scales},     NumberField<A>{"slot_bytes", &A::slot_bytes},
      NumberField<A>{"position_bytes", &A::position_bytes}, NumberField<A>{"rotary", &A::rotary},
      NumberField<A>{"rotary_dim", &A::rotary_dim},         NumberField<A>{"rotary_base", &A::rotary_base},
      NumberField<A>{"page_layout", &A::page_layout},       NumberField<A>{"flags", &A::flags},
  };
  static constexpr std::array addresses{AddressField<A>{"slots", &A::slots},
                                        AddressField<A>{"positions", &A::positions}};
  static constexpr auto launch = wavejit_cache_append;
  static constexpr auto supported = wavejit_cache_append_supported;
  static constexpr auto ready = wavejit_cache_append_ready;
  static constexpr auto describe = wavejit_cache_append_describe;
};

// Where a field of a part of a merge stands.
constexpr std::size_t field_of_part(std::size_t index, std::size_t field) {
  return offsetof(wavejit_attention_merge_arguments, parts) + (index * sizeof(wavejit_attention_part)) + field;
}

template <>
struct Kind<wavejit_attention_merge_arguments> {
  using A = wavejit_attention_merge_arguments;
  static constexpr const char* class_name = "AttentionMergeCall";
  static constexpr std::array tensors{TensorField<A>{"o", &A::o}, TensorField<A>{"lse", &A::lse}};
  static constexpr std::array numbers{NumberField<A>{"part_count", &A::part_count}, NumberField<A>{"flags", &A::flags}};
  static constexpr std::array<AddressField<A>, 0> addresses{};
  static constexpr std::size_t of_o = offsetof(wavejit_attention_part, o);
  static constexpr std::size_t of_lse = offsetof(wavejit_attention_part, lse);
  static constexpr std::array placed_tensors{
      PlacedField{"parts[0].o", field_of_part(0, of_o)}, PlacedField{"parts[0].lse", field_of_part(0, of_lse)},
      PlacedField{"parts[1].o", field_of_part(1, of_o)}, PlacedField{"parts[1].lse", field_of_part(1, of_lse)},
      PlacedField{"parts[2].o", field_of_part(2, of_o)}, PlacedField{"parts[2].lse", field_of_part(2, of_lse)},
      PlacedField{"parts[3].o", field_of_part(3, of_o)}, PlacedField{"parts[3].lse", field_of_part(3, of_lse)},
      PlacedField{"parts[4].o", field_of_part(4, of_o)}, PlacedField{"parts[4].lse", field_of_part(4, of_lse)},
      PlacedField{"parts[5].o", field_of_part(5, of_o)}, PlacedField{"parts[5].lse", field_of_part(5, of_lse)},
      PlacedField{"parts[6].o", field_of_part(6, of_o)}, PlacedField{"parts[6].lse", field_of_part(6, of_lse)},
      PlacedField{"parts[7].o", field_of_part(7, of_o)}, PlacedField{"parts[7].lse", field_of_part(7, of_lse)},
  };
  static_assert(placed_tensors.size() == std::size_t{2} * WAVEJIT_MAX_ATTENTION_PARTS);
  // The numbers of a stack, which is the first tensor.
  static constexpr std::array placed_numbers{
      PlacedField{"parts[0].count", field_of_part(0, offsetof(wavejit_attention_part, count))},
      PlacedField{"parts[0].o_stride", field_of_part(0, offsetof(wavejit_attention_part, o_stride))},
      PlacedField{"parts[0].lse_stride", field_of_part(0, offsetof(wavejit_attention_part, lse_stride))},
  };
  static constexpr auto launch = wavejit_attention_merge;
  static constexpr auto supported = wavejit_attention_merge_supported;
  static constexpr auto ready = wavejit_attention_merge_ready;
  static constexpr auto describe = wavejit_attention_merge_describe;
};

template <>
struct Kind<wavejit_sparse_indexer_arguments> {
  using A = wavejit_sparse_indexer_arguments;
  static constexpr const char* class_name = "SparseIndexerCall";
  static constexpr std::array tensors{
      TensorField<A>{"queries", &A::queries}, TensorField<A>{"keys", &A::keys},
      TensorField<A>{"weights", &A::weights}, TensorField<A>{"key_scales", &A::key_scales},
      TensorField<A>{"scores", &A::scores},
  };
  static constexpr std::array numbers{
      NumberField<A>{"indices_row_stride", &A::indices_row_stride},
      NumberField<A>{"top_k", &A::top_k},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"window_left", &A::window_left},
      NumberField<A>{"window_right", &A::window_right},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"flags", &A::flags},
      NumberField<A>{"table_columns", &A::table_columns},
      NumberField<A>{"table_row_stride", &A::table_row_stride},
      NumberField<A>{"max_key_length", &A::max_key_length},
      NumberField<A>{"workspace_bytes", &A::workspace_bytes},
  };
  static constexpr std::array addresses{
      AddressField<A>{"indices", &A::indices},         AddressField<A>{"values", &A::values},
      AddressField<A>{"counts", &A::counts},           AddressField<A>{"key_lengths", &A::key_lengths},
      AddressField<A>{"key_begins", &A::key_begins},   AddressField<A>{"key_ends", &A::key_ends},
      AddressField<A>{"block_table", &A::block_table}, AddressField<A>{"table_starts", &A::table_starts},
      AddressField<A>{"workspace", &A::workspace},
  };
  static constexpr auto launch = wavejit_sparse_indexer;
  static constexpr auto supported = wavejit_sparse_indexer_supported;
  static constexpr auto ready = wavejit_sparse_indexer_ready;
  static constexpr auto describe = wavejit_sparse_indexer_describe;
  static constexpr auto workspace = wavejit_sparse_indexer_workspace;
};

template <>
struct Kind<wavejit_attention_backward_arguments> {
  using A = wavejit_attention_backward_arguments;
  static constexpr const char* class_name = "AttentionBackwardCall";
  static constexpr std::array tensors{
      TensorField<A>{"q", &A::q},           TensorField<A>{"k", &A::k},         TensorField<A>{"v", &A::v},
      TensorField<A>{"o", &A::o},           TensorField<A>{"d_o", &A::d_o},     TensorField<A>{"lse", &A::lse},
      TensorField<A>{"d_lse", &A::d_lse},   TensorField<A>{"dq", &A::dq},       TensorField<A>{"dk", &A::dk},
      TensorField<A>{"dv", &A::dv},         TensorField<A>{"alibi", &A::alibi}, TensorField<A>{"sink", &A::sink},
      TensorField<A>{"d_sink", &A::d_sink}, TensorField<A>{"delta", &A::delta}, TensorField<A>{"bias", &A::bias},
      TensorField<A>{"d_bias", &A::d_bias},
  };
  static constexpr std::array numbers{
      NumberField<A>{"scale", &A::scale},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"window_left", &A::window_left},
      NumberField<A>{"window_right", &A::window_right},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"sequences", &A::sequences},
      NumberField<A>{"max_query_length", &A::max_query_length},
      NumberField<A>{"max_key_length", &A::max_key_length},
      NumberField<A>{"softcap", &A::softcap},
      NumberField<A>{"workspace_bytes", &A::workspace_bytes},
      NumberField<A>{"flags", &A::flags},
      NumberField<A>{"sums_before", &A::sums_before},
      NumberField<A>{"sums_behind", &A::sums_behind},
  };
  static constexpr std::array addresses{
      AddressField<A>{"query_starts", &A::query_starts}, AddressField<A>{"key_starts", &A::key_starts},
      AddressField<A>{"key_lengths", &A::key_lengths}, AddressField<A>{"workspace", &A::workspace}};
  static constexpr auto launch = wavejit_attention_backward;
  static constexpr auto supported = wavejit_attention_backward_supported;
  static constexpr auto ready = wavejit_attention_backward_ready;
  static constexpr auto describe = wavejit_attention_backward_describe;
  static constexpr auto workspace = wavejit_attention_backward_workspace;
};

template <>
struct Kind<wavejit_attention_latent_arguments> {
  using A = wavejit_attention_latent_arguments;
  static constexpr const char* class_name = "AttentionLatentCall";
  static constexpr std::array tensors{
      TensorField<A>{"q", &A::q},
      TensorField<A>{"q_rope", &A::q_rope},
      TensorField<A>{"k", &A::k},
      TensorField<A>{"o", &A::o},
      TensorField<A>{"k_rope", &A::k_rope},
      TensorField<A>{"lse", &A::lse},
      TensorField<A>{"sink", &A::sink},
      TensorField<A>{"second_k", &A::second_k},
      TensorField<A>{"k_scale", &A::k_scale},
  };
  static constexpr std::array numbers{
      NumberField<A>{"scale", &A::scale},
      NumberField<A>{"mask", &A::mask},
      NumberField<A>{"causal_prefix", &A::causal_prefix},
      NumberField<A>{"sequences", &A::sequences},
      NumberField<A>{"max_query_length", &A::max_query_length},
      NumberField<A>{"max_key_length", &A::max_key_length},
      NumberField<A>{"softcap", &A::softcap},
      NumberField<A>{"row_scales", &A::row_scales},
      NumberField<A>{"splits", &A::splits},
      NumberField<A>{"workspace_bytes", &A::workspace_bytes},
      NumberField<A>{"flags", &A::flags},
      NumberField<A>{"table_columns", &A::table_columns},
      NumberField<A>{"table_row_stride", &A::table_row_stride},
      NumberField<A>{"max_total_keys", &A::max_total_keys},
      NumberField<A>{"top_k", &A::top_k},
      NumberField<A>{"key_indices_row_stride", &A::key_indices_row_stride},
      NumberField<A>{"key_slots", &A::key_slots},
      NumberField<A>{"second_top_k", &A::second_top_k},
      NumberField<A>{"second_indices_row_stride", &A::second_indices_row_stride},
  };
  static constexpr std::array addresses{
      AddressField<A>{"query_starts", &A::query_starts},     AddressField<A>{"key_starts", &A::key_starts},
      AddressField<A>{"key_lengths", &A::key_lengths},       AddressField<A>{"block_table", &A::block_table},
      AddressField<A>{"table_starts", &A::table_starts},     AddressField<A>{"workspace", &A::workspace},
      AddressField<A>{"key_indices", &A::key_indices},       AddressField<A>{"key_counts", &A::key_counts},
      AddressField<A>{"second_indices", &A::second_indices}, AddressField<A>{"second_counts", &A::second_counts}};
  static constexpr auto launch = wavejit_attention_latent;
  static constexpr auto supported = wavejit_attention_latent_supported;
  static constexpr auto ready = wavejit_attention_latent_ready;
  static constexpr auto describe = wavejit_attention_latent_describe;
  static constexpr auto workspace = wavejit_attention_latent_workspace;
};

template <typename Fields>
const auto& field_named(const Fields& fields, const std::string& name) {
  for (const auto& field : fields)
    if (name == field.name) return field;
  throw nb::type_error(("'" + name + "' is no field of this call").c_str());
}

}  // namespace wavejit::python
