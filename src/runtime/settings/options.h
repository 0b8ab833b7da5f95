// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wavejit/options.def as the runtime reads it: where an option's texts stand, and what is accepted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/settings/config.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {

enum class Option : std::uint8_t {
#define WAVEJIT_OPTION(field, variable, flag, scope, shape, values, standard, help) field,
#include "wavejit/options.def"
#undef WAVEJIT_OPTION
};

struct OptionRow {
  const char* name;
  const char* variable;
  const char* values;
  const char* standard;
  const char* wavejit_engine_options::* field;
  const char* Environment::* text;
};

inline constexpr std::array option_rows = {
#define WAVEJIT_OPTION(field, variable, flag, scope, shape, values, standard, help) \
  OptionRow{#field, variable, values, standard, &wavejit_engine_options::field, &Environment::field},
#include "wavejit/options.def"
#undef WAVEJIT_OPTION
};

constexpr const OptionRow& option_row(Option option) { return option_rows[static_cast<std::size_t>(option)]; }

// What was said of one option; null: nothing.
struct Texts {
  const char* option = nullptr;
  const char* variable = nullptr;
};

// The struct's fields that are no option: its size, and seven of hooks.
static_assert(sizeof(wavejit_engine_options) == (option_rows.size() + 8) * sizeof(void*),
              "each text of wavejit_engine_options has its row in wavejit/options.def");

}  // namespace wavejit::runtime
