// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What words of their own kind say.
#include "templates/attention_forward/kernel/words.h"

#include <optional>
#include <tuple>
#include <utility>

#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using families::positive_number;
using families::refused_word;
using families::Taken;
using families::taken_word;

std::string sizes(const ForwardKernel& spec) {
  return std::to_string(spec.tile_queries) + 'x' + std::to_string(spec.tile_keys);
}

}  // namespace

namespace word_kinds {

std::string mask_name(const SpecWord& row, const ForwardKernel& spec) { return row.text(row, spec); }

std::string split_text(const SpecWord&, const ForwardKernel& spec) {
  return spec.split_keys == 0 ? "" : "split=" + std::to_string(spec.split_keys);
}
std::string split_name(const SpecWord&, const ForwardKernel& spec) {
  return spec.split_keys == 0 ? "" : "split" + std::to_string(spec.split_keys);
}
Taken take_split(const SpecWord& row, ForwardKernel& spec, std::string_view word) {
  const auto value = row.value_of(word);
  if (!value) return std::nullopt;
  const auto keys = positive_number(*value);
  if (!keys) return refused_word(": split=<keys of a chunk>, split=1024, of listed keys split=256");
  spec.split_keys = *keys;
  return taken_word();
}

std::string output_name(const SpecWord& /*row*/, const ForwardKernel& spec) {
  return spec.scales_output() ? "o_" + std::string(to_text(spec.output_type())) : std::string();
}
std::string rows_name(const SpecWord&, const ForwardKernel& spec) {
  return spec.rows == QueriesOf::all ? std::string() : std::string(families::name_in(rows_names, spec.rows)) + "_rows";
}
// Which numbers there are, the rules say.
std::string chunk_waves_text(const SpecWord&, const ForwardKernel& spec) {
  return spec.chunk_waves == 0 ? "" : "chunk_waves=" + std::to_string(spec.chunk_waves);
}
std::string chunk_waves_name(const SpecWord&, const ForwardKernel& spec) {
  return spec.chunk_waves == 0 ? "" : std::to_string(spec.chunk_waves) + "waves";
}
Taken take_chunk_waves(const SpecWord& row, ForwardKernel& spec, std::string_view word) {
  const auto value = row.value_of(word);
  if (!value) return std::nullopt;
  const auto waves = positive_number(*value);
  if (!waves) return refused_word(": chunk_waves=<waves> (a wave with rows of its own has no word)");
  spec.chunk_waves = *waves;
  return taken_word();
}
std::string pipeline_name(const SpecWord&, const ForwardKernel& spec) {
  return spec.pipeline == Pipeline::generic ? std::string() : std::string(to_text(spec.pipeline));
}

std::string tile_text(const SpecWord&, const ForwardKernel& spec) { return "tile=" + sizes(spec); }
std::string tile_name(const SpecWord&, const ForwardKernel& spec) { return sizes(spec); }
Taken take_tile(const SpecWord& row, ForwardKernel& spec, std::string_view word) {
  const auto value = row.value_of(word);
  if (!value) return std::nullopt;
  const auto two = attention::number_pair(*value, 'x');
  if (!two) return refused_word(": tile=<queries>x<keys>, for example tile=128x64");
  std::tie(spec.tile_queries, spec.tile_keys) = *two;
  return taken_word();
}

// Which names a pipeline has, the rules say.
std::string ladder_text(const SpecWord&, const ForwardKernel& spec) {
  return spec.ladder.empty() ? "" : "ladder=" + spec.ladder;
}
Taken take_ladder(const SpecWord& row, ForwardKernel& spec, std::string_view word) {
  const auto value = row.value_of(word);
  if (!value) return std::nullopt;
  if (value->empty() || *value == standard_ladder) return refused_word(": ladder=<name> (standard has no word)");
  spec.ladder = *value;
  return taken_word();
}

}  // namespace word_kinds

std::string to_text(const ForwardKernel& spec) { return families::text_of_spec(spec_words, spec); }
std::expected<ForwardKernel, std::string> parse_spec(std::string_view text) {
  return families::parse_words(spec_words, text);
}
std::string problem_text(const ForwardKernel& spec) { return families::text_of_problem(spec_words, spec); }
std::string kernel_name(const ForwardKernel& spec) { return families::name_of_kernel(spec_words, spec); }

}  // namespace wavejit::attention_forward
