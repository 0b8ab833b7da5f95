// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tools' own words, used in this folder without their namespace.
#pragma once

namespace wavejit::tools {}

namespace wavejit::attention::program {

using namespace tools;

}  // namespace wavejit::attention::program
