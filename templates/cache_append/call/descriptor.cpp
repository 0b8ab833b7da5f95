// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of a descriptor, one row each, in the order in which they are printed, and what they must say together.
#include "templates/cache_append/call/descriptor.h"

#include <array>
#include <string>
#include <utility>

#include "templates/attention/call/described_words.h"

namespace wavejit::cache_append {
namespace {

using families::Word;
using families::wrong;

// What words have said so far.
struct Said : ProblemDescriptor {
  bool no_values = false;
  bool says_angles = false;
  attention::CacheType cache_type = attention::CacheType::as_queries;
  Scales row_scales = Scales::none;
};
using Row = families::DescriptorWord<Said>;
using WordTable = families::DescriptorWords<Said>;

// "16:hnd" → "16" and "hnd".
std::pair<std::string_view, std::string_view> halves_of(std::string_view value) {
  const std::size_t colon = value.find(':');
  if (colon == std::string_view::npos) return {value, {}};
  return {value.substr(0, colon), value.substr(colon + 1)};
}

Row page_word() {
  Row row = families::value_word<Said>(
      "page", "<keys>[:nhd|hnd|vectorised|vectorised_keys]",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto [number, order] = halves_of(value);
        const auto keys = families::sized_number(word, number, 1, max_slots);
        if (!keys) return std::unexpected(keys.error());
        said.page_size = *keys;
        if (number.size() == value.size()) return {};
        const auto named = families::value_in(page_orders, order);
        if (!named) return wrong(word, "is no order of a page; accepted: " + families::all_of(page_orders, {}));
        said.pages = *named;
        return {};
      },
      [](const Said& said) {
        return std::to_string(said.page_size) +
               (said.pages == PageOrder::nhd ? "" : ":" + std::string(families::name_in(page_orders, said.pages)));
      });
  row.missing = "page=<keys>";
  return row;
}

Row queries_word() {
  return families::value_word<Said>(
      "queries", "<heads>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto heads = families::sized_number(word, value, 1, max_heads);
        if (!heads) return std::unexpected(heads.error());
        said.query_heads = *heads;
        return {};
      },
      [](const Said& said) { return said.query_heads == 0 ? std::string() : std::to_string(said.query_heads); });
}

Row rotary_word() {
  return families::value_word<Said>(
      "rotary", "<halves|interleaved>[:<dims>]",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto [style, dims] = halves_of(value);
        const auto named = families::value_in(rotary_names, style);
        if (!named || *named == Rotary::none)
          return wrong(word, "is not known; accepted: rotary=halves, rotary=interleaved");
        said.rotary = *named;
        if (style.size() == value.size()) return {};
        const auto number = families::sized_number(word, dims, rotary_granule, max_rotary_dims);
        if (!number) return std::unexpected(number.error());
        said.rotary_dims = *number;
        return {};
      },
      [](const Said& said) {
        if (said.rotary == Rotary::none) return std::string();
        return std::string(families::name_in(rotary_names, said.rotary)) +
               (said.rotary_dims == said.key_dims ? "" : ":" + std::to_string(said.rotary_dims));
      });
}

Row angles_word() {
  return families::value_word<Said>(
      "angles", "<base|fp32|fp16|bf16>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto named = families::value_in(angle_names, value);
        if (!named) return wrong(word, "is not known; accepted: " + families::all_of(angle_names, "angles="));
        said.angles = *named;
        said.says_angles = true;
        return {};
      },
      [](const Said& said) {
        return said.angles == Angles::none || said.angles == Angles::fp32
                   ? std::string()
                   : std::string(families::name_in(angle_names, said.angles));
      });
}

struct Tensors {
  std::string_view name;
  Access AskedWords::* access;
};
constexpr std::array<Tensors, 4> tensors = {{{"source", &AskedWords::source_access},
                                             {"keys", &AskedWords::key_access},
                                             {"values", &AskedWords::value_access},
                                             {"queries", &AskedWords::queries}}};

