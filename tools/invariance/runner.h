// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a batch is asked in every dimension: the same for all families. A family's laboratory draws the batch, calls it,
// and compares what its sequences got:
//
//   struct Laboratory {
//     static const std::vector<Dimension>& dimensions();  // each has `told`
//     static std::vector<Change> changes(const Dimension&, const Batch&, Draws&);  // none: nothing to change
//     static Batch draw(const InvarianceRequest&, const Dimension&, wavejit_engine*);
//     static Result<Answers> plain(wavejit_engine*, const Batch&, const Dimension&);
//     static Result<Answers> changed(wavejit_engine*, const Batch&, const Change&);
//     // tell(sequence, descriptor, difference) of each sequence.
//     static void compare(const Batch&, const Dimension&, const Change&, const Answers& before, Answers after, tell);
//   };
//   static const tools::InvarianceOf<Laboratory> only;
//
// `draw` may have a Result; `plain` and `changed` an optional of one, empty where no kernel does it on this engine.
// A laboratory whose dimensions have different batches has `base(dimension)`: what shares a base shares a batch and its
// plain run. A change may have a `pipeline` (EngineWith) and a `schedule` of waves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tools/invariance/draws.h"
#include "tools/invariance/invariance.h"
#include "tools/invariance/scheduled.h"

namespace wavejit::tools {

template <typename Laboratory>
class InvarianceOf final : public Invariance {
 public:
  std::vector<InvarianceDimension> dimensions() const override {
    std::vector<InvarianceDimension> told;
    for (const auto& dimension : Laboratory::dimensions()) told.push_back(dimension.told);
    return told;
  }

  Result<void> run(const InvarianceRequest& request, const EngineWith& engine_with,
                   const std::function<void(Pair)>& tell) const override {
    std::map<int, Base> bases;
    for (const Dimension& dimension : Laboratory::dimensions()) {
      if (std::ranges::find(request.dimensions, dimension.told.name) == request.dimensions.end()) continue;
      const auto engine = engine_with({});
      if (!engine) return std::unexpected(engine.error());
      if (*engine == nullptr) return {};
      Base& base = bases[base_of(dimension)];
      if (!base.batch) {
        auto batch = value_of(Laboratory::draw(request, dimension, *engine));
        if (!batch) return std::unexpected(batch.error());
        base.batch = *std::move(batch);
      }
      if (auto asked = ask(dimension, request, base, engine_with, tell); !asked) return asked;
    }
    return {};
  }

 private:
  using Dimension = std::remove_cvref_t<decltype(Laboratory::dimensions().front())>;
  template <typename Value>
  static Result<Value> value_of(Result<Value> value) {
    return value;
  }
  template <typename Value>
  static Result<Value> value_of(Value value) {
    return value;
  }
  using Batch =
      decltype(value_of(Laboratory::draw(InvarianceRequest{}, std::declval<Dimension>(), nullptr)))::value_type;
  template <typename Value>
  static Result<std::optional<Value>> answer_of(Result<std::optional<Value>> answer) {
    return answer;
  }
  template <typename Value>
  static Result<std::optional<Value>> answer_of(Result<Value> answer) {
    if (!answer) return std::unexpected(std::move(answer.error()));
    return std::optional<Value>(*std::move(answer));
  }
  using Answer = decltype(answer_of(Laboratory::plain(nullptr, std::declval<Batch>(), std::declval<Dimension>())));

  struct Base {
    std::optional<Batch> batch;
    std::optional<Answer> plain;  // what it got as it was drawn; dimensions share it
  };
  static int base_of(const Dimension& dimension) {
    if constexpr (requires { Laboratory::base(dimension); })
      return Laboratory::base(dimension);
    else
      return 0;
  }

  static Result<void> ask(const Dimension& dimension, const InvarianceRequest& request, Base& base,
                          const EngineWith& engine_with, const std::function<void(Pair)>& tell) {
    const Batch& batch = *base.batch;
    const auto failed = [&](const Failure& failure, const std::string& change) {
      return not_compiled(
          failure, {.dimension = dimension.told.name, .batch = request.batch, .descriptor = {}, .change = change},
          tell);
    };
    Draws draws(~request.seed, request.batch);
    const auto changes = Laboratory::changes(dimension, batch, draws);
    if (changes.empty()) return {};
    if (!base.plain) {
      const auto engine = engine_with({});
      if (!engine) return std::unexpected(engine.error());
      base.plain = answer_of(Laboratory::plain(*engine, batch, dimension));
    }
    const Answer& plain = *base.plain;
    if (!plain) return failed(plain.error(), {});
    if (!*plain) return {};
    for (const auto& change : changes) {
      auto after = run_changed(batch, change, engine_with);
      if (!after) {
        if (auto told = failed(after.error(), change.text); !told) return told;
      } else if (*after) {
        const auto tell_sequence = [&](std::int64_t sequence, const std::string& descriptor,
                                       const std::optional<FirstDifference>& difference) {
          tell({.dimension = dimension.told.name,
                .batch = request.batch,
                .sequence = sequence,
                .descriptor = descriptor,
                .change = change.text,
                .difference = difference});
        };
        Laboratory::compare(batch, dimension, change, **plain, std::move(**after), tell_sequence);
      }
    }
    return {};
  }

  template <typename Change>
  static Answer run_changed(const Batch& batch, const Change& change, const EngineWith& engine_with) {
    std::string pipeline;
    if constexpr (requires { change.pipeline; }) pipeline = change.pipeline;
    const auto engine = engine_with(pipeline);
    if (!engine) return std::unexpected(engine.error());
    if (*engine == nullptr) return {};
    if constexpr (requires { change.schedule; }) {
      const Scheduled scheduled(change.schedule);
      return answer_of(Laboratory::changed(*engine, batch, change));
    } else {
      return answer_of(Laboratory::changed(*engine, batch, change));
    }
  }
};

}  // namespace wavejit::tools
