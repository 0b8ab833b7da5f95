// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ROCr's door for models, as `wavejit sim` uses it: the library and the folder that says which GPU there is.
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

}  // namespace wavejit::tools
