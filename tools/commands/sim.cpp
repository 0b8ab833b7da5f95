// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sim: a program under AMD's own runtime (HIP, ROCr), whose GPUs are simulated; or under this project's HIP front.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/sim/child.h"
#include "tools/sim/gpu_files.h"
#include "tools/sim/reports.h"
#include "tools/targets.h"
#include "vocabulary/gpus.h"
#include "wavejit/simgpu_devices.h"
#include "wavejit/wavejit.h"

namespace wavejit::tools {

namespace {

constexpr const char* runtime_library = "libhsa-runtime64.so.1";
constexpr const char* driver_files = "libdriver_files.so";

struct Arguments {
  std::string target = example_targets().last;
  std::string front = "rocr";
  std::string write_topology;
  std::string check;
  std::string ignore;
  std::string arrival;
  std::string rules;
  std::string schedule;
  bool cycles = false;
  bool warm = false;
  std::optional<double> event_cost;  // µs
  bool summary = false;
  std::string json;
  bool fail_on_findings = false;
  bool has_driver_files = true;
  std::vector<std::string> program;
};

// The folder of libwavejit.so, which the other libraries lie beside.
std::filesystem::path library_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&wavejit_version), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::absolute(info.dli_fname).parent_path();
}

// The folder of a front's library: beside libwavejit.so in a build, in wavejit/ beside it where it was installed.
std::filesystem::path front_folder(const std::filesystem::path& libraries, const char* name, const char* library) {
  const std::filesystem::path installed = libraries / "wavejit" / name;
  return std::filesystem::exists(installed / library) ? installed : libraries / name;
}

std::string in_front(const std::filesystem::path& folder, const char* others) {
  return others == nullptr || *others == 0 ? folder.string() : folder.string() + ":" + others;
}

// The library that will make the GPUs judges how they are written: afterwards it could only warn, and take others.
Result<void> check_target(const std::filesystem::path& library, const std::string& target) {
  if (!std::filesystem::exists(library))
    return failed(ExitCode::file, fmt::format("{} is not there; it belongs to this program", library.string()));
  void* const opened = ::dlopen(library.c_str(), RTLD_LAZY);
  if (opened == nullptr) return failed(ExitCode::file, fmt::format("{}: {}", library.string(), ::dlerror()));
  const auto problem_of =
      reinterpret_cast<decltype(&wavejit_simgpu_devices_problem)>(::dlsym(opened, "wavejit_simgpu_devices_problem"));
  if (problem_of == nullptr)
    return failed(ExitCode::file, fmt::format("{} belongs to another version of this program", library.string()));
  std::string accepted(problem_of(target.c_str(), nullptr, 0) + 1, '\0');
  accepted.resize(problem_of(target.c_str(), accepted.data(), accepted.size()));
  if (accepted.empty()) return {};
  const auto told = vocabulary::target_of_named_gpu(target);
  return failed(ExitCode::usage,
                fmt::format("--target: '{}' names no GPUs{}; it takes {}", target, told ? "; " + *told : "", accepted));
}

// Where the user's caches lie; without a home, where temporary files do.
std::filesystem::path cache_folder() {
  if (const char* caches = std::getenv("XDG_CACHE_HOME"); caches != nullptr && *caches == '/') return caches;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::filesystem::path(home) / ".cache";
  std::error_code error;
  return std::filesystem::temp_directory_path(error);
}

// AMD's runtime reads which GPU there is from files, and takes a library that models it.
Result<void> use_model(const std::filesystem::path& library, const std::string& target) {
  const auto topology = kept_topology(library, target, cache_folder());
  if (!topology) return std::unexpected(topology.error());
  ::setenv("HSA_MODEL_TOPOLOGY", topology->c_str(), 1);
  ::setenv("HSA_MODEL_LIB", library.c_str(), 1);
  ::unsetenv("HSA_ENABLE_DTIF");
  // Without it ROCr starts with gigabytes of memory (src/simgpu/front_ends/model/start.cpp).
  ::setenv("LD_PRELOAD", in_front(library.parent_path() / start_library, std::getenv("LD_PRELOAD")).c_str(), 1);
  // Wake-ups of its events may be lost; memory pools do without the driver's virtual-memory interface.
  ::setenv("HSA_ENABLE_INTERRUPT", "0", 1);
  ::setenv("DEBUG_HIP_MEM_POOL_VMHEAP", "0", 1);
  return {};
}

