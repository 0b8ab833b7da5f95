// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/row_tiles.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {
namespace {

using language::Kernel;
using language::Value;
using language::Values;

constexpr int unit_bytes = 16;

// The one image: lines of sixteen units, four of them in what an instruction of the DMA fills.
constexpr int all_banks_bytes = 256;
constexpr int units_of_bank_line = all_banks_bytes / unit_bytes;
constexpr int lines_of_fill = 4;
constexpr int fill_bytes = lines_of_fill * units_of_bank_line * unit_bytes;
constexpr int fill_stride = fill_bytes + unit_bytes;
constexpr int units_of_address = 4;  // which no key changes

Value* key_of_line(Kernel& kernel, Value* line) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateMul(ir.CreateAnd(line, kernel.constant(lines_of_fill - 1)), kernel.constant(units_of_address));
}
// Where unit `unit` of row `row` begins, in bytes. `units`: the units of a row.
Value* place_of_unit(Kernel& kernel, Value* row, Value* unit, int units) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const int rows = units_of_bank_line / units;
  Value* line = ir.CreateUDiv(row, kernel.constant(rows));
  Value* in_line =
      ir.CreateAdd(ir.CreateMul(ir.CreateAnd(row, kernel.constant(rows - 1)), kernel.constant(units)), unit);
  Value* fill = ir.CreateUDiv(line, kernel.constant(lines_of_fill));
  return ir.CreateAdd(ir.CreateMul(ir.CreateAdd(ir.CreateMul(line, kernel.constant(units_of_bank_line)),
                                                ir.CreateXor(in_line, key_of_line(kernel, line))),
                                   kernel.constant(unit_bytes)),
                      ir.CreateMul(fill, kernel.constant(fill_stride - fill_bytes)));
}

// Where rows and columns have an image each: bits 0, 1 and 2 of a row as bits 1, 2 and 0.
Value* key_of(Kernel& kernel, Value* row) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* high = ir.CreateShl(ir.CreateAnd(row, kernel.constant(3)), kernel.constant(1));
  return ir.CreateOr(high, ir.CreateAnd(ir.CreateLShr(row, kernel.constant(2)), kernel.constant(1)));
}

// The image of columns: the unit of a line of 128 bytes at which unit `unit` of a dim's rows stands. A line is one dim
// of 64 rows, or two of 32; then bits 1, 2, 3 and 4 of a dim are k0 … k3, and the key k3, k1, k0 ^ k2. So eight
// neighbouring dims have the same unit in eight places (a read), and every fourth of 32 dims too (a write). Threads of
// eight dims write every eighth of 64: there the key's k1 is k1 ^ bit 5.
constexpr int units_of_line = 8;
constexpr int key_bits = 5;  // of a dim, that the key of a line of two dims knows
Value* unit_in_line(Kernel& kernel, Value* dim, Value* unit, int units, bool of_eight_dims) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto bits = [&](int from, int mask) {
    return ir.CreateAnd(ir.CreateLShr(dim, kernel.constant(from)), kernel.constant(mask));
  };
  if (units == units_of_line) return ir.CreateXor(unit, ir.CreateXor(bits(0, units - 1), bits(3, units - 1)));
  Value* key = ir.CreateXor(bits(1, 3), bits(3, 1));
  if (of_eight_dims) key = ir.CreateXor(key, ir.CreateShl(bits(5, 1), kernel.constant(1)));
  key = ir.CreateOr(key, ir.CreateShl(bits(4, 1), kernel.constant(2)));
  return ir.CreateXor(ir.CreateOr(unit, ir.CreateShl(bits(0, 1), kernel.constant(2))), key);
}
// The line's first byte.
Value* line_of(Kernel& kernel, Value* dim, int units) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateMul(units == units_of_line ? dim : ir.CreateLShr(dim, kernel.constant(1)),
                      kernel.constant(units_of_line * unit_bytes));
}
// What `dim`, a small one, changes of the unit.
int unit_change(int dim, int units) {
  return units == units_of_line ? dim & (units - 1) : ((dim & 1) << 2) ^ (dim >> 1 & 3);
}

}  // namespace

