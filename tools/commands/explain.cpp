// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// explain: the route of a problem, and what its kernels are: IR, machine code, schedule.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/kernel_listing.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

struct Arguments {
  EngineOptions engine;
  std::string descriptor;
  std::string target;
  bool ir = false;
  bool isa = false;
  bool all = false;
  bool json = false;
};

// Settings that are as they are by default are counted, unless all are asked for.
struct Explanation {
  bool all;
  std::vector<std::string> lines;
  int defaults = 0;
};

void take_line(void* context, const char* line) {
  Explanation& explanation = *static_cast<Explanation*>(context);
  const std::string_view text = line;
  if (!explanation.all && text.starts_with("setting ") && text.ends_with("(default)"))
    ++explanation.defaults;
  else
    explanation.lines.emplace_back(text);
}

std::string as_text(const Explanation& explanation) {
  std::string text;
  for (const std::string& line : explanation.lines) text += line + "\n";
  if (explanation.defaults > 0) text += fmt::format("setting  {} more are defaults: --all\n", explanation.defaults);
  return text;
}

using Json = nlohmann::ordered_json;
using Halves = std::pair<std::string, std::string>;

// What stands before and behind `between`; all of it before, where that is missing.
Halves halves(std::string_view text, std::string_view between) {
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, at)), std::string(text.substr(at + between.size()))};
}

// "target   gfx950 (MI355X)" → "target", "gfx950 (MI355X)": the library's labels are eight letters wide.
Halves label_and_text(std::string_view line) {
  constexpr std::size_t width = 9;
  std::string_view label = line.substr(0, width);
  label = label.substr(0, label.find_last_not_of(' ') + 1);
  return {std::string(label), std::string(line.substr(std::min(width, line.size())))};
}

// "gfx950 (MI355X)" → "gfx950", "MI355X"; "a=(b) (default)" → "a=(b)", "default".
Halves text_and_bracket(std::string_view text) {
  const std::size_t at = text.rfind(" (");
  if (at == std::string_view::npos || !text.ends_with(')')) return {std::string(text), {}};
  return {std::string(text.substr(0, at)), std::string(text.substr(at + 2, text.size() - at - 3))};
}

