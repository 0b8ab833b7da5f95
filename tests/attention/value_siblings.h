// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that must have a row's bits: other ways to say what it says, by its words.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <format>
#include <vector>

#include "attention/alone.h"
#include "attention/modified.h"
#include "attention/value_scales.h"
#include "support/attention_run.h"

namespace wavejit::tests {

inline std::vector<std::uint16_t> rounded(Storage storage, const AttentionOutput& output) {
  std::vector<std::uint16_t> bits;
  for (const float value : output_in_fp32(output)) bits.push_back(to_storage(storage, value));
  return bits;
}

class ValueSiblings {
 public:
  ValueSiblings(const Pipelines& pipelines, const AttentionCase& which, const AttentionOutput& output)
      : pipelines_(pipelines), which_(which), output_(output) {}

  // The caller rounds Q, joins pages or drops the padding, as frameworks do, where the row leaves it to the call.
  void expect_same_bits() const {
    if (!which_.wide_q.empty()) {
      EXPECT_TRUE(output_.kernel_spec.contains(" q=fp32 ")) << output_.kernel_spec;
      EXPECT_NE(which_.wide_q, which_.inputs.q);
      expect_same("Q rounded by the caller", [](AttentionCase& other) { other.wide_q.clear(); });
    }
    // One chunk is not split.
    if (which_.splits > 1) {
      EXPECT_EQ(output_.kernel_spec.contains(" split="), which_.inputs.key_length > 1024) << output_.kernel_spec;
    }
    if (which_.splits > 1 && which_.inputs.key_length > 1024) {
      expect_same("keys not split", [](AttentionCase& other) {
        other.splits = 1;
        other.flags = 0;
      });
    }
    if (which_.pages) {
      EXPECT_TRUE(output_.kernel_spec.contains(" paged ")) << output_.kernel_spec;
      expect_same("keys without pages", [](AttentionCase& other) {
        other.pages.reset();
        other.first_keys.clear();
      });
    }
    if (!which_.first_keys.empty()) {
      EXPECT_TRUE(output_.kernel_spec.contains(" first_keys ")) << output_.kernel_spec;
      expect_same("keys without padding", [](AttentionCase& other) { other.first_keys.clear(); });
    }
    if (which_.bytes) expect_wide_keys();
    if (is_scattered()) expect_dims_side_by_side();
    EXPECT_EQ(output_.kernel_spec.contains(" qk=i8 "), which_.integers.has_value()) << output_.kernel_spec;
    if (which_.output_fp32) expect_rounding();
    if (which_.output_bytes) expect_bytes();
  }

  // Sequences as calls of their own, where something is said of each. A row that has the bits of another (above) leaves
  // them to that one's row.
  void expect_same_bits_alone() const {
    const AttentionInputs& in = which_.inputs;
    const bool as_another = which_.pages || which_.output_fp32 || which_.output_bytes || which_.bytes ||
                            which_.integers || is_scattered() || !which_.wide_q.empty() || in.lists ||
                            !in.shown.empty();
    const bool apart = in.packed_queries() || in.packed_keys() || !in.key_lengths.empty() || !in.causal_flags.empty();
    if (as_another || !apart) return;
    for (int b = 0; b < in.batch; ++b) {
      // Alone, a call says that its first row stands within its keys.
      if (in.queries(b) == 0 || in.prefix.value_or(0) > in.keys(b)) continue;
      SCOPED_TRACE(std::format("sequence {} alone", b));
      AttentionCase one = alone(which_, b);
      one.wide_q.clear();
      one.first_keys.clear();
      one.inputs.causal = in.causal && (in.causal_flags.empty() || in.causal_flags[std::size_t(b)] != 0);
      if (!in.causal_flags.empty() && !one.inputs.causal) one.inputs.prefix.reset();
      one.inputs.causal_flags.clear();
      const AttentionOutput own = run(*pipelines_.engines().front(), one);
      if (own.status != WAVEJIT_OK) continue;
      expect_rows(b, one.inputs, own);
    }
  }

 private:
  static AttentionOutput run(const Engine& engine, const AttentionCase& other) {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    AttentionOutput output = run_attention(engine.get(), other);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    return output;
  }

  template <typename Change>
  void expect_same(const char* what, Change change) const {
    AttentionCase other = which_;
    change(other);
    const AttentionOutput output = run(*pipelines_.engines().back(), other);
    EXPECT_NE(output.kernel_spec, output_.kernel_spec) << what;
    EXPECT_TRUE(output.o == output_.o) << what << ": O differs in " << output.kernel_spec;
    EXPECT_TRUE(bits_of(output.lse) == bits_of(output_.lse)) << what << ": LSE differs in " << output.kernel_spec;
  }

