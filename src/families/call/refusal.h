// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sentences that refuse a field of a call: its name, its value, what would be accepted. Everything here is out of line
// and cold, so that checking a good call stays small and allocates nothing.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "families/call/failure.h"
#include "wavejit/wavejit.h"

namespace wavejit::families::refusal {

struct Named {
  const char* name;
  const wavejit_tensor* tensor;
};

// "<where> = <value>; accepted: <accepted>"
[[gnu::cold]] Failure bad(wavejit_status status, std::string where, const std::string& value,
                          const std::string& accepted);
[[gnu::cold]] Failure bad_pointer(const Named& named, std::uintptr_t alignment);
[[gnu::cold]] Failure bad_size(const Named& named, int dimension, const std::string& accepted,
                               wavejit_status status = WAVEJIT_INVALID_ARGUMENT);
[[gnu::cold]] Failure bad_stride(const Named& named, int dimension, const std::string& accepted);
// The size that another field asks for.
[[gnu::cold]] Failure mismatch(const Named& named, int dimension, std::int64_t wanted, const char* source);

[[gnu::cold]] std::string field(const Named& named, const char* member);
[[gnu::cold]] std::string pointer_text(const void* pointer);
[[gnu::cold]] std::string dtype_text(std::int32_t dtype);
[[gnu::cold]] std::string up_to(const char* from, std::int64_t most);

inline std::unexpected<Failure> refuse(Failure failure) { return std::unexpected(std::move(failure)); }
// What `bad` says, as the result of a check.
[[gnu::cold]] std::unexpected<Failure> refused(const std::string& where, const std::string& value,
                                               const std::string& accepted,
                                               wavejit_status status = WAVEJIT_INVALID_ARGUMENT);

}  // namespace wavejit::families::refusal
