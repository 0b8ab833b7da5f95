// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The fields of the calls of wavejit.h by the names that Python gives them: a row each, by its place in the struct. Parts
// of calls have tables of their own. A new field of a part is a row of its part's table, in every family that has it.
//
// `.set_as(…)` says that the field is set from the argument of its Python name by itself (python/wavejit/_fields.py), and
// from what:
//
//   number                         a number, or an integer where the field is one
//   one of <word> …                the place of the word; None is one
//   some of <word> …               a list of words: 1, 2, 4 …
//   <type> [<axis>, …]             an array. Of a tensor: four axes; those in front that may be 1, and ones behind, may be
//                                  left out. Of an address: one axis, side by side; "bool" also takes bytes
//
// Two rows of one Python name, a number and an array, take either.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "wavejit/wavejit.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::python {

namespace nb = nanobind;

enum class FieldType : std::uint8_t { tensor, address, fp32, i32, u32, i64, u64 };

struct Field {
  const char* name;
  FieldType type;
  std::size_t at;      // bytes from the begin of the struct
  const char* python;  // what Python calls it, in a call and in what refuses it
  const char* how = "";
  constexpr Field in(std::size_t part) const { return {name, type, part + at, python, how}; }
  constexpr Field set_as(const char* said) const { return {name, type, at, python, said}; }
};

template <typename Member>
constexpr FieldType type_of() {
  if constexpr (std::is_same_v<Member, wavejit_tensor>) return FieldType::tensor;
  if constexpr (std::is_pointer_v<Member>) return FieldType::address;
  if constexpr (std::is_same_v<Member, float>) return FieldType::fp32;
  if constexpr (std::is_same_v<Member, std::int32_t>) return FieldType::i32;
  if constexpr (std::is_same_v<Member, std::uint32_t>) return FieldType::u32;
  if constexpr (std::is_same_v<Member, std::int64_t>) return FieldType::i64;
  if constexpr (std::is_same_v<Member, std::size_t>) return FieldType::u64;
}

// offsetof takes no member pointer, so that rows come from a macro.
#define WAVEJIT_TOLD(name, path, python) \
  Field { name, type_of<std::remove_cvref_t<decltype(std::declval<S&>().path)>>(), offsetof(S, path), python }
#define WAVEJIT_NAMED(name, path) WAVEJIT_TOLD(name, path, name)
#define WAVEJIT_FIELD(path) WAVEJIT_NAMED(#path, path)

template <std::size_t... sizes>
constexpr auto joined(const std::array<Field, sizes>&... tables) {
  std::array<Field, (sizes + ... + 0)> all{};
  std::size_t count = 0;
  const auto add = [&](const auto& table) {
    for (const Field& field : table) all[count++] = field;
  };
  (add(tables), ...);
  return all;
}
template <std::size_t size>
constexpr std::array<Field, size> in_part(std::array<Field, size> fields, std::size_t part) {
  for (Field& field : fields) field = field.in(part);
  return fields;
}

// ---- Parts: what is set by name alone. Their tensors and device addresses that move stand in the families' tables.

