// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sparse_indexer/indexer_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <format>
#include <limits>
#include <random>
#include <stdexcept>

#include "support/noise_memory.h"
#include "support/normal_numbers.h"
#include "support/test_device.h"
#include "templates/sparse_indexer/program/reference.h"

namespace wavejit::tests {
namespace {

namespace program = sparse_indexer::program;

constexpr std::int64_t dim = 128;

std::size_t size(std::int64_t number) { return static_cast<std::size_t>(number); }

// Where the keys of a case stand, and their scales: dense, or in shuffled pages with the scales behind each page's
// keys.
struct KeyPlaces {
  explicit KeyPlaces(const IndexerCase& of) : which(of) {
    if (of.page == 0) {
      key_bytes = size(dim + of.key_gap()) * of.element_bytes();
      page_bytes = key_bytes * size(of.keys);
      pages = size(of.batch);
      return;
    }
    key_bytes = size(dim) * of.element_bytes();
    page_bytes = (size(of.page) * (key_bytes + 4) + 15) / 16 * 16;
    columns = (size(of.keys) + size(of.page) - 1) / size(of.page);
    pages = (columns * size(of.batch)) + 3;
    std::vector<std::int32_t> order(pages);
    for (std::size_t i = 0; i < pages; ++i) order[i] = static_cast<std::int32_t>(i);
    std::mt19937 shuffler(7);  // NOLINT(bugprone-random-generator-seed): the same pages in every run
    std::ranges::shuffle(order, shuffler);
    table.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(columns * size(of.batch)));
  }
  std::size_t page_of(std::int64_t batch, std::int64_t key) const {
    return which.page == 0 ? size(batch) : size(table[(size(batch) * columns) + size(key / which.page)]);
  }
  std::size_t key_at(std::int64_t batch, std::int64_t key) const {
    return (page_of(batch, key) * page_bytes) + (size(which.page == 0 ? key : key % which.page) * key_bytes);
  }
  // Dense scales have their own memory.
  std::size_t scale_at(std::int64_t batch, std::int64_t key) const {
    if (which.page == 0) return size((batch * which.keys) + key) * 4;
    return (page_of(batch, key) * page_bytes) + (size(which.page) * key_bytes) + (size(key % which.page) * 4);
  }
  std::size_t bytes() const { return pages * page_bytes; }

  const IndexerCase& which;
  std::size_t key_bytes = 0;
  std::size_t page_bytes = 0;
  std::size_t pages = 0;
  std::size_t columns = 0;
  std::vector<std::int32_t> table;
};

std::int32_t told(const IndexerCase& which) {
  if (which.bytes != nullptr) return which.bytes->dtype;
  return which.storage == Storage::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
}

// An element of queries or keys.
void put_element(NoiseMemory& memory, std::size_t byte, const IndexerCase& which, float value) {
  if (which.bytes != nullptr)
    memory.put(byte, nearest_byte(*which.bytes, value));
  else
    memory.put(byte, to_storage(which.storage, value));
}

void put_ints(NoiseMemory& memory, const std::vector<std::int32_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) memory.put(i * 4, values[i]);
}

}  // namespace

std::pair<std::int64_t, std::int64_t> IndexerCase::seen(std::size_t row) const {
  const std::size_t of_batch = row / size(rows);
  // A diagonal stands where the told length puts it, also beyond the keys that there are.
  const std::int64_t told = key_lengths.empty() ? keys : std::max<std::int64_t>(key_lengths[of_batch], 0);
  const std::int64_t length = std::min(told, keys);
  const std::int64_t diagonal = static_cast<std::int64_t>(row % size(rows)) + (prefix ? *prefix : told - rows);
  std::int64_t begin = key_begins.empty() ? 0 : std::max(key_begins[row], 0);
  std::int64_t end = key_ends.empty() ? length : std::min<std::int64_t>(length, key_ends[row]);
  if (causal) end = std::min(end, diagonal + 1);
  if (window && window->first >= 0) begin = std::max(begin, diagonal - window->first);
  if (window && window->second >= 0) end = std::min(end, diagonal + window->second + 1);
  return {begin, std::max(begin, end)};
}

IndexerCase indexer_case(Storage storage, std::int64_t batch, std::int64_t rows, std::int64_t keys, std::int64_t heads,
                         std::int64_t top, std::uint64_t seed) {
  IndexerCase which = {.storage = storage, .batch = batch, .rows = rows, .keys = keys, .heads = heads, .top = top};
  NormalNumbers normal(seed);
  const auto fill = [&](std::vector<float>& values, std::int64_t count, bool rounded) {
    values.resize(size(count));
    for (float& value : values) {
      value = normal();
      if (rounded) value = from_storage(storage, to_storage(storage, value));
    }
  };
  fill(which.queries, batch * rows * heads * dim, true);
  fill(which.key_vectors, batch * keys * dim, true);
  fill(which.weights, batch * rows * heads, false);
  return which;
}

