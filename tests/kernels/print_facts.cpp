// Prints the table of facts: `build/dev/bin/kernel_facts > tests/kernels/golden.txt`.
#include <cstdio>

#include "kernels/facts.h"

int main() {
  for (const auto& spec : wavejit::tests::all_kernel_specs()) std::puts(wavejit::tests::facts_line(spec).c_str());
}
