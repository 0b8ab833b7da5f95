// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stands in the arrays of a problem before a run.
#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>

#include "templates/attention/program/device_rows.h"
#include "templates/attention/program/row_layout.h"
#include "tools/byte_float.h"

namespace wavejit::attention::program {

namespace {

constexpr std::size_t staging_bytes = std::size_t{8} << 20;
constexpr std::size_t rows_of_task = 1024;
constexpr std::uint16_t not_a_number = 0xFFFF;  // of both types

// Q of f32 that is rounded to what it is made of: a little less than half a step away, up and down in turn.
std::vector<float> unrounded(HalfType type, std::span<const std::uint16_t> elements) {
  const float off = type == HalfType::bf16 ? 0x1.fp-10F : 0x1.fp-13F;  // of the number
  std::vector<float> floats(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const float value = decode(type, elements[i]);
    const float moved = value * (i % 2 == 0 ? 1 + off : 1 - off);
    floats[i] = encode(type, static_cast<double>(moved)) == elements[i] ? moved : value;
  }
  return floats;
}

// How the rows of a head lie, of a page or of a batch entry.
RowLayout::Order order_of(const Experiment& problem, const Placement& placement, Operand operand) {
  if (placement.transposed) return RowLayout::Order::dims_apart;
  if (operand == Operand::q) return RowLayout::Order::hnd;
  return order_of_pages(problem.page_layout, true, operand == Operand::v);
}

template <typename Element>
void arrange(std::span<Element> head, std::int64_t dim, RowLayout::Order order) {
  const std::vector<Element> rows(head.begin(), head.end());
  const RowLayout layout(order, {1, std::ssize(rows) / dim, 1, dim});
  for (std::int64_t i = 0; i < std::ssize(rows); ++i)
    head[static_cast<std::size_t>(layout.place_of({0, i / dim, 0, i % dim}))] = rows[static_cast<std::size_t>(i)];
}

}  // namespace

std::vector<DeviceRows::Token> DeviceRows::tokens_in_memory(Operand operand, std::int64_t places) const {
  std::vector<Token> tokens(static_cast<std::size_t>(places));
  const bool of_queries = operand == Operand::q;
  for (std::size_t b = 0; b < sequences_.size(); ++b) {
    const std::int64_t first = of_queries ? sequences_[b].first_query : sequences_[b].first_key;
    for (std::int64_t i = 0; i < (of_queries ? sequences_[b].queries : sequences_[b].keys); ++i) {
      const std::int64_t place = of_queries ? first + i : slots_.of(static_cast<std::int64_t>(b), i);
      tokens[static_cast<std::size_t>(place)] = {.number = first + i, .position = i};
    }
  }
  return tokens;
}

Result<void> DeviceRows::fill(const Inputs& inputs) const {
  for (const auto& [tensor, operand, turned] : {std::tuple{&q_, Operand::q, false},
                                                {&k_, Operand::k, false},
                                                {&v_, Operand::v, false},
                                                {&second_k_, Operand::k, true},
                                                {&second_v_, Operand::v, true}})
    if (auto filled = fill(*tensor, operand, inputs, turned); !filled) return filled;
  return {};
}

Result<void> DeviceRows::fill(const DeviceTensor& tensor, Operand operand, const Inputs& inputs, bool turned) const {
  const auto byte_type = tools::byte_type_of(problem_.cache_dtype);
  constexpr std::uint8_t foreign_integer = 0x93;  // integers have no NaN
  const std::uint8_t nan_byte = byte_type ? tools::nan_of(*byte_type) : foreign_integer;
  const bool in_bytes = tensor.element == 1;
  if (auto done = tensor.memory.fill_margins(in_bytes ? nan_byte : tools::unwritten); !done) return done;
  return in_bytes ? fill_rows(tensor, operand, inputs, nan_byte, turned)
                  : fill_rows(tensor, operand, inputs, not_a_number, turned);
}

template <typename Element>
Result<void> DeviceRows::fill_rows(const DeviceTensor& tensor, Operand operand, const Inputs& inputs, Element nothing,
                                   bool turned) const {
  const Placement& placement = tensor.placement;
  if (placement.rows() == 0) return {};
  auto tokens = tokens_in_memory(operand, placement.batch * placement.length);
  if (turned) std::ranges::reverse(tokens);
  const RowLayout::Order order = order_of(problem_, placement, operand);
  const bool by_head = placement.head_first || placement.transposed;
  const auto dim = static_cast<std::size_t>(placement.head_dim);
  const auto rows = static_cast<std::size_t>(placement.rows());
  // Whole heads, where their rows do not stand one behind the other.
  const auto granule = static_cast<std::size_t>(order == RowLayout::Order::hnd ? 1 : placement.length);
  const std::size_t rows_at_once = std::max<std::size_t>(staging_bytes / (dim * 2) / granule, 1) * granule;
  std::vector<Element> staging(std::min(rows, rows_at_once) * dim);
  for (std::size_t first = 0; first < rows; first += rows_at_once) {
    const std::size_t count = std::min(rows_at_once, rows - first);
    on_all_cores((count + rows_of_task - 1) / rows_of_task, [&](std::size_t part) {
      for (std::size_t i = part * rows_of_task; i < std::min(count, (part + 1) * rows_of_task); ++i) {
        const auto place = static_cast<std::int64_t>(first + i);  // in memory
        const std::int64_t in_batch = place % (placement.length * placement.heads);
        const std::int64_t batch = place / (placement.length * placement.heads);
        const std::int64_t at =
            batch * placement.length + (by_head ? in_batch % placement.length : in_batch / placement.heads);
        const std::int64_t head = by_head ? in_batch / placement.length : in_batch % placement.heads;
        const Token& token = tokens[static_cast<std::size_t>(at)];
        const auto row = std::span(staging).subspan(i * dim, dim);
        if (token.position < 0)
          std::ranges::fill(row, nothing);
        else
          inputs.fill(operand, token.number * placement.heads + head, token.position, row);
      }
    });
    if (order != RowLayout::Order::hnd) {
      on_all_cores(count / granule, [&](std::size_t head) {
        arrange(std::span(staging).subspan(head * granule * dim, granule * dim), placement.head_dim, order);
      });
    }
    const void* from = staging.data();
    std::vector<float> floats;
    if constexpr (sizeof(Element) == 2) {
      if (tensor.element == sizeof(float)) floats = unrounded(problem_.type, std::span(staging).first(count * dim));
      if (!floats.empty()) from = floats.data();
    }
    char* to = tensor.memory.data() + (first * dim * tensor.element);
    if (auto copied = checked(wavejit_device_copy_in(engine_, to, from, count * dim * tensor.element)); !copied)
      return copied;
  }
  return {};
}

void* DeviceRows::filled_bias(const BiasPlacement& bias, const Inputs& inputs) {
  const std::size_t element = problem_.bias_fp32 ? sizeof(float) : sizeof(std::uint16_t);
  auto* memory = static_cast<char*>(
      memory_.hold(tools::DeviceArray::allocate(engine_, static_cast<std::size_t>(bias.elements()) * element)));
  const std::int64_t rows = bias.batches * bias.heads * bias.rows;
  const std::size_t row_bytes = static_cast<std::size_t>(bias.row_stride) * element;
  const auto at_once = static_cast<std::int64_t>(std::max<std::size_t>(staging_bytes / (row_bytes + 1), 1));
  for (std::int64_t first = 0; memory != nullptr && first < rows; first += at_once) {
    const auto count = static_cast<std::size_t>(std::min(at_once, rows - first));
    // Padding is NaN: no key may meet it.
    std::vector<unsigned char> staging(count * row_bytes, tools::unwritten);
    on_all_cores(count, [&](std::size_t i) {
      for (std::int64_t key = 0; key < bias.columns; ++key) {
        unsigned char* to = staging.data() + (i * row_bytes) + (static_cast<std::size_t>(key) * element);
        const float value = bias_element(problem_, inputs, first + static_cast<std::int64_t>(i), key);
        const std::uint16_t rounded = encode(problem_.type, static_cast<double>(value));
        std::memcpy(to, problem_.bias_fp32 ? static_cast<const void*>(&value) : &rounded, element);
      }
    });
    char* to = memory + (static_cast<std::size_t>(first) * row_bytes);
    memory_.keep(checked(wavejit_device_copy_in(engine_, to, staging.data(), staging.size())));
  }
  return memory;
}

}  // namespace wavejit::attention::program
