// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a kernel spec, one row for each thing that a spec says, in the order in which they are printed. From
// these rows come a spec's text and its parser, the lists of what is accepted, a kernel's name, the bits of a shape's
// code, how a problem's shape is told, words of descriptors, and what `wavejit supported` lists. To add a boolean, add
// a field to AskedWords or ChosenWords, a row here, a row of combinations.cpp where it has no kernel, and its emission.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "templates/attention/kernel/head_dims.h"
#include "templates/attention/kernel/mask_kinds.h"
#include "templates/attention/kernel/words.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

using SpecWord = families::SpecWord<ForwardKernel>;

// A boolean that a problem asks for, and one that the route chooses.
template <auto field>
constexpr auto asked(SpecWord word) {
  return families::flag<field, ForwardKernel, 1>(word);
}
template <auto field>
constexpr auto chosen(SpecWord word) {
  return families::flag<field, ForwardKernel>(word);
}
// One of several booleans that exclude each other: they share a field, which the row of the first one has.
template <auto field, auto... others>
constexpr auto asked_alone(SpecWord word) {
  word.of_problem = true;
  if constexpr (sizeof...(others) == 0) {
    return families::flag<field, ForwardKernel>(word);
  } else {
    return families::WordRow<ForwardKernel, families::AtMostOne<field, others...>>{
        families::flag<field, ForwardKernel>(word).word};
  }
}

inline constexpr auto mask_names = [] {
  families::Names<Mask, 2 + kind_names.size()> names = {{{Mask::causal, "causal"}, {Mask::window, "window"}}};
  std::ranges::copy(kind_names, names.begin() + 2);
  return names;
}();
inline constexpr families::Names<QueriesOf, 2> rows_names = {{{QueriesOf::few, "few"}, {QueriesOf::many, "many"}}};

// Words of their own kind (words.cpp).
namespace word_kinds {
std::string mask_name(const SpecWord& row, const ForwardKernel& spec);
std::string split_text(const SpecWord& row, const ForwardKernel& spec);
std::string split_name(const SpecWord& row, const ForwardKernel& spec);
families::Taken take_split(const SpecWord& row, ForwardKernel& spec, std::string_view word);
std::string output_name(const SpecWord& row, const ForwardKernel& spec);
std::string rows_name(const SpecWord& row, const ForwardKernel& spec);
std::string chunk_waves_text(const SpecWord& row, const ForwardKernel& spec);
std::string chunk_waves_name(const SpecWord& row, const ForwardKernel& spec);
families::Taken take_chunk_waves(const SpecWord& row, ForwardKernel& spec, std::string_view word);
std::string pipeline_name(const SpecWord& row, const ForwardKernel& spec);
std::string tile_text(const SpecWord& row, const ForwardKernel& spec);
std::string tile_name(const SpecWord& row, const ForwardKernel& spec);
families::Taken take_tile(const SpecWord& row, ForwardKernel& spec, std::string_view word);
std::string ladder_text(const SpecWord& row, const ForwardKernel& spec);
families::Taken take_ladder(const SpecWord& row, ForwardKernel& spec, std::string_view word);
}  // namespace word_kinds

