// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel table under readers that never stop: what a reader finds is right, and what was inserted is found.
#include "runtime/kernels/kernel_table.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/kernels/resolver.h"

namespace wavejit::tests {
namespace {

using runtime::KernelTable;
using runtime::LoadedKernels;

// A shape of no family in particular: the table only compares it.
families::Shape shape_of(std::size_t number, const families::Family* family = nullptr) {
  return {.family = family, .code = std::uint64_t{1} << 63U | number << 16U | number};
}

TEST(KernelTable, FindsWhatWasInsertedAlsoAfterGrowing) {
  KernelTable table;
  constexpr std::size_t count = 3000;
  std::vector<LoadedKernels> kernels(count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(table.find(shape_of(i)), nullptr);
    table.insert(shape_of(i), &kernels[i]);
    ASSERT_EQ(table.find(shape_of(i)), &kernels[i]);
  }
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(table.find(shape_of(i)), &kernels[i]);
  EXPECT_EQ(table.find(shape_of(count)), nullptr);
}

TEST(KernelTable, FamiliesMayHaveTheSameCodes) {
  KernelTable table;
  const auto* const first = reinterpret_cast<const families::Family*>(0x1000);
  const auto* const second = reinterpret_cast<const families::Family*>(0x2000);
  constexpr std::size_t count = 200;
  std::vector<LoadedKernels> kernels(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    table.insert(shape_of(i, first), &kernels[i]);
    EXPECT_EQ(table.find(shape_of(i, second)), nullptr);
    table.insert(shape_of(i, second), &kernels[count + i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(table.find(shape_of(i, first)), &kernels[i]);
    ASSERT_EQ(table.find(shape_of(i, second)), &kernels[count + i]);
  }
}

TEST(KernelTable, EightThreadsReadWhileItGrows) {
  KernelTable table;
  constexpr std::size_t count = 600;
  std::vector<LoadedKernels> kernels(count);
  for (std::size_t i = 0; i < count; ++i) kernels[i].shape = shape_of(i);
  std::atomic<std::size_t> published{0};
  std::atomic<std::size_t> wrong{0};
  std::atomic<std::size_t> lost{0};
  std::vector<std::jthread> readers;
  for (unsigned t = 0; t < 8; ++t) {
    readers.emplace_back([&, t] {
      std::size_t i = t;
      while (published.load() < count) {
        const std::size_t known = published.load();
        i = (i + 7919) % count;
        const LoadedKernels* kernel = table.find(shape_of(i));
        if (kernel == nullptr) {
          if (i < known) ++lost;
        } else if (kernel != &kernels[i] || kernel->shape != shape_of(i)) {
          ++wrong;
        }
      }
    });
  }
  for (std::size_t i = 0; i < count; ++i) {
    table.insert(shape_of(i), &kernels[i]);
    published.store(i + 1);
    if (i % 64 == 0) std::this_thread::yield();
  }
  readers.clear();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(lost, 0U);
}

}  // namespace
}  // namespace wavejit::tests