constexpr std::array head_fields = [] {
  using S = wavejit_call_head;
  return std::array{WAVEJIT_FIELD(flags)};
}();
constexpr std::array mask_fields = [] {
  using S = wavejit_masking;
  return std::array{
      WAVEJIT_NAMED("mask", bits),
      WAVEJIT_FIELD(window_left),
      WAVEJIT_FIELD(window_right),
      WAVEJIT_FIELD(causal_prefix),
#define WAVEJIT_MASK_KIND(word, bit, field, ...) WAVEJIT_FIELD(field),
#include "wavejit/masks.def"
#undef WAVEJIT_MASK_KIND
  };
}();
// The hints of hints.def: the word, and the bit of flags.
struct Hint {
  const char* word;
  std::uint32_t bit;
};
constexpr std::array hints = {
#define WAVEJIT_HINT(word, bit, ...) Hint{#word, bit},
#include "wavejit/hints.def"
#undef WAVEJIT_HINT
};
// Arguments that are bits of flags: which, a value as Python writes it, and its bits.
struct Flag {
  const char* python;
  const char* value;
  std::uint32_t bits;
};
constexpr std::array flag_values = {
    Flag{"scale", "0", WAVEJIT_SCALE_IS_ZERO},
    Flag{"check_lengths", "True", WAVEJIT_CHECK_LENGTHS},
    Flag{"check_lengths", "False", 0},
    Flag{"bias_by_tile", "True", WAVEJIT_BIAS_BY_TILE},
    Flag{"bias_by_tile", "False", 0},
    Flag{"launches", "None", 0},
    Flag{"launches", "1", WAVEJIT_ONE_LAUNCH},
    Flag{"launches", "2", WAVEJIT_TWO_LAUNCHES},
    Flag{"compile", "'wait'", 0},
    Flag{"compile", "'never'", WAVEJIT_NO_COMPILE},
    Flag{"compile", "'behind'", WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND},
};
// The kinds of masks.def: the bit, the word of lines, the field, which is the keyword's name.
struct MaskKind {
  std::int32_t bit;
  const char* word;
  const char* field;
};
constexpr std::array mask_kinds = {
#define WAVEJIT_MASK_KIND(word, bit, field, ...) MaskKind{bit, #word, #field},
#include "wavejit/masks.def"
#undef WAVEJIT_MASK_KIND
};
constexpr std::array modifier_fields = [] {
  using S = wavejit_modifiers;
  return std::array{WAVEJIT_FIELD(scale).set_as("number"), WAVEJIT_FIELD(softcap).set_as("number"),
                    WAVEJIT_FIELD(score_rounding).set_as("one of fp32 fp16")};
}();
constexpr std::array sequence_fields = [] {
  using S = wavejit_sequences;
  return std::array{WAVEJIT_NAMED("sequences", count), WAVEJIT_FIELD(max_query_length), WAVEJIT_FIELD(max_key_length),
                    WAVEJIT_FIELD(max_total_keys)};
}();
constexpr std::array page_fields = [] {
  using S = wavejit_pages;
  return std::array{WAVEJIT_FIELD(table_columns), WAVEJIT_FIELD(table_row_stride), WAVEJIT_FIELD(page_layout)};
}();
constexpr std::array block_list_fields = [] {
  using S = wavejit_block_lists;
  return std::array{WAVEJIT_TOLD("list_counts", list_counts, "lists.counts"),
                    WAVEJIT_TOLD("list_indices", list_indices, "lists.indices"),
                    WAVEJIT_TOLD("list_starts", list_starts, "lists.starts"),
                    WAVEJIT_TOLD("full_counts", full_counts, "lists.full_counts"),
                    WAVEJIT_TOLD("full_indices", full_indices, "lists.full_indices"),
                    WAVEJIT_TOLD("full_starts", full_starts, "lists.full_starts"),
                    WAVEJIT_TOLD("list_rows", list_rows, "lists.rows"),
                    WAVEJIT_TOLD("list_row_blocks", list_row_blocks, "lists.shape[2]"),
                    WAVEJIT_FIELD(list_capacity),
                    WAVEJIT_TOLD("list_keys", list_keys, "lists.keys"),
                    WAVEJIT_FIELD(full_capacity),
                    WAVEJIT_TOLD("list_batches", list_batches, "lists.shape[0]"),
                    WAVEJIT_TOLD("list_heads", list_heads, "lists.shape[1]")};
}();
constexpr std::array key_list_fields = [] {
  using S = wavejit_key_list;
  return std::array{WAVEJIT_NAMED("top_k", top_k), WAVEJIT_NAMED("key_indices_row_stride", row_stride),
                    WAVEJIT_TOLD("key_slots", slots, "slots"), WAVEJIT_NAMED("key_list_heads", heads)};
}();
constexpr std::array key_list_addresses = [] {
  using S = wavejit_key_list;
  return std::array{WAVEJIT_TOLD("key_indices", indices, "indices"), WAVEJIT_TOLD("key_counts", counts, "counts")};
}();
constexpr std::array second_list_fields = [] {
  using S = wavejit_key_list;
  return std::array{WAVEJIT_NAMED("second_top_k", top_k), WAVEJIT_NAMED("second_indices_row_stride", row_stride)};
}();
constexpr std::array second_list_addresses = [] {
  using S = wavejit_key_list;
  return std::array{WAVEJIT_NAMED("second_indices", indices), WAVEJIT_NAMED("second_counts", counts)};
}();
constexpr std::array scale_fields = [] {
  using S = wavejit_scales;
  return std::array{WAVEJIT_FIELD(token_scales), WAVEJIT_FIELD(row_scales).set_as("one of None in_rows behind_rows")};
}();
constexpr std::array split_fields = [] {
  using S = wavejit_split;
  return std::array{WAVEJIT_FIELD(splits).set_as("number"), WAVEJIT_FIELD(workspace_bytes)};
}();

// ---- Families

// `tensors` and `addresses` are what launch_over moves; `others` are set by name alone.
template <typename Arguments>
struct Kind;

