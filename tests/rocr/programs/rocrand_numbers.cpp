// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// rocRAND's numbers on a simulated GPU beneath AMD's HIP.
//
//   rocrand_numbers <count>
//
// Philox is written here once more from its paper: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As
// Easy as 1, 2, 3", SC 2011: ten rounds on four words. Every other generator is compared with rocRAND's own on the
// host, bit by bit; what logarithms and sines shape, to a few units of the last place.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <format>

#include "tests/rocr/programs/foreign_library.h"

namespace wavejit::testing {
namespace {

// rocrand.h
enum class Kind : int {
  xorwow = 401,
  mrg32k3a = 402,
  mtgp32 = 403,
  philox4x32_10 = 404,
  mrg31k3p = 405,
  lfsr113 = 406,
  mt19937 = 407,
  threefry2x32_20 = 408,
  threefry4x32_20 = 410
};
using Create = int(void**, Kind);
using Destroy = int(void*);
using SetSeed = int(void*, unsigned long long);
using SetOffset = int(void*, unsigned long long);
using GenerateWords = int(void*, unsigned int*, std::size_t);
using GenerateUniform = int(void*, float*, std::size_t);
using GenerateUniformDouble = int(void*, double*, std::size_t);
using GenerateNormal = int(void*, float*, std::size_t, float mean, float deviation);
using GenerateNormalDouble = int(void*, double*, std::size_t, double mean, double deviation);
using GeneratePoisson = int(void*, unsigned int*, std::size_t, double mean);

constexpr unsigned long long seed = 0x1234'5678'9abcULL;

// Words 4i to 4i + 3 of the sequence of a key.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter) {
  std::array<std::uint32_t, 4> words{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0,
                                     0};
  auto low_key = static_cast<std::uint32_t>(key);
  auto high_key = static_cast<std::uint32_t>(key >> 32);
  constexpr std::uint64_t first_factor = 0xd2511f53;
  constexpr std::uint64_t second_factor = 0xcd9e8d57;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = first_factor * words[0];
    const std::uint64_t second = second_factor * words[2];
    words = {static_cast<std::uint32_t>(second >> 32) ^ words[1] ^ low_key, static_cast<std::uint32_t>(second),
             static_cast<std::uint32_t>(first >> 32) ^ words[3] ^ high_key, static_cast<std::uint32_t>(first)};
    low_key += 0x9e3779b9;
    high_key += 0xbb67ae85;
  }
  return words;
}

class Generator {
 public:
  Generator(const Library& library, Kind kind, bool on_host, unsigned long long offset) : library_(library) {
    succeeded(library.function<Create>(on_host ? "rocrand_create_generator_host" : "rocrand_create_generator")(&handle_,
                                                                                                               kind),
              "rocrand_create_generator");
    if (kind != Kind::mtgp32 && kind != Kind::lfsr113)
      succeeded(library.function<SetSeed>("rocrand_set_seed")(handle_, seed), "rocrand_set_seed");
    if (offset != 0)
      succeeded(library.function<SetOffset>("rocrand_set_offset")(handle_, offset), "rocrand_set_offset");
  }
  ~Generator() { static_cast<void>(library_.function<Destroy>("rocrand_destroy_generator")(handle_)); }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  void* handle() const { return handle_; }

 private:
  const Library& library_;
  void* handle_ = nullptr;
};

template <typename Value, typename Function, typename... Arguments>
std::vector<Value> on_gpu(const Library& library, Kind kind, const char* name, std::size_t count,
                          unsigned long long offset, Arguments... arguments) {
  const Generator generator(library, kind, false, offset);
  const DeviceArray<Value> numbers(count);
  succeeded(library.function<Function>(name)(generator.handle(), numbers.get(), count, arguments...), name);
  succeeded(hipDeviceSynchronize(), std::string("hipDeviceSynchronize after ") + name);
  return numbers.read();
}

template <typename Value, typename Function, typename... Arguments>
std::vector<Value> on_host(const Library& library, Kind kind, const char* name, std::size_t count,
                           unsigned long long offset, Arguments... arguments) {
  const Generator generator(library, kind, true, offset);
  std::vector<Value> numbers(count);
  succeeded(library.function<Function>(name)(generator.handle(), numbers.data(), count, arguments...), name);
  succeeded(hipDeviceSynchronize(), "hipDeviceSynchronize after the host's numbers");
  return numbers;
}

int tests = 0;

// Equal numbers; of floats that functions of the GPU shaped, up to `units` of the last place of a number of size 1.
template <typename Value>
void compare(const std::vector<Value>& gpu, const std::vector<Value>& wanted, const std::string& what,
             double units = 0) {
  for (std::size_t i = 0; i < gpu.size(); ++i) {
    const double allowed =
        units * (sizeof(Value) == 4 ? 0x1p-23 : 0x1p-52) * std::max(1.0, std::abs(double(wanted[i])));
    const double error = std::abs(double(gpu[i]) - double(wanted[i]));
    expect(error <= allowed, std::format("{}: number {} is {}, wanted is {}", what, i, gpu[i], wanted[i]));
  }
  std::printf("%s: %zu numbers\n", what.c_str(), gpu.size());
  static_cast<void>(std::fflush(stdout));
  ++tests;
}

