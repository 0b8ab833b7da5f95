// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/combine/spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "families/kernel/names.h"

namespace wavejit::attention_combine {
namespace {

enum class Field : std::uint8_t { dtype, head_dim, target, lowering, first_keys, rows };
constexpr std::array<std::pair<Field, std::string_view>, 4> fields = {{
    {Field::dtype, "data type (bf16, fp16 or fp32)"},
    {Field::head_dim, "head dim (d<n>)"},
    {Field::target, "target=<processor>"},
    {Field::lowering, "lowering=<name>"},
}};
constexpr const char* accepted =
    "accepted: bf16, fp16, fp32, d<n>, first_keys, rows=few, target=<processor>, lowering=llvm, lowering=comgr";

bool take_number(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number > 0 && text.front() != '0';
}

// The field that a word fills, or what would be accepted.
std::expected<Field, std::string> take(std::string_view word, KernelSpec& spec) {
  if (const auto type = families::value_in(attention::data_types, word)) {
    spec.dtype = *type;
    return Field::dtype;
  }
  if (word.size() > 1 && word.front() == 'd' && take_number(word.substr(1), spec.head_dim)) return Field::head_dim;
  if (word == "first_keys") {
    spec.first_keys = true;
    return Field::first_keys;
  }
  if (word == "rows=few") {
    spec.few_rows = true;
    return Field::rows;
  }
  if (word.starts_with("target=") && word != "target=") {
    spec.target = word.substr(word.find('=') + 1);
    return Field::target;
  }
  for (const Lowering lowering : {Lowering::llvm, Lowering::comgr}) {
    if (word != "lowering=" + std::string(to_text(lowering))) continue;
    spec.lowering = lowering;
    return Field::lowering;
  }
  return std::unexpected(accepted);
}

}  // namespace

std::string to_text(const KernelSpec& spec) {
  std::string text(KernelSpec::kernel);
  text += ' ';
  text += to_text(spec.dtype);
  text += " d" + std::to_string(spec.head_dim);
  if (spec.first_keys) text += " first_keys";
  if (spec.few_rows) text += " rows=few";
  text += " target=" + spec.target + " lowering=";
  text += to_text(spec.lowering);
  return text;
}

std::expected<KernelSpec, std::string> parse_spec(std::string_view text) {
  KernelSpec spec;
  std::array<bool, static_cast<std::size_t>(Field::rows) + 1> seen{};
  int position = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const std::string where = "word " + std::to_string(++position) + " '" + std::string(word) + "'";
    if (position == 1) {
      if (word != KernelSpec::kernel)
        return std::unexpected(where + " is not the family; accepted: " + std::string(KernelSpec::kernel));
      continue;
    }
    const auto field = take(word, spec);
    if (!field) return std::unexpected(where + " is not known; " + field.error());
    if (std::exchange(seen[static_cast<std::size_t>(*field)], true))
      return std::unexpected(where + " says again what an earlier word said");
  }
  if (position == 0)
    return std::unexpected("empty; accepted: a line that begins with " + std::string(KernelSpec::kernel));
  for (const auto& [field, name] : fields)
    if (!seen[static_cast<std::size_t>(field)]) return std::unexpected(std::string(name) + " is missing");
  return spec;
}

KernelSpec combine_of(const attention_forward::KernelSpec& split, bool output_fp32) {
  return {.dtype = output_fp32 ? DataType::fp32 : split.dtype,
          .head_dim = split.head_dim_v,
          .first_keys = split.first_keys && !split.paged,
          .few_rows = split.rows == attention_forward::QueriesOf::few,
          .target = split.target,
          .lowering = split.lowering};
}

}  // namespace wavejit::attention_combine
