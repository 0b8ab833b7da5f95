// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gradient_problems.h"

#include <algorithm>
#include <cstdint>
#include <format>
#include <iterator>
#include <limits>

#include "attention_backward/backward_run.h"
#include "forward_problems.h"

namespace wavejit::tests {
namespace {

// `lies`: lengths or starts that no answer is defined for.
CallProblem gradients_of(const Arrays& arrays, bool lies = false) {
  return {[arrays, lies](wavejit_engine* engine, bool judges) {
    const BackwardOutput output = run_backward(engine, arrays);
    CallResult result = result_of(output);
    for (const auto* gradient : {&output.dq, &output.dk, &output.dv, &output.d_bias}) append(result.bits, *gradient);
    append(result.bits, bits_of(output.d_sink));
    if (judges && !lies && output.status == WAVEJIT_OK) result.wrong = wrong_gradients(arrays, output);
    return result;
  }};
}
CallProblem gradients(const std::string& words) { return gradients_of(backward_arrays(words)); }

// Cut to what there is of rows and keys.
CallProblem lengths_that_lie(const std::string& type, const std::string& words) {
  Arrays arrays = backward_arrays(type + " b3 q70 k100 h1 k_lengths=100,70,33" + words);
  arrays.key_lengths = {-7, std::numeric_limits<std::int32_t>::max(), 100};
  return gradients_of(arrays, true);
}
// The first is before the first row, the third behind the last, and the fourth comes before it.
CallProblem starts_that_lie(const std::string& type, const std::string& words) {
  Arrays arrays = backward_arrays(type + " b3 q70 k100 h1 layout=packed q_lengths=40,0,70 k_lengths=100,20,5" + words);
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  arrays.query_starts = {-5, 60, most, 20};
  arrays.key_starts = {-5, 100, most, 20};
  return gradients_of(arrays, true);
}
// Other starts than the descriptor's; empty: those.
CallProblem with_starts(const std::string& words, const std::vector<std::int32_t>& query_starts,
                        const std::vector<std::int32_t>& key_starts) {
  Arrays arrays = backward_arrays(words);
  if (!query_starts.empty()) arrays.query_starts = query_starts;
  if (!key_starts.empty()) arrays.key_starts = key_starts;
  return gradients_of(arrays, true);
}
// So few keys that no other sequence stands behind them.
CallProblem length_below_zero(const std::string& words) {
  Arrays arrays = backward_arrays(words);
  arrays.key_lengths = {-7};
  return gradients_of(arrays, true);
}
// A sink of −∞ is none, and LSE of 1,010 rows is −∞, too.
CallProblem sinks_that_are_none() {
  Arrays arrays = backward_arrays("bf16 b1 q1030 k20 h1 d64 causal");
  arrays.sinks = {-std::numeric_limits<float>::infinity()};
  arrays.exact.d_sink = {.values = {0}, .magnitudes = {0}};
  return gradients_of(arrays);
}

}  // namespace

// Rows and keys of one tile and of several, none, more rows than keys, a group, lengths on the device.
std::vector<CallProblem> gradients_under(const std::string& mask, const std::string& dims, const std::string& type) {
  std::vector<CallProblem> all;
  for (const char* words :
       {" b1 q70 k129 h2/1 d_lse", " b3 q140 k190 h2/1 layout=packed q_lengths=40,0,140 k_lengths=190,20,5",
        " b3 q33 k300 h1 k_lengths=300,33,0 d_lse", " b1 q300 k40 h1 delta", " b1 q64 k64 h1 scale=0",
        " b1 q260 k200 h4/2 layout=bhsd"})
    all.push_back(gradients(type + words + dims + mask));
  all.push_back(lengths_that_lie(type, dims + mask));
  all.push_back(starts_that_lie(type, dims + mask));
  return all;
}

std::vector<CallProblem> gradients_and_lies(const std::string& mask, const std::string& dims, const std::string& type) {
  std::vector<CallProblem> all = gradients_under(mask, dims, type);
  std::ranges::move(gradients_of_lies(dims + mask, type), std::back_inserter(all));
  return all;
}

std::vector<CallProblem> gradients_of_lies(const std::string& words, const std::string& type) {
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const auto packed = [&](const std::string& lengths) { return type + lengths + words; };
  return {
      with_starts(packed(" b3 q70 k100 h1 layout=packed q_lengths=40,0,70 k_lengths=100,20,5"), {0, 100, 105, 110},
                  {0, most, most, 20}),
      with_starts(packed(" b2 q140 k64 h1 layout=packed q_lengths=140,10 k_lengths=64,64"), {0, 150, 5}, {}),
      with_starts(packed(" b2 q40 k40 h1 layout=packed q_lengths=40,10 k_lengths=40,40"), {0, 40, most}, {}),
      with_starts(packed(" b2 q30 k50 h1 layout=packed q_lengths=30,30 k_lengths=50,40"), {0, most, 30}, {}),
      with_starts(packed(" b2 q30 k70 h1 layout=packed q_lengths=20,30 k_lengths=20,70"), {-5, 20, 50}, {-5, 20, 90}),
      gradients(packed(" b2 q30 k70 h1 layout=packed q_lengths=20,30 k_lengths=30,70")),
      length_below_zero(packed(" b1 q5 k20 h1 k_lengths=20")),
      gradients(packed(" b1 q5 k20 h4/2")),
  };
}

// A bias of each kind of sharing, rows and keys of one tile and of several, tiles that no row sees.
std::vector<CallProblem> gradients_of_biases(const std::string& type, int keys_of_lane) {
  std::vector<CallProblem> all;
  for (const char* words :
       {" b1 q70 k129 h2/1 d64 causal bias=h d_bias d_lse",
        " b3 q140 k190 h2/1 d64 causal layout=packed q_lengths=40,0,140 k_lengths=190,20,5 bias=h d_bias",
        " b3 q33 k300 h2 d64 causal k_lengths=300,33,0 bias=b d_bias", " b2 q260 k40 h4/2 d64 causal bias=1 d_bias",
        " b1 q64 k64 h1 d64 causal scale=0 bias=h d_bias"})
    all.push_back(gradients(type + words));
  // At the end of a row each element is stored where its key is one: of a lane's neighbours the last that is, in each
  // place of a tile. Two rows: behind the first stands what nobody may write.
  for (int place = 0; place < 64; place += 8)
    for (int last = 1; last < keys_of_lane; ++last)
      all.push_back(gradients(type + std::format(" b1 q2 k{} h1 d64 causal bias=h d_bias", place + last)));
  all.push_back(lengths_that_lie(type, " d64 causal bias=h d_bias"));
  all.push_back(starts_that_lie(type, " d64 causal bias=h d_bias"));
  std::ranges::move(gradients_of_lies(" d64 causal bias=h d_bias", type), std::back_inserter(all));
  return all;
}

// Chains of no row, of one and of several; sequences without rows, rows that see their sink alone.
std::vector<CallProblem> gradients_of_sinks() {
  return {sinks_that_are_none(), gradients("bf16 b2 q70 k90 h6/2 d64 causal d_sink"),
          gradients("bf16 b1 q700 k20 h2 d64 causal d_sink"),
          gradients("bf16 b3 q33 k40 h2 d64 causal layout=packed q_lengths=33,0,7 k_lengths=40,5,0 d_sink")};
}

}  // namespace wavejit::tests
