// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/streams_narrow.h"

#include <bit>

namespace wavejit::attention {
namespace {

using language::Value;
using language::Values;

int shift_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

}  // namespace

NarrowLines::NarrowLines(language::Kernel& kernel, language::Lds& lds, const language::MatrixUnit& matrix,
                         const Slice& slice, const LineStream::Place& place, int dims, int waves,
                         const std::optional<KeyPages>& pages, const std::optional<TilePages>& tile_pages,
                         CacheType cache)
    : RowLoads(kernel, lds, matrix, slice, place.buffers[0].region, place.buffers[0].offset, dims,
               waves * kernel.target().wave_size, pages, tile_pages, cache),
      place_(place),
      image_(kernel, lds, matrix, slice, place, dims, waves, pages, tile_pages) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  if (rows_apart() % LdsPlan::lines_per_piece != 0) kernel.refuse("rows of a thread that stand on several lines");
  Value* line = ir.CreateAnd(first_row_, constant(LdsPlan::lines_per_piece - 1));
  Value* slot = ir.CreateLShr(first_row_, constant(shift_of(LdsPlan::lines_per_piece)));
  Value* piece = ir.CreateLShr(first_unit_, constant(shift_of(loads_of_piece())));
  Value* in_piece = ir.CreateAnd(first_unit_, constant(loads_of_piece() - 1));
  write_ =
      ir.CreateAdd(ir.CreateMul(line, constant(place_.line_bytes)), ir.CreateMul(slot, constant(LdsPlan::piece_bytes)));
  write_ = ir.CreateAdd(write_, ir.CreateMul(piece, constant(LdsPlan::lines_per_piece * place_.line_bytes)));
  write_ = ir.CreateAdd(write_, ir.CreateMul(in_piece, constant(bytes_of_load())));
}

language::Strand NarrowLines::write(int buffer, const Values& in_flight) {
  language::Strand strand;
  const Values loaded = packed(in_flight);
  if (!widens()) {
    for (int i = 0; i < loads(); ++i)
      strand.add([=, this, unit = loaded[static_cast<std::size_t>(i)]] { write_unit(buffer, i, 0, unit); });
    return strand;
  }
  for (int i = 0; i < loads(); ++i)
    for (int half = 0; half < units_of_load(); ++half)
      // Four conversions and a write.
      strand.add(
          [=, this, dwords = loaded[static_cast<std::size_t>(i)]] {
            write_unit(buffer, i, half, widened_unit(dwords, half));
          },
          5);
  return strand;
}

language::Strand NarrowLines::widen(const Values& loaded, Values& units) const {
  language::Strand strand;
  llvm::Type* unit_type = kernel_.vector(kernel_.i32(), unit_bytes / 4);
  units.assign(static_cast<std::size_t>(loads()) * static_cast<std::size_t>(units_of_load()),
               llvm::PoisonValue::get(unit_type));
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    for (int pair = 0; pair < 2; ++pair)
      strand.add(
          [=, this, &loaded, &units] {
            const std::size_t of_load = unit % static_cast<std::size_t>(units_of_load());
            Value* from = loaded[unit / static_cast<std::size_t>(units_of_load())];
            const auto both = widened(from, (2 * static_cast<int>(of_load)) + pair);
            for (std::size_t each = 0; each < both.size(); ++each)
              units[unit] = kernel_.ir().CreateInsertElement(units[unit], both[each],
                                                             (2 * static_cast<std::size_t>(pair)) + each);
          },
          2);
  return strand;
}

void NarrowLines::write_units(int buffer, const Values& units) {
  for (int i = 0; i < loads(); ++i)
    for (int half = 0; half < units_of_load(); ++half)
      write_unit(buffer, i, half,
                 units[(static_cast<std::size_t>(i) * static_cast<std::size_t>(units_of_load())) +
                       static_cast<std::size_t>(half)]);
}

void NarrowLines::write_unit(int buffer, int load, int half, Value* unit) {
  const auto [rows, units] = place_of(load);
  const LineStream::Place::Buffer& to = place_.buffers[static_cast<std::size_t>(buffer)];
  lds_.write(to.region, unit, write_,
             to.offset + (rows / LdsPlan::lines_per_piece * LdsPlan::piece_bytes) +
                 (units / loads_of_piece() * LdsPlan::lines_per_piece * place_.line_bytes) +
                 (units % loads_of_piece() * bytes_of_load()) + (half * unit_bytes));
}

}  // namespace wavejit::attention
