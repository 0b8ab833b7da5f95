// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/invariance.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>
#include <utility>

#include "templates/attention_backward/program/invariance_call.h"
#include "templates/attention_backward/program/invariance_changes.h"
#include "tools/invariance/runner.h"

namespace wavejit::attention_backward::program {
namespace {

using tools::FirstDifference;
using tools::InvarianceRequest;
using tools::Result;

// to[i] += from[i] for all that both have, or that `from` alone has.
void add(const Batch& batch, std::vector<float>& to, const std::vector<std::uint32_t>& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] += number_of(batch, from[i]);
}

// A caller's own sums of dk and dv, key by key, and of d_sink, in f32.
struct Sums {
  std::vector<float> dk;
  std::vector<float> dv;
  std::vector<float> d_sink;

  void add(const Batch& batch, const Answer& answer) {
    program::add(batch, dk, answer.dk);
    program::add(batch, dv, answer.dv);
    d_sink.resize(answer.d_sink.size());
    for (std::size_t head = 0; head < d_sink.size(); ++head) d_sink[head] += std::bit_cast<float>(answer.d_sink[head]);
  }
};

// What all sequences got, from pieces that stand in each one's order.
class Gathered {
 public:
  Gathered(const Batch& batch, Compared compared) : batch_(batch), compared_(compared) {
    pieces_.resize(batch.sequences.size());
  }
  void take(std::span<const RowsOf> pieces, const std::vector<Answer>& answers) {
    for (std::size_t i = 0; i < pieces.size(); ++i) pieces_[pieces[i].sequence].push_back(answers[i]);
  }
  bool has(std::size_t sequence) const { return !pieces_[sequence].empty(); }

  // Sequences ascend: sums grow.
  Answer of(std::size_t sequence) {
    Answer answer;
    for (const Answer& piece : pieces_[sequence]) answer.dq.insert(answer.dq.end(), piece.dq.begin(), piece.dq.end());
    if (compared_ == Compared::queries) return answer;
    if (compared_ == Compared::added_pieces) {
      Sums of_pieces;
      for (const Answer& piece : pieces_[sequence]) of_pieces.add(batch_, piece);
      return {.dq = {}, .dk = bits(of_pieces.dk, false), .dv = bits(of_pieces.dv, false)};
    }
    answer.dk = pieces_[sequence].front().dk;
    answer.dv = pieces_[sequence].front().dv;
    if (compared_ == Compared::rows_and_keys) return answer;
    answer.d_sink = pieces_[sequence].front().d_sink;
    if (compared_ == Compared::gradients) return answer;
    sums_.add(batch_, answer);
    return {.dq = {}, .dk = bits(sums_.dk, true), .dv = bits(sums_.dv, true), .d_sink = bits(sums_.d_sink, true)};
  }

 private:
  std::vector<std::uint32_t> bits(const std::vector<float>& numbers, bool as_fp32) const {
    std::vector<std::uint32_t> all;
    all.reserve(numbers.size());
    for (const float number : numbers)
      all.push_back(as_fp32 ? std::bit_cast<std::uint32_t>(number) : bits_of(batch_, number));
    return all;
  }

  const Batch& batch_;
  Compared compared_;
  std::vector<std::vector<Answer>> pieces_;  // of each sequence
  Sums sums_;
};

std::optional<FirstDifference> first_difference(const Batch& batch, const Answer& before, const Answer& after,
                                                bool sums) {
  const attention::program::Experiment& of = batch.arrays.experiment;
  const auto number = [&](std::uint32_t bits) {
    return static_cast<double>(sums ? std::bit_cast<float>(bits) : number_of(batch, bits));
  };
  for (const auto& [tensor, gradient, heads, dims] : {std::tuple{"dq", &Answer::dq, of.query_heads, of.head_dim_qk},
                                                      {"dk", &Answer::dk, of.kv_heads, of.head_dim_qk},
                                                      {"dv", &Answer::dv, of.kv_heads, of.head_dim_v}}) {
    const auto [one, other] = std::ranges::mismatch(before.*gradient, after.*gradient);
    const auto end = (before.*gradient).end();
    const auto other_end = (after.*gradient).end();
    if (one == end && other == other_end) continue;
    const std::int64_t at = one - (before.*gradient).begin();
    FirstDifference first = {.tensor = tensor, .token = at / dims / heads, .head = at / dims % heads, .dim = at % dims};
    if (one != end) first.before = number(*one);
    if (other != other_end) first.after = number(*other);
    return first;
  }
  const auto [one, other] = std::ranges::mismatch(before.d_sink, after.d_sink);
  if (one == before.d_sink.end()) return std::nullopt;
  return FirstDifference{.tensor = "d_sink",
                         .head = one - before.d_sink.begin(),
                         .before = static_cast<double>(std::bit_cast<float>(*one)),
                         .after = static_cast<double>(std::bit_cast<float>(*other))};
}

struct Laboratory {
  static const std::vector<Dimension>& dimensions() { return all_dimensions(); }
  static int base(const Dimension& dimension) { return dimension.of_runs ? 1 : 0; }
  static Result<Batch> draw(const InvarianceRequest& request, const Dimension& dimension, wavejit_engine* /*engine*/) {
    return dimension.of_runs ? draw_batch_of_runs(request) : draw_batch(request);
  }
  // Each call's answers; nothing: no kernel does it on this engine.
  using Answers = std::vector<std::vector<Answer>>;
  static Change unchanged(const Batch& batch, const Dimension& /*dimension*/) {
    return {.text = {}, .calls = {all_whole(batch)}};  // one packed call
  }
  static Result<std::optional<Answers>> changed(wavejit_engine* engine, const Batch& batch, const Change& change) {
    Answers all;
    for (std::size_t call = 0; call < change.key_ends.size(); ++call) {
      auto answer = run_in_ring(engine, batch, change.calls[call].front(), change.key_ends[call]);
      if (!answer) return std::unexpected(answer.error());
      if (!*answer) return std::optional<Answers>();
      all.push_back({std::move(**answer)});
    }
    for (std::size_t call = 0; call < change.row_ends.size(); ++call) {
      auto answer = run_in_runs(engine, batch, change.calls[call].front(), change.row_ends[call]);
      if (!answer) return std::unexpected(answer.error());
      if (!*answer) return std::optional<Answers>();
      all.push_back({std::move(**answer)});
    }
    if (!all.empty()) return all;
    for (const std::vector<RowsOf>& pieces : change.calls) {
      auto answers = run_pieces(engine, batch, pieces, change.placing);
      if (!answers) return std::unexpected(answers.error());
      if (!*answers) return std::optional<Answers>();
      all.push_back(std::move(**answers));
    }
    return all;
  }
  static void compare(const Batch& batch, const Dimension& dimension, const Change& change, const Answers& before,
                      const Answers& after, const auto& tell) {
    const bool sums = dimension.compared == Compared::sums;
    Gathered whole(batch, dimension.compared);
    Gathered changed(batch, dimension.compared);
    whole.take(all_whole(batch), before.front());
    for (std::size_t call = 0; call < change.calls.size(); ++call) changed.take(change.calls[call], after[call]);
    for (std::size_t sequence = 0; sequence < batch.sequences.size(); ++sequence)
      if (changed.has(sequence))
        tell(static_cast<std::int64_t>(sequence), batch.descriptor(batch.sequences[sequence]),
             first_difference(batch, whole.of(sequence), changed.of(sequence), sums));
  }
};

}  // namespace

const tools::Invariance& gradient_invariance() { return tools::only<tools::InvarianceOf<Laboratory>>(); }

}  // namespace wavejit::attention_backward::program
