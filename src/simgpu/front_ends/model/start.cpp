// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lib/rocr/libwavejit_model_start.so, which `wavejit sim --front rocr-model` has preloaded. libhsa-runtime64 1.18 does not
// ask how many nodes a modelled machine has before it makes an entry for each: it reads a variable that it never set,
// which holds some address's lower half. So a process begins with up to 4 GB of entries, written one by one.
// What it reads is what earlier calls left on the stack, and the last call before is to `new`. Here `new` leaves a
// small number everywhere below, until the model library says that ROCr has opened it.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

extern "C" {
// Set by the model library.
extern std::atomic<bool> wavejit_model_has_started;
[[gnu::visibility("default")]] std::atomic<bool> wavejit_model_has_started{false};
}

namespace {

[[gnu::noinline]] void fill_stack() {
  constexpr std::uint32_t nodes = 64;
  std::array<std::uint32_t, 2048> below;
  below.fill(nodes);
  // Nobody reads it: the compiler must not know.
  asm volatile("" : : "r"(below.data()) : "memory");
}

}  // namespace

[[gnu::visibility("default")]] void* operator new(std::size_t bytes) {
  if (!wavejit_model_has_started.load(std::memory_order_relaxed)) fill_stack();
  while (true) {
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

[[gnu::visibility("default")]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::visibility("default")]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
