// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/combine/spec.h"

#include <tuple>

#include "families/kernel/spec_words.h"
#include "templates/attention/kernel/mask_kinds.h"

namespace wavejit::attention_combine {
namespace {

using attention_forward::QueriesOf;
using Word = families::SpecWord<CombineKernel>;

constexpr families::Names<QueriesOf, 1> rows_names = {{{QueriesOf::few, "few"}}};

constexpr auto words = families::texts_of(std::tuple{
    families::named<&CombineKernel::dtype, attention::written_types, CombineKernel>(
        {.accepted = "bf16, fp16, fp32, e4m3, e4m3_fnuz, i8",
         .missing = "data type (bf16, fp16, fp32, e4m3, e4m3_fnuz or i8)",
         .name_of = [](const Word&, const CombineKernel& spec) { return std::string(to_text(spec.dtype)); }}),
    families::number<&CombineKernel::head_dim, CombineKernel>({.accepted = "d<n>", .missing = "head dim (d<n>)"}),
    families::flag<&CombineKernel::first_keys, CombineKernel>({.accepted = "first_keys", .name = "first_keys"}),
    families::flag<&CombineKernel::listed, CombineKernel>({.accepted = "listed", .name = "listed"}),
    families::flag<&CombineKernel::scaled, CombineKernel>({.accepted = "scaled", .name = "scaled"}),
    families::named<&CombineKernel::kind, attention::kind_names, CombineKernel>(
        {.accepted = attention::kind_words,
         .otherwise = "other masks have no word",
         .name_of =
             [](const Word&, const CombineKernel& spec) {
               const attention::MaskKind* const kind = attention::kind_of(spec.kind);
               return std::string(kind == nullptr ? "" : kind->word);
             }}),
    families::flag<&CombineKernel::causal_flags, CombineKernel>({.accepted = "causal_flags", .name = "flags"}),
    families::flag<&CombineKernel::trans_o, CombineKernel>({.accepted = "trans_o", .name = "trans_o"}),
    families::named<&CombineKernel::rows, rows_names, CombineKernel>(
        {.accepted = "rows=few",
         .otherwise = "every sequence has no word",
         .name_of = [](const Word&,
                       const CombineKernel& spec) { return std::string(spec.of_few_rows() ? "few_rows" : ""); }}),
    families::target_word<CombineKernel>(),
    families::lowering_word<CombineKernel>(),
});

}  // namespace

std::string to_text(const CombineKernel& spec) { return families::text_of_spec(words, spec); }
std::expected<CombineKernel, std::string> parse_spec(std::string_view text) {
  return families::parse_words(words, text);
}
std::string kernel_name(const CombineKernel& spec) { return families::name_of_kernel(words, spec); }

CombineKernel combine_of(const attention_forward::ForwardKernel& split, attention::OutputType output, bool trans_o) {
  return {.dtype = type_in(output, split.dtype),
          .head_dim = split.head_dim_v,
          .first_keys = split.first_keys && !split.paged,
          .listed = split.listed,
          .scaled = split.cache != attention::CacheType::as_queries,
          .kind = has_kind(split.mask) ? split.mask : attention::Mask::none,
          .causal_flags = split.causal_flags,
          .trans_o = trans_o,
          .rows = split.rows == QueriesOf::few ? QueriesOf::few : QueriesOf::all,
          .target = split.target,
          .lowering = split.lowering};
}

}  // namespace wavejit::attention_combine