RowTilePlan plan_tile(const targets::Target& target, const RowTileShape& shape, int first_byte, int first_region) {
  const bool transposes = target.transpose_read && target.lds_dma_bytes >= unit_bytes;
  const int bytes = shape.rows * shape.dims * shape.element_bytes;
  return {.shape = shape,
          .transposes = transposes,
          .buffers = transposes ? shape.filled_buffers : 1,
          .image_bytes = transposes ? bytes / fill_bytes * fill_stride : bytes,
          .first_byte = first_byte,
          .first_region = first_region};
}

RowTile::RowTile(Kernel& kernel, const language::Lds& lds, const language::MatrixUnit& matrix, const RowTilePlan& plan,
                 Value* row_stride)
    : kernel_(kernel), lds_(lds), matrix_(matrix), plan_(plan), row_stride_(row_stride) {
  if (plan.transposes) {
    prepare_fills();
    prepare_reads_of_image();
  } else {
    prepare_registers();
    prepare_reads_of_images();
  }
}

// Bits of a unit that its line's key changes stand in an address; the others in an instruction's offset.
void RowTile::prepare_reads_of_image() {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  const int units = units_of_row();
  Value* lane = kernel_.lane();
  Value* group = language::group_of_lane(kernel_, lane);
  for (int first = 0; first < units; first += units_of_address)
    read_rows_.push_back(read_from(
        place_of_unit(kernel_, language::row_of_lane(kernel_, lane), ir.CreateAdd(group, constant(first)), units)));
  if (!plan_.shape.by_columns) return;
  // 16 lanes take four rows of 16 dims; the second 16 lanes the next 16 dims, lane group h rows 4h … 4h + 3.
  Value* in_sixteen = ir.CreateAnd(lane, constant(targets::transpose_lanes - 1));
  Value* piece = ir.CreateAnd(lane, constant(3));
  Value* second = ir.CreateAnd(ir.CreateLShr(lane, constant(4)), constant(1));
  Value* row = ir.CreateAdd(ir.CreateMul(group, constant(4)), ir.CreateLShr(in_sixteen, constant(2)));
  Value* unit = ir.CreateAdd(ir.CreateShl(second, constant(1)), ir.CreateLShr(piece, constant(1)));
  Value* in_unit = ir.CreateMul(ir.CreateAnd(piece, constant(1)), constant(unit_bytes / 2));
  for (int first = 0; first < units; first += units_of_address)
    read_columns_.push_back(
        read_from(ir.CreateAdd(place_of_unit(kernel_, row, ir.CreateAdd(unit, constant(first)), units), in_unit)));
}

void RowTile::prepare_reads_of_images() {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  Value* lane = kernel_.lane();
  Value* group = language::group_of_lane(kernel_, lane);
  Value* row = language::row_of_lane(kernel_, lane);
  Value* row_place = read_from(ir.CreateMul(row, constant(row_bytes())));
  Value* unit = ir.CreateXor(group, key_of(kernel_, row));
  for (int bits = 0; bits < unit_elements(); bits += 2)
    read_rows_.push_back(
        ir.CreateAdd(row_place, ir.CreateMul(ir.CreateXor(unit, constant(bits)), constant(unit_bytes))));
  if (!plan_.shape.by_columns) return;
  const int units = units_of_column();
  Value* swizzled = unit_in_line(kernel_, row, group, units, false);
  Value* dim_place = read_from(line_of(kernel_, row, units));
  // Where a block has 16 dims, the next block changes one more bit of the unit in a line of two dims.
  const int changes = language::wave_shape(kernel_).row_bits() < key_bits ? units_of_line : units;
  for (int bits = 0; bits < changes; bits += 2)
    read_columns_.push_back(
        ir.CreateAdd(dim_place, ir.CreateMul(ir.CreateXor(swizzled, constant(bits)), constant(unit_bytes))));
}

