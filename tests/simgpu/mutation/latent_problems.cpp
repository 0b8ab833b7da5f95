// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "latent_problems.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "attention_latent/latent_run.h"
#include "byte_problems.h"
#include "support/storage_types.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

// `lies`: the call has wrong lengths or starts, for which no result is defined, so none is compared.
CallProblem latent_of(const LatentArrays& arrays, bool lies = false, const ChangeLatentCall& change = {}) {
  return {[arrays, lies, change](wavejit_engine* engine, bool judges) {
    const LatentOutput output = run_latent(engine, arrays, change);
    CallResult result = result_of(output);
    result.bits.assign(output.o.begin(), output.o.end());
    result.bits.insert(result.bits.end(), output.lse.begin(), output.lse.end());
    constexpr std::int64_t some_rows = 5;
    if (judges && !lies && output.status == WAVEJIT_OK) result.wrong = wrong_latent(arrays, output, some_rows);
    return result;
  }};
}
CallProblem latent(const std::string& words) { return latent_of(latent_arrays(words)); }
// Wrong lengths and starts, which the kernel must clamp to the keys and rows that there are.
CallProblem latent_that_lies(const std::string& words, const Numbers& lengths, const Numbers& query_starts = {},
                             const Numbers& key_starts = {}) {
  LatentArrays arrays = latent_arrays(words);
  if (!arrays.key_lengths.empty()) arrays.key_lengths = lengths;
  if (!query_starts.empty()) arrays.query_starts = query_starts;
  if (!key_starts.empty()) arrays.key_starts = key_starts;
  return latent_of(arrays, true);
}
// Keys of dense rows of bytes, twice as large every three tiles: by their scales, or by themselves where they are no
// more than a half.
void grow_bytes(LatentArrays& arrays) {
  std::vector<std::uint8_t>& bytes = arrays.k_bytes;
  const auto step_of = [](std::size_t key) { return static_cast<int>(key / 192 % 4); };
  if (arrays.row_scales == 128) {
    constexpr std::size_t row = 656;
    constexpr std::size_t first_scale = 512;
    for (std::size_t key = 0; key < bytes.size() / row; ++key)
      for (std::size_t group = 0; group < 4; ++group) {
        std::uint8_t* const place = bytes.data() + (key * row) + first_scale + (group * sizeof(float));
        float scale = 0;
        std::memcpy(&scale, place, sizeof scale);
        scale = std::ldexp(scale, step_of(key));
        std::memcpy(place, &scale, sizeof scale);
      }
    return;
  }
  if (arrays.row_scales == 64) {
    constexpr std::size_t exponents = 8;
    const std::size_t keys = bytes.size() / 584;
    for (std::size_t key = 0; key < keys; ++key)
      for (std::size_t group = 0; group < 7; ++group) {
        std::uint8_t& exponent = bytes[(keys * 576) + (key * exponents) + group];
        exponent = static_cast<std::uint8_t>(exponent + step_of(key));
      }
    return;
  }
  constexpr std::uint8_t exponent = 0x78;
  constexpr std::uint8_t of_half = 0x30;
  constexpr int doubling = 0x08;
  const auto columns = static_cast<std::size_t>(arrays.experiment.head_dim_qk);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if ((bytes[i] & exponent) != 0 && (bytes[i] & exponent) <= of_half)
      bytes[i] = static_cast<std::uint8_t>(bytes[i] + (doubling * step_of(i / columns)));
}
// Rows of 584 bytes: in each sequence the scale of one group of one key is no number, of another group each time. Were
// it infinity, the key's score would be minus that, and only the group's own values would show it.
CallProblem latent_of_no_numbers(const std::string& format, std::size_t keys = 64, std::size_t key = 5) {
  constexpr std::size_t groups = 7;
  constexpr std::size_t columns = 64;  // of a group
  constexpr std::size_t values = 576;
  constexpr std::size_t exponents = 8;
  constexpr std::size_t heads = 33;
  constexpr std::size_t dims = 512;
  LatentArrays arrays = latent_arrays("bf16 b7 q1 k" + std::to_string(keys) + " h33 d512 lse " + format);
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t sequence = group * keys * (values + exponents);
    arrays.k_bytes[sequence + (keys * values) + (key * exponents) + group] = 0xFF;
    const std::size_t first = group * columns;
    std::fill_n(arrays.k_bytes.begin() + static_cast<std::ptrdiff_t>(sequence + (key * values) + first), columns, 0x38);
    for (std::size_t head = 0; head < heads; ++head)
      std::fill_n(arrays.q.begin() + static_cast<std::ptrdiff_t>((((group * heads) + head) * dims) + first), columns,
                  0xBF80);
  }
  return latent_of(arrays, true);
}
// Rows of the cache, twice as large every three tiles.
CallProblem latent_that_grows(const std::string& words) {
  LatentArrays arrays = latent_arrays(words);
  if (!arrays.k_bytes.empty()) {
    grow_bytes(arrays);
    return latent_of(arrays, true);
  }
  const auto columns = static_cast<std::size_t>(arrays.experiment.head_dim_qk);
  constexpr std::uint16_t doubling = 0x80;
  for (std::size_t i = 0; i < arrays.k.size(); ++i)
    if (std::isfinite(from_storage(Storage::bf16, arrays.k[i])))
      arrays.k[i] = static_cast<std::uint16_t>(arrays.k[i] + (doubling * (i / columns / 192 % 4)));
  return latent_of(arrays, true);
}
// Every score is below 0.
CallProblem latent_below_zero(const std::string& words) {
  LatentArrays arrays = latent_arrays(words);
  const auto columns = static_cast<std::size_t>(arrays.experiment.head_dim_qk);
  constexpr std::uint16_t sign = 0x8000;
  constexpr std::uint16_t minus_two = 0xC000;
  for (std::size_t i = 0; i < arrays.q.size(); ++i) arrays.q[i] = i % columns == 0 ? minus_two : std::uint16_t{0};
  for (std::size_t i = 0; i < arrays.k.size(); i += columns)
    arrays.k[i] = static_cast<std::uint16_t>((arrays.k[i] & ~sign) | 0x3000);
  return latent_of(arrays, true);
}
// A sequence that says it has more keys than the call's longest. Behind its parts stand zeros, which by their maximum
// of 0 outweigh every key there is.
CallProblem latent_of_too_many_keys(const std::string& words, const Numbers& query_starts, const Numbers& key_starts) {
  LatentArrays arrays = latent_arrays(words);
  const auto columns = static_cast<std::size_t>(arrays.experiment.head_dim_qk);
  constexpr std::uint16_t one = 0x3F80;
  constexpr std::uint16_t far_below_zero = 0xC700;
  for (std::size_t i = 0; i < arrays.q.size(); ++i) arrays.q[i] = i % columns == 0 ? far_below_zero : std::uint16_t{0};
  for (std::size_t i = 0; i < arrays.k.size(); i += columns) arrays.k[i] = one;
  arrays.query_starts = query_starts;
  arrays.key_starts = key_starts;
  return latent_of(arrays, true);
}
// The first two heads have queries that are NaN and infinite.
CallProblem latent_of_nan(const std::string& words) {
  LatentArrays arrays = latent_arrays(words);
  const auto columns = static_cast<std::size_t>(arrays.experiment.head_dim_qk);
  arrays.q[0] = 0x7FA5;
  arrays.q[columns] = 0x7F80;
  return latent_of(arrays, true);
}

