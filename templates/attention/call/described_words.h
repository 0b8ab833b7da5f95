// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of a descriptor's words (families/call/descriptor_words.h) that any attention has, for described problems whose
// fields have these names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "families/call/descriptor_words.h"
#include "families/kernel/spec_words.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/mask_words.h"
#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

using families::DescriptorWord;
using families::TakenWord;

// "bf16", of Q, K and V.
template <typename Described, typename Field>
DescriptorWord<Described> operand_type_word(Field field) {
  return families::name_word<Described>("fp16, bf16", "a data type (fp16, bf16)", operand_types, field);
}

// "cache=e4m3", "cache_scales=bh". `extents`: which scales the family has.
template <typename Described, typename Field>
DescriptorWord<Described> cache_word(Field field) {
  return families::value_word<Described>(
      "cache", families::all_of(cache_types, {}, "|"),
      [field](Described& described, const families::Word& word, std::string_view value) -> families::Result<void> {
        const auto type = families::value_in(cache_types, value);
        if (!type) return wrong(word, "is no type of K and V; accepted: " + families::all_of(cache_types, "cache="));
        field(described) = *type;
        return {};
      },
      [field](const Described& described) {
        return field(described) == CacheType::as_queries
                   ? std::string()
                   : std::string(families::name_in(cache_types, field(described)));
      });
}
template <typename Described, std::size_t count>
DescriptorWord<Described> cache_scales_word(const families::Names<Extent, count>& extents, std::string_view accepted) {
  return families::value_word<Described>(
      "cache_scales", accepted,
      [&extents](Described& described, const families::Word& word, std::string_view value) -> families::Result<void> {
        const auto extent = families::value_in(extents, value);
        if (!extent) return wrong(word, "is not known; accepted: " + families::all_of(extents, "cache_scales="));
        described.cache_scales = *extent;
        return {};
      },
      [&extents](const Described& described) {
        return described.cache_scales == Extent::none ? std::string()
                                                      : std::string(families::name_in(extents, described.cache_scales));
      });
}
// `others`: words of the family that have scales, too, as " or …".
inline families::Result<void> check_cache_words(CacheType cache, Extent scales, const std::string& others = {}) {
  if (scales == Extent::none || cache != CacheType::as_queries) return {};
  return families::fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: cache_scales without cache; accepted: cache=" +
                                                      std::string(cache_types.front().second) + " or its like" +
                                                      others + " beside it");
}

template <typename Described>
DescriptorWord<Described> batch_word() {
  return families::number_word<Described>('b', "b<batch>", 1, max_batch,
                                          [](auto& described) -> auto& { return described.batch; });
}
template <typename Described>
DescriptorWord<Described> heads_word() {
  return families::pair_word<Described>(
      'h', "h<query heads>[/<kv heads>]", max_heads, [](auto& described) -> auto& { return described.query_heads; },
      [](auto& described) -> auto& { return described.kv_heads; });
}

// `row`, `keys`: what a family's refusals call them.
template <typename Described>
DescriptorWord<Described> causal_word(std::int64_t most, const char* row, const char* keys) {
  return {.accepted = "causal[=<prefix>]",
          .take = [most, row, keys](Described& described, const families::Word& word) -> TakenWord {
            const auto prefix = families::behind_key(word, "causal");
            if (prefix) return take_causal(word, *prefix, most, row, keys, described.mask);
            if (word.text != "causal") return std::nullopt;
            described.mask.causal = true;
            return families::Result<void>();
          },
          .text = [](const Described& described) { return causal_text(described.mask); }};
}
template <typename Described>
DescriptorWord<Described> window_word(std::int64_t most) {
  return families::value_word<Described>(
      "window", "<left>,<right>",
      [most](Described& described, const families::Word& word, std::string_view value) {
        return take_window(word, value, most, described.mask);
      },
      [](const Described& described) { return window_text(described.mask); });
}

// "chunked=8192": a kind of masks.def.
template <typename Described>
DescriptorWord<Described> kind_word(const MaskKind& kind) {
  return families::value_word<Described>(
      std::string(kind.word), "<keys>",
      [&kind](Described& described, const families::Word& word, std::string_view value) {
        return take_kind(kind, word, value, described.mask);
      },
      [&kind](const Described& described) { return kind_text(kind, described.mask); });
}

