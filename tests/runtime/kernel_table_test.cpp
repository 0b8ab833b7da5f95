// The kernel table under readers that never stop: what a reader finds is right, and what was inserted is found.
#include "runtime/kernel_table.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "runtime/resolver.h"

namespace wavejit::tests {
namespace {

using runtime::KernelTable;
using runtime::LoadedKernel;

std::uint64_t code_of(std::size_t number) { return std::uint64_t{1} << 63U | number << 16U | number; }

TEST(KernelTable, FindsWhatWasInsertedAlsoAfterGrowing) {
  KernelTable table;
  constexpr std::size_t count = 3000;
  std::vector<LoadedKernel> kernels(count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(table.find(code_of(i)), nullptr);
    table.insert(code_of(i), &kernels[i]);
    ASSERT_EQ(table.find(code_of(i)), &kernels[i]);
  }
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(table.find(code_of(i)), &kernels[i]);
  EXPECT_EQ(table.find(code_of(count)), nullptr);
}

TEST(KernelTable, EightThreadsReadWhileItGrows) {
  KernelTable table;
  constexpr std::size_t count = 600;
  std::vector<LoadedKernel> kernels(count);
  for (std::size_t i = 0; i < count; ++i) kernels[i].key = std::to_string(i);
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
        const LoadedKernel* kernel = table.find(code_of(i));
        if (kernel == nullptr) {
          if (i < known) ++lost;
        } else if (kernel != &kernels[i] || kernel->key != std::to_string(i)) {
          ++wrong;
        }
      }
    });
  }
  for (std::size_t i = 0; i < count; ++i) {
    table.insert(code_of(i), &kernels[i]);
    published.store(i + 1);
    if (i % 64 == 0) std::this_thread::yield();
  }
  readers.clear();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(lost, 0U);
}

}  // namespace
}  // namespace wavejit::tests
