// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is checked of every call before anything else: that it is there, whose it is, how large its structs are, and that
// fields of its parts which its family does not have are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "families/call/failure.h"
#include "wavejit/wavejit.h"

namespace wavejit::families {

// A field of a part, by its place in the struct of a call. Of a tensor: its data.
struct AbsentField {
  const char* name;
  std::size_t at;
  std::size_t bytes;  // 4 or 8
};

// `head`: null, or that of a struct of `known` bytes. `name`: the family's. `absent`: fields that its calls do not have.
Result<void> check_head(const wavejit_call_head* head, std::size_t known, std::int32_t family, const char* name,
                        std::span<const AbsentField> absent);

template <typename Arguments>
Result<void> check_head(const Arguments* call, std::int32_t family, const char* name,
                        std::span<const AbsentField> absent = {}) {
  return check_head(call != nullptr ? &call->head : nullptr, sizeof *call, family, name, absent);
}

}  // namespace wavejit::families
