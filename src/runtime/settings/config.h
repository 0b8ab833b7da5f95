// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the environment and the caller's options say, read once and turned into values. The only file of this library
// that reads the environment.
//
// An option that is set wins over the variable, the variable over the default; each value remembers where it came from,
// for `explain`. An option that cannot be understood is an error of the call. A variable that cannot be understood is
// one warning and the default stands, except WAVEJIT_DEVICE: work never runs on another device than the one asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.h"
#include "cache/remote_address.h"
#include "cache/settings.h"
#include "families/kernel/toggles.h"
#include "runtime/settings/device_choice.h"
#include "runtime/settings/failure.h"
#include "runtime/settings/logging.h"
#include "runtime/settings/pipeline_words.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {

enum class Provenance : std::uint8_t { standard, environment, option };

template <typename T>
struct Setting {
  T value{};
  Provenance from = Provenance::standard;
};

enum class CompileMode : std::uint8_t { in_process, isolated };
std::string_view to_text(CompileMode mode);

// What the caller's program does for an engine; null: nothing.
struct Hooks {
  wavejit_compile_callback on_compile = nullptr;
  void* on_compile_context = nullptr;
  wavejit_allocate_callback allocate = nullptr;
  wavejit_release_callback release = nullptr;
  void* allocator_context = nullptr;
  wavejit_log_callback on_log = nullptr;
  void* on_log_context = nullptr;
};

struct Config {
  Setting<DeviceChoice> device;
  Setting<std::string> cache_directory;  // resolved; empty when nothing resolves
  Setting<cache::Mode> cache_mode{.value = cache::Mode::read_write};
  Setting<std::vector<std::string>> cache_layers;  // read-only folders and archives, asked first
  Setting<bool> cache_packaged{.value = true};     // whether what is installed beside this library is asked behind them
  std::string packaged_archive;                    // where that lies; empty: it is not there
  Setting<std::uint64_t> cache_limit;              // bytes of the user's folder; 0: none
  Setting<std::int64_t> cache_lock_wait{.value = cache::standard_lock_wait_nanoseconds};
  Setting<std::optional<cache::RemoteAddress>> cache_remote;  // nothing: no remote layer
  Setting<std::string> cache_remote_key_file;                 // empty: none, and so no remote layer
  Setting<std::string> cache_remote_authorities;              // of rediss://; empty: the system's
  Setting<std::int64_t> cache_remote_connect_timeout{.value = cache::standard_remote_connect_nanoseconds};
  Setting<std::int64_t> cache_remote_timeout{.value = cache::standard_remote_answer_nanoseconds};
  cache::MemoryLayer* cache_memory = nullptr;  // what engines of a process share when there is no disk
  Setting<families::Lowering> lowering{.value = families::Lowering::llvm};
  Setting<CompileMode> compile{.value = CompileMode::in_process};
  Setting<PipelineWords> pipeline;
  Setting<std::optional<std::int32_t>> kv_splits;  // nothing: auto
  Setting<LogLevel> log_level{.value = LogLevel::warning};
  Setting<std::string> miss_log;  // empty: none
  Hooks hooks;
  std::vector<std::string> warnings;  // one line for each variable that was not understood or is none
};

// The variables' texts; null when unset. Empty counts as unset. One for each option, by its name.
struct Environment {
#define WAVEJIT_OPTION(field, variable, flag, scope, shape, values, standard, help) const char* field = nullptr;
#include "wavejit/options.def"
#undef WAVEJIT_OPTION
  const char* xdg_cache_home = nullptr;  // XDG_CACHE_HOME
  const char* home = nullptr;            // HOME
  std::vector<std::string> strangers;    // names that begin with WAVEJIT_ and are no variable
  std::string packaged_archive;  // kernels that were installed with this library (packaged_kernels.h); empty: none
};

// The process's environment as it was at the first call; later changes are not seen.
const Environment& process_environment();

// `options` may be null. Checks the struct's size before it reads anything else.
Result<Config> make_config(const wavejit_engine_options* options, const Environment& environment);

// Where log lines go: the caller's on_log; empty: standard error.
Logger::Sink log_sink(const Config& config);

// The part of it that families are asked with.
families::Toggles toggles_of(const Config& config);

// "device=sim:gfx950 (WAVEJIT_DEVICE)", one for each setting.
std::vector<std::string> describe(const Config& config);

}  // namespace wavejit::runtime