// Vectorised pages say it of V by themselves.
bool says_elements(const ProblemDescriptor& said, const Tensors& of) {
  const bool by_page = of.access == &AskedWords::value_access && said.pages >= PageOrder::vectorised;
  return said.*of.access == Access::elements && !by_page;
}

Row elements_word() {
  return families::value_word<Said>(
      "elements", "<source,keys,values,queries>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        while (!value.empty()) {
          const std::string_view name = value.substr(0, value.find(','));
          value.remove_prefix(std::min(value.size(), name.size() + 1));
          bool known = false;
          for (const Tensors& of : tensors) {
            if (of.name != name) continue;
            said.*of.access = Access::elements;
            known = true;
          }
          if (!known) return wrong(word, "is not known; accepted: some of source,keys,values,queries");
        }
        return {};
      },
      [](const Said& said) {
        std::string list;
        for (const Tensors& of : tensors)
          if (says_elements(said, of)) list += (list.empty() ? "" : ",") + std::string(of.name);
        return list;
      });
}

Row cache_word() {
  return families::value_word<Said>(
      "cache", "<e4m3|e5m2|e4m3_fnuz|e5m2_fnuz|i8>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        const auto named = families::value_in(attention::cache_types, value);
        if (!named) return wrong(word, "is not known; accepted: " + families::all_of(attention::cache_types, "cache="));
        said.cache_type = *named;
        return {};
      },
      [](const Said& said) {
        return is_narrow(said.cache) ? std::string(families::name_in(attention::data_types, said.cache))
                                     : std::string();
      });
}

// A number for each head; 1 without the word.
Row cache_scales_word() {
  return families::value_word<Said>(
      "cache_scales", "<h|token>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        if (value != "h" && value != "token")
          return wrong(word, "is not known; accepted: cache_scales=h, cache_scales=token");
        said.head_scales = value == "h";
        if (value == "token") said.scales = Scales::tokens;
        return {};
      },
      [](const Said& said) -> std::string {
        if (said.scales == Scales::tokens) return "token";
        return said.head_scales ? "h" : "";
      });
}

Row row_scales_word() {
  return families::value_word<Said>(
      "row_scales", "<128|64>",
      [](Said& said, const Word& word, std::string_view value) -> Result<void> {
        for (const Scales rows : {Scales::tiles, Scales::exponents})
          if (value == std::to_string(latent_row(rows).tile_dims)) {
            said.row_scales = rows;
            return {};
          }
        return wrong(word, "is not known; accepted: row_scales=128, row_scales=64");
      },
      [](const Said& said) {
        return in_rows(said.scales) ? std::to_string(latent_row(said.scales).tile_dims) : std::string();
      });
}

WordTable make_rows() {
  return {
      families::name_word<Said>("fp16, bf16", "a data type (fp16, bf16)", operand_types,
                                [](auto& said) -> auto& { return said.source; }),
      attention::batch_word<Said>(),
      families::number_word<Said>('q', "q<tokens>", 1, max_slots, [](auto& said) -> auto& { return said.tokens; }),
      families::number_word<Said>('h', "h<kv heads>", 1, max_heads, [](auto& said) -> auto& { return said.heads; }),
      families::pair_word<Said>(
          'd', "d<dims>[/<dims of V>]", max_dims, [](auto& said) -> auto& { return said.key_dims; },
          [](auto& said) -> auto& { return said.value_dims; }),
      page_word(),
      queries_word(),
      rotary_word(),
      angles_word(),
      families::flag_word<Said>("no_values", [](auto& said) -> auto& { return said.no_values; }),
      elements_word(),
      cache_word(),
      cache_scales_word(),
      row_scales_word(),
      families::flag_word<Said>("holes", [](auto& said) -> auto& { return said.holes; }),
      attention::seed_word<Said>(),
  };
}

