#include "support/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wavejit::tests {

AttentionAnswer attention_reference(const AttentionInputs& in) {
  const double minus_infinity = -std::numeric_limits<double>::infinity();
  const std::size_t d = in.head_dim;
  AttentionAnswer out;
  out.o.assign(std::size_t(in.batch) * in.query_length * in.query_heads * d, 0.0);
  out.lse.assign(std::size_t(in.batch) * in.query_heads * in.query_length, minus_infinity);
  out.magnitude.assign(out.o.size(), 0.0);
  const int group = in.query_heads / in.kv_heads;
  std::vector<double> weight(in.key_length);
  std::vector<double> sum(d);
  std::vector<double> magnitude(d);
  for (int b = 0; b < in.batch; ++b) {
    for (int h = 0; h < in.query_heads; ++h) {
      for (int i = 0; i < in.query_length; ++i) {
        const std::size_t row = (std::size_t(b) * in.query_length + i) * in.query_heads + h;
        const float* q = &in.q[row * d];
        const int visible =
            in.causal ? std::clamp(i + in.key_length - in.query_length + 1, 0, in.key_length) : in.key_length;
        if (visible == 0) continue;
        auto kv_row = [&](int j) { return ((std::size_t(b) * in.key_length + j) * in.kv_heads + h / group) * d; };
        double largest = minus_infinity;
        for (int j = 0; j < visible; ++j) {
          const float* k = &in.k[kv_row(j)];
          double dot = 0;
          for (std::size_t c = 0; c < d; ++c) dot += double(q[c]) * double(k[c]);
          weight[j] = dot * in.scale;
          largest = std::max(largest, weight[j]);
        }
        double total = 0;
        std::ranges::fill(sum, 0.0);
        std::ranges::fill(magnitude, 0.0);
        for (int j = 0; j < visible; ++j) {
          const double p = std::exp(weight[j] - largest);
          total += p;
          const float* v = &in.v[kv_row(j)];
          for (std::size_t c = 0; c < d; ++c) sum[c] += p * double(v[c]);
          for (std::size_t c = 0; c < d; ++c) magnitude[c] += p * std::fabs(double(v[c]));
        }
        for (std::size_t c = 0; c < d; ++c) out.o[row * d + c] = sum[c] / total;
        for (std::size_t c = 0; c < d; ++c) out.magnitude[row * d + c] = magnitude[c] / total;
        out.lse[(std::size_t(b) * in.query_heads + h) * in.query_length + i] = largest + std::log(total);
      }
    }
  }
  return out;
}

}  // namespace wavejit::tests
