// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Work on all cores of the host.
#pragma once

#include <cstddef>
#include <functional>

namespace wavejit::tools {

// Calls task(0) … task(count − 1), each once, in any order.
void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& task);

}  // namespace wavejit::tools
