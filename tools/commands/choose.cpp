// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// choose: a few questions, and the call that they lead to.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/variants/page.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::tools {

namespace {

struct Arguments {
  std::map<std::string, std::string> given;  // by question; empty: not given
  bool usual = false;
};

const Variants* variants_of_all() {
  for (const Family* family : all_families())
    if (const Variants* variants = family->variants()) return variants;
  return nullptr;
}

// "" or what is wrong with an answer.
std::string problem_of(const Question& question, const std::string& answer) {
  if (question.problem) return question.problem(answer);
  if (question.accepted.empty() || std::ranges::contains(question.accepted, answer)) return {};
  return fmt::format("'{}' is not accepted{}", answer, vocabulary::meant_or_list(answer, question.accepted, {}));
}

// Asks until the answer is right; an empty line takes the usual one, and so does the end of the input.
std::string ask(const Question& question) {
  const std::string words =
      question.accepted.empty() ? std::string() : fmt::format(" ({})", fmt::join(question.accepted, ", "));
  for (;;) {
    fmt::print(stderr, "{}{} [{}]: ", question.text, words, question.usual);
    std::string answer;
    if (!std::getline(std::cin, answer)) {
      fmt::print(stderr, "\n");
      return question.usual;
    }
    if (answer.empty()) return question.usual;
    const std::string problem = problem_of(question, answer);
    if (problem.empty()) return answer;
    fmt::print(stderr, "  {}\n", problem);
  }
}

Result<ExitCode> choose(const Arguments& arguments) {
  const Variants* variants = variants_of_all();
  if (variants == nullptr)
    return failed(ExitCode::unsupported,
                  "no family in this build describes its variants, so there is nothing to choose from");
  const bool asks = !arguments.usual && isatty(STDIN_FILENO) == 1;
  Answers answers;
  for (const Question& question : variants->questions()) {
    const std::string& given = arguments.given.at(question.name);
    if (question.is_asked && !question.is_asked(answers)) {
      if (given.empty()) continue;
      return failed(ExitCode::usage,
                    fmt::format("--{} {}: the answers before it leave no such question", question.name, given));
    }
    answers[question.name] = !given.empty() ? given : asks ? ask(question) : question.usual;
  }
  const auto chosen = variants->choose(answers);
  if (!chosen) return std::unexpected(chosen.error());
  fmt::print("{}", chosen_text(*chosen));
  return ExitCode::ok;
}

}  // namespace

void add_choose(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("choose", "Ask a few questions, and write the call in C++, Python and PyTorch");
  if (const Variants* variants = variants_of_all()) {
    for (const Question& question : variants->questions()) {
      std::string& value = arguments->given[question.name];
      CLI::Option* option = command->add_option("--" + question.name, value, question.text);
      limit(option,
            question.accepted.empty() ? std::string("ANSWER") : fmt::format("{}", fmt::join(question.accepted, "|")),
            [question](const std::string& answer) { return problem_of(question, answer); });
    }
  }
  command->add_flag("--usual", arguments->usual, "ask nothing: the usual answer to what no option answers");
  command->footer(
      "On a terminal it asks what no option answers; elsewhere, and with --usual, the usual answers count.\n"
      "It prints the descriptor, each target's route or the reason for a refusal, the line that prepares the kernels, "
      "and the call.\n\n"
      "Examples\n"
      "  wavejit choose\n"
      "  wavejit choose --usual --use decode --cache paged --page-size 16 --batch 64 --key-length 8192 --heads 32/8");
  command->callback([arguments, &chosen] { chosen = [arguments] { return choose(*arguments); }; });
}

}  // namespace wavejit::tools
