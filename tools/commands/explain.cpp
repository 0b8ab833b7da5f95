// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// explain: the route of a problem, and what its kernels are: IR, machine code, schedule.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

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
};

// Settings that are as they are by default are counted, unless all are asked for.
struct Printed {
  bool all;
  int defaults = 0;
};

void print_line(void* context, const char* line) {
  Printed& printed = *static_cast<Printed*>(context);
  const std::string_view text = line;
  if (!printed.all && text.starts_with("setting ") && text.ends_with("(default)"))
    ++printed.defaults;
  else
    fmt::print("{}\n", text);
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

Result<ExitCode> explain(const Arguments& arguments) {
  const wavejit_engine_options options = arguments.engine.options();
  const char* target = arguments.target.empty() ? nullptr : arguments.target.c_str();
  Result<void> done;
  Printed printed{.all = arguments.all};
  if (!arguments.ir && !arguments.isa)
    done = checked(wavejit_explain(&options, arguments.descriptor.c_str(), target, print_line, &printed));
  if (done && printed.defaults > 0) fmt::print("setting  {} more are defaults: --all\n", printed.defaults);
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
      "A descriptor is a family and words in any order. These are the usual ones; a wrong one is answered with all:\n";
  for (const Family* family : all_families()) text += fmt::format("  {}\n", family->grammar());
  const ExampleTargets targets = example_targets();
  return text + fmt::format(
                    "\nExamples\n"
                    "  wavejit explain \"{0}\" --target {1}\n"
                    "  wavejit explain \"{0}\" --target {2} --isa | less\n"
                    "  wavejit explain \"{0}\" --target {2} --pipeline generic --ir > kernel.ll",
                    all_families().front()->example(), targets.first, targets.last);
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
  command->add_flag("--ir", arguments->ir, "print the LLVM IR that the template emits, instead of the route");
  command->add_flag("--isa", arguments->isa,
                    "print the schedule and the machine code, with barriers, waits and loops marked");
  command->add_flag("--all", arguments->all, "print every setting, also those that are as they are by default");
  arguments->engine.add_device(*command);
  arguments->engine.add_cache(*command);
  arguments->engine.add_cache_remote(*command);
  arguments->engine.add_compiler(*command);
  arguments->engine.add_log_level(*command);
  command->footer(footer());
  command->callback([arguments, &chosen] { chosen = [arguments] { return explain(*arguments); }; });
}

}  // namespace wavejit::tools
