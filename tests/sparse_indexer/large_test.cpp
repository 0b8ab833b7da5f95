// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sparse attention beyond 4 GiB: caches, scores and lists whose rows lie so far apart that an offset of 32 bits wraps,
// of the indexer and of the calls that read its lists. The bits are those of tensors that lie together. Memory that
// nobody touches is none of the host's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/attention_run.h"
#include "support/normal_numbers.h"

namespace wavejit::tests {
namespace {

void require(wavejit_status status) {
  if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
}

// Rows of some elements, `stride` elements apart.
template <typename Element>
class Rows {
 public:
  Rows(wavejit_engine* engine, std::int64_t rows, std::int64_t elements, std::int64_t stride)
      : engine_(engine), rows_(rows), elements_(elements), stride_(stride) {
    require(wavejit_device_allocate(engine, bytes(((rows - 1) * stride) + elements), &memory_));
  }
  ~Rows() { wavejit_device_free(engine_, memory_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  Element* data() const { return static_cast<Element*>(memory_); }
  std::int64_t stride() const { return stride_; }
  void write(const std::vector<Element>& values) const {
    for (std::int64_t row = 0; row < rows_; ++row)
      require(wavejit_device_copy_in(engine_, data() + (row * stride_), values.data() + (row * elements_),
                                     bytes(elements_)));
  }
  std::vector<Element> read() const {
    std::vector<Element> values(static_cast<std::size_t>(rows_ * elements_));
    for (std::int64_t row = 0; row < rows_; ++row)
      require(wavejit_device_copy_out(engine_, values.data() + (row * elements_), data() + (row * stride_),
                                      bytes(elements_)));
    return values;
  }

 private:
  static std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(Element); }
  wavejit_engine* engine_;
  std::int64_t rows_;
  std::int64_t elements_;
  std::int64_t stride_;
  void* memory_ = nullptr;
};

std::vector<std::uint16_t> bf16_numbers(std::int64_t count, std::uint64_t seed) {
  NormalNumbers normal(seed);
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::uint16_t& value : values) value = to_storage(Storage::bf16, normal());
  return values;
}
std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  NormalNumbers normal(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal();
  return values;
}

class SparseBeyond4GiB : public ::testing::TestWithParam<const char*> {
 protected:
  void ran(wavejit_status status) {
    if (status == WAVEJIT_OK) status = wavejit_device_synchronize(engine_.get());
    ASSERT_EQ(status, WAVEJIT_OK) << wavejit_last_detail();
    std::string reports(wavejit_simgpu_take_reports(nullptr, 0) + 1, '\0');
    reports.resize(wavejit_simgpu_take_reports(reports.data(), reports.size()));
    EXPECT_EQ(reports, "");
  }
  wavejit_engine* engine() { return engine_.get(); }