// What the cache holds, and in which scales.
Result<void> finish_cache(Said& said) {
  said.cache = attention::type_in(said.cache_type, said.source);
  const bool rows = said.row_scales != Scales::none;
  const bool scales = said.head_scales || said.scales == Scales::tokens;
  if (!is_narrow(said.cache)) {
    if (rows || scales)
      return families::refuse_line("scales of a cache of 16 bits", "cache=<type of 8 bits> beside them");
    return {};
  }
  if (said.pages >= PageOrder::vectorised)
    return families::refuse_line("cache= of vectorised pages", "pages of rows: nhd, hnd");
  if (!rows) {
    if (!scales || said.head_scales) said.scales = Scales::heads;
    return {};
  }
  if (scales) return families::refuse_line("cache_scales beside row_scales", "one of them");
  said.scales = said.row_scales;
  const LatentRow& row = latent_row(said.scales);
  if (said.heads != 1 || said.key_dims != rope_dims || said.no_values || said.value_dims != row.latent_dims ||
      said.pages != PageOrder::nhd || said.key_access == Access::elements || said.value_access == Access::elements)
    return families::refuse_line("row_scales=" + std::to_string(row.tile_dims),
                                 "h1 d" + std::to_string(rope_dims) + "/" + std::to_string(row.latent_dims) +
                                     " page=<keys>:nhd, without elements=keys and elements=values");
  return {};
}

// What the words must say together, and what follows from them.
Result<void> finish(Said& said) {
  if (auto cache = finish_cache(said); !cache) return cache;
  if (said.no_values) said.value_dims = 0;
  for (const std::int64_t dims : {said.key_dims, said.value_dims})
    if (dims % dims_of_lane != 0) return families::refuse_line("d" + std::to_string(dims), "multiples of 8");
  if (said.batch > max_slots / said.tokens) return families::refuse_line("b · q beyond 2^31 - 1", "fewer tokens");
  const bool vectorised = said.pages >= PageOrder::vectorised;
  if (vectorised && said.page_size % attention::page_granule != 0)
    return families::refuse_line("page=" + std::to_string(said.page_size) + " of vectorised pages", "multiples of 16");
  if (vectorised && said.key_access == Access::elements)
    return families::refuse_line("elements=keys of vectorised pages",
                                 "nothing: eight dims of a key are an access there");
  if (vectorised && !said.no_values) said.value_access = Access::elements;
  if (said.no_values && said.value_access == Access::elements)
    return families::refuse_line("elements=values without values", "values");
  if (said.rotary == Rotary::none) {
    if (said.says_angles)
      return families::refuse_line("angles without rotary", "rotary=halves or rotary=interleaved beside it");
    if (said.query_heads != 0)
      return families::refuse_line("queries without rotary", "rotary=halves or rotary=interleaved beside it");
  } else {
    if (!said.says_angles) said.angles = Angles::fp32;
    if (said.rotary_dims == 0) said.rotary_dims = said.key_dims;
    if (said.rotary_dims % rotary_granule != 0 || said.rotary_dims > said.key_dims ||
        said.rotary_dims > max_rotary_dims)
      return families::refuse_line(
          "rotary of " + std::to_string(said.rotary_dims) + " dims",
          "multiples of 16 up to " + std::to_string(max_rotary_dims) + " and up to the dims of K");
  }
  if (said.query_heads == 0 && said.queries == Access::elements)
    return families::refuse_line("elements=queries without queries", "queries=<heads> beside it");
  if (said.query_heads != 0 && said.queries == Access::none) said.queries = Access::vectors;
  return {};
}

using Lines = families::LinesOf<Said, make_rows, finish>;

}  // namespace

Result<ProblemDescriptor> parse_descriptor(std::string_view text) { return Lines::read(AppendKernel::family, text); }

std::string to_text(const ProblemDescriptor& descriptor) {
  Said said{descriptor};
  said.no_values = said.value_dims == 0;
  if (said.no_values) said.value_dims = said.key_dims;
  return Lines::text(AppendKernel::family, said);
}

}  // namespace wavejit::cache_append