template <>
struct Kind<wavejit_attention_forward_arguments> {
  using S = wavejit_attention_forward_arguments;
  using Owner = AttentionForward;
  static constexpr const char* family = "attention_forward";
  static constexpr std::array tensors{
      WAVEJIT_FIELD(q),
      WAVEJIT_FIELD(k),
      WAVEJIT_FIELD(v),
      WAVEJIT_TOLD("o", o, "out"),
      WAVEJIT_FIELD(lse),
      WAVEJIT_NAMED("bias", modifiers.bias),
      WAVEJIT_TOLD("sink", modifiers.sink, "sinks").set_as("fp32 [1, heads, 1, 1]"),
      WAVEJIT_NAMED("alibi", modifiers.alibi).set_as("fp32 [batch or 1, heads, 1, 1]"),
      WAVEJIT_NAMED("k_scale", scales.k_scale),
      WAVEJIT_NAMED("v_scale", scales.v_scale),
      WAVEJIT_NAMED("q_scale", scales.q_scale),
      WAVEJIT_TOLD("bool_mask", modifiers.bool_mask, "mask").set_as("bool [batch or 1, heads or 1, queries, keys]")};
  static constexpr std::array addresses{WAVEJIT_NAMED("query_starts", sequences.query_starts),
                                        WAVEJIT_NAMED("key_starts", sequences.key_starts),
                                        WAVEJIT_NAMED("key_lengths", sequences.key_lengths).set_as("int32 [sequences]"),
                                        WAVEJIT_NAMED("block_table", pages.block_table),
                                        WAVEJIT_NAMED("table_starts", pages.table_starts),
                                        WAVEJIT_NAMED("first_keys", sequences.first_keys).set_as("int32 [sequences]"),
                                        WAVEJIT_NAMED("causal_flags", mask.causal_flags).set_as("bool [sequences]"),
                                        WAVEJIT_NAMED("o_scale", output_scale.o_scale).set_as("fp32 [1]"),
                                        WAVEJIT_NAMED("workspace", split.workspace)};
  static constexpr auto others = joined(
      std::array{WAVEJIT_FIELD(second_k), WAVEJIT_FIELD(second_v),
                 WAVEJIT_TOLD("o_scale_value", output_scale.o_scale_value, "o_scale").set_as("number")},
      in_part(head_fields, offsetof(S, head)), in_part(mask_fields, offsetof(S, mask)),
      in_part(modifier_fields, offsetof(S, modifiers)), in_part(sequence_fields, offsetof(S, sequences)),
      in_part(page_fields, offsetof(S, pages)), in_part(block_list_fields, offsetof(S, blocks)),
      in_part(key_list_fields, offsetof(S, key_list)), in_part(key_list_addresses, offsetof(S, key_list)),
      in_part(second_list_fields, offsetof(S, second_list)), in_part(second_list_addresses, offsetof(S, second_list)),
      in_part(scale_fields, offsetof(S, scales)), in_part(split_fields, offsetof(S, split)));
};

template <>
struct Kind<wavejit_softmax_lse_arguments> {
  using S = wavejit_softmax_lse_arguments;
  using Owner = SoftmaxLse;
  static constexpr const char* family = "softmax_lse";
  static constexpr std::array tensors{WAVEJIT_FIELD(scores), WAVEJIT_FIELD(weights), WAVEJIT_FIELD(lse)};
  static constexpr std::array addresses{WAVEJIT_FIELD(key_lengths).set_as("int32 [batch]")};
  static constexpr auto others =
      joined(std::array{WAVEJIT_FIELD(scale).set_as("number")}, in_part(head_fields, offsetof(S, head)),
             in_part(mask_fields, offsetof(S, mask)));
};

template <>
struct Kind<wavejit_cache_append_arguments> {
  using S = wavejit_cache_append_arguments;
  using Owner = CacheAppend;
  static constexpr const char* family = "cache_append";
  static constexpr std::array tensors{WAVEJIT_FIELD(k),
                                      WAVEJIT_FIELD(v),
                                      WAVEJIT_FIELD(k_cache),
                                      WAVEJIT_FIELD(v_cache),
                                      WAVEJIT_FIELD(q),
                                      WAVEJIT_FIELD(q_out),
                                      WAVEJIT_FIELD(cos),
                                      WAVEJIT_FIELD(sin),
                                      WAVEJIT_NAMED("k_scale", scales.k_scale),
                                      WAVEJIT_NAMED("v_scale", scales.v_scale)};
  static constexpr std::array addresses{WAVEJIT_FIELD(slots), WAVEJIT_FIELD(positions)};
  static constexpr auto others =
      joined(std::array{WAVEJIT_FIELD(slot_bytes), WAVEJIT_FIELD(position_bytes),
                        WAVEJIT_FIELD(rotary).set_as("one of None halves interleaved"), WAVEJIT_FIELD(rotary_dim),
                        WAVEJIT_FIELD(rotary_base).set_as("number"), WAVEJIT_FIELD(page_layout)},
             in_part(head_fields, offsetof(S, head)), in_part(scale_fields, offsetof(S, scales)));
};

