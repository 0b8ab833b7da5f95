#include "simgpu/checks/effects.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>

namespace wavejit::simgpu::checks {
namespace {

struct Width {
  std::string_view name;
  std::uint8_t bytes;
};

// What follows "_load_" or "_store_" in vector memory mnemonics.
constexpr std::array<Width, 21> memory_widths = {
    {{"ubyte", 1},        {"sbyte", 1},        {"byte", 1},      {"ushort", 2},       {"sshort", 2},
     {"short", 2},        {"dword", 4},        {"dwordx2", 8},   {"dwordx3", 12},     {"dwordx4", 16},
     {"ubyte_d16", 1},    {"ubyte_d16_hi", 1}, {"sbyte_d16", 1}, {"sbyte_d16_hi", 1}, {"short_d16", 2},
     {"short_d16_hi", 2}, {"byte_d16_hi", 1},  {"format_x", 4},  {"format_xy", 8},    {"format_xyz", 12},
     {"format_xyzw", 16}}};

std::optional<std::uint8_t> memory_width(std::string_view name) {
  const auto* found = std::ranges::find(memory_widths, name, &Width::name);
  if (found == memory_widths.end()) return std::nullopt;
  return found->bytes;
}

// The width in LDS mnemonics: "b128", "u8_d16_hi", "i16".
std::uint8_t local_width(std::string_view mnemonic) {
  for (const Width& width : {Width{"b128", 16}, Width{"b96", 12}, Width{"64", 8}, Width{"32", 4}, Width{"16", 2},
                             Width{"pk_add", 4}, Width{"8", 1}}) {
    // The last number names the width, save for halves: "ds_read_u8_d16", "ds_read_b64_tr_b16".
    std::string_view name = mnemonic;
    if (const std::size_t half = name.find("_d16"); half != std::string_view::npos) name = name.substr(0, half);
    if (const std::size_t transpose = name.find("_tr_"); transpose != std::string_view::npos) {
      name = name.substr(0, transpose);
    }
    if (name.starts_with("ds_pk_add")) return 4;
    if (name.ends_with(width.name)) return width.bytes;
  }
  return 4;
}

class Describer {
 public:
  explicit Describer(const Instruction& instruction) : instruction_(instruction) {}

  Effects run() {
    for (unsigned i = 0; i < instruction_.source_count; ++i) read(instruction_.source[i]);
    for (unsigned i = 0; i < instruction_.destination_count; ++i) write(instruction_.destination[i]);
    switch (instruction_.instruction_class) {
      case InstructionClass::scalar:
        scalar();
        break;
      case InstructionClass::control:
        control();
        break;
      case InstructionClass::vector:
        vector_instruction();
        break;
      case InstructionClass::matrix:
        effects_.action = Action::matrix;
        effects_.all_lanes = true;
        break;
      case InstructionClass::memory:
        memory();
        break;
      case InstructionClass::lds:
        local();
        break;
    }
    hazards();
    return effects_;
  }

 private:
  bool is(std::string_view name) const { return instruction_.mnemonic == name; }
  bool starts(std::string_view prefix) const { return instruction_.mnemonic.starts_with(prefix); }

  void read(const Operand& operand) {
    if (operand.is_vector()) {
      read({.first = operand.index, .count = operand.dwords, .scalar = false});
    } else if (operand.is_scalar() && operand.index < sgpr_count) {
      read({.first = operand.index, .count = operand.dwords, .scalar = true});
    } else if (operand.is_scalar() && operand.index == source_scc) {
      effects_.reads_scc = true;
    }
  }
  void read(Registers registers) {
    if (effects_.read_count < effects_.reads.size()) effects_.reads[effects_.read_count++] = registers;
    effects_.touched.insert(registers);
  }
  void write(const Operand& operand) {
    if (operand.is_vector()) {
      write({.first = operand.index, .count = operand.dwords, .scalar = false});
    } else if (operand.is_scalar() && operand.index < sgpr_count) {
      write({.first = operand.index, .count = operand.dwords, .scalar = true});
    }
  }
  void write(Registers registers) {
    if (effects_.write_count < effects_.writes.size()) effects_.writes[effects_.write_count++] = registers;
    effects_.touched.insert(registers);
  }
  void keep_destination() {
    if (effects_.keeps_destination) return;
    effects_.keeps_destination = true;
    for (unsigned i = 0; i < instruction_.destination_count; ++i) read(instruction_.destination[i]);
  }

