// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sparse_indexer as the program's tools know it (tools/family.h): a descriptor → numbers, the call, float64.
//
// A line without top= is checked by its scores. One with top= by its list, which must be the exact one: its numbers are
// small multiples of powers of two, so that every sum of the kernels is exact in f32, and many scores are equal. Tools
// compare numbers of f32: an index stands there as the number that has its bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/call/data_type.h"
#include "templates/attention/program/cache_formats.h"
#include "templates/attention/program/experiment.h"
#include "templates/attention/program/score_rules.h"
#include "templates/sparse_indexer/call/descriptor.h"
#include "templates/sparse_indexer/program/invariance.h"
#include "templates/sparse_indexer/program/reference.h"
#include "templates/sparse_indexer/program/tuning.h"
#include "tools/array_problem.h"
#include "tools/byte_float.h"
#include "tools/canonical_line.h"
#include "tools/empty_call.h"
#include "tools/variants/variants.h"

namespace wavejit::sparse_indexer::program {
namespace {

using namespace tools;
using attention::program::rules_of;
using attention::program::visible_keys;
using tools::bytes_of;
using tools::Result;

constexpr std::int64_t dims = 128;

// What a descriptor says, as arrays and calls take it.
struct Said {
  std::string text;
  std::int32_t type = WAVEJIT_BF16;  // fp32: scores are given
  std::int64_t batch = 0;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t page = 0;  // keys of it; 0: dense
  std::int64_t top = 0;
  bool key_scales = false;
  wavejit_masking mask;
  std::vector<std::int32_t> lengths;  // empty: all keys count
  std::uint64_t seed = 1;

