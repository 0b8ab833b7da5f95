// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the model asks of attention: causal, over sequences that are alike in length, rows of all sequences one below
// the other. wavejit answers it for float, and a few loops by the definition for double.
#pragma once

#include <vector>
#include <wavejit/wavejit.hpp>

#include "matrix.h"
#include "parameters.h"

namespace training {

template <typename Real>
struct QueryKeyValue {
  Matrix<Real> query;  // [sequences · length, query_heads · head_dim]
  Matrix<Real> key;    // [sequences · length, kv_heads · head_dim]
  Matrix<Real> value;  // the same
};

template <typename Real>
class Attention {
 public:
  virtual ~Attention() = default;
  // [sequences · length, query_heads · head_dim]. Keeps what the layer's backward needs.
  virtual Matrix<Real> forward(int layer, const QueryKeyValue<Real>& inputs) = 0;
  // From the gradient of that answer.
  virtual QueryKeyValue<Real> backward(int layer, const Matrix<Real>& gradient) = 0;
};

// On the device, in bf16; gradients come back in fp32.
class DeviceAttention : public Attention<float> {
 public:
  DeviceAttention(wavejit::Engine& engine, const Shape& shape);
  Matrix<float> forward(int layer, const QueryKeyValue<float>& inputs) override;
  QueryKeyValue<float> backward(int layer, const Matrix<float>& gradient) override;

 private:
  // A layer's tensors from its forward to its backward.
  struct Kept {
    wavejit::DeviceBuffer query, key, value, output, lse;
    int sequences;
  };
  wavejit::Engine& engine_;
  Shape shape_;
  std::vector<std::vector<Kept>> kept_;  // of each layer: one, or none
};

// In float64, by the definition.
class PlainAttention : public Attention<double> {
 public:
  explicit PlainAttention(const Shape& shape) : shape_(shape), kept_(static_cast<std::size_t>(shape.layers)) {}
  Matrix<double> forward(int layer, const QueryKeyValue<double>& inputs) override;
  QueryKeyValue<double> backward(int layer, const Matrix<double>& gradient) override;

 private:
  // Weights of the keys that row `row` of its sequence sees.
  std::vector<double> weights_of(const QueryKeyValue<double>& inputs, int first, int row, int head) const;

  Shape shape_;
  std::vector<QueryKeyValue<double>> kept_;
};

}  // namespace training
