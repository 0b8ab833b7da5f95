// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// FLAT, GLOBAL and SCRATCH loads, stores and loads to LDS. Semantics: CDNA3 ISA, chapters 9.3 and 10.
#include "simgpu/machine/memory/flat.h"

#include <atomic>
#include <bit>
#include <string>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/memory/records.h"
#include "simgpu/machine/memory/rooms.h"
#include "simgpu/machine/memory/transfer.h"

namespace wavejit::simgpu {
namespace {

template <FlatSpace space, LoadKind kind>
void load(Wave& wave, const Instruction& instruction) {
  const FlatAddress<space> address(wave, instruction, instruction.source[0], instruction.source[1]);
  const unsigned destination = instruction.destination[0].index;
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint8_t* from = address.resolve_lane(wave, instruction, lane, kind.bytes, false);
    if (from == nullptr) return;
    load_lane<kind>(wave, destination, lane, from);
  }
  // A load with a scope may read what another workgroup published: what follows must not be older.
  if (instruction.sc0 || instruction.sc1) std::atomic_thread_fence(std::memory_order_acquire);
}

template <FlatSpace space, StoreKind kind>
void store(Wave& wave, const Instruction& instruction) {
  const FlatAddress<space> address(wave, instruction, instruction.source[0], instruction.source[2]);
  const unsigned source = instruction.source[1].index;
  if (instruction.sc0 || instruction.sc1) std::atomic_thread_fence(std::memory_order_release);
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    std::uint8_t* to = address.resolve_lane(wave, instruction, lane, kind.bytes, true);
    if (to == nullptr) return;
    store_lane<kind>(wave, source, lane, to);
  }
}

// global_load_lds_*: no data register; the printed operands are the address and the scalar base.
template <FlatSpace space, LoadKind kind>
void load_to_lds(Wave& wave, const Instruction& instruction) {
  const FlatAddress<space> address(wave, instruction, instruction.source[0], instruction.source[1]);
  for (std::uint64_t rest = wave.exec(); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint8_t* from = address.resolve_lane(wave, instruction, lane, kind.bytes, false);
    if (from == nullptr) return;
    transfer_to_lds<kind>(wave, instruction, lane, from);
  }
}

class FlatAdder {
 public:
  FlatAdder(Registry& registry, Space space, std::string prefix)
      : registry_(&registry), space_(space), prefix_(std::move(prefix)) {}
  void operator()(std::string_view name, Handler handler, const Record& record) const {
    registry_->add(prefix_ + std::string(name), handler, in_space(space_, record));
  }

 private:
  Registry* registry_;
  Space space_;
  std::string prefix_;
};

template <FlatSpace space>
void register_space(Registry& registry, Space where, const char* prefix) {
  const FlatAdder add(registry, where, prefix);
  add("_load_ubyte", load<space, load_ubyte>, loads(load_ubyte));
  add("_load_sbyte", load<space, load_sbyte>, loads(load_sbyte));
  add("_load_ushort", load<space, load_ushort>, loads(load_ushort));
  add("_load_sshort", load<space, load_sshort>, loads(load_sshort));
  add("_load_dword", load<space, load_dword>, loads(load_dword));
  add("_load_dwordx2", load<space, load_dwordx2>, loads(load_dwordx2));
  add("_load_dwordx3", load<space, load_dwordx3>, loads(load_dwordx3));
  add("_load_dwordx4", load<space, load_dwordx4>, loads(load_dwordx4));
  add("_load_ubyte_d16", load<space, load_ubyte_d16>, loads(load_ubyte_d16));
  add("_load_ubyte_d16_hi", load<space, load_ubyte_d16_hi>, loads(load_ubyte_d16_hi));
  add("_load_sbyte_d16", load<space, load_sbyte_d16>, loads(load_sbyte_d16));
  add("_load_sbyte_d16_hi", load<space, load_sbyte_d16_hi>, loads(load_sbyte_d16_hi));
  add("_load_short_d16", load<space, load_short_d16>, loads(load_short_d16));
  add("_load_short_d16_hi", load<space, load_short_d16_hi>, loads(load_short_d16_hi));
  add("_store_byte", store<space, store_byte>, stores(store_byte));
  add("_store_byte_d16_hi", store<space, store_byte_d16_hi>, stores(store_byte_d16_hi));
  add("_store_short", store<space, store_short>, stores(store_short));
  add("_store_short_d16_hi", store<space, store_short_d16_hi>, stores(store_short_d16_hi));
  add("_store_dword", store<space, store_dword>, stores(store_dword));
  add("_store_dwordx2", store<space, store_dwordx2>, stores(store_dwordx2));
  add("_store_dwordx3", store<space, store_dwordx3>, stores(store_dwordx3));
  add("_store_dwordx4", store<space, store_dwordx4>, stores(store_dwordx4));
  if constexpr (space != FlatSpace::flat) {
    add("_load_lds_ubyte", load_to_lds<space, load_ubyte>, loads_to_lds(load_ubyte));
    add("_load_lds_sbyte", load_to_lds<space, load_sbyte>, loads_to_lds(load_sbyte));
    add("_load_lds_ushort", load_to_lds<space, load_ushort>, loads_to_lds(load_ushort));
    add("_load_lds_sshort", load_to_lds<space, load_sshort>, loads_to_lds(load_sshort));
    add("_load_lds_dword", load_to_lds<space, load_dword>, loads_to_lds(load_dword));
    add("_load_lds_dwordx3", load_to_lds<space, load_dwordx3>, loads_to_lds(load_dwordx3));
    add("_load_lds_dwordx4", load_to_lds<space, load_dwordx4>, loads_to_lds(load_dwordx4));
  }
}

}  // namespace

void register_flat(Registry& registry) {
  register_space<FlatSpace::flat>(registry, Space::flat, "flat");
  register_space<FlatSpace::global>(registry, Space::global, "global");
  register_space<FlatSpace::scratch>(registry, Space::scratch, "scratch");
}

}  // namespace wavejit::simgpu