// Programs that look for the kernel driver's files before they load ROCr find them
// (src/simgpu/front_ends/thunk/driver_files.cpp).
Result<void> preload_driver_files(const std::filesystem::path& folder, const std::string& target) {
  const auto written = kept_driver_files(folder / "libdtif.so", target, cache_folder());
  if (!written) return std::unexpected(written.error());
  ::setenv("WAVEJIT_SIM_DRIVER_FILES", written->c_str(), 1);
  const std::filesystem::path library = folder / driver_files;
  const char* const others = std::getenv("LD_PRELOAD");
  const std::string all =
      others == nullptr || *others == 0 ? library.string() : std::string(others) + ":" + library.string();
  ::setenv("LD_PRELOAD", all.c_str(), 1);
  return {};
}

// What AMD's runtime is told so that it takes simulated GPUs.
Result<void> use_rocr(const std::filesystem::path& libraries, const Arguments& arguments) {
  const bool by_model = arguments.front == "rocr-model";
  const char* const name = by_model ? model_library : "libdtif.so";
  const std::filesystem::path folder = front_folder(libraries, "rocr", name);
  const std::filesystem::path library = folder / name;
  if (auto right = check_target(library, arguments.target); !right) return right;
  if (by_model) {
    if (auto right = write_topology(library, arguments.target, std::nullopt); !right) return right;
  }
  if (::dlopen(runtime_library, RTLD_LAZY) == nullptr)
    return failed(ExitCode::device, fmt::format("{}: AMD's ROCm 7.2 is needed, or --front hip", ::dlerror()));
  if (by_model) {
    if (auto used = use_model(library, arguments.target); !used) return used;
  } else {
    ::setenv("LD_LIBRARY_PATH", in_front(folder, std::getenv("LD_LIBRARY_PATH")).c_str(), 1);
    ::setenv("HSA_ENABLE_DTIF", "1", 1);
    ::unsetenv("HSA_MODEL_TOPOLOGY");
    // IPC handles are refused; of ROCr's two ways to them the newer one ends in an assertion then (7.2).
    ::setenv("HSA_ENABLE_IPC_MODE_LEGACY", "1", 0);
    // KiB up to which HIP copies by kernels: those run where the doorbell rings, and engines must look for work.
    ::setenv("GPU_FORCE_BLIT_COPY_SIZE", "64", 0);
    // Commands that HIP gathers before a callback says that they are over: after each, ROCr's thread looks for 200 µs.
    ::setenv("DEBUG_CLR_BATCH_CPU_SYNC_SIZE", "1000", 0);
  }
  // Images are not simulated: programs are to hear it when they make one, not when a kernel touches it.
  ::setenv("HSA_DISABLE_IMAGE", "1", 1);
  ::setenv("WAVEJIT_DEVICE", "hip", 1);
  return {};
}

Result<void> use_own_front(const std::filesystem::path& libraries, const std::string& target) {
  const std::filesystem::path folder = front_folder(libraries, "hip", "libamdhip64.so.7");
  if (auto right = check_target(libraries / "libwavejit_simgpu.so", target); !right) return right;
  ::setenv("LD_LIBRARY_PATH", in_front(folder, std::getenv("LD_LIBRARY_PATH")).c_str(), 1);
  ::setenv("WAVEJIT_DEVICE", ("sim:" + target).c_str(), 1);
  return {};
}

bool names_bounds(const std::string& checks) {
  return checks.find("bounds") != std::string::npos || checks.find("all") != std::string::npos;
}

// Whether launches are timed, and what is said when a process ends.
Result<void> use_clock_and_summary(const Arguments& arguments) {
  if (arguments.cycles && (!arguments.check.empty() || !arguments.arrival.empty())) {
    return failed(ExitCode::usage, fmt::format("--cycles with --{}: a launch is checked or timed; take one of them",
                                               arguments.check.empty() ? "arrival" : "check"));
  }
  if (arguments.cycles) {
    ::setenv("WAVEJIT_SIM_CYCLES", "on", 1);
    // Copies are kernels, which are timed like others.
    ::setenv("HSA_ENABLE_SDMA", "0", 1);
  }
  if ((arguments.warm || arguments.event_cost) && !arguments.cycles)
    return failed(ExitCode::usage, fmt::format("--{} without --cycles: nothing is timed then; give both",
                                               arguments.warm ? "warm" : "event-cost"));
  if (arguments.warm) ::setenv("WAVEJIT_SIM_WARM", "on", 1);
  if (arguments.event_cost) {
    constexpr double nanoseconds = 1000;
    if (!std::isfinite(*arguments.event_cost))
      return failed(
          ExitCode::usage,
          fmt::format("--event-cost: {} is no number of microseconds; accepted: 0 to 1000000", *arguments.event_cost));
    const auto cost = static_cast<std::uint64_t>(std::llround(*arguments.event_cost * nanoseconds));
    if (cost == 0 && *arguments.event_cost > 0) {
      return failed(ExitCode::usage,
                    fmt::format("--event-cost: {} µs are less than a nanosecond; accepted: 0, and 0.001 "
                                "to 1000000",
                                *arguments.event_cost));
    }
    ::setenv("WAVEJIT_SIM_EVENT_COST", std::to_string(cost).c_str(), 1);
  }
  ::setenv("WAVEJIT_SIM_SUMMARY", arguments.summary ? "on" : "findings", arguments.summary ? 1 : 0);
  return {};
}

