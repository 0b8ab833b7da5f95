// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One attention call in a process of its own, configured by its environment alone: what a user's program does. Prints
// one line; exits with the status if a call failed.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>
#include <wavejit/wavejit.hpp>

namespace {

bool compiler_is_mapped() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("libwavejit_codegen") != std::string::npos) return true;
  return false;
}

}  // namespace

int main() {
  constexpr std::uint16_t one = 0x3C00;
  constexpr std::int64_t length = 33;
  constexpr std::int64_t heads = 2;
  constexpr std::int64_t head_dim = 64;
  try {
    wavejit::Engine engine;
    const std::vector<std::uint16_t> ones(length * heads * head_dim, one);
    const wavejit::DeviceBuffer q(engine, ones);
    const wavejit::DeviceBuffer k(engine, ones);
    const wavejit::DeviceBuffer v(engine, ones);
    const wavejit::DeviceBuffer o = engine.allocate(ones.size() * sizeof(one));
    const auto tensor = [](const wavejit::DeviceBuffer& buffer) {
      return wavejit::dense(buffer, WAVEJIT_FP16, 1, length, heads, head_dim);
    };
    wavejit_call_report report = wavejit::make_report();
    wavejit::AttentionForward call{tensor(q), tensor(k), tensor(v), tensor(o), 0.125F};
    call.head.report = &report;
    engine.attention_forward(call);
    engine.synchronize();
    // Every V row is ones, so every output is: weights add up to 1.
    std::printf("target=%s origin=%d compiler_mapped=%d correct=%d spec=%s\n", engine.target().c_str(), report.origin,
                compiler_is_mapped() ? 1 : 0, o.read<std::uint16_t>() == ones ? 1 : 0, report.kernel_spec);
    return 0;
  } catch (const wavejit::Error& error) {
    std::printf("status=%d detail=%s\n", error.status(), error.what());
    return error.status();
  }
}