CallProblem latent_of_lying_counts(const std::string& words) {
  LatentArrays arrays = latent_arrays(words);
  arrays.lists.counts = {-3, most, 0, 1};
  return latent_of(arrays, true);
}

// A sequence for each number of entries of three tiles; behind them stand numbers of keys.
CallProblem latent_of_each_count(const std::string& words) {
  LatentArrays arrays = latent_arrays(words);
  std::ranges::generate(arrays.lists.counts, [count = 0]() mutable { return ++count; });
  return latent_of(arrays, true);
}
// Two queries: no key in the first chunk of one's list, none at all in the other's.
CallProblem latent_with_holes(const std::string& words) {
  LatentArrays arrays = latent_arrays(words);
  std::vector<std::int32_t>& indices = arrays.lists.indices;
  std::fill_n(indices.begin(), 300, -1);
  std::fill_n(indices.rbegin(), arrays.lists.top_k, -1);
  return latent_of(arrays, true);
}

// The pages as one list (CSR) of which sequences have no piece, or one that stands elsewhere.
CallProblem latent_of_lying_starts(const std::string& words, const Numbers& starts) {
  LatentArrays arrays = with_page_list(latent_arrays(words));
  arrays.table_starts = starts;
  return latent_of(arrays, true);
}
// Entries that are no page of the cache.
CallProblem latent_of_lying_entries(const std::string& words, std::int32_t entry) {
  LatentArrays arrays = latent_arrays(words);
  std::ranges::fill(arrays.table, entry);
  return latent_of(arrays, true);
}
// Between two pages of the cache lies as much again, and it is NaN.
CallProblem latent_of_pages_apart(const std::string& words) {
  LatentArrays arrays = latent_arrays(words);
  const auto page = static_cast<std::ptrdiff_t>(arrays.experiment.page_size * arrays.experiment.head_dim_qk);
  constexpr std::uint16_t not_a_number = 0x7FFF;
  std::vector<std::uint16_t> apart(2 * arrays.k.size(), not_a_number);
  for (std::ptrdiff_t at = 0; at < std::ssize(arrays.k); at += page)
    std::copy_n(arrays.k.begin() + at, page, apart.begin() + (2 * at));
  arrays.k = std::move(apart);
  return latent_of(arrays, true, [](wavejit_attention_latent_arguments& call) { call.k.strides[0] *= 2; });
}

