// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/registry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "simgpu/machine/decode/rdna4_names.h"

namespace wavejit::simgpu {

Registry::Registry(const targets::Target& target) : target_(&target), instruction_set_(isa::instruction_set(target)) {}

Registry::Entry& Registry::insert(std::string_view mnemonic, const Record& record) {
  const auto [place, is_new] = entries_.try_emplace(std::string(mnemonic));
  if (!is_new) {
    std::fprintf(stderr, "wavejit_simgpu: two handlers for %s\n", place->first.c_str());
    std::abort();
  }
  place->second.id = static_cast<std::uint16_t>(entries_.size());
  place->second.mnemonic = place->first;
  place->second.record = record;
  place->second.record.split_counters = instruction_set_ == isa::InstructionSet::rdna4;
  return place->second;
}

void Registry::add(std::string_view mnemonic, Handler handler, const Record& record) {
  if (instruction_set_ == isa::InstructionSet::cdna) return add_own(mnemonic, handler, record);
  if (const std::string name = rdna4_name(mnemonic); !name.empty()) add_own(name, handler, record);
}

void Registry::add_select(std::string_view mnemonic, Select select, const Record& record) {
  if (instruction_set_ == isa::InstructionSet::cdna) return add_own_select(mnemonic, select, record);
  if (const std::string name = rdna4_name(mnemonic); !name.empty()) add_own_select(name, select, record);
}

void Registry::add_own(std::string_view mnemonic, Handler handler, const Record& record) {
  insert(mnemonic, record).handler = handler;
}

void Registry::add_own_select(std::string_view mnemonic, Select select, const Record& record) {
  insert(mnemonic, record).select = select;
}

const Registry::Entry* Registry::find(std::string_view mnemonic) const {
  const auto found = entries_.find(mnemonic);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> Registry::mnemonics() const {
  std::vector<std::string_view> names;
  names.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

}  // namespace wavejit::simgpu
