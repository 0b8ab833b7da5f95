// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/tiles_vectorised.h"

#include <algorithm>

#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"

namespace wavejit::attention {
namespace {

using language::Kernel;
using language::Value;
using language::Values;

using Units = VectorisedPages;

constexpr int dims_of_line = 8;

// Where a lane's K fragments start: key = lane % 32, a lane group has every second line.
Value* k_read_of(Kernel& kernel, Value* lane_group, int bytes_of_line) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* key = language::row_of_lane(kernel, kernel.lane());
  return ir.CreateAdd(ir.CreateMul(key, kernel.constant(Units::unit_bytes)),
                      ir.CreateMul(lane_group, kernel.constant(bytes_of_line)));
}

int k_read_offset(const targets::WaveShape& wave, int bytes_of_line, int key_block, int dim_block) {
  return (wave.fragment_k() / dims_of_line * dim_block * bytes_of_line) + (key_block * wave.rows * Units::unit_bytes);
}

}  // namespace

LineUnits::LineUnits(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan, const KeyTensors& tensors,
                     Value* lane_group, const language::MatrixUnit& matrix)
    : kernel_(kernel),
      plan_(plan),
      matrix_(matrix),
      lds_(kernel, plan.total_bytes(), 2 * plan.buffers),
      pages_(kernel, shape, tensors),
      k_line_(kernel.ir().CreateMul(kernel.wave(), kernel.constant(plan.k_line_bytes))),
      v_line_(kernel.ir().CreateMul(kernel.wave(), kernel.constant(plan.v_line_bytes))),
      k_read_(k_read_of(kernel, lane_group, plan.k_line_bytes)) {
  // V: dim = lane % 32 on line dim / 8, where the DMA has put the halves of its granule.
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  Value* dim = language::row_of_lane(kernel, kernel.lane());
  Value* in_line = ir.CreateAnd(dim, constant(dims_of_line - 1));
  Value* place = ir.CreateMul(ir.CreateLShr(dim, constant(3)), constant(plan.v_line_bytes));
  place = ir.CreateAdd(place, ir.CreateMul(in_line, constant(2 * Units::unit_bytes)));
  place = ir.CreateAdd(place, ir.CreateMul(lane_group, constant(Units::unit_bytes / 2)));
  place = ir.CreateAdd(place, ir.CreateMul(ir.CreateLShr(in_line, constant(2)), constant(Units::unit_bytes)));
  v_read_ = {place, ir.CreateXor(place, constant(Units::unit_bytes))};
}

void LineUnits::fill(int buffer, Value* tile, Value* entries, Value* unseen) {
  const auto gather = [&](const Values& addresses, int region, Value* first_line, int offset, int bytes_of_line) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const int line = static_cast<int>(i) * pages_.waves();
      lds_.gather(region, addresses[i], Units::unit_bytes, first_line, offset + (line * bytes_of_line));
    }
  };
  gather(pages_.key_lines(tile, entries), k_region(buffer), k_line_, plan_.k_offset(buffer), plan_.k_line_bytes);
  gather(pages_.value_lines(tile, entries, unseen), v_region(buffer), v_line_, plan_.v_offset(buffer),
         plan_.v_line_bytes);
}

Values LineUnits::start(const Stops& stops, const TileWalk& walk) {
  Value* tile = walk.tile_at(stops[0]);
  Value* unseen = pages_.unseen_of(tile);
  fill(0, tile, pages_.entries(tile), unseen);
  Value* next = pages_.entries(walk.tile_at(stops[1]));
  if (unseen != nullptr)
    language::if_uniform(kernel_, pages_.begins_inside_unit(unseen), language::Likelihood::even, [&] {
      language::wait_for_lds_fills(kernel_);
      cut_values(0, [&](const Values& units) { return pages_.cut_unseen(unseen, units); });
    });
  return {next};
}

