// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache_append into rows of latent attention: 576 elements as two views of one tensor, 656 bytes with a scale for each
// 128, 584 with an exponent for each 64; byte by byte against what the formats say, nothing else written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/byte_floats.h"
#include "support/normal_numbers.h"
#include "support/storage_types.h"
#include "support/test_device.h"
#include "wavejit/simgpu.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t tokens = 11;
constexpr std::size_t pages = 4;
constexpr std::size_t page_size = 8;
constexpr std::size_t rope_dims = 64;

class CacheAppendLatent : public ::testing::TestWithParam<const char*> {
 protected:
  CacheAppendLatent() {
    wavejit::EngineOptions options;
    options.device = test_device(GetParam());
    options.cache_mode = "off";
    engine_ = std::make_unique<wavejit::Engine>(options);
    for (std::size_t token = 0; token < tokens; ++token)
      slots_.push_back(token % 5 == 4 ? -1 : static_cast<std::int64_t>((token * 7 + 3) % (pages * page_size)));
  }

  static std::vector<std::uint16_t> rows_of(std::size_t dims, std::uint64_t seed) {
    NormalNumbers normal(seed);
    std::vector<std::uint16_t> rows(tokens * dims);
    for (std::uint16_t& bits : rows) bits = to_storage(Storage::bf16, normal());
    return rows;
  }

  // The cache after the call, which began as noise.
  std::vector<std::uint8_t> run(const std::vector<std::uint16_t>& rope, const std::vector<std::uint16_t>& latent,
                                std::size_t columns, std::size_t page_bytes, bool turn = false) {
    const auto latent_dims = static_cast<std::int64_t>(latent.size() / tokens);
    const wavejit::DeviceBuffer k(*engine_, rope);
    const wavejit::DeviceBuffer v(*engine_, latent);
    const wavejit::DeviceBuffer cache(*engine_, std::vector<std::uint8_t>(pages * page_bytes, 0xFF));
    const wavejit::DeviceBuffer slots(*engine_, slots_);
    std::vector<std::int32_t> places;
    for (std::size_t token = 0; token < tokens; ++token) places.push_back(static_cast<std::int32_t>((token * 31) + 1));
    const wavejit::DeviceBuffer positions(*engine_, places);
    wavejit::CacheAppend call;
    call.k = wavejit::dense(k, WAVEJIT_BF16, 1, tokens, 1, rope_dims);
    call.v = wavejit::dense(v, WAVEJIT_BF16, 1, tokens, 1, latent_dims);
    call.slots = slots.data();
    call.slot_bytes = 8;
    if (turn) {
      call.rotary = WAVEJIT_ROTARY_INTERLEAVED;
      call.rotary_dim = rope_dims;
      call.rotary_base = 10000;
      call.positions = positions.data();
    }
    if (columns == 576) {
      // One tensor, two views of its rows.
      call.v_cache = wavejit::dense(cache, WAVEJIT_BF16, pages, page_size, 1, 512);
      call.v_cache.strides[0] = page_size * 576;
      call.v_cache.strides[1] = call.v_cache.strides[2] = 576;
      call.k_cache = call.v_cache;
      call.k_cache.data = static_cast<char*>(call.v_cache.data) + 1024;
      call.k_cache.sizes[3] = rope_dims;
    } else {
      const bool ocp = std::string(GetParam()) == "gfx950";
      call.k_cache = wavejit::dense(cache, ocp ? WAVEJIT_E4M3 : WAVEJIT_E4M3_FNUZ, pages, page_size, 1,
                                    static_cast<std::int64_t>(columns));
      call.k_cache.strides[0] = static_cast<std::int64_t>(page_bytes);
    }
    described_ = engine_->describe(call);
    wavejit_simgpu_take_reports(nullptr, 0);
    engine_->cache_append(call);
    engine_->synchronize();
    EXPECT_EQ(wavejit_simgpu_take_reports(nullptr, 0), 0U);
    return cache.read<std::uint8_t>();
  }

  const ByteFormat& format() const {
    return byte_format(std::string(GetParam()) == "gfx950" ? WAVEJIT_E4M3 : WAVEJIT_E4M3_FNUZ);
  }
  float limit() const { return format().fnuz ? 240 : 448; }

  struct Tile {
    float greatest = 0;
    std::vector<float> numbers;
  };
  static Tile tile_of(const std::vector<std::uint16_t>& latent, std::size_t first, std::size_t dims) {
    Tile tile;
    for (std::size_t dim = 0; dim < dims; ++dim) {
      tile.numbers.push_back(from_storage(Storage::bf16, latent[first + dim]));
      tile.greatest = std::max(tile.greatest, std::fabs(tile.numbers.back()));
    }
    return tile;
  }

  std::unique_ptr<wavejit::Engine> engine_;
  std::vector<std::int64_t> slots_;
  std::string described_;
};

