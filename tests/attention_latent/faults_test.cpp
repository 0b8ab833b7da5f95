// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What latent attention of other projects got wrong (docs/latent-attention.md has the list), where no other test would
// see it here.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "attention/schedules.h"
#include "attention_latent/latent_run.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

constexpr std::uint16_t not_a_number = 0x7FFF;

void require(wavejit_status status) {
  if (status != WAVEJIT_OK) throw std::runtime_error(wavejit_last_detail());
}

class LatentFaults : public ::testing::TestWithParam<const char*> {
 protected:
  LatentOutput run(const LatentArrays& arrays, const ChangeLatentCall& change = {}) {
    LatentOutput output = run_latent(engine_.get(), arrays, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside O or LSE was written";
    return output;
  }

  Engine engine_{GetParam()};
};

// Seen elsewhere: NaN in half of all calls with 16 splits, and never with 1, 8 or 32. The workspace holds NaN before
// each call, and registers and LDS noise. Sixteen chunks, so that sixteen runs are sixteen.
TEST_P(LatentFaults, SixteenSplitsAreAsOne) {
  leave_out(WAVEJIT_SIMGPU_CHECK_RACES);  // LatentBits looks at them, over fewer keys
  const std::string words = "bf16 b1 q1 k16000 h2 d320/256 lse splits=";
  const LatentOutput whole = run(latent_arrays(words + "1"));
  EXPECT_EQ(std::ranges::count(whole.o, not_a_number), 0);
  for (const char* splits : {"16", "8", "32"})
    if (whole_lists() || splits == std::string("16")) EXPECT_EQ(run(latent_arrays(words + splits)), whole) << splits;
}

// Seen elsewhere: an entry out of range becomes page 0, and NaN that stands there reaches O through a weight of 0. Here
// page 0 is NaN and nobody's, and it is what entries behind the sequences' last pages say, too.
TEST_P(LatentFaults, EntriesBehindTheLastPageNeverShow) {
  for (const char* page : {"1", "16", "64"}) {
    LatentArrays arrays =
        latent_arrays("bf16 b2 q1 k150 h12 d576/512 lse k_lengths=150,67 layout=paged:" + std::string(page));
    const LatentOutput before = run(arrays);
    const std::int64_t size = arrays.experiment.page_size;
    arrays.k.insert(arrays.k.begin(), static_cast<std::size_t>(size * 576), not_a_number);
    ++arrays.pages;
    for (const std::int32_t garbage :
         {0, -1, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min(), 0x40000001}) {
      LatentArrays changed = arrays;
      const auto sequences = attention::program::sequences_of(changed.experiment);
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t column = 0; column < changed.table_columns; ++column) {
          std::int32_t& entry = changed.table[static_cast<std::size_t>((b * changed.table_columns) + column)];
          const bool is_used = column * size < sequences[static_cast<std::size_t>(b)].keys;
          entry = is_used ? entry + 1 : garbage;
        }
      EXPECT_EQ(run(changed), before) << page << ", entries of " << garbage;
    }
  }
}

// Entries of keys that count have no answer where they are no page, and still nothing outside the cache is read: the
// simulated GPU would report it.
TEST_P(LatentFaults, EntriesThatAreNoPageReadNothingOutside) {
  for (const char* page : {"1", "16", "64"})
    for (const std::int32_t lie : {-1, std::numeric_limits<std::int32_t>::max()}) {
      LatentArrays arrays =
          latent_arrays("bf16 b2 q1 k150 h12 d576/512 lse k_lengths=150,67 layout=paged:" + std::string(page));
      std::ranges::fill(arrays.table, lie);
      run(arrays);
    }
}

// Seen elsewhere: work lists of a planner that hold only as long as the lengths do. Here the device's lengths are read
// by each launch: the same call, over and over, with others in the same memory.
TEST_P(LatentFaults, LengthsMayChangeBetweenLaunches) {
  for (const char* how : {"splits=1", "splits=2", "layout=paged:16 splits=2"}) {
    const std::string words = "bf16 b2 q1 k1100 h9 d320/256 lse " + std::string(how);
    const LatentArrays most = latent_arrays(words + " k_lengths=1100,30");
    const LatentArrays fewer = latent_arrays(words + " k_lengths=1028,3");
    const LatentOutput all = run(most);
    const LatentOutput cut = run(most, [&](wavejit_attention_latent_arguments& call) {
      auto* lengths = const_cast<std::int32_t*>(call.sequences.key_lengths);  // the test's own memory
      require(wavejit_device_copy_in(engine_.get(), lengths, fewer.key_lengths.data(), 2 * sizeof(std::int32_t)));
    });
    EXPECT_EQ(cut, run(fewer)) << words;
    EXPECT_NE(cut, all) << words;
  }
}

// Rows of a tensor that lie far apart. Memory that nobody touches is none of the host's.
class FarApart {
 public:
  FarApart(wavejit_engine* engine, std::int64_t rows, std::int64_t stride, std::int64_t elements)
      : engine_(engine), stride_(stride) {
    const auto bytes = static_cast<std::size_t>(((rows - 1) * stride) + elements) * sizeof(std::uint16_t);
    require(wavejit_device_allocate(engine, bytes, &memory_));
  }
  ~FarApart() { wavejit_device_free(engine_, memory_); }
  FarApart(const FarApart&) = delete;
  FarApart& operator=(const FarApart&) = delete;

  void* data() const { return memory_; }
  void write(std::int64_t row, const std::uint16_t* from, std::size_t elements) const {
    require(wavejit_device_copy_in(engine_, static_cast<std::uint16_t*>(memory_) + (row * stride_), from,
                                   elements * sizeof(std::uint16_t)));
  }

 private:
  wavejit_engine* engine_;
  std::int64_t stride_;
  void* memory_ = nullptr;
};

// Seen elsewhere: offsets of 32 bits. Sequences of a dense cache, and pages of 1, 16 and 64 keys, that lie beyond 4
// GiB of its begin: the bits of those that lie together.
TEST_P(LatentFaults, CachesBeyondFourGibibytes) {
  constexpr std::int64_t far = (std::int64_t{1} << 31U) + 64;  // elements: more than 4 GiB
  for (const char* layout : {"", " layout=paged:1", " layout=paged:16", " layout=paged:64"})
    for (const bool runs : {false, true}) {
      const bool pages = *layout != '\0';
      // Over runs whole tiles and granules of pages have kernels of their own.
      const char* lengths = runs ? "k1090 k_lengths=1090,67 splits=2" : "k190 k_lengths=190,67";
      const LatentArrays arrays = latent_arrays(std::string("bf16 b2 q1 h3 d576/512 lse ") + lengths + layout);
      const LatentOutput together = run(arrays);
      const std::int64_t outer = pages ? arrays.pages : 2;
      const auto elements = arrays.k.size() / static_cast<std::size_t>(outer);
      // Pages of one key are more than a thousand: 20 MB apart, which is 24 GB in all.
      const std::int64_t stride = outer > 100 ? std::int64_t{5} << 21U : far / (pages ? 4 : 1) / 64 * 64;
      const FarApart cache(engine_.get(), outer, stride, static_cast<std::int64_t>(elements));
      for (std::int64_t row = 0; row < outer; ++row)
        cache.write(row, arrays.k.data() + (static_cast<std::size_t>(row) * elements), elements);
      const LatentOutput apart = run(arrays, [&](wavejit_attention_latent_arguments& call) {
        call.k.data = cache.data();
        call.k.strides[0] = stride;
      });
      EXPECT_EQ(apart, together) << lengths << layout;
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, LatentFaults, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace wavejit::tests
