// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The files that say which GPUs there are: those that ROCr reads at its interface for models, and those that programs look
// for in place of the kernel driver's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tools/exit_code.h"

namespace wavejit::tools {

inline constexpr const char* model_library = "libwavejit_model.so";
inline constexpr const char* start_library = "libwavejit_model_start.so";  // preloaded

// What ROCr reads instead of the kernel driver's files, for one GPU. `library` knows its values. Without a folder the
// target's name is checked alone.
Result<void> write_topology(const std::filesystem::path& library, const std::string& target,
                            const std::optional<std::filesystem::path>& folder);

// Likewise in a folder below `cache`, made once for the same values; its path.
Result<std::filesystem::path> kept_topology(const std::filesystem::path& library, const std::string& target,
                                            const std::filesystem::path& cache);

// The folder of what programs find at /sys/class/kfd, likewise; `library` is libdtif.so.
Result<std::filesystem::path> kept_driver_files(const std::filesystem::path& library, const std::string& target,
                                                const std::filesystem::path& cache);

}  // namespace wavejit::tools