// A sequence for each number of keys of a tile.
std::string each_length() {
  std::string lengths = "1";
  for (int keys = 2; keys <= 64; ++keys) lengths += "," + std::to_string(keys);
  return lengths;
}

}  // namespace

std::vector<CallProblem> latent_dense(int more) {
  const auto heads = [&](int count) { return " h" + std::to_string(count + more) + " "; };
  return {
      latent("bf16 b1 q1 k70" + heads(40) + "d576/512 lse"),
      latent("bf16 b2 q1 k130" + heads(63) + "d576/512 lse sink k_lengths=130,0"),
      latent("bf16 b2 q3 k200" + heads(35) + "d576/512 layout=packed q_lengths=3,1 k_lengths=200,33"),
      latent("bf16 b1 q1 k64" + heads(64) + "d576/512 apart"),
      latent("bf16 b2 q1 k70" + heads(34) + "d576/512 lse k_lengths=70,0"),
      latent("bf16 b1 q" + std::to_string(more + 40) + " k70 h1 d576/512 lse"),
      latent("bf16 b1 q1 k70" + heads(36) + "d576/512 scale=0"),
      latent_of_nan("bf16 b1 q1 k70" + heads(40) + "d576/512 lse"),
      latent("bf16 b64 q1 k64" + heads(33) + "d576/512 lse k_lengths=" + each_length()),
      latent_that_lies("bf16 b2 q1 k90" + heads(34) + "d576/512 k_lengths=90,17 splits=1", {-3, most}),
      latent_that_lies("bf16 b4 q9 k40" + heads(33) + "d576/512 layout=packed q_lengths=9,0,9,2 k_lengths=40,9,20,2",
                       {}, {-5, 9, most, 8, 8}, {-5, 60, most, 20, 30}),
      // A length of its own that is not the longest, and an end behind the last row.
      latent("bf16 b3 q3 k200" + heads(35) + "d576/512 layout=packed q_lengths=3,1,2 k_lengths=33,200,70"),
      latent_that_lies("bf16 b4 q9 k40" + heads(33) + "d576/512 layout=packed q_lengths=9,0,9,2 k_lengths=40,9,20,2",
                       {}, {-5, 15, most, 12, 14}, {-5, 60, most, 20, 30}),
      // A sequence with rows whose keys start behind the last.
      latent_that_lies("bf16 b2 q1 k90" + heads(33) + "d576/512 lse layout=packed q_lengths=1,1 k_lengths=90,90", {},
                       {0, 1, 2}, {0, most, most}),
      latent_that_grows("bf16 b1 q1 k2150" + heads(33) + "d576/512 lse splits=1"),
      latent("bf16 b1 q1 k1090" + heads(34) + "d576/512 lse sink splits=1"),
  };
}