Value* RowTile::read_from(Value* place) const {
  if (plan_.address_bytes == 0) return place;
  return kernel_.ir().CreateAdd(place, kernel_.constant(plan_.address_bytes));
}

// As unit_in_line, of a multiple of 16.
int RowTile::unit_of_block(int dim) const {
  if (units_of_column() == units_of_line) return dim >> 3 & (units_of_line - 1);
  const auto bit = [dim](int number) { return dim >> number & 1; };
  return (bit(4) << 2) ^ (writes_eight_dims() ? bit(5) << 1 : 0);
}

int RowTile::unit_elements() const { return unit_bytes / plan_.shape.element_bytes; }
int RowTile::fills_of_wave() const { return plan_.image_bytes / fill_stride / filling_waves(); }
int RowTile::rows_of_fill() const { return fill_bytes / row_bytes(); }

// Fill i of wave w is number w · fills + i; its lanes write 16 bytes each, one behind the other.
void RowTile::prepare_fills() {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  const int units = units_of_row();
  const int rows_of_line = units_of_bank_line / units;
  Value* lane = kernel_.lane();
  Value* line = ir.CreateUDiv(lane, constant(units_of_bank_line));
  Value* in_line = ir.CreateXor(ir.CreateAnd(lane, constant(units_of_bank_line - 1)), key_of_line(kernel_, line));
  Value* row = ir.CreateAdd(ir.CreateMul(line, constant(rows_of_line)), ir.CreateUDiv(in_line, constant(units)));
  Value* wave = filling_wave();
  row = ir.CreateAdd(row, ir.CreateMul(wave, constant(fills_of_wave() * rows_of_fill())));
  Value* unit = ir.CreateAnd(in_line, constant(units - 1));
  offsets_.push_back(ir.CreateAdd(ir.CreateMul(row, row_stride_), ir.CreateMul(unit, constant(unit_bytes))));
  fill_place_ = ir.CreateMul(wave, constant(fills_of_wave() * fill_stride));
}

int RowTile::filling_threads() const { return threads / plan_.shape.waves_of_filling; }
int RowTile::dims_of_thread() const {
  return plan_.shape.rows * plan_.shape.dims / (filling_threads() * rows_of_thread);
}
Value* RowTile::filling_wave() const {
  Value* wave = kernel_.wave();
  if (plan_.shape.waves_of_filling == 1) return wave;
  return kernel_.ir().CreateUDiv(wave, kernel_.constant(plan_.shape.waves_of_filling));
}
Value* RowTile::filling_thread() const {
  if (plan_.shape.waves_of_filling == 1) return kernel_.thread();
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateAdd(ir.CreateMul(filling_wave(), kernel_.constant(kernel_.target().wave_size)), kernel_.lane());
}

