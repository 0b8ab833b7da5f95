// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run attention_latent`: .npy files and options → device, call and reference.
#pragma once

#include <memory>

#include "tools/family.h"

namespace wavejit::attention_latent::program {

std::unique_ptr<tools::ArrayCall> make_array_call();

}  // namespace wavejit::attention_latent::program
