// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "clock.h"

#include <dlfcn.h>

#include <sstream>
#include <stdexcept>

namespace serving {

namespace {

constexpr std::uint32_t sampled_workgroups = 16;  // of each launch; the others are worked out from them

}  // namespace

std::string field_of(std::string_view object, std::string_view name) {
  const std::string wanted = "\"" + std::string(name) + "\":";
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < object.size(); ++i) {
    if (quoted) {
      if (object[i] == '\\')
        ++i;
      else if (object[i] == '"')
        quoted = false;
      continue;
    }
    if (object[i] == '{' || object[i] == '[') ++depth;
    if (object[i] == '}' || object[i] == ']') --depth;
    if (object[i] != '"') continue;
    quoted = true;
    if (depth != 1 || object.substr(i, wanted.size()) != wanted) continue;
    const std::string_view value = object.substr(i + wanted.size());
    if (value.starts_with('"')) return std::string(value.substr(1, value.find('"', 1) - 1));
    return std::string(value.substr(0, value.find_first_of(",}")));
  }
  throw std::runtime_error("the simulated GPU's clock says nothing of " + std::string(name));
}

SimulatedClock::SimulatedClock() {
  void* library = ::dlopen("libwavejit_simgpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) throw std::runtime_error("no simulated GPU is loaded: nobody predicts cycles");
  set_clock_ = reinterpret_cast<decltype(set_clock_)>(::dlsym(library, "wavejit_simgpu_set_clock"));
  take_cycles_ = reinterpret_cast<decltype(take_cycles_)>(::dlsym(library, "wavejit_simgpu_take_cycles"));
  ::dlclose(library);  // the engine keeps it
  if (set_clock_ == nullptr || take_cycles_ == nullptr)
    throw std::runtime_error("this libwavejit_simgpu.so has no clock");
  set_clock_(sampled_workgroups);
}

SimulatedClock::~SimulatedClock() { set_clock_(0); }

std::vector<TimedLaunch> SimulatedClock::take() const {
  std::string text(take_cycles_(nullptr, 0) + 1, '\0');
  text.resize(take_cycles_(text.data(), text.size()));
  std::vector<TimedLaunch> launches;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    TimedLaunch launch;
    launch.kernel = field_of(line, "kernel");
    launch.cycles = std::stoull(field_of(line, "cycles"));
    launch.wait = launches.empty() ? 0 : std::stoull(field_of(line, "dependent_launch_cycles"));
    launches.push_back(launch);
  }
  return launches;
}

}  // namespace serving
