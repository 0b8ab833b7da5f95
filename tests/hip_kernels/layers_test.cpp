// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix products, a reduction, a softmax and attentions on odd sizes, against float64.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "corpus.h"
#include "support/attention_reference.h"

namespace wavejit::hip_kernels {
namespace {

struct Sizes {
  std::uint32_t m, n, k;
};
constexpr Sizes sizes[] = {{1, 1, 1}, {17, 33, 19}, {65, 70, 131}, {100, 3, 47}};

template <typename T>
std::vector<double> product(const Sizes& of, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<double> c(std::size_t{of.m} * of.n);
  for (std::size_t row = 0; row < of.m; ++row) {
    for (std::size_t i = 0; i < of.k; ++i) {
      for (std::size_t column = 0; column < of.n; ++column) {
        c[row * of.n + column] += static_cast<double>(a[row * of.k + i]) * static_cast<double>(b[i * of.n + column]);
      }
    }
  }
  return c;
}

// Sums of k products below 1 in f32: the error grows with k·2⁻²⁴ at most.
double sum_bound(std::uint32_t k) { return static_cast<double>(k) * k * 0x1p-24; }

TEST_P(Corpus, matmul_any) {
  for (const Sizes& of : sizes) {
    const auto a = random_floats(std::size_t{of.m} * of.k, -1, 1);
    const auto b = random_floats(std::size_t{of.k} * of.n, -1, 1);
    const Buffer<float> left(a);
    const Buffer<float> right(b);
    const Buffer<float> to(std::size_t{of.m} * of.n);
    launch("layers", "matmul_any", {(of.n + 15) / 16, (of.m + 15) / 16}, {16, 16}, 0, left.get(), right.get(), to.get(),
           of.m, of.n, of.k);
    expect_close(to.read(), product(of, a, b), 0, sum_bound(of.k), "element");
  }
}

TEST_P(Corpus, matmul_any_mfma) {
  if (!has_mfma()) GTEST_SKIP() << "no MFMA";
  for (const Sizes& of : sizes) {
    const auto a = to_half(random_floats(std::size_t{of.m} * of.k, -1, 1));
    const auto b = to_half(random_floats(std::size_t{of.k} * of.n, -1, 1));
    const Buffer<half> left(a);
    const Buffer<half> right(b);
    const Buffer<float> to(std::size_t{of.m} * of.n);
    launch("layers", "matmul_any_mfma", {(of.n + 63) / 64, (of.m + 63) / 64}, {256}, 0, left.get(), right.get(),
           to.get(), of.m, of.n, of.k);
    expect_close(to.read(), product(of, a, b), 0, sum_bound(of.k), "element");
  }
}

TEST_P(Corpus, reduce_any) {
  for (const std::uint32_t n : {1U, 77U, 4099U}) {
    const auto in = random_floats(n, -3, 2);
    const Buffer<float> from(in);
    const Buffer<float> sum(1, 0);
    const Buffer<std::uint32_t> largest(1, 0);
    launch("layers", "reduce_any", {5}, {192}, 0, from.get(), sum.get(), largest.get(), n);
    double expected = 0;
    float most = 0;
    for (const float value : in) {
      expected += value;
      most = std::max(most, std::fabs(value));
    }
    // Each thread, wave and block adds few terms; 4099 terms below 3 at 2⁻²⁴ of a sum below 3000.
    EXPECT_NEAR(sum.read()[0], expected, 1e-3) << n;
    EXPECT_EQ(std::bit_cast<float>(largest.read()[0]), most) << n;
  }
}

TEST_P(Corpus, softmax_rows) {
  constexpr std::uint32_t rows = 7;
  for (const std::uint32_t columns : {1U, 63U, 217U}) {
    const auto in = random_floats(std::size_t{rows} * columns, -12, 12);
    const Buffer<float> from(in);
    const Buffer<float> to(in.size());
    launch("layers", "softmax_rows", {2}, {256}, 0, from.get(), to.get(), rows, columns);
    std::vector<double> expected(in.size());
    for (std::uint32_t row = 0; row < rows; ++row) {
      const float* values = in.data() + std::size_t{row} * columns;
      const double most = *std::max_element(values, values + columns);
      double sum = 0;
      for (std::uint32_t i = 0; i < columns; ++i) sum += std::exp(values[i] - most);
      for (std::uint32_t i = 0; i < columns; ++i)
        expected[std::size_t{row} * columns + i] = std::exp(values[i] - most) / sum;
    }
    // Exponents up to 35 in f32 are off by 2⁻¹⁹ at most, log₂e itself by 2⁻²⁶ of them.
    expect_close(to.read(), expected, 100, 1e-9, "weight");
  }
}

struct Attention {
  int queries, keys, heads, dims;
  bool causal;
};
constexpr Attention attentions[] = {{1, 1, 1, 64, false},   {37, 101, 3, 64, false}, {130, 77, 2, 64, true},
                                    {77, 130, 2, 64, true}, {5, 200, 1, 64, true},   {19, 70, 1, 100, true}};

tests::AttentionInputs inputs_of(const Attention& which, const std::vector<half>& q, const std::vector<half>& k,
                                 const std::vector<half>& v) {
  tests::AttentionInputs inputs;
  inputs.query_length = which.queries;
  inputs.key_length = which.keys;
  inputs.query_heads = inputs.kv_heads = which.heads;
  inputs.head_dim = which.dims;
  inputs.causal = which.causal;
  inputs.scale = 1 / std::sqrt(static_cast<double>(which.dims));
  inputs.q.assign(q.begin(), q.end());
  inputs.k.assign(k.begin(), k.end());
  inputs.v.assign(v.begin(), v.end());
  return inputs;
}

// `weights`: the relative error of a weight P as the kernel rounds it. What f32 adds lies far below 1e-5.
void expect_attention(const std::vector<float>& got, const tests::AttentionInputs& inputs, double weights) {
  const tests::AttentionAnswer exact = tests::attention_reference(inputs);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(got[i] - exact.o[i]);
    if (error <= weights * exact.magnitude[i] + 1e-5) continue;
    if (++wrong <= 4) ADD_FAILURE() << "o[" << i << "]: " << got[i] << ", expected " << exact.o[i];
  }
  EXPECT_EQ(wrong, 0U) << inputs.query_length << " queries, " << inputs.key_length << " keys";
}

// One of them with its arrays on the device.
struct DeviceAttention {
  DeviceAttention(const Attention& which, Corpus& corpus)
      : q(to_half(corpus.random_floats(elements(which, which.queries), -2, 2))),
        k(to_half(corpus.random_floats(elements(which, which.keys), -2, 2))),
        v(to_half(corpus.random_floats(elements(which, which.keys), -1, 1))),
        inputs(inputs_of(which, q, k, v)),
        log2_scale(static_cast<float>(inputs.scale * std::numbers::log2e)) {}

