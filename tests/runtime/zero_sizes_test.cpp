// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Size 0, and other numbers that no size is, in every place of every call's struct, through every function that takes
// it: an answer comes, and all of them give the same one. Sizes that must agree become 0 together, since a check that
// compares them would refuse one alone before any other check sees it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "wavejit/wavejit.h"

namespace wavejit::tests {
namespace {

void* place(std::uint64_t number) { return reinterpret_cast<void*>(number << 36U); }
const std::int32_t* numbers(std::uint64_t number) { return static_cast<const std::int32_t*>(place(number)); }
wavejit_tensor tensor(std::uint64_t number, wavejit_dtype dtype, std::int64_t batch, std::int64_t length,
                      std::int64_t heads, std::int64_t dims) {
  return wavejit_dense_tensor(place(number), dtype, batch, length, heads, dims);
}
wavejit_tensor row_numbers(std::uint64_t number, std::int64_t batch, std::int64_t heads, std::int64_t rows) {
  return tensor(number, WAVEJIT_FP32, batch, heads, rows, 1);
}

// ---- Calls that are good, one for each kind of tensor that a family has ---------------------------------------------

using Forward = wavejit_attention_forward_arguments;
using Latent = wavejit_attention_latent_arguments;
using Backward = wavejit_attention_backward_arguments;
using Softmax = wavejit_softmax_lse_arguments;
using Indexer = wavejit_sparse_indexer_arguments;
using Append = wavejit_cache_append_arguments;
using Merge = wavejit_attention_merge_arguments;

std::vector<Forward> forward_calls(wavejit_dtype e4m3) {
  Forward dense{};
  dense.q = tensor(1, WAVEJIT_BF16, 2, 255, 8, 128);
  dense.k = tensor(2, WAVEJIT_BF16, 2, 512, 2, 128);
  dense.v = tensor(3, WAVEJIT_BF16, 2, 512, 2, 128);
  dense.o = tensor(4, WAVEJIT_BF16, 2, 255, 8, 128);
  dense.lse = row_numbers(5, 2, 8, 255);
  Forward paged{};
  paged.q = tensor(1, WAVEJIT_BF16, 61, 1, 64, 128);
  paged.k = tensor(2, e4m3, 4096, 16, 8, 128);
  paged.v = tensor(3, e4m3, 4096, 16, 8, 128);
  paged.o = tensor(4, WAVEJIT_BF16, 61, 1, 64, 128);
  paged.block_table = numbers(6);
  paged.table_columns = 65;
  paged.key_lengths = numbers(7);
  paged.max_key_length = 1024;
  paged.k_scale = tensor(8, WAVEJIT_FP32, 1, 1, 8, 1);
  paged.v_scale = tensor(9, WAVEJIT_FP32, 61, 1, 8, 1);
  Forward tokens = paged;
  tokens.token_scales = 1;
  tokens.k_scale = tensor(8, WAVEJIT_FP32, 4096, 16, 8, 1);
  tokens.v_scale = tensor(9, WAVEJIT_FP32, 4096, 16, 8, 1);
  Forward vectorised = paged;
  vectorised.k.dtype = vectorised.v.dtype = WAVEJIT_BF16;
  vectorised.k_scale = vectorised.v_scale = {};
  vectorised.page_layout = WAVEJIT_PAGES_VECTORISED;
  vectorised.k.strides[2] = vectorised.v.strides[2] = std::int64_t{16} * 128;
  vectorised.k.strides[1] = 8;
  vectorised.v.strides[1] = 1;
  vectorised.v.strides[3] = 16;
  Forward modified = dense;
  modified.bias = tensor(10, WAVEJIT_BF16, 2, 8, 255, 512);
  modified.alibi = tensor(11, WAVEJIT_FP32, 1, 8, 1, 1);
  modified.sink = tensor(12, WAVEJIT_FP32, 1, 8, 1, 1);
  modified.softcap = 5;
  Forward masked = dense;
  masked.bool_mask = tensor(10, WAVEJIT_INT8, 2, 8, 255, 512);
  Forward few_rows = masked;
  few_rows.q = few_rows.o = tensor(1, WAVEJIT_BF16, 2, 7, 8, 128);
  few_rows.o.data = place(4);
  few_rows.lse = row_numbers(5, 2, 8, 7);
  few_rows.bool_mask = tensor(10, WAVEJIT_INT8, 2, 1, 7, 512);
  Forward blocks = dense;
  blocks.list_counts = numbers(13);
  blocks.list_indices = numbers(14);
  blocks.list_row_blocks = 4;
  blocks.list_capacity = 9;
  blocks.list_rows = blocks.list_keys = 64;
  blocks.list_batches = 2;
  blocks.list_heads = 8;
  Forward listed = dense;
  listed.key_indices = numbers(15);
  listed.top_k = 70;
  Forward slots = listed;
  slots.k = tensor(2, WAVEJIT_BF16, 33, 16, 2, 128);
  slots.v = tensor(3, WAVEJIT_BF16, 33, 16, 2, 128);
  slots.key_slots = 1;
  Forward two_lists = slots;
  two_lists.second_k = tensor(16, WAVEJIT_BF16, 17, 16, 2, 128);
  two_lists.second_v = tensor(17, WAVEJIT_BF16, 17, 16, 2, 128);
  two_lists.second_indices = numbers(18);
  two_lists.second_top_k = 34;
  Forward packed = dense;
  packed.q = packed.o = tensor(1, WAVEJIT_BF16, 1, 510, 8, 128);
  packed.o.data = place(4);
  packed.lse = row_numbers(5, 1, 8, 510);
  packed.query_starts = numbers(19);
  packed.sequences = 2;
  packed.max_query_length = 300;
  Forward integers = dense;
  integers.q.dtype = integers.k.dtype = WAVEJIT_INT8;
  integers.q_scale = tensor(20, WAVEJIT_FP32, 2, 255, 8, 1);
  integers.k_scale = tensor(21, WAVEJIT_FP32, 2, 1, 2, 1);
  Forward split = paged;
  split.workspace = place(22);
  split.workspace_bytes = std::size_t{1} << 28U;
  split.max_key_length = std::int64_t{1} << 18U;
  split.table_columns = 1 << 14U;
  return {dense,  paged,  tokens, vectorised, modified, masked,   few_rows,
          blocks, listed, slots,  two_lists,  packed,   integers, split};
}

std::vector<Latent> latent_calls(wavejit_dtype e4m3) {
  Latent paged{};
  paged.q = tensor(1, WAVEJIT_BF16, 61, 1, 16, 576);
  paged.k = tensor(2, WAVEJIT_BF16, 255, 64, 1, 576);
  paged.o = tensor(3, WAVEJIT_BF16, 61, 1, 16, 512);
  paged.lse = row_numbers(4, 61, 16, 1);
  paged.block_table = numbers(5);
  paged.table_columns = 128;
  paged.key_lengths = numbers(6);
  paged.max_key_length = 8192;
  paged.scale = 0.07F;
  Latent apart = paged;
  apart.q = tensor(1, WAVEJIT_BF16, 61, 1, 16, 512);
  apart.q_rope = tensor(7, WAVEJIT_BF16, 61, 1, 16, 64);
  apart.k = tensor(2, WAVEJIT_BF16, 255, 64, 1, 512);
  apart.k_rope = tensor(8, WAVEJIT_BF16, 255, 64, 1, 64);
  Latent narrow = paged;
  narrow.k.dtype = e4m3;
  narrow.k_scale = tensor(9, WAVEJIT_FP32, 61, 1, 1, 1);
  narrow.sink = tensor(10, WAVEJIT_FP32, 1, 16, 1, 1);
  Latent listed = paged;
  listed.key_indices = numbers(11);
  listed.top_k = 2048;
  Latent slots = listed;
  slots.block_table = nullptr;
  slots.key_lengths = nullptr;
  slots.table_columns = slots.max_key_length = 0;
  slots.key_slots = 1;
  Latent two_lists = slots;
  two_lists.second_k = tensor(12, WAVEJIT_BF16, 254, 64, 1, 576);
  two_lists.second_indices = numbers(13);
  two_lists.second_top_k = 129;
  Latent scaled = slots;
  scaled.k = tensor(2, e4m3, 255, 64, 1, 656);
  Latent exponents = two_lists;
  exponents.q = tensor(1, WAVEJIT_BF16, 61, 1, 16, 512);
  exponents.k = tensor(2, e4m3, 255, 64, 1, 584);
  exponents.second_k = tensor(12, e4m3, 254, 64, 1, 584);
  exponents.row_scales = WAVEJIT_EXPONENTS_BEHIND_ROWS;
  Latent dense = paged;
  dense.block_table = nullptr;
  dense.key_lengths = nullptr;
  dense.table_columns = dense.max_key_length = 0;
  dense.k = tensor(2, WAVEJIT_BF16, 61, 4097, 1, 576);
  return {paged, apart, narrow, listed, slots, two_lists, scaled, exponents, dense};
}

std::vector<Backward> backward_calls() {
  Backward dense{};
  const auto queries = [](std::uint64_t number) { return tensor(number, WAVEJIT_BF16, 2, 255, 8, 128); };
  const auto keys = [](std::uint64_t number) { return tensor(number, WAVEJIT_BF16, 2, 512, 4, 128); };
  dense.q = queries(1);
  dense.k = keys(2);
  dense.v = keys(3);
  dense.o = queries(4);
  dense.d_o = queries(5);
  dense.lse = row_numbers(6, 2, 8, 255);
  dense.d_lse = row_numbers(7, 2, 8, 255);
  dense.dq = queries(8);
  dense.dk = keys(9);
  dense.dv = keys(10);
  Backward modified = dense;
  modified.d_lse = {};
  modified.bias = tensor(11, WAVEJIT_BF16, 1, 8, 255, 512);
  modified.d_bias = tensor(12, WAVEJIT_FP32, 1, 8, 255, 512);
  modified.sink = tensor(13, WAVEJIT_FP32, 1, 8, 1, 1);
  modified.d_sink = tensor(14, WAVEJIT_FP32, 2, 8, 1, 1);
  modified.alibi = tensor(15, WAVEJIT_FP32, 1, 8, 1, 1);
  Backward delta = dense;
  delta.o = {};
  delta.delta = row_numbers(16, 2, 8, 255);
  delta.workspace = place(17);
  delta.workspace_bytes = std::size_t{1} << 26U;
  return {dense, modified, delta};
}

std::vector<Softmax> softmax_calls() {
  Softmax call{};
  call.scores = tensor(1, WAVEJIT_FP32, 3, 8, 100, 1000);
  call.weights = tensor(2, WAVEJIT_BF16, 3, 8, 100, 1000);
  call.lse = row_numbers(3, 3, 8, 100);
  call.key_lengths = numbers(4);
  return {call};
}

std::vector<Indexer> indexer_calls() {
  Indexer paged{};
  paged.queries = tensor(1, WAVEJIT_BF16, 47, 3, 64, 128);
  paged.keys = tensor(2, WAVEJIT_BF16, 8192, 16, 1, 128);
  paged.weights = tensor(3, WAVEJIT_FP32, 47, 3, 64, 1);
  paged.key_scales = tensor(4, WAVEJIT_FP32, 8192, 16, 1, 1);
  paged.block_table = numbers(5);
  paged.table_columns = 2047;
  paged.key_lengths = numbers(6);
  paged.max_key_length = 30000;
  paged.indices = static_cast<std::int32_t*>(place(7));
  paged.top_k = 2048;
  Indexer dense = paged;
  dense.block_table = nullptr;
  dense.table_columns = dense.max_key_length = 0;
  dense.keys = tensor(2, WAVEJIT_BF16, 47, 5000, 1, 128);
  dense.key_scales = tensor(4, WAVEJIT_FP32, 47, 5000, 1, 1);
  dense.scores = tensor(8, WAVEJIT_FP32, 47, 3, 1, 5000);
  Indexer scores = dense;
  scores.queries = scores.keys = scores.weights = scores.key_scales = {};
  return {paged, dense, scores};
}

std::vector<Append> append_calls(wavejit_dtype e4m3) {
  Append plain{};
  plain.k = tensor(1, WAVEJIT_BF16, 2, 35, 8, 128);
  plain.v = tensor(2, WAVEJIT_BF16, 2, 35, 8, 256);
  plain.k_cache = tensor(3, WAVEJIT_BF16, 4096, 16, 8, 128);
  plain.v_cache = tensor(4, WAVEJIT_BF16, 4096, 16, 8, 256);
  plain.slots = place(5);
  Append rotary = plain;
  rotary.rotary = WAVEJIT_ROTARY_HALVES;
  rotary.rotary_dim = 64;
  rotary.cos = tensor(6, WAVEJIT_FP32, 1, 4095, 1, 32);
  rotary.sin = tensor(7, WAVEJIT_FP32, 1, 4095, 1, 32);
  rotary.positions = place(8);
  rotary.q = tensor(9, WAVEJIT_BF16, 2, 35, 66, 72);
  rotary.q_out = tensor(10, WAVEJIT_BF16, 2, 35, 66, 72);
  Append narrow = plain;
  narrow.k_cache.dtype = narrow.v_cache.dtype = e4m3;
  narrow.k_scale = tensor(11, WAVEJIT_FP32, 1, 1, 8, 1);
  narrow.v_scale = tensor(12, WAVEJIT_FP32, 1, 1, 8, 1);
  Append tokens = narrow;
  tokens.token_scales = 1;
  tokens.k_scale = tensor(11, WAVEJIT_FP32, 4096, 16, 8, 1);
  tokens.v_scale = tensor(12, WAVEJIT_FP32, 4096, 16, 8, 1);
  Append latent = plain;
  latent.k = tensor(1, WAVEJIT_BF16, 2, 35, 1, 64);
  latent.v = tensor(2, WAVEJIT_BF16, 2, 35, 1, 512);
  latent.k_cache = tensor(3, e4m3, 255, 48, 1, 656);
  latent.v_cache = {};
  return {plain, rotary, narrow, tokens, latent};
}

std::vector<Merge> merge_calls() {
  Merge two{};
  for (std::uint64_t part = 0; part < 2; ++part) {
    two.parts[part].o = tensor(1 + part, WAVEJIT_BF16, 3, 70, 64, 128);
    two.parts[part].lse = row_numbers(3 + part, 3, 64, 70);
  }
  two.part_count = 2;
  two.o = tensor(5, WAVEJIT_BF16, 3, 70, 64, 128);
  two.lse = row_numbers(6, 3, 64, 70);
  Merge many = two;
  many.parts[0].count = 9;
  many.parts[0].o_stride = std::int64_t{3} * 70 * 64 * 128;
  many.parts[0].lse_stride = std::int64_t{3} * 70 * 64;
  return {two, many};
}

// ---- Every function that takes a call -------------------------------------------------------------------------------

template <typename Arguments>
struct Doors {
  wavejit_status (*call)(wavejit_engine*, const Arguments*, ihipStream_t*);
  wavejit_status (*supported)(wavejit_engine*, const Arguments*);
  wavejit_status (*ready)(wavejit_engine*, const Arguments*);
  wavejit_status (*describe)(wavejit_engine*, const Arguments*, wavejit_line_callback, void*);
  wavejit_status (*workspace)(wavejit_engine*, const Arguments*, std::size_t*) = nullptr;
};

class ZeroSizes : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string device = std::string("sim:") + GetParam();
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.device = device.c_str();
    options.cache_mode = "off";
    options.log_level = "off";
    ASSERT_EQ(wavejit_engine_create(&options, &engine_), WAVEJIT_OK) << wavejit_last_detail();
  }
  void TearDown() override { wavejit_engine_destroy(engine_); }

