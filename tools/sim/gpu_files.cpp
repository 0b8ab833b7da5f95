// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/sim/gpu_files.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include "wavejit/simgpu_devices.h"

namespace wavejit::tools {
namespace {

// FNV-1a of all files' names and texts.
std::uint64_t hash_of(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.insert(entry.path());
  }
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](const std::string& text) {
    for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  };
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    add(file.lexically_relative(folder).string());
    add({std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()});
  }
  return hash;
}

// Calls the library's function that writes the files of `target` below `folder`, or only looks at the target.
Result<void> write_by(const std::filesystem::path& library, const char* function, const std::string& target,
                      const std::optional<std::filesystem::path>& folder) {
  void* const opened = ::dlopen(library.c_str(), RTLD_LAZY);
  if (opened == nullptr) return failed(ExitCode::file, fmt::format("{}: {}", library.string(), ::dlerror()));
  // All of them are alike.
  const auto write = reinterpret_cast<decltype(&wavejit_simgpu_write_topology)>(::dlsym(opened, function));
  if (write == nullptr)
    return failed(ExitCode::file, fmt::format("{} belongs to another version of this program", library.string()));
  constexpr std::size_t longest = 1024;
  std::string problem(longest, '\0');
  const char* const path = folder ? folder->c_str() : nullptr;
  problem.resize(std::min(write(target.c_str(), path, problem.data(), problem.size()), longest - 1));
  if (problem.empty()) return {};
  return failed(ExitCode::usage, (folder ? "" : "--target: ") + problem);
}

// Written aside and renamed when it is whole: other processes may want the same one at this moment.
Result<std::filesystem::path> kept_folder(const std::filesystem::path& library, const char* function,
                                          const std::string& name, const std::string& target,
                                          const std::filesystem::path& cache) {
  const std::filesystem::path parent = cache / "wavejit-sim";
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  std::string aside = (parent / (name + "-XXXXXX")).string();
  if (::mkdtemp(aside.data()) == nullptr)
    return failed(ExitCode::file,
                  fmt::format("{}: no folder can be made there: {}", parent.string(), std::strerror(errno)));
  if (auto written = write_by(library, function, target, aside); !written) {
    std::filesystem::remove_all(aside, error);
    return std::unexpected(written.error());
  }
  std::filesystem::path kept = parent / fmt::format("{}-{}-{:016x}", name, target, hash_of(aside));
  std::filesystem::rename(aside, kept, error);
  if (error) std::filesystem::remove_all(aside, error);  // it is there already
  if (std::filesystem::is_directory(kept, error)) return kept;
  return failed(ExitCode::file, fmt::format("{} cannot be made", kept.string()));
}

}  // namespace

Result<void> write_topology(const std::filesystem::path& library, const std::string& target,
                            const std::optional<std::filesystem::path>& folder) {
  return write_by(library, "wavejit_simgpu_write_topology", target, folder);
}

Result<std::filesystem::path> kept_topology(const std::filesystem::path& library, const std::string& target,
                                            const std::filesystem::path& cache) {
  return kept_folder(library, "wavejit_simgpu_write_topology", "topology", target, cache);
}

Result<std::filesystem::path> kept_driver_files(const std::filesystem::path& library, const std::string& target,
                                                const std::filesystem::path& cache) {
  return kept_folder(library, "wavejit_simgpu_write_driver_files", "driver-files", target, cache);
}

}  // namespace wavejit::tools
