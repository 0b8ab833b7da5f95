// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// K and V of 8 bits: against float64, and bit by bit against the same values in the queries' type. All around them is
// NaN.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <format>
#include <string>
#include <utility>
#include <vector>

#include "attention/modified.h"
#include "support/byte_floats.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

// What a target reads: two formats of its own, and integers.
std::vector<wavejit_dtype> formats_of(const std::string& target) {
  if (target == "gfx942") return {WAVEJIT_E4M3_FNUZ, WAVEJIT_INT8, WAVEJIT_E5M2_FNUZ};
  return {WAVEJIT_E4M3, WAVEJIT_INT8, WAVEJIT_E5M2};
}

enum class Scales : std::uint8_t { none, tensor, heads, batches_and_heads };

// Powers of two: what is multiplied with them is a value of bf16 and, of these cases, of fp16. Integers reach as far as
// numbers do.
StoredBytes bytes_of(const AttentionCase& which, wavejit_dtype type, Scales scales) {
  StoredBytes bytes{.type = type};
  if (scales == Scales::none) return bytes;
  bytes.batches = scales == Scales::batches_and_heads ? which.inputs.batch : 1;
  bytes.heads = scales == Scales::tensor ? 1 : which.inputs.kv_heads;
  const float step = type == WAVEJIT_INT8 ? 1.0F / 32 : 1.0F;
  for (int i = 0; i < bytes.batches * bytes.heads; ++i) {
    bytes.k_scale.push_back(step * std::exp2(static_cast<float>(i % 3) - 1));
    bytes.v_scale.push_back(step * std::exp2(1 - static_cast<float>(i % 4)));
  }
  return bytes;
}

class CacheTypes : public ::testing::TestWithParam<std::string> {
 protected:
  static AttentionCase make(Storage storage, int batch, int queries, int keys, int heads, int kv_heads, int dim,
                            bool causal, std::uint64_t seed, int dim_v = 0) {
    return make_case(storage, batch, queries, keys, heads, kv_heads, dim, causal, seed, 1.0, dim_v);
  }

  // Once, with every check.
  AttentionOutput run_checked(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }
  AttentionOutput in_wide_types(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    AttentionOutput output = run_attention(engine_.get(), widened(which));
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    return output;
  }
  static void expect_equal(const AttentionOutput& bytes, const AttentionOutput& wide) {
    EXPECT_NE(bytes.kernel_spec.find(" cache="), std::string::npos) << bytes.kernel_spec;
    EXPECT_EQ(wide.kernel_spec.find(" cache="), std::string::npos) << wide.kernel_spec;
    EXPECT_TRUE(bytes.o == wide.o) << "O differs: " << bytes.kernel_spec;
    EXPECT_TRUE(bits_of(bytes.lse) == bits_of(wide.lse)) << "LSE differs: " << bytes.kernel_spec;
  }

  // On every pipeline, under every schedule, against float64 and the same values in the queries' type.
  void check(const AttentionCase& which) {
    SCOPED_TRACE(byte_format(which.bytes->type).name);
    expect_equal(pipelines_.check(which), in_wide_types(which));
  }
  void expect_same(const AttentionCase& which) {
    SCOPED_TRACE(byte_format(which.bytes->type).name);
    expect_equal(run_checked(which), in_wide_types(which));
  }

  std::vector<wavejit_dtype> formats_ = formats_of(GetParam());
  Engine engine_{GetParam()};
  Pipelines pipelines_{GetParam()};
};

TEST_P(CacheTypes, DenseKeysMatchFloat64AndTheBitsOfThoseInWideTypes) {
  int index = 0;
  for (const wavejit_dtype type : formats_) {
    if (!in_part(index++, 2)) continue;
    AttentionCase which = make(Storage::bf16, 2, 33, 130, 4, 2, 128, true, 1);
    check(stored_in_bytes(which, bytes_of(which, type, Scales::none)));
    which = make(Storage::fp16, 1, 3, 200, 8, 2, 64, false, 2);
    check(stored_in_bytes(which, bytes_of(which, type, Scales::tensor)));
    which = make(Storage::bf16, 2, 1, 77, 8, 2, 64, true, 3);
    which.layout = Layout::padded;
    check(stored_in_bytes(which, bytes_of(which, type, Scales::batches_and_heads)));
    which = make(Storage::fp16, 1, 130, 65, 2, 1, 192, true, 4, 128);
    which.layout = Layout::bhsd;
    check(stored_in_bytes(which, bytes_of(which, type, Scales::heads)));
  }
}