template <typename Described, typename Field>
DescriptorWord<Described> lengths_word(const std::string& key, std::int64_t most, Field field) {
  return families::value_word<Described>(
      key, "<n,…>",
      [most, field](Described& described, const families::Word& word, std::string_view value) {
        return take_lengths(word, value, most, field(described));
      },
      [field](const Described& described) { return to_text(field(described)); });
}

// The lengths of sequences that a line lists: one for each, and the longest as the line has it, or no longer.
families::Result<void> check_lengths(const std::string& key, const std::vector<std::int64_t>& lengths,
                                     std::int64_t batch, std::int64_t longest, bool exactly = false);

// "q128", "k8192"
template <typename Described>
DescriptorWord<Described> query_length_word(std::int64_t most) {
  return families::number_word<Described>('q', "q<query length>", 1, most,
                                          [](auto& described) -> auto& { return described.query_length; });
}
template <typename Described>
DescriptorWord<Described> key_length_word(std::int64_t most) {
  return families::number_word<Described>('k', "k<key length>", 0, most,
                                          [](auto& described) -> auto& { return described.key_length; });
}

// "second_top_k=128"
template <typename Described>
DescriptorWord<Described> second_top_k_word() {
  return families::value_word<Described>(
      "second_top_k", "<n>",
      [](Described& described, const families::Word& word, std::string_view value) -> families::Result<void> {
        const auto count = families::whole_number(value);
        if (!count || *count < 1 || *count > max_top_k)
          return wrong(word,
                       "is no length of lists; accepted: second_top_k=1 to second_top_k=" + std::to_string(max_top_k));
        described.second_top_k = *count;
        return {};
      },
      [](const Described& described) {
        return described.second_top_k == 0 ? std::string() : std::to_string(described.second_top_k);
      });
}

// "launches=2"
template <typename Described>
DescriptorWord<Described> launches_word() {
  return families::value_word<Described>(
      "launches", "<1|2>",
      [](Described& described, const families::Word& word, std::string_view value) -> families::Result<void> {
        const auto count = families::whole_number(value);
        if (count != 1 && count != 2)
          return wrong(word,
                       "is no number of launches; accepted: launches=1 (parts are merged in the launch that leaves "
                       "them), launches=2");
        described.launches = *count;
        return {};
      },
      [](const Described& described) {
        return described.launches == 0 ? std::string() : std::to_string(described.launches);
      });
}

template <typename Described>
DescriptorWord<Described> scale_word() {
  return families::value_word<Described>(
      "scale", "<x>",
      [](Described& described, const families::Word& word, std::string_view value) {
        return take_scale(word, value, described.scale);
      },
      [](const Described& described) { return described.scale; });
}
template <typename Described>
DescriptorWord<Described> seed_word() {
  return families::value_word<Described>(
      "seed", "<n>",
      [](Described& described, const families::Word& word, std::string_view value) {
        return take_seed(word, value, described.seed);
      },
      [](const Described& described) { return described.seed; });
}

// A flag of a kernel spec for which descriptors have the same word. `asked` returns the words of a described problem
// that its kernels are asked for with, and with which specs begin.
template <typename Described, typename Spec, typename Asked>
DescriptorWord<Described> spec_word(const families::SpecWord<Spec>& row, Asked asked) {
  const auto spec_of = [asked](const Described& described) {
    Spec spec;
    static_cast<std::remove_cvref_t<decltype(asked(described))>&>(spec) = asked(described);
    return spec;
  };
  return {.accepted = std::string(row.accepted),
          .take = [&row, asked, spec_of](Described& described, const families::Word& word) -> TakenWord {
            Spec spec = spec_of(described);
            const families::Taken taken = row.take(row, spec, word.text);
            if (!taken) return std::nullopt;
            if (!*taken) return wrong(word, "is not known; " + taken->error());
            asked(described) = spec;
            return families::Result<void>();
          },
          .text = [&row, spec_of](const Described& described) { return row.text(row, spec_of(described)); }};
}

}  // namespace wavejit::attention