// A thread has a block of four rows and some dims: it can write both images.
void RowTile::prepare_registers() {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto constant = [&](int value) { return kernel_.constant(value); };
  const int dims = dims_of_thread();
  const int groups = plan_.shape.dims / dims;
  Value* thread = filling_thread();
  // Among 16 neighbouring threads eight have a group of rows, and eight the one that shares its units of columns (two
  // behind it, or the next), at dims eight groups away: so neither the rows that they write nor the columns meet in a
  // bank.
  const auto bits = [&](int from, int mask) {
    return ir.CreateAnd(ir.CreateLShr(thread, constant(from)), constant(mask));
  };
  constexpr int neighbour_threads = 16;
  const int more = groups / 8;
  Value* half = bits(3, 1);
  Value* dim_group = bits(0, 7);
  if (more > 1) dim_group = ir.CreateOr(dim_group, ir.CreateShl(ir.CreateXor(bits(4, more - 1), half), constant(3)));
  Value* rest = ir.CreateUDiv(thread, constant(neighbour_threads * more));
  Value* other = ir.CreateAnd(rest, constant(1));
  Value* row_group = ir.CreateOr(has_whole_blocks() ? half : other,
                                 ir.CreateOr(ir.CreateShl(has_whole_blocks() ? other : half, constant(1)),
                                             ir.CreateShl(ir.CreateLShr(rest, constant(1)), constant(2))));
  Value* dim = ir.CreateMul(dim_group, constant(dims));
  Value* unit = ir.CreateLShr(dim, constant(3));
  Value* in_unit = ir.CreateMul(ir.CreateAnd(dim, constant(unit_elements() - 1)), constant(plan_.shape.element_bytes));
  for (int i = 0; i < rows_of_thread; ++i) {
    Value* row = ir.CreateAdd(ir.CreateMul(row_group, constant(rows_of_thread)), constant(i));
    offsets_.push_back(
        ir.CreateAdd(ir.CreateMul(row, row_stride_), ir.CreateMul(dim, constant(plan_.shape.element_bytes))));
    Value* swizzled = ir.CreateMul(ir.CreateXor(unit, key_of(kernel_, row)), constant(unit_bytes));
    row_places_.push_back(ir.CreateAdd(ir.CreateAdd(ir.CreateMul(row, constant(row_bytes())), swizzled), in_unit));
  }
  if (!plan_.shape.by_columns) return;
  // Row group g = 4s + j: unit 2s + j % 2, its upper half for j ≥ 2; with whole blocks unit 2s + j / 2, its upper half
  // for odd j. Of the dims only the key differs.
  Value* of_rows = ir.CreateShl(ir.CreateLShr(row_group, constant(2)), constant(1));
  Value* of_unit = has_whole_blocks() ? ir.CreateLShr(row_group, constant(1)) : row_group;
  of_rows = ir.CreateOr(of_rows, ir.CreateAnd(of_unit, constant(1)));
  const int units = units_of_column();
  column_place_ = ir.CreateAdd(
      line_of(kernel_, dim, units),
      ir.CreateAdd(ir.CreateMul(unit_in_line(kernel_, dim, of_rows, units, writes_eight_dims()), constant(unit_bytes)),
                   ir.CreateMul(half, constant(unit_bytes / 2))));
}

void RowTile::add_fetch(language::Strand& strand, int buffer, const std::function<language::Buffer()>& from,
                        Value* first_row, Values& loaded) {
  // What the pieces share.
  struct Way {
    std::optional<language::Buffer> from;
    Value* offset = nullptr;
    Value* place = nullptr;
  };
  const auto way = std::make_shared<Way>();
  strand.add(
      [=, this] {
        way->from = from();
        way->offset = kernel_.ir().CreateMul(first_row, row_stride_);
        if (plan_.first_dim != 0)
          way->offset =
              kernel_.ir().CreateAdd(way->offset, kernel_.constant(plan_.first_dim * plan_.shape.element_bytes));
        // Else every fill's place would be kept in a scalar register of its own.
        if (plan_.transposes) way->place = language::opaque(kernel_, fill_place_);
      },
      address_slots);
  if (!plan_.transposes) {
    for (Value* row : offsets_)
      strand.add(
          [=, this, &loaded] {
            loaded.push_back(way->from->load(dims_of_thread() * plan_.shape.element_bytes, row, way->offset));
          },
          load_slots);
    return;
  }
  for (int i = 0; i < fills_of_wave(); ++i)
    strand.add(
        [=, this] {
          Value* rows = kernel_.ir().CreateMul(row_stride_, kernel_.constant(i * rows_of_fill()));
          lds_.fill(plan_.first_region + buffer, *way->from, unit_bytes, offsets_.front(),
                    kernel_.ir().CreateAdd(way->offset, rows), way->place, at(buffer) + (i * fill_stride));
        },
        fill_slots);
}

void RowTile::add_rows(language::Strand& strand, const Values& loaded, std::size_t first) {
  if (plan_.transposes || !plan_.has_rows()) return;
  for (std::size_t i = 0; i < row_places_.size(); ++i)
    strand.add([=, this, &loaded] { lds_.write(plan_.first_region, loaded[first + i], row_places_[i], at(0)); },
               store_slots);
}

