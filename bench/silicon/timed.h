// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the programs of this folder have in common: each takes a pattern and the names of sizes, and prints
// "<name of the size> <microseconds>" a line.
#pragma once
#include <hip/hip_runtime.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace silicon {

inline void check(hipError_t error, const char* what) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, hipGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) silicon::check(call, #call)

// Memory of the device, all zero: no kernel here takes longer or less long for what it reads, but for indices.
template <class T>
struct Array {
  T* data = nullptr;
  explicit Array(std::size_t count) {
    CHECK(hipMalloc(&data, count * sizeof(T)));
    CHECK(hipMemset(data, 0, count * sizeof(T)));
  }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    CHECK(hipMemcpy(data, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
  }
  ~Array() { CHECK(hipFree(data)); }
  Array(const Array&) = delete;
  operator T*() const { return data; }
};

// Between an event before the work and one behind it, the second time that it is done.
template <class Work>
double microseconds(Work work) {
  hipEvent_t start, stop;
  CHECK(hipEventCreate(&start));
  CHECK(hipEventCreate(&stop));
  work();
  CHECK(hipDeviceSynchronize());
  CHECK(hipEventRecord(start));
  work();
  CHECK(hipEventRecord(stop));
  CHECK(hipEventSynchronize(stop));
  float milliseconds = 0;
  CHECK(hipEventElapsedTime(&milliseconds, start, stop));
  CHECK(hipEventDestroy(start));
  CHECK(hipEventDestroy(stop));
  return milliseconds * 1e3;
}

inline unsigned round_up(unsigned count, unsigned part) { return (count + part - 1) / part; }

// The numbers in the name of a size: of "64x64_mask3" 64, 64 and 3.
using Numbers = std::vector<unsigned>;
inline Numbers numbers_in(const char* name) {
  Numbers numbers;
  while (*name != 0) {
    char* behind = nullptr;
    if (std::isdigit(static_cast<unsigned char>(*name)) != 0) {
      numbers.push_back(std::strtoul(name, &behind, 10));
      name = behind;
    } else {
      ++name;
    }
  }
  return numbers;
}

// For each size of the command line what `run` says of it.
inline int each_size(int count, char** words, double (*run)(const std::string& pattern, const Numbers& numbers)) {
  if (count < 3) {
    std::fprintf(stderr, "%s <pattern> <size>…\n", words[0]);
    return 2;
  }
  for (int i = 2; i < count; ++i) std::printf("%s %.4f\n", words[i], run(words[1], numbers_in(words[i])));
  return 0;
}

}  // namespace silicon
