// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// supported: what the library has kernels for, by family, by GPU and by model.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/gpu_products.h"
#include "tools/letters.h"
#include "tools/model_support.h"
#include "tools/published_models.h"
#include "tools/served_options.h"
#include "tools/support_table.h"
#include "tools/targets.h"
#include "vocabulary/gpus.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::tools {

namespace {

struct Arguments {
  std::string target;
  std::string model;
  ServedModel served;  // but for its configuration
  bool models = false;
  bool gpus = false;
  bool markdown = false;
  bool json = false;
};

// All targets that some family has kernels for; of a name, that one, under the name that was given.
Result<std::vector<NamedTarget>> asked_targets(const std::string& given) {
  std::vector<NamedTarget> all;
  for (const SupportRow& row : support().rows)
    if (!std::ranges::contains(all, row.target, &NamedTarget::id))
      all.push_back({.id = row.target, .product = row.product});
  if (given.empty()) return all;
  const std::optional<vocabulary::Gpu> product = vocabulary::gpu_of_name(given);
  const std::string id = product ? std::string(product->target) : small_letters(given);
  const auto found = std::ranges::find(all, id, &NamedTarget::id);
  if (found != all.end())
    return std::vector<NamedTarget>{{.id = id, .product = product ? std::string(product->name) : found->product}};
  const std::vector<std::string> targets = targets_that_run();
  if (product)
    return failed(ExitCode::unsupported,
                  fmt::format("--target '{}': {} is {}, for which no family has kernels; accepted: {}. docs/models.md "
                              "says who has some",
                              given, product->name, product->target, joined(targets, ", ")));
  const auto gpus = vocabulary::gpus_by_target();
  if (const auto row = std::ranges::find(gpus, id, &vocabulary::GpusOfTarget::target); row != gpus.end())
    return failed(ExitCode::unsupported,
                  fmt::format("--target '{}': it is {} ({}), for which no family has kernels; accepted: {}. "
                              "docs/models.md says who has some",
                              given, row->refused, row->architecture, joined(targets, ", ")));
  return failed(ExitCode::usage,
                fmt::format("--target '{}' is no target{}; accepted: {}, and names of GPUs (wavejit supported --gpus)",
                            given, vocabulary::did_you_mean(given, targets), joined(targets, ", ")));
}

ExitCode code_of(bool all) { return all ? ExitCode::ok : ExitCode::unsupported; }

// A file or a folder wins over a name that is known without one.
Result<ModelAnswer> answer_for_model(const std::string& given, ServedModel served,
                                     const std::vector<NamedTarget>& targets) {
  std::error_code none;
  const PublishedModel* known = std::filesystem::exists(given, none) ? nullptr : published_model(given);
  auto config = known != nullptr ? parse_model(known->config, "--model " + known->name) : read_model(given);
  if (!config) return std::unexpected(config.error());
  served.config = *std::move(config);
  if (auto good = check_served(served, given); !good) return std::unexpected(good.error());
  return answer_for(known == nullptr ? given : fmt::format("{} ({})", known->name, known->seen), served, targets);
}

Result<ExitCode> print_model(const Arguments& arguments, const std::vector<NamedTarget>& targets) {
  auto answer = answer_for_model(arguments.model, arguments.served, targets);
  if (!answer) return std::unexpected(answer.error());
  fmt::print("{}", arguments.json       ? model_json(*answer)
                   : arguments.markdown ? models_markdown({*answer}, targets)
                                        : model_text(*answer));
  return code_of(all_supported(*answer));
}

// A list of what there is: a model without kernels is an answer and no failure.
Result<ExitCode> print_models(const Arguments& arguments, const std::vector<NamedTarget>& targets) {
  std::vector<ModelAnswer> answers;
  for (const PublishedModel& model : published_models()) {
    auto config = parse_model(model.config, model.name);
    if (!config) {
      answers.push_back(unread_model(model.name, model.name, config.error()));
      continue;
    }
    ServedModel served;
    served.config = *std::move(config);
    auto answer = answer_for(model.name, served, targets);
    if (!answer) return std::unexpected(answer.error());
    answers.push_back(*std::move(answer));
  }
  fmt::print("{}", arguments.json       ? models_json(answers)
                   : arguments.markdown ? models_markdown(answers, targets)
                                        : models_text(answers));
  return ExitCode::ok;
}

void print_gpus(const Arguments& arguments) {
  const Support all = support();
  fmt::print("{}", arguments.json ? gpus_json(all) : arguments.markdown ? gpus_markdown(all) : gpus_text(all));
}

Result<ExitCode> print_supported(const Arguments& arguments) {
  if (arguments.gpus) {
    print_gpus(arguments);
    return ExitCode::ok;
  }
  const auto targets = asked_targets(arguments.target);
  if (!targets) return std::unexpected(targets.error());
  if (!arguments.model.empty()) return print_model(arguments, *targets);
  if (arguments.models) return print_models(arguments, *targets);
  Support found = support(arguments.target.empty() ? "" : targets->front().id);
  if (!arguments.target.empty())
    for (SupportRow& row : found.rows) row.product = targets->front().product;
  fmt::print("{}", arguments.json       ? support_json(found)
                   : arguments.markdown ? support_markdown(found)
                                        : support_text(found));
  return ExitCode::ok;
}

constexpr const char* footer =
    "The list comes from the tables that the route itself asks. Whether one call has a kernel, and why not: "
    "wavejit explain.\n\n"
    "--model asks the library about each call that an engine makes that serves the model: for each kind of layers, "
    "with keys and values in\n"
    "the model's type and in fp8. It says yes (every call has a kernel), partly (some kinds of layers have all their "
    "calls) or no, the\n"
    "route of each call, and what the library refuses. What the file leaves out and the model type's class has is "
    "marked with *. Settings of the environment that change kernels count, as in explain.\n"
    "Exit code 0: every call in the model's own type has a kernel on every target that was asked for; 4: one has "
    "none, or the\n"
    "model_type is not known; 3: there is no such file, or it is no JSON.\n\n"
    "Examples\n"
    "  wavejit supported\n"
    "  wavejit supported mi300x\n"
    "  wavejit supported --markdown\n"
    "  wavejit supported --gpus\n"
    "  wavejit supported --models --target r9700\n"
    "  wavejit supported --model ~/models/Qwen3-8B --tp 8 --target mi355x\n"
    "  wavejit supported --model config.json --json";

}  // namespace

void add_supported(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "supported", "List what this version has kernels for, by target and family, by GPU, by model");
  CLI::Option* target =
      command
          ->add_option(
              "--target,target", arguments->target,
              "one target, or a GPU by name, only, with or without --target: gfx950, mi325x, \"rx 9070\" (default: all)")
          ->type_name("TARGET");
  CLI::Option* model = command
                           ->add_option("--model", arguments->model,
                                        "the calls of a model: a folder with its config.json, that file, or the name "
                                        "of one that --models lists")
                           ->type_name("MODEL");
  const ServedOptions served = add_served(*command, arguments->served);
  served.ranks->needs(model);
  served.page->needs(model);
  CLI::Option* models = command->add_flag("--models", arguments->models, "published models, down, and targets, across");
  models->excludes(model);
  command->add_flag("--gpus", arguments->gpus, "GPUs by name")->excludes(target)->excludes(model)->excludes(models);
  CLI::Option* markdown = command->add_flag("--markdown", arguments->markdown, "one table");
  command->add_flag("--json", arguments->json, "every fact, for programs")->excludes(markdown);
  command->footer(footer);
  command->callback([arguments, &chosen] { chosen = [arguments] { return print_supported(*arguments); }; });
}

}  // namespace wavejit::tools
