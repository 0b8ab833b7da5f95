// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// doctor: what a GPU is and does, question after question, beside what this project believes.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/doctor/examination.h"
#include "tools/engine_options.h"
#include "tools/output_file.h"

namespace wavejit::tools {
namespace {

using doctor::Finding;
using doctor::Status;

struct Arguments {
  EngineOptions engine;
  doctor::Choice choice;
  std::string json;
  bool list = false;
};

nlohmann::json to_json(const Finding& finding) {
  return {{"name", finding.name},       {"risk", finding.risk},
          {"settles", finding.settles}, {"status", to_text(finding.status)},
          {"text", finding.text},       {"data", finding.data}};
}

// One that asks for nothing but a launch on a device that refused the last one would only say so again.
Finding after_a_failure(Finding finding, const std::string& which) {
  finding.text = fmt::format("the device refused \"{}\" before", which);
  return finding;
}

void print_line(const Finding& finding) {
  fmt::print("{:<11}  {}  {}: {}\n", to_text(finding.status), finding.risk, finding.name, finding.text);
  std::fflush(stdout);
}

Result<ExitCode> examine(const Arguments& arguments) {
  auto report = open_if_named("json", arguments.json);
  if (!report) return std::unexpected(report.error());
  const auto gpu = doctor::Gpu::open(arguments.engine.options());
  if (!gpu) return std::unexpected(gpu.error());
  const std::string target = wavejit_engine_target(gpu->engine());
  // What the answers are held against. An installation may lack it.
  EngineOptions simulated_options = arguments.engine;
  static_cast<void>(simulated_options.set("device", "sim:" + target));
  const auto simulated = doctor::Gpu::open(simulated_options.options());
  const doctor::Subjects subjects = {
      .gpu = &*gpu, .simulated = simulated ? &*simulated : nullptr, .options = arguments.engine};

  std::vector<doctor::Question> questions = all_questions(subjects);
  std::erase_if(questions, [&](const doctor::Question& question) {
    return !arguments.choice.wants(question.finding.name, question.finding.risk);
  });
  if (questions.empty()) return failed(ExitCode::usage, "no question is left; `wavejit doctor --list` names them all");
  if (arguments.list) {
    for (const doctor::Question& question : questions)
      fmt::print("{}  {}: {}\n", question.finding.risk, question.finding.name, question.finding.settles);
    return ExitCode::ok;
  }
  fmt::print("{}, {}\n", wavejit_engine_device_name(gpu->engine()), target);
  if (!simulated) fmt::print("without a simulated GPU beside it: {}\n", simulated.error().what);
  nlohmann::json findings = nlohmann::json::array();
  std::array<int, 5> counts{};
  std::optional<std::string> refused;
  for (const doctor::Question& question : questions) {
    Finding finding = refused ? after_a_failure(question.finding, *refused) : question.ask(question.finding);
    // A launch that a device refuses may have taken the device with it.
    if (finding.status == Status::failed && !refused && !gpu->answers()) refused = finding.name;
    print_line(finding);
    ++counts[static_cast<std::size_t>(finding.status)];
    findings.push_back(to_json(finding));
  }
  const auto count = [&](Status status) { return counts[static_cast<std::size_t>(status)]; };
  fmt::print("{} as expected, {} differ, {} failed, {} told, {} skipped\n", count(Status::as_expected),
             count(Status::differs), count(Status::failed), count(Status::told), count(Status::skipped));
  if (*report) {
    const nlohmann::json whole = {{"wavejit", wavejit_version()},
                                  {"device", wavejit_engine_device_name(gpu->engine())},
                                  {"target", target},
                                  {"simulated", gpu->simulated()},
                                  {"findings", findings}};
    if (auto done = (*report)->finish(whole.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
        !done)
      return std::unexpected(done.error());
    fmt::print("wrote {}\n", arguments.json);
  }
  return count(Status::failed) > 0 ? ExitCode::check_failed : ExitCode::ok;
}

}  // namespace

void add_doctor(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("doctor", "Ask a GPU what it is and does, beside what wavejit believes");
  command->add_option("--only", arguments->choice.only, "questions whose names begin so; given once for each")
      ->type_name("NAME")
      ->allow_extra_args(false);
  limit_count(command->add_option("--risk", arguments->choice.most_risk, "up to this risk (default 5: everything)"), 5);
  command->add_option("--json", arguments->json, "a report to send in")->type_name("FILE.json");
  command->add_flag("--list", arguments->list, "name the questions and what each settles, and ask none");
  arguments->engine.add_device(*command);
  arguments->engine.add_cache(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  command->footer(
      "Risks: 0 asks HIP, 1 runs instructions on registers, 2 uses memory and LDS of its own, 3 what no document "
      "promises, 4 whole calls, 5 long ones. None writes outside of its memory or runs without end.\n"
      "docs/first-day-on-silicon.md says how to read the answers.\n\n"
      "Examples\n"
      "  wavejit doctor --device hip --json doctor.json\n"
      "  wavejit doctor --device hip --risk 2\n"
      "  wavejit doctor --only sums --only ulps");
  command->callback([&chosen, arguments] { chosen = [arguments] { return examine(*arguments); }; });
}

}  // namespace wavejit::tools