  static wavejit_dtype e4m3() { return GetParam() == std::string_view("gfx942") ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3; }

  // "" or what two functions say differently. WAVEJIT_NO_COMPILE: a call that is good ends before its launch.
  template <typename Arguments>
  std::string asked(const Doors<Arguments>& doors, const Arguments& call) {
    const wavejit_status supported = doors.supported(engine_, &call);
    const std::string reason = supported == WAVEJIT_OK ? "" : wavejit_last_detail();
    ++(supported == WAVEJIT_OK ? good_ : refused_);
    if (supported != WAVEJIT_OK && supported != WAVEJIT_INVALID_ARGUMENT && supported != WAVEJIT_UNSUPPORTED)
      return "supported answers " + std::to_string(supported) + ": " + reason;
    const auto differs = [&](const char* who, wavejit_status status, wavejit_status when_good) -> std::string {
      const std::string said = status == WAVEJIT_OK ? "" : wavejit_last_detail();
      if (supported == WAVEJIT_OK ? status == when_good : status == supported && said == reason) return {};
      return std::string(who) + " answers " + std::to_string(status) + " (" + said + "), supported " +
             std::to_string(supported) + " (" + reason + ")";
    };
    if (auto said = differs("the call", doors.call(engine_, &call, nullptr), WAVEJIT_NOT_READY); !said.empty())
      return said;
    if (auto said = differs("ready", doors.ready(engine_, &call), WAVEJIT_NOT_READY); !said.empty()) return said;
    // Who asks for the size of a workspace has none yet.
    std::size_t bytes = 0;
    if (doors.workspace != nullptr && !reason.starts_with("workspace"))
      if (auto said = differs("workspace", doors.workspace(engine_, &call, &bytes), WAVEJIT_OK); !said.empty())
        return said;
    if (supported != WAVEJIT_OK) return {};
    std::string line;
    const auto keep = [](void* context, const char* text) { *static_cast<std::string*>(context) = text; };
    if (doors.describe(engine_, &call, keep, &line) != WAVEJIT_OK)
      return std::string("describe answers ") + wavejit_last_detail();
    if (wavejit_problem_parse(line.c_str(), [](void*, const wavejit_problem*) {}, nullptr) != WAVEJIT_OK)
      return "describe says \"" + line + "\": " + wavejit_last_detail();
    return {};
  }

