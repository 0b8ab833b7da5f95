// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace wavejit::attention::program {

namespace {

// Rows of a view: as many as the largest tile has.
constexpr std::int64_t view_rows = 256;
// Neighbours that are compared together: a lane owns one, and a matrix instruction has 32.
constexpr std::int64_t run_rows = 8;

// `count` of `total`, evenly, the last one among them.
std::vector<std::size_t> spread(std::size_t count, std::size_t total) {
  std::vector<std::size_t> chosen;
  count = std::min(count, total);
  for (std::size_t i = 1; i <= count; ++i) chosen.push_back(i * total / count - 1);
  return chosen;
}

std::uint64_t tiles_of_head(const Experiment& problem, std::int64_t tile_rows) {
  return static_cast<std::uint64_t>((problem.query_length + tile_rows - 1) / tile_rows);
}

std::size_t affordable(double limit, double cost, std::size_t least) {
  return std::max(least, static_cast<std::size_t>(std::min(limit / std::max(cost, 1.0), 1e9)));
}

}  // namespace

Workgroups choose_workgroups(const Experiment& problem, std::int64_t tile_rows, double limit, bool pairs) {
  const std::uint64_t tiles = tiles_of_head(problem, tile_rows);
  const std::uint64_t of_head = pairs ? tiles - (tiles / 2) : tiles;
  Workgroups chosen;
  chosen.total = static_cast<std::uint64_t>(problem.query_heads) * of_head * static_cast<std::uint64_t>(problem.batch);
  const double cost = multiplications(problem) / static_cast<double>(chosen.total);
  const std::uint64_t count = std::min<std::uint64_t>(affordable(limit, cost, 2), chosen.total);
  // No divisor in common with the grid: every dimension moves at every step. Rounded up: the last step reaches the end.
  chosen.step = (chosen.total + count - 1) / count;
  while (std::gcd(chosen.step, chosen.total) != 1) ++chosen.step;
  // The last rows have the most keys and the tail. With a causal mask grids begin with them.
  chosen.first = (problem.mask.bits & WAVEJIT_MASK_CAUSAL) != 0 ? 0 : (chosen.total - 1) % chosen.step;
  chosen.count = (chosen.total - 1 - chosen.first) / chosen.step + 1;
  return chosen;
}

std::uint64_t tiles_of(const Experiment& problem, const Workgroups& workgroups, std::int64_t tile_rows, bool pairs) {
  const std::uint64_t tiles = tiles_of_head(problem, tile_rows);
  if (!pairs) return workgroups.count;
  std::uint64_t owned = 0;
  for (std::uint64_t i = 0; i < workgroups.count; ++i) {
    const std::uint64_t id = workgroups.first + (i * workgroups.step);
    const std::uint64_t y = id / static_cast<std::uint64_t>(problem.query_heads) % (tiles - (tiles / 2));
    owned += y < tiles / 2 ? 2 : 1;
  }
  return owned;
}

std::vector<View> choose_views(const Experiment& problem, double limit) {
  std::vector<View> all;
  double cost = 0;
  const std::vector<Sequence> sequences = sequences_of(problem);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const Sequence& sequence = sequences[static_cast<std::size_t>(b)];
    // A view says where its diagonal begins, which must be at a key.
    const std::int64_t before = std::max<std::int64_t>(-rules_of(problem, sequence).position, 0);
    const RowWork work(problem, sequence);
    for (std::int64_t kv_head = 0; kv_head < problem.kv_heads; ++kv_head) {
      for (std::int64_t row = before; row < sequence.queries; row += view_rows) {
        const std::int64_t rows = std::min(view_rows, sequence.queries - row);
        all.push_back({.sequence = b, .kv_head = kv_head, .first_row = row, .rows = rows});
        cost += work.of(row + rows / 2) * static_cast<double>(rows * problem.group());
      }
    }
  }
  std::vector<View> chosen;
  if (all.empty()) return chosen;
  for (const std::size_t i : spread(affordable(limit, cost / static_cast<double>(all.size()), 1), all.size()))
    chosen.push_back(all[i]);
  return chosen;
}

