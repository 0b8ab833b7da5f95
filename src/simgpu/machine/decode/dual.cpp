// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/dual.h"

#include <array>
#include <cstring>

#include "simgpu/machine/decode/operands.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {
namespace {

constexpr std::string_view pair_name = "v_dual";
constexpr std::string_view part_prefix = "v_dual_";
constexpr std::string_view between = " :: ";

void execute_dual(Wave& wave, const Instruction& instruction) {
  const Dual& dual = dual_of(instruction);
  if (!dual.crossed) {
    dual.first.execute(wave, dual.first);
    dual.second.execute(wave, dual.second);
    return;
  }
  auto& place = wave.vgpr[dual.first.destination[0].index];
  std::array<std::uint32_t, lane_places> before;
  std::array<std::uint32_t, lane_places> after;
  std::memcpy(before.data(), place, sizeof(place));
  dual.first.execute(wave, dual.first);
  std::memcpy(after.data(), place, sizeof(place));
  std::memcpy(place, before.data(), sizeof(place));
  dual.second.execute(wave, dual.second);
  std::memcpy(place, after.data(), sizeof(place));
}

std::expected<void, std::string> read_part(std::string_view printed, std::string_view operands,
                                           const Registry& registry, const Instruction& whole, Instruction& part) {
  const std::string name = "v_" + std::string(printed.substr(part_prefix.size()));
  const Registry::Entry* entry = registry.find(name);
  if (entry == nullptr || entry->select == nullptr) {
    return std::unexpected("the simulated GPU does not know " + std::string(printed));
  }
  part.function = whole.function;
  part.address = whole.address;
  part.offset_in_function = whole.offset_in_function;
  part.bytes = whole.bytes;
  part.encoding = Encoding::e32;
  part.mnemonic = entry->mnemonic;
  part.id = entry->id;
  part.record = &entry->record;
  part.instruction_class = entry->record.instruction_class;
  if (auto read = read_operands(operands, 1, part); !read) return read;
  // The mask that a select reads is VCC, and not printed.
  if (entry->record.flow == Flow::select && part.source_count == 2) {
    part.source[2] = {.index = sgpr_vcc, .kind = OperandKind::scalar, .dwords = 1};
    part.source_count = 3;
  }
  part.execute = entry->select(part);
  if (part.execute == nullptr) {
    return std::unexpected("the simulated GPU does not know " + std::string(printed) + " with these operands");
  }
  return {};
}

bool reads(const Instruction& part, const Operand& written) {
  for (unsigned i = 0; i < part.source_count; ++i) {
    if (part.source[i].is_vector() && part.source[i].index == written.index) return true;
  }
  return false;
}

}  // namespace

bool is_dual(std::string_view printed) { return printed.starts_with(part_prefix); }

std::expected<void, std::string> read_dual(std::string_view printed, std::string_view operands,
                                           const Registry& registry, std::deque<Dual>& duals,
                                           Instruction& instruction) {
  const std::size_t middle = operands.find(between);
  const Registry::Entry* entry = registry.find(pair_name);
  if (entry == nullptr || middle == std::string_view::npos) return std::unexpected("one half of a pair alone");
  const std::string_view rest = operands.substr(middle + between.size());
  const std::size_t space = rest.find(' ');
  const std::string_view second = rest.substr(0, space);
  if (!is_dual(second) || space == std::string_view::npos) return std::unexpected("no second half of a pair");
  Dual& dual = duals.emplace_back();
  if (auto read = read_part(printed, operands.substr(0, middle), registry, instruction, dual.first); !read) return read;
  if (auto read = read_part(second, rest.substr(space + 1), registry, instruction, dual.second); !read) return read;
  dual.crossed = reads(dual.second, dual.first.destination[0]);
  instruction.mnemonic = entry->mnemonic;
  instruction.id = entry->id;
  instruction.record = &entry->record;
  instruction.instruction_class = entry->record.instruction_class;
  instruction.execute = entry->handler;
  instruction.destination = {dual.first.destination[0], dual.second.destination[0]};
  instruction.destination_count = 2;
  instruction.payload = std::bit_cast<std::uint64_t>(&dual);
  return {};
}

void register_dual(Registry& registry) {
  registry.add_own(pair_name, &execute_dual, {.kind = IssueKind::plain, .action = Action::dual});
}

}  // namespace wavejit::simgpu
