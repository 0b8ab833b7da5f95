// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// tune: try what the templates can vary on the clock of the simulated GPU, and write the defaults that they read.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/descriptor_list.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/output_file.h"
#include "tools/profile/model_error.h"
#include "tools/progress.h"
#include "tools/row_file.h"
#include "tools/targets.h"
#include "tools/tune/candidates.h"
#include "tools/tune/defaults.h"

namespace wavejit::tools {
namespace {

using tune::Task;
using tune::Trial;

struct Arguments {
  std::vector<std::string> descriptors;
  std::string list;
  std::string targets = joined(known_targets(), ",");
  std::string parameters;
  bool with_parameters = false;  // --parameters was given, empty perhaps
  std::string output;
  std::string rows;
  std::string check;
  // How far the clock was off, root mean square (docs/timing-model.md).
  double margin = error_of_toggles.root_mean_square;
  int jobs = 0;
  bool json = false;
  bool list_parameters = false;
};

Result<std::vector<std::shared_ptr<const Problem>>> read_problems(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> texts;  // and where each stands
  texts.reserve(arguments.descriptors.size());
  for (const std::string& text : arguments.descriptors) texts.emplace_back(text, "descriptor '" + text + "'");
  if (!arguments.list.empty()) {
    const auto lines = read_list(arguments.list);
    if (!lines) return std::unexpected(lines.error());
    for (const Line& line : *lines)
      texts.emplace_back(line.text, fmt::format("--list {}: line {}", arguments.list, line.number));
    if (lines->empty())
      return failed(ExitCode::usage,
                    fmt::format("--list {}: it has no descriptors; at least one is needed", arguments.list));
  }
  if (texts.empty()) return failed(ExitCode::usage, "nothing to tune for: descriptors or --list are accepted");
  std::vector<std::shared_ptr<const Problem>> problems;
  for (const auto& [text, place] : texts) {
    auto problem = parse_problem(text);
    if (!problem) return failed(problem.error().code, fmt::format("{}: {}", place, problem.error().what));
    const bool is_known =
        std::ranges::any_of(problems, [&](const auto& each) { return each->text() == (*problem)->text(); });
    if (!is_known) problems.push_back(std::move(*problem));
  }
  return problems;
}

std::vector<const Family*> families_to_tune() {
  std::vector<const Family*> some;
  for (const Family* family : all_families())
    if (family->tuning() != nullptr) some.push_back(family);
  return some;
}

std::string known_families() {
  std::string names;
  for (const Family* family : families_to_tune())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family->name());
  return names;
}

// One table is written, so the problems are of one family.
Result<const Family*> family_to_tune(const std::vector<std::shared_ptr<const Problem>>& problems) {
  const Family* family = family_of(problems.front()->text());
  if (family == nullptr || family->tuning() == nullptr) {
    return failed(ExitCode::usage, fmt::format("'{}': its family has nothing to tune; accepted: {}",
                                               problems.front()->text(), known_families()));
  }
  for (const auto& problem : problems) {
    if (family_of(problem->text()) == family) continue;
    return failed(ExitCode::usage, fmt::format("'{}': another family than '{}'; one at a time is accepted",
                                               problem->text(), problems.front()->text()));
  }
  return family;
}

// Targets are the library's to judge: an engine says which it knows.
Result<std::vector<std::string>> read_targets(const std::string& text) {
  std::vector<std::string> targets;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::string device = "sim:" + word;
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.device = device.c_str();
    options.cache_mode = "off";
    wavejit_engine* engine = nullptr;
    if (auto created = checked(wavejit_engine_create(&options, &engine)); !created)
      return failed(ExitCode::usage, fmt::format("--target '{}': {}", word, created.error().what));
    wavejit_engine_destroy(engine);
    if (std::ranges::find(targets, word) == targets.end()) targets.push_back(word);
  }
  if (targets.empty())
    return failed(ExitCode::usage,
                  fmt::format("--target: empty; {}, with commas, are accepted", joined(targets_that_run(), ", ")));
  return targets;
}

