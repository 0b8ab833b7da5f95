// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words that several families have, as a refusal tells them (families/call/obstacles.h).
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "families/call/obstacles.h"
#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

inline std::string said_head_dims(const HeadDims& dims) { return "head dim " + to_text(dims); }

// `candidates`: in any order, the problem's own among them or not. `fills_gap`: which of them are many.
template <typename Shape>
void add_head_dims(families::ProblemWords<Shape>& words, const HeadDims& least, std::vector<HeadDims> candidates,
                   bool (*fills_gap)(const HeadDims&)) {
  const HeadDims own = {.qk = words.shape.head_dim_qk, .v = words.shape.head_dim_v};
  const auto distance = [&](const HeadDims& dims) { return std::abs(dims.qk - own.qk) + std::abs(dims.v - own.v); };
  const auto change = [](const HeadDims& dims) {
    return [dims](Shape& shape) {
      shape.head_dim_qk = dims.qk;
      shape.head_dim_v = dims.v;
    };
  };
  std::ranges::stable_sort(candidates, {}, distance);
  words.add_choice(said_head_dims(own), "head dim", change(least));
  using Side = families::Change::Side;
  for (const HeadDims& dims : candidates)
    words.add_value(dims != own, to_text(dims), change(dims),
                    dims.qk + dims.v < own.qk + own.v ? Side::below : Side::above, fills_gap(dims));
}

// What memory holds of K and V; `cleared`: what else of a shape makes no sense beside 16 bits. `may_be_wide`: whether it
// may be those at all.
template <typename Shape, typename Cleared>
void add_cache(families::ProblemWords<Shape>& words, Cleared cleared, bool may_be_wide = true) {
  const CacheType own = words.shape.cache;
  if (own == CacheType::as_queries) return;
  words.add_choice("a cache in " + std::string(families::name_in(cache_types, own)), "a cache in", [=](Shape& shape) {
    shape.cache = CacheType::as_queries;
    cleared(shape);
  });
  for (const auto& [type, name] : cache_types)
    words.add_value(type != own, std::string(name), [type](Shape& shape) { shape.cache = type; });
  words.add_value(may_be_wide, "16 bits", [=](Shape& shape) {
    shape.cache = CacheType::as_queries;
    cleared(shape);
  });
}

// Modifiers that change code; `cleared` takes a shape that has the modifier no more.
template <typename Shape, typename Cleared>
void add_modifiers(families::ProblemWords<Shape>& words, Cleared cleared) {
  for (const ModifierRow& row : modifier_rows)
    words.add(row.in_code && words.shape.has(row.modifier), std::string(row.word), row.word,
              [&row, cleared](Shape& shape) {
                shape.modifiers.set(row.modifier, false);
                cleared(shape, row.modifier);
              });
}

// Masks of a family's own names, from the one that lets most keys be seen on.
template <typename Shape, typename Names, typename Cleared>
void add_mask(families::ProblemWords<Shape>& words, const Names& names, Cleared cleared) {
  using Mask = decltype(Shape::mask);
  const Mask own = words.shape.mask;
  if (own == Mask::none) return;
  const auto change = [cleared](Mask mask) {
    return [mask, cleared](Shape& shape) {
      shape.mask = mask;
      cleared(shape);
    };
  };
  words.add_choice(std::string(families::name_in(names, own)), "mask", change(Mask::none));
  for (const auto& [mask, name] : names)
    words.add_value(mask != own && mask != Mask::none && mask < own, std::string(name), change(mask));
  words.add_value(true, "none", change(Mask::none));
}

}  // namespace wavejit::attention
