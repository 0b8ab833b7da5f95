// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a batch is asked in every dimension: the same for all families. A family's laboratory draws the batch, calls it,
// and compares what its sequences got:
//
//   struct Laboratory {
//     static const std::vector<Dimension>& dimensions();  // DimensionOf<Batch, Change>, or what has `told` and more
//     static Batch draw(const InvarianceRequest&, const Dimension&, wavejit_engine*);  // without what it does not look at
//     static Change unchanged(const Batch&, const Dimension&);  // the run that others are held against; likewise
//     static Result<Answers> changed(wavejit_engine*, const Batch&, const Change&);
//     // One answer a token: where two answers to it part, and what the batch is called (Batch::descriptor()).
//     static std::optional<FirstDifference> difference(const Batch&, const Answer& before, const Answer& after,
//                                                      std::int64_t token);
//   };
//   tools::only<tools::InvarianceOf<Laboratory>>()
//
// `draw` may have a Result; `changed` an optional of one, empty where no kernel does it on this engine. In the place of
// `difference` a laboratory may have `compare`, which tells of each sequence itself:
//
//     static void compare(const Batch&, const Dimension&, const Change&, const Answers& before, const Answers& after, tell);
//     … tell(sequence, descriptor, difference);
//
// A laboratory whose dimensions do not all ask `dimension.changes` has `changes(dimension, batch, draws)`. One whose
// dimensions have different batches has `base(dimension)`: what shares a base shares a batch and its unchanged run. A
// change may have a `pipeline` (EngineWith) and a `schedule` of waves. Each of these may be a reference to a function:
// `static constexpr auto& draw = draw_batch;`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tools/family.h"
#include "tools/invariance/draws.h"
#include "tools/invariance/invariance.h"
#include "tools/invariance/scheduled.h"

namespace wavejit::tools {

// `Changes`: several, one, or an optional one. None: the batch has nothing to change.
template <typename Batch, typename Change, typename Changes = std::vector<Change>>
struct DimensionOf {
  InvarianceDimension told;
  Changes (*changes)(const Batch& batch, Draws& draws) = nullptr;
};

template <typename Laboratory, typename Dimension>
auto drawn_by(const InvarianceRequest& request, const Dimension& dimension, wavejit_engine* engine) {
  if constexpr (requires { Laboratory::draw(request); })
    return Laboratory::draw(request);
  else if constexpr (requires { Laboratory::draw(request, engine); })
    return Laboratory::draw(request, engine);
  else
    return Laboratory::draw(request, dimension, engine);
}
template <typename Laboratory, typename Batch, typename Dimension>
auto unchanged_by(const Batch& batch, const Dimension& dimension) {
  if constexpr (requires { Laboratory::unchanged(batch); })
    return Laboratory::unchanged(batch);
  else
    return Laboratory::unchanged(batch, dimension);
}

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
        auto batch = value_of(drawn_by<Laboratory>(request, dimension, *engine));
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
      decltype(value_of(drawn_by<Laboratory>(InvarianceRequest{}, std::declval<Dimension>(), nullptr)))::value_type;
  template <typename Value>
  static Result<std::optional<Value>> answer_of(Result<std::optional<Value>> answer) {
    return answer;
  }
  template <typename Value>
  static Result<std::optional<Value>> answer_of(Result<Value> answer) {
    if (!answer) return std::unexpected(std::move(answer.error()));
    return std::optional<Value>(*std::move(answer));
  }
  using Change = decltype(unchanged_by<Laboratory>(std::declval<Batch>(), std::declval<Dimension>()));
  using Answer = decltype(answer_of(Laboratory::changed(nullptr, std::declval<Batch>(), std::declval<Change>())));

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
    const std::vector<Change> changes = changes_of(dimension, batch, draws);
    if (changes.empty()) return {};
    if (!base.plain) {
      const auto engine = engine_with({});
      if (!engine) return std::unexpected(engine.error());
      base.plain = answer_of(Laboratory::changed(*engine, batch, unchanged_by<Laboratory>(batch, dimension)));
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
        compare(batch, dimension, change, **plain, **after, tell_sequence);
      }
    }
    return {};
  }

  static std::vector<Change> changes_of(const Dimension& dimension, const Batch& batch, Draws& draws) {
    if constexpr (requires { Laboratory::changes(dimension, batch, draws); })
      return Laboratory::changes(dimension, batch, draws);
    else
      return all_of(dimension.changes(batch, draws));
  }
  static std::vector<Change> all_of(std::vector<Change> changes) { return changes; }
  static std::vector<Change> all_of(std::optional<Change> change) {
    std::vector<Change> changes;
    if (change) changes.push_back(*std::move(change));
    return changes;
  }

  template <typename Answers, typename Tell>
  static void compare(const Batch& batch, const Dimension& dimension, const Change& change, const Answers& before,
                      const Answers& after, const Tell& tell) {
    if constexpr (requires { Laboratory::compare(batch, dimension, change, before, after, tell); }) {
      Laboratory::compare(batch, dimension, change, before, after, tell);
    } else {
      for (std::size_t at = 0; at < before.size(); ++at) {
        const auto token = static_cast<std::int64_t>(at);
        tell(token, batch.descriptor(), Laboratory::difference(batch, before[at], after[at], token));
      }
    }
  }

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