std::vector<CallProblem> latent_bytes(const std::string& dims, const std::string& format) {
  const auto line = [&](const std::string& words, const std::string& more = "") {
    return "bf16 " + words + " " + dims + " " + format + " " + more;
  };
  std::vector<CallProblem> all = {
      latent(line("b1 q1 k70 h40", "lse")),
      latent(line("b2 q1 k130 h63", "lse sink k_lengths=130,0")),
      latent(line("b2 q3 k200 h35", "layout=packed q_lengths=3,1 k_lengths=200,33")),
      latent(line("b1 q1 k64 h64")),
      latent(line("b2 q1 k70 h34", "lse k_lengths=70,0")),
      latent(line("b1 q40 k70 h1", "lse")),
      latent(line("b1 q1 k70 h36", "scale=0")),
      latent_of_nan(line("b1 q1 k70 h40", "lse")),
      latent(line("b64 q1 k64 h33", "lse k_lengths=" + each_length())),
      latent_that_lies(line("b2 q1 k90 h34", "k_lengths=90,17 splits=1"), {-3, most}),
      latent_that_lies(line("b4 q9 k40 h33", "layout=packed q_lengths=9,0,9,2 k_lengths=40,9,20,2"), {},
                       {-5, 9, most, 8, 8}, {-5, 60, most, 20, 30}),
      latent_that_lies(line("b2 q1 k90 h33", "lse layout=packed q_lengths=1,1 k_lengths=90,90"), {}, {0, 1, 2},
                       {0, most, most}),  // rows whose keys start behind the last
      latent_that_grows(line("b1 q1 k2150 h33", "lse splits=1")),
      latent(line("b1 q34 k1090 h1", "lse sink splits=1")),
  };
  if (format.contains("row_scales=64")) all.push_back(latent_of_no_numbers(format));
  return all;
}

std::vector<CallProblem> few_latent_bytes(const std::string& dims, const std::string& format) {
  const auto line = [&](const std::string& words, const std::string& more = "") {
    return "bf16 " + words + " " + dims + " " + format + " causal " + more;
  };
  const std::string four = "layout=packed q_lengths=9,0,9,2 k_lengths=40,9,20,2";
  std::vector<CallProblem> all = {
      latent(line("b1 q64 k64 h1", "lse")),
      latent(line("b2 q1 k130 h40", "lse sink k_lengths=130,0")),
      latent(line("b2 q3 k200 h35", "layout=packed q_lengths=3,1 k_lengths=200,33")),
      latent(line("b1 q1 k70 h36", "scale=0")),
      latent_of_nan(line("b1 q1 k70 h33", "lse")),
      latent_that_lies(line("b2 q1 k90 h34", "k_lengths=90,17 splits=1"), {-3, most}),
      latent_that_lies(line("b4 q9 k40 h33", four), {}, {-5, 9, most, 8, 8}, {-5, 60, most, 20, 30}),
      latent_that_lies(line("b2 q1 k90 h33", "lse layout=packed q_lengths=1,1 k_lengths=90,90"), {}, {0, 1, 2},
                       {0, most, most}),  // rows whose keys start behind the last
      latent_that_grows(line("b1 q1 k2150 h33", "lse splits=1")),
      latent(line("b1 q34 k1090 h1", "lse sink splits=1")),
  };
  if (format.contains("row_scales=64")) {
    all.push_back(latent_of_no_numbers(format + " causal"));
    all.push_back(latent_of_no_numbers(format + " causal", 128, 70));  // widened in the walk, not before it
  }
  return all;
}

std::vector<CallProblem> latent_paged(const std::string& page, const std::string& smaller_page) {
  const std::string layout = " layout=paged:" + page;
  const std::string smaller = " layout=paged:" + smaller_page;
  return {
      latent("bf16 b2 q1 k130 h40 d576/512 causal lse k_lengths=130,0" + layout),
      latent("bf16 b2 q3 k200 h24 d576/512 causal lse q_lengths=3,1 k_lengths=200,33" + layout),
      latent("bf16 b1 q5 k70 h12 d576/512 causal apart lse sink" + layout),
      latent_of_nan("bf16 b1 q2 k70 h40 d576/512 causal lse" + layout),
      latent("bf16 b64 q1 k64 h33 d576/512 causal lse k_lengths=" + each_length() + smaller),
      latent("bf16 b1 q40 k150 h1 d576/512 causal lse" + smaller),
      latent("bf16 b1 q2 k65 h33 d576/512 causal lse" + smaller),
      latent("bf16 b1 q2 k70 h36 d576/512 causal scale=0" + smaller),
      latent_that_lies("bf16 b2 q2 k90 h34 d576/512 causal k_lengths=90,17 splits=1" + layout, {-300, most}),
      latent_that_lies("bf16 b4 q9 k40 h8 d576/512 causal q_lengths=9,0,9,2 k_lengths=40,9,20,2" + layout,
                       {40, 9, 20, 2}, {-5, 9, most, 8, 8}),
      latent_that_grows("bf16 b1 q2 k2150 h33 d576/512 causal lse splits=1" + layout),
      latent("bf16 b1 q2 k1090 h34 d576/512 causal lse sink splits=1" + smaller),
      latent_of(with_page_list(latent_arrays("bf16 b3 q2 k130 h20 d576/512 causal lse k_lengths=130,0,70" + smaller))),
      latent_of_lying_starts("bf16 b3 q2 k130 h20 d576/512 causal k_lengths=130,40,70 splits=1" + smaller,
                             {-5, 4, most, 2}),
      latent_of_lying_starts("bf16 b3 q2 k130 h20 d576/512 causal k_lengths=130,40,70 splits=1" + smaller,
                             {16, most, most, 2}),
      latent_of_pages_apart("bf16 b2 q1 k150 h36 d576/512 causal k_lengths=150,30" + layout),
      latent_of_lying_entries("bf16 b2 q2 k90 h34 d576/512 causal k_lengths=90,17 splits=1" + layout, -1),
      latent_of_lying_entries("bf16 b2 q2 k90 h34 d576/512 causal k_lengths=90,17 splits=1" + smaller, most),
  };
}

