// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrices and the three products of training. Every sum runs over its terms in order, one after the other: a row's
// result depends on that row alone, and the gradient of a weight goes on behind the terms of the rows before. So
// nothing here knows where one micro-batch ends and the next begins.
#pragma once

#include <cstddef>
#include <vector>

namespace training {

template <typename Real>
struct Matrix {
  int rows = 0;
  int columns = 0;
  std::vector<Real> values;  // row-major

  Matrix() = default;
  Matrix(int row_count, int column_count)
      : rows(row_count), columns(column_count), values(static_cast<std::size_t>(row_count) * column_count) {}

  Real* row(int index) { return values.data() + static_cast<std::size_t>(index) * columns; }
  const Real* row(int index) const { return values.data() + static_cast<std::size_t>(index) * columns; }
};

// x · weightᵀ: each row of x by itself.
template <typename Real>
Matrix<Real> multiply(const Matrix<Real>& x, const Matrix<Real>& weight) {
  Matrix<Real> result(x.rows, weight.rows);
  for (int r = 0; r < x.rows; ++r)
    for (int i = 0; i < weight.rows; ++i) {
      Real sum = 0;
      for (int j = 0; j < weight.columns; ++j) sum += weight.row(i)[j] * x.row(r)[j];
      result.row(r)[i] = sum;
    }
  return result;
}

// gradient · weight: what x of that product gets.
template <typename Real>
Matrix<Real> multiply_back(const Matrix<Real>& gradient, const Matrix<Real>& weight) {
  Matrix<Real> result(gradient.rows, weight.columns);
  for (int r = 0; r < gradient.rows; ++r)
    for (int i = 0; i < weight.rows; ++i)
      for (int j = 0; j < weight.columns; ++j) result.row(r)[j] += gradient.row(r)[i] * weight.row(i)[j];
  return result;
}

// What the weight gets, behind the terms that are there: row after row.
template <typename Real>
void add_outer(Matrix<Real>& weight_gradient, const Matrix<Real>& gradient, const Matrix<Real>& x) {
  for (int r = 0; r < x.rows; ++r)
    for (int i = 0; i < weight_gradient.rows; ++i)
      for (int j = 0; j < weight_gradient.columns; ++j) weight_gradient.row(i)[j] += gradient.row(r)[i] * x.row(r)[j];
}

template <typename Real>
void add(Matrix<Real>& to, const Matrix<Real>& terms) {
  for (std::size_t i = 0; i < to.values.size(); ++i) to.values[i] += terms.values[i];
}

}  // namespace training
