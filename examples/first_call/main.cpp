// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One attention call from arrays to a checked result: `./dev demo` runs it twice, with an empty disk cache and then in a new
// process that finds the kernel there.
//
//   first_call [device]      sim:gfx950 without a device; hip: the GPU of this machine
//
// Query heads share kv heads (8 over 2), lengths are no multiple of a tile, and the mask is causal: the last query row
// stands at the last key.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>
#include <wavejit/wavejit.hpp>

namespace {

using Half = _Float16;

constexpr int queries = 300, keys = 333, heads = 8, kv_heads = 2, head_dim = 128;

std::vector<Half> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Half> values(count);
  for (Half& value : values) value = static_cast<Half>(normal(random));
  return values;
}

// How far O is from float64 at most, and how far roundings can take it: weights and O are rounded to fp16.
struct Check {
  double largest = 0;
  double worst_share = 0;  // of what roundings explain; above 1: wrong
};

Check compare(const std::vector<Half>& q, const std::vector<Half>& k, const std::vector<Half>& v,
              const std::vector<Half>& o) {
  constexpr double half_ulp = 1.0 / 2048;
  Check found;
  std::vector<double> weights(keys);
  for (int row = 0; row < queries; ++row)
    for (int head = 0; head < heads; ++head) {
      const Half* query = &q[std::size_t(row * heads + head) * head_dim];
      const auto row_of = [&](const std::vector<Half>& from, int key) {
        return &from[std::size_t(key * kv_heads + head / (heads / kv_heads)) * head_dim];
      };
      const int seen = row + keys - queries + 1;
      double largest = -1e300, sum = 0;
      for (int key = 0; key < seen; ++key) {
        double score = 0;
        for (int dim = 0; dim < head_dim; ++dim) score += double(query[dim]) * double(row_of(k, key)[dim]);
        weights[std::size_t(key)] = score / std::sqrt(double(head_dim));
        largest = std::max(largest, weights[std::size_t(key)]);
      }
      for (int key = 0; key < seen; ++key)
        sum += weights[std::size_t(key)] = std::exp(weights[std::size_t(key)] - largest);
      for (int dim = 0; dim < head_dim; ++dim) {
        double exact = 0, moved = 0;
        for (int key = 0; key < seen; ++key) {
          const double term = weights[std::size_t(key)] / sum * double(row_of(v, key)[dim]);
          exact += term;
          moved += std::abs(term);
        }
        const double error = std::abs(double(o[std::size_t(row * heads + head) * head_dim + std::size_t(dim)]) - exact);
        const double bound = half_ulp * (moved + std::abs(exact)) + 1e-5;
        found.largest = std::max(found.largest, error);
        found.worst_share = std::isfinite(error) ? std::max(found.worst_share, error / bound) : INFINITY;
      }
    }
  return found;
}

int run(const char* device) {
  wavejit::Engine engine(device);
  const auto q = normal_values(std::size_t(queries) * heads * head_dim, 1);
  const auto k = normal_values(std::size_t(keys) * kv_heads * head_dim, 2);
  const auto v = normal_values(std::size_t(keys) * kv_heads * head_dim, 3);
  wavejit::DeviceBuffer on_q(engine, q), on_k(engine, k), on_v(engine, v), on_o(engine, q.size() * sizeof(Half));

  wavejit::AttentionForward call(wavejit::dense(on_q, WAVEJIT_FP16, 1, queries, heads, head_dim),
                                 wavejit::dense(on_k, WAVEJIT_FP16, 1, keys, kv_heads, head_dim),
                                 wavejit::dense(on_v, WAVEJIT_FP16, 1, keys, kv_heads, head_dim),
                                 wavejit::dense(on_o, WAVEJIT_FP16, 1, queries, heads, head_dim));
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  wavejit_call_report report = wavejit::make_report();
  call.head.report = &report;

  const auto began = std::chrono::steady_clock::now();
  engine.attention_forward(call);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  engine.synchronize();

  const auto o = on_o.read<Half>();
  const Check check = compare(q, k, v, o);
  std::uint64_t bits = 14695981039346656037u;  // FNV-1a of O
  for (const Half value : o) {
    std::uint16_t two = 0;
    static_assert(sizeof two == sizeof value);
    std::copy_n(reinterpret_cast<const unsigned char*>(&value), sizeof two, reinterpret_cast<unsigned char*>(&two));
    bits = (bits ^ two) * 1099511628211u;
  }
  std::printf("call     %s\n", engine.describe(call).c_str());
  std::printf("kernel   %s, ready in %.0f ms\n",
              report.origin == WAVEJIT_ORIGIN_COMPILED ? "compiled" : "found in the disk cache", took.count());
  std::printf("error    %.1e at most beside float64: %.0f %% of what rounding to fp16 allows\n", check.largest,
              100 * check.worst_share);
  std::printf("bits     %016llx\n", static_cast<unsigned long long>(bits));
  if (check.worst_share <= 1) return 0;
  std::fprintf(stderr, "first_call: O is wrong on %s\n", device);
  return 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count > 1 ? words[1] : "sim:gfx950");
  } catch (const wavejit::Error& error) {
    std::fprintf(stderr, "first_call: %s\n", error.what());
    return 1;
  }
}