TEST_P(CacheTypes, MasksAndModifiers) {
  const wavejit_dtype type = formats_.front();
  AttentionCase which = make(Storage::fp16, 2, 20, 150, 4, 2, 128, true, 11);
  add_bias(which, 1, 4, 1.0, 12);
  add_alibi(which, 1);
  add_sink(which, 0.5);
  check(stored_in_bytes(which, bytes_of(which, type, Scales::heads)));
  which = make(Storage::bf16, 2, 1, 300, 6, 2, 64, false, 13);
  which.inputs.window = true;
  which.inputs.window_left = 50;
  which.inputs.window_right = 3;
  which.inputs.softcap = 5;
  check(stored_in_bytes(which, bytes_of(which, type, Scales::batches_and_heads)));
  which.inputs.scale = -0.2;
  which.output_fp32 = true;
  expect_same(stored_in_bytes(which, bytes_of(which, type, Scales::tensor)));
  // A scale of K may be negative, as that of scores may: what it is multiplied with is an argument.
  StoredBytes negative = bytes_of(which, type, Scales::heads);
  for (float& scale : negative.k_scale) scale = -scale;
  check(stored_in_bytes(which, negative));
}

// Neither powers of two nor near 1.
TEST_P(CacheTypes, AnyScalesMatchFloat64) {
  int index = 0;
  for (const wavejit_dtype type : formats_) {
    if (!in_part(index++, 2)) continue;
    AttentionCase which = make(Storage::bf16, 2, 9, 140, 4, 2, 128, true, 14);
    StoredBytes bytes = bytes_of(which, type, Scales::batches_and_heads);
    bytes.k_scale = {0.8125F, 1.375F, 0.6875F, 1.125F};
    bytes.v_scale = {37.5F, 0.0078125F, 1.0F, 0.9375F};
    if (type == WAVEJIT_INT8)
      for (std::vector<float>* scales : {&bytes.k_scale, &bytes.v_scale})
        for (float& scale : *scales) scale /= 32;
    which = stored_in_bytes(which, bytes);
    pipelines_.check(which);
    add_sink(which, 1.0);
    which.inputs.softcap = 8;
    pipelines_.check(which);
    which.splits = 2;
    run_checked(which);
  }
}

TEST_P(CacheTypes, KeysInPagesAndBehindPadding) {
  const wavejit_dtype type = formats_.front();
  AttentionCase which = make(Storage::bf16, 3, 5, 200, 4, 2, 128, true, 21);
  which.inputs.key_lengths = {0, 77, 200};
  which = stored_in_bytes(which, bytes_of(which, type, Scales::batches_and_heads));
  const AttentionOutput wide = in_wide_types(which);
  expect_equal(run_checked(which), wide);
  int index = 0;
  for (const int size : {1, 16, 48, 64, 528}) {
    if (!in_part(index++, 2)) continue;
    SCOPED_TRACE(size);
    which.pages = Pages{.size = size, .heads_first = size == 16, .in_turn = size == 48, .list = size != 16};
    which.first_keys = {};
    expect_equal(pipelines_.check(which), wide);
    which.first_keys = {5, 17, 130};
    expect_equal(run_checked(which), wide);
  }
  which.pages.reset();
  which.inputs.key_lengths = {200, 70, 133};
  which.first_keys = {0, 130, 67};
  check(which);
}

TEST_P(CacheTypes, EveryHeadDimAndRowsOfEveryNumber) {
  const wavejit_dtype type = formats_.back();
  int index = 0;
  for (const auto& [dim, dim_v] : {std::pair{64, 64}, {128, 128}, {192, 128}, {256, 256}}) {
    if (dim == 256 && GetParam() == "gfx942") continue;
    for (const int rows : {1, 40, 70}) {
      if (!in_part(index++, 2)) continue;
      SCOPED_TRACE(std::format("d{} q{}", dim, rows));
      AttentionCase which = make(rows == 40 ? Storage::fp16 : Storage::bf16, 1, rows, 150, 2, 1, dim, true, 31, dim_v);
      expect_same(stored_in_bytes(which, bytes_of(which, type, Scales::tensor)));
      which.inputs.key_lengths = {150};
      which = stored_in_bytes(which, bytes_of(which, type, Scales::none));
      which.pages = Pages{.size = rows == 40 ? 1 : 16};
      expect_same(which);
    }
  }
}

TEST_P(CacheTypes, SplitKeysInRounds) {
  const std::vector<std::int32_t> lengths = {2200, 0, 1025, 700, 2100};
  AttentionCase which = make(Storage::bf16, 5, 2, 2200, 4, 2, 64, true, 41);
  which.inputs.key_lengths = lengths;
  which.own_workspace = true;
  add_sink(which, 1.0);
  which = stored_in_bytes(which, bytes_of(which, formats_.front(), Scales::batches_and_heads));
  const AttentionOutput at_once = run_checked(which);
  EXPECT_TRUE(at_once.kernel_spec.contains(" split=1024")) << at_once.kernel_spec;
  expect_equal(at_once, in_wide_types(which));
  constexpr std::size_t bytes_of_sequence = std::size_t{2} * 4 * 3 * (64 + 4) * 4;
  which.withheld_workspace = 4 * bytes_of_sequence;
  expect_equal(run_checked(which), in_wide_types(which));
  which.withheld_workspace = 0;
  which.inputs.softcap = 6;
  which.output_fp32 = true;
  expect_same(which);
  which.pages = Pages{.size = 16};
  expect_same(which);
}