void LineUnits::cut_values(int buffer, const std::function<Values(const Values&)>& cut) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* place = ir.CreateAdd(v_line_, ir.CreateMul(kernel_.lane(), kernel_.constant(Units::unit_bytes)));
  const auto offset = [&](int line) { return plan_.v_offset(buffer) + (line * pages_.waves() * plan_.v_line_bytes); };
  Values units;
  for (int line = 0; line < pages_.v_lines(); ++line)
    units.push_back(lds_.read(v_region(buffer), Units::unit_bytes, place, offset(line)));
  units = cut(units);
  for (int line = 0; line < pages_.v_lines(); ++line)
    lds_.write(v_region(buffer), units[static_cast<std::size_t>(line)], place, offset(line));
  language::wait_for_lds(kernel_);
}

Values LineUnits::advance(int buffer, const Stops& stops, const TileWalk& walk, const Values& in_flight) {
  Value* tile = walk.tile_at(stops[0]);
  // As LineTiles: before the barrier a wave's own share of the tile is in LDS as it is meant to be, and its reads of
  // the tile before have returned.
  language::wait_for_lds_fills(kernel_);
  language::if_uniform(kernel_, pages_.ends_inside_unit(tile), language::Likelihood::rarely,
                       [&] { cut_values(buffer, [&](const Values& units) { return pages_.cut(tile, units); }); });
  language::barrier(kernel_);
  return language::if_uniform(kernel_, walk.exists(stops[1].place), language::Likelihood::even, in_flight,
                              [&](const Values& entries) -> Values {
                                fill((buffer + 1) % plan_.buffers, walk.tile_at(stops[1]), entries.front());
                                return {pages_.entries(walk.tile_at(stops[2]))};
                              });
}

language::OperandA LineUnits::key_rows(int buffer, int key_block, int dim_block) {
  const int offset =
      plan_.k_offset(buffer) + k_read_offset(language::wave_shape(kernel_), plan_.k_line_bytes, key_block, dim_block);
  return matrix_.operand_a(lds_.read(k_region(buffer), Units::unit_bytes, k_read_, offset),
                           language::KOrder::contiguous);
}

language::OperandA LineUnits::values_transposed(int buffer, int dim_block, int key_block) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int offset = plan_.v_offset(buffer) +
                     (language::wave_shape(kernel_).rows / dims_of_line * dim_block * plan_.v_line_bytes) +
                     (key_block * KeyPages::granule_keys * Units::unit_bytes);
  // Each half of the granule has the lane group's four keys.
  Value* first = lds_.read(v_region(buffer), Units::unit_bytes / 2, v_read_[0], offset);
  Value* second = lds_.read(v_region(buffer), Units::unit_bytes / 2, v_read_[1], offset);
  return matrix_.operand_a(ir.CreateShuffleVector(first, second, {0, 1, 2, 3}), language::KOrder::accumulator_rows);
}

RegisterUnits::RegisterUnits(language::Kernel& kernel, const TileShape& shape, const LdsPlan& plan,
                             const KeyTensors& tensors, Value* lane_group, const language::MatrixUnit& matrix)
    : kernel_(kernel),
      plan_(plan),
      matrix_(matrix),
      lds_(kernel, plan.total_bytes(), 2),
      pages_(kernel, shape, tensors),
      head_dim_v_(shape.dims_v),
      k_read_(k_read_of(kernel, lane_group, Units::line_bytes)) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  k_write_ = ir.CreateAdd(ir.CreateMul(kernel.wave(), constant(Units::line_bytes)),
                          ir.CreateMul(kernel.lane(), constant(Units::unit_bytes)));
  Value* dim = ir.CreateAdd(ir.CreateMul(kernel.wave(), constant(dims_of_line)), pages_.dim_of_line());
  v_write_ = ir.CreateAdd(ir.CreateMul(pages_.granule(), constant(2 * v_group_bytes())),
                          ir.CreateMul(dim, constant(Units::unit_bytes)));
  v_write_ = ir.CreateAdd(v_write_, ir.CreateMul(pages_.half(), constant(Units::unit_bytes / 2)));
  v_read_ = ir.CreateAdd(ir.CreateMul(lane_group, constant(v_group_bytes())),
                         ir.CreateMul(language::row_of_lane(kernel, kernel.lane()), constant(Units::unit_bytes)));
}