template <>
struct Kind<wavejit_attention_merge_arguments> {
  using S = wavejit_attention_merge_arguments;
  using Owner = AttentionMerge;
  static constexpr const char* family = "attention_merge";
  static constexpr std::array tensors{WAVEJIT_TOLD("o", o, "out"), WAVEJIT_FIELD(lse)};
  static constexpr std::array addresses{WAVEJIT_NAMED("o_scale", output_scale.o_scale).set_as("fp32 [1]")};
  // The numbers are those of a stack, which is the first part.
  static constexpr auto others =
      joined(std::array{WAVEJIT_TOLD("parts[0].o", parts[0].o, "outs[0]"),
                        WAVEJIT_TOLD("parts[0].lse", parts[0].lse, "lses[0]"),
                        WAVEJIT_TOLD("parts[1].o", parts[1].o, "outs[1]"),
                        WAVEJIT_TOLD("parts[1].lse", parts[1].lse, "lses[1]"),
                        WAVEJIT_TOLD("parts[2].o", parts[2].o, "outs[2]"),
                        WAVEJIT_TOLD("parts[2].lse", parts[2].lse, "lses[2]"),
                        WAVEJIT_TOLD("parts[3].o", parts[3].o, "outs[3]"),
                        WAVEJIT_TOLD("parts[3].lse", parts[3].lse, "lses[3]"),
                        WAVEJIT_TOLD("parts[4].o", parts[4].o, "outs[4]"),
                        WAVEJIT_TOLD("parts[4].lse", parts[4].lse, "lses[4]"),
                        WAVEJIT_TOLD("parts[5].o", parts[5].o, "outs[5]"),
                        WAVEJIT_TOLD("parts[5].lse", parts[5].lse, "lses[5]"),
                        WAVEJIT_TOLD("parts[6].o", parts[6].o, "outs[6]"),
                        WAVEJIT_TOLD("parts[6].lse", parts[6].lse, "lses[6]"),
                        WAVEJIT_TOLD("parts[7].o", parts[7].o, "outs[7]"),
                        WAVEJIT_TOLD("parts[7].lse", parts[7].lse, "lses[7]"),
                        WAVEJIT_FIELD(parts[0].count),
                        WAVEJIT_FIELD(parts[0].o_stride),
                        WAVEJIT_FIELD(parts[0].lse_stride),
                        WAVEJIT_FIELD(part_count),
                        WAVEJIT_TOLD("o_scale_value", output_scale.o_scale_value, "o_scale").set_as("number")},
             in_part(head_fields, offsetof(S, head)));
  static_assert(WAVEJIT_MAX_ATTENTION_PARTS == 8);
};

template <>
struct Kind<wavejit_sparse_indexer_arguments> {
  using S = wavejit_sparse_indexer_arguments;
  using Owner = SparseIndexer;
  static constexpr const char* family = "sparse_indexer";
  static constexpr std::array tensors{
      WAVEJIT_FIELD(queries), WAVEJIT_FIELD(keys), WAVEJIT_FIELD(weights).set_as("fp32 [batch, queries, heads, 1]"),
      WAVEJIT_FIELD(key_scales).set_as("fp32 [batch, keys, 1, 1]"), WAVEJIT_FIELD(scores)};
  static constexpr std::array addresses{WAVEJIT_FIELD(indices),
                                        WAVEJIT_FIELD(values),
                                        WAVEJIT_FIELD(counts),
                                        WAVEJIT_FIELD(key_lengths).set_as("int32 [batch]"),
                                        WAVEJIT_FIELD(key_begins).set_as("int32 [batch · queries]"),
                                        WAVEJIT_FIELD(key_ends).set_as("int32 [batch · queries]"),
                                        WAVEJIT_NAMED("block_table", pages.block_table),
                                        WAVEJIT_NAMED("table_starts", pages.table_starts),
                                        WAVEJIT_NAMED("workspace", split.workspace)};
  static constexpr auto others =
      joined(std::array{WAVEJIT_FIELD(indices_row_stride), WAVEJIT_FIELD(top_k), WAVEJIT_FIELD(max_key_length)},
             in_part(head_fields, offsetof(S, head)), in_part(mask_fields, offsetof(S, mask)),
             in_part(page_fields, offsetof(S, pages)), in_part(split_fields, offsetof(S, split)));
};