bool is_checked(const Arguments& arguments) {
  const char* const inherited = std::getenv("WAVEJIT_SIM_CHECK");
  const std::string checks = !arguments.check.empty() || inherited == nullptr ? arguments.check : inherited;
  return !checks.empty() && checks != "none";
}

// A user who sees a wrong end may not know that there are checks. A log that ends well is left as it is.
void tell_of_checks(bool ended_well) {
  if (ended_well && ::isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr,
             "wavejit sim: checks were off: --check all finds races, missing waits, uninitialised reads and more\n");
}

// As the program ended: by its signal too, but without a second core file.
Result<ExitCode> run_and_tell(const Arguments& arguments) {
  const auto end = run_child(arguments.program);
  if (!end) return std::unexpected(end.error());
  tell_of_checks(end->shell_code() == 0);
  if (end->signal != 0) {
    const rlimit none{};
    ::setrlimit(RLIMIT_CORE, &none);
    std::signal(end->signal, SIG_DFL);
    std::raise(end->signal);
  }
  return static_cast<ExitCode>(end->shell_code());
}

// In place of this program, unless somebody wants to know how it ended.
Result<ExitCode> start(const Arguments& arguments) {
  if (!arguments.json.empty() || arguments.fail_on_findings) {
    auto code = run_with_reports({.program = arguments.program,
                                  .json = arguments.json,
                                  .fail_on_findings = arguments.fail_on_findings,
                                  .variable = "WAVEJIT_SIM_REPORT"});
    if (code && !arguments.cycles && !is_checked(arguments)) tell_of_checks(*code == ExitCode::ok);
    return code;
  }
  if (!arguments.cycles && !is_checked(arguments)) return run_and_tell(arguments);
  std::vector<char*> words = words_of(arguments.program);
  ::execvp(words[0], words.data());
  return failed(ExitCode::file, fmt::format("{} cannot be started: {}", arguments.program[0], std::strerror(errno)));
}

Result<ExitCode> run_program(const Arguments& arguments) {
  const std::filesystem::path libraries = library_folder();
  if (!arguments.write_topology.empty()) {
    if (!arguments.program.empty())
      return failed(ExitCode::usage, "--write-topology writes a folder and runs no program: leave one of the two out");
    const std::filesystem::path library = front_folder(libraries, "rocr", model_library) / model_library;
    if (auto right = write_topology(library, arguments.target, std::nullopt); !right)
      return std::unexpected(right.error());
    if (auto written = write_topology(library, arguments.target, arguments.write_topology); !written)
      return std::unexpected(written.error());
    return ExitCode::ok;
  }
  if (arguments.program.empty())
    return failed(ExitCode::usage,
                  "program is required: wavejit sim --target gfx950 -- PROGRAM [ARGUMENT...]; see wavejit sim --help");
  const bool own_front = arguments.front == "hip";
  const auto ready = own_front ? use_own_front(libraries, arguments.target) : use_rocr(libraries, arguments);
  if (!ready) return std::unexpected(ready.error());
  if (!own_front && arguments.has_driver_files) {
    const auto found = preload_driver_files(front_folder(libraries, "rocr", driver_files), arguments.target);
    if (!found) return std::unexpected(found.error());
  }
  ::setenv("WAVEJIT_SIM_TARGET", arguments.target.c_str(), 1);
  for (const auto& [variable, value] :
       {std::pair("WAVEJIT_SIM_CHECK", &arguments.check), std::pair("WAVEJIT_SIM_ARRIVAL", &arguments.arrival),
        std::pair("WAVEJIT_SIM_SCHEDULE", &arguments.schedule), std::pair("WAVEJIT_SIM_IGNORE", &arguments.ignore),
        std::pair("WAVEJIT_SIM_RULES", &arguments.rules)}) {
    if (!value->empty()) ::setenv(variable, value->c_str(), 1);
  }
  if (!own_front && names_bounds(arguments.check)) {
    // ROCr cuts small allocations out of blocks of 2 MiB, in which no bound shows.
    ::setenv("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1", 1);
    fmt::print(stderr, "wavejit sim: bounds are those of pages: ROCr asks for whole ones\n");
  }
  if (auto used = use_clock_and_summary(arguments); !used) return std::unexpected(used.error());
  return start(arguments);
}

}  // namespace