// What an earlier run with the same --rows has done.
Result<std::vector<Trial>> read_rows(const std::string& path) {
  std::vector<Trial> trials;
  std::ifstream file(path);
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty()) continue;
    auto trial = tune::parse_line(line);
    if (!trial) {
      return failed(
          ExitCode::file,
          fmt::format("--rows {}: line {} is no row of wavejit tune; another name is accepted", path, number));
    }
    trials.push_back(std::move(*trial));
  }
  return trials;
}

struct Plan {
  std::vector<Task> tasks;
  std::vector<std::optional<Trial>> trials;  // of each task
};

Result<void> run_plan(const Tuning& tuning, const Arguments& arguments, Plan& plan) {
  std::vector<Trial> known;
  std::optional<RowFile> rows;
  if (!arguments.rows.empty()) {
    auto read = read_rows(arguments.rows);
    if (!read) return std::unexpected(read.error());
    known = std::move(*read);
    auto file = RowFile::open("rows", arguments.rows);
    if (!file) return std::unexpected(file.error());
    rows.emplace(std::move(*file));
    for (const Trial& trial : known) {
      if (auto written = rows->write(tune::to_line(trial) + "\n"); !written) return written;
    }
  }
  std::vector<Task> open;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const Trial blank = tune::blank_trial(plan.tasks[i]);
    const auto before = std::ranges::find_if(known, [&](const Trial& trial) { return trial.same_task(blank); });
    if (before != known.end()) {
      plan.trials[i] = *before;
      continue;
    }
    open.push_back(plan.tasks[i]);
    places.push_back(i);
  }
  const std::size_t idle = plan.tasks.size() - open.size();
  if (idle != 0) fmt::print(stderr, "{} of {} trials stand in {} already\n", idle, plan.tasks.size(), arguments.rows);
  const int jobs =
      arguments.jobs != 0 ? arguments.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  Progress progress("trials");
  std::size_t done = idle;
  return tune::run_tasks(tuning, open, jobs, [&](std::size_t index, const Trial& trial) -> Result<void> {
    plan.trials[places[index]] = trial;
    ++done;
    progress.update(done, plan.tasks.size(),
                    fmt::format("{} {} {}: {}", trial.target, trial.descriptor, trial.candidate,
                                trial.kernel.empty() ? "refused" : fmt::format("{} cycles", trial.cycles)),
                    false, idle);
    return rows ? rows->write(tune::to_line(trial) + "\n") : Result<void>();
  });
}

Result<ExitCode> list_parameters(const Arguments& arguments) {
  const auto targets = read_targets(arguments.targets);
  if (!targets) return std::unexpected(targets.error());
  for (const Family* family : families_to_tune())
    fmt::print("{}\n{}\n", family->name(), tune::list_parameters(*family->tuning(), *targets));
  return ExitCode::ok;
}

