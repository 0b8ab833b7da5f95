// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What several tests make alike is made once: kernels of the compiler, assembled code. The build keeps it, in the
// folder that WAVEJIT_TEST_KEPT names (tests/CMakeLists.txt). A test that is started by hand, without it, makes
// everything itself.
//
//   const std::vector<std::byte> image = kept("assembled\n" + text, [&] { return assemble_and_link(text); });
//
// The key is all that the bytes depend on: text, target, who made it. It stands in the file and is compared.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace wavejit::tests {

// Keeps bytes under a key. Nothing (a failure) is not kept, and what cannot be written is not missed. Any thread, any
// number of processes.
void keep(const std::string& key, const std::vector<std::byte>& made);

// The bytes kept under `key`, or else those of `make`, which are kept.
std::vector<std::byte> kept(const std::string& key, const std::function<std::vector<std::byte>()>& make);

// The folder for the disk cache of engines whose test is not about compiling; nullptr: none. The cache's own keys tell
// kernels of other generators apart.
const char* kept_kernels();

}  // namespace wavejit::tests
