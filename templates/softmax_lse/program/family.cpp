// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// softmax_lse as the program's tools know it (tools/family.h): a descriptor → scores, the call, float64. A row of the
// answer is a row of weights; of a call that writes none, its LSE.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "templates/attention/call/data_type.h"
#include "templates/attention/program/experiment.h"
#include "templates/attention/program/score_rules.h"
#include "templates/softmax_lse/call/descriptor.h"
#include "templates/softmax_lse/program/array_call.h"
#include "templates/softmax_lse/program/reference.h"
#include "tools/array_problem.h"
#include "tools/canonical_line.h"
#include "tools/empty_call.h"
#include "tools/stored_numbers.h"
#include "tools/variants/variants.h"

namespace wavejit::softmax_lse::program {
namespace {

using namespace tools;
using attention::program::rules_of;
using attention::program::visible_keys;
using attention::program::VisibleKeys;
using tools::bytes_of;
using tools::Result;

// What a descriptor says, as arrays and calls take it.
struct Said {
  std::string text;
  std::int32_t scores = WAVEJIT_FP32;
  std::int32_t weights = WAVEJIT_FP32;  // WAVEJIT_DTYPE_NONE: none are written
  bool unaligned = false;
  bool lse = false;
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  wavejit_masking mask;
  std::vector<std::int32_t> lengths;  // empty: all keys count
  float scale = 1;
  std::uint64_t seed = 1;
};

Said said_of(const ProblemDescriptor& from, std::string text) {
  return {.text = std::move(text),
          .scores = attention::told_type(from.scores),
          .weights = from.weights ? attention::told_type(*from.weights) : std::int32_t{WAVEJIT_DTYPE_NONE},
          .unaligned = from.unaligned,
          .lse = from.lse,
          .batch = from.batch,
          .heads = from.heads,
          .rows = from.query_length,
          .keys = from.key_length,
          .mask = attention::masking_of(from.mask),
          .lengths = {from.key_lengths.begin(), from.key_lengths.end()},
          .scale = attention::program::number_in(from.scale, 1.0F),
          .seed = attention::program::number_in(from.seed, std::uint64_t{1})};
}

// Unaligned tensors begin an element behind the memory's start.
constexpr std::int64_t shifted(const Said& said) { return said.unaligned ? 1 : 0; }

wavejit_tensor dense(void* data, std::int32_t type, const Said& said, std::int64_t last) {
  return wavejit_dense_tensor(data, static_cast<wavejit_dtype>(type), said.batch, said.heads, said.rows, last);
}

// The keys that a row of a batch sees, by the definition in wavejit.h.
VisibleKeys seen(const Said& said, std::int64_t batch, std::int64_t row) {
  const std::int64_t keys = said.lengths.empty() ? said.keys : said.lengths[static_cast<std::size_t>(batch)];
  return visible_keys(rules_of(said.mask, said.rows, keys), row, keys);
}

wavejit_softmax_lse_arguments call_of(const Said& said, std::span<void* const> inputs, void* output) {
  const bool has_weights = said.weights != WAVEJIT_DTYPE_NONE;
  const std::int64_t bytes = said.scores == WAVEJIT_FP32 ? 4 : 2;
  auto call = tools::empty_call<wavejit_softmax_lse_arguments>(WAVEJIT_SOFTMAX_LSE);
  call.scores = dense(static_cast<char*>(inputs[0]) + (shifted(said) * bytes), said.scores, said, said.keys);
  if (has_weights) call.weights = dense(output, said.weights, said, said.keys);
  if (said.lse) call.lse = dense(has_weights ? inputs.back() : output, WAVEJIT_FP32, said, 1);
  if (!said.lengths.empty()) call.key_lengths = static_cast<const std::int32_t*>(inputs[1]);
  call.scale = said.scale;
  if (said.scale == 0) call.head.flags = WAVEJIT_SCALE_IS_ZERO;
  call.mask = said.mask;
  return call;
}

ArrayProblem problem_of(Said from) {
  const auto said = std::make_shared<const Said>(std::move(from));

  // A spread of eight powers of two and more: rows with one great key, and rows with many.
  auto values = std::make_shared<std::vector<float>>(
      seeded_values(said->seed, static_cast<std::size_t>(said->batch * said->heads * said->rows * said->keys)));
  std::vector<std::uint16_t> halves(static_cast<std::size_t>(shifted(*said)));
  const auto type = half_of(said->scores);
  for (float& value : *values) {
    value *= 6;
    if (!type) continue;
    halves.push_back(encode(*type, static_cast<double>(value)));
    value = decode(*type, halves.back());
  }

  ArrayProblem problem;
  problem.text = said->text;
  problem.inputs = {type ? bytes_of(halves) : bytes_of(*values)};
  if (!said->lengths.empty()) problem.inputs.push_back(bytes_of(said->lengths));
  // What is not compared is written all the same.
  const bool has_weights = said->weights != WAVEJIT_DTYPE_NONE;
  const std::size_t all_rows = static_cast<std::size_t>(said->batch * said->heads * said->rows);
  if (said->lse && has_weights) problem.inputs.push_back(bytes_of(std::vector<float>(all_rows)));
  problem.rows = static_cast<std::int64_t>(all_rows);
  problem.columns = has_weights ? said->keys : 1;
  problem.type = half_of(said->weights);
  set_call(
      problem, [said](std::span<void* const> inputs, void* output) { return call_of(*said, inputs, output); },
      wavejit_softmax_lse);
  problem.exact = [said, values, has_weights](std::int64_t row) {
    const auto [begin, end] = seen(*said, row / (said->heads * said->rows), row % said->rows);
    const auto keys = static_cast<std::size_t>(said->keys);
    ExactRow exact = exact_row(std::span(*values).subspan(static_cast<std::size_t>(row) * keys, keys),
                               static_cast<double>(said->scale), begin, end);
    return has_weights ? std::move(exact.weights) : std::vector<double>{exact.log_sum_exp};
  };
  // A weight is at most 1; f32 statistics cost a few of its last bits, the type of the weights half of its own.
  constexpr double of_statistics = 4e-6;
  problem.allowed = of_statistics + (said->weights == WAVEJIT_BF16   ? 1.0 / 256
                                     : said->weights == WAVEJIT_FP16 ? 1.0 / 2048
                                                                     : 0);
  if (!has_weights) problem.allowed = 2e-5;  // LSE of up to about 16
  return problem;
}

constexpr tools::Variant variant_row[] = {
    {.name = "softmax",
     .title = "Softmax with its LSE",
     .meaning = "From raw scores to weights and log-sum-exp, rows of any length, in attention's arithmetic.",
     .descriptor = "softmax_lse {type} b1 h32 q128 k4096 causal lse",
     .question = "Do you have scores already, and want weights or their log-sum-exp?",
     .peers = {"softmax without masks", "softmax without masks"}}};

class SoftmaxLse : public Family {
 public:
  std::string_view name() const override { return "softmax_lse"; }
  std::span<const tools::Variant> variant_rows() const override { return variant_row; }
  std::string_view grammar() const override {
    return "softmax_lse <fp32|fp16|bf16> b<batch> h<heads> q<rows> k<keys> [weights=<fp32|fp16|bf16|none>] "
           "[causal[=<prefix>]] [window=<left>,<right>] [lse] [k_lengths=<n,…>] [scale=<x>] [unaligned] [seed=<n>]";
  }
  std::string_view example() const override { return "softmax_lse bf16 b1 h8 q128 k2048 causal lse"; }
  std::vector<std::string> run_examples() const override {
    return {"softmax_lse --scores s.npy --out weights.npy --lse lse.npy --device sim:gfx950 --check",
            "softmax_lse --scores s.npy --lse lse.npy --dtype bf16 --causal --scale 0.125"};
  }
  std::unique_ptr<ArrayCall> make_call() const override { return make_array_call(); }
  std::vector<std::string> listed() const override {
    return {"softmax_lse fp32 b2 h3 q5 k65 lse",
            "softmax_lse bf16 b1 h2 q70 k1026 weights=fp32 causal",
            "softmax_lse fp16 b2 h1 q9 k1025 window=700,3 k_lengths=1025,300",
            "softmax_lse fp32 b1 h1 q3 k9000 weights=bf16",
            "softmax_lse bf16 b3 h2 q1 k5000 weights=none lse scale=-0.5",
            "softmax_lse fp16 b1 h1 q4 k640 weights=bf16 unaligned"};
  }

  Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const override {
    return parsed_problem(descriptor, parse_descriptor, said_of, problem_of);
  }
};

}  // namespace

const tools::Family& family() { return tools::only<SoftmaxLse>(); }

}  // namespace wavejit::softmax_lse::program
