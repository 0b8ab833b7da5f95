// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/spec.h"

#include <array>
#include <charconv>
#include <optional>
#include <tuple>
#include <utility>

#include "families/kernel/names.h"

namespace wavejit::attention_forward {
namespace {

using families::all_of;
using families::Names;
using families::value_in;

// A positive decimal without sign, leading zeros or anything after it: what to_text prints, so that one spec has one
// text.
std::optional<int> positive_number(std::string_view text) {
  int value = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end || value <= 0 || *begin == '0') return std::nullopt;
  return value;
}

// "<first><separator><second>", both positive.
std::optional<std::pair<int, int>> number_pair(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const auto first = positive_number(text.substr(0, at));
  const auto second = positive_number(text.substr(at + 1));
  if (!first || !second) return std::nullopt;
  return std::pair{*first, *second};
}

// One field per thing a spec says; `seen` finds what is missing and what stands twice.
enum class Field : std::uint8_t {
  dtype,
  head_dims,
  mask,
  lse,
  output,
  modifiers,  // and so many more as there are rows
  split = modifiers + modifier_count,
  heads,
  paged,
  whole_tiles,
  page,
  vectorised,
  first_keys,
  rows,
  tiles,
  pipeline,
  tile,
  o_store,
  target,
  lowering,
  stagger,
  setprio,
  ladder
};
constexpr Field field_of(Modifier modifier) {
  return static_cast<Field>(static_cast<std::size_t>(Field::modifiers) + static_cast<std::size_t>(modifier));
}
constexpr std::array<std::pair<Field, std::string_view>, 7> required_fields = {{
    {Field::dtype, "data type (bf16 or fp16)"},
    {Field::head_dims, "head dim (d<n>)"},
    {Field::pipeline, "pipeline=<name>"},
    {Field::tile, "tile=<queries>x<keys>"},
    {Field::o_store, "o_store=<path>"},
    {Field::target, "target=<processor>"},
    {Field::lowering, "lowering=<name>"},
}};

struct Parser {
  KernelSpec spec;
  std::array<bool, static_cast<std::size_t>(Field::ladder) + 1> seen{};

  bool has(Field field) const { return seen[static_cast<std::size_t>(field)]; }

  // Empty on success, else what would be accepted in place of the word.
  std::expected<Field, std::string> take(std::string_view word) {
    if (const auto dtype = value_in(operand_types, word)) {
      spec.dtype = *dtype;
      return Field::dtype;
    }
    if (word == "causal" || word == "window") {
      spec.mask = word == "causal" ? Mask::causal : Mask::window;
      return Field::mask;
    }
    if (word == "lse") {
      spec.lse = true;
      return Field::lse;
    }
    if (word == "paged") {
      spec.paged = true;
      return Field::paged;
    }
    if (word == "whole_tiles") {
      spec.whole_tiles = true;
      return Field::whole_tiles;
    }
    if (word == "vectorised") {
      spec.vectorised = true;
      return Field::vectorised;
    }
    if (word == "first_keys") {
      spec.first_keys = true;
      return Field::first_keys;
    }
    for (const ModifierRow& row : modifier_rows) {
      if (!row.in_code || word != row.word) continue;
      spec.modifiers.add(row.modifier);
      return field_of(row.modifier);
    }
    if (const std::size_t equals = word.find('='); equals != std::string_view::npos)
      return take_assignment(word.substr(0, equals), word.substr(equals + 1));
    if (word.size() > 1 && word.front() == 'd' && word[1] >= '0' && word[1] <= '9') return take_head_dims(word);
    std::string accepted = "accepted: bf16, fp16, d<n>[/<n>], causal, window, lse, o=fp32, ";
    for (const ModifierRow& row : modifier_rows)
      if (row.in_code) accepted += std::string(row.word) + ", ";
    return std::unexpected(accepted +
                           "split=, heads=packed, paged, whole_tiles, page=1, vectorised, first_keys, rows=few, "
                           "rows=many, tiles=paired, pipeline=, "
                           "tile=, o_store=, stagger=off, setprio=off, ladder=, target=, lowering=");
  }

  std::expected<Field, std::string> take_head_dims(std::string_view word) {
    const std::string_view sizes = word.substr(1);
    if (const auto one = positive_number(sizes)) {
      spec.head_dim_qk = spec.head_dim_v = *one;
    } else if (const auto two = number_pair(sizes, '/')) {
      std::tie(spec.head_dim_qk, spec.head_dim_v) = *two;
    } else {
      return std::unexpected("accepted: d<head dim> or d<head dim of q and k>/<head dim of v>");
    }
    return Field::head_dims;
  }

