// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of this family's specs, one row for each thing that a spec says, in the order in which they are printed.
#pragma once

#include <string>
#include <tuple>

#include "templates/attention_latent/kernel/spec.h"

namespace wavejit::attention_latent {

// The modifiers that kernels know: a soft cap. Sinks are arguments.
constexpr auto softcap_words() {
  return attention::detail::modifier_word<&AskedWords::modifiers, WalkKernel, Modifier::softcap>();
}

inline constexpr auto word_table =
    std::tuple_cat(
        std::tuple{
            attention::operand_type_word<&AskedWords::dtype, WalkKernel>(),
            attention::cache_type_word<&AskedWords::cache, WalkKernel>(),
            families::named<&AskedWords::row_scales, row_scales_names, WalkKernel, 2>(
                {.accepted = "row_scales=",
                 .otherwise = "rows without scales have no word",
                 .name_of =
                     [](const families::SpecWord<WalkKernel>&, const WalkKernel& spec) {
                       return spec.has_row_scales()
                                  ? "scales" + std::string(families::name_in(row_scales_names, spec.row_scales))
                                  : std::string();
                     }}),
            families::named<&AskedWords::dims, dims_names, WalkKernel, 2>(
                {.accepted = "d<n>[/<n>]",
                 .missing = "head dims (d576/512, d512 or d320/256)",
                 .supported = "head dims",
                 .name_of =
                     [](const families::SpecWord<WalkKernel>&, const WalkKernel& spec) {
                       return "d" + std::to_string(spec.dims_k()) + "_" + std::to_string(spec.dims_v());
                     }}),
            families::named<&AskedWords::mask, masks, WalkKernel, 1>(
                {.accepted = "mask=",
                 .missing = "mask=<none|causal>",
                 .supported = "masks",
                 .name_of =
                     [](const families::SpecWord<WalkKernel>&, const WalkKernel& spec) {
                       return spec.mask == Mask::none ? std::string()
                                                      : std::string(families::name_in(masks, spec.mask));
                     }}),
        },
        softcap_words(),
        std::tuple{
            families::named<&AskedWords::rows, rows_names, WalkKernel, 2>(
                {.accepted = "rows=",
                 .missing = "rows=<32|64|128>",
                 .name_of =
                     [](const families::SpecWord<WalkKernel>&, const WalkKernel& spec) {
                       return "rows" + std::string(families::name_in(rows_names, spec.rows));
                     }}),
            families::named<&AskedWords::pages, pages_names, WalkKernel, 2>(
                {.accepted = "pages=",
                 .missing = "pages=<none|granules|tiles|keys>",
                 .name_of =
                     [](const families::SpecWord<WalkKernel>&, const WalkKernel& spec) {
                       return spec.pages == Pages::dense ? std::string()
                                                         : std::string(families::name_in(pages_names, spec.pages));
                     }}),
            families::flag<&AskedWords::listed, WalkKernel, 1>({.accepted = "listed", .name = "listed"}),
            families::flag<&AskedWords::slots, WalkKernel, 1>(
                {.accepted = "slots", .name = "slots", .beside = [](WalkKernel& spec) { spec.listed = true; }}),
            families::flag<&AskedWords::parts, WalkKernel, 1>({.accepted = "parts", .name = "parts"}),
            families::flag<&AskedWords::merged, WalkKernel, 1>(
                {.accepted = "merged", .name = "merged", .beside = [](WalkKernel& spec) { spec.parts = true; }}),
            families::target_word<WalkKernel>(),
            families::lowering_word<WalkKernel>(),
        });

inline constexpr auto walk_words = families::texts_of(word_table);

inline constexpr auto combine_words = families::texts_of(std::tuple{
    families::named<&CombineKernel::dtype, attention::operand_types, CombineKernel>(
        {.accepted = "bf16, fp16",
         .missing = "data type (bf16 or fp16)",
         .name_of = [](const families::SpecWord<CombineKernel>&,
                       const CombineKernel& spec) { return std::string(attention::to_text(spec.dtype)); }}),
    families::number<&CombineKernel::head_dim, CombineKernel>({.accepted = "d<n>", .missing = "head dim (d<n>)"}),
    families::flag<&CombineKernel::few, CombineKernel>({.accepted = "few", .name = "few"}),
    families::flag<&CombineKernel::listed, CombineKernel>({.accepted = "listed", .name = "listed"}),
    families::flag<&CombineKernel::scaled, CombineKernel>({.accepted = "scaled", .name = "scaled"}),
    families::target_word<CombineKernel>(),
    families::lowering_word<CombineKernel>(),
});

}  // namespace wavejit::attention_latent
