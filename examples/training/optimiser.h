// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Adam, each number by itself.
#pragma once

#include <cmath>
#include <vector>

#include "parameters.h"

namespace training {

class Adam {
 public:
  Adam(const Shape& shape, float rate) : rate_(rate), means_(shape), squares_(shape) {}

  void step(Parameters<float>& parameters, Parameters<float>& gradients) {
    ++steps_;
    const float of_means = 1 - std::pow(0.9F, static_cast<float>(steps_));
    const float of_squares = 1 - std::pow(0.99F, static_cast<float>(steps_));
    const std::vector<Matrix<float>*> weights = parameters.matrices();
    const std::vector<Matrix<float>*> slopes = gradients.matrices();
    const std::vector<Matrix<float>*> means = means_.matrices();
    const std::vector<Matrix<float>*> squares = squares_.matrices();
    for (std::size_t m = 0; m < weights.size(); ++m)
      for (std::size_t i = 0; i < weights[m]->values.size(); ++i) {
        const float slope = slopes[m]->values[i];
        float& mean = means[m]->values[i];
        float& square = squares[m]->values[i];
        mean = 0.9F * mean + 0.1F * slope;
        square = 0.99F * square + 0.01F * slope * slope;
        weights[m]->values[i] -= rate_ * (mean / of_means) / (std::sqrt(square / of_squares) + 1e-8F);
      }
  }

 private:
  float rate_;
  int steps_ = 0;
  Parameters<float> means_;
  Parameters<float> squares_;
};

}  // namespace training
