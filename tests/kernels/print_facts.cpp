// Prints a table of facts: `build/dev/bin/kernel_facts > tests/kernels/golden.txt`, `kernel_facts splits >
// tests/kernels/golden_splits.txt`, or of the specs that are named.
#include <cstdio>
#include <span>
#include <string_view>

#include "kernels/facts.h"

namespace families = wavejit::families;

int main(int count, char** arguments) {
  std::vector<families::KernelSpec> specs;
  for (const char* text : std::span(arguments, static_cast<std::size_t>(count)).subspan(1)) {
    if (std::string_view(text) == "splits") {
      specs = wavejit::tests::split_kernel_specs();
      continue;
    }
    const auto spec = families::parse_spec(text);
    if (!spec) {
      std::fprintf(stderr, "%s: %s\n", text, spec.error().c_str());
      return 1;
    }
    specs.push_back(*spec);
  }
  if (specs.empty())
    for (const auto& spec : wavejit::tests::all_kernel_specs()) specs.emplace_back(spec);
  for (const auto& spec : specs) std::puts(wavejit::tests::facts_line(spec).c_str());
}
