// supported, version, explain: what the library says, line by line.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "tools/commands/commands.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

void print_line(void* /*context*/, const char* line) { fmt::print("{}\n", line); }

}  // namespace

void add_supported(CLI::App& program, Chosen& chosen) {
  CLI::App* command = program.add_subcommand("supported", "List what this version has kernels for");
  command->footer("The list comes from the tables that the route itself asks.");
  command->callback([&chosen] {
    chosen = []() -> Result<ExitCode> {
      if (auto done = checked(wavejit_supported(print_line, nullptr)); !done) return std::unexpected(done.error());
      return ExitCode::ok;
    };
  });
}

void add_version(CLI::App& program, Chosen& chosen) {
  CLI::App* command = program.add_subcommand("version", "Print the version");
  command->callback([&chosen] {
    chosen = []() -> Result<ExitCode> {
      fmt::print("wavejit {}\n", wavejit_version());
      return ExitCode::ok;
    };
  });
}

void add_explain(CLI::App& program, Chosen& chosen) {
  struct Arguments {
    EngineOptions engine;
    std::string descriptor;
    std::string target;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("explain", "Print the route of a problem: what was chosen, and why nothing else");
  command->add_option("descriptor", arguments->descriptor, "one line that says what is asked; quote it")
      ->required()
      ->type_name("DESCRIPTOR");
  command
      ->add_option("--target", arguments->target,
                   joined(known_targets(), ", ") + " (default: the target of the device)")
      ->type_name("TARGET");
  arguments->engine.add_device(*command);
  arguments->engine.add_cache(*command);
  arguments->engine.add_cache_remote(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  std::string footer =
      "Nothing is compiled and no device is opened.\n\n"
      "A descriptor is a family and words in any order; these are the usual ones, and a wrong one is answered with "
      "all:\n";
  for (const Family* family : all_families()) footer += fmt::format("  {}\n", family->grammar());
  command->footer(
      footer + fmt::format("\nExample\n  wavejit explain \"{}\" --target gfx942", all_families().front()->example()));
  command->callback([&chosen, arguments] {
    chosen = [arguments]() -> Result<ExitCode> {
      const wavejit_engine_options options = arguments->engine.options();
      const char* target = arguments->target.empty() ? nullptr : arguments->target.c_str();
      auto done = checked(wavejit_explain(&options, arguments->descriptor.c_str(), target, print_line, nullptr));
      if (!done) return std::unexpected(done.error());
      return ExitCode::ok;
    };
  });
}

}  // namespace wavejit::tools
