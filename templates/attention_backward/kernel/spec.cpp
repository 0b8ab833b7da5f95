// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/kernel/spec.h"

#include <array>
#include <charconv>
#include <span>

#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward {
namespace {

std::string words_text(std::string_view kernel, const KernelWords& words) {
  std::string text(kernel);
  text += " ";
  text += attention::to_text(words.dtype);
  text += " d" + std::to_string(words.head_dim) + " mask=";
  text += families::name_in(masks, words.mask);
  for (const attention::ModifierRow& row : attention::modifier_rows)
    if (row.in_code && words.has(row.modifier)) text += " " + std::string(row.word);
  if (words.gradients_fp32) text += " gradients=fp32";
  return text + " blocks=" + std::to_string(words.blocks);
}

std::string end_text(const KernelWords& words) {
  return " target=" + words.target + " lowering=" + std::string(to_text(words.lowering));
}

// Reads a word of either kernel; false: there is no such word.
bool take(KernelWords& words, Runs& runs, std::string_view word) {
  const auto value = [&](std::string_view name) -> std::optional<std::string_view> {
    if (!word.starts_with(name)) return std::nullopt;
    return word.substr(name.size());
  };
  if (const auto dtype = families::value_in(attention::operand_types, word)) {
    words.dtype = *dtype;
    return true;
  }
  for (const attention::ModifierRow& row : attention::modifier_rows) {
    if (!row.in_code || word != row.word) continue;
    words.modifiers.add(row.modifier);
    return true;
  }
  if (const auto mask = value("mask=")) {
    const auto found = families::value_in(masks, *mask);
    if (found) words.mask = *found;
    return found.has_value();
  }
  if (word == "gradients=fp32") {
    words.gradients_fp32 = true;
    return true;
  }
  if (const auto given = value("runs=")) {
    const auto found = families::value_in(runs_names, *given);
    if (found) runs = *found;
    return found.has_value();
  }
  if (const auto target = value("target=")) {
    words.target = *target;
    return true;
  }
  if (const auto lowering = value("lowering=")) {
    const auto found = families::value_in(families::lowerings, *lowering);
    if (found) words.lowering = *found;
    return found.has_value();
  }
  const auto number = [](std::string_view digits, int& into) {
    return std::from_chars(digits.data(), digits.data() + digits.size(), into).ec == std::errc{};
  };
  if (const auto blocks = value("blocks=")) return number(*blocks, words.blocks);
  if (const auto dims = value("d")) return number(*dims, words.head_dim);
  return false;
}

template <typename Spec>
std::expected<Spec, std::string> parse(std::string_view text, std::string_view grammar) {
  Spec spec;
  Runs runs = Runs::one;
  std::string_view rest = text;
  bool first = true;
  bool good = true;
  while (good && !rest.empty()) {
    const std::size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
    good = first ? word == Spec::kernel : take(spec, runs, word);
    first = false;
  }
  if constexpr (requires { spec.runs; }) spec.runs = runs;
  // One text a spec: what to_text prints, word for word.
  if (good && to_text(spec) == text) return spec;
  return std::unexpected("kernel spec '" + std::string(text) + "'; accepted: " + std::string(grammar));
}

std::optional<std::string> words_refusal(const KernelWords& words) {
  const targets::Target* target = targets::find_target(words.target);
  if (target == nullptr)
    return "target=" + words.target + " is not in the target table; accepted: " + targets::known_targets();
  if (target->wave_size != 64 || target->matrix.empty())
    return "target=" + words.target + " has no 32x32 matrix instructions of 64 lanes, which these kernels are made of";
  if (words.head_dim != 64 && words.head_dim != 128)
    return "d" + std::to_string(words.head_dim) + "; accepted: d64, d128";
  if (words.blocks < 1 || words.blocks > most_blocks)
    return "blocks=" + std::to_string(words.blocks) + "; accepted: 1, 2";
  if (words.has(Modifier::bias)) return "bias has no gradient yet; accepted: softcap, alibi, sink";
  return std::nullopt;
}

}  // namespace

std::string to_text(const QueryKernel& spec) { return words_text(QueryKernel::kernel, spec) + end_text(spec); }
std::string to_text(const KeyKernel& spec) {
  return words_text(KeyKernel::kernel, spec) + " runs=" + std::string(families::name_in(runs_names, spec.runs)) +
         end_text(spec);
}

std::expected<QueryKernel, std::string> parse_query_kernel(std::string_view text) {
  return parse<QueryKernel>(text,
                            "attention_backward_dq <fp16|bf16> d<64|128> mask=<none|causal|window> [softcap] [alibi] "
                            "[gradients=fp32] blocks=<1|2> target=<processor> lowering=<llvm|comgr>");
}
std::expected<KeyKernel, std::string> parse_key_kernel(std::string_view text) {
  return parse<KeyKernel>(text,
                          "attention_backward_dkdv <fp16|bf16> d<64|128> mask=<none|causal|window> [softcap] [alibi] "
                          "[gradients=fp32] blocks=<1|2> runs=<one|several> target=<processor> lowering=<llvm|comgr>");
}

std::optional<std::string> refusal_of(const QueryKernel& spec) { return words_refusal(spec); }
std::optional<std::string> refusal_of(const KeyKernel& spec) { return words_refusal(spec); }
std::size_t argument_bytes(const QueryKernel&) { return sizeof(Arguments); }
std::size_t argument_bytes(const KeyKernel&) { return sizeof(Arguments); }

// Where nothing transposes on the way out of LDS, q and dO stand there twice.
int rows_at_once(const KernelWords& words, const targets::Target& target) {
  return target.transpose_read || words.head_dim <= 64 ? tile_rows : tile_rows / 2;
}

// Two blocks halve what is read from LDS for each product. Where LDS is as fast as two of the matrix instructions that
// take a fragment (32x32x8), one is enough.
int default_query_blocks(const KernelWords& /*words*/, const targets::Target& target) {
  return target.transpose_read ? 2 : 1;
}
// Of 128 dims two blocks take all 512 registers: what modifies scores does not fit beside them.
int default_key_blocks(const KernelWords& words, const targets::Target& target) {
  return target.transpose_read && (words.head_dim <= 64 || !words.modifiers.any()) ? 2 : 1;
}

int waves_per_simd(const QueryKernel& spec, const targets::Target& /*target*/) {
  return spec.head_dim <= 64 && spec.blocks == 1 ? 2 : 1;
}
int waves_per_simd(const KeyKernel& spec, const targets::Target& /*target*/) {
  return spec.head_dim <= 64 && spec.blocks == 1 ? 2 : 1;
}

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {families::kind_of<QueryKernel, parse_query_kernel>,
                                       families::kind_of<KeyKernel, parse_key_kernel>};
  return kinds;
}

}  // namespace wavejit::attention_backward