  bool given() const { return type == WAVEJIT_FP32; }
  std::int64_t columns() const { return page == 0 ? 0 : (keys + page - 1) / page; }
  std::size_t all_rows() const { return static_cast<std::size_t>(batch * rows); }
};

Said said_of(const ProblemDescriptor& from, std::string text) {
  return {.text = std::move(text),
          .type = attention::told_type(from.type),
          .batch = from.batch,
          .rows = from.query_length,
          .keys = from.key_length,
          .heads = from.heads,
          .page = from.page_size,
          .top = from.top_k,
          .key_scales = from.key_scales,
          .mask = attention::masking_of(from.mask),
          .lengths = {from.key_lengths.begin(), from.key_lengths.end()},
          .seed = attention::program::number_in(from.seed, std::uint64_t{1})};
}

HalfType half_of(std::int32_t type) { return type == WAVEJIT_FP16 ? HalfType::fp16 : HalfType::bf16; }

// Queries and keys as memory has them.
std::vector<std::byte> stored(const Said& said, const std::vector<float>& values) {
  const auto elements = [&](const auto& encoded) {
    std::vector<decltype(encoded(0.0F))> all;
    all.reserve(values.size());
    for (const float value : values) all.push_back(encoded(value));
    return bytes_of(all);
  };
  if (const auto type = byte_type_of(said.type)) return elements([&](float value) { return encode(*type, value); });
  return elements([&](float value) { return encode(half_of(said.type), static_cast<double>(value)); });
}
float rounded(const Said& said, float value) {
  if (const auto type = byte_type_of(said.type)) return decode(*type, encode(*type, value));
  return decode(half_of(said.type), encode(half_of(said.type), static_cast<double>(value)));
}

// All numbers of a problem, as the device has them.
struct Numbers {
  std::vector<float> queries;  // [batch][rows][heads][dims]
  std::vector<float> keys;     // [batch][keys][dims]
  std::vector<float> weights;  // [batch][rows][heads]
  std::vector<float> scales;   // [batch][keys]; empty: none
  std::vector<float> scores;   // [batch][rows][keys], where they are given
};

Numbers numbers_of(const Said& said) {
  const auto drawn = [&](std::uint64_t part, std::int64_t count, float steps, float size) {
    std::vector<float> values = seeded_values((said.seed * 8) + part, static_cast<std::size_t>(count));
    for (float& value : values) value = steps == 0 ? value * size : std::round(value * steps) / steps * size;
    return values;
  };
  Numbers numbers;
  if (said.given()) {
    numbers.scores = drawn(0, said.batch * said.rows * said.keys, 500, 1);
    return numbers;
  }
  const bool exact = said.top != 0;
  numbers.queries = drawn(1, said.batch * said.rows * said.heads * dims, exact ? 2 : 0, exact ? 2 : 1);
  numbers.keys = drawn(2, said.batch * said.keys * dims, exact ? 2 : 0, exact ? 2 : 1);
  for (auto* values : {&numbers.queries, &numbers.keys})
    for (float& value : *values) value = rounded(said, value);
  numbers.weights = drawn(3, said.batch * said.rows * said.heads, exact ? 4 : 0, 1);
  if (!said.key_scales) return numbers;
  numbers.scales = drawn(4, said.batch * said.keys, 0, 1);
  for (float& scale : numbers.scales) scale = exact ? (scale < 0 ? 0.5F : 2.0F) : 0.75F + (scale / 4);
  return numbers;
}

// Pages of a sequence lie apart: page p of sequence b is page p · batch + b of the cache.
std::size_t slot_of(const Said& said, std::int64_t batch, std::int64_t key) {
  if (said.page == 0) return static_cast<std::size_t>((batch * said.keys) + key);
  const std::int64_t page = (key / said.page * said.batch) + batch;
  return static_cast<std::size_t>((page * said.page) + (key % said.page));
}

struct Seen {
  std::int64_t begin;
  std::int64_t end;
};
Seen seen_by(const Said& said, std::int64_t row) {
  const std::int64_t batch = row / said.rows;
  const std::int64_t keys = said.lengths.empty() ? said.keys : said.lengths[static_cast<std::size_t>(batch)];
  const auto [begin, end] = visible_keys(rules_of(said.mask, said.rows, keys), row % said.rows, keys);
  return {begin, std::max(begin, end)};
}

ExactScore score_of(const Said& said, const Numbers& numbers, std::int64_t row, std::int64_t key) {
  const auto part = [](const std::vector<float>& all, std::int64_t index, std::int64_t count) {
    return std::span(all).subspan(static_cast<std::size_t>(index * count), static_cast<std::size_t>(count));
  };
  const std::int64_t number = (row / said.rows * said.keys) + key;
  return exact_score(
      part(numbers.queries, row, said.heads * dims), part(numbers.weights, row, said.heads),
      part(numbers.keys, number, dims),
      numbers.scales.empty() ? 1.0 : static_cast<double>(numbers.scales[static_cast<std::size_t>(number)]));
}

// The list of a row as numbers with its bits.
std::vector<double> exact_list(const Said& said, const Numbers& numbers, std::int64_t row) {
  const auto [begin, end] = seen_by(said, row);
  std::vector<float> scores(static_cast<std::size_t>(said.keys));
  for (std::int64_t key = begin; key < end; ++key)
    scores[static_cast<std::size_t>(key)] = said.given()
                                                ? numbers.scores[static_cast<std::size_t>((row * said.keys) + key)]
                                                : static_cast<float>(score_of(said, numbers, row, key).score);
  std::vector<std::int32_t> list = sorted_list(scores, begin, end, said.top);
  list.resize(static_cast<std::size_t>(said.top), -1);
  std::vector<double> exact;
  exact.reserve(list.size());
  for (const std::int32_t index : list) exact.push_back(static_cast<double>(std::bit_cast<float>(index)));
  return exact;
}

// Inputs in this order; those that a call lacks are one number long.
enum Input : std::uint8_t { queries, keys, weights, scales, scores, lengths, table, inputs };

std::vector<std::vector<std::byte>> arrays_of(const Said& said, const Numbers& numbers) {
  const std::size_t slots =
      static_cast<std::size_t>(said.batch * (said.page == 0 ? said.keys : said.columns() * said.page));
  std::vector<float> key_slots(said.given() ? 1 : slots * static_cast<std::size_t>(dims));
  std::vector<float> scale_slots(numbers.scales.empty() ? 1 : slots);
  std::vector<std::int32_t> entries(1);
  for (std::int64_t batch = 0; batch < said.batch && !said.given(); ++batch)
    for (std::int64_t key = 0; key < said.keys; ++key) {
      const std::size_t slot = slot_of(said, batch, key);
      const auto number = static_cast<std::size_t>((batch * said.keys) + key);
      std::copy_n(numbers.keys.begin() + static_cast<std::ptrdiff_t>(number * dims), dims,
                  key_slots.begin() + static_cast<std::ptrdiff_t>(slot * dims));
      if (!numbers.scales.empty()) scale_slots[slot] = numbers.scales[number];
    }
  if (said.page != 0) {
    entries.clear();
    for (std::int64_t batch = 0; batch < said.batch; ++batch)
      for (std::int64_t page = 0; page < said.columns(); ++page)
        entries.push_back(static_cast<std::int32_t>((page * said.batch) + batch));
  }
  const auto at_least_one = [](std::vector<float> values) {
    if (values.empty()) values.resize(1);
    return values;
  };
  std::vector<std::vector<std::byte>> arrays(inputs);
  arrays[queries] = stored(said, at_least_one(numbers.queries));
  arrays[keys] = stored(said, key_slots);
  arrays[weights] = bytes_of(at_least_one(numbers.weights));
  arrays[scales] = bytes_of(scale_slots);
  arrays[scores] = bytes_of(at_least_one(numbers.scores));
  arrays[lengths] = bytes_of(said.lengths.empty() ? std::vector<std::int32_t>(1) : said.lengths);
  arrays[table] = bytes_of(entries);
  return arrays;
}

wavejit_sparse_indexer_arguments call_of(const Said& said, std::span<void* const> given, void* output) {
  auto call = tools::empty_call<wavejit_sparse_indexer_arguments>(WAVEJIT_SPARSE_INDEXER);
  if (said.given()) {
    call.scores = wavejit_dense_tensor(given[scores], WAVEJIT_FP32, said.batch, said.rows, 1, said.keys);
  } else {
    const auto type = static_cast<wavejit_dtype>(said.type);
    const std::int64_t outer = said.page == 0 ? said.batch : said.batch * said.columns();
    const std::int64_t inner = said.page == 0 ? said.keys : said.page;
    call.queries = wavejit_dense_tensor(given[queries], type, said.batch, said.rows, said.heads, dims);
    call.keys = wavejit_dense_tensor(given[keys], type, outer, inner, 1, dims);
    call.weights = wavejit_dense_tensor(given[weights], WAVEJIT_FP32, said.batch, said.rows, said.heads, 1);
    if (said.key_scales) call.key_scales = wavejit_dense_tensor(given[scales], WAVEJIT_FP32, outer, inner, 1, 1);
    if (said.page != 0) {
      call.pages.block_table = static_cast<const std::int32_t*>(given[table]);
      call.pages.table_columns = said.columns();
      call.max_key_length = said.keys;
    }
    if (said.top == 0) call.scores = wavejit_dense_tensor(output, WAVEJIT_FP32, said.batch, said.rows, 1, said.keys);
  }
  if (said.top != 0) {
    call.indices = static_cast<std::int32_t*>(output);
    call.top_k = said.top;
  }
  if (!said.lengths.empty()) call.key_lengths = static_cast<const std::int32_t*>(given[lengths]);
  call.mask = said.mask;
  return call;
}

ArrayProblem problem_of(Said from) {
  const auto said = std::make_shared<const Said>(std::move(from));
  const auto numbers = std::make_shared<Numbers>(numbers_of(*said));
  ArrayProblem problem;
  problem.text = said->text;
  problem.inputs = arrays_of(*said, *numbers);
  problem.rows = static_cast<std::int64_t>(said->all_rows());
  problem.columns = said->top != 0 ? said->top : said->keys;
  set_call(
      problem, [said](std::span<void* const> given, void* output) { return call_of(*said, given, output); },
      wavejit_sparse_indexer);
  if (said->top != 0) {
    problem.exact = [said, numbers](std::int64_t row) { return exact_list(*said, *numbers, row); };
    return problem;
  }
  problem.exact = [said, numbers](std::int64_t row) {
    std::vector<double> exact(static_cast<std::size_t>(said->keys), -std::numeric_limits<double>::infinity());
    const auto [begin, end] = seen_by(*said, row);
    for (std::int64_t key = begin; key < end; ++key)
      exact[static_cast<std::size_t>(key)] = score_of(*said, *numbers, row, key).score;
    return exact;
  };
  problem.bounds = [said, numbers](std::int64_t row) {
    // Sums in f32 of 128 products and of up to 128 heads: far below their worst case.
    constexpr double of_f32 = 2e-7;
    std::vector<double> bounds(static_cast<std::size_t>(said->keys));
    const auto [begin, end] = seen_by(*said, row);
    for (std::int64_t key = begin; key < end; ++key)
      bounds[static_cast<std::size_t>(key)] = of_f32 * score_of(*said, *numbers, row, key).magnitude;
    return bounds;
  };
  return problem;
}

constexpr tools::Variant variant_row[] = {
    {.name = "indexer",
     .title = "Indexer of sparse attention",
     .meaning = "Which keys each row is to attend to: scores of index heads, and the k largest of a row. The same list "
                "whatever the batch.",
     .descriptor = "sparse_indexer {type} b48 q1 k131072 h64 page=64 top=2048",
     .question = "Do index queries and keys say which keys each row is to attend to, and is that list what you want?",
     .peers = {"no", "in fp8; which of equal scores is open"}}};

class SparseIndexer : public Family {
 public:
  std::string_view name() const override { return "sparse_indexer"; }
  std::span<const tools::Variant> variant_rows() const override { return variant_row; }
  std::string_view grammar() const override {
    return "sparse_indexer <bf16|fp16|e4m3|e4m3_fnuz|fp32> b<batch> q<rows> k<keys> [h<index heads>] [page=<keys>] "
           "[key_scales] [top=<keys>] [scores] [causal[=<prefix>]] [window=<left>,<right>] [k_lengths=<n,…>] [seed=<n>]";
  }
  std::string_view example() const override { return "sparse_indexer bf16 b4 q1 k2000 h64 page=64 top=512"; }
  std::vector<std::string> listed() const override {
    return {"sparse_indexer bf16 b1 q1 k300 h64",
            "sparse_indexer fp16 b2 q3 k130 h33 key_scales causal",
            "sparse_indexer bf16 b2 q1 k700 h32 page=16 key_scales k_lengths=700,65",
            "sparse_indexer bf16 b1 q2 k200 h128 page=1 window=90,0",
            "sparse_indexer bf16 b2 q1 k900 h64 page=64 top=128 k_lengths=900,77",
            "sparse_indexer fp16 b1 q5 k260 h8 key_scales top=64 causal",
            "sparse_indexer fp32 b1 q2 k9000 top=2048",
            "sparse_indexer fp32 b2 q4 k500 top=200 causal k_lengths=500,301"};
  }
  std::vector<std::string> examined() const override {
    return {"sparse_indexer bf16 b1 q1 k200 h64 page=16 top=32", "sparse_indexer fp16 b1 q2 k100 h40 key_scales causal",
            "sparse_indexer e4m3 b1 q2 k200 h64 page=16 key_scales top=32",
            "sparse_indexer e4m3_fnuz b1 q2 k200 h64 page=16 key_scales top=32"};
  }
  std::vector<std::string> examined_for_time() const override {
    return {"sparse_indexer bf16 b48 q1 k8192 h64 page=64 top=2048"};
  }