IndexerCase byte_case(const ByteFormat& format, std::int64_t batch, std::int64_t rows, std::int64_t keys,
                      std::int64_t heads, std::int64_t top, std::uint64_t seed) {
  IndexerCase which = indexer_case(Storage::bf16, batch, rows, keys, heads, top, seed);
  which.bytes = &format;
  for (auto* values : {&which.queries, &which.key_vectors})
    for (float& value : *values) value = value_of_byte(format, nearest_byte(format, value));
  return which;
}

IndexerCase given_scores(std::int64_t batch, std::int64_t rows, std::int64_t keys, std::int64_t top,
                         std::uint64_t seed) {
  IndexerCase which = {.batch = batch, .rows = rows, .keys = keys, .top = top};
  NormalNumbers normal(seed);
  which.scores.resize(size(batch * rows * keys));
  for (float& score : which.scores) score = normal();
  return which;
}

IndexerCase only_row(const IndexerCase& which, std::size_t row) {
  IndexerCase one = which;
  one.batch = 1;
  one.rows = 1;
  const std::size_t batch = row / size(which.rows);
  const auto part = [](const auto& all, std::size_t index, std::int64_t count) {
    if (all.empty()) return all;
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(index * size(count));
    return std::remove_cvref_t<decltype(all)>(first, first + static_cast<std::ptrdiff_t>(count));
  };
  one.queries = part(which.queries, row, which.heads * dim);
  one.key_vectors = part(which.key_vectors, batch, which.keys * dim);
  one.weights = part(which.weights, row, which.heads);
  one.key_scales = part(which.key_scales, batch, which.keys);
  one.scores = part(which.scores, row, which.keys);
  const auto [begin, end] = which.seen(row);
  one.causal = false;
  one.window.reset();
  one.prefix.reset();
  one.key_lengths.clear();
  one.key_begins = {static_cast<std::int32_t>(begin)};
  one.key_ends = {static_cast<std::int32_t>(end)};
  return one;
}

