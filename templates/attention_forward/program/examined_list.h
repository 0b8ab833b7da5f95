// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit doctor` runs of this family on a device that nobody knows yet.
#pragma once

#include <string>
#include <vector>

namespace wavejit::attention_forward::program {

// Small problems: every mask, modifier, way of lengths and split, decode and prefill. The smallest first.
std::vector<std::string> examined_list();
// Ten launches of about a millisecond on the largest devices.
std::vector<std::string> timed_list();

}  // namespace wavejit::attention_forward::program