  // Every word alone, every two equal ones, and all equal ones.
  template <typename Arguments>
  void every_place(const Doors<Arguments>& doors, std::vector<Arguments> calls) {
    for (std::size_t number = 0; number < calls.size(); ++number) {
      Arguments& base = calls[number];
      base.size = sizeof base;
      base.flags |= WAVEJIT_NO_COMPILE;
      std::vector<std::uint64_t> words(sizeof base / sizeof(std::uint64_t));
      std::memcpy(words.data(), &base, sizeof base);
      const auto ask = [&](const std::vector<std::size_t>& places, std::uint64_t value) {
        std::vector<std::uint64_t> changed = words;
        for (const std::size_t at : places) changed[at] = value;
        Arguments call;
        std::memcpy(&call, changed.data(), sizeof call);
        call.size = sizeof call;
        call.flags |= WAVEJIT_NO_COMPILE;
        call.flags &= ~std::uint32_t{WAVEJIT_CHECK_LENGTHS | WAVEJIT_COMPILE_BEHIND};
        call.report = nullptr;
        const std::string said = asked(doors, call);
        std::string where;
        for (const std::size_t at : places) where += " " + std::to_string(at * sizeof(std::uint64_t));
        EXPECT_EQ(said, "") << "call " << number << ", " << value << " in place of " << words[places.front()]
                            << " at bytes" << where;
        return said.empty();
      };
      const int good_before = good_;
      ask({1}, words[1]);
      const bool has_kernel = std::string_view(GetParam()) != "gfx1201";  // of every kind of call
      EXPECT_TRUE(!has_kernel || good_ > good_before) << "call " << number << ": " << wavejit_last_detail();
      std::set<std::uint64_t> seen;
      for (std::size_t first = 1; first < words.size(); ++first) {
        if (words[first] == 0) continue;
        std::vector<std::size_t> alike;
        for (std::size_t other = first; other < words.size(); ++other)
          if (words[other] == words[first]) alike.push_back(other);
        const bool is_first = seen.insert(words[first]).second;
        for (const std::uint64_t value : {std::uint64_t{0}, ~std::uint64_t{0}}) {
          for (const std::size_t other : alike)
            if (!ask(other == first ? std::vector{first} : std::vector{first, other}, value)) return;
          if (is_first && alike.size() > 2 && !ask(alike, value)) return;
        }
      }
    }
    EXPECT_GT(refused_, 100);
  }

