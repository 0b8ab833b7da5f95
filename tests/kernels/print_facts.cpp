// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints a table of facts: `build/dev/bin/kernel_facts > tests/kernels/golden.txt`, `kernel_facts splits >
// tests/kernels/golden_splits.txt`, `kernel_facts softmax_lse > tests/kernels/golden_softmax_lse.txt`, the
// same with attention_backward, or of the specs that are named.
//
// `kernel_facts digests` prints one digest of the code object for every kernel of the four tables and every ladder.
// `kernel_facts digests attention_backward` prints those of one table. Compare the output before and after a change
// that must not touch the code.
//
// `kernel_facts times attention_latent` prints how long each kernel of a table, or that is named, is compiled: the
// least processor time of five, from the spec's text to the code object, in a compiler that has had work before.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "kernels/facts.h"
#include "templates/attention_forward/kernel/ladders.h"

namespace families = wavejit::families;
namespace attention_forward = wavejit::attention_forward;

namespace {

// 64-bit FNV-1a: it must tell changed code from unchanged, nothing more.
std::uint64_t digest_of(std::span<const std::byte> bytes) {
  std::uint64_t digest = 0xCBF29CE484222325;
  for (const std::byte byte : bytes) digest = (digest ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3;
  return digest;
}

std::vector<families::KernelSpec> every_spec() {
  std::vector<families::KernelSpec> specs;
  for (const attention_forward::ForwardKernel& spec : wavejit::tests::all_kernel_specs()) {
    specs.emplace_back(spec);
    if (!spec.lse || spec.dtype != attention_forward::DataType::bf16) continue;
    for (const attention_forward::Ladder& ladder : attention_forward::ladders(spec.pipeline)) {
      if (ladder.name == attention_forward::standard_ladder) continue;
      attention_forward::ForwardKernel other = spec;
      other.ladder = ladder.name;
      specs.emplace_back(other);
    }
  }
  std::ranges::copy(wavejit::tests::split_kernel_specs(), std::back_inserter(specs));
  std::ranges::copy(wavejit::tests::softmax_kernel_specs(), std::back_inserter(specs));
  std::ranges::copy(wavejit::tests::indexer_kernel_specs(), std::back_inserter(specs));
  std::ranges::copy(wavejit::tests::backward_kernel_specs(), std::back_inserter(specs));
  return specs;
}

int print_digests(const std::vector<families::KernelSpec>& specs) {
  int failed = 0;
  for (const families::KernelSpec& spec : specs) {
    const wavejit::tests::CompiledKernel kernel = wavejit::tests::compile_kernel(spec);
    if (kernel.error.empty()) {
      std::printf("%s: %016llx %zu bytes\n", spec.text().c_str(),
                  static_cast<unsigned long long>(digest_of(kernel.code_object)), kernel.code_object.size());
    } else {
      std::printf("%s: %s\n", spec.text().c_str(), kernel.error.c_str());
      failed = 1;
    }
  }
  return failed;
}

// Every compile computes: nothing between the spec and LLVM remembers.
int print_times(const std::vector<families::KernelSpec>& specs) {
  if (specs.empty()) return std::fprintf(stderr, "times of which kernels? A table or specs\n"), 2;
  wavejit::tests::compile_kernel(specs.front());  // opens the compiler
  int failed = 0;
  for (const families::KernelSpec& spec : specs) {
    double least = std::numeric_limits<double>::infinity();
    std::string error;
    for (int again = 0; again < 5 && error.empty(); ++again) {
      const std::clock_t begun = std::clock();
      error = wavejit::tests::compile_kernel(spec).error;
      least = std::min(least, static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC);
    }
    if (error.empty())
      std::printf("%5.0f ms %s\n", 1e3 * least, spec.text().c_str());
    else
      std::printf("%s: %s\n", spec.text().c_str(), error.c_str());
    failed |= error.empty() ? 0 : 1;
    std::fflush(stdout);
  }
  return failed;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<families::KernelSpec> specs;
  bool digests = false;
  bool times = false;
  for (const char* text : std::span(arguments, static_cast<std::size_t>(count)).subspan(1)) {
    if (std::string_view(text) == "digests") {
      digests = true;
      continue;
    }
    if (std::string_view(text) == "times") {
      times = true;
      continue;
    }
    if (std::string_view(text) == "splits") {
      specs = wavejit::tests::split_kernel_specs();
      continue;
    }
    if (std::string_view(text) == "softmax_lse") {
      specs = wavejit::tests::softmax_kernel_specs();
      continue;
    }
    if (std::string_view(text) == "cache_append") {
      specs = wavejit::tests::append_kernel_specs();
      continue;
    }
    if (std::string_view(text) == "attention_merge") {
      specs = wavejit::tests::merge_kernel_specs();
      continue;
    }
    if (std::string_view(text) == "sparse_indexer") {
      specs = wavejit::tests::indexer_kernel_specs();
      continue;
    }
    if (std::string_view(text) == "attention_latent") {
      specs = wavejit::tests::latent_kernel_specs();
      continue;
    }
    if (std::string_view(text) == "attention_backward") {
      specs = wavejit::tests::backward_kernel_specs();
      continue;
    }
    const auto spec = families::parse_spec(text);
    if (!spec) {
      std::fprintf(stderr, "%s: %s\n", text, spec.error().c_str());
      return 1;
    }
    specs.push_back(*spec);
  }
  if (digests) return print_digests(specs.empty() ? every_spec() : specs);
  if (times) return print_times(specs);
  if (specs.empty())
    for (const auto& spec : wavejit::tests::all_kernel_specs()) specs.emplace_back(spec);
  for (const auto& spec : specs) std::puts(wavejit::tests::facts_line(spec).c_str());
}