Result<ExitCode> tune_defaults(const Arguments& arguments) {
  if (arguments.list_parameters) return list_parameters(arguments);
  const auto problems = read_problems(arguments);
  if (!problems) return std::unexpected(problems.error());
  const auto family = family_to_tune(*problems);
  if (!family) return std::unexpected(family.error());
  const Tuning& tuning = *(*family)->tuning();
  const auto parameters = tune::read_parameters(
      tuning, arguments.with_parameters ? arguments.parameters : std::string(tuning.usual_parameters()));
  if (!parameters) return std::unexpected(parameters.error());
  std::string expected;
  if (!arguments.check.empty()) {
    std::ifstream file(arguments.check, std::ios::binary);
    if (!file) return failed(ExitCode::file, fmt::format("--check {}: it cannot be read", arguments.check));
    expected.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  const auto targets = read_targets(arguments.targets);
  if (!targets) return std::unexpected(targets.error());
  auto output = open_if_named("output", arguments.output);
  if (!output) return std::unexpected(output.error());

  Plan plan;
  for (const std::string& target : *targets) {
    for (const std::shared_ptr<const Problem>& problem : *problems) {
      Task task{target, problem, {}};
      for (Candidate& candidate : tuning.candidates(*parameters, target, *task.problem)) {
        task.candidate = std::move(candidate);
        plan.tasks.push_back(task);
      }
    }
  }
  plan.trials.resize(plan.tasks.size());
  if (auto ran = run_plan(tuning, arguments, plan); !ran) return std::unexpected(ran.error());
  std::vector<Trial> trials;
  trials.reserve(plan.trials.size());
  for (const auto& trial : plan.trials) trials.push_back(trial.value());

  const std::vector<tune::Decision> decisions = tune::decide(tuning, plan.tasks, trials, arguments.margin);
  if (*output) {
    if (auto done = (*output)->finish(tune::defaults_file(tuning, decisions)); !done)
      return std::unexpected(done.error());
  }
  fmt::print("{}", arguments.json ? tune::to_json(tuning, decisions, trials, arguments.margin)
                                  : tune::table(tuning, decisions, trials));
  if (arguments.check.empty()) return ExitCode::ok;
  const std::vector<std::string> others = tune::contradictions(tuning, decisions, expected);
  if (others.empty()) return ExitCode::ok;
  return failed(ExitCode::check_failed, fmt::format("--check {}: {}", arguments.check, others.front()));
}

}  // namespace

void add_tune(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "tune",
      "Search the templates' parameters with the simulated GPU's clock, and write defaults that the next build takes");
  command->add_option("descriptors", arguments->descriptors, "problem descriptors, quoted")->type_name("DESCRIPTOR");
  command
      ->add_option("--list", arguments->list, "a file with one descriptor a line, # for comments; - is standard input")
      ->type_name("FILE");
  command->add_option("--target", arguments->targets, "targets, with commas between")
      ->capture_default_str()
      ->type_name("T,...");
  std::string usual;
  for (const Family* family : families_to_tune())
    usual += fmt::format("{}of {} {}", usual.empty() ? "" : "; ", family->name(), family->tuning()->usual_parameters());
  command
      ->add_option(
          "--parameters", arguments->parameters,
          fmt::format("what varies, with commas between; --list-parameters says what there is (default: {})", usual))
      ->type_name("P,...");
  command->add_flag("--list-parameters", arguments->list_parameters,
                    "say what each family's parameters can be on the targets, and run nothing");
  limit(command
            ->add_option("--margin", arguments->margin,
                         "percent of cycles that a candidate must save to become the default: less than the clock's "
                         "own error decides nothing")
            ->capture_default_str(),
        "PERCENT", [](const std::string& given) {
          char* end = nullptr;
          const double value = std::strtod(given.c_str(), &end);
          const bool good = end != given.c_str() && *end == 0 && value >= 0 && value < 100;
          return good ? std::string() : fmt::format("'{}' is not accepted; 0 to below 100 is", given);
        });
  command->add_option("--output", arguments->output, "write the defaults as the table that templates include")
      ->type_name("FILE");
  command
      ->add_option("--rows", arguments->rows,
                   "keep every trial as a line of JSON as it ends; a later run with the same file does what is missing")
      ->type_name("FILE");
  command
      ->add_option("--check", arguments->check, "compare with a table written before: exit code 1 if it says otherwise")
      ->type_name("FILE");
  limit_count(
      command->add_option("--jobs", arguments->jobs, "processes side by side; 0: one a core")->capture_default_str(),
      256);
  command->add_flag("--json", arguments->json, "the report as JSON");
  command->callback([arguments, &chosen, command] {
    arguments->with_parameters = command->count("--parameters") > 0;
    chosen = [arguments] { return tune_defaults(*arguments); };
  });
}

}  // namespace wavejit::tools