  static std::size_t elements(const Attention& which, int rows) {
    return static_cast<std::size_t>(rows) * which.heads * which.dims;
  }

  std::vector<half> q, k, v;
  tests::AttentionInputs inputs;
  float log2_scale;
  Buffer<half> query{q}, key{k}, value{v};
  Buffer<float> to{q.size()};
};

TEST_P(Corpus, attention_rows) {
  for (const Attention& which : attentions) {
    const DeviceAttention on(which, *this);
    launch("layers", "attention_rows",
           {static_cast<std::uint32_t>(which.queries + 3) / 4, static_cast<std::uint32_t>(which.heads)},
           {4 * wave_size()}, 0, on.query.get(), on.key.get(), on.value.get(), on.to.get(), which.queries, which.keys,
           which.heads, which.dims, static_cast<int>(which.causal), on.log2_scale);
    expect_attention(on.to.read(), on.inputs, 0);
  }
}

TEST_P(Corpus, attention_mfma) {
  if (!has_mfma()) GTEST_SKIP() << "no MFMA";
  for (const Attention& which : attentions) {
    if (which.dims != 64) continue;
    const DeviceAttention on(which, *this);
    launch("layers", "attention_mfma",
           {static_cast<std::uint32_t>(which.queries + 127) / 128, static_cast<std::uint32_t>(which.heads)}, {256}, 0,
           on.query.get(), on.key.get(), on.value.get(), on.to.get(), which.queries, which.keys, which.heads,
           static_cast<int>(which.causal), on.log2_scale);
    expect_attention(on.to.read(), on.inputs, 0x1p-11);
  }
}

}  // namespace
}  // namespace wavejit::hip_kernels
