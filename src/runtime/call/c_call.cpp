// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/c_call.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "runtime/libraries/hip_library.h"

namespace wavejit::runtime {
namespace {

// Per thread and without an allocation: also "out of memory" must be sayable.
constexpr std::size_t detail_bytes = 2048;
thread_local std::array<char, detail_bytes> kept_detail{};

}  // namespace

[[gnu::cold, gnu::noinline]] wavejit_status keep_detail(wavejit_status status, std::string_view detail) noexcept {
  const std::size_t length = std::min(detail.size(), detail_bytes - 1);
  // One line, whatever a caller's string held.
  std::transform(detail.begin(), detail.begin() + static_cast<std::ptrdiff_t>(length), kept_detail.begin(),
                 [](char c) { return static_cast<unsigned char>(c) < 0x20 ? '?' : c; });
  kept_detail[length] = '\0';
  return status;
}

Result<void> require_engine(const wavejit_engine* engine) {
  if (auto given = require(engine, "engine", "an engine of wavejit_engine_create"); !given) return given;
  if (!engine->is_of_parent()) return {};
  return fail(WAVEJIT_DEVICE_ERROR,
              std::string("engine: this process was forked after the engine was made, which belongs to its parent, as "
                          "the device does; accepted: ") +
                  forks_accepted);
}

const char* last_detail() noexcept { return kept_detail.data(); }

}  // namespace wavejit::runtime
