// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/key_list_invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/kernel/canon.h"
#include "templates/attention_forward/program/key_list_calls.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/runner.h"

namespace wavejit::attention_forward::program {
namespace key_lists {
namespace {

using tools::Draws;
using tools::FirstDifference;
using tools::InvarianceDimension;
using tools::InvarianceRequest;
using tools::Result;

using Batch = KeyListBatch;

struct Dimension {
  InvarianceDimension told;
  std::vector<Change> (*changes)(const Batch& batch, Draws& draws);
};

std::int64_t drawn_page(Draws& draws) {
  constexpr std::array<std::int64_t, 4> sizes = {1, 16, 48, 64};
  return sizes[static_cast<std::size_t>(draws.below(sizes.size()))];
}

// The heads of each kv head in two calls, or all of one.
std::vector<Part> parts_of_heads(const Batch& batch, std::int64_t first) {
  std::vector<Part> parts;
  for (std::int64_t token = 0; token < batch.tokens(); ++token)
    for (std::int64_t head = 0; head < batch.query_heads; head += batch.group()) {
      parts.push_back({.token = token, .head = head, .heads = first});
      if (first != batch.group())
        parts.push_back({.token = token, .head = head + first, .heads = batch.group() - first});
    }
  return parts;
}

const std::vector<Dimension>& all_dimensions() {
  constexpr std::uint64_t one_in = 8;
  static const std::vector<Dimension> all = {
      {{.name = "key-list-walk",
        .changes = "lists of keys: a dense walk over a list's keys with chunks of 256, in place of it",
        .one_in = one_in},
       [](const Batch& batch, Draws&) {
         return batch.softcap != 0 ? std::vector<Change>{} : std::vector{Change{.dense_walks = true}};
       }},
      {{.name = "key-list-splits", .changes = "lists of keys: how many runs a list is cut into", .one_in = one_in},
       [](const Batch& batch, Draws& draws) {
         const auto count = static_cast<std::int32_t>(1 + draws.below(4));
         return batch.top_k <= attention::list_chunk_keys
                    ? std::vector<Change>{}
                    : std::vector{Change{.text = fmt::format("splits={}", count), .splits = count}};
       }},
      {{.name = "key-list-alone", .changes = "lists of keys: each query in a call of its own", .one_in = one_in},
       [](const Batch& batch, Draws&) {
         Change change = {.parts = {}};
         for (std::int64_t token = 0; token < batch.tokens(); ++token)
           change.parts.push_back({.token = token, .head = 0, .heads = batch.query_heads});
         return std::vector{std::move(change)};
       }},
      {{.name = "key-list-heads",
        .changes = "lists of keys: the heads of each kv head in two calls of their own",
        .one_in = one_in},
       [](const Batch& batch, Draws& draws) {
         const std::int64_t first = batch.group() == 1 ? 1 : 1 + draws.below(batch.group() - 1);
         return std::vector{Change{.text = fmt::format("heads={}+{}", first, batch.group() - first),
                                   .parts = parts_of_heads(batch, first)}};
       }},
      {{.name = "key-list-pages", .changes = "lists of keys: keys in pages, which lie anywhere", .one_in = one_in},
       [](const Batch&, Draws& draws) {
         const std::int64_t size = drawn_page(draws);
         return std::vector{Change{.text = fmt::format("pages of {}", size), .page_size = size}};
       }},
      {{.name = "key-list-slots",
        .changes = "lists of slots in place of keys' numbers, without mask and lengths",
        .one_in = one_in},
       [](const Batch&, Draws& draws) {
         const std::int64_t size = draws.one_in(3) ? 0 : drawn_page(draws);
         return std::vector{Change{.text = size == 0 ? "slots" : fmt::format("slots of pages of {}", size),
                                   .page_size = size,
                                   .slots = true}};
       }},
      {{.name = "key-list-second",
        .changes = "lists of slots, cut behind a chunk into two lists over two caches",
        .one_in = one_in},
       [](const Batch& batch, Draws& draws) {
         constexpr std::int64_t chunk = attention::list_chunk_keys;
         if (batch.top_k <= chunk) return std::vector<Change>{};
         const std::int64_t first = chunk * (1 + draws.below((batch.top_k - 1) / chunk));
         const std::int64_t size = draws.one_in(3) ? 0 : drawn_page(draws);
         const auto splits = static_cast<std::int32_t>(draws.below(3));
         return std::vector{Change{.text = fmt::format("{} entries, and a second list, pages of {}, splits={}", first,
                                                       size == 0 ? batch.keys : size, splits),
                                   .page_size = size,
                                   .slots = true,
                                   .first_entries = first,
                                   .splits = splits}};
       }},
      {{.name = "key-list-schedule",
        .changes = "lists of keys: the order in which waves run (simulated GPUs)",
        .one_in = one_in},
       [](const Batch&, Draws&) { return std::vector{Change{.text = "reverse", .schedule = WAVEJIT_SIMGPU_REVERSE}}; }},
      {{.name = "key-list-order",
        .changes = "control: lists from their end, without counts; bits differ",
        .control = true},
       [](const Batch&, Draws&) { return std::vector{Change{.reversed = true}}; }},
  };
  return all;
}

std::optional<FirstDifference> first_difference(const Batch& batch, const Query& before, const Query& after) {
  const auto [o, other_o] = std::ranges::mismatch(before.o, after.o);
  if (o != before.o.end()) {
    const std::int64_t at = o - before.o.begin();
    const auto number = [&](std::uint16_t bits) { return static_cast<double>(tools::decode(batch.type, bits)); };
    return FirstDifference{
        .tensor = "O", .head = at / batch.dim, .dim = at % batch.dim, .before = number(*o), .after = number(*other_o)};
  }
  const auto [lse, other_lse] = std::ranges::mismatch(before.lse, after.lse);
  if (lse == before.lse.end()) return std::nullopt;
  return FirstDifference{.tensor = "LSE",
                         .head = lse - before.lse.begin(),
                         .before = static_cast<double>(std::bit_cast<float>(*lse)),
                         .after = static_cast<double>(std::bit_cast<float>(*other_lse))};
}

struct Laboratory {
  static const std::vector<Dimension>& dimensions() { return all_dimensions(); }
  static std::vector<Change> changes(const Dimension& dimension, const Batch& batch, Draws& draws) {
    return dimension.changes(batch, draws);
  }
  static Batch draw(const InvarianceRequest& request, const Dimension& /*dimension*/, wavejit_engine* /*engine*/) {
    return draw_key_lists(request);
  }
  using Answers = std::vector<Query>;
  static Result<Answers> plain(wavejit_engine* engine, const Batch& batch, const Dimension& /*dimension*/) {
    return key_lists::run(engine, batch, {});
  }
  static Result<Answers> changed(wavejit_engine* engine, const Batch& batch, const Change& change) {
    return key_lists::run(engine, batch, change);
  }
  static void compare(const Batch& batch, const Dimension& /*dimension*/, const Change& /*change*/,
                      const Answers& before, const Answers& after, const auto& tell) {
    for (std::size_t token = 0; token < before.size(); ++token) {
      auto difference = first_difference(batch, before[token], after[token]);
      if (difference) difference->token = static_cast<std::int64_t>(token);
      tell(static_cast<std::int64_t>(token), batch.words, std::move(difference));
    }
  }
};

}  // namespace
}  // namespace key_lists

const tools::Invariance& key_list_invariance() {
  static const tools::InvarianceOf<key_lists::Laboratory> only;
  return only;
}

}  // namespace wavejit::attention_forward::program
