// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that were compiled with this library and installed beside it: one archive, a layer that nobody configures
// (docs/prebuild.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wavejit::runtime {

// <prefix>/share/wavejit/kernels.wavejit-archive, found from the folder of this library, so that a moved prefix keeps
// its kernels. Empty: it is not there.
std::string find_packaged_archive();

// A sentence if the archive has kernels of the key's family that another version of it made, and so none for this one.
// Reads entries until one tells. An archive that cannot be read says nothing here: lookups tell that.
std::optional<std::string> other_version_of(const std::string& archive, std::string_view key_text);

}  // namespace wavejit::runtime
