// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/decode/registry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace wavejit::simgpu {

Registry::Entry& Registry::insert(std::string_view mnemonic, const Record& record) {
  const auto [place, is_new] = entries_.try_emplace(std::string(mnemonic));
  if (!is_new) {
    std::fprintf(stderr, "wavejit_simgpu: two handlers for %s\n", place->first.c_str());
    std::abort();
  }
  place->second.id = static_cast<std::uint16_t>(entries_.size());
  place->second.mnemonic = place->first;
  place->second.record = record;
  return place->second;
}

void Registry::add(std::string_view mnemonic, Handler handler, const Record& record) {
  insert(mnemonic, record).handler = handler;
}

void Registry::add_select(std::string_view mnemonic, Select select, const Record& record) {
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
