// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Algorithms of AMD's rocPRIM that look back: each block adds up what the blocks before it have published, while they
// run on other host threads. States of 8 and of 16 bytes; against plain C++, element by element.
//
//   rocprim_lookback <rounds>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>
// Included after <cstring>, which HIP needs and does not include.
#include <hip/hip_runtime.h>

#include <rocprim/rocprim.hpp>

namespace {

void succeeded(hipError_t status, const char* what) {
  if (status == hipSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, hipGetErrorName(status));
  std::exit(1);
}

template <typename T>
class Array {
 public:
  explicit Array(std::size_t count) : count_(count) {
    succeeded(hipMalloc(&memory_, (count + 1) * sizeof(T)), "hipMalloc");
  }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    succeeded(hipMemcpy(memory_, values.data(), count_ * sizeof(T), hipMemcpyHostToDevice), "hipMemcpy");
  }
  ~Array() { static_cast<void>(hipFree(memory_)); }
  T* get() const { return memory_; }
  std::vector<T> first(std::size_t count) const {
    std::vector<T> values(count);
    succeeded(hipMemcpy(values.data(), memory_, count * sizeof(T), hipMemcpyDeviceToHost), "hipMemcpy back");
    return values;
  }

 private:
  std::size_t count_;
  T* memory_ = nullptr;
};

// Asks how much memory it wants, and then runs.
template <typename Call>
void run(const char* what, Call&& call) {
  std::size_t bytes = 0;
  succeeded(call(nullptr, bytes), what);
  const Array<unsigned char> temporary(bytes);
  succeeded(call(temporary.get(), bytes), what);
  succeeded(hipDeviceSynchronize(), what);
}

template <typename T>
void same(const char* what, const std::vector<T>& got, const std::vector<T>& wanted) {
  if (got == wanted) return;
  std::fprintf(stderr, "%s: not what plain C++ gives\n", what);
  std::exit(1);
}

template <typename T>
void test_select(const char* what, std::mt19937& random, std::size_t count) {
  std::vector<T> values(count);
  std::vector<unsigned char> flags(count);
  std::vector<T> selected;
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(random() % 1000);
    flags[i] = static_cast<unsigned char>(random() % 2);
    if (flags[i] != 0) selected.push_back(values[i]);
  }
  const Array<T> input(values);
  const Array<unsigned char> chosen(flags);
  const Array<T> output(count);
  const Array<unsigned> found(1);
  run(what, [&](void* temporary, std::size_t& bytes) {
    return rocprim::select(temporary, bytes, input.get(), chosen.get(), output.get(), found.get(), count);
  });
  same(what, found.first(1), {static_cast<unsigned>(selected.size())});
  same(what, output.first(selected.size()), selected);
}

template <typename T>
void test_runs(const char* what, std::mt19937& random, std::size_t count) {
  std::vector<T> values;
  std::vector<T> unique;
  std::vector<unsigned> lengths;
  while (values.size() < count) {
    const T value = static_cast<T>(unique.empty() ? 1 : unique.back() + 1 + random() % 3);
    const std::size_t length = std::min<std::size_t>(1 + random() % 7, count - values.size());
    values.insert(values.end(), length, value);
    unique.push_back(value);
    lengths.push_back(static_cast<unsigned>(length));
  }
  const Array<T> input(values);
  const Array<T> uniques(count);
  const Array<unsigned> counts(count);
  const Array<unsigned> runs(1);
  run(what, [&](void* temporary, std::size_t& bytes) {
    return rocprim::run_length_encode(temporary, bytes, input.get(), static_cast<unsigned>(count), uniques.get(),
                                      counts.get(), runs.get());
  });
  same(what, runs.first(1), {static_cast<unsigned>(unique.size())});
  same(what, uniques.first(unique.size()), unique);
  same(what, counts.first(unique.size()), lengths);
  // Where the runs begin that have more than one element.
  std::vector<unsigned> offsets;
  std::vector<unsigned> longer;
  unsigned at = 0;
  for (const unsigned length : lengths) {
    if (length > 1) offsets.push_back(at);
    if (length > 1) longer.push_back(length);
    at += length;
  }
  const Array<unsigned> begins(count);
  run(what, [&](void* temporary, std::size_t& bytes) {
    return rocprim::run_length_encode_non_trivial_runs(temporary, bytes, input.get(), static_cast<unsigned>(count),
                                                       begins.get(), counts.get(), runs.get());
  });
  same(what, runs.first(1), {static_cast<unsigned>(offsets.size())});
  same(what, begins.first(offsets.size()), offsets);
  same(what, counts.first(offsets.size()), longer);
}

template <typename T>
void test_scan(const char* what, std::mt19937& random, std::size_t count) {
  std::vector<T> values(count);
  std::vector<T> sums(count);
  T sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(random() % 100);
    sums[i] = sum += values[i];
  }
  const Array<T> input(values);
  const Array<T> output(count);
  run(what, [&](void* temporary, std::size_t& bytes) {
    return rocprim::inclusive_scan(temporary, bytes, input.get(), output.get(), count, rocprim::plus<T>());
  });
  same(what, output.first(count), sums);
}

}  // namespace

int main(int count, char** words) {
  const int rounds = count > 1 ? std::atoi(words[1]) : 1;
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    const std::size_t size = 100'000 + (random() % 100'000);
    test_select<int>("select, int", random, size);
    test_select<double>("select, double", random, size);
    test_runs<int>("run_length_encode, int", random, size);
    test_scan<unsigned>("inclusive_scan, unsigned", random, size);
    test_scan<std::uint64_t>("inclusive_scan, 64 bits", random, size);
  }
  std::printf("rocPRIM: %d algorithms\n", 6 * rounds);
  return 0;
}