IndexerOutput run_indexer(wavejit_engine* engine, const IndexerCase& which) {
  const KeyPlaces places(which);
  const std::size_t element = which.element_bytes();
  const std::int64_t head_stride = dim + which.key_gap();
  const std::int64_t row_stride = (which.heads * head_stride) + which.key_gap();
  const std::int64_t weight_stride = which.heads + 1;
  const std::int64_t score_stride = which.keys + 3;
  const std::int64_t list_stride = which.top + which.gap;
  NoiseMemory queries(engine, which.count() * size(row_stride) * element);
  NoiseMemory keys(engine, places.bytes());
  NoiseMemory scales(engine, size(which.batch * which.keys) * 4);
  NoiseMemory weights(engine, which.count() * size(weight_stride) * 4);
  NoiseMemory scores(engine, which.count() * size(score_stride) * 4);
  NoiseMemory indices(engine, which.count() * size(list_stride) * 4);
  NoiseMemory values(engine, which.count() * size(list_stride) * 4);
  NoiseMemory counts(engine, which.count() * 4);
  NoiseMemory lengths(engine, which.key_lengths.size() * 4);
  NoiseMemory begins(engine, which.key_begins.size() * 4);
  NoiseMemory ends(engine, which.key_ends.size() * 4);
  NoiseMemory table(engine, places.table.size() * 4);
  NoiseMemory starts(engine, size(which.batch + 1) * 4);
  const std::size_t workspace_bytes = size(which.workspace_rows) * ((size(which.keys) * 4 + 127) / 128 * 128);
  NoiseMemory workspace(engine, workspace_bytes);

  for (std::size_t row = 0; row < which.count(); ++row)
    for (std::int64_t head = 0; head < which.heads; ++head) {
      weights.put((row * size(weight_stride) + size(head)) * 4, which.weights[(row * size(which.heads)) + size(head)]);
      for (std::int64_t d = 0; d < dim; ++d)
        put_element(queries, (row * size(row_stride) + size(head * head_stride + d)) * element, which,
                    which.queries[(((row * size(which.heads)) + size(head)) * size(dim)) + size(d)]);
    }
  for (std::int64_t batch = 0; batch < which.batch && which.heads != 0; ++batch)
    for (std::int64_t key = 0; key < which.keys; ++key) {
      const std::size_t number = size((batch * which.keys) + key);
      for (std::int64_t d = 0; d < dim; ++d)
        put_element(keys, places.key_at(batch, key) + (size(d) * element), which,
                    which.key_vectors[(number * size(dim)) + size(d)]);
      if (!which.key_scales.empty())
        (which.page == 0 ? scales : keys).put(places.scale_at(batch, key), which.key_scales[number]);
    }
  for (std::size_t row = 0; row < which.count() && which.heads == 0; ++row)
    for (std::int64_t key = 0; key < which.keys; ++key)
      scores.put((row * size(score_stride) + size(key)) * 4, which.scores[(row * size(which.keys)) + size(key)]);
  put_ints(lengths, which.key_lengths);
  put_ints(begins, which.key_begins);
  put_ints(ends, which.key_ends);
  put_ints(table, places.table);
  for (std::int64_t batch = 0; batch <= which.batch; ++batch)
    starts.put(size(batch) * 4, which.table_starts.empty() ? static_cast<std::int32_t>(size(batch) * places.columns)
                                                           : which.table_starts[size(batch)]);
  for (NoiseMemory* memory : {&queries, &keys, &scales, &weights, &scores, &indices, &values, &counts, &lengths,
                              &begins, &ends, &table, &starts, &workspace})
    memory->in();

  wavejit_sparse_indexer_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_SPARSE_INDEXER;
  if (which.heads != 0) {
    call.queries = {.data = queries.data(),
                    .dtype = told(which),
                    .reserved = 0,
                    .sizes = {which.batch, which.rows, which.heads, dim},
                    .strides = {which.rows * row_stride, row_stride, head_stride, 1}};
    const auto key_stride = static_cast<std::int64_t>(places.key_bytes / element);
    call.keys = {.data = keys.data(),
                 .dtype = told(which),
                 .reserved = 0,
                 .sizes = {static_cast<std::int64_t>(places.pages), which.page == 0 ? which.keys : which.page, 1, dim},
                 .strides = {static_cast<std::int64_t>(places.page_bytes / element), key_stride, key_stride, 1}};
    call.weights = {.data = weights.data(),
                    .dtype = WAVEJIT_FP32,
                    .reserved = 0,
                    .sizes = {which.batch, which.rows, which.heads, 1},
                    .strides = {which.rows * weight_stride, weight_stride, 1, 1}};
    if (!which.key_scales.empty() && which.page == 0)
      call.key_scales = wavejit_dense_tensor(scales.data(), WAVEJIT_FP32, which.batch, which.keys, 1, 1);
    if (!which.key_scales.empty() && which.page != 0)
      call.key_scales = {.data = static_cast<std::uint8_t*>(keys.data()) + (size(which.page) * places.key_bytes),
                         .dtype = WAVEJIT_FP32,
                         .reserved = 0,
                         .sizes = {call.keys.sizes[0], which.page, 1, 1},
                         .strides = {static_cast<std::int64_t>(places.page_bytes / 4), 1, 1, 1}};
    if (which.page != 0) {
      call.pages.block_table = static_cast<std::int32_t*>(table.data());
      call.pages.table_columns = static_cast<std::int64_t>(which.list ? places.table.size() : places.columns);
      if (which.list) call.pages.table_starts = static_cast<std::int32_t*>(starts.data());
      call.max_key_length = which.keys;
    }
  }
  const bool has_scores = which.heads == 0 || which.wants_scores;
  if (has_scores)
    call.scores = {.data = scores.data(),
                   .dtype = WAVEJIT_FP32,
                   .reserved = 0,
                   .sizes = {which.batch, which.rows, 1, which.keys},
                   .strides = {which.rows * score_stride, score_stride, score_stride, 1}};
  if (which.top != 0) {
    call.indices = static_cast<std::int32_t*>(indices.data());
    call.counts = static_cast<std::int32_t*>(counts.data());
    if (which.wants_values) call.values = static_cast<float*>(values.data());
    call.indices_row_stride = list_stride;
    call.top_k = which.top;
  }
  if (which.workspace_rows != 0) {
    call.split.workspace = workspace.data();
    call.split.workspace_bytes = workspace_bytes;
  }
  if (which.causal) call.mask.bits |= WAVEJIT_MASK_CAUSAL;
  if (which.window) {
    call.mask.bits |= WAVEJIT_MASK_WINDOW;
    call.mask.window_left = which.window->first;
    call.mask.window_right = which.window->second;
  }
  if (which.prefix) {
    call.mask.bits |= WAVEJIT_MASK_PREFIX;
    call.mask.causal_prefix = *which.prefix;
  }
  if (!which.key_lengths.empty()) call.key_lengths = static_cast<std::int32_t*>(lengths.data());
  if (!which.key_begins.empty()) call.key_begins = static_cast<std::int32_t*>(begins.data());
  if (!which.key_ends.empty()) call.key_ends = static_cast<std::int32_t*>(ends.data());
  wavejit_call_report report{};
  report.size = sizeof report;
  call.head.report = &report;

  IndexerOutput output;
  wavejit_simgpu_take_reports(nullptr, 0);
  output.status = wavejit_sparse_indexer(engine, &call, nullptr);
  if (output.status == WAVEJIT_OK) output.status = wavejit_device_synchronize(engine);
  if (output.status != WAVEJIT_OK) output.detail = wavejit_last_detail();
  output.reports.resize(wavejit_simgpu_take_reports(nullptr, 0) + 1);
  output.reports.resize(wavejit_simgpu_take_reports(output.reports.data(), output.reports.size()));
  output.kernel_spec = report.kernel_spec;
  if (output.status != WAVEJIT_OK) return output;

  for (NoiseMemory* memory : {&scores, &indices, &values, &counts}) memory->out();
  for (std::size_t row = 0; row < which.count(); ++row) {
    for (std::int64_t key = 0; has_scores && key < which.keys; ++key)
      output.scores.push_back(scores.take<float>((row * size(score_stride) + size(key)) * 4));
    for (std::int64_t place = 0; place < which.top; ++place) {
      const std::size_t at = (row * size(list_stride) + size(place)) * 4;
      output.indices.push_back(indices.take<std::int32_t>(at));
      if (which.wants_values) output.values.push_back(values.take<float>(at));
    }
    if (which.top != 0) output.counts.push_back(counts.take<std::int32_t>(row * 4));
  }
  output.fence_intact = scores.is_noise() && indices.is_noise() && values.is_noise() && counts.is_noise();
  Outputs noted(output.status);
  noted.add(output.scores);
  noted.add(output.indices);
  return output;
}

