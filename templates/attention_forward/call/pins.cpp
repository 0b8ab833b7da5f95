// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/pins.h"

#include <utility>

#include "families/kernel/names.h"
#include "families/kernel/spec_words.h"

namespace wavejit::attention_forward {
namespace {

// What developers write behind a pipeline's name. False: the word says nothing here.
bool take_pin(Pins& pins, std::string_view word) {
  const auto [name, value] = families::name_and_value(word);
  if (name == "tile_queries") {
    pins.tile_queries = families::positive_number(value).value_or(0);
    return pins.tile_queries != 0;
  }
  if (name == "ladder") {
    pins.ladder = value;
    return !value.empty();
  }
  if (name == "chunk_waves") {
    pins.shares_chunks = value == "auto";
    if (pins.shares_chunks) return true;
    pins.chunk_waves = families::positive_number(value);
    return pins.chunk_waves.has_value();
  }
  if (name == "tiles" && (value == "paired" || value == "single")) {
    pins.paired_tiles = value == "paired";
    return true;
  }
  return false;
}

// The pipeline, and how it does what it can do.
void take_way(Pins& pins, std::string_view word) {
  const auto [name, value] = families::name_and_value(word);
  if (name == "pipeline") pins.pipeline = families::value_in(pipelines, value);
  if (name == "o_store") pins.output_store = families::value_in(output_stores, value);
  if (name == "stagger") pins.stagger = value != "off";
  if (name == "setprio") pins.raised_priority = value != "off";
}

}  // namespace

Pins pins_of(const families::Toggles& toggles) {
  Pins pins;
  for (const std::string_view words : {std::string_view(toggles.pins), std::string_view(toggles.ways)})
    families::for_each_word(words, [&](std::string_view word) {
      if (!take_pin(pins, word)) take_way(pins, word);
    });
  return pins;
}

bool is_pin(std::string_view word) {
  Pins pins;
  return take_pin(pins, word);
}

}  // namespace wavejit::attention_forward
