// Prints the table of facts: `build/dev/bin/kernel_facts > tests/kernels/golden.txt`, or of the specs that are named.
#include <cstdio>
#include <span>

#include "kernels/facts.h"

int main(int count, char** arguments) {
  std::vector<wavejit::attention_forward::KernelSpec> specs;
  for (const char* text : std::span(arguments, static_cast<std::size_t>(count)).subspan(1)) {
    const auto spec = wavejit::attention_forward::parse_spec(text);
    if (!spec) {
      std::fprintf(stderr, "%s: %s\n", text, spec.error().c_str());
      return 1;
    }
    specs.push_back(*spec);
  }
  if (specs.empty()) specs = wavejit::tests::all_kernel_specs();
  for (const auto& spec : specs) std::puts(wavejit::tests::facts_line(spec).c_str());
}
