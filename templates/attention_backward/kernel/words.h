// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of this family's specs, one row for each thing that a spec says, in the order in which they are printed.
// Texts, parsers, lists of what is accepted, names of kernels and the bits of a shape's code come from them. To add a
// boolean, add a field to AskedWords, a row here, a refusal (spec.cpp) where it has no kernel, and its emission.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>

#include "templates/attention/kernel/head_dims.h"
#include "templates/attention/kernel/words.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

// Words of the dK/dV kernel alone.
template <typename Spec>
constexpr auto key_words() {
  if constexpr (std::is_same_v<Spec, KeyKernel>) {
    return std::tuple{families::flag<&KeyKernel::shared, Spec>(
                          {.accepted = "keys=shared", .name = "shared", .otherwise = "keys of one wave have no word"}),
                      families::named<&KeyKernel::runs, runs_names, Spec>(
                          {.accepted = "runs=",
                           .missing = "runs=<one|several>",
                           .name_of = [](const families::SpecWord<Spec>&, const Spec& spec) {
                             return std::string(spec.runs == Runs::several ? "runs" : "");
                           }})};
  } else {
    return std::tuple{};
  }
}

// O is read by the dQ kernel alone.
template <typename Spec>
constexpr auto output_words() {
  if constexpr (std::is_same_v<Spec, QueryKernel>) {
    return std::tuple{families::flag<&AskedWords::output_fp32, Spec, 1>({.accepted = "o=fp32",
                                                                         .name = "o_fp32",
                                                                         .otherwise = "the type of q has no word",
                                                                         .supported = "O in fp32",
                                                                         .described = true})};
  } else {
    return std::tuple{};
  }
}

template <typename Spec>
inline constexpr auto word_table = std::tuple_cat(
    std::tuple{
        attention::operand_type_word<&AskedWords::dtype, Spec>(),
        attention::head_dims_word<&AskedWords::head_dim_qk, &AskedWords::head_dim_v, all_head_dims, Spec>(),
        families::named<&AskedWords::mask, masks, Spec, 2>(
            {.accepted = "mask=",
             .missing = "mask=<none|causal|window>",
             .supported = "masks",
             .name_of =
                 [](const families::SpecWord<Spec>&, const Spec& spec) {
                   return spec.mask == Mask::none ? std::string() : std::string(families::name_in(masks, spec.mask));
                 }}),
    },
    attention::modifier_words<&AskedWords::modifiers, Spec>(),
    std::tuple{
        families::flag<&AskedWords::bias_fp32, Spec, 1>(
            {.accepted = "bias_type=fp32",
             .name = "bias_fp32",
             .otherwise = "the type of q, k and v has no word",
             .supported = "bias in the dtype or fp32",
             .beside = [](Spec& spec) { spec.modifiers.add(Modifier::bias); },
             .described = true}),
        families::flag<&AskedWords::gradients_fp32, Spec, 1>({.accepted = "gradients=fp32",
                                                              .name = "fp32",
                                                              .otherwise = "the type of q, k and v has no word",
                                                              .supported = "gradients in fp32 on request",
                                                              .described = true}),
    },
    output_words<Spec>(),
    std::tuple{
        families::number<&KernelWords::blocks, Spec>({.accepted = "blocks=<n>", .missing = "blocks=<1|2>"}),
    },
    key_words<Spec>(), std::tuple{families::target_word<Spec>(), families::lowering_word<Spec>()});

template <typename Spec>
inline constexpr auto spec_words = families::texts_of(word_table<Spec>);

// Words of the kernel of sinks.
inline constexpr auto sink_words =
    families::texts_of(std::tuple{families::target_word<SinkKernel>(), families::lowering_word<SinkKernel>()});

// "attention_backward_dq_bf16_d128_causal_gfx950"
template <typename Spec>
std::string kernel_name(const Spec& spec) {
  return families::name_of_kernel(spec_words<Spec>, spec);
}
inline std::string kernel_name(const SinkKernel& spec) { return families::name_of_kernel(sink_words, spec); }

}  // namespace wavejit::attention_backward