  void scalar() {
    effects_.scalar_alu = true;
    // Those that leave SCC alone (CDNA3 ISA, chapter 12.1 to 12.3).
    constexpr std::array<std::string_view, 14> silent = {"s_mov",     "s_cmov",         "s_mul",   "s_bfm",  "s_pack",
                                                         "s_brev",    "s_ff",           "s_flbit", "s_sext", "s_bitset",
                                                         "s_cselect", "s_bitreplicate", "s_getpc", "s_cmovk"};
    effects_.writes_scc = std::ranges::none_of(silent, [&](std::string_view name) { return starts(name); });
    if (starts("s_mulk")) effects_.writes_scc = false;
    effects_.reads_scc =
        effects_.reads_scc || starts("s_cselect") || starts("s_cmov") || is("s_addc_u32") || is("s_subb_u32");
    if (starts("s_addk") || starts("s_mulk") || starts("s_cmov") || starts("s_bitset")) keep_destination();
    if (starts("s_movrel")) effects_.opaque = true;
    if (instruction_.mnemonic.contains("saveexec") || instruction_.mnemonic.contains("wrexec")) {
      read({.first = sgpr_exec, .count = 2, .scalar = true});
      write({.first = sgpr_exec, .count = 2, .scalar = true});
    }
  }

  void control() {
    // s_waitcnt of gfx9: vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8 (CDNA3 ISA, S_WAITCNT).
    if (is("s_waitcnt")) {
      effects_.action = Action::wait;
      const std::uint32_t word = instruction_.immediate;
      effects_.wait.vector = static_cast<std::uint8_t>((word & 0xf) | ((word >> 10) & 0x30));
      effects_.wait.local = static_cast<std::uint8_t>((word >> 8) & 0xf);
    } else if (is("s_nop")) {
      effects_.action = Action::nop;
      effects_.wait_states = static_cast<std::uint8_t>((instruction_.immediate & 0xf) + 1);
    } else if (is("s_barrier")) {
      effects_.action = Action::barrier;
    } else if (starts("s_endpgm")) {
      effects_.action = Action::end;
    } else if (starts("s_cbranch_scc")) {
      effects_.action = Action::branch_scc;
      effects_.reads_scc = true;
    } else if (starts("s_cbranch_vcc")) {
      effects_.action = Action::branch_vcc;
      read({.first = sgpr_vcc, .count = 2, .scalar = true});
    } else if (starts("s_cbranch_exec")) {
      effects_.action = Action::branch_exec;
    } else if (is("s_setpc_b64") || is("s_swappc_b64")) {
      effects_.action = Action::jump;
    } else if (is("s_memtime") || is("s_memrealtime")) {
      effects_.space = Space::scalar;
      effects_.counts_local = true;
    } else if (is("buffer_wbl2")) {
      effects_.counts_vector = true;
    } else if (starts("s_set_gpr_idx")) {
      write({.first = sgpr_m0, .count = 1, .scalar = true});
    }
  }

  void vector_instruction() {
    effects_.vector_alu = true;
    if (instruction_.inner != nullptr) effects_.opaque = true;  // relative register numbers
    // Instructions that move between lanes have handlers of their own and no lane kernel.
    if (is("v_readfirstlane_b32")) {
      effects_.action = Action::read_first_lane;
    } else if (is("v_readlane_b32")) {
      effects_.action = Action::read_lane;
      effects_.all_lanes = true;
    } else if (is("v_writelane_b32")) {
      effects_.action = Action::write_lane;
      effects_.all_lanes = true;
      keep_destination();
    } else if (starts("v_permlane16_swap") || starts("v_permlane32_swap")) {
      effects_.action = Action::lane_swap;
      effects_.all_lanes = true;
      swap();
    } else if (is("v_swap_b32")) {
      swap();
    } else if (instruction_.payload != 0) {
      effects_.bound = std::bit_cast<const vector::Bound*>(instruction_.payload);
      const unsigned flags = effects_.bound->flags;
      if ((flags & vector::flag_implicit_vcc) != 0) read({.first = sgpr_vcc, .count = 2, .scalar = true});
      if ((flags & vector::flag_writes_exec) != 0) write({.first = sgpr_exec, .count = 2, .scalar = true});
      if ((flags & (vector::flag_accumulates | vector::flag_keeps_high_half)) != 0) keep_destination();
      if (instruction_.encoding == Encoding::sdwa && instruction_.destination_unused == UnusedBits::preserve) {
        keep_destination();
      }
      if (instruction_.encoding == Encoding::dpp &&
          (!instruction_.bound_ctrl || instruction_.row_mask != 0xf || instruction_.bank_mask != 0xf)) {
        effects_.keeps_destination = true;
      }
    }
    constexpr std::array<std::string_view, 7> transcendental = {"v_exp_",  "v_log_", "v_rcp_", "v_rsq_",
                                                                "v_sqrt_", "v_sin_", "v_cos_"};
    effects_.trans = std::ranges::any_of(transcendental, [&](std::string_view name) { return starts(name); });
  }
  void swap() {
    keep_destination();
    if (instruction_.destination_count == 1) write(instruction_.source[0]);
  }

