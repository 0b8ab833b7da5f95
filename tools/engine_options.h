// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The options that every subcommand with an engine or a cache shares. What is not given is left to the environment and
// the defaults, by the library's own rules.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/exit_code.h"
#include "wavejit/options.hpp"

namespace wavejit::tools {

class EngineOptions {
 public:
  // Which of them a subcommand shows.
  void add_device(CLI::App& command);
  void add_cache(CLI::App& command);
  void add_cache_limit(CLI::App& command);
  void add_cache_remote(CLI::App& command);
  // Without --pipeline for a subcommand that has one of its own.
  void add_compiler(CLI::App& command, bool with_pipeline = true);
  void add_log_level(CLI::App& command);

  // Sets one by its name without dashes in front ("kv-splits"), as if it stood on the command line; the library judges
  // the value. False for a name that is none of settable_names().
  bool set(std::string_view name, std::string value);
  static std::vector<std::string_view> settable_names();
  // Those of them that were given, by either way, and the words behind a pipeline.
  std::vector<std::string> given_names() const;

  // "off", "ro", "rw": for commands that show no option for it.
  void set_cache_mode(std::string mode) { chosen_.cache_mode = std::move(mode); }

  // What was given of those of settable_names(), as a command line says it again: " --kv-splits 4".
  std::string given_words() const;

  // Points into this object.
  wavejit_engine_options options() const { return chosen_.to_c(); }

 private:
  void add(CLI::App& command, OptionScope scope, std::string_view but = {});

  wavejit::EngineOptions chosen_;
};

// "stagger" and "setprio" of "dualwave stagger=off setprio=off".
std::vector<std::string> pipeline_words_in(std::string_view pipeline);
// Layers with ':' between, each from the root of the file system on.
std::string absolute_layers(std::string_view layers);
// An option that takes one of a few words; errors read "'fp17' is not accepted; fp16, bf16 are".
CLI::Option* add_choice(CLI::App& command, const std::string& name, std::string& value, std::vector<std::string> words,
                        const std::string& help);
// An option whose text `problem_of` judges: "" or what is wrong with it.
CLI::Option* limit(CLI::Option* option, const std::string& type_name,
                   std::function<std::string(const std::string&)> problem_of);
// A count from 0 to `most`.
CLI::Option* limit_count(CLI::Option* option, int most);

}  // namespace wavejit::tools