// A kernel is a line that its key stands behind. Which other lines there are is up to the family: they are notes.
std::string as_json(const Explanation& explanation) {
  Json all;
  Json kernels = Json::array();
  Json notes = Json::array();
  Json refused = Json::array();
  Json settings = Json::array();
  Json warnings = Json::array();
  std::size_t remote = 0;
  for (std::size_t i = 0; i < explanation.lines.size(); ++i) {
    const auto [label, text] = label_and_text(explanation.lines[i]);
    const bool is_kernel = i + 1 < explanation.lines.size() && label_and_text(explanation.lines[i + 1]).first == "key";
    if (is_kernel) {
      const auto [key, where] = halves(label_and_text(explanation.lines[++i]).second, "  ");
      kernels.push_back({{"label", label}, {"spec", text}, {"key", key}, {"cache", where}});
    } else if (label == "problem" || label == "route") {
      all[label] = text;
    } else if (label == "target") {
      const auto [target, product] = text_and_bracket(text);
      all["target"] = target;
      all["product"] = product;
    } else if (label == "key text" || label == "cost") {
      kernels.back()[label == "cost" ? "cost" : "key_text"] = text;
    } else if (label == "remote" && remote < kernels.size()) {
      kernels[remote++]["remote"] = text;
    } else if (label == "refused") {
      const auto [kernel, reason] = halves(text, ": ");
      refused.push_back({{"kernel", kernel}, {"reason", reason}});
    } else if (label == "setting") {
      const auto [setting, origin] = text_and_bracket(text);
      const auto [name, value] = halves(setting, "=");
      settings.push_back({{"name", name}, {"value", value}, {"origin", origin}});
    } else if (label == "warning") {
      warnings.push_back(text);
    } else {
      notes.push_back({{"label", label}, {"text", text}});
    }
  }
  all["notes"] = notes;
  all["kernels"] = kernels;
  all["refused"] = refused;
  all["settings"] = settings;
  all["settings_left_out"] = explanation.defaults;
  all["warnings"] = warnings;
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_ir(void* /*context*/, const wavejit_kernel_text* kernel) {
  fmt::print("; {}\n{}\n", kernel->kernel_spec, kernel->text);
}

// The schedule first: the compiler may move an instruction within its row, so none is said to be of one.
void print_isa(void* context, const wavejit_kernel_text* kernel) {
  const Family* family = *static_cast<const Family**>(context);
  const std::string schedule = family == nullptr ? std::string() : family->schedule(kernel->kernel_spec);
  fmt::print("kernel {}\n\n", kernel->kernel_spec);
  if (!schedule.empty()) fmt::print("{}\n", schedule);
  fmt::print("{}\n", kernel_listing(kernel->text));
}

Result<void> print_kernels(const Arguments& arguments, const wavejit_engine_options& options, const char* target,
                           wavejit_kernel_form form) {
  wavejit_kernel_text_arguments request{};
  request.size = sizeof request;
  request.descriptor = arguments.descriptor.c_str();
  request.target = target;
  request.form = form;
  const Family* family = family_of(arguments.descriptor);
  return checked(wavejit_kernel_texts(&options, &request, form == WAVEJIT_KERNEL_IR ? print_ir : print_isa,
                                      static_cast<void*>(&family)));
}

// "attention_forward help": all words of its descriptors, one a line. The library tells them as a refusal.
std::optional<std::string> words_of_family(const std::string& descriptor) {
  const Family* family = family_of(descriptor);
  if (family == nullptr || descriptor != std::string(family->name()) + " help") return std::nullopt;
  const auto refused = parse_problem(descriptor);
  if (refused) return std::nullopt;
  constexpr std::string_view before = "; accepted: ";
  const std::size_t begin = refused.error().what.find(before);
  if (begin == std::string::npos) return std::nullopt;
  std::string_view list = refused.error().what;
  list.remove_prefix(begin + before.size());
  std::string lines;
  while (!list.empty()) {
    const auto [word, rest] = halves(list, ", ");
    lines += word + "\n";
    list.remove_prefix(std::min(list.size(), word.size() + 2));
  }
  return lines;
}

Result<ExitCode> explain(const Arguments& arguments) {
  if (const auto words = words_of_family(arguments.descriptor)) {
    fmt::print("{}", *words);
    return ExitCode::ok;
  }
  const wavejit_engine_options options = arguments.engine.options();
  const char* target = arguments.target.empty() ? nullptr : arguments.target.c_str();
  Result<void> done;
  Explanation explanation{.all = arguments.all, .lines = {}};
  if (!arguments.ir && !arguments.isa) {
    done = checked(wavejit_explain(&options, arguments.descriptor.c_str(), target, take_line, &explanation));
    if (done) fmt::print("{}", arguments.json ? as_json(explanation) : as_text(explanation));
  }
  if (done && arguments.ir) done = print_kernels(arguments, options, target, WAVEJIT_KERNEL_IR);
  if (done && arguments.isa) done = print_kernels(arguments, options, target, WAVEJIT_KERNEL_ISA);
  if (!done) return failed(done.error().code, done.error().what + meant_family(arguments.descriptor));
  return ExitCode::ok;
}

std::string footer() {
  std::string text =
      "Without --ir and --isa nothing is compiled. No device is opened either way.\n\n"
      "--ir prints what the template emits: LLVM IR, before any pass of the compiler. --isa prints what the compiler made of it,\n"
      "after the pipeline's schedule, if the kernel has one. How to read the two together: each row of the schedule ends in a\n"
      "barrier, and no instruction that touches LDS leaves its row. The code stands in the order of addresses, so count barriers from\n"
      "the top: start, prologue, the loop of steady, drain. A loop may hold its rows twice, once for each buffer, and the stagger adds\n"
      "barriers. Behind each barrier a line counts what the code did since the one before, which tells rows apart. The compiler may\n"
      "move arithmetic across a barrier, so nobody can say of one such instruction which row it belongs to.\n\n"
      "--json prints the route as one object: problem, target, product, route; kernels (label, spec, key, cache, and of the first\n"
      "key_text and cost); refused (kernel, reason); settings (name, value, origin), of which settings_left_out more are defaults;\n"
      "warnings; and as notes (label, text) what the family adds, as splits.\n\n"
      "A descriptor is a family and words in any order. These are the usual ones; \"<family> help\" lists all:\n";
  for (const Family* family : all_families()) text += fmt::format("  {}\n", family->grammar());
  const ExampleTargets targets = example_targets();
  return text + fmt::format(
                    "\nExamples\n"
                    "  wavejit explain \"{0}\" --target {1}\n"
                    "  wavejit explain \"{3} help\"\n"
                    "  wavejit explain \"{0}\" --target {1} --json | jq -r .kernels[].spec\n"
                    "  wavejit explain \"{0}\" --target {2} --isa | less\n"
                    "  wavejit explain \"{0}\" --target {2} --pipeline generic --ir > kernel.ll",
                    all_families().front()->example(), targets.first, targets.last, all_families().front()->name());
}

}  // namespace

void add_explain(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "explain", "Print the route of a problem (what was chosen, and why nothing else), or its kernels as text");
  command->add_option("descriptor", arguments->descriptor, "one line that says what is asked; quote it")
      ->required()
      ->type_name("DESCRIPTOR");
  command
      ->add_option("--target", arguments->target,
                   joined(targets_that_run(), ", ") + " (default: the target of the device)")
      ->type_name("TARGET");
  CLI::Option* ir =
      command->add_flag("--ir", arguments->ir, "print the LLVM IR that the template emits, instead of the route");
  CLI::Option* isa = command->add_flag(
      "--isa", arguments->isa, "print the schedule and the machine code, with barriers, waits and loops marked");
  command->add_flag("--all", arguments->all, "print every setting, also those that are as they are by default");
  command->add_flag("--json", arguments->json, "print the route as JSON, for programs")->excludes(ir)->excludes(isa);
  arguments->engine.add_device(*command);
  arguments->engine.add_cache(*command);
  arguments->engine.add_cache_remote(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  command->footer(footer());
  command->callback([arguments, &chosen] { chosen = [arguments] { return explain(*arguments); }; });
}

}  // namespace wavejit::tools
