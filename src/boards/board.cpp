// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "boards/board.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace wavejit::boards {
namespace {

constexpr int kib = 1024;
constexpr std::uint64_t gib = 1024ULL * 1024 * 1024;

struct Row {
  std::string_view target;
  BoardFacts facts;
};

// Sources: AMD's white papers and data sheets; memory clocks from the published 5.3 and 8 TB/s over 8192 pins; granules
// of LDS are what LLVM's LDS_SIZE counts (granulated_lds_size of llc-22 for amdgcn-mesa-mesa3d). Copy engines: 16 of
// MI300X, of which Linux's driver keeps two for the host; MI355X is taken to have as many.
constexpr std::array<Row, 4> table = {{
    {"gfx942",
     {.product = "MI300X",
      .compute_units = 304,
      .xcds = 8,
      .clock_khz = 2'100'000,
      .memory_bytes = 192 * gib,
      .isa_minor = 4,
      .memory_clock_khz = 1'300'000,
      .memory_bus_bits = 8192,
      .l2_bytes = 4 * 1024 * kib,
      .sdma_engines = 2,
      .sdma_peer_engines = 14}},
    {"gfx950",
     {.product = "MI355X",
      .compute_units = 256,
      .xcds = 8,
      .clock_khz = 2'400'000,
      .memory_bytes = 288 * gib,
      .lds_granule = 2048,
      .isa_minor = 5,
      .memory_clock_khz = 2'000'000,
      .memory_bus_bits = 8192,
      .l2_bytes = 4 * 1024 * kib,
      .sdma_engines = 2,
      .sdma_peer_engines = 14}},
    // An RX 9070 XT is the same with half the memory, 2,970 MHz; an RX 9070 has 56 compute units (gfx1201@1x56). Boost
    // clocks; memory of 20 Gbit/s a pin.
    {"gfx1201",
     {.product = "Radeon AI PRO R9700",
      .compute_units = 64,
      .clock_khz = 2'920'000,
      .memory_bytes = 32 * gib,
      .lds_granule = 1024,
      .vgpr_granule = 24,
      .isa_major = 12,
      .isa_minor = 0,
      .memory_clock_khz = 5'000'000,
      .memory_bus_bits = 256,
      .l2_bytes = 8 * 1024 * kib,
      .sdma_engines = 2,
      .sdma = gfx12_sdma}},
    {"gfx1200",
     {.product = "Radeon RX 9060 XT",
      .compute_units = 32,
      .clock_khz = 3'130'000,
      .memory_bytes = 16 * gib,
      .lds_granule = 1024,
      .vgpr_granule = 24,
      .isa_major = 12,
      .isa_minor = 0,
      .memory_clock_khz = 5'000'000,
      .memory_bus_bits = 128,
      .l2_bytes = 4 * 1024 * kib,
      .sdma_engines = 2,
      .sdma = gfx12_sdma}},
}};

// Products stand in the order of their targets, the complete ones first.
const std::size_t complete_rows = targets::complete_targets().size();

// From 1 to 999, digits only; 0 for other text.
int count(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr std::size_t most_digits = 3;
  const bool digits = text.size() <= most_digits && error == std::errc{} && end == text.data() + text.size();
  return digits && value > 0 ? value : 0;
}

}  // namespace

std::span<const Board> all_products() {
  static const std::array<Board, table.size()> products = [] {
    std::array<Board, table.size()> made;
    for (std::size_t i = 0; i < table.size(); ++i) made[i] = {*targets::find_target(table[i].target), table[i].facts};
    return made;
  }();
  return products;
}

std::span<const Board> complete_products() { return all_products().first(complete_rows); }

const Board* find_product(std::string_view id) {
  const std::string_view processor = id.substr(0, id.find(':'));
  const std::span<const Board> products = all_products();
  const auto found = std::ranges::find(products, processor, [](const Board& board) { return board.id; });
  return found == products.end() ? nullptr : &*found;
}

Board board_of(const Board& product, int xcds, int compute_units) {
  Board board = product;
  if (xcds >= 1) board.xcds = xcds;
  if (compute_units >= board.xcds) board.compute_units = compute_units;
  return board;
}

std::optional<Board> find_board(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  const Board* product = find_product(name);
  if (product == nullptr || product->id != name) return std::nullopt;
  if (at == std::string_view::npos) return *product;
  const std::string_view counts = text.substr(at + 1);
  const std::size_t times = counts.find('x');
  const int xcds = count(counts.substr(0, times));
  const int of_die = times == std::string_view::npos ? 0 : count(counts.substr(times + 1));
  if (xcds == 0 || of_die == 0) return std::nullopt;
  return board_of(*product, xcds, xcds * of_die);
}

std::string board_name(const Board& board) {
  const Board* product = find_product(board.id);
  std::string name(board.id);
  if (product != nullptr && (board.xcds != product->xcds || board.compute_units != product->compute_units))
    name += "@" + std::to_string(board.xcds) + "x" + std::to_string(board.compute_units / board.xcds);
  return name;
}

}  // namespace wavejit::boards