TEST_P(CacheAppendLatent, RowsOf576ElementsAreTwoViews) {
  const auto rope = rows_of(rope_dims, 1);
  const auto latent = rows_of(512, 2);
  const auto cache = run(rope, latent, 576, page_size * 576 * 2);
  std::vector<std::uint8_t> wanted(cache.size(), 0xFF);
  for (std::size_t token = 0; token < tokens; ++token) {
    if (slots_[token] < 0) continue;
    std::uint8_t* row = wanted.data() + (static_cast<std::size_t>(slots_[token]) * 1152);
    std::memcpy(row, latent.data() + (token * 512), 1024);
    std::memcpy(row + 1024, rope.data() + (token * rope_dims), 128);
  }
  EXPECT_EQ(cache, wanted);
}

TEST_P(CacheAppendLatent, RowsOf656Bytes) {
  const auto rope = rows_of(rope_dims, 3);
  auto latent = rows_of(512, 4);
  std::fill_n(latent.begin() + 128, 128, std::uint16_t{0});  // a tile of zeros has the least scale
  constexpr std::size_t page_bytes = (page_size * 656) + 64;
  const auto cache = run(rope, latent, 656, page_bytes);
  EXPECT_THAT(described_, HasSubstr("cache=e4m3"));
  EXPECT_THAT(described_, HasSubstr("row_scales=128"));
  std::vector<std::uint8_t> wanted(cache.size(), 0xFF);
  for (std::size_t token = 0; token < tokens; ++token) {
    if (slots_[token] < 0) continue;
    const auto slot = static_cast<std::size_t>(slots_[token]);
    std::uint8_t* row = wanted.data() + (slot / page_size * page_bytes) + (slot % page_size * 656);
    for (std::size_t tile = 0; tile < 4; ++tile) {
      const Tile of = tile_of(latent, (token * 512) + (tile * 128), 128);
      const float scale = std::max(of.greatest / limit(), 0x1p-100F);
      for (std::size_t dim = 0; dim < 128; ++dim)
        row[(tile * 128) + dim] = nearest_byte(format(), of.numbers[dim] / scale);
      std::memcpy(row + 512 + (tile * 4), &scale, 4);
    }
    std::memcpy(row + 528, rope.data() + (token * rope_dims), 128);
  }
  EXPECT_EQ(cache, wanted);
}

TEST_P(CacheAppendLatent, RowsOf584Bytes) {
  const auto rope = rows_of(rope_dims, 5);
  auto latent = rows_of(448, 6);
  // Tiles whose greatest number is a power of two times the limit, and just beyond.
  for (std::size_t dim = 0; dim < 64; ++dim) latent[dim] = latent[64 + dim] = to_storage(Storage::bf16, 0.25F);
  latent[7] = to_storage(Storage::bf16, limit() / 64);
  latent[64 + 9] = static_cast<std::uint16_t>(to_storage(Storage::bf16, limit() / 64) + 1);
  constexpr std::size_t page_bytes = (page_size * 584) + 16;
  const auto cache = run(rope, latent, 584, page_bytes);
  EXPECT_THAT(described_, HasSubstr("row_scales=64"));
  std::vector<std::uint8_t> wanted(cache.size(), 0xFF);
  for (std::size_t token = 0; token < tokens; ++token) {
    if (slots_[token] < 0) continue;
    const auto slot = static_cast<std::size_t>(slots_[token]);
    std::uint8_t* page = wanted.data() + (slot / page_size * page_bytes);
    std::uint8_t* row = page + (slot % page_size * 576);
    for (std::size_t tile = 0; tile < 7; ++tile) {
      const Tile of = tile_of(latent, (token * 448) + (tile * 64), 64);
      int exponent = -100;
      while (std::ldexp(limit(), exponent) < of.greatest) ++exponent;
      for (std::size_t dim = 0; dim < 64; ++dim)
        row[(tile * 64) + dim] = nearest_byte(format(), std::ldexp(of.numbers[dim], -exponent));
      page[(page_size * 576) + (slot % page_size * 8) + tile] = static_cast<std::uint8_t>(exponent + 127);
    }
    std::memcpy(row + 448, rope.data() + (token * rope_dims), 128);
  }
  EXPECT_EQ(cache, wanted);
}

// The rope is turned on the way as keys are: the same bits as in rows of 576.
TEST_P(CacheAppendLatent, TheRopeIsTurned) {
  const auto rope = rows_of(rope_dims, 7);
  const auto latent = rows_of(512, 8);
  const auto plain = run(rope, latent, 576, page_size * 576 * 2, true);
  const auto narrow = run(rope, latent, 656, page_size * 656, true);
  for (const std::int64_t slot : slots_) {
    if (slot < 0) continue;
    const auto row = static_cast<std::ptrdiff_t>(slot);
    EXPECT_TRUE(std::equal(plain.begin() + (row * 1152) + 1024, plain.begin() + (row * 1152) + 1152,
                           narrow.begin() + (row * 656) + 528));
    EXPECT_FALSE(std::equal(plain.begin() + (row * 1152) + 1024, plain.begin() + (row * 1152) + 1152,
                            reinterpret_cast<const std::uint8_t*>(rope.data())));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CacheAppendLatent, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
