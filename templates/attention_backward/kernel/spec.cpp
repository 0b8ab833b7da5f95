// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/kernel/spec.h"

#include <array>
#include <span>

#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/canon.h"
#include "templates/attention_backward/kernel/words.h"

namespace wavejit::attention_backward {
namespace {

std::optional<std::string> target_refusal(const std::string& name) {
  const targets::Target* target = targets::find_target(name);
  if (target == nullptr) return "target=" + name + " is not in the target table; accepted: " + targets::known_targets();
  if (target->wave_size != 64 || target->matrix.empty())
    return "target=" + name + " has no 32x32 matrix instructions of 64 lanes, which these kernels are made of";
  return std::nullopt;
}

std::optional<std::string> words_refusal(const KernelWords& words) {
  if (auto refusal = target_refusal(words.target)) return refusal;
  if (words.head_dim != 64 && words.head_dim != 128)
    return "d" + std::to_string(words.head_dim) + "; accepted: d64, d128";
  if (words.blocks < 1 || words.blocks > most_blocks)
    return "blocks=" + std::to_string(words.blocks) + "; accepted: 1, 2";
  if (words.bias_fp32 && !words.has(Modifier::bias))
    return "bias_type=fp32 is of a bias; accepted: bias bias_type=fp32";
  return std::nullopt;
}

}  // namespace

std::string to_text(const QueryKernel& spec) { return families::text_of_spec(spec_words<QueryKernel>, spec); }
std::string to_text(const KeyKernel& spec) { return families::text_of_spec(spec_words<KeyKernel>, spec); }
std::string to_text(const BiasKernel& spec) { return families::text_of_spec(spec_words<BiasKernel>, spec); }
std::string to_text(const SinkKernel& spec) { return families::text_of_spec(sink_words, spec); }
std::expected<QueryKernel, std::string> parse_query_kernel(std::string_view text) {
  return families::parse_words(spec_words<QueryKernel>, text);
}
std::expected<KeyKernel, std::string> parse_key_kernel(std::string_view text) {
  return families::parse_words(spec_words<KeyKernel>, text);
}
std::expected<BiasKernel, std::string> parse_bias_kernel(std::string_view text) {
  return families::parse_words(spec_words<BiasKernel>, text);
}
std::expected<SinkKernel, std::string> parse_sink_kernel(std::string_view text) {
  return families::parse_words(sink_words, text);
}

std::optional<std::string> refusal_of(const QueryKernel& spec) { return words_refusal(spec); }
std::optional<std::string> refusal_of(const KeyKernel& spec) { return words_refusal(spec); }
std::optional<std::string> refusal_of(const BiasKernel& spec) {
  if (auto refusal = words_refusal(spec)) return refusal;
  if (!spec.has(Modifier::bias)) return "dBias without a bias; accepted: bias";
  if (spec.blocks != 1) return "blocks=" + std::to_string(spec.blocks) + "; accepted: 1";
  return std::nullopt;
}
std::optional<std::string> refusal_of(const SinkKernel& spec) { return target_refusal(spec.target); }
std::size_t argument_bytes(const QueryKernel&) { return sizeof(Arguments); }
std::size_t argument_bytes(const KeyKernel&) { return sizeof(Arguments); }
std::size_t argument_bytes(const SinkKernel&) { return sizeof(Arguments); }
std::size_t argument_bytes(const BiasKernel&) { return sizeof(Arguments); }

// Where nothing transposes on the way out of LDS, q and dO stand there twice.
int rows_at_once(const KernelWords& words, const targets::Target& target) {
  return target.transpose_read || words.head_dim <= 64 ? tile_rows : tile_rows / 2;
}

// Two blocks halve what is read from LDS for each product. Where LDS is as fast as two of the matrix instructions that
// take a fragment (32x32x8), one is enough.
int default_query_blocks(const KernelWords& words, const targets::Target& target) {
  return target.transpose_read && !words.has(Modifier::bias) ? 2 : 1;
}
// Of 128 dims two blocks take all 512 registers: what modifies scores does not fit beside them.
int default_key_blocks(const KernelWords& words, const targets::Target& target) {
  return target.transpose_read && !words.has(Modifier::bias) && (words.head_dim <= 64 || !words.modifiers.any()) ? 2
                                                                                                                 : 1;
}

int waves_per_simd(const QueryKernel& spec, const targets::Target& /*target*/) {
  return spec.head_dim <= 64 && spec.blocks == 1 && !spec.has(Modifier::bias) ? 2 : 1;
}
int waves_per_simd(const KeyKernel& spec, const targets::Target& /*target*/) {
  return spec.head_dim <= 64 && spec.blocks == 1 && !spec.has(Modifier::bias) ? 2 : 1;
}
int waves_per_simd(const BiasKernel& /*spec*/, const targets::Target& /*target*/) { return 1; }
int waves_per_simd(const SinkKernel& /*spec*/, const targets::Target& /*target*/) { return 2; }

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {
      families::kind_of<QueryKernel, parse_query_kernel>, families::kind_of<KeyKernel, parse_key_kernel>,
      families::kind_of<SinkKernel, parse_sink_kernel>, families::kind_of<BiasKernel, parse_bias_kernel>};
  return kinds;
}

}  // namespace wavejit::attention_backward