  wavejit_engine* engine_ = nullptr;
  int good_ = 0;
  int refused_ = 0;
};

TEST_P(ZeroSizes, OfAttentionForward) {
  every_place<Forward>({.call = wavejit_attention_forward,
                        .supported = wavejit_attention_forward_supported,
                        .ready = wavejit_attention_forward_ready,
                        .describe = wavejit_attention_forward_describe,
                        .workspace = wavejit_attention_forward_workspace},
                       forward_calls(e4m3()));
}

TEST_P(ZeroSizes, OfAttentionLatent) {
  every_place<Latent>({.call = wavejit_attention_latent,
                       .supported = wavejit_attention_latent_supported,
                       .ready = wavejit_attention_latent_ready,
                       .describe = wavejit_attention_latent_describe,
                       .workspace = wavejit_attention_latent_workspace},
                      latent_calls(e4m3()));
}

TEST_P(ZeroSizes, OfAttentionBackward) {
  every_place<Backward>({.call = wavejit_attention_backward,
                         .supported = wavejit_attention_backward_supported,
                         .ready = wavejit_attention_backward_ready,
                         .describe = wavejit_attention_backward_describe,
                         .workspace = wavejit_attention_backward_workspace},
                        backward_calls());
}

TEST_P(ZeroSizes, OfSoftmaxLse) {
  every_place<Softmax>({.call = wavejit_softmax_lse,
                        .supported = wavejit_softmax_lse_supported,
                        .ready = wavejit_softmax_lse_ready,
                        .describe = wavejit_softmax_lse_describe},
                       softmax_calls());
}

TEST_P(ZeroSizes, OfSparseIndexer) {
  every_place<Indexer>({.call = wavejit_sparse_indexer,
                        .supported = wavejit_sparse_indexer_supported,
                        .ready = wavejit_sparse_indexer_ready,
                        .describe = wavejit_sparse_indexer_describe,
                        .workspace = wavejit_sparse_indexer_workspace},
                       indexer_calls());
}

TEST_P(ZeroSizes, OfCacheAppend) {
  every_place<Append>({.call = wavejit_cache_append,
                       .supported = wavejit_cache_append_supported,
                       .ready = wavejit_cache_append_ready,
                       .describe = wavejit_cache_append_describe},
                      append_calls(e4m3()));
}

TEST_P(ZeroSizes, OfAttentionMerge) {
  every_place<Merge>({.call = wavejit_attention_merge,
                      .supported = wavejit_attention_merge_supported,
                      .ready = wavejit_attention_merge_ready,
                      .describe = wavejit_attention_merge_describe},
                     merge_calls());
}

INSTANTIATE_TEST_SUITE_P(Targets, ZeroSizes, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace wavejit::tests
