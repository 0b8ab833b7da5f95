// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sim: a program under AMD's own runtime (HIP, ROCr), whose GPUs are simulated; or under this project's HIP front.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/targets.h"
#include "wavejit/simgpu_devices.h"
#include "wavejit/wavejit.h"

namespace wavejit::tools {

namespace {

constexpr const char* runtime_library = "libhsa-runtime64.so.1";

struct Arguments {
  std::string target = example_targets().last;
  std::string front = "rocr";
  std::string check;
  std::string arrival;
  std::string schedule;
  std::vector<std::string> program;
};

// The folder of libwavejit.so, which the other libraries lie beside.
std::filesystem::path library_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&wavejit_version), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::absolute(info.dli_fname).parent_path();
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
    return failed(ExitCode::file, fmt::format("{} is of another version of this program", library.string()));
  std::string accepted(problem_of(target.c_str(), nullptr, 0) + 1, '\0');
  accepted.resize(problem_of(target.c_str(), accepted.data(), accepted.size()));
  if (accepted.empty()) return {};
  return failed(ExitCode::usage, fmt::format("--target: '{}' names no GPUs; it takes {}", target, accepted));
}

// What AMD's runtime is told so that it takes simulated GPUs.
Result<void> use_rocr(const std::filesystem::path& libraries, const std::string& target) {
  const std::filesystem::path folder = libraries / "rocr";
  if (auto right = check_target(folder / "libdtif.so", target); !right) return right;
  if (::dlopen(runtime_library, RTLD_LAZY) == nullptr)
    return failed(ExitCode::device, fmt::format("{}: AMD's ROCm 7.2 is needed, or --front hip", ::dlerror()));
  ::setenv("LD_LIBRARY_PATH", in_front(folder, std::getenv("LD_LIBRARY_PATH")).c_str(), 1);
  ::setenv("HSA_ENABLE_DTIF", "1", 1);
  // Memory pools do without the driver's virtual-memory interface.
  ::setenv("DEBUG_HIP_MEM_POOL_VMHEAP", "0", 1);
  // KiB up to which HIP copies by kernels: those run where the doorbell rings, and engines must look for work.
  ::setenv("GPU_FORCE_BLIT_COPY_SIZE", "64", 0);
  // Commands that HIP gathers before a callback says that they are over: after each, ROCr's thread looks for 200 µs.
  ::setenv("DEBUG_CLR_BATCH_CPU_SYNC_SIZE", "1000", 0);
  ::setenv("WAVEJIT_DEVICE", "hip", 1);
  return {};
}

Result<void> use_own_front(const std::filesystem::path& libraries, const std::string& target) {
  const std::filesystem::path folder = libraries / "hip";
  if (auto right = check_target(libraries / "libwavejit_simgpu.so", target); !right) return right;
  ::setenv("LD_LIBRARY_PATH", in_front(folder, std::getenv("LD_LIBRARY_PATH")).c_str(), 1);
  ::setenv("WAVEJIT_DEVICE", ("sim:" + target).c_str(), 1);
  return {};
}

bool names_bounds(const std::string& checks) {
  return checks.find("bounds") != std::string::npos || checks.find("all") != std::string::npos;
}

Result<ExitCode> run_program(const Arguments& arguments) {
  const std::filesystem::path libraries = library_folder();
  const bool own_front = arguments.front == "hip";
  const auto ready = own_front ? use_own_front(libraries, arguments.target) : use_rocr(libraries, arguments.target);
  if (!ready) return std::unexpected(ready.error());
  ::setenv("WAVEJIT_SIM_TARGET", arguments.target.c_str(), 1);
  for (const auto& [variable, value] :
       {std::pair("WAVEJIT_SIM_CHECK", &arguments.check), std::pair("WAVEJIT_SIM_ARRIVAL", &arguments.arrival),
        std::pair("WAVEJIT_SIM_SCHEDULE", &arguments.schedule)}) {
    if (!value->empty()) ::setenv(variable, value->c_str(), 1);
  }
  if (!own_front && names_bounds(arguments.check)) {
    // ROCr cuts small allocations out of blocks of 2 MiB, in which no bound shows.
    ::setenv("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1", 1);
    fmt::print(stderr, "wavejit sim: bounds are those of pages: ROCr asks for whole ones\n");
  }
  std::vector<char*> words;
  words.reserve(arguments.program.size() + 1);
  for (const std::string& word : arguments.program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  return failed(ExitCode::file, fmt::format("{} cannot be started: {}", arguments.program[0], std::strerror(errno)));
}

}  // namespace

void add_sim(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("sim", "Run a program under AMD's HIP and ROCr, on simulated GPUs");
  command->add_option("program", arguments->program, "the program and its arguments, behind --")
      ->required()
      ->type_name("PROGRAM [ARGUMENT...]");
  command->add_option("--target", arguments->target, "the GPUs: a target or a board, and xN for N of them")
      ->capture_default_str()
      ->type_name("TARGET[xN]");
  command->add_option("--front", arguments->front, "rocr: AMD's runtime; hip: this project's own HIP library")
      ->capture_default_str()
      ->check(CLI::IsMember({"rocr", "hip"}));
  command->add_option("--check", arguments->check, "what is checked while kernels run: all, or a list of checks");
  command->add_option("--arrival", arguments->arrival, "when results of memory arrive: early, late, random");
  command->add_option("--schedule", arguments->schedule, "in which order waves run: in_order, reverse, random");
  command->footer(
      "Example:\n"
      "  wavejit sim --target gfx950x2 -- ./my_hip_program --size 4096\n\n"
      "A board is a target with fewer dies or compute units: --target gfx942@6x38 is an MI300A.\n"
      "AMD's ROCm 7.2 must be installed for --front rocr; a GPU is not needed.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run_program(*arguments); }; });
}

}  // namespace wavejit::tools
