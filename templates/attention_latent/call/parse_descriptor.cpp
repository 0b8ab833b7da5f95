// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a descriptor, one row each, in the order in which they are printed, and what they must say together.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "templates/attention/call/described_words.h"
#include "templates/attention_latent/call/descriptor.h"
#include "templates/attention_latent/call/key_lists.h"
#include "templates/attention_latent/kernel/words.h"

namespace wavejit::attention_latent {
namespace {

using families::Word;
using families::wrong;
using Said = ProblemDescriptor;
using Row = families::DescriptorWord<Said>;
using WordRows = families::DescriptorWords<Said>;

constexpr std::string_view accepted_layouts =
    "layout=packed, layout=paged:<keys of a page, 1 or a multiple of 16 up to 8192>";

Result<void> take_layout(Said& said, const Word& word, std::string_view value) {
  constexpr std::string_view paged = "paged:";
  if (value == "packed") {
    said.packed = true;
    return {};
  }
  if (!value.starts_with(paged)) return wrong(word, "is not known; accepted: " + std::string(accepted_layouts));
  const auto size = families::whole_number(value.substr(paged.size()));
  if (size != 1 && (!size || *size < attention::page_granule || *size > attention::max_page_size ||
                    *size % attention::page_granule != 0))
    return wrong(word, "is no page size; accepted: " + std::string(accepted_layouts));
  said.page_size = *size;
  return {};
}

Row splits_word() {
  return families::value_word<Said>(
      "splits", "<n>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto count = families::whole_number(value);
        if (!count || *count < 1 || *count > max_splits)
          return wrong(word, "is no number of splits; accepted: splits=1 to splits=" + std::to_string(max_splits));
        said.splits = *count;
        return {};
      },
      [](const Said& said) { return said.splits == 0 ? std::string() : std::to_string(said.splits); });
}

// "2048", "2048:slots:mixed"
Result<void> take_top_k(Said& said, const Word& word, std::string_view value) {
  const std::string accepted =
      "top_k=1 to top_k=" + std::to_string(max_top_k) + ", with :slots, with :mixed behind it, in this order";
  const std::size_t colon = value.find(':');
  const auto count = families::whole_number(value.substr(0, colon));
  if (!count || *count < 1 || *count > max_top_k) return wrong(word, "is no length of lists; accepted: " + accepted);
  said.top_k = *count;
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : value.substr(colon);
  const auto has = [&](std::string_view flag) {
    if (!rest.starts_with(flag)) return false;
    rest.remove_prefix(flag.size());
    return true;
  };
  said.slots = has(":slots");
  said.mixed = has(":mixed");
  if (!rest.empty()) return wrong(word, "is not known; accepted: " + accepted);
  return {};
}

Row top_k_word() {
  return families::value_word<Said>("top_k", "<n>[:slots][:mixed]", take_top_k, [](const Said& said) {
    if (said.top_k == 0) return std::string();
    return std::to_string(said.top_k) + (said.slots ? ":slots" : "") + (said.mixed ? ":mixed" : "");
  });
}

Row row_scales_word() {
  return families::value_word<Said>(
      "row_scales", "128 or 64",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto scales = families::value_in(row_scales_names, value);
        if (!scales)
          return wrong(word,
                       "is not known; accepted: row_scales=128 (a scale in the row for each 128 columns of V), "
                       "row_scales=64 (a power of two behind all rows for each 64)");
        said.row_scales = *scales;
        return {};
      },
      [](const Said& said) {
        return said.row_scales == RowScales::none ? std::string()
                                                  : std::string(families::name_in(row_scales_names, said.row_scales));
      });
}

constexpr families::Names<attention::Extent, 2> scale_extents = {
    {{attention::Extent::one, "1"}, {attention::Extent::batch, "b"}}};