// Mean and variance keep to five deviations of their estimates.
template <typename Value>
void judge_moments(const std::vector<Value>& numbers, double mean, double variance, double fourth,
                   const std::string& what) {
  double sum = 0;
  for (const Value number : numbers) sum += number;
  const double count = static_cast<double>(numbers.size());
  const double found = sum / count;
  expect(std::abs(found - mean) <= 5 * std::sqrt(variance / count), what + " has a mean of " + std::to_string(found));
  double squares = 0;
  for (const Value number : numbers) squares += (number - mean) * (number - mean);
  const double spread = squares / count;
  expect(std::abs(spread - variance) <= 5 * std::sqrt((fourth - variance * variance) / count),
         what + " has a variance of " + std::to_string(spread));
  ++tests;
}

void try_philox(const Library& library, std::size_t count) {
  constexpr unsigned long long offset = 5;
  for (const unsigned long long start : {0ULL, offset}) {
    const auto words = on_gpu<unsigned, GenerateWords>(library, Kind::philox4x32_10, "rocrand_generate", count, start);
    std::vector<unsigned> wanted(count);
    for (std::size_t i = 0; i < count; ++i) wanted[i] = philox(seed, (i + start) / 4)[(i + start) % 4];
    compare(words, wanted, "Philox4x32-10 from " + std::to_string(start) + " against its paper");
  }
}

void try_kind(const Library& library, Kind kind, const std::string& name, std::size_t count) {
  compare(on_gpu<unsigned, GenerateWords>(library, kind, "rocrand_generate", count, 0),
          on_host<unsigned, GenerateWords>(library, kind, "rocrand_generate", count, 0), name + " words");
  const auto uniform = on_gpu<float, GenerateUniform>(library, kind, "rocrand_generate_uniform", count, 0);
  compare(uniform, on_host<float, GenerateUniform>(library, kind, "rocrand_generate_uniform", count, 0),
          name + " uniform");
  expect(std::ranges::all_of(uniform, [](float number) { return number > 0 && number <= 1; }), name + " is in (0, 1]");
  judge_moments(uniform, 0.5, 1.0 / 12, 1.0 / 80, name + " uniform");
  compare(on_gpu<double, GenerateUniformDouble>(library, kind, "rocrand_generate_uniform_double", count, 0),
          on_host<double, GenerateUniformDouble>(library, kind, "rocrand_generate_uniform_double", count, 0),
          name + " uniform double");
  // The root of −2 log u is small where u is close to 1, and magnifies how u was rounded: the GPU multiplies and adds
  // at once, the host does not.
  constexpr double units = 1024;
  const auto normal = on_gpu<float, GenerateNormal>(library, kind, "rocrand_generate_normal", count, 0, 1.0F, 2.0F);
  compare(normal, on_host<float, GenerateNormal>(library, kind, "rocrand_generate_normal", count, 0, 1.0F, 2.0F),
          name + " normal", units);
  judge_moments(normal, 1, 4, 48, name + " normal");
  compare(on_gpu<double, GenerateNormalDouble>(library, kind, "rocrand_generate_normal_double", count, 0, 0.0, 1.0),
          on_host<double, GenerateNormalDouble>(library, kind, "rocrand_generate_normal_double", count, 0, 0.0, 1.0),
          name + " normal double", units);
}

int main_of(int count, char** words) {
  expect(count == 2, "there is one argument: how many numbers");
  const auto numbers = static_cast<std::size_t>(std::atoi(words[1]));
  expect(numbers >= 4 && numbers % 4 == 0, "the number of numbers is a multiple of 4");
  const Library library("librocrand.so.1");
  int version = 0;
  succeeded(library.function<int(int*)>("rocrand_get_version")(&version), "rocrand_get_version");
  try_philox(library, numbers);
  try_kind(library, Kind::philox4x32_10, "Philox4x32-10", numbers);
  try_kind(library, Kind::xorwow, "XORWOW", numbers);
  try_kind(library, Kind::mrg32k3a, "MRG32k3a", numbers);
  try_kind(library, Kind::mrg31k3p, "MRG31k3p", numbers);
  try_kind(library, Kind::threefry2x32_20, "Threefry2x32-20", numbers);
  try_kind(library, Kind::threefry4x32_20, "Threefry4x32-20", numbers);
  const double mean = 7.5;
  const auto poisson =
      on_gpu<unsigned, GeneratePoisson>(library, Kind::philox4x32_10, "rocrand_generate_poisson", numbers, 0, mean);
  judge_moments(poisson, mean, mean, mean + 3 * mean * mean, "Poisson");
  std::printf("rocRAND %d: %d comparisons\n", version, tests);
  return 0;
}

}  // namespace
}  // namespace wavejit::testing

int main(int count, char** words) { return wavejit::testing::main_of(count, words); }