std::vector<CallProblem> latent_listed(const std::string& words) {
  const bool paged = !words.empty();
  const std::string packed = "bf16 b4 q3 k90 h34 d576/512 lse top_k=70:mixed q_lengths=3,0,2,1 k_lengths=90,9,60,2" +
                             (paged ? words : " layout=packed");
  const Numbers key_starts = paged ? Numbers() : Numbers{-5, 100, most, 20, 90};
  std::vector<CallProblem> all = {
      latent("bf16 b1 q3 k200 h40 d576/512 lse top_k=130:mixed" + words),
      latent("bf16 b2 q3 k90 h36 d576/512 causal lse sink top_k=70:mixed k_lengths=90,1" + words),
      latent_of_nan("bf16 b1 q1 k70 h40 d576/512 lse top_k=50" + words),
      latent_of_each_count("bf16 b192 q1 k64 h33 d576/512 top_k=192:mixed" + words),
      latent_of_lying_counts("bf16 b4 q1 k90 h34 d576/512 top_k=70:mixed" + words),
      latent_that_lies("bf16 b2 q1 k90 h34 d576/512 top_k=70:mixed k_lengths=90,17" + words, {-3, most}),
      latent_that_lies("bf16 b2 q1 k90 h34 d576/512 top_k=70:mixed k_lengths=90,17" + words, {most, -3}),
      latent(packed),
      latent_that_lies(packed, {90, 9, 60, 2}, {-5, 3, most, 2, 2}, key_starts),
      latent_that_grows("bf16 b1 q2 k1500 h33 d576/512 lse top_k=700 splits=1" + words),
      latent("bf16 b1 q1 k700 h34 d576/512 lse sink top_k=600:mixed splits=1" + words),
      latent_with_holes("bf16 b1 q2 k700 h34 d576/512 lse top_k=600 splits=1" + words),
      latent("bf16 b1 q1 k70 h48 d576/512 scale=0 top_k=65" + words),
  };
  if (!paged) {
    // A sequence with rows whose keys start behind the last.
    all.push_back(
        latent_that_lies("bf16 b2 q1 k90 h33 d576/512 lse top_k=70 layout=packed q_lengths=1,1 k_lengths=90,90", {},
                         {0, 1, 2}, {0, most, most}));
    return all;
  }
  const std::string larger_pages = " layout=paged:48";
  const std::string several = "bf16 b3 q1 k130 h40 d576/512 top_k=100:mixed k_lengths=130,40,70" + words;
  all.push_back(latent_of(with_page_list(latent_arrays(several))));
  for (const Numbers& starts : {Numbers{-5, 4, most, 2}, Numbers{16, most, most, 2}})
    all.push_back(latent_of_lying_starts(several, starts));
  for (const std::int32_t entry : {-1, most}) all.push_back(latent_of_lying_entries(several, entry));
  all.push_back(latent("bf16 b1 q2 k300 h36 d576/512 lse top_k=250:mixed" + larger_pages));
  for (const std::string& pages : {words, larger_pages})
    all.push_back(latent_of_pages_apart("bf16 b2 q1 k200 h36 d576/512 top_k=150:mixed k_lengths=200,30" + pages));
  return all;
}

