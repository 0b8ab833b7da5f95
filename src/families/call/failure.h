// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a call of the C ABI answers when it does not do what was asked: a status and one line for people that names the
// field, the value and what would be accepted.
#pragma once

#include <expected>
#include <string>

#include "wavejit/wavejit.h"

namespace wavejit::families {

struct Failure {
  wavejit_status status = WAVEJIT_INTERNAL;
  std::string detail;
};

template <typename T>
using Result = std::expected<T, Failure>;

inline std::unexpected<Failure> fail(wavejit_status status, std::string detail) {
  return std::unexpected(Failure{status, std::move(detail)});
}

}  // namespace wavejit::families
