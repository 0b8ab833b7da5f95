// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What fits into the registers of a wave: a table of what LLVM made of kernels (room.inc), and which of its cells a
// spec is. `kernel_room` compiles the kernels and writes the table, as `wavejit tune` writes tuned_defaults.inc.
//
// A line is the kernels of one walk, class of head dims, kind of numbers and kind of keys on one target; a cell in it is
// one way to end rows, with one set of modifiers and one limit of what rows see. A cell says for how many waves a SIMD
// has registers, none where a kernel spills whatever it is given, and was measured by its heaviest kernels.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "targets/targets.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// How the rows of a walk end: in O, in parts, or in parts that the last workgroup merges.
enum class RowEnd : std::uint8_t { whole, split, merged };
inline constexpr std::array all_row_ends = {RowEnd::whole, RowEnd::split, RowEnd::merged};
// Modifiers in code. `all`: a bias of 16 bits beside others. `wide`: a bias in f32, alone or beside others.
enum class ScoreKind : std::uint8_t { plain, softcap, alibi, softcap_alibi, bias, all, wide };
inline constexpr std::size_t score_kinds = 7;
// What rows see: all keys, those under a diagonal, and so on.
enum class LimitKind : std::uint8_t { none, diagonal, window, chunked, flags };
inline constexpr std::size_t limit_kinds = 5;

struct RoomCell {
  RowEnd end = RowEnd::whole;
  ScoreKind scores = ScoreKind::plain;
  LimitKind limits = LimitKind::none;
  // In the text of a line's end: a group for each kind of scores, in it a digit for each kind of limits.
  std::size_t place() const {
    return (static_cast<std::size_t>(scores) * limit_kinds) + static_cast<std::size_t>(limits);
  }
};
inline constexpr std::size_t cells_of_end = score_kinds * limit_kinds;

// "gfx1201 generic128 d128 16bits pages": the line of the table that has the spec.
std::string room_line(const ForwardKernel& spec, const targets::Target& target);
RoomCell room_cell(const ForwardKernel& spec);

// The text of an end: one digit where all cells are alike, else all of them. '-': it spills. '.': nobody measured it,
// since rules of other reasons leave no such kernel.
struct RoomLine {
  std::string_view line;
  std::array<std::string_view, all_row_ends.size()> ends;
};
inline constexpr char spills = '-';
inline constexpr char unmeasured = '.';
// A hexadecimal digit, and what it stands for.
char digit_of_waves(int waves);
char cell_of(const RoomLine& line, const RoomCell& cell);

std::span<const RoomLine> room_table();
// Null: the table has no such line.
const RoomLine* find_room(std::string_view line);
// LLVM's version when the table was made.
std::string_view room_llvm_version();

// For how many waves a SIMD has registers; 0: the kernel spills. Nothing: the table does not know.
std::optional<int> measured_waves(const ForwardKernel& spec, const targets::Target& target);

// Budgets that kernels of the spec may have, the preferred one first: mostly what LDS leaves anyway. Others cost
// workgroups, or what a kernel does with its registers.
std::vector<int> vgpr_budgets(const ForwardKernel& spec, const targets::Target& target);
// The one of them that the table says, of a spec that it does not refuse.
int measured_budget(const ForwardKernel& spec, const targets::Target& target);

}  // namespace wavejit::attention_forward