std::vector<CallProblem> latent_in_runs() {
  return {
      latent("bf16 b1 q2 k2150 h33 d576/512 causal lse sink splits=3"),
      latent("bf16 b2 q1 k1090 h35 d576/512 lse k_lengths=1090,3 splits=2"),
      latent("bf16 b1 q40 k1050 h2 d576/512 causal splits=2"),
      latent("bf16 b1 q40 k1050 h1 d576/512 lse splits=2"),
      latent("bf16 b1 q40 k1050 h1 d576/512 causal lse splits=2"),
      latent("bf16 b1 q100 k1090 h1 d576/512 lse splits=2"),
      latent_below_zero("bf16 b1 q1 k2150 h33 d576/512 lse splits=3"),
      latent_that_lies("bf16 b2 q1 k1100 h34 d576/512 k_lengths=1100,17 splits=2", {-300, most}),
      latent_that_lies("bf16 b3 q9 k1100 h8 d576/512 layout=packed q_lengths=9,0,9 k_lengths=1100,9,1050 splits=2", {},
                       {-5, 9, most, 7}, {-5, 60, most, 30}),
      latent("bf16 b3 q9 k1100 h8 d576/512 layout=packed q_lengths=3,9,1 k_lengths=9,1100,1050 splits=2"),
      latent_that_lies(
          "bf16 b4 q9 k1100 h8 d576/512 layout=packed q_lengths=9,0,9,2 k_lengths=1100,9,1050,700 splits=2", {},
          {-5, 10, 17, most, 19}, {-2000, 60, 2300, most, 30}),
      latent_that_grows("bf16 b1 q1 k9300 h33 d576/512 lse splits=5"),
  };
}

std::vector<CallProblem> latent_in_one_launch() {
  const char* const three_runs = "bf16 b2 q1 k2150 h16 d320/256 lse splits=3 launches=1";
  return {latent(three_runs), latent(three_runs)};
}

std::vector<CallProblem> latent_merged() {
  const std::string merged = " d320/256 launches=1";
  std::vector<CallProblem> all = latent_in_one_launch();
  for (CallProblem& more : std::vector<CallProblem>{
           latent("bf16 b2 q1 k1090 h13 lse sink k_lengths=1090,3 splits=2" + merged),
           latent("bf16 b2 q1 k1090 h9 k_lengths=1090,0 splits=2" + merged),
           latent("bf16 b1 q30 k1038 h1 lse splits=2" + merged),
           latent("bf16 b1 q1 k1090 h5 scale=0 splits=2" + merged),
           latent_of_nan("bf16 b1 q1 k1070 h12 lse splits=2" + merged),
           latent_below_zero("bf16 b1 q1 k2150 h16 lse splits=3" + merged),
           latent("bf16 b64 q1 k1090 h3 lse splits=2 k_lengths=1090" + each_length().substr(1) + merged),
           latent_that_lies("bf16 b2 q1 k1100 h10 k_lengths=1100,17 splits=2" + merged, {-300, most}),
           latent_that_lies("bf16 b3 q9 k1100 h3 layout=packed q_lengths=9,0,9 k_lengths=1100,9,1050 splits=2" + merged,
                            {}, {-5, 9, most, 7}, {-5, 60, most, 30}),
           latent("bf16 b3 q9 k1100 h3 layout=packed q_lengths=3,9,1 k_lengths=9,1100,1050 splits=2" + merged),
           latent_that_lies(
               "bf16 b4 q9 k1100 h3 layout=packed q_lengths=9,0,9,2 k_lengths=1100,9,1050,700 splits=2" + merged, {},
               {-5, 10, 17, most, 19}, {-2000, 60, 2300, most, 30}),
           latent_of_too_many_keys(
               "bf16 b2 q1 k1100 h3 lse layout=packed q_lengths=1,1 k_lengths=1100,1100 splits=2" + merged, {0, 1, 2},
               {0, 2200, 2200}),
           // A sequence with a row whose keys start behind the last.
           latent_that_lies("bf16 b2 q1 k1100 h3 lse layout=packed q_lengths=1,1 k_lengths=1100,1100 splits=2" + merged,
                            {}, {0, 1, 2}, {0, most, most}),
           // Four chunks, and nine: all of those that one turn of the merge takes, and one more than two.
           latent("bf16 b1 q1 k4000 h16 lse splits=2" + merged),
           latent_that_grows("bf16 b1 q1 k9000 h16 lse splits=5" + merged),
       })
    all.push_back(std::move(more));
  return all;
}

}  // namespace wavejit::tests
