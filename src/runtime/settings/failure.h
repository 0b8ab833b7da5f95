// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Failures of the runtime are those of the families: a status and one line for people.
#pragma once

#include "families/call/failure.h"

namespace wavejit::runtime {

using families::fail;
using families::Failure;
using families::Result;

}  // namespace wavejit::runtime
