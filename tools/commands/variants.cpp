// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// variants: what people ask for by name, and what each target has for it.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/families.h"
#include "tools/targets.h"
#include "tools/variants/page.h"
#include "tools/variants/routes.h"

namespace wavejit::tools {

namespace {

struct Arguments {
  std::string name;
  std::string targets;  // empty: all that run
  bool markdown = false;
};

Result<std::vector<std::string>> targets_of(const std::string& given) {
  if (given.empty()) return targets_that_run();
  std::vector<std::string> targets = separated(given);
  for (const std::string& target : targets)
    if (auto known = check_target(target); !known) return std::unexpected(known.error());
  return targets;
}

Result<ExitCode> print(const Arguments& arguments) {
  std::vector<Variant> all;
  for (const Family* family : all_families())
    for (const Variant& row : family->variant_rows()) all.push_back(row);
  for (const Family* family : all_families()) {
    const Variants* variants = family->variants();
    if (variants == nullptr) continue;
    if (arguments.markdown && !arguments.name.empty())
      return failed(ExitCode::usage, "--markdown is the whole page; accepted: it, or the name of a variant");
    if (arguments.markdown && !arguments.targets.empty())
      return failed(ExitCode::usage, "--markdown is the page of all targets; accepted: it, or --target");
    const auto targets = targets_of(arguments.targets);
    if (!targets) return std::unexpected(targets.error());
    const Result<std::string> text = arguments.markdown ? Result<std::string>(variants_page(*variants, all))
                                                        : variants_text(*variants, all, arguments.name, *targets);
    if (!text) return std::unexpected(text.error());
    fmt::print("{}", *text);
    return ExitCode::ok;
  }
  return failed(ExitCode::unsupported, "no family of this program tells of variants");
}

}  // namespace

void add_variants(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "variants", "List variants that people ask for by name, and what each target has for them");
  command->add_option("name", arguments->name, "one of them (default: all)")->type_name("VARIANT");
  command
      ->add_option("--target", arguments->targets,
                   fmt::format("of {}, with commas between (default: all)", joined(targets_that_run(), ",")))
      ->type_name("T,...");
  command->add_flag("--markdown", arguments->markdown, "the page docs/variants.md");
  command->footer(
      "Routes come from the tables that a call itself asks: the pipeline, and query rows by keys of its tile; or the "
      "reason for a refusal.\nNothing is compiled, and no device is opened.\n\n"
      "Examples\n"
      "  wavejit variants\n"
      "  wavejit variants paged\n"
      "  wavejit variants --target gfx1201");
  command->callback([arguments, &chosen] { chosen = [arguments] { return print(*arguments); }; });
}

}  // namespace wavejit::tools