  // K and V in Q's type, dense and at once, where their numbers are some of that type. Weights that scales of tokens
  // multiply may be too small for fp16.
  void expect_wide_keys() const {
    EXPECT_TRUE(output_.kernel_spec.contains(" cache=")) << output_.kernel_spec;
    EXPECT_EQ(output_.kernel_spec.contains(" cache_scales=token "), which_.bytes->tokens) << output_.kernel_spec;
    if (!has_powers_of_two(*which_.bytes) || (which_.bytes->tokens && which_.storage == Storage::fp16)) return;
    expect_same("K and V in 16 bits", [](AttentionCase& other) {
      other.bytes.reset();
      other.pages.reset();
      other.first_keys.clear();
      other.splits = 1;
      other.flags = 0;
    });
  }

  bool is_scattered() const {
    const ScatteredTensors& tensors = which_.scattered;
    return tensors.q != Scattered::no || tensors.k != Scattered::no || tensors.v != Scattered::no ||
           tensors.o != Scattered::no;
  }
  // Whole where it is split: what merges the parts alone knows how O lies.
  void expect_dims_side_by_side() const {
    const ScatteredTensors& tensors = which_.scattered;
    const bool only_o = tensors.q == Scattered::no && tensors.k == Scattered::no && tensors.v == Scattered::no;
    EXPECT_EQ(output_.kernel_spec.contains(" trans_"), !only_o || which_.splits <= 1) << output_.kernel_spec;
    expect_same("dims side by side", [](AttentionCase& other) {
      other.scattered = {};
      other.splits = 1;
    });
  }

  // O in f32 is what the 16-bit kernel rounds, and no widened 16-bit result: some element has bits below.
  void expect_rounding() const {
    AttentionCase other = which_;
    other.output_fp32 = false;
    const AttentionOutput narrow = run(*pipelines_.engines().back(), other);
    EXPECT_TRUE(rounded(which_.storage, output_) == narrow.o) << "O in f32 is not what the 16-bit kernel rounds";
    EXPECT_TRUE(bits_of(output_.lse) == bits_of(narrow.lse)) << "LSE differs";
    EXPECT_TRUE(std::ranges::any_of(output_in_fp32(output_), [&](float value) {
      return value != from_storage(which_.storage, to_storage(which_.storage, value));
    })) << "every element of O is a number of the 16-bit type";
  }

  // O in 8 bits is what O in f32 is scaled and rounded to, wherever the scale stands.
  void expect_bytes() const {
    EXPECT_EQ(output_.kernel_spec.contains(" o="),
              !output_.kernel_spec.contains(" split=") || output_.kernel_spec.contains(" merged"))
        << output_.kernel_spec;
    AttentionCase other = which_;
    other.output_bytes.reset();
    other.output_fp32 = true;
    other.splits = 1;
    other.flags = 0;
    const AttentionOutput wide = run(*pipelines_.engines().back(), other);
    std::vector<std::uint16_t> bytes;
    for (const float value : output_in_fp32(wide)) bytes.push_back(output_byte(which_, value));
    EXPECT_TRUE(bytes == output_.o) << "O in 8 bits is not what the f32 kernel's is rounded to";
    EXPECT_TRUE(bits_of(output_.lse) == bits_of(wide.lse)) << "LSE differs";
    other = which_;
    other.output_scale_in_memory = true;
    const AttentionOutput given = run(*pipelines_.engines().back(), other);
    EXPECT_TRUE(given.o == output_.o) << "a scale in device memory makes other bytes";
  }

  void expect_rows(int b, const AttentionInputs& one, const AttentionOutput& own) const {
    const AttentionInputs& in = which_.inputs;
    const std::size_t row = std::size_t(in.value_dim()) * (which_.output_fp32 ? 2 : 1);
    for (int i = 0; i < in.queries(b); ++i)
      for (int h = 0; h < in.query_heads; ++h) {
        const auto here = output_.o.begin() + static_cast<std::ptrdiff_t>(in.row_of_output(b, i, h) * row);
        const auto there = own.o.begin() + static_cast<std::ptrdiff_t>(one.row_of_output(0, i, h) * row);
        ASSERT_TRUE(std::equal(there, there + static_cast<std::ptrdiff_t>(row), here)) << "row " << i << ", head " << h;
        if (which_.lse)
          ASSERT_EQ(bits_of({own.lse[one.row_of_lse(0, i, h)]}), bits_of({output_.lse[in.row_of_lse(b, i, h)]}))
              << "row " << i << ", head " << h;
      }
  }

  const Pipelines& pipelines_;
  const AttentionCase& which_;
  const AttentionOutput& output_;
};

}  // namespace wavejit::tests