WordRows make_rows() {
  WordRows rows = {
      attention::operand_type_word<Said>([](auto& said) -> auto& { return said.dtype; }),
      attention::batch_word<Said>(),
      attention::query_length_word<Said>(max_length),
      attention::key_length_word<Said>(max_length),
      families::number_word<Said>('h', "h<heads>", 1, max_heads, [](auto& said) -> auto& { return said.heads; }),
      families::pair_word<Said>(
          'd', "d<head dims>", attention::max_head_dim, [](auto& said) -> auto& { return said.head_dim_qk; },
          [](auto& said) -> auto& { return said.head_dim_v; }),
      attention::causal_word<Said>(max_length, "query", "key length"),
      families::flag_word<Said>("lse", [](auto& said) -> auto& { return said.lse; }),
      families::flag_word<Said>("apart", [](auto& said) -> auto& { return said.apart; }),
      families::value_word<Said>("layout", "packed|paged:<n>", take_layout,
                                 [](const Said& said) {
                                   if (said.page_size != 0) return "paged:" + std::to_string(said.page_size);
                                   return std::string(said.packed ? "packed" : "");
                                 }),
      attention::lengths_word<Said>("q_lengths", max_length, [](auto& said) -> auto& { return said.query_lengths; }),
      attention::lengths_word<Said>("k_lengths", max_length, [](auto& said) -> auto& { return said.key_lengths; }),
      attention::scale_word<Said>(),
      attention::modifier_word<Said>(Modifier::sink),
      attention::modifier_word<Said>(Modifier::softcap),
      splits_word(),
      attention::launches_word<Said>(),
      attention::cache_word<Said>([](auto& said) -> auto& { return said.cache; }),
      attention::cache_scales_word<Said>(scale_extents, "1|b"),
      row_scales_word(),
      top_k_word(),
      attention::second_top_k_word<Said>(),
      attention::seed_word<Said>(),
  };
  return rows;
}

Result<void> finish(Said& said) {
  const auto is_known = [&](const auto& one) {
    const HeadDims dims = head_dims(one.first);
    return dims.qk == said.head_dim_qk && dims.v == said.head_dim_v;
  };
  if (!std::ranges::any_of(dims_names, is_known))
    return fail(WAVEJIT_UNSUPPORTED, "descriptor: d" + std::to_string(said.head_dim_qk) + "/" +
                                         std::to_string(said.head_dim_v) +
                                         "; accepted: " + families::all_of(dims_names, "d"));
  if (said.apart && said.head_dim_qk == said.head_dim_v)
    return families::refuse_line("apart of d" + std::to_string(said.head_dim_qk), "head dims with columns behind V's");
  if (auto good = attention::check_prefix(said.mask, said.key_length); !good) return good;
  if (auto good = attention::check_cache_words(said.cache, said.cache_scales); !good) return good;
  if (said.row_scales != RowScales::none) {
    const std::string word = "row_scales=" + std::string(families::name_in(row_scales_names, said.row_scales));
    const std::string dims = "d" + std::string(families::name_in(dims_names, dims_of(said.row_scales)));
    if (said.cache != CacheType::e4m3 && said.cache != CacheType::e4m3_fnuz)
      return families::refuse_line(word, "cache=e4m3 or cache=e4m3_fnuz beside it");
    if (said.dtype != DataType::bf16 || said.head_dim_qk != head_dims(dims_of(said.row_scales)).qk)
      return families::refuse_line(word, "bf16 and " + dims + " beside it: the rope of such rows is in bf16");
    if (said.apart || said.cache_scales != attention::Extent::none)
      return families::refuse_line(word, "neither apart nor cache_scales beside it: rows have both inside");
  }
  if (said.page_size != 0) {
    if (said.key_length > attention::max_paged_length)
      return families::refuse_line("k" + std::to_string(said.key_length) + " in pages",
                                   "up to k" + std::to_string(attention::max_paged_length));
    said.packed = said.packed || !said.query_lengths.empty();
  }
  if (said.second_top_k != 0 && (!said.slots || said.apart))
    return families::refuse_line("second_top_k", "top_k=<n>:slots beside it, and no apart");
  if (said.slots && (said.packed || said.mask.causal || !said.key_lengths.empty()))
    return families::refuse_line("top_k with :slots",
                                 "neither causal nor packed queries nor lengths beside slots, which have no order");
  if (!said.query_lengths.empty() && !said.packed)
    return families::refuse_line("q_lengths of dense queries", "layout=packed or layout=paged:<n> beside it");
  if (auto good = attention::check_lengths("q_lengths", said.query_lengths, said.batch, said.query_length, true); !good)
    return good;
  return attention::check_lengths("k_lengths", said.key_lengths, said.batch, said.key_length,
                                  said.packed && said.page_size == 0);
}

