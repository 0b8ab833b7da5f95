// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// profile: a problem or a foreign kernel on a simulated GPU that keeps time, and where that time goes.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/output_file.h"
#include "tools/profile/launch_text.h"
#include "tools/profile/page.h"
#include "tools/profile/prediction.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

// Some turns of the loop of our largest tiles.
constexpr std::uint64_t timeline_cycles = 24576;

struct Arguments {
  EngineOptions engine;
  std::string subject;
  std::vector<std::string> settings;
  std::string timeline;
  std::string html;
  bool warm = false;
  bool json = false;
};

Result<ExitCode> profile(const Arguments& arguments) {
  auto subject = parse_subject(arguments.subject, arguments.settings, arguments.engine, "set");
  if (!subject) return std::unexpected(subject.error());
  subject->asked = subject->engine.given_names();
  if (!arguments.html.empty() && arguments.html == arguments.timeline) {
    return failed(ExitCode::usage,
                  fmt::format("--html {}: it is also --timeline; another name is accepted", arguments.html));
  }
  // Before any work: an output that cannot be written costs nothing.
  auto timeline = open_if_named("timeline", arguments.timeline);
  if (!timeline) return std::unexpected(timeline.error());
  auto html = open_if_named("html", arguments.html);
  if (!html) return std::unexpected(html.error());

  const auto prediction =
      predict(*subject, *timeline || *html ? timeline_cycles : 0, arguments.warm ? Caches::warm : Caches::cold);
  if (!prediction) return std::unexpected(prediction.error());
  std::string written;
  if (*timeline) {
    if (auto done = (*timeline)->finish(prediction->timeline); !done) return std::unexpected(done.error());
    written += fmt::format("wrote    {} {} cycles of a compute unit\n", arguments.timeline, timeline_cycles);
  }
  if (*html) {
    const std::string page = page_of(prediction->subject, {&*prediction}, nullptr);
    if (auto done = (*html)->finish(page); !done) return std::unexpected(done.error());
    written += fmt::format("wrote    {}\n", arguments.html);
  }
  if (arguments.json) {
    fmt::print("{}\n", prediction_json(*prediction).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}{}", prediction_text(*prediction), written);
  }
  return ExitCode::ok;
}

}  // namespace

void add_profile(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("profile", "Show where a kernel's time goes, as a simulated GPU predicts it");
  command
      ->add_option("subject", arguments->subject,
                   "a problem's descriptor, quoted, or a file with a code object of any compiler")
      ->required()
      ->type_name("DESCRIPTOR|FILE");
  command
      ->add_option("--set", arguments->settings,
                   "how it is made or launched; given once for each setting: " + settings_help())
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--html", arguments->html, "also a report for a browser, in one file")->type_name("FILE.html");
  command
      ->add_option("--timeline", arguments->timeline,
                   "also some thousand cycles of one compute unit for Perfetto or chrome://tracing")
      ->type_name("FILE.json");
  command->add_flag("--warm", arguments->warm,
                    "launches find in L2 and the last level cache what an equal launch before left there; without it, "
                    "the last level cache has what the launches before of the call wrote, and L2 nothing");
  command->add_flag("--json", arguments->json, "report for programs instead of people");
  arguments->engine.add_device(*command);
  arguments->engine.add_cache(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  command->footer(fmt::format(
      "Figures are predicted, not measured: docs/timing-model.md says how far to trust them. Only the workgroups that the clock\n"
      "looks at run, so long problems take seconds, and there are no results.\n\n"
      "µs are at the clock that the board's data sheet states. \"of peak\" compares the timed compute units with what their matrix\n"
      "pipes can do and with their share of each level of memory. Clusters are runs of instructions between jumps and barriers, with\n"
      "the step of the kernel's schedule (wavejit explain --isa) where it is known: QK and PV are the two products.\n\n"
      "{3}\n\n"
      "Examples\n"
      "  wavejit profile \"{0}\" --device sim:{2} --html profile.html\n"
      "  wavejit profile kernel.co --set grid=256 --set workgroup=256 --set arguments=buffer:1MiB,buffer:1MiB,"
      "i32:262144 --device sim:{1}",
      all_families().front()->example(), example_targets().first, example_targets().last, waits_help()));
  command->callback([&chosen, arguments] { chosen = [arguments] { return profile(*arguments); }; });
}

}  // namespace wavejit::tools