  const Invariance* invariance() const override { return &indexer_invariance(); }
  std::vector<std::string> serving_lines(const ServedModel& served) const override {
    if (!served.config.latent || served.config.latent->top_k == 0) return {};
    const LatentDims& latent = *served.config.latent;
    std::vector<std::string> lines;
    // Tokens; several rows a sequence. Every rank has all index heads.
    for (const char* rows : {" q1 ", " q4 "})
      lines.push_back("sparse_indexer " + served.config.dtype + " b" + std::to_string(sequences_of_step) + rows + "k" +
                      std::to_string(served.config.longest) + " h" + std::to_string(latent.index_heads) +
                      " page=" + std::to_string(served.page) + " top=" + std::to_string(latent.top_k) +
                      (rows[2] == '1' ? "" : " causal"));
    return lines;
  }
  const Tuning* tuning() const override { return &indexer_tuning(); }
  // Queries have the type of the keys. Given scores have none.
  std::string with_8_bit_cache(const std::string& descriptor, std::string_view target,
                               tools::EightBits kind) const override {
    if (kind == tools::EightBits::integers) return descriptor;
    const std::string format = attention::program::e4m3_of(target);
    for (const std::string_view wide : {"bf16", "fp16"}) {
      const std::string begin = "sparse_indexer " + std::string(wide) + " ";
      if (!format.empty() && descriptor.starts_with(begin))
        return "sparse_indexer " + format + " " + descriptor.substr(begin.size());
    }
    return descriptor;
  }

  Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const override {
    return parsed_problem(descriptor, parse_descriptor, said_of, problem_of);
  }
};

}  // namespace

const tools::Family& family() { return tools::only<SparseIndexer>(); }

}  // namespace wavejit::sparse_indexer::program