std::string wrong_scores(const IndexerCase& which, const IndexerOutput& output) {
  // Sums of 128 products and of up to 128 heads in f32: far below its worst case, and far above what is met.
  constexpr double of_f32 = 2e-7;
  if (output.scores.empty()) return "no scores were written";
  for (std::size_t row = 0; row < which.count(); ++row) {
    const auto [begin, end] = which.seen(row);
    for (std::int64_t key = 0; key < which.keys; ++key) {
      const float found = output.scores[(row * size(which.keys)) + size(key)];
      if (key < begin || key >= end) {
        if (found != -std::numeric_limits<float>::infinity())
          return std::format("row {}, key {}: {} instead of -inf", row, key, found);
        continue;
      }
      const std::size_t number = ((row / size(which.rows)) * size(which.keys)) + size(key);
      const auto exact =
          program::exact_score(std::span(which.queries).subspan(row * size(which.heads * dim), size(which.heads * dim)),
                               std::span(which.weights).subspan(row * size(which.heads), size(which.heads)),
                               std::span(which.key_vectors).subspan(number * size(dim), size(dim)),
                               which.key_scales.empty() ? 1.0 : static_cast<double>(which.key_scales[number]));
      if (!(std::fabs(static_cast<double>(found) - exact.score) <= exact.magnitude * of_f32))
        return std::format("row {}, key {}: {} instead of {} ± {}", row, key, found, exact.score,
                           exact.magnitude * of_f32);
    }
  }
  return {};
}

std::string wrong_lists(const IndexerCase& which, const IndexerOutput& output, const std::vector<float>& scores) {
  if (output.counts.empty()) return "no lists were written";
  for (std::size_t row = 0; row < which.count(); ++row) {
    const auto [begin, end] = which.seen(row);
    const auto of_row = std::span(scores).subspan(row * size(which.keys), size(which.keys));
    const std::vector<std::int32_t> wanted = program::sorted_list(of_row, begin, end, which.top);
    if (output.counts[row] != std::ssize(wanted))
      return std::format("row {}: count {} instead of {}", row, output.counts[row], wanted.size());
    for (std::size_t place = 0; place < size(which.top); ++place) {
      const std::size_t at = (row * size(which.top)) + place;
      const std::int32_t index = place < wanted.size() ? wanted[place] : -1;
      if (output.indices[at] != index)
        return std::format("row {}, place {}: key {} instead of {}", row, place, output.indices[at], index);
      if (!which.wants_values) continue;
      const float value = index < 0 ? -std::numeric_limits<float>::infinity() : of_row[size(index)];
      if (std::bit_cast<std::uint32_t>(output.values[at]) != std::bit_cast<std::uint32_t>(value))
        return std::format("row {}, place {}: value {} instead of {}", row, place, output.values[at], value);
    }
  }
  return {};
}

}  // namespace wavejit::tests
