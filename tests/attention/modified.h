// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cases with modifiers, and every pipeline of a target run on one of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <format>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "attention/schedules.h"
#include "support/attention_run.h"
#include "support/bits_of.h"
#include "support/normal_numbers.h"

namespace wavejit::tests {

inline std::vector<float> normal_values(Storage storage, std::size_t count, double spread, std::uint64_t seed) {
  NormalNumbers normal(seed);
  std::vector<float> values(count);
  for (float& x : values) x = from_storage(storage, to_storage(storage, normal() * static_cast<float>(spread)));
  return values;
}

inline void add_bias(AttentionCase& which, int batches, int heads, double spread, std::uint64_t seed) {
  AttentionInputs& in = which.inputs;
  in.bias_batches = batches;
  in.bias_heads = heads;
  in.bias = normal_values(which.storage, std::size_t(batches) * heads * in.query_rows() * in.key_length, spread, seed);
}

// Geometric slopes, as people use them; of several batches each its own, a little apart.
inline void add_alibi(AttentionCase& which, int batches) {
  AttentionInputs& in = which.inputs;
  in.alibi.clear();
  for (int b = 0; b < batches; ++b)
    for (int h = 0; h < in.query_heads; ++h)
      in.alibi.push_back(static_cast<float>(std::exp2(-(h + 2.0)) * (1 + 0.37 * b)));
}

inline void add_sink(AttentionCase& which, double center) {
  which.inputs.sink.clear();
  for (int h = 0; h < which.inputs.query_heads; ++h) which.inputs.sink.push_back(static_cast<float>(center + 0.5 * h));
}

// One engine for each pipeline, the generic one first, and one that chooses by itself.
class Pipelines {
 public:
  explicit Pipelines(const std::string& target, wavejit_engine_options options = {}) {
    // Words behind the name of a given pipeline stand behind each name: "auto stagger=off".
    const std::string given = options.pipeline == nullptr ? "" : options.pipeline;
    const std::string words = given.substr(std::min(given.find(' '), given.size()));
    for (const char* pipeline : {"generic", "dualwave", "interleaved", "auto"}) {
      const std::string text = pipeline + words;
      options.pipeline = text.c_str();
      engines_.push_back(std::make_unique<Engine>(target, options));
    }
  }
  Engine& generic() { return *engines_.front(); }
  const std::vector<std::unique_ptr<Engine>>& engines() const { return engines_; }

  // Refused for the pipeline, which the target does not have for such a call, and not for what was asked for.
  static bool not_on_this_target(const AttentionOutput& output) {
    const auto says = [&](const char* text) { return output.detail.contains(text); };
    return output.status == WAVEJIT_UNSUPPORTED &&
           (says("; accepted: auto, generic") || says("; accepted: pipeline=generic") ||
            says(" and pipeline auto or generic"));
  }

  // The case on every pipeline that the target can have under every schedule: the same bits throughout, nothing outside
  // touched. `ran`: gets the names of the kernels.
  AttentionOutput run(const AttentionCase& which, std::set<std::string>* ran = nullptr) const {
    AttentionOutput first;
    std::set<std::string> own;
    std::set<std::string>& kernels = ran == nullptr ? own : *ran;  // each once
    for (const auto& engine : engines_) {
      for (const Schedule& schedule : schedules) {
        set_schedule(schedule.order, schedule.seed);
        const AttentionOutput output = run_attention(engine->get(), which);
        const bool is_first = first.kernel_spec.empty();
        if (not_on_this_target(output)) break;
        EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
        if (output.status != WAVEJIT_OK) return output;
        if (schedule.seed == schedules.front().seed && !kernels.insert(output.kernel_spec).second) break;
        EXPECT_EQ(output.reports, "");
        EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
        if (is_first) {
          first = output;
        } else {
          EXPECT_TRUE(output.o == first.o) << "O differs in " << output.kernel_spec;
          EXPECT_TRUE(bits_of(output.lse) == bits_of(first.lse)) << "LSE differs in " << output.kernel_spec;
        }
      }
    }
    return first;
  }

  // The same, and within the bounds of float64.
  AttentionOutput check(const AttentionCase& which, std::set<std::string>* ran = nullptr) const {
    AttentionOutput output = run(which, ran);
    if (output.status != WAVEJIT_OK) return output;
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
    return output;
  }

 private:
  std::vector<std::unique_ptr<Engine>> engines_;
};

}  // namespace wavejit::tests
