// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What rocminfo prints of simulated GPUs, held to the target table. Run by `wavejit sim`:
//
//   rocminfo_agents <target> <number of GPUs> <rocminfo>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "boards/board.h"

namespace {

using Agent = std::multimap<std::string, std::string>;  // what stands in front of the first colon, and behind it

[[noreturn]] void fail(const std::string& text) {
  static_cast<void>(std::fprintf(stderr, "%s\n", text.c_str()));
  std::exit(1);
}

std::string stripped(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \n") - first + 1));
}

std::vector<Agent> read_agents(const char* program) {
  std::FILE* const output = ::popen(program, "r");
  if (output == nullptr) fail(std::string(program) + " cannot be started");
  std::vector<Agent> agents;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), output) != nullptr) {
    const std::string_view text(line.data());
    if (text.starts_with("Agent ")) agents.emplace_back();
    const std::size_t colon = text.find(':');
    if (agents.empty() || colon == std::string_view::npos) continue;
    agents.back().emplace(stripped(text.substr(0, colon)), stripped(text.substr(colon + 1)));
  }
  const int status = ::pclose(output);
  if (status != 0) fail(std::string(program) + " ended with " + std::to_string(status));
  return agents;
}

void expect(const Agent& agent, const std::string& name, const std::string& wanted) {
  const auto [first, last] = agent.equal_range(name);
  std::string found;
  for (auto at = first; at != last; ++at) {
    if (at->second.starts_with(wanted)) return;
    found += " '" + at->second + "'";
  }
  fail("rocminfo: '" + name + "' is" + (found.empty() ? " absent" : found) + "; the target table says " + wanted);
}

// "304" as rocminfo writes sizes: "304(0x130)".
std::string with_hex(std::uint64_t value) {
  std::array<char, 64> text{};
  static_cast<void>(std::snprintf(text.data(), text.size(), "%llu(0x%llx)", static_cast<unsigned long long>(value),
                                  static_cast<unsigned long long>(value)));
  return text.data();
}

void check(const Agent& agent, const wavejit::boards::Board& target) {
  const auto unsigned_of = [](int value) { return static_cast<std::uint64_t>(value); };
  constexpr std::uint64_t kib = 1024;
  expect(agent, "Name", std::string(target.id));
  expect(agent, "Name", "amdgcn-amd-amdhsa--" + std::string(target.id) + ":sramecc+:xnack-");
  expect(agent, "Marketing Name", std::string(target.product) + " (simulated");
  expect(agent, "Compute Unit", std::to_string(target.compute_units));
  expect(agent, "SIMDs per CU", std::to_string(target.simds_per_compute_unit));
  expect(agent, "Wavefront Size", with_hex(unsigned_of(target.wave_size)));
  expect(agent, "Max Waves Per CU", with_hex(unsigned_of(target.waves_per_simd * target.simds_per_compute_unit)));
  expect(agent, "Workgroup Max Size", with_hex(unsigned_of(target.max_threads_per_workgroup)));
  expect(agent, "Max Clock Freq. (MHz)", std::to_string(target.clock_khz / 1000));
  expect(agent, "L2", with_hex(unsigned_of(target.l2_bytes) / kib) + " KB");
  expect(agent, "Size", with_hex(target.memory_bytes / kib) + " KB");
  expect(agent, "Size", with_hex(unsigned_of(target.lds_bytes) / kib) + " KB");
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) fail("rocminfo_agents <target> <number of GPUs> <rocminfo>");
  const wavejit::boards::Board* const target = wavejit::boards::find_product(words[1]);
  if (target == nullptr) fail(std::string(words[1]) + " is no target");
  int gpus = 0;
  for (const Agent& agent : read_agents(words[3])) {
    if (agent.find("Device Type")->second != "GPU") continue;
    check(agent, *target);
    ++gpus;
  }
  if (gpus != std::atoi(words[2])) fail("rocminfo names " + std::to_string(gpus) + " GPUs");
  std::printf("%d GPUs as the target table has them\n", gpus);
  return 0;
}
