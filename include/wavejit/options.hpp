// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wavejit/options.hpp: the options of an engine for C++17 and later, and what is known of each. wavejit.hpp includes
// it.
#ifndef WAVEJIT_OPTIONS_HPP
#define WAVEJIT_OPTIONS_HPP

#include <cstdint>
#include <string>

#include "wavejit/wavejit.h"

namespace wavejit {

// The options of wavejit_engine_create by name, each a std::string: device, cache_directory, cache_mode, … , the rows
// of wavejit/options.def. An empty string leaves a thing to the environment, then to the default.
//
//   wavejit::EngineOptions options;
//   options.device = "sim:gfx950";
//   options.kv_splits = "4";
struct EngineOptions {
#define WAVEJIT_OPTION(field, variable, flag, scope, shape, values, standard, help) std::string field{};
#include "wavejit/options.def"
#undef WAVEJIT_OPTION
  // Hooks: plain functions, because they are called from any thread, without locks. wavejit.h says when.
  wavejit_compile_callback on_compile = nullptr;
  void* on_compile_context = nullptr;
  wavejit_allocate_callback allocate = nullptr;
  wavejit_release_callback release = nullptr;
  void* allocator_context = nullptr;
  wavejit_log_callback on_log = nullptr;
  void* on_log_context = nullptr;

  // Points into this object, which must stay while the result is used.
  wavejit_engine_options to_c() const noexcept {
    wavejit_engine_options options{};
    options.size = sizeof options;
#define WAVEJIT_OPTION(field, variable, flag, scope, shape, values, standard, help) options.field = (field).c_str();
#include "wavejit/options.def"
#undef WAVEJIT_OPTION
    options.on_compile = on_compile;
    options.on_compile_context = on_compile_context;
    options.allocate = allocate;
    options.release = release;
    options.allocator_context = allocator_context;
    options.on_log = on_log;
    options.on_log_context = on_log_context;
    return options;
  }
};

// Words that stand behind the name of a `pipeline`, one value of each. docs/environment.md has them all.
inline constexpr const char* pipeline_words[] = {"stagger=off", "setprio=off", "o_store=scalar", "lazy_rescale=off",
                                                 "xcd_swizzle=on"};
// What somebody meant who took such a word for an option: "auto stagger=off" of "stagger". Empty: it is none.
inline std::string meant_pipeline(std::string name) {
  for (char& letter : name)
    if (letter == '-') letter = '_';
  if (name == "output_store") name = "o_store";
  for (const std::string word : pipeline_words)
    if (word.compare(0, word.find('='), name) == 0) return "auto " + word;
  return {};
}

// What is known of each option, to list or to set them by name.
enum class OptionScope : std::uint8_t { device, cache, upkeep, remote, compiler, kernel, launch, log };
struct EngineOption {
  const char* name;      // "kv_splits"
  const char* variable;  // "WAVEJIT_KV_SPLITS"
  const char* flag;      // of the program; "" if only the variable says it there
  OptionScope scope;
  const char* shape;  // "": one of the words of `values`
  const char* values;
  const char* standard;
  const char* help;
  std::string EngineOptions::* text;
};
inline constexpr EngineOption engine_options[] = {
#define WAVEJIT_OPTION(field, variable, flag, scope, shape, values, standard, help) \
  {#field, variable, flag, OptionScope::scope, shape, values, standard, help, &EngineOptions::field},
#include "wavejit/options.def"
#undef WAVEJIT_OPTION
};

}  // namespace wavejit

#endif