using Lines = families::LinesOf<Said, make_rows, finish>;

}  // namespace

std::int64_t ProblemDescriptor::total_keys() const {
  if (key_lengths.empty()) return packed && page_size == 0 ? 0 : batch * key_length;
  return std::accumulate(key_lengths.begin(), key_lengths.end(), std::int64_t{0});
}

LatentProblem ProblemDescriptor::problem() const {
  LatentProblem problem;
  problem.shape.dtype = dtype;
  problem.shape.cache = cache;
  problem.shape.row_scales = row_scales;
  for (const auto& [dims, name] : dims_names)
    if (head_dims(dims).qk == head_dim_qk && head_dims(dims).v == head_dim_v) problem.shape.dims = dims;
  problem.shape.mask = mask.causal ? Mask::causal : Mask::none;
  problem.shape.modifiers.set(Modifier::softcap, of(Modifier::softcap).there);
  problem.shape.rows = rows_for(static_cast<std::uint64_t>(query_length) * static_cast<std::uint64_t>(heads));
  problem.shape.pages = pages_for(page_size);
  problem.causal = mask.causal;
  if (top_k != 0) {
    problem.shape.listed = true;
    problem.shape.slots = slots;
    problem.shape.mask = Mask::none;
    problem.shape.rows = rows_for(static_cast<std::uint64_t>(heads));
    problem.top_k = static_cast<std::uint32_t>(top_k);
    problem.second_top_k = static_cast<std::uint32_t>(second_top_k);
  }
  problem.batch = static_cast<std::uint32_t>(batch);
  problem.query_length = static_cast<std::uint32_t>(query_length);
  problem.key_length = static_cast<std::uint32_t>(key_length);
  problem.heads = static_cast<std::uint32_t>(heads);
  problem.packed_queries = packed;
  problem.query_rows = static_cast<std::uint64_t>(
      query_lengths.empty() ? batch * query_length
                            : std::accumulate(query_lengths.begin(), query_lengths.end(), std::int64_t{0}));
  problem.splits = static_cast<std::uint32_t>(splits);
  if (launches != 0) problem.launches = launches == 1 ? attention::Launches::one : attention::Launches::two;
  problem.uneven_lengths = top_k == 0 && attention::may_be_uneven(packed || page_size != 0 || !key_lengths.empty(),
                                                                  batch, key_length, total_keys());
  return problem;
}

Result<ProblemDescriptor> parse_descriptor(std::string_view text) { return Lines::read(family_name, text); }

std::string to_text(const ProblemDescriptor& descriptor) { return Lines::text(family_name, descriptor); }

// What a line without scale= means: that of the models whose widths these are, 128 dims before absorption and the
// rope's behind them; without a rope that of the width itself.
float default_scale(const ProblemDescriptor& descriptor) {
  constexpr std::int64_t before_absorption = 128;
  const std::int64_t rope = descriptor.head_dim_qk - descriptor.head_dim_v;
  const std::int64_t dims = rope != 0 ? before_absorption + rope : descriptor.head_dim_qk;
  return static_cast<float>(1 / std::sqrt(static_cast<double>(dims)));
}

}  // namespace wavejit::attention_latent
