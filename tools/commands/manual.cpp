// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The manual page wavejit.1, made from the commands and options that the program has.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tools/commands/commands.h"

namespace wavejit::tools {

namespace {

// Text that roff prints as it is: no line is a request, no minus a hyphen.
std::string roff(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (const char c : text) {
    if (at_start && (c == '.' || c == '\'')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    at_start = c == '\n';
  }
  return out;
}

std::string as_it_stands(std::string_view text) {
  return text.empty() ? "" : fmt::format(".PP\n.nf\n{}\n.fi\n", roff(text));
}

std::string options_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    const bool takes = option->get_items_expected_max() > 0;
    text += fmt::format(".TP\n.B {}{}\n{}\n", roff(option->get_name(!option->nonpositional(), true)),
                        takes ? " " + roff(option->get_type_name()) : "", roff(option->get_description()));
  }
  return text;
}

void add_section(const CLI::App& app, const std::string& path, std::string& text) {
  text += fmt::format(".SS {}\n{}.\n{}{}", roff(path), roff(app.get_description()), options_of(app),
                      as_it_stands(app.get_footer()));
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    add_section(*each, path + " " + each->get_name(), text);
}

}  // namespace

std::string manual_page(const CLI::App& program) {
  std::string text = fmt::format(
      ".\\\" Made by `wavejit completion man`.\n.TH WAVEJIT 1 \"\" \"wavejit {0}\" \"User commands\"\n"
      ".SH NAME\nwavejit \\- {1}\n.SH SYNOPSIS\n.B wavejit\n\\fISUBCOMMAND\\fR [\\fIOPTION\\fR...]\n.SH OPTIONS\n{2}"
      ".SH SUBCOMMANDS\n",
      roff(wavejit_version()), roff(program.get_description()), options_of(program));
  for (const CLI::App* each : program.get_subcommands([](const CLI::App*) { return true; }))
    add_section(*each, "wavejit " + each->get_name(), text);
  return text + ".SH \"EXIT STATUS\"\n" + as_it_stands(exit_code_table());
}

}  // namespace wavejit::tools
