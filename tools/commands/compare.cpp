// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// compare: two kernels, toggles, targets or code objects side by side, as a simulated GPU predicts them.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/output_file.h"
#include "tools/profile/comparison.h"
#include "tools/profile/page.h"
#include "tools/profile/prediction.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

constexpr std::uint64_t timeline_cycles = 24576;  // of each, for the page

struct Arguments {
  EngineOptions engine;
  std::string a;
  std::string b;
  std::vector<std::string> set_a;
  std::vector<std::string> set_b;
  std::string html;
  bool json = false;
};

Result<ExitCode> compare_subjects(const Arguments& arguments) {
  const std::string& second = arguments.b.empty() ? arguments.a : arguments.b;
  if (arguments.b.empty() && arguments.set_a == arguments.set_b) {
    return failed(ExitCode::usage,
                  "B is missing: another descriptor or file is accepted, or --set-a and --set-b that differ");
  }
  const auto a = parse_subject(arguments.a, arguments.set_a, arguments.engine, "set-a");
  if (!a) return std::unexpected(a.error());
  const auto b = parse_subject(second, arguments.set_b, arguments.engine, "set-b");
  if (!b) return std::unexpected(b.error());
  auto html = open_if_named("html", arguments.html);
  if (!html) return std::unexpected(html.error());
  const std::uint64_t cycles = *html ? timeline_cycles : 0;
  const auto left = predict(*a, cycles);
  if (!left) return failed(left.error().code, "A: " + left.error().what);
  const auto right = predict(*b, cycles);
  if (!right) return failed(right.error().code, "B: " + right.error().what);
  // What is given for both must be one's at least.
  for (const std::string& name : arguments.engine.given_names()) {
    const std::string why = without_setting(*left, name);
    if (!why.empty() && !without_setting(*right, name).empty())
      return failed(ExitCode::usage, fmt::format("{} means nothing to either kernel: {}", name, why));
  }
  if (*html) {
    const std::string title = a->text == b->text ? a->text : a->text + " beside " + b->text;
    const std::string page = page_of(title, {&*left, &*right}, comparison_rows_json(compare(*left, *right)));
    if (auto done = (*html)->finish(page); !done) return std::unexpected(done.error());
  }
  if (arguments.json) {
    fmt::print("{}\n", comparison_json(*left, *right).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", comparison_text(*left, *right));
    if (*html) fmt::print("wrote {}\n", arguments.html);
  }
  return ExitCode::ok;
}

}  // namespace

void add_compare(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("compare", "Put two kernels side by side, as a simulated GPU predicts them");
  command->add_option("a", arguments->a, "a problem's descriptor, quoted, or a file with a code object of any compiler")
      ->required()
      ->type_name("DESCRIPTOR|FILE");
  command->add_option("b", arguments->b, "the same; without it A again, with other settings")
      ->type_name("DESCRIPTOR|FILE");
  command
      ->add_option("--set-a", arguments->set_a,
                   "how A is made or launched; given once for each setting: " + settings_help())
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--set-b", arguments->set_b, "the same for B")->type_name("NAME=VALUE")->allow_extra_args(false);
  command->add_option("--html", arguments->html, "also a report for a browser, in one file")->type_name("FILE.html");
  command->add_flag("--json", arguments->json, "report for programs instead of people");
  arguments->engine.add_device(*command);
  arguments->engine.add_cache(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  command->footer(fmt::format(
      "Options that stand outside --set-a and --set-b are for both. Figures are predicted, not measured: docs/timing-model.md.\n\n"
      "Examples\n"
      "  wavejit compare \"{0}\" --device sim:{2} --set-b \"pipeline=auto stagger=off\"\n"
      "  wavejit compare \"{0}\" --set-a device=sim:{1} --set-b device=sim:{2}\n"
      "  wavejit compare mine.co theirs.co --device sim:{1} --set-a grid=64 --set-a arguments=buffer:1MiB,i32:64 "
      "--set-b grid=128 --set-b kernel=theirs --set-b arguments=buffer:1MiB,i32:64",
      all_families().front()->example(), example_targets().first, example_targets().last));
  command->callback([&chosen, arguments] { chosen = [arguments] { return compare_subjects(*arguments); }; });
}

}  // namespace wavejit::tools
