// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/vector/vector.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "simgpu/machine/vector/execute.h"
#include "simgpu/machine/vector/kernel_lists.h"
#include "targets/targets.h"

namespace wavejit::simgpu {
namespace vector {
namespace {

#define WAVEJIT_ALL_LISTS(set)                                                                                 \
  {set::float32_operations(), set::float64_operations(), set::float16_operations(), set::integer_operations(), \
   set::packed_operations(),  set::convert_operations(), set::compare_operations(), set::small_float_operations()}

using Lists = std::array<OperationList, 8>;

const Lists& lists_of(HostSet set) {
  static const std::array<Lists, host_set_count> all = {
      Lists WAVEJIT_ALL_LISTS(x86_64_v2), Lists WAVEJIT_ALL_LISTS(x86_64_v3), Lists WAVEJIT_ALL_LISTS(x86_64_v4)};
  return all[static_cast<std::size_t>(set)];
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

  explicit Table(bool ocp) {
    for (const OperationList& list : operation_lists(best_host_set())) {
      for (const Operation& operation : std::span(list.first, list.count)) {
        if ((operation.flags & (ocp ? flag_fnuz_only : flag_ocp_only)) != 0) continue;
        add(operation.name, operation, 0);
        // "v_cmp_lt_f32" → "v_cmpx_lt_f32"
        const std::string_view name = operation.name;
        if ((operation.flags & flag_mask_result) != 0) {
          add("v_cmpx_" + std::string(name.substr(6)), operation, flag_writes_exec);
        }
      }
    }
  }

  void add(std::string_view name, const Operation& operation, unsigned extra_flags) {
    const Entry& entry = entries.emplace_back(bind(operation, extra_flags, false), bind(operation, extra_flags, true));
    const bool fresh = by_name.emplace(names.emplace_back(name), &entry).second;
    assert(fresh);
    static_cast<void>(fresh);
  }
};

template <bool Ocp>
const Table& table() {
  static const Table instance(Ocp);
  return instance;
}

template <bool Ocp>
Handler select(Instruction& instruction) {
  const auto found = table<Ocp>().by_name.find(instruction.mnemonic);
  if (found == table<Ocp>().by_name.end()) return nullptr;
  const bool saturating = instruction.clamp && found->second->saturating.kernel != nullptr;
  const Bound& bound = saturating ? found->second->saturating : found->second->plain;
  instruction.payload = std::bit_cast<std::uint64_t>(&bound);
  return choose_handler(instruction, bound);
}

// What the registry keeps of an operation.
Record record_of(const Bound& bound) {
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
  // Masks and carries are printed, and no results to LLVM.
  if (has(flag_mask_result)) record.destinations = 1;
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

}  // namespace vector

void register_vector(Registry& registry) {
  const bool ocp = registry.target().fp8 == targets::Fp8::ocp;
  const vector::Table& table = ocp ? vector::table<true>() : vector::table<false>();
  for (const auto& [name, entry] : table.by_name) {
    registry.add_select(name, ocp ? &vector::select<true> : &vector::select<false>, vector::record_of(entry->plain));
  }
  vector::register_lane_instructions(registry);
}

}  // namespace wavejit::simgpu