void add_sim(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("sim", "Run a program under AMD's HIP and ROCr, on simulated GPUs");
  command->add_option("program", arguments->program, "the program and its arguments, behind --")
      ->type_name("PROGRAM [ARGUMENT...]");
  command->add_option("--target", arguments->target, "the GPUs: a target or a board, and xN for N of them")
      ->capture_default_str()
      ->type_name("TARGET[xN]");
  command
      ->add_option(
          "--front", arguments->front,
          "rocr: AMD's HIP and ROCr; rocr-model: ROCr by its interface for models (one GPU, fewer features); hip: "
          "this project's own HIP library, which needs no ROCm")
      ->capture_default_str()
      ->check(CLI::IsMember({"rocr", "rocr-model", "hip"}));
  command->add_option("--write-topology", arguments->write_topology, "only write the folder for HSA_MODEL_TOPOLOGY")
      ->type_name("FOLDER");
  command->add_option(
      "--check", arguments->check,
      "what is checked while kernels run: all, or a list of checks (default: no more than addresses; races go unsaid, "
      "and without --cycles a program that ends wrongly or on a terminal is followed by a line that says so)");
  command->add_option("--ignore", arguments->ignore,
                      "findings that are not said: a list of checks, each of some kernels (bounds:Cijk_*) or of all");
  command->add_option("--arrival", arguments->arrival, "when results of memory arrive")
      ->check(CLI::IsMember({"early", "late", "random", "unordered"}));
  command
      ->add_option("--rules", arguments->rules,
                   "what checks and late arrival hold a kernel to: what compilers count on, or every wait")
      ->check(CLI::IsMember({"compiler", "strict"}));
  command->add_option("--schedule", arguments->schedule, "in which order waves run")
      ->check(CLI::IsMember({"in_order", "reverse", "random", "timed"}));
  command->add_flag(
      "--cycles", arguments->cycles,
      "predict what launches take; events and dispatch times then show simulated time (not with --front hip, whose events "
      "show the host's)");
  command->add_flag("--warm", arguments->warm,
                    "with --cycles: launches find in caches what an equal launch before left there");
  constexpr double most_microseconds = 1e6;
  command
      ->add_option(
          "--event-cost", arguments->event_cost,
          "with --cycles: µs between an event and the kernel behind it; 2.9 by an empty launch that others timed on an MI300X")
      ->check(CLI::Range(0.0, most_microseconds))
      ->type_name("MICROSECONDS");
  command->add_flag("--summary", arguments->summary, "say at the end what ran and what was found");
  command->add_option("--json", arguments->json, "where the same goes for programs, of all processes")
      ->type_name("FILE");
  command->add_flag("--fail-on-findings", arguments->fail_on_findings,
                    "exit code 1 when the program ended well but something was found");
  command->add_flag("--driver-files,!--no-driver-files", arguments->has_driver_files,
                    "/dev/kfd, /sys/class/kfd and the driver's state, for programs that look before they load "
                    "ROCr (by LD_PRELOAD)");
  command->footer(
      fmt::format("Examples:\n"
                  "  wavejit sim --target gfx950x2 -- ./my_hip_program --size 4096\n"
                  "  wavejit sim --check all --json findings.json --fail-on-findings -- ctest\n\n"
                  "Targets are {}. A board can have fewer dies or compute units: --target\n"
                  "gfx942@6x38 is an MI300A, gfx1201@1x56 an RX 9070.\n"
                  "AMD's ROCm 7.2 must be installed for --front rocr; a GPU is not needed.",
                  joined(targets_that_run(), ", ")));
  command->callback([arguments, &chosen] { chosen = [arguments] { return run_program(*arguments); }; });
}

}  // namespace wavejit::tools
