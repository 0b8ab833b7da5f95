// The options that every subcommand with an engine or a cache shares. What is not given is left to the environment and
// the defaults, by the library's own rules.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/exit_code.h"

namespace wavejit::tools {

class EngineOptions {
 public:
  // Which of them a subcommand shows.
  void add_device(CLI::App& command);
  void add_cache(CLI::App& command);
  void add_compiler(CLI::App& command);
  void add_log_level(CLI::App& command);

  // Points into this object.
  wavejit_engine_options options() const;

 private:
  std::string device_;
  std::string cache_directory_;
  std::string cache_mode_;
  std::string lowering_;
  std::string compile_;
  std::string output_store_;
  std::string log_level_;
};

// Help texts name the accepted words; errors read "'fp17' is not accepted; fp16, bf16 are".
CLI::Validator one_of(std::vector<std::string> words);

}  // namespace wavejit::tools
