// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/words.h"

#include <charconv>
#include <tuple>
#include <utility>

#include "families/kernel/names.h"
#include "templates/attention_forward/kernel/ladders.h"

namespace wavejit::attention_forward {
namespace {

using families::all_of;
using families::Names;
using families::value_in;
using Taken = WordRow::Taken;

Taken taken() { return std::expected<void, std::string>(); }
Taken refused(std::string accepted) { return std::unexpected("accepted" + std::move(accepted)); }

// A positive decimal without sign, leading zeros or anything after it: what is printed, so that one spec has one text.
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

// What stands behind "key=".
std::optional<std::string_view> value_of(std::string_view word, std::string_view key) {
  if (!word.starts_with(key)) return std::nullopt;
  return word.substr(key.size());
}

template <typename Enum, std::size_t count>
Taken take_name(std::string_view word, std::string_view key, const Names<Enum, count>& names, Enum& destination) {
  const auto text = value_of(word, key);
  if (!text) return std::nullopt;
  const auto value = value_in(names, *text);
  if (!value) return refused(" after '=': " + all_of(names));
  destination = *value;
  return taken();
}

std::string dims(const KernelSpec& spec, char separator) {
  std::string text = "d" + std::to_string(spec.head_dim_qk);
  if (spec.head_dim_v != spec.head_dim_qk) text += separator + std::to_string(spec.head_dim_v);
  return text;
}
std::string tile(const KernelSpec& spec) {
  return std::to_string(spec.tile_queries) + 'x' + std::to_string(spec.tile_keys);
}
std::string mask(const KernelSpec& spec) {
  return spec.mask == Mask::causal ? "causal" : spec.mask == Mask::window ? "window" : "";
}
std::string split(const KernelSpec& spec) { return spec.split_keys == 0 ? "" : std::to_string(spec.split_keys); }
std::string rows(const KernelSpec& spec) {
  return spec.rows == QueriesOf::few ? "few" : spec.rows == QueriesOf::many ? "many" : "";
}
std::string behind(std::string_view key, std::string_view value) {
  return value.empty() ? std::string() : std::string(key) + std::string(value);
}

Taken take_dtype(KernelSpec& spec, std::string_view word) {
  const auto dtype = value_in(operand_types, word);
  if (!dtype) return std::nullopt;
  spec.dtype = *dtype;
  return taken();
}

Taken take_head_dims(KernelSpec& spec, std::string_view word) {
  if (word.size() < 2 || word.front() != 'd' || word[1] < '0' || word[1] > '9') return std::nullopt;
  const std::string_view sizes = word.substr(1);
  if (const auto one = positive_number(sizes)) {
    spec.head_dim_qk = spec.head_dim_v = *one;
  } else if (const auto two = number_pair(sizes, '/')) {
    std::tie(spec.head_dim_qk, spec.head_dim_v) = *two;
  } else {
    return refused(": d<head dim> or d<head dim of q and k>/<head dim of v>");
  }
  return taken();
}

Taken take_mask(KernelSpec& spec, std::string_view word) {
  if (word != "causal" && word != "window") return std::nullopt;
  spec.mask = word == "causal" ? Mask::causal : Mask::window;
  return taken();
}

Taken take_split(KernelSpec& spec, std::string_view word) {
  const auto value = value_of(word, "split=");
  if (!value) return std::nullopt;
  const auto keys = positive_number(*value);
  if (!keys) return refused(": split=<keys of a chunk>, split=1024");
  spec.split_keys = *keys;
  return taken();
}

Taken take_rows(KernelSpec& spec, std::string_view word) {
  const auto value = value_of(word, "rows=");
  if (!value) return std::nullopt;
  if (*value != "few" && *value != "many") return refused(" after '=': few, many (every sequence has no word)");
  spec.rows = *value == "few" ? QueriesOf::few : QueriesOf::many;
  return taken();
}

Taken take_pipeline(KernelSpec& spec, std::string_view word) {
  return take_name(word, "pipeline=", families::pipelines, spec.pipeline);
}

Taken take_tile(KernelSpec& spec, std::string_view word) {
  const auto value = value_of(word, "tile=");
  if (!value) return std::nullopt;
  const auto sizes = number_pair(*value, 'x');
  if (!sizes) return refused(": tile=<queries>x<keys>, for example tile=128x64");
  std::tie(spec.tile_queries, spec.tile_keys) = *sizes;
  return taken();
}

Taken take_output_store(KernelSpec& spec, std::string_view word) {
  return take_name(word, "o_store=", families::output_stores, spec.output_store);
}

// Which names a pipeline has, the rules say.
Taken take_ladder(KernelSpec& spec, std::string_view word) {
  const auto value = value_of(word, "ladder=");
  if (!value) return std::nullopt;
  if (value->empty() || *value == standard_ladder) return refused(": ladder=<name> (standard has no word)");
  spec.ladder = *value;
  return taken();
}

Taken take_target(KernelSpec& spec, std::string_view word) {
  const auto value = value_of(word, "target=");
  if (!value) return std::nullopt;
  if (value->empty()) return refused(": target=<processor>, for example target=gfx950");
  spec.target = *value;
  return taken();
}

Taken take_lowering(KernelSpec& spec, std::string_view word) {
  return take_name(word, "lowering=", families::lowerings, spec.lowering);
}

using Spec = KernelSpec;

std::vector<WordRow> make_words() {
  std::vector<WordRow> rows_of_table = {
      {.accepted = "bf16, fp16",
       .missing = "data type (bf16 or fp16)",
       .of_problem = true,
       .text = [](const Spec& spec) { return std::string(to_text(spec.dtype)); },
       .name_of = [](const Spec& spec) { return std::string(to_text(spec.dtype)); },
       .take = take_dtype},
      {.accepted = "d<n>[/<n>]",
       .missing = "head dim (d<n>)",
       .of_problem = true,
       .text = [](const Spec& spec) { return dims(spec, '/'); },
       .name_of = [](const Spec& spec) { return dims(spec, '_'); },
       .take = take_head_dims},
      {.accepted = "causal, window", .of_problem = true, .text = mask, .name_of = mask, .take = take_mask},
      {.accepted = "lse", .of_problem = true, .flag = &Spec::lse, .name = "lse"},
      {.accepted = "o=fp32",
       .of_problem = true,
       .flag = &Spec::output_fp32,
       .otherwise = "the type of Q, K and V has no word"},
  };
  for (const ModifierRow& row : modifier_rows)
    if (row.in_code)
      rows_of_table.push_back({.accepted = row.word, .of_problem = true, .name = row.word, .modifier = row.modifier});
  const WordRow others[] = {
      {.accepted = "bias_type=fp32",
       .of_problem = true,
       .flag = &Spec::bias_fp32,
       .otherwise = "the type of Q, K and V has no word",
       .name = "fp32"},
      {.accepted = "split=",
       .of_problem = true,
       .text = [](const Spec& spec) { return behind("split=", split(spec)); },
       .name_of = [](const Spec& spec) { return behind("split", split(spec)); },
       .take = take_split},
      {.accepted = "heads=packed",
       .flag = &Spec::packed_heads,
       .otherwise = "a head a workgroup has no word",
       .name = "packed"},
      {.accepted = "paged", .of_problem = true, .flag = &Spec::paged, .name = "paged"},
      {.accepted = "whole_tiles", .of_problem = true, .flag = &Spec::whole_tiles, .name = "whole_tiles"},
      {.accepted = "page=1",
       .of_problem = true,
       .flag = &Spec::single_keys,
       .otherwise = "other page sizes have no word",
       .name = "page1"},
      {.accepted = "vectorised", .of_problem = true, .flag = &Spec::vectorised, .name = "vectorised"},
      {.accepted = "first_keys", .of_problem = true, .flag = &Spec::first_keys, .name = "first_keys"},
      {.accepted = "rows=few, rows=many",
       .of_problem = true,
       .text = [](const Spec& spec) { return behind("rows=", rows(spec)); },
       .name_of = [](const Spec& spec) { return rows(spec).empty() ? std::string() : rows(spec) + "_rows"; },
       .take = take_rows},
      {.accepted = "tiles=paired", .flag = &Spec::paired_tiles, .otherwise = "a tile a workgroup has no word"},
      {.accepted = "pipeline=",
       .missing = "pipeline=<name>",
       .text = [](const Spec& spec) { return "pipeline=" + std::string(to_text(spec.pipeline)); },
       .name_of =
           [](const Spec& spec) {
             return spec.pipeline == Pipeline::generic ? std::string() : std::string(to_text(spec.pipeline));
           },
       .take = take_pipeline},
      {.accepted = "tile=",
       .missing = "tile=<queries>x<keys>",
       .text = [](const Spec& spec) { return "tile=" + tile(spec); },
       .name_of = tile,
       .take = take_tile},
      {.accepted = "o_store=",
       .missing = "o_store=<path>",
       .text = [](const Spec& spec) { return "o_store=" + std::string(to_text(spec.output_store)); },
       .take = take_output_store},
      // On is what a spec without the word says, so that one spec has one text.
      {.accepted = "stagger=off", .flag = &Spec::stagger, .said = false, .otherwise = "on has no word"},
      {.accepted = "setprio=off", .flag = &Spec::raised_priority, .said = false, .otherwise = "on has no word"},
      {.accepted = "ladder=",
       .text = [](const Spec& spec) { return behind("ladder=", spec.ladder); },
       .take = take_ladder},
      {.accepted = "target=",
       .missing = "target=<processor>",
       .text = [](const Spec& spec) { return "target=" + spec.target; },
       .name_of = [](const Spec& spec) { return spec.target; },
       .take = take_target},
      {.accepted = "lowering=",
       .missing = "lowering=<name>",
       .text = [](const Spec& spec) { return "lowering=" + std::string(to_text(spec.lowering)); },
       .take = take_lowering},
  };
  rows_of_table.insert(rows_of_table.end(), std::begin(others), std::end(others));
  return rows_of_table;
}

bool is_said(const WordRow& row, const KernelSpec& spec) {
  return row.modifier ? spec.has(*row.modifier) : row.flag != nullptr && spec.*row.flag == row.said;
}

}  // namespace

const std::vector<WordRow>& words() {
  static const std::vector<WordRow> table = make_words();
  return table;
}

std::string text_of(const WordRow& row, const KernelSpec& spec) {
  if (row.text != nullptr) return row.text(spec);
  return is_said(row, spec) ? std::string(row.accepted) : std::string();
}

std::string name_of(const WordRow& row, const KernelSpec& spec) {
  if (row.name_of != nullptr) return row.name_of(spec);
  return is_said(row, spec) ? std::string(row.name) : std::string();
}

Taken take(const WordRow& row, KernelSpec& spec, std::string_view word) {
  if (row.take != nullptr) return row.take(spec, word);
  if (word == row.accepted) {
    if (row.modifier) {
      spec.modifiers.add(*row.modifier);
    } else if (row.flag != nullptr) {
      spec.*row.flag = row.said;
    }
    return taken();
  }
  const std::size_t behind_key = row.accepted.find('=') + 1;
  if (behind_key == 0 || word.substr(0, behind_key) != row.accepted.substr(0, behind_key)) return std::nullopt;
  return refused(" after '=': " + std::string(row.accepted.substr(behind_key)) + " (" + std::string(row.otherwise) +
                 ")");
}

std::string accepted_instead(std::string_view word) {
  const bool keys_only = word.contains('=');
  std::string list;
  for (const WordRow& row : words()) {
    const std::string_view one = keys_only ? row.accepted.substr(0, row.accepted.find('=')) : row.accepted;
    if (keys_only && one == row.accepted) continue;
    list += (list.empty() ? "" : ", ") + std::string(one);
  }
  return (keys_only ? "accepted before '=': " : "accepted: ") + list;
}

std::string problem_text(const KernelSpec& spec) {
  std::string text;
  for (const WordRow& row : words()) {
    if (!row.of_problem) continue;
    const std::string word = text_of(row, spec);
    if (!word.empty()) text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

std::string kernel_name(const KernelSpec& spec) {
  std::string name(KernelSpec::kernel);
  for (const WordRow& row : words())
    if (const std::string word = name_of(row, spec); !word.empty()) name += "_" + word;
  return name;
}

}  // namespace wavejit::attention_forward