TEST_P(CacheTypes, LongAndShortQueriesInOneCall) {
  AttentionCase which = make(Storage::bf16, 4, 1, 1100, 4, 1, 64, true, 51);
  AttentionInputs& in = which.inputs;
  in.key_lengths = {1100, 1030, 77, 900};
  in.query_starts = {0, 1, 141, 149, 150};
  in.query_length = 140;
  in.q = normal_values(Storage::bf16, std::size_t{150} * 4 * 64, 1.0, 52);
  which.own_workspace = true;
  which = stored_in_bytes(which, bytes_of(which, formats_.front(), Scales::batches_and_heads));
  const AttentionOutput mixed = run_checked(which);
  EXPECT_TRUE(mixed.kernel_spec.contains(" rows=many ")) << mixed.kernel_spec;
  expect_equal(mixed, in_wide_types(which));
  EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), mixed).wrong(), "");
}

TEST_P(CacheTypes, PackedKeys) {
  AttentionCase which = make(Storage::fp16, 1, 150, 300, 4, 2, 128, true, 53);
  AttentionInputs& in = which.inputs;
  in.batch = 3;
  in.query_starts = {0, 20, 21, 150};
  in.key_starts = {0, 130, 130, 300};
  in.query_length = 129;
  in.key_length = 170;
  check(stored_in_bytes(which, bytes_of(which, formats_.front(), Scales::batches_and_heads)));
}

TEST_P(CacheTypes, ListsOfKeyBlocks) {
  AttentionCase which = make(Storage::bf16, 2, 150, 700, 4, 2, 128, true, 61);
  which.list_form.noise = true;
  which.inputs.lists = random_lists(64, 64, 2, 4, 150, 700, 0.3, 0.4, 62);
  check(stored_in_bytes(which, bytes_of(which, formats_.front(), Scales::heads)));
}

TEST_P(CacheTypes, Integers) {
  AttentionCase which = make(Storage::fp16, 2, 3, 1100, 8, 2, 128, true, 63);
  which.inputs.key_lengths = {1100, 300};
  which.own_workspace = true;
  add_sink(which, 0.5);
  which = stored_in_bytes(which, bytes_of(which, WAVEJIT_INT8, Scales::batches_and_heads));
  const AttentionOutput wide = in_wide_types(which);
  expect_equal(run_checked(which), wide);
  for (const int size : {1, 16, 64}) {
    which.pages = Pages{.size = size, .heads_first = size == 16, .in_turn = size == 64};
    expect_equal(run_checked(which), wide);
  }
  which.pages.reset();
  which.first_keys = {3, 77};
  expect_equal(run_checked(which), wide);
  for (const auto& [dim, dim_v] : {std::pair{64, 64}, {192, 128}, {256, 256}}) {
    if (dim == 256 && GetParam() == "gfx942") continue;
    which = make(Storage::bf16, 1, 300, 330, 2, 1, dim, true, 64, dim_v);
    check(stored_in_bytes(which, bytes_of(which, WAVEJIT_INT8, Scales::heads)));
  }
  which = make(Storage::bf16, 1, 150, 700, 4, 2, 64, true, 65);
  which.inputs.lists = random_lists(64, 64, 1, 4, 150, 700, 0.3, 0.4, 62);
  check(stored_in_bytes(which, bytes_of(which, WAVEJIT_INT8, Scales::heads)));
}

// The caller names formats, and no two go together, nor one of the other target.
TEST_P(CacheTypes, MixedFormatsAreRefusedByName) {
  const AttentionCase wide = make(Storage::bf16, 1, 3, 70, 2, 1, 64, false, 66);
  const AttentionCase which = stored_in_bytes(wide, bytes_of(wide, formats_.front(), Scales::none));
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
  // Queries of 8 bits beside keys of others, and O in 8 bits.
  refused("k.dtype", [&](Call& call) {
    call.q.dtype = WAVEJIT_INT8;
    call.v.dtype = WAVEJIT_BF16;
  });
  refused("q.dtype", [](Call& call) { call.q.dtype = WAVEJIT_E5M2; });
  refused("o.dtype", [&](Call& call) { call.o.dtype = call.k.dtype; });
}

// Each byte is what its format says, and NaN and infinities stay what they are: one key with one value of each.
TEST_P(CacheTypes, EveryByteIsItsValue) {
  for (const wavejit_dtype type : formats_) {
    const ByteFormat& format = byte_format(type);
    for (const Storage storage : {Storage::bf16, Storage::fp16}) {
      SCOPED_TRACE(std::format("{} {}", format.name, storage == Storage::bf16 ? "bf16" : "fp16"));
      // One key: O is its value, whatever the score.
      AttentionCase which = make(storage, 1, 1, 1, 4, 4, 64, false, 71);
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