template <>
struct Kind<wavejit_attention_backward_arguments> {
  using S = wavejit_attention_backward_arguments;
  using Owner = AttentionBackward;
  static constexpr const char* family = "attention_backward";
  static constexpr std::array tensors{WAVEJIT_FIELD(q),
                                      WAVEJIT_FIELD(k),
                                      WAVEJIT_FIELD(v),
                                      WAVEJIT_TOLD("o", o, "out"),
                                      WAVEJIT_TOLD("d_o", d_o, "d_out"),
                                      WAVEJIT_FIELD(lse).set_as("fp32 [batch, heads, rows, 1]"),
                                      WAVEJIT_FIELD(d_lse).set_as("fp32 [batch, heads, rows, 1]"),
                                      WAVEJIT_FIELD(dq),
                                      WAVEJIT_FIELD(dk),
                                      WAVEJIT_FIELD(dv),
                                      WAVEJIT_NAMED("alibi", modifiers.alibi).set_as("fp32 [batch or 1, heads, 1, 1]"),
                                      WAVEJIT_TOLD("sink", modifiers.sink, "sinks").set_as("fp32 [1, heads, 1, 1]"),
                                      WAVEJIT_TOLD("d_sink", d_sink, "d_sinks"),
                                      WAVEJIT_FIELD(delta).set_as("fp32 [batch, heads, rows, 1]"),
                                      WAVEJIT_NAMED("bias", modifiers.bias),
                                      WAVEJIT_FIELD(d_bias)};
  static constexpr std::array addresses{WAVEJIT_NAMED("query_starts", sequences.query_starts),
                                        WAVEJIT_NAMED("key_starts", sequences.key_starts),
                                        WAVEJIT_NAMED("key_lengths", sequences.key_lengths).set_as("int32 [sequences]"),
                                        WAVEJIT_NAMED("workspace", split.workspace)};
  static constexpr auto others =
      joined(std::array{WAVEJIT_FIELD(sums_before).set_as("some of dq dk_dv"),
                        WAVEJIT_FIELD(sums_behind).set_as("some of dq dk_dv")},
             in_part(head_fields, offsetof(S, head)), in_part(mask_fields, offsetof(S, mask)),
             in_part(modifier_fields, offsetof(S, modifiers)), in_part(sequence_fields, offsetof(S, sequences)),
             in_part(split_fields, offsetof(S, split)));
};

template <>
struct Kind<wavejit_attention_latent_arguments> {
  using S = wavejit_attention_latent_arguments;
  using Owner = AttentionLatent;
  static constexpr const char* family = "attention_latent";
  static constexpr std::array tensors{WAVEJIT_FIELD(q),
                                      WAVEJIT_FIELD(q_rope),
                                      WAVEJIT_FIELD(k),
                                      WAVEJIT_TOLD("o", o, "out"),
                                      WAVEJIT_FIELD(k_rope),
                                      WAVEJIT_FIELD(lse),
                                      WAVEJIT_TOLD("sink", modifiers.sink, "sinks").set_as("fp32 [1, heads, 1, 1]"),
                                      WAVEJIT_FIELD(second_k),
                                      WAVEJIT_NAMED("k_scale", scales.k_scale)};
  static constexpr auto addresses = joined(
      std::array{WAVEJIT_NAMED("query_starts", sequences.query_starts),
                 WAVEJIT_NAMED("key_starts", sequences.key_starts),
                 WAVEJIT_NAMED("key_lengths", sequences.key_lengths).set_as("int32 [sequences]"),
                 WAVEJIT_NAMED("block_table", pages.block_table), WAVEJIT_NAMED("table_starts", pages.table_starts),
                 WAVEJIT_NAMED("workspace", split.workspace)},
      in_part(key_list_addresses, offsetof(S, key_list)), in_part(second_list_addresses, offsetof(S, second_list)));
  static constexpr auto others =
      joined(in_part(head_fields, offsetof(S, head)), in_part(mask_fields, offsetof(S, mask)),
             in_part(modifier_fields, offsetof(S, modifiers)), in_part(sequence_fields, offsetof(S, sequences)),
             in_part(page_fields, offsetof(S, pages)), in_part(key_list_fields, offsetof(S, key_list)),
             in_part(second_list_fields, offsetof(S, second_list)), in_part(scale_fields, offsetof(S, scales)),
             in_part(split_fields, offsetof(S, split)));
};

#undef WAVEJIT_FIELD
#undef WAVEJIT_NAMED
#undef WAVEJIT_TOLD

}  // namespace wavejit::python