inline constexpr auto word_table = std::tuple_cat(
    std::tuple{
        attention::operand_type_word<&AskedWords::dtype, ForwardKernel>(),
        attention::cache_type_word<&AskedWords::cache, ForwardKernel>(),
        asked<&AskedWords::token_scales>({.accepted = "cache_scales=token",
                                          .name = "token_scales",
                                          .otherwise = "scales of heads and less have no word",
                                          .supported = "scales of tokens"}),
        attention::head_dims_word<&AskedWords::head_dim_qk, &AskedWords::head_dim_v, all_head_dims, ForwardKernel,
                                  padded_head_dims>(),
        families::named<&AskedWords::mask, mask_names, ForwardKernel, std::bit_width(mask_names.size())>(
            {.accepted = attention::mask_words, .supported = "masks none", .name_of = word_kinds::mask_name}),
        asked<&AskedWords::causal_flags>({.accepted = "causal_flags",
                                          .name = "flags",
                                          .supported = "causal sequences beside others",
                                          .beside = [](ForwardKernel& spec) { spec.mask = Mask::causal; },
                                          .described = true}),
        asked<&AskedWords::narrow_queries>({.accepted = "queries=e4m3",
                                            .name = "e4m3",
                                            .otherwise = "queries of the type of O have no word",
                                            .supported = "Q, K and V in e4m3",
                                            .described = true}),
        asked<&AskedWords::query_fp32>({.accepted = "q=fp32",
                                        .name = "wide_q",
                                        .otherwise = "queries of the type of K, V and O have no word",
                                        .supported = "Q in fp32",
                                        .described = true}),
        asked<&AskedWords::integers>({.accepted = "qk=i8",
                                      .name = "i8",
                                      .otherwise = "Q and K of the type of V have no word",
                                      .supported = "Q and K in int8",
                                      .described = true}),
        asked<&AskedWords::half_scores>({.accepted = "scores=fp16",
                                         .name = "fp16_scores",
                                         .otherwise = "fp32 has no word",
                                         .beside = [](ForwardKernel& spec) { spec.integers = true; },
                                         .described = true}),
        asked<&AskedWords::lse>({.accepted = "lse", .name = "lse", .supported = "LSE on request", .described = true}),
        families::named<&AskedWords::output, output_types, ForwardKernel, 3>(
            {.accepted = "o=fp32, o=e4m3, o=e4m3_fnuz, o=i8",
             .otherwise = "the type of Q, K and V has no word",
             .supported = "O on request in",
             .described = true,
             .name_of = word_kinds::output_name}),
        asked<&AskedWords::trans_q>(
            {.accepted = "trans_q", .name = "trans_q", .supported = "trans_q", .described = true}),
        asked<&AskedWords::trans_k>(
            {.accepted = "trans_k", .name = "trans_k", .supported = "trans_k", .described = true}),
        asked<&AskedWords::trans_v>(
            {.accepted = "trans_v", .name = "trans_v", .supported = "trans_v", .described = true}),
        asked<&AskedWords::trans_o>(
            {.accepted = "trans_o", .name = "trans_o", .supported = "trans_o", .described = true}),
    },
    attention::modifier_words<&AskedWords::modifiers, ForwardKernel>(),
    std::tuple{
        asked<&AskedWords::bias_fp32>({.accepted = "bias_type=fp32",
                                       .name = "fp32",
                                       .otherwise = "the type of Q, K and V has no word",
                                       .supported = "bias in fp32",
                                       .beside = [](ForwardKernel& spec) { spec.modifiers.add(Modifier::bias); },
                                       .described = true}),
        families::WordRow<ForwardKernel>{{.accepted = "split=",
                                          .of_problem = true,
                                          .text = word_kinds::split_text,
                                          .name_of = word_kinds::split_name,
                                          .take = word_kinds::take_split}},
        chosen<&ChosenWords::merged>(
            {.accepted = "merged", .name = "merged", .otherwise = "parts that another launch merges have no word"}),
        chosen<&ChosenWords::packed_heads>(
            {.accepted = "heads=packed", .name = "packed", .otherwise = "a head a workgroup has no word"}),
        asked<&AskedWords::paged>({.accepted = "paged", .name = "paged", .supported = "keys in pages (NHD, HND)"}),
        // Pages are of one kind.
        asked_alone<&AskedWords::whole_tiles, &AskedWords::single_keys, &AskedWords::vectorised>(
            {.accepted = "whole_tiles", .name = "whole_tiles"}),
        asked_alone<&AskedWords::single_keys>(
            {.accepted = "page=1", .name = "page1", .otherwise = "other page sizes have no word"}),
        asked_alone<&AskedWords::vectorised>({.accepted = "vectorised",
                                              .name = "vectorised",
                                              .supported = "vectorised pages, and vectorised keys",
                                              .beside = [](ForwardKernel& spec) { spec.paged = true; }}),
        asked<&AskedWords::first_keys>({.accepted = "first_keys", .name = "first_keys", .supported = "left padding"}),
        asked<&AskedWords::block_lists>(
            {.accepted = "block_lists", .name = "block_lists", .supported = "lists of key blocks (64, 128)"}),
        asked<&AskedWords::bool_mask>({.accepted = "bool_mask",
                                       .name = "bool_mask",
                                       .supported = "bool masks",
                                       .beside = [](ForwardKernel& spec) { spec.block_lists = true; }}),
        asked<&AskedWords::bias_by_tile>({.accepted = "bias_by_tile",
                                          .name = "by_tile",
                                          .supported = "a bias by tile",
                                          .beside =
                                              [](ForwardKernel& spec) {
                                                spec.block_lists = true;
                                                spec.modifiers.add(Modifier::bias);
                                              },
                                          .described = true}),
        asked<&AskedWords::listed>({.accepted = "listed", .name = "listed", .supported = "lists of keys, one a query"}),
        asked<&AskedWords::slots>(
            {.accepted = "slots", .name = "slots", .beside = [](ForwardKernel& spec) { spec.listed = true; }}),
        families::named<&AskedWords::rows, rows_names, ForwardKernel, 2>({.accepted = "rows=few, rows=many",
                                                                          .otherwise = "every sequence has no word",
                                                                          .name_of = word_kinds::rows_name}),
        chosen<&ChosenWords::paired_tiles>({.accepted = "tiles=paired", .otherwise = "a tile a workgroup has no word"}),
        families::WordRow<ForwardKernel>{{.accepted = "chunk_waves=",
                                          .text = word_kinds::chunk_waves_text,
                                          .name_of = word_kinds::chunk_waves_name,
                                          .take = word_kinds::take_chunk_waves}},
        families::named<&ChosenWords::pipeline, pipelines, ForwardKernel>(
            {.accepted = "pipeline=", .missing = "pipeline=<name>", .name_of = word_kinds::pipeline_name}),
        families::WordRow<ForwardKernel>{{.accepted = "tile=",
                                          .missing = "tile=<queries>x<keys>",
                                          .text = word_kinds::tile_text,
                                          .name_of = word_kinds::tile_name,
                                          .take = word_kinds::take_tile}},
        families::named<&ChosenWords::output_store, output_stores, ForwardKernel>(
            {.accepted = "o_store=", .missing = "o_store=<path>"}),
        // On is what a spec without the word says, so that one spec has one text.
        chosen<&ChosenWords::stagger>({.accepted = "stagger=off", .otherwise = "on has no word", .said = false}),
        chosen<&ChosenWords::raised_priority>(
            {.accepted = "setprio=off", .otherwise = "on has no word", .said = false}),
        families::WordRow<ForwardKernel>{
            {.accepted = "ladder=", .text = word_kinds::ladder_text, .take = word_kinds::take_ladder}},
        families::target_word<ForwardKernel>(),
        families::lowering_word<ForwardKernel>(),
    });
inline constexpr auto spec_words = families::texts_of(word_table);

// What a problem asks for, in words: "fp16 d128 causal lse".
std::string problem_text(const ForwardKernel& spec);
// "attention_forward_fp16_d128_causal_lse_128x64_gfx950"
std::string kernel_name(const ForwardKernel& spec);

}  // namespace wavejit::attention_forward
