// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The README's example as a program, on the installed package: with equal keys the answer is the mean of V, here 1.
#include <cstdio>
#include <vector>
#include <wavejit/wavejit.hpp>

int main() {
  // README example begins
  wavejit::Engine engine("sim:gfx950");                          // or "hip": the GPU of this machine
  const std::vector<std::uint16_t> ones(256 * 8 * 128, 0x3C00);  // [1, 256, 8, 128] in fp16
  wavejit::DeviceBuffer q(engine, ones), k(engine, ones), v(engine, ones), o(engine, ones.size() * 2);
  auto tensor = [](const wavejit::DeviceBuffer& b) { return wavejit::dense(b, WAVEJIT_FP16, 1, 256, 8, 128); };
  wavejit::AttentionForward call;
  call.q = tensor(q), call.k = tensor(k), call.v = tensor(v), call.o = tensor(o);
  call.modifiers.scale = 0.0883883F;  // 1 / sqrt(128)
  engine.attention_forward(call);     // compiles at the first call of a kind, launches ever after
  engine.synchronize();
  const auto result = o.read<std::uint16_t>();
  // README example ends
  for (const std::uint16_t x : result) {
    if (x != 0x3C00) return std::printf("consumer: wrong answer %04x\n", x), 1;
  }
  std::puts("consumer: right answer");
  return 0;
}
