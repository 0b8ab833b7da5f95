// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where rows stand on the device, and what a run wrote of them.
#include "templates/attention/program/device_rows.h"

#include <algorithm>
#include <utility>

#include "templates/attention/program/described_call.h"
#include "templates/attention/program/key_lists.h"

namespace wavejit::attention::program {

// As unwritten memory has them.
constexpr std::uint16_t unwritten_element = 0xFFFF;
constexpr std::uint32_t unwritten_lse = 0xFFFFFFFF;

wavejit_tensor DeviceTensor::described(std::int32_t dtype) const { return tensor_of(placement, memory.data(), dtype); }

DeviceRows::DeviceRows(wavejit_engine* engine, const Experiment& problem)
    : engine_(engine), problem_(problem), sequences_(sequences_of(problem)), slots_(problem), memory_(engine) {
  const bool second = second_list_words(problem.text).top_k != 0;
  const Placement keys = stored(problem, keys_of(problem));
  const Placement values = stored(problem, values_of(problem));
  // LSE: [B, Hq, Sq], packed [Hq, total].
  Placement of_lse = queries_of(problem);
  of_lse.head_dim = 1;
  of_lse.head_first = true;
  q_ = make(queries_of(problem), problem.query_bytes());
  k_ = make(keys, problem.key_bytes());
  v_ = make(values, problem.value_bytes());
  second_k_ = make(keys, problem.key_bytes(), second);
  second_v_ = make(values, problem.value_bytes(), second);
  o_ = make(outputs_of(problem), problem.output_bytes());
  lse_ = make(of_lse, sizeof(float), problem.lse);
}

DeviceTensor DeviceRows::make(const Placement& placement, std::size_t element, bool is_there) {
  // The most rows by which a tile may stand beyond the last one.
  constexpr std::size_t margin_rows = 256;
  // A multiple of every alignment that is asked for.
  constexpr std::size_t alignment = 256;
  DeviceTensor tensor = {
      .placement = placement, .element = element, .memory = {.engine = engine_, .margin = alignment}};
  if (!is_there) tensor.placement.heads = 0;
  const Placement& of = tensor.placement;
  const std::size_t row = static_cast<std::size_t>(std::max(of.stride_of_token(), of.head_dim)) * element;
  if (of.rows() != 0) tensor.memory.margin = (margin_rows * row + alignment - 1) / alignment * alignment;
  tensor.memory.bytes = static_cast<std::size_t>(of.elements()) * element;
  tensor.memory.begin =
      static_cast<char*>(memory_.hold(tools::DeviceArray::allocate(engine_, tensor.memory.all_bytes())));
  return tensor;
}

Result<void> DeviceRows::erase() const {
  auto marked = o_.memory.mark();
  return marked ? lse_.memory.mark() : marked;
}

std::vector<std::uint16_t> DeviceRows::row_in(const std::vector<std::uint16_t>& outputs, std::int64_t token,
                                              std::int64_t head) const {
  const auto words = static_cast<std::int64_t>(o_.element / sizeof outputs.front());
  std::vector<std::uint16_t> row;
  row.reserve(static_cast<std::size_t>(words * problem_.head_dim_v));
  for (std::int64_t dim = 0; dim < problem_.head_dim_v; ++dim) {
    const std::int64_t at = o_.placement.offset(token, head) + (dim * o_.placement.stride_of_dim());
    row.insert(row.end(), outputs.begin() + (words * at), outputs.begin() + (words * (at + 1)));
  }
  return row;
}

Result<Rows> DeviceRows::written() const {
  const auto lse = lse_.memory.copy_of<std::uint32_t>(lse_.memory.data(), lse_.memory.bytes);
  if (!lse) return std::unexpected(lse.error());
  const auto output = o_.memory.copy_of<std::uint16_t>(o_.memory.data(), problem_.lse ? 0 : o_.memory.bytes);
  if (!output) return std::unexpected(output.error());
  const auto is_written = [&](std::int64_t token, std::int64_t head) {
    if (problem_.lse) return (*lse)[static_cast<std::size_t>(lse_.placement.offset(token, head))] != unwritten_lse;
    const std::vector<std::uint16_t> row = row_in(*output, token, head);
    return std::ranges::any_of(row, [](std::uint16_t bits) { return bits != unwritten_element; });
  };
  Rows rows;
  for (std::int64_t b = 0; b < problem_.batch; ++b) {
    const Sequence& sequence = sequences_[static_cast<std::size_t>(b)];
    for (std::int64_t head = 0; head < problem_.query_heads; ++head) {
      std::vector<std::int64_t> numbers;
      for (std::int64_t row = 0; row < sequence.queries; ++row)
        if (is_written(sequence.first_query + row, head)) numbers.push_back(row);
      if (!numbers.empty()) rows[{.sequence = b, .head = head}] = std::move(numbers);
    }
  }
  return rows;
}

Result<WrittenRows> DeviceRows::read(const Rows& rows) const {
  const auto lse = lse_.memory.copy_of<float>(lse_.memory.data(), lse_.memory.bytes);
  if (!lse) return std::unexpected(lse.error());
  // One copy of all of O if many of its rows are read, or if its rows are not contiguous.
  const bool all = 4 * count_of(rows) >= o_.placement.rows() || o_.placement.transposed;
  const auto whole = o_.memory.copy_of<std::uint16_t>(o_.memory.data(), all ? o_.memory.bytes : 0);
  if (!whole) return std::unexpected(whole.error());
  const std::size_t row_bytes = static_cast<std::size_t>(problem_.head_dim_v) * o_.element;
  WrittenRows written;
  for (const auto& [head, numbers] : rows) {
    auto& of_head = written[head];
    for (const std::int64_t row : numbers) {
      const std::int64_t token = sequences_[static_cast<std::size_t>(head.sequence)].first_query + row;
      auto output = all ? Result<std::vector<std::uint16_t>>(row_in(*whole, token, head.head))
                        : o_.memory.copy_of<std::uint16_t>(o_.row(token, head.head), row_bytes);
      if (!output) return std::unexpected(output.error());
      WrittenRow& to = of_head[row];
      to.output = *std::move(output);
      if (problem_.lse) to.lse = (*lse)[static_cast<std::size_t>(lse_.placement.offset(token, head.head))];
    }
  }
  return written;
}

Result<std::string> DeviceRows::broken_fence() const {
  auto broken = o_.memory.broken("o");
  return broken && broken->empty() ? lse_.memory.broken("lse") : broken;
}

}  // namespace wavejit::attention::program