Values RegisterUnits::load(const Stop& stop, const Stop& next, const TileWalk& walk, Value* entries, Value* unseen) {
  Value* tile = walk.tile_at(stop);
  Values loaded;
  for (Value* address : pages_.key_lines(tile, entries))
    loaded.push_back(language::load_lanes(kernel_, address, Units::unit_bytes));
  for (Value* address : pages_.value_lines(tile, entries, unseen))
    loaded.push_back(language::load_lanes(kernel_, address, Units::unit_bytes));
  loaded.push_back(pages_.entries(walk.tile_at(next)));
  return loaded;
}

Values RegisterUnits::start(const Stops& stops, const TileWalk& walk) {
  Value* tile = walk.tile_at(stops[0]);
  Value* unseen = pages_.unseen_of(tile);
  Values loaded = load(stops[0], stops[1], walk, pages_.entries(tile), unseen);
  if (unseen == nullptr) return loaded;
  const auto first_value = loaded.begin() + pages_.k_lines();
  const Values values = language::if_uniform(kernel_, pages_.begins_inside_unit(unseen), language::Likelihood::even,
                                             {first_value, loaded.end() - 1},
                                             [&](const Values& units) { return pages_.cut_unseen(unseen, units); });
  std::ranges::copy(values, first_value);
  return loaded;
}

void RegisterUnits::write(const Values& loaded) {
  llvm::IRBuilder<>& ir = kernel_.ir();
  auto next = loaded.begin();
  for (int i = 0; i < pages_.k_lines(); ++i)
    lds_.write(k_region, *next++, k_write_, plan_.k_offset(0) + (i * pages_.waves() * Units::line_bytes));
  for (int i = 0; i < pages_.v_lines(); ++i) {
    const int offset = plan_.v_offset(0) + (i * pages_.waves() * dims_of_line * Units::unit_bytes);
    Value* unit = *next++;
    // Keys 0 … 3 of the unit are lane group 0's, 4 … 7 lane group 1's.
    lds_.write(v_region, ir.CreateShuffleVector(unit, {0, 1}), v_write_, offset);
    lds_.write(v_region, ir.CreateShuffleVector(unit, {2, 3}), v_write_, offset + v_group_bytes());
  }
}

Values RegisterUnits::advance(int /*buffer*/, const Stops& stops, const TileWalk& walk, const Values& in_flight) {
  Value* tile = walk.tile_at(stops[0]);
  const auto first_value = in_flight.begin() + pages_.k_lines();
  const Values keys(in_flight.begin(), first_value);
  const Values values = language::if_uniform(kernel_, pages_.ends_inside_unit(tile), language::Likelihood::rarely,
                                             {first_value, in_flight.end() - 1},
                                             [&](const Values& units) { return pages_.cut(tile, units); });
  // Nobody reads the previous tile any more …
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  Values all = keys;
  all.insert(all.end(), values.begin(), values.end());
  write(all);
  // … and everybody's part of this one has arrived.
  language::wait_for_lds(kernel_);
  language::barrier(kernel_);
  Values nothing;
  for (Value* value : in_flight) nothing.push_back(llvm::PoisonValue::get(value->getType()));
  return language::if_uniform(kernel_, walk.exists(stops[1].place), language::Likelihood::even, nothing,
                              [&](const Values&) { return load(stops[1], stops[2], walk, in_flight.back()); });
}

language::OperandA RegisterUnits::key_rows(int /*buffer*/, int key_block, int dim_block) {
  const int offset =
      plan_.k_offset(0) + k_read_offset(language::wave_shape(kernel_), Units::line_bytes, key_block, dim_block);
  return matrix_.operand_a(lds_.read(k_region, Units::unit_bytes, k_read_, offset), language::KOrder::contiguous);
}

language::OperandA RegisterUnits::values_transposed(int /*buffer*/, int dim_block, int key_block) {
  const int offset = plan_.v_offset(0) + (2 * key_block * v_group_bytes()) +
                     (dim_block * language::wave_shape(kernel_).rows * Units::unit_bytes);
  return matrix_.operand_a(lds_.read(v_region, Units::unit_bytes, v_read_, offset), language::KOrder::accumulator_rows);
}

}  // namespace wavejit::attention
