// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// rocFFT's transforms against sums in long double, element by element, on a simulated GPU beneath AMD's HIP. rocFFT
// compiles a kernel for each when it first runs.
//
//   rocfft_transforms <seed>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include "tests/rocr/programs/foreign_library.h"

namespace wavejit::testing {
namespace {

// rocfft.h
enum class Transform : int { complex_forward = 0, complex_inverse = 1, real_forward = 2 };
enum class Precision : int { single_precision = 0, double_precision = 1 };
constexpr int not_in_place = 1;
using Setup = int();
using PlanCreate = int(void** plan, int placement, Transform, Precision, std::size_t dimensions,
                       const std::size_t* lengths, std::size_t batch, const void* description);
using PlanDestroy = int(void* plan);
using Execute = int(const void* plan, void** in, void** out, void* info);

template <typename Real>
struct Kind;
template <>
struct Kind<float> {
  static constexpr Precision precision = Precision::single_precision;
  static constexpr double step = 0x1p-24;
  static constexpr const char* name = "float";
};
template <>
struct Kind<double> {
  static constexpr Precision precision = Precision::double_precision;
  static constexpr double step = 0x1p-53;
  static constexpr const char* name = "double";
};

using Exact = std::complex<long double>;

// The sums that define the transform of `length` values.
std::vector<Exact> transformed(const std::vector<Exact>& values, bool forward) {
  const std::size_t length = values.size();
  std::vector<Exact> roots(length);
  for (std::size_t i = 0; i < length; ++i) {
    const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(i) / length;
    roots[i] = std::polar(1.0L, forward ? -angle : angle);
  }
  std::vector<Exact> results(length);
  for (std::size_t k = 0; k < length; ++k)
    for (std::size_t i = 0; i < length; ++i) results[k] += values[i] * roots[i * k % length];
  return results;
}

template <typename Real>
void run(const Library& library, Transform transform, std::size_t length, std::size_t batch, std::mt19937& random) {
  const bool real = transform == Transform::real_forward;
  const std::string name = std::string(Kind<Real>::name) + (real ? " real" : " complex") +
                           (transform == Transform::complex_inverse ? " inverse " : " ") + std::to_string(length) +
                           " x " + std::to_string(batch);
  const std::size_t out_length = real ? (length / 2) + 1 : length;
  const std::size_t words = real ? 1 : 2;
  std::normal_distribution<double> normal;
  std::vector<Real> values(length * batch * words);
  for (Real& value : values) value = static_cast<Real>(normal(random));
  const DeviceArray<Real> in(values);
  const DeviceArray<Real> out(out_length * batch * 2);
  void* plan = nullptr;
  succeeded(library.function<PlanCreate>("rocfft_plan_create")(&plan, not_in_place, transform, Kind<Real>::precision, 1,
                                                               &length, batch, nullptr),
            "rocfft_plan_create of " + name);
  std::array<void*, 1> ins = {in.get()};
  std::array<void*, 1> outs = {out.get()};
  succeeded(library.function<Execute>("rocfft_execute")(plan, ins.data(), outs.data(), nullptr),
            "rocfft_execute of " + name);
  succeeded(hipDeviceSynchronize(), "hipDeviceSynchronize after " + name);
  succeeded(library.function<PlanDestroy>("rocfft_plan_destroy")(plan), "rocfft_plan_destroy");
  const std::vector<Real> got = out.read();
  double worst = 0;
  for (std::size_t one = 0; one < batch; ++one) {
    std::vector<Exact> exact(length);
    long double size = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t at = ((one * length) + i) * words;
      exact[i] = {values[at], real ? 0 : values[at + (words - 1)]};
      size += std::norm(exact[i]);
    }
    const std::vector<Exact> wanted = transformed(exact, transform != Transform::complex_inverse);
    // Each of log2(n) stages rounds a few times what has the size of the whole.
    const double allowed =
        4 * Kind<Real>::step * (std::log2(static_cast<double>(length)) + 1) * std::sqrt(static_cast<double>(size));
    for (std::size_t k = 0; k < out_length; ++k) {
      const std::size_t at = ((one * out_length) + k) * 2;
      const double error = static_cast<double>(std::abs(Exact(got[at], got[at + 1]) - wanted[k])) / allowed;
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
    }
  }
  std::printf("%-40s %6.3f of what is allowed\n", name.c_str(), worst);
  static_cast<void>(std::fflush(stdout));
  expect(worst <= 1, "errors keep to the bound in " + name);
}

int main_of(int count, char** words) {
  expect(count == 2, "there is one argument: a seed");
  std::mt19937 random(static_cast<unsigned>(std::atoi(words[1])));
  const Library library("librocfft.so.0");
  succeeded(library.function<Setup>("rocfft_setup")(), "rocfft_setup");
  for (const std::size_t length : {16UL, 60UL, 64UL, 128UL, 343UL, 1024UL}) {
    run<float>(library, Transform::complex_forward, length, 3, random);
    run<double>(library, Transform::complex_inverse, length, 2, random);
    run<double>(library, Transform::real_forward, length, 4, random);
  }
  succeeded(library.function<Setup>("rocfft_cleanup")(), "rocfft_cleanup");
  std::puts("rocFFT: 18 transforms");
  return 0;
}

}  // namespace
}  // namespace wavejit::testing

int main(int count, char** words) { return wavejit::testing::main_of(count, words); }
