// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/vector/vector.h"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "simgpu/machine/decode/rdna4_names.h"
#include "simgpu/machine/vector/execute.h"
#include "simgpu/machine/vector/kernel_lists.h"
#include "targets/targets.h"

namespace wavejit::simgpu {
namespace vector {
namespace {

#define WAVEJIT_ALL_LISTS(set)                                                          \
  {set::float32_operations(), set::float64_operations(),     set::float16_operations(), \
   set::integer_operations(), set::packed_operations(),      set::convert_operations(), \
   set::compare_operations(), set::small_float_operations(), set::rdna4_operations()}

using Lists = std::array<OperationList, 9>;

// Targets whose vector ALUs differ.
enum class Flavour : std::uint8_t { cdna3, cdna4, rdna4 };

bool has(Flavour flavour, unsigned flags) {
  switch (flavour) {
    case Flavour::cdna3:
      return (flags & (flag_ocp_only | flag_rdna4_only)) == 0;
    case Flavour::cdna4:
      return (flags & (flag_fnuz_only | flag_rdna4_only)) == 0;
    case Flavour::rdna4:
      return (flags & flag_fnuz_only) == 0;
  }
  return false;
}

Flavour flavour_of(const Registry& registry) {
  if (registry.instruction_set() == isa::InstructionSet::rdna4) return Flavour::rdna4;
  return registry.target().fp8 == targets::Fp8::ocp ? Flavour::cdna4 : Flavour::cdna3;
}

bool is_half(Kind kind) { return kind == Kind::f16 || kind == Kind::b16 || kind == Kind::bf16; }

const Lists& lists_of(HostSet set) {
  // One at a time: a library may have no other than the host's (cmake/demo.cmake).
  switch (set) {
    case HostSet::x86_64_v4: {
      static const Lists v4 = WAVEJIT_ALL_LISTS(x86_64_v4);
      return v4;
    }
    case HostSet::x86_64_v3: {
      static const Lists v3 = WAVEJIT_ALL_LISTS(x86_64_v3);
      return v3;
    }
    case HostSet::x86_64_v2:
      break;
  }
  static const Lists v2 = WAVEJIT_ALL_LISTS(x86_64_v2);
  return v2;
}

// All operations of one flavour of target, bound and findable by mnemonic. Never freed: instructions point into it.
struct Table {
  struct Entry {
    Bound plain;
    Bound saturating;
  };
  std::unordered_map<std::string_view, const Entry*> by_name;
  std::deque<Entry> entries;
  std::deque<std::string> names;

  explicit Table(Flavour flavour) {
    for (const OperationList& list : operation_lists(best_host_set())) {
      for (const Operation& operation : std::span(list.first, list.count)) {
        if (!has(flavour, operation.flags)) continue;
        std::string name = operation.name;
        if (flavour == Flavour::rdna4 && (operation.flags & flag_rdna4_only) == 0) name = rdna4_name(name);
        if (name.empty()) continue;
        // CDNA clears the other half of a register that gets 16 bits, RDNA4 keeps it.
        const bool keeps = flavour == Flavour::rdna4 && is_half(operation.result);
        add(name, operation, keeps ? unsigned{flag_keeps_high_half} : 0u);
        // "v_cmp_lt_f32" → "v_cmpx_lt_f32"
        if ((operation.flags & flag_mask_result) != 0) add("v_cmpx_" + name.substr(6), operation, flag_writes_exec);
      }
    }
  }

