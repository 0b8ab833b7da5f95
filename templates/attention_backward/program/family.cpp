// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_backward as the program's tools know it (tools/family.h): a descriptor → arrays, the call, float64. The
// answer is dq, then dk, then dv, in the order in which their memory has them.
#include <algorithm>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "templates/attention_backward/program/array_call.h"
#include "templates/attention_backward/program/device_call.h"
#include "templates/attention_backward/program/invariance.h"
#include "templates/attention_backward/program/tuning.h"
#include "tools/array_problem.h"
#include "tools/variants/variants.h"

namespace wavejit::attention_backward::program {
namespace {

using namespace tools;

// A row of the answer: dims of all gradients are multiples of it.
constexpr std::size_t columns = 64;

// Which gradient a row of the answer is of, and its first element there.
struct Place {
  const Gradient& of;
  std::size_t first;
};
constexpr std::size_t padded(std::size_t count) { return (count + columns - 1) / columns * columns; }
Place place_of(const Arrays& arrays, std::int64_t row) {
  std::size_t at = static_cast<std::size_t>(row) * columns;
  const bool answers_bias = arrays.d_bias_fp32 == arrays.experiment.output_fp32;
  for (const Gradient* gradient : {&arrays.exact.dq, &arrays.exact.dk, &arrays.exact.dv, &arrays.exact.d_bias}) {
    if (gradient == &arrays.exact.d_bias && !answers_bias) continue;
    if (at < gradient->values.size()) return {*gradient, at};
    at -= padded(gradient->values.size());
  }
  return {arrays.exact.d_sink, at};
}

// The elements after the last number of a row that is not full are never written: NaN.
std::vector<double> part(const std::vector<double>& values, std::size_t first) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<double> row(begin, begin + static_cast<std::ptrdiff_t>(std::min(columns, values.size() - first)));
  row.resize(columns, std::numeric_limits<double>::quiet_NaN());
  return row;
}

std::unique_ptr<Problem> problem_of(Arrays made) {
  ArrayProblem problem;
  problem.text = made.experiment.text;
  const std::size_t query_elements = made.q.size();
  const std::size_t key_elements = made.k.size();
  const std::size_t value_elements = made.v.size();
  PointedInputs<DevicePointers> inputs;
  inputs.take(problem, &DevicePointers::q, made.q);
  inputs.take(problem, &DevicePointers::k, made.k);
  inputs.take(problem, &DevicePointers::v, made.v);
  if (made.o_fp32.empty()) {
    inputs.take(problem, &DevicePointers::o, made.o);
  } else {
    made.o = {};
    inputs.add(problem, &DevicePointers::o, made.o_fp32);
  }
  inputs.take(problem, &DevicePointers::d_o, made.d_o);
  inputs.take(problem, &DevicePointers::lse, made.lse);
  const auto arrays = std::make_shared<const Arrays>(std::move(made));
  inputs.add(problem, &DevicePointers::d_lse, arrays->d_lse);
  inputs.add(problem, &DevicePointers::slopes, arrays->slopes);
  inputs.add(problem, &DevicePointers::query_starts, arrays->query_starts);
  inputs.add(problem, &DevicePointers::key_starts, arrays->key_starts);
  inputs.add(problem, &DevicePointers::key_lengths, arrays->key_lengths);
  inputs.add(problem, &DevicePointers::delta, arrays->delta);
  inputs.add(problem, &DevicePointers::sinks, arrays->sinks);
  problem.columns = columns;
  // An answer has one type. The gradient of sinks is f32, that of a bias what is asked for: beside others of the same
  // type they stand in the answer, else in memory that nobody checks.
  const std::size_t sinks = arrays->sinks.size() * static_cast<std::size_t>(arrays->experiment.batch);
  const std::size_t biases = arrays->with_d_bias ? arrays->bias.size() : 0;
  const bool answers_sinks = arrays->experiment.output_fp32;
  const bool answers_bias = arrays->d_bias_fp32 == arrays->experiment.output_fp32;
  inputs.add(problem, &DevicePointers::d_sink, std::vector<float>(sinks));
  inputs.add(problem, &DevicePointers::d_bias, std::vector<float>(biases));
  if (!arrays->bias.empty()) inputs.add(problem, &DevicePointers::bias, bias_bytes(*arrays));
  const std::size_t bias_at = query_elements + key_elements + value_elements;
  const std::size_t sinks_at = bias_at + (answers_bias ? padded(biases) : 0);
  problem.rows = static_cast<std::int64_t>((sinks_at + (answers_sinks ? padded(sinks) : 0)) / columns);
  if (!arrays->experiment.output_fp32) problem.type = arrays->experiment.type;
  // Where sums of calls before are given, gradients begin at them; what else stands in the answer is not written yet.
  std::size_t first = 0;
  for (const auto& [before, elements] : {std::pair{&arrays->dq_before, query_elements},
                                         {&arrays->dk_before, key_elements},
                                         {&arrays->dv_before, value_elements}}) {
    if (!before->empty()) problem.before.emplace_back(first * sizeof(float), bytes_of(*before));
    first += elements;
  }
  const auto call_with = [=](std::span<void* const> given, void* output) {
    DevicePointers memory = inputs.at(given);
    const std::size_t bytes = arrays->experiment.output_bytes();
    auto* gradients = static_cast<std::byte*>(output);
    memory.dq = gradients;
    memory.dk = gradients + (query_elements * bytes);
    memory.dv = gradients + ((query_elements + key_elements) * bytes);
    if (sinks != 0 && answers_sinks) memory.d_sink = gradients + (sinks_at * bytes);
    if (biases != 0 && answers_bias) memory.d_bias = gradients + (bias_at * bytes);
    return call_of(*arrays, memory);
  };
  set_call(problem, call_with, wavejit_attention_backward);
  // The exact gradients, computed when somebody first asks, on any thread: profiles never do.
  const auto exact =
      std::async(std::launch::deferred, [text = arrays->experiment.text] { return *make_arrays(text); }).share();
  problem.exact = [exact](std::int64_t row) {
    const auto [of, first] = place_of(exact.get(), row);
    return part(of.values, first);
  };
  problem.bounds = [exact](std::int64_t row) {
    const auto [of, first] = place_of(exact.get(), row);
    std::vector<double> bounds = bounds_of(exact.get(), of, first, std::min(columns, of.values.size() - first));
    bounds.resize(columns);
    return bounds;
  };
  return make_problem(std::move(problem));
}

constexpr tools::Variant variant_row[] = {
    {.name = "backward",
     .title = "Backward",
     .meaning = "Gradients of Q, K and V, without atomic additions: batch and packing show in no bit of a sequence's.",
     .descriptor = "attention_backward {type} b1 q256 k256 h8/2 d{dim} causal",
     .peers = {"no", "yes"}}};

class AttentionBackward : public Family {
 public:
  std::string_view name() const override { return "attention_backward"; }
  std::span<const tools::Variant> variant_rows() const override { return variant_row; }
  std::string_view grammar() const override {
    return "attention_backward <fp16|bf16> b<batch> q<rows> k<keys> h<heads>[/<kv heads>] d<64|128|192/128|256> "
           "[causal[=<prefix>]] [window=<left>,<right>] [layout=<bshd|bhsd|packed>] [q_lengths=<n,…>] "
           "[k_lengths=<n,…>] [scale=<x>] [bias=<bh|b|h|1>] [bias_type=fp32] [alibi=<h|bh>] [softcap=<x>] [d_lse] "
           "[d_sink] [d_bias[=fp32]] [delta] [o=fp32] [gradients=fp32] [sums_before=<dq|dk_dv|dq,dk_dv>] "
           "[sums_behind=<dq|dk_dv|dq,dk_dv>] [seed=<n>]";
  }
  std::vector<std::string> run_examples() const override {
    return {
        "attention_backward --q q.npy --k k.npy --v v.npy --o o.npy --lse lse.npy --do do.npy --causal --dq dq.npy "
        "--dk dk.npy --dv dv.npy --check"};
  }
  std::string_view example() const override { return "attention_backward bf16 b1 q512 k512 h4/2 d128 causal"; }
  std::vector<std::string> listed() const override {
    return {"attention_backward bf16 b1 q70 k129 h2/1 d64 d_lse",
            "attention_backward fp16 b2 q130 k65 h2 d128 causal",
            "attention_backward bf16 b1 q257 k190 h4/2 d128 causal layout=bhsd gradients=fp32",
            "attention_backward fp16 b3 q100 k200 h2/1 d64 causal layout=packed q_lengths=100,1,33 k_lengths=200,0,40",
            "attention_backward bf16 b2 q150 k300 h2 d128 window=60,20 k_lengths=300,77",
            "attention_backward bf16 b1 q96 k96 h2/1 d64 causal scale=-0.1 alibi=h softcap=20",
            "attention_backward fp16 b2 q70 k90 h2 d64 causal d_sink gradients=fp32 o=fp32",
            "attention_backward bf16 b2 q70 k90 h4/2 d64 causal bias=h d_bias"};
  }

  Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const override {
    return lazy_problem(parse_problem(descriptor),
                        [](const std::string& text) { return problem_of(*make_arrays(text, false)); });
  }
  // Both kernels, one tile and several, every modifier.
  std::vector<std::string> examined() const override {
    return {"attention_backward bf16 b1 q40 k70 h2/1 d64 causal d_lse",
            "attention_backward fp16 b2 q70 k130 h4/2 d128 window=60,20 alibi=h softcap=20 gradients=fp32",
            "attention_backward bf16 b3 q100 k200 h2/1 d128 causal layout=packed q_lengths=100,1,33 k_lengths=200,0,40",
            "attention_backward bf16 b1 q150 k20 h256/1 d64 causal"};
  }
  std::vector<std::string> examined_for_time() const override {
    return {"attention_backward bf16 b4 q4096 k4096 h32/8 d128",
            "attention_backward bf16 b4 q4096 k4096 h32/8 d128 causal",
            "attention_backward bf16 b1 q8192 k8192 h64/8 d128"};
  }
  std::unique_ptr<ArrayCall> make_call() const override { return make_array_call(); }
  const Tuning* tuning() const override { return &gradient_tuning(); }
  const Invariance* invariance() const override { return &gradient_invariance(); }
};

}  // namespace

const tools::Family& family() { return tools::only<AttentionBackward>(); }

}  // namespace wavejit::attention_backward::program
