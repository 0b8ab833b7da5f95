// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of awkward sizes: just as many bytes as a kernel looks at, and not as many as it loads.
#include <gmock/gmock.h>

#include <cstring>
#include <format>

#include "corpus.h"

namespace wavejit::hip_kernels {
namespace {

struct VectorType {
  const char* name;
  unsigned element_bytes;
  unsigned count;

  unsigned bytes() const { return element_bytes * count; }
  // The stride of an array's elements: the next power of two.
  unsigned stride() const { return std::bit_ceil(bytes()); }
};
constexpr VectorType vectors[] = {{"bytes1", 1, 1},   {"bytes2", 1, 2},   {"bytes3", 1, 3},   {"bytes4", 1, 4},
                                  {"bytes5", 1, 5},   {"bytes6", 1, 6},   {"bytes7", 1, 7},   {"bytes8", 1, 8},
                                  {"bytes9", 1, 9},   {"bytes10", 1, 10}, {"bytes11", 1, 11}, {"bytes12", 1, 12},
                                  {"bytes13", 1, 13}, {"bytes14", 1, 14}, {"bytes15", 1, 15}, {"bytes16", 1, 16},
                                  {"bytes17", 1, 17}, {"halves3", 2, 3},  {"dwords3", 4, 3},  {"dwords5", 4, 5},
                                  {"dwords6", 4, 6},  {"dwords7", 4, 7},  {"dwords9", 4, 9},  {"longs3", 8, 3}};

// As the kernels do it: the elements, and their numbers on top.
std::uint32_t sum_of(const VectorType& vector, const std::uint8_t* bytes) {
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < vector.count; ++i) {
    std::uint64_t element = 0;
    std::memcpy(&element, bytes + (i * vector.element_bytes), vector.element_bytes);
    sum += static_cast<std::uint32_t>(element) + i;
  }
  return sum;
}

TEST_P(Corpus, AwkwardSizesReadByAllLanes) {
  // Without optimisation there are no scalar loads, and the whole of an element is loaded: eight bytes of a vector of
  // five. That is the type's size in HIP, and less was allocated: bounds says so.
  if (GetParam().optimisation == 0) leave_out(WAVEJIT_SIMGPU_CHECK_BOUNDS);
  for (const VectorType& vector : vectors) {
    std::vector<std::uint8_t> values(vector.bytes());
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
    const Buffer<std::uint8_t> in(values);
    const Buffer<std::uint32_t> out(64);
    launch("sizes", std::format("uniform_{}", vector.name).c_str(), {1, 1, 1}, {64, 1, 1}, 0, in.get(), out.get());
    expect_same(out.read(), std::vector<std::uint32_t>(64, sum_of(vector, values.data())), vector.name);
  }
}

TEST_P(Corpus, AwkwardSizesReadByEachLane) {
  // Likewise of the last lane's element.
  leave_out(WAVEJIT_SIMGPU_CHECK_BOUNDS);
  for (const VectorType& vector : vectors) {
    std::vector<std::uint8_t> values((63 * vector.stride()) + vector.bytes());
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
    const Buffer<std::uint8_t> in(values);
    const Buffer<std::uint32_t> out(64);
    launch("sizes", std::format("lanes_{}", vector.name).c_str(), {1, 1, 1}, {64, 1, 1}, 0, in.get(), out.get());
    std::vector<std::uint32_t> expected;
    for (unsigned lane = 0; lane < 64; ++lane) {
      expected.push_back(sum_of(vector, values.data() + (std::size_t{lane} * vector.stride())));
    }
    expect_same(out.read(), expected, vector.name);
  }
}

}  // namespace
}  // namespace wavejit::hip_kernels
