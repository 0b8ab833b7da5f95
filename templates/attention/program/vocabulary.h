// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tools' own words, said in this room without their namespace.
#pragma once

namespace wavejit::tools {}

namespace wavejit::attention::program {

using namespace tools;

}  // namespace wavejit::attention::program
