// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// wavejit.hpp as a C++17 program meets it, without a device: errors carry status and detail, nothing leaks.
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <wavejit/wavejit.hpp>

static_assert(std::is_nothrow_move_constructible_v<wavejit::Engine>);
static_assert(!std::is_copy_constructible_v<wavejit::Engine>);
static_assert(std::is_nothrow_move_constructible_v<wavejit::DeviceBuffer>);
static_assert(!std::is_copy_constructible_v<wavejit::DeviceBuffer>);

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "FAIL: %s\n", what);
}

}  // namespace

int main() {
  try {
    const wavejit::Engine engine("sim:gfx1");
    expect(false, "an unknown device throws");
  } catch (const wavejit::Error& error) {
    expect(error.status() == WAVEJIT_NO_DEVICE, "status of an unknown device");
    expect(std::strstr(error.what(), "sim:gfx1") != nullptr, "detail of an unknown device");
  }
  expect(wavejit::supported().size() >= 2, "supported");
  wavejit::EngineOptions options;
  options.cache_mode = "off";
  bool key = false;
  for (const std::string& line : wavejit::explain("attention_forward fp16 b1 q1 k1 h1 d64", "gfx950", options))
    key = key || line.rfind("key", 0) == 0;
  expect(key, "explain");
  try {
    wavejit::explain("attention_forward fp16 b1 q1 k1 h1 d64 casual", "gfx950", options);
    expect(false, "an unknown word throws");
  } catch (const wavejit::Error& error) {
    expect(error.status() == WAVEJIT_INVALID_ARGUMENT, "status of an unknown word");
  }
  return failures != 0;
}