Rows rows_of(const Experiment& problem, const std::vector<View>& views) {
  Rows rows;
  for (const View& view : views) {
    for (std::int64_t head = view.kv_head * problem.group(); head < (view.kv_head + 1) * problem.group(); ++head) {
      auto& numbers = rows[{.sequence = view.sequence, .head = head}];
      for (std::int64_t row = view.first_row; row < view.first_row + view.rows; ++row) numbers.push_back(row);
    }
  }
  return rows;
}

std::uint64_t race_shadow_bytes(const Experiment& problem, std::uint64_t pieces, std::int64_t rows) {
  constexpr std::uint64_t bytes_of_dword = 40;  // a cell of simgpu's MemoryShadow
  constexpr std::uint64_t page = 4096;
  const std::uint64_t whole = device_bytes(problem) / 4 * bytes_of_dword;
  if (pieces == 0) return whole;
  // Rows of one head lie apart: each begins a page of its own, and ends in one.
  const auto of_rows = [](std::int64_t count, std::int64_t elements) {
    return static_cast<std::uint64_t>(count) * (static_cast<std::uint64_t>(elements) / 2 * bytes_of_dword + page);
  };
  std::uint64_t piece =
      of_rows(rows + problem.key_length, problem.head_dim_qk) + of_rows(rows + problem.key_length, problem.head_dim_v);
  if (problem.has(Modifier::bias)) piece += of_rows(rows, problem.key_length);
  return pieces > whole / piece ? whole : pieces * piece;
}

Rows all_rows(const Experiment& problem) {
  Rows rows;
  const std::vector<Sequence> sequences = sequences_of(problem);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(sequences[static_cast<std::size_t>(b)].queries));
    std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
    if (numbers.empty()) continue;
    for (std::int64_t head = 0; head < problem.query_heads; ++head) rows[{.sequence = b, .head = head}] = numbers;
  }
  return rows;
}

Rows choose_rows(const Experiment& problem, const Rows& rows, double limit) {
  struct Run {
    HeadOfSequence head;
    std::size_t first, count;
  };
  std::vector<Run> runs;
  double cost = 0;
  const std::vector<Sequence> sequences = sequences_of(problem);
  for (const auto& [head, numbers] : rows) {
    const RowWork work(problem, sequences[static_cast<std::size_t>(head.sequence)]);
    for (std::size_t first = 0; first < numbers.size(); first += run_rows) {
      const std::size_t count = std::min<std::size_t>(run_rows, numbers.size() - first);
      runs.push_back({.head = head, .first = first, .count = count});
      cost += work.of(numbers[first]) * static_cast<double>(count);
    }
  }
  if (cost <= limit || runs.empty()) return rows;
  Rows chosen;
  for (const std::size_t i : spread(affordable(limit, cost / static_cast<double>(runs.size()), 1), runs.size())) {
    const Run& run = runs[i];
    const auto begin = rows.at(run.head).begin() + static_cast<std::ptrdiff_t>(run.first);
    auto& numbers = chosen[run.head];
    numbers.insert(numbers.end(), begin, begin + static_cast<std::ptrdiff_t>(run.count));
  }
  return chosen;
}

std::string partial_tile(const Experiment& problem, const Rows& rows, std::int64_t tile_rows, std::int64_t& tiles) {
  const std::vector<Sequence> sequences = sequences_of(problem);
  tiles = 0;
  for (const auto& [head, numbers] : rows) {
    const std::int64_t queries = sequences[static_cast<std::size_t>(head.sequence)].queries;
    for (std::size_t i = 0; i < numbers.size(); ++tiles) {
      const std::int64_t first = numbers[i] / tile_rows * tile_rows;
      const std::int64_t last = std::min(first + tile_rows, queries) - 1;
      const auto count = static_cast<std::size_t>(last - first + 1);
      if (numbers[i] != first || i + count > numbers.size() || numbers[i + count - 1] != last)
        return fmt::format("sequence {}, head {}, rows {} to {}", head.sequence, head.head, first, last);
      i += count;
    }
  }
  return {};
}

}  // namespace wavejit::attention::program
