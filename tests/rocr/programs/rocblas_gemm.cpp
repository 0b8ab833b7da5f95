// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// rocBLAS' matrix products against float64, element by element, on a simulated GPU beneath AMD's HIP.
//
//   rocblas_gemm <most> <seed>     sizes whose M, N and K are up to <most>
//
// D = alpha · op(A) · op(B) + beta · C, matrices by columns. What lies between columns is NaN, and stays; C is NaN
// where beta is 0, and is not read.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "tests/rocr/programs/foreign_library.h"

namespace wavejit::testing {
namespace {

// rocblas-types.h
enum class Operation : int { none = 111, transpose = 112 };
enum class DataType : int { f16 = 150, f32 = 151, f64 = 152, bf16 = 168 };
using Create = int(void**);
using Destroy = int(void*);
using VersionString = int(char*, std::size_t);
using GemmEx = int(void*, Operation, Operation, int m, int n, int k, const void* alpha, const void* a, DataType,
                   int lda, const void* b, DataType, int ldb, const void* beta, const void* c, DataType, int ldc,
                   void* d, DataType, int ldd, DataType compute, int algorithm, std::int32_t solution,
                   std::uint32_t flags);

struct Half {
  static constexpr DataType type = DataType::f16;
  static constexpr const char* name = "fp16";
  static constexpr double rounding = 0x1p-11, smallest = 0x1p-24;
  using Stored = _Float16;
  static Stored store(double value) { return static_cast<_Float16>(value); }
  static double load(Stored value) { return static_cast<double>(value); }
};

struct Bfloat16 {
  static constexpr DataType type = DataType::bf16;
  static constexpr const char* name = "bf16";
  static constexpr double rounding = 0x1p-8, smallest = 0x1p-133;
  using Stored = std::uint16_t;
  static Stored store(double value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return static_cast<Stored>((std::isnan(value) ? 0x7fc0'0000 : bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
  static double load(Stored value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }
};

struct Single {
  static constexpr DataType type = DataType::f32;
  static constexpr const char* name = "fp32";
  static constexpr double rounding = 0x1p-24, smallest = 0x1p-149;
  using Stored = float;
  static Stored store(double value) { return static_cast<float>(value); }
  static double load(Stored value) { return value; }
};

struct Double {
  static constexpr DataType type = DataType::f64;
  static constexpr const char* name = "fp64";
  static constexpr double rounding = 0x1p-53, smallest = 0;
  using Stored = double;
  static Stored store(double value) { return value; }
  static double load(Stored value) { return value; }
};

// What products are computed in.
template <typename Type>
struct Computed {
  static constexpr DataType type = DataType::f32;
  static constexpr double step = 0x1p-24;
  using Scalar = float;
};
template <>
struct Computed<Double> {
  static constexpr DataType type = DataType::f64;
  static constexpr double step = 0x1p-53;
  using Scalar = double;
};

struct Case {
  int m, n, k;
  Operation a_operation, b_operation;
  float alpha, beta;
  int gap;  // rows between the end of a column and the next one
};

// A stored matrix: rows of a column, then the gap.
template <typename Type>
struct Matrix {
  int rows, columns, leading;
  std::vector<typename Type::Stored> stored;

  Matrix(int row_count, int column_count, int gap)
      : rows(row_count),
        columns(column_count),
        leading(row_count + gap),
        stored(static_cast<std::size_t>(leading) * static_cast<std::size_t>(columns),
               Type::store(std::numeric_limits<double>::quiet_NaN())) {}
  std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(column) * static_cast<std::size_t>(leading) + static_cast<std::size_t>(row);
  }
  double value(int row, int column) const { return Type::load(stored[at(row, column)]); }
  void fill(std::mt19937& random) {
    std::normal_distribution<double> normal;
    for (int column = 0; column < columns; ++column)
      for (int row = 0; row < rows; ++row) stored[at(row, column)] = Type::store(normal(random));
  }
};

template <typename Type>
double factor(const Matrix<Type>& matrix, Operation operation, int outer, int inner) {
  return operation == Operation::none ? matrix.value(outer, inner) : matrix.value(inner, outer);
}

std::string name_of(const char* type, const Case& tried) {
  const auto letter = [](Operation operation) { return operation == Operation::none ? "N" : "T"; };
  return std::string(type) + " " + letter(tried.a_operation) + letter(tried.b_operation) + " " +
         std::to_string(tried.m) + "x" + std::to_string(tried.n) + "x" + std::to_string(tried.k) + " alpha " +
         std::to_string(tried.alpha) + " beta " + std::to_string(tried.beta) + " gap " + std::to_string(tried.gap);
}

// The largest error, in parts of what is allowed: each of k products and sums rounds once as it is computed, and the
// result once more as it is stored.
template <typename Type>
double judge(const Case& tried, const Matrix<Type>& a, const Matrix<Type>& b, const Matrix<Type>& c,
             const Matrix<Type>& d) {
  double worst = 0;
  for (int column = 0; column < d.columns; ++column) {
    for (int row = 0; row < d.rows; ++row) {
      long double sum = 0;
      double size = 0;
      for (int inner = 0; inner < tried.k; ++inner) {
        const long double product =
            static_cast<long double>(factor(a, tried.a_operation, row, inner)) *
            (tried.b_operation == Operation::none ? b.value(inner, column) : b.value(column, inner));
        sum += product;
        size += std::abs(static_cast<double>(product));
      }
      const double old = tried.beta == 0 ? 0 : double{tried.beta} * c.value(row, column);
      const auto wanted = static_cast<double>(double{tried.alpha} * sum + old);
      const double steps = tried.k + 3;
      const double allowed = steps * Computed<Type>::step * (std::abs(double{tried.alpha}) * size + std::abs(old)) +
                             Type::rounding * std::abs(wanted) + Type::smallest;
      const double error = std::abs(d.value(row, column) - wanted) / allowed;
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
    }
    for (int row = d.rows; row < d.leading; ++row)
      expect(std::isnan(d.value(row, column)),
             "what lies between columns is untouched in " + name_of(Type::name, tried));
  }
  return worst;
}

template <typename Type>
void run(const Library& library, void* handle, const Case& tried, std::mt19937& random) {
  const auto turned = [](Operation operation, int rows, int columns) {
    return operation == Operation::none ? std::array{rows, columns} : std::array{columns, rows};
  };
  const auto [a_rows, a_columns] = turned(tried.a_operation, tried.m, tried.k);
  const auto [b_rows, b_columns] = turned(tried.b_operation, tried.k, tried.n);
  Matrix<Type> a(a_rows, a_columns, tried.gap);
  Matrix<Type> b(b_rows, b_columns, tried.gap);
  Matrix<Type> c(tried.m, tried.n, tried.gap);
  Matrix<Type> d(tried.m, tried.n, tried.gap);
  a.fill(random);
  b.fill(random);
  if (tried.beta != 0) c.fill(random);
  const DeviceArray device_a(a.stored);
  const DeviceArray device_b(b.stored);
  const DeviceArray device_c(c.stored);
  const DeviceArray device_d(d.stored);
  const typename Computed<Type>::Scalar alpha = tried.alpha;
  const typename Computed<Type>::Scalar beta = tried.beta;
  const auto start = std::chrono::steady_clock::now();
  succeeded(library.function<GemmEx>("rocblas_gemm_ex")(
                handle, tried.a_operation, tried.b_operation, tried.m, tried.n, tried.k, &alpha, device_a.get(),
                Type::type, a.leading, device_b.get(), Type::type, b.leading, &beta, device_c.get(), Type::type,
                c.leading, device_d.get(), Type::type, d.leading, Computed<Type>::type, 0, 0, 0),
            "rocblas_gemm_ex for " + name_of(Type::name, tried));
  succeeded(hipDeviceSynchronize(), "hipDeviceSynchronize after " + name_of(Type::name, tried));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  d.stored = device_d.read();
  const double worst = judge(tried, a, b, c, d);
  std::printf("%-50s %6.3f of what is allowed, %5.2f s\n", name_of(Type::name, tried).c_str(), worst, took.count());
  static_cast<void>(std::fflush(stdout));
  expect(worst <= 1, "errors keep to the bound in " + name_of(Type::name, tried));
}

std::vector<Case> cases(int most) {
  constexpr Operation n = Operation::none;
  constexpr Operation t = Operation::transpose;
  const std::vector<Case> all = {
      {.m = 1, .n = 1, .k = 1, .a_operation = n, .b_operation = n, .alpha = 1, .beta = 0, .gap = 0},
      {.m = 16, .n = 16, .k = 16, .a_operation = t, .b_operation = n, .alpha = 1, .beta = 1, .gap = 0},
      {.m = 33, .n = 17, .k = 5, .a_operation = n, .b_operation = t, .alpha = -0.5F, .beta = 2, .gap = 3},
      {.m = 64, .n = 64, .k = 64, .a_operation = n, .b_operation = n, .alpha = 1, .beta = 0, .gap = 0},
      {.m = 64, .n = 48, .k = 61, .a_operation = t, .b_operation = t, .alpha = 1, .beta = 0.5F, .gap = 1},
      {.m = 128, .n = 1, .k = 96, .a_operation = t, .b_operation = n, .alpha = 1, .beta = 0, .gap = 0},
      {.m = 127, .n = 65, .k = 129, .a_operation = n, .b_operation = n, .alpha = 1, .beta = 1, .gap = 2},
      {.m = 128, .n = 128, .k = 256, .a_operation = t, .b_operation = n, .alpha = 1, .beta = 0, .gap = 0},
      {.m = 256, .n = 192, .k = 128, .a_operation = n, .b_operation = t, .alpha = 2, .beta = 0, .gap = 0},
      {.m = 100, .n = 300, .k = 70, .a_operation = n, .b_operation = n, .alpha = 1, .beta = -1, .gap = 4},
      {.m = 512, .n = 256, .k = 64, .a_operation = n, .b_operation = n, .alpha = 1, .beta = 0, .gap = 0},
      {.m = 48, .n = 80, .k = 1024, .a_operation = t, .b_operation = n, .alpha = 1, .beta = 0, .gap = 0},
  };
  std::vector<Case> chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen),
                       [&](const Case& one) { return std::max({one.m, one.n, one.k}) <= most; });
  return chosen;
}

int main_of(int count, char** words) {
  expect(count == 3, "there are two arguments: the largest size, and a seed");
  const std::vector<Case> chosen = cases(std::atoi(words[1]));
  std::mt19937 random(static_cast<unsigned>(std::atoi(words[2])));
  const Library library("librocblas.so.5");
  std::array<char, 64> version{};
  succeeded(library.function<VersionString>("rocblas_get_version_string")(version.data(), version.size()),
            "rocblas_get_version_string");
  void* handle = nullptr;
  succeeded(library.function<Create>("rocblas_create_handle")(&handle), "rocblas_create_handle");
  for (const Case& one : chosen) {
    run<Single>(library, handle, one, random);
    run<Half>(library, handle, one, random);
    run<Bfloat16>(library, handle, one, random);
    run<Double>(library, handle, one, random);
  }
  succeeded(library.function<Destroy>("rocblas_destroy_handle")(handle), "rocblas_destroy_handle");
  std::printf("rocBLAS %s: %zu products\n", version.data(), 4 * chosen.size());
  return 0;
}

}  // namespace
}  // namespace wavejit::testing

int main(int count, char** words) { return wavejit::testing::main_of(count, words); }
