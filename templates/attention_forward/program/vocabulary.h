// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words of the tools and of templates/attention/program, used in this folder without their namespaces.
#pragma once

namespace wavejit::tools {}
namespace wavejit::attention::program {}

namespace wavejit::attention_forward::program {

using namespace tools;
using namespace attention;
using namespace attention::program;

}  // namespace wavejit::attention_forward::program
