// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/settings/packaged_kernels.h"

#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "cache/cache.h"
#include "runtime/settings/shared_object.h"

namespace wavejit::runtime {
namespace {

// "generator=… llvm=…": all of a key text that is not the kernel's spec (KernelSource::key_of).
std::string_view maker_of(std::string_view key_text) {
  const std::size_t at = key_text.find("generator=");
  return at == std::string_view::npos ? std::string_view() : key_text.substr(at);
}

std::string_view family_of(std::string_view key_text) { return key_text.substr(0, key_text.find(' ')); }

// Without symbolic links and relative parts: the process may change its folder before the archive is opened.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : std::string();
}

}  // namespace

std::string find_packaged_archive() {
  const std::string library = resolved(own_directory());
  if (library.empty()) return {};
  return resolved(library + "/" WAVEJIT_PACKAGED_KERNELS_FROM_LIBRARY);
}

std::optional<std::string> other_version_of(const std::string& archive, std::string_view key_text) {
  const std::string_view ours = maker_of(key_text);
  // Only kernels of the LLVM inside are packaged; who asks for another lowering is not served, whatever the version.
  if (ours.find(" llvm=") == std::string_view::npos) return std::nullopt;
  cache::CacheOptions options;
  options.layers = {{.name = archive, .root = archive, .writable = false}};
  options.mode = cache::Mode::read_only;
  cache::Cache packaged(std::move(options));
  std::string theirs;
  packaged.visit_while([&](const cache::Visited& visited) {
    if (visited.entry == nullptr || family_of(visited.entry->key_text) != family_of(key_text)) return true;
    theirs = maker_of(visited.entry->key_text);
    return false;
  });
  if (theirs.empty() || theirs == ours) return std::nullopt;
  return "the packaged kernels " + archive + " are of " + theirs + "; this library is " + std::string(ours) +
         " and has no use for them; accepted: the package wavejit-kernels of this version, or WAVEJIT_CACHE_PACKAGED=off";
}

}  // namespace wavejit::runtime