  void memory() {
    std::string_view name = instruction_.mnemonic;
    if (name.starts_with("s_")) {
      effects_.space = name.starts_with("s_buffer") ? Space::scalar_buffer : Space::scalar;
      effects_.loads = true;
      effects_.counts_local = true;
      effects_.bytes = instruction_.destination_count != 0
                           ? static_cast<std::uint8_t>(4 * instruction_.destination[0].dwords)
                           : std::uint8_t{4};
      return;
    }
    effects_.counts_vector = true;
    const std::size_t underscore = name.find('_');
    const std::string_view kind = name.substr(0, underscore);
    name = name.substr(underscore + 1);
    effects_.space = kind == "flat"      ? Space::flat
                     : kind == "global"  ? Space::global
                     : kind == "scratch" ? Space::scratch
                                         : Space::buffer;
    const bool is_buffer = effects_.space == Space::buffer;
    // A flat instruction does not know where its address points: it counts as both.
    effects_.counts_local = effects_.space == Space::flat;
    if (name.starts_with("atomic")) {
      effects_.loads = effects_.stores = effects_.atomic = true;
      const bool returns = instruction_.destination_count != 0;
      effects_.bytes = name.ends_with("_x2") || name.ends_with("f64") ? 8 : 4;
      effects_.address_operand = is_buffer && !returns ? 1 : 0;
      effects_.data_operand = is_buffer ? 0 : 1;
      if (is_buffer && returns) keep_destination();
      return;
    }
    effects_.loads = name.starts_with("load_");
    effects_.stores = name.starts_with("store_");
    if (effects_.loads) name.remove_prefix(5);
    if (effects_.stores) name.remove_prefix(6);
    effects_.lds_dma = instruction_.lds;
    if (name.starts_with("lds_")) {
      effects_.lds_dma = true;
      name.remove_prefix(4);
    }
    if (effects_.lds_dma) read({.first = sgpr_m0, .count = 1, .scalar = true});
    effects_.bytes = memory_width(name).value_or(4);
    if (effects_.loads && name.contains("_d16")) keep_destination();
    if (is_buffer) {
      effects_.address_operand = effects_.stores ? 1 : 0;
      effects_.data_operand = 0;
    } else {
      effects_.address_operand = 0;
      effects_.data_operand = 1;
    }
  }

  void local() {
    effects_.counts_local = true;
    effects_.space = Space::lds;
    effects_.data_operand = 1;
    if (starts("ds_bpermute") || starts("ds_permute") || starts("ds_swizzle")) {
      effects_.space = Space::none;
      return;
    }
    effects_.bytes = local_width(instruction_.mnemonic);
    if (starts("ds_read")) {
      effects_.loads = true;
      if (instruction_.mnemonic.contains("_d16")) keep_destination();
      if (instruction_.mnemonic.contains("_tr_")) {
        effects_.action = Action::transpose_read;
        effects_.all_lanes = true;
      }
    } else if (starts("ds_write")) {
      effects_.stores = true;
    } else {
      effects_.loads = effects_.stores = effects_.atomic = true;
    }
    const bool far = instruction_.mnemonic.contains("2st64");
    if (far || starts("ds_read2_") || starts("ds_write2_")) {
      effects_.elements = 2;
      effects_.stride = static_cast<std::uint16_t>(effects_.bytes * (far ? 64 : 1));
    }
    if (instruction_.mnemonic.contains("addtid")) read({.first = sgpr_m0, .count = 1, .scalar = true});
  }

  void hazards() {
    switch (effects_.action) {
      case Action::matrix:
        effects_.product = matrix_product(instruction_);
        effects_.asks_hazards = true;
        return;
      case Action::read_first_lane:
      case Action::read_lane:
      case Action::write_lane:
      case Action::lane_swap:
        effects_.asks_hazards = true;
        break;
      default:
        break;
    }
    if (effects_.vector_alu) {
      effects_.product = vector_product();
      if (instruction_.encoding == Encoding::dpp) effects_.asks_hazards = true;
    }
    if (starts("s_setreg")) effects_.product = Product::mode;
    if (is("s_getreg_b32") || effects_.lds_dma || instruction_.mnemonic.contains("addtid")) {
      effects_.asks_hazards = true;
    }
  }
  Product vector_product() const {
    const bool part = instruction_.encoding == Encoding::sdwa
                          ? instruction_.destination_select != SubDword::dword
                          : effects_.bound != nullptr && (instruction_.op_sel & 8) != 0;
    if (part || starts("v_cvt_scale")) return Product::vector_part;
    if (starts("v_dot")) return Product::vector_dot;
    return effects_.trans ? Product::vector_trans : Product::vector;
  }

  const Instruction& instruction_;
  Effects effects_;
};

}  // namespace

Effects describe(const Instruction& instruction) { return Describer(instruction).run(); }

FunctionEffects::FunctionEffects(const Function& function) {
  effects_.reserve(function.instructions.size());
  for (const Instruction& instruction : function.instructions) effects_.push_back(describe(instruction));
}

const FunctionEffects& effects_of(const Function& function) {
  std::call_once(function.effects_once, [&] { function.effects = std::make_shared<const FunctionEffects>(function); });
  return *function.effects;
}

}  // namespace wavejit::simgpu::checks
