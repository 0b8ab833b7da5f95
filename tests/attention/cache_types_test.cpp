// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// K and V of 8 bits: what no row says (value_rows.txt). Each byte is its value, and formats are refused by name.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <format>
#include <string>
#include <vector>

#include "attention/modified.h"
#include "support/byte_floats.h"

namespace wavejit::tests {
namespace {

// What a target reads: two formats of its own, and integers.
std::vector<wavejit_dtype> formats_of(const std::string& target) {
  if (target == "gfx942") return {WAVEJIT_E4M3_FNUZ, WAVEJIT_INT8, WAVEJIT_E5M2_FNUZ};
  return {WAVEJIT_E4M3, WAVEJIT_INT8, WAVEJIT_E5M2};
}

class CacheTypes : public ::testing::TestWithParam<std::string> {
 protected:
  // Once, with every check.
  AttentionOutput run_checked(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }
  std::vector<wavejit_dtype> formats_ = formats_of(GetParam());
  Engine engine_{GetParam()};
};

// The caller names formats, and no two go together, nor one of the other target.
TEST_P(CacheTypes, MixedFormatsAreRefusedByName) {
  const AttentionCase wide = make_case(Storage::bf16, 1, 3, 70, 2, 1, 64, false, 66);
  const AttentionCase which = stored_in_bytes(wide, StoredBytes{.type = formats_.front()});
  const auto refused = [&](const std::string& field, const ChangeForwardCall& change) {
    const AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_NE(output.status, WAVEJIT_OK) << field;
    EXPECT_TRUE(output.detail.starts_with(field)) << output.detail;
  };
  using Call = wavejit_attention_forward_arguments;
  const bool fnuz = GetParam() == "gfx942";
  for (const wavejit_dtype other : {WAVEJIT_BF16, WAVEJIT_FP16, WAVEJIT_INT8, formats_.back()}) {
    refused("v.dtype", [&](Call& call) { call.v.dtype = other; });
    // Keys of 16 bits have the queries' type.
    refused(other == WAVEJIT_FP16 ? "k.dtype" : "v.dtype", [&](Call& call) { call.k.dtype = other; });
  }
  // Both of the other target's encoding, whose NaN and whose unit are others.
  for (const wavejit_dtype other :
       fnuz ? std::array{WAVEJIT_E4M3, WAVEJIT_E5M2} : std::array{WAVEJIT_E4M3_FNUZ, WAVEJIT_E5M2_FNUZ})
    refused("k.dtype", [&](Call& call) { call.k.dtype = call.v.dtype = other; });
  // Queries of 8 bits beside keys of others, and O in a type that has too few of them.
  refused("k.dtype", [&](Call& call) {
    call.q.dtype = WAVEJIT_INT8;
    call.v.dtype = WAVEJIT_BF16;
  });
  refused("q.dtype", [](Call& call) { call.q.dtype = WAVEJIT_E5M2; });
  refused("o.dtype", [](Call& call) { call.o.dtype = WAVEJIT_E5M2; });
}

// Each byte is what its format says, and NaN and infinities stay what they are: one key with one value of each.
TEST_P(CacheTypes, EveryByteIsItsValue) {
  for (const wavejit_dtype type : formats_) {
    const ByteFormat& format = byte_format(type);
    for (const Storage storage : {Storage::bf16, Storage::fp16}) {
      SCOPED_TRACE(std::format("{} {}", format.name, storage == Storage::bf16 ? "bf16" : "fp16"));
      // One key: O is its value, whatever the score.
      AttentionCase which = make_case(storage, 1, 1, 1, 4, 4, 64, false, 71);
      for (int byte = 0; byte < 256; ++byte) {
        float value = value_of_byte(format, static_cast<std::uint8_t>(byte));
        which.inputs.v[static_cast<std::size_t>(byte)] = value;
      }
      which.bytes = StoredBytes{.type = type};
      const AttentionOutput output = run_checked(which);
      for (std::size_t byte = 0; byte < 256; ++byte) {
        const float wanted = value_of_byte(format, static_cast<std::uint8_t>(byte));
        const float got = from_storage(storage, output.o[byte]);
        EXPECT_TRUE(std::isnan(wanted) ? std::isnan(got) : got == wanted) << byte << ": " << got << ", not " << wanted;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CacheTypes, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
