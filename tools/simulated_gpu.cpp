// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/simulated_gpu.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "tools/exit_code.h"

namespace wavejit::tools {

std::optional<SimulatedGpu> SimulatedGpu::resident() {
  void* library = ::dlopen("libwavejit_simgpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  SimulatedGpu gpu;
  gpu.library_ = library;
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    return function != nullptr;
  };
  const bool whole =
      find(gpu.get_settings_, "wavejit_simgpu_get_settings") &&
      find(gpu.set_settings_, "wavejit_simgpu_set_settings") &&
      find(gpu.get_counters_, "wavejit_simgpu_get_counters") &&
      find(gpu.take_reports_, "wavejit_simgpu_take_reports") && find(gpu.set_clock_, "wavejit_simgpu_set_clock") &&
      find(gpu.set_warm_, "wavejit_simgpu_set_warm") && find(gpu.take_cycles_, "wavejit_simgpu_take_cycles") &&
      find(gpu.set_timeline_, "wavejit_simgpu_set_timeline") &&
      find(gpu.take_timeline_, "wavejit_simgpu_take_timeline");
  ::dlclose(library);  // the library's own handle keeps it
  if (!whole) return std::nullopt;
  return gpu;
}

void* SimulatedGpu::symbol(const char* name) const { return ::dlsym(library_, name); }

wavejit_simgpu_settings SimulatedGpu::settings() const {
  wavejit_simgpu_settings settings{};
  settings.size = sizeof settings;
  get_settings_(&settings);
  return settings;
}

void SimulatedGpu::set(const wavejit_simgpu_settings& settings) const {
  if (set_settings_(&settings) == 0) return;
  // Going on would check or time something else than was asked for.
  static_cast<void>(
      std::fputs("wavejit: the simulated GPU knows no settings like this program's: libwavejit_simgpu.so and the "
                 "program must be of one version\n",
                 stderr));
  std::exit(static_cast<int>(ExitCode::internal));
}

wavejit_simgpu_counters SimulatedGpu::counters() const {
  wavejit_simgpu_counters counters{};
  counters.size = sizeof counters;
  get_counters_(&counters);
  return counters;
}

std::string SimulatedGpu::take_reports() const {
  std::string text(take_reports_(nullptr, 0) + 1, '\0');
  text.resize(take_reports_(text.data(), text.size()));
  return text;
}

void SimulatedGpu::set_clock(std::uint32_t workgroups) const { set_clock_(workgroups); }

void SimulatedGpu::set_warm(bool warm) const { set_warm_(warm ? 1 : 0); }

std::string SimulatedGpu::take_cycles() const {
  std::string text(take_cycles_(nullptr, 0) + 1, '\0');
  text.resize(take_cycles_(text.data(), text.size()));
  return text;
}

void SimulatedGpu::set_timeline(std::uint64_t cycles) const { set_timeline_(cycles); }

std::string SimulatedGpu::take_timeline() const {
  std::string text(take_timeline_(nullptr, 0) + 1, '\0');
  text.resize(take_timeline_(text.data(), text.size()));
  return text;
}

}  // namespace wavejit::tools