// Four rows of dwords, two dims each → for every dim a pair of dwords, four rows.
void RowTile::add_columns(language::Strand& strand, const Values& loaded, std::size_t first, int image) {
  if (!plan_.has_columns()) return;
  const auto dword = [=, this, &loaded](std::size_t row, int dim) {
    Value* four = loaded[first + row];
    return four->getType()->isVectorTy() ? kernel_.ir().CreateExtractElement(four, static_cast<std::uint64_t>(dim / 2))
                                         : four;
  };
  const auto pair = [=, this](std::size_t row, int dim) {
    constexpr std::uint32_t low_halves = 0x05040100;
    constexpr std::uint32_t high_halves = 0x07060302;
    // v_perm_b32: selector bytes 0–3 name the second source, 4–7 the first.
    return kernel_.ir().CreateIntrinsic(
        llvm::Intrinsic::amdgcn_perm, {},
        {dword(row + 1, dim), dword(row, dim), kernel_.ir().getInt32(dim % 2 == 0 ? low_halves : high_halves)});
  };
  for (int dim = 0; dim < dims_of_thread(); ++dim)
    strand.add(
        [=, this] {
          llvm::IRBuilder<>& ir = kernel_.ir();
          Value* rows = llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), 2));
          rows = ir.CreateInsertElement(rows, pair(0, dim), std::uint64_t{0});
          rows = ir.CreateInsertElement(rows, pair(2, dim), std::uint64_t{1});
          // The first dim is a multiple of their number: the others change low bits of the unit.
          const int units = units_of_column();
          Value* place = ir.CreateXor(column_place_, kernel_.constant(unit_change(dim, units) * unit_bytes));
          const int line = units == units_of_line ? dim : dim / 2;
          lds_.write(plan_.first_region, rows, place,
                     at(0) + plan_.columns_byte() + (image * plan_.image_bytes) + (line * units_of_line * unit_bytes));
        },
        2 + store_slots);
}

// A fragment of rows is two units, of columns four.
language::OperandA RowTile::rows(int buffer, int row_block, int dim_block) {
  const int row = row_block * language::wave_shape(kernel_).rows;
  int offset = from(buffer);
  Value* place = nullptr;
  if (plan_.transposes) {
    constexpr int of_address = units_of_address / 2;
    offset += (row / rows_of_fill() * fill_stride) + (dim_block % of_address * 2 * unit_bytes);
    place = read_rows_[static_cast<std::size_t>(dim_block / of_address)];
  } else {
    offset += (row * row_bytes()) + (dim_block / 4 * unit_elements() * unit_bytes);
    place = read_rows_[static_cast<std::size_t>(dim_block % 4)];
  }
  return matrix_.operand_a(lds_.read(plan_.first_region + buffer, unit_bytes, place, offset),
                           language::KOrder::contiguous);
}

language::OperandA RowTile::transposed(int buffer, int dim_block, int row_block) {
  const int region = plan_.first_region + buffer;
  if (!plan_.transposes) {
    const int units = units_of_column();
    // The key of the block's dims: bits of the block that fall into it, and the unit's own.
    const int dim = dim_block * language::wave_shape(kernel_).rows;
    const int bits = unit_of_block(dim) ^ (2 * row_block & (units - 1));
    const int offset =
        from(buffer) + plan_.columns_byte() + (column_image_ * plan_.image_bytes) + (dim * column_bytes());
    return matrix_.operand_a(lds_.read(region, unit_bytes, read_columns_[static_cast<std::size_t>(bits / 2)], offset),
                             language::KOrder::accumulator_rows);
  }
  Value* place = read_columns_[static_cast<std::size_t>(dim_block)];
  const auto offset_of = [&](int row) { return from(buffer) + (row / rows_of_fill() * fill_stride); };
  const int row = row_block * language::wave_shape(kernel_).fragment_k();
  Value* first = lds_.read_transposed(region, place, offset_of(row));
  Value* second = lds_.read_transposed(region, place, offset_of(row + 8));
  return matrix_.operand_a(kernel_.ir().CreateShuffleVector(first, second, {0, 1, 2, 3}),
                           language::KOrder::accumulator_rows);
}

}  // namespace wavejit::attention_backward
