// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "decode_step.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "attention.h"
#include "clock.h"
#include "rank.h"

namespace serving {

namespace {

// Rows of the step and of the cache, one after the other.
struct Inputs {
  std::vector<Half> query;   // [query heads, head dim]
  std::vector<Half> keys;    // [keys, kv heads, head dim]
  std::vector<Half> values;  // the same
};

Inputs make_inputs(const HeadShape& heads, std::uint64_t seed) {
  std::mt19937_64 numbers(seed);
  const auto rows = [&](int count, int of_heads) {
    std::vector<Half> all(static_cast<std::size_t>(count) * of_heads * heads.head_dim);
    for (Half& one : all) one = to_half(static_cast<float>(numbers() % 65) / 32.0F - 1.0F);
    return all;
  };
  Inputs inputs;
  inputs.query = rows(1, heads.query_heads);
  for (Half& one : inputs.query) one = to_half(8 * from_half(one));  // some keys matter more than others
  inputs.keys = rows(heads.longest, heads.kv_heads);
  inputs.values = rows(heads.longest, heads.kv_heads);
  return inputs;
}

std::vector<double> reference_of(const HeadShape& heads, const Inputs& inputs) {
  const auto dims = static_cast<std::size_t>(heads.head_dim);
  std::vector<double> answer;
  for (int head = 0; head < heads.query_heads; ++head) {
    const int kv_head = head / (heads.query_heads / heads.kv_heads);
    const auto row_of = [&](const std::vector<Half>& rows, int key) {
      return rows.data() + (static_cast<std::size_t>(key) * heads.kv_heads + kv_head) * dims;
    };
    std::vector<double> weights;
    for (int key = 0; key < heads.longest; ++key) {
      const Half* row = row_of(inputs.keys, key);
      double score = 0;
      for (std::size_t i = 0; i < dims; ++i)
        score += static_cast<double>(from_half(inputs.query[head * dims + i])) * from_half(row[i]);
      weights.push_back(score / std::sqrt(static_cast<double>(dims)));
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    std::vector<double> output(dims, 0.0);
    for (int key = 0; key < heads.longest; ++key)
      for (std::size_t i = 0; i < dims; ++i) output[i] += weights[key] * from_half(row_of(inputs.values, key)[i]);
    for (const double one : output) answer.push_back(one / sum);
  }
  return answer;
}

struct Step {
  std::vector<Half> answer;
  std::vector<TimedLaunch> launches;
  std::string kernel;

  std::uint64_t cycles() const {
    std::uint64_t sum = 0;
    for (const TimedLaunch& launch : launches) sum += launch.wait + launch.cycles;
    return sum;
  }
};

Step run_step(const Options& options, const HeadShape& heads, const Inputs& inputs, const char* pipeline, int flags) {
  wavejit::EngineOptions engine_options;
  engine_options.device = "sim:" + options.target;
  engine_options.cache_directory = options.cache_directory;
  engine_options.pipeline = pipeline;
  wavejit::Engine engine(engine_options);
  Attention attention(engine, heads, {.slots = 1, .tokens_per_step = 1, .pages = pages_of(heads.longest)});

  // All keys but the last are there already; their pages lie anywhere.
  std::vector<Sequence> sequences(1);
  for (int page = 0; page < pages_of(heads.longest); ++page) sequences[0].pages.push_back(page);
  std::shuffle(sequences[0].pages.begin(), sequences[0].pages.end(), std::mt19937_64(options.seed));
  const auto last = static_cast<std::ptrdiff_t>(heads.longest - 1) * heads.kv_heads * heads.head_dim;
  attention.begin_step({{.count = heads.longest - 1}}, sequences);
  attention.fill(0, {inputs.keys.begin(), inputs.keys.begin() + last},
                 {inputs.values.begin(), inputs.values.begin() + last});

  attention.begin_step({{.first = heads.longest - 1, .count = 1}}, sequences);
  wavejit_call_report report = wavejit::make_report();
  attention.observe(flags, &report);
  const SimulatedClock clock;
  Step step;
  step.answer = attention.attend(0, inputs.query, {inputs.keys.begin() + last, inputs.keys.end()},
                                 {inputs.values.begin() + last, inputs.values.end()});
  step.launches = clock.take();
  step.kernel = report.kernel_spec;
  return step;
}

// The waves that share a chunk of keys, as the kernel's own text has it.
std::string waves_of(const std::string& kernel) {
  const std::string word = "chunk_waves=";
  const std::size_t at = kernel.find(word);
  if (at == std::string::npos) return "1";
  const std::size_t from = at + word.size();
  return kernel.substr(from, kernel.find(' ', from) - from);
}

void print(const char* name, const Step& step) {
  std::printf("  %-24s %8s %9zu %9llu  ", name, waves_of(step.kernel).c_str(), step.launches.size(),
              static_cast<unsigned long long>(step.cycles()));
  for (std::size_t i = 0; i < step.launches.size(); ++i) {
    const TimedLaunch& launch = step.launches[i];
    if (i > 0) std::printf(" + %llu waiting + ", static_cast<unsigned long long>(launch.wait));
    std::printf("%llu", static_cast<unsigned long long>(launch.cycles));
  }
  std::printf("\n");
}

}  // namespace

int report_decode_step(const Options& options, const ModelShape& shape) {
  HeadShape heads = heads_of_a_rank(shape, options.ranks);
  heads.layers = 1;
  heads.longest = options.decode_step;
  const Inputs inputs = make_inputs(heads, options.seed);
  // A pinned pipeline has one wave a chunk.
  const Step plain = run_step(options, heads, inputs, "generic", WAVEJIT_TWO_LAUNCHES);
  const Step planned = run_step(options, heads, inputs, "auto", 0);

  const std::vector<double> expected = reference_of(heads, inputs);
  double largest = 0;
  double largest_error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    largest_error = std::max(largest_error, std::fabs(from_half(planned.answer[i]) - expected[i]));
  }
  const bool right = largest_error <= largest / 256;  // weights and answers are rounded to 11 bits
  const bool same = plain.answer == planned.answer;

  std::printf("a decode step: one sequence of %d keys, %d heads over %d, predicted by the clock of a simulated %s\n\n",
              heads.longest, heads.query_heads, heads.kv_heads, options.target.c_str());
  std::printf("  %-24s %8s %9s %9s  launches\n", "", "waves", "launches", "cycles");
  print("one wave, two launches", plain);
  print("as wavejit plans it", planned);
  std::printf("\n  %.2f times the cycles; %s bits; largest error %.1e of %.1e beside float64%s\n",
              static_cast<double>(planned.cycles()) / static_cast<double>(plain.cycles()), same ? "the same" : "OTHER",
              largest_error, largest, right ? "" : ", TOO MUCH");
  return right && same ? 0 : 1;
}

}  // namespace serving