 private:
  Engine engine_{GetParam()};
};

// In bytes: two rows are further apart than 32 bits say, and not by a multiple of what they hold.
constexpr std::int64_t far = (std::int64_t{1} << 32U) + 4096;

struct Written {
  std::vector<float> scores;
  std::vector<std::int32_t> indices;
  std::vector<float> values;
  bool operator==(const Written&) const = default;
};

// Keys and their scales, scores and lists of two sequences; of one row each, and of rows that share their keys.
TEST_P(SparseBeyond4GiB, TheIndexerHasTheBitsOfTensorsThatLieTogether) {
  constexpr std::int64_t heads = 40;
  constexpr std::int64_t dims = 128;
  constexpr std::int64_t keys = 90;
  constexpr std::int64_t top = 30;
  for (const std::int64_t rows : {1, 4})
    for (const std::int64_t page : {0, 1, 16}) {
      SCOPED_TRACE(std::to_string(rows) + " rows, pages of " + std::to_string(page));
      const std::int64_t columns = page == 0 ? 1 : (keys + page - 1) / page;
      const std::int64_t outer = 2 * columns;
      const std::int64_t inner = page == 0 ? keys : page;
      const Rows<std::uint16_t> queries(engine(), 1, 2 * rows * heads * dims, 0);
      const Rows<float> weights(engine(), 1, 2 * rows * heads, 0);
      const Rows<std::int32_t> table(engine(), 1, outer, 0);
      queries.write(bf16_numbers(2 * rows * heads * dims, 1));
      weights.write(numbers(2 * rows * heads, 2));
      std::vector<std::int32_t> entries;
      for (std::int32_t entry = 0; entry < outer; ++entry)
        entries.push_back(static_cast<std::int32_t>(outer) - 1 - entry);
      table.write(entries);
      const auto run = [&](std::int64_t apart, std::int64_t of_lists, Written& written) {
        const auto stride = [](std::int64_t bytes, std::int64_t elements, std::size_t size) {
          return std::max(bytes / static_cast<std::int64_t>(size), elements);
        };
        const Rows<std::uint16_t> cache(engine(), outer, inner * dims, stride(apart, inner * dims, 2));
        const Rows<float> scales(engine(), outer, inner, stride(apart, inner, 4));
        const Rows<float> scores(engine(), 2 * rows, keys, stride(of_lists, keys, 4));
        const Rows<std::int32_t> indices(engine(), 2 * rows, top, stride(of_lists, top, 4));
        const Rows<float> values(engine(), 2 * rows, top, stride(of_lists, top, 4));
        cache.write(bf16_numbers(outer * inner * dims, 3));
        scales.write(numbers(outer * inner, 4));
        wavejit_sparse_indexer_arguments call{};
        call.head.size = sizeof call;
        call.head.family = WAVEJIT_SPARSE_INDEXER;
        call.queries = wavejit_dense_tensor(queries.data(), WAVEJIT_BF16, 2, rows, heads, dims);
        call.keys = wavejit_dense_tensor(cache.data(), WAVEJIT_BF16, outer, inner, 1, dims);
        call.keys.strides[0] = cache.stride();
        call.weights = wavejit_dense_tensor(weights.data(), WAVEJIT_FP32, 2, rows, heads, 1);
        call.key_scales = wavejit_dense_tensor(scales.data(), WAVEJIT_FP32, outer, inner, 1, 1);
        call.key_scales.strides[0] = scales.stride();
        call.scores = wavejit_dense_tensor(scores.data(), WAVEJIT_FP32, 2, rows, 1, keys);
        call.scores.strides[1] = call.scores.strides[2] = scores.stride();
        call.scores.strides[0] = rows * scores.stride();
        if (page != 0) {
          call.pages.block_table = table.data();
          call.pages.table_columns = columns;
          call.max_key_length = keys;
        }
        call.indices = indices.data();
        call.values = values.data();
        call.indices_row_stride = indices.stride();
        call.top_k = top;
        ran(wavejit_sparse_indexer(engine(), &call, nullptr));
        written = {.scores = scores.read(), .indices = indices.read(), .values = values.read()};
      };
      Written near;
      run(0, 0, near);
      EXPECT_EQ(static_cast<std::int64_t>(std::ranges::count(near.indices, -1)), 0);
      Written apart;
      // Pages of one key are many: a few of these gigabytes apart.
      run(far / (columns > 8 ? 32 : 1), far / 2, apart);
      EXPECT_EQ(apart, near);
    }
}

// Lists whose rows lie apart, and slots of pages that do.
TEST_P(SparseBeyond4GiB, ListsOfAttentionHaveTheBitsOfTensorsThatLieTogether) {
  constexpr std::int64_t heads = 8;
  constexpr std::int64_t kv_heads = 2;
  constexpr std::int64_t dims = 64;
  constexpr std::int64_t page = 16;
  constexpr std::int64_t pages = 5;
  constexpr std::int64_t top = 70;
  constexpr std::int64_t queries = 3;
  const Rows<std::uint16_t> q(engine(), 1, queries * heads * dims, 0);
  q.write(bf16_numbers(queries * heads * dims, 5));
  std::vector<std::int32_t> entries;
  for (std::int32_t at = 0; at < queries * top; ++at)
    entries.push_back(at % 11 == 3 ? -1 : (at * 37) % static_cast<std::int32_t>(pages * page));
  const auto run = [&](std::int64_t apart) {
    const std::int64_t elements = page * kv_heads * dims;
    const std::int64_t stride = std::max(apart / 2, elements);
    const Rows<std::uint16_t> k(engine(), pages, elements, stride);
    const Rows<std::uint16_t> v(engine(), pages, elements, stride);
    const Rows<std::uint16_t> o(engine(), 1, queries * heads * dims, 0);
    const Rows<std::int32_t> indices(engine(), queries, top, std::max(apart / 4, top));
    k.write(bf16_numbers(pages * elements, 6));
    v.write(bf16_numbers(pages * elements, 7));
    indices.write(entries);
    wavejit_attention_forward_arguments call{};
    call.head.size = sizeof call;
    call.head.family = WAVEJIT_ATTENTION_FORWARD;
    call.q = wavejit_dense_tensor(q.data(), WAVEJIT_BF16, queries, 1, heads, dims);
    call.o = wavejit_dense_tensor(o.data(), WAVEJIT_BF16, queries, 1, heads, dims);
    call.k = wavejit_dense_tensor(k.data(), WAVEJIT_BF16, pages, page, kv_heads, dims);
    call.v = wavejit_dense_tensor(v.data(), WAVEJIT_BF16, pages, page, kv_heads, dims);
    call.k.strides[0] = call.v.strides[0] = stride;
    call.modifiers.scale = 0.125F;
    call.key_list.indices = indices.data();
    call.key_list.top_k = top;
    call.key_list.row_stride = indices.stride();
    call.key_list.slots = 1;
    ran(wavejit_attention_forward(engine(), &call, nullptr));
    return o.read();
  };
  const std::vector<std::uint16_t> near = run(0);
  EXPECT_NE(std::ranges::count(near, 0), std::ssize(near));
  EXPECT_EQ(run(far), near);
}

// The same of latent attention (its caches: LatentFaults.CachesBeyondFourGibibytes, LatentLists.NameSlotsBeyond4GiB).
TEST_P(SparseBeyond4GiB, ListsOfLatentAttentionHaveTheBitsOfListsThatLieTogether) {
  constexpr std::int64_t heads = 3;
  constexpr std::int64_t keys = 80;
  constexpr std::int64_t top = 70;
  constexpr std::int64_t queries = 3;
  const Rows<std::uint16_t> q(engine(), 1, queries * heads * 576, 0);
  const Rows<std::uint16_t> k(engine(), 1, keys * 576, 0);
  q.write(bf16_numbers(queries * heads * 576, 8));
  k.write(bf16_numbers(keys * 576, 9));
  std::vector<std::int32_t> entries;
  for (std::int32_t at = 0; at < queries * top; ++at)
    entries.push_back(at % 11 == 3 ? -1 : (at * 37) % static_cast<std::int32_t>(keys));
  const auto run = [&](std::int64_t apart) {
    const Rows<std::uint16_t> o(engine(), 1, queries * heads * 512, 0);
    const Rows<std::int32_t> indices(engine(), queries, top, std::max(apart / 4, top));
    indices.write(entries);
    wavejit_attention_latent_arguments call{};
    call.head.size = sizeof call;
    call.head.family = WAVEJIT_ATTENTION_LATENT;
    call.q = wavejit_dense_tensor(q.data(), WAVEJIT_BF16, 1, queries, heads, 576);
    call.o = wavejit_dense_tensor(o.data(), WAVEJIT_BF16, 1, queries, heads, 512);
    call.k = wavejit_dense_tensor(k.data(), WAVEJIT_BF16, 1, keys, 1, 576);
    call.modifiers.scale = 0.0721688F;
    call.key_list.indices = indices.data();
    call.key_list.top_k = top;
    call.key_list.row_stride = indices.stride();
    ran(wavejit_attention_latent(engine(), &call, nullptr));
    return o.read();
  };
  EXPECT_EQ(run(far), run(0));
}

INSTANTIATE_TEST_SUITE_P(Targets, SparseBeyond4GiB, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