  std::expected<Field, std::string> take_assignment(std::string_view key, std::string_view value) {
    if (key == "pipeline") return take_name(families::pipelines, value, spec.pipeline, Field::pipeline);
    if (key == "o_store") return take_name(families::output_stores, value, spec.output_store, Field::o_store);
    if (key == "lowering") return take_name(families::lowerings, value, spec.lowering, Field::lowering);
    // On is what a spec without the word says, so that one spec has one text.
    if (key == "stagger" || key == "setprio") {
      if (value != "off") return std::unexpected("accepted after '=': off (on has no word)");
      (key == "stagger" ? spec.stagger : spec.raised_priority) = false;
      return key == "stagger" ? Field::stagger : Field::setprio;
    }
    if (key == "o") {
      if (value != "fp32") return std::unexpected("accepted after '=': fp32 (the type of Q, K and V has no word)");
      spec.output_fp32 = true;
      return Field::output;
    }
    if (key == "split") {
      const auto keys = positive_number(value);
      if (!keys) return std::unexpected("accepted: split=<keys of a chunk>, split=1024");
      spec.split_keys = *keys;
      return Field::split;
    }
    if (key == "heads") {
      if (value != "packed") return std::unexpected("accepted after '=': packed (a head a workgroup has no word)");
      spec.packed_heads = true;
      return Field::heads;
    }
    if (key == "tiles") {
      if (value != "paired") return std::unexpected("accepted after '=': paired (a tile a workgroup has no word)");
      spec.paired_tiles = true;
      return Field::tiles;
    }
    if (key == "page") {
      if (value != "1") return std::unexpected("accepted after '=': 1 (other page sizes have no word)");
      spec.single_keys = true;
      return Field::page;
    }
    if (key == "rows") {
      if (value != "few" && value != "many")
        return std::unexpected("accepted after '=': few, many (every sequence has no word)");
      spec.rows = value == "few" ? QueriesOf::few : QueriesOf::many;
      return Field::rows;
    }
    if (key == "tile") {
      const auto sizes = number_pair(value, 'x');
      if (!sizes) return std::unexpected("accepted: tile=<queries>x<keys>, for example tile=128x64");
      std::tie(spec.tile_queries, spec.tile_keys) = *sizes;
      return Field::tile;
    }
    if (key == "ladder") {
      // Which names a pipeline has, resources_of says; the standard one has no word.
      if (value.empty() || value == "standard")
        return std::unexpected("accepted: ladder=<name> (standard has no word)");
      spec.ladder = value;
      return Field::ladder;
    }
    if (key == "target") {
      if (value.empty()) return std::unexpected("accepted: target=<processor>, for example target=gfx950");
      spec.target = value;
      return Field::target;
    }
    return std::unexpected(
        "accepted before '=': o, split, heads, page, rows, tiles, pipeline, tile, o_store, stagger, setprio, ladder, "
        "target, "
        "lowering");
  }

  template <typename Enum, std::size_t count>
  static std::expected<Field, std::string> take_name(const Names<Enum, count>& names, std::string_view text,
                                                     Enum& destination, Field field) {
    const auto value = value_in(names, text);
    if (!value) return std::unexpected("accepted after '=': " + all_of(names));
    destination = *value;
    return field;
  }
};

// The next word of `text` from `position` on, which is left behind it; empty at the end.
std::string_view next_word(std::string_view text, std::size_t& position) {
  while (position < text.size() && text[position] == ' ') ++position;
  const std::size_t start = position;
  while (position < text.size() && text[position] != ' ') ++position;
  return text.substr(start, position - start);
}

}  // namespace

std::string to_text(const KernelSpec& spec) {
  std::string text{KernelSpec::kernel};
  text += ' ';
  text += to_text(spec.dtype);
  text += " d" + std::to_string(spec.head_dim_qk);
  if (spec.head_dim_v != spec.head_dim_qk) text += '/' + std::to_string(spec.head_dim_v);
  if (spec.mask == Mask::causal) text += " causal";
  if (spec.mask == Mask::window) text += " window";
  if (spec.lse) text += " lse";
  if (spec.output_fp32) text += " o=fp32";
  for (const ModifierRow& row : modifier_rows)
    if (spec.has(row.modifier)) text += " " + std::string(row.word);
  if (spec.split_keys != 0) text += " split=" + std::to_string(spec.split_keys);
  if (spec.packed_heads) text += " heads=packed";
  if (spec.paged) text += " paged";
  if (spec.whole_tiles) text += " whole_tiles";
  if (spec.single_keys) text += " page=1";
  if (spec.vectorised) text += " vectorised";
  if (spec.first_keys) text += " first_keys";
  if (spec.shares_call()) text += spec.rows == QueriesOf::few ? " rows=few" : " rows=many";
  if (spec.paired_tiles) text += " tiles=paired";
  text += " pipeline=";
  text += to_text(spec.pipeline);
  text += " tile=" + std::to_string(spec.tile_queries) + 'x' + std::to_string(spec.tile_keys);
  text += " o_store=";
  text += to_text(spec.output_store);
  if (!spec.stagger) text += " stagger=off";
  if (!spec.raised_priority) text += " setprio=off";
  if (!spec.ladder.empty()) text += " ladder=" + spec.ladder;
  text += " target=" + spec.target;
  text += " lowering=";
  text += to_text(spec.lowering);
  return text;
}

std::expected<KernelSpec, std::string> parse_spec(std::string_view text) {
  const auto refuse = [](std::string_view word, std::size_t number, const std::string& why) {
    return std::unexpected("kernel spec: word " + std::to_string(number) + " '" + std::string(word) + "': " + why);
  };
  std::size_t position = 0;
  std::size_t number = 1;
  if (const std::string_view first = next_word(text, position); first != KernelSpec::kernel)
    return refuse(first, number, "accepted: " + std::string(KernelSpec::kernel));
  Parser parser;
  for (;;) {
    const std::string_view word = next_word(text, position);
    if (word.empty()) break;
    ++number;
    const auto field = parser.take(word);
    if (!field) return refuse(word, number, field.error());
    bool& seen = parser.seen[static_cast<std::size_t>(*field)];
    if (seen) return refuse(word, number, "says again what an earlier word said; accepted: each thing once");
    seen = true;
  }
  for (const auto& [field, what] : required_fields)
    if (!parser.has(field)) return std::unexpected("kernel spec: no word gives the " + std::string(what));
  return parser.spec;
}

}  // namespace wavejit::attention_forward
