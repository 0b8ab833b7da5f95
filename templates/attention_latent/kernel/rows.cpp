// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/kernel/rows.h"

#include <string_view>

namespace wavejit::attention_latent {
namespace {

struct TunedDefault {
  std::string_view target;
  RowCount count;
  Rows rows;
};
constexpr TunedDefault tuned_defaults[] = {
#include "templates/attention_latent/kernel/tuned_defaults.inc"
};

}  // namespace

// Each call asks.
Rows default_rows(const targets::Target& target, RowCount count) {
  for (const TunedDefault& tuned : tuned_defaults)
    if (tuned.count == count && tuned.target == target.id) return tuned.rows;
  return count == RowCount::up_to_32 ? Rows::r32 : Rows::r64;
}

}  // namespace wavejit::attention_latent