  void add(std::string_view name, const Operation& operation, unsigned extra_flags) {
    const Entry& entry = entries.emplace_back(bind(operation, extra_flags, false), bind(operation, extra_flags, true));
    if (!by_name.emplace(names.emplace_back(name), &entry).second)
      throw std::logic_error("two rows are called " + std::string(name));
  }
};

template <Flavour flavour>
const Table& table() {
  static const Table instance(flavour);
  return instance;
}
const Table& table_of(Flavour flavour) {
  switch (flavour) {
    case Flavour::cdna3:
      return table<Flavour::cdna3>();
    case Flavour::cdna4:
      return table<Flavour::cdna4>();
    case Flavour::rdna4:
      break;
  }
  return table<Flavour::rdna4>();
}

template <Flavour flavour>
Handler select(Instruction& instruction) {
  const auto found = table<flavour>().by_name.find(instruction.mnemonic);
  if (found == table<flavour>().by_name.end()) return nullptr;
  const bool saturating = instruction.clamp && found->second->saturating.kernel != nullptr;
  const Bound& bound = saturating ? found->second->saturating : found->second->plain;
  instruction.payload = std::bit_cast<std::uint64_t>(&bound);
  return choose_handler(instruction, bound);
}

// What RDNA4's traces show to take longer than plain instructions.
IssueKind rdna4_kind(const Operation& operation, IssueKind kind) {
  constexpr std::array<std::string_view, 5> products = {"v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u64_u32",
                                                        "v_mad_i64_i32"};
  if (std::ranges::contains(products, std::string_view(operation.name))) return IssueKind::multiply;
  const auto is_wide = [](Kind each) { return each == Kind::b64 || each == Kind::i64 || each == Kind::f64; };
  if (kind == IssueKind::transcendental && operation.result == Kind::f64) return IssueKind::double_precision;
  const bool reads_wide = std::any_of(operation.source, operation.source + operation.source_count, is_wide);
  if ((operation.flags & flag_mask_result) != 0) return reads_wide ? IssueKind::wide : kind;
  return kind == IssueKind::plain && is_wide(operation.result) ? IssueKind::wide : kind;
}

// What the registry keeps of an operation.
Record record_of(const Bound& bound, Flavour flavour) {
  const Operation& operation = *bound.operation;
  const auto has = [&](unsigned flag) { return (bound.flags & flag) != 0; };
  const auto reads = [&](Kind kind) {
    return std::any_of(operation.source, operation.source + operation.source_count,
                       [&](Kind source) { return source == kind; });
  };
  Record record{.flow = flow_of(bound.flags), .steering = static_cast<std::uint8_t>(steering_of(bound.flags))};
  if (has(flag_transcendental)) {
    record.kind = IssueKind::transcendental;
  } else if (operation.result == Kind::f64 || reads(Kind::f64)) {
    record.kind = IssueKind::double_precision;
  } else if (operation.result == Kind::pk_f32 && reads(Kind::pk_f32)) {
    record.kind = IssueKind::packed;
  }
  if (flavour == Flavour::rdna4) record.kind = rdna4_kind(operation, record.kind);
  // Masks and carries are printed, and no results to LLVM.
  if (has(flag_mask_result)) record.destinations = 1;
  if (has(flag_writes_exec) && flavour == Flavour::rdna4) record.destinations = 0;  // EXEC, which is not printed
  if (has(flag_carries)) record.destinations = 2;
  record.op_sel_hi_is_zero = reads(Kind::mixed);
  if (has(flag_partial)) record.result = ResultKind::partial;
  if (has(flag_dot_product)) record.result = ResultKind::dot_product;
  record.three_sources_are_plain = has(flag_plain_rate);
  record.divides = has(flag_divides);
  record.compares_equal = has(flag_compares_equal);
  return record;
}

}  // namespace

std::span<const OperationList> operation_lists(HostSet set) { return lists_of(set); }

const Bound* find_rdna4(std::string_view mnemonic) {
  const auto found = table<Flavour::rdna4>().by_name.find(mnemonic);
  return found == table<Flavour::rdna4>().by_name.end() ? nullptr : &found->second->plain;
}

}  // namespace vector

void register_vector(Registry& registry) {
  using enum vector::Flavour;
  const vector::Flavour flavour = vector::flavour_of(registry);
  const Select select = flavour == rdna4   ? &vector::select<rdna4>
                        : flavour == cdna4 ? &vector::select<cdna4>
                                           : &vector::select<cdna3>;
  for (const auto& [name, entry] : vector::table_of(flavour).by_name) {
    registry.add_own_select(name, select, vector::record_of(entry->plain, flavour));
  }
  vector::register_lane_instructions(registry);
  if (flavour == rdna4) vector::register_rdna4_instructions(registry);
}

}  // namespace wavejit::simgpu
