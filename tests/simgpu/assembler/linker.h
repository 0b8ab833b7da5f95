// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The linker of ld.lld-22 as a library: to start the program took three times as long as a link does.
#pragma once

#include <string>

namespace wavejit::simgpu::test {

// Links the object file `input` into `output`, its dynamic form, as loaders take it. What went wrong, or nothing. One
// link at a time: LLD's state is in globals.
__attribute__((visibility("default"))) std::string link_shared(const std::string& input, const std::string& output);

}  // namespace wavejit::simgpu::test
