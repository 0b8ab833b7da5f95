// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints what the compiler makes of kernels: of the tables of golden facts (golden_tables.h) by their names, or of specs.
//
//   kernel_facts splits > tests/kernels/golden/splits.txt     a table
//   kernel_facts "attention_forward bf16 d128 causal …"       a line for each spec
//   kernel_facts digests [<table or spec>…]   a digest of .text and descriptor of each kernel; without names those of all
//                                             tables and of every ladder. Equal before and after a change: the change
//                                             touches no code
//   kernel_facts times <table or spec>…       how long each is compiled: the least processor time of five, from the
//                                             spec's text to the code object, in a compiler that has had work before
#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/facts.h"
#include "kernels/golden_tables.h"
#include "templates/attention_forward/kernel/ladders.h"

namespace families = wavejit::families;
namespace attention_forward = wavejit::attention_forward;

namespace {

// The sections .text and .rodata of a code object: machine code and kernel descriptor, without names and notes.
std::vector<std::byte> code_and_descriptor(std::span<const std::byte> image) {
  const auto read = [&]<typename T>(T& into, std::uint64_t at) {
    if (at + sizeof into <= image.size()) std::memcpy(&into, image.data() + at, sizeof into);
  };
  Elf64_Ehdr header{};
  read(header, 0);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i) read(sections[i], header.e_shoff + (i * sizeof(Elf64_Shdr)));
  std::vector<std::byte> found;
  for (const Elf64_Shdr& section : sections) {
    const std::uint64_t name_at = sections[header.e_shstrndx].sh_offset + section.sh_name;
    const std::string_view name(reinterpret_cast<const char*>(image.data() + name_at));
    if (name != ".text" && name != ".rodata") continue;
    const auto bytes = image.subspan(section.sh_offset, section.sh_size);
    found.insert(found.end(), bytes.begin(), bytes.end());
  }
  return found;
}

// 64-bit FNV-1a: it must tell changed code from unchanged, nothing more.
std::uint64_t digest_of(std::span<const std::byte> bytes) {
  std::uint64_t digest = 0xCBF29CE484222325;
  for (const std::byte byte : bytes) digest = (digest ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3;
  return digest;
}

std::vector<families::KernelSpec> every_ladder() {
  std::vector<families::KernelSpec> specs;
  for (const attention_forward::ForwardKernel& spec : wavejit::tests::all_kernel_specs()) {
    if (!spec.lse || spec.dtype != attention_forward::DataType::bf16) continue;
    for (const attention_forward::Ladder& ladder : attention_forward::ladders(spec.pipeline)) {
      if (ladder.name == attention_forward::standard_ladder) continue;
      attention_forward::ForwardKernel other = spec;
      other.ladder = ladder.name;
      specs.emplace_back(other);
    }
  }
  return specs;
}

std::vector<families::KernelSpec> every_spec() {
  std::vector<families::KernelSpec> specs = every_ladder();
  for (const wavejit::tests::GoldenTable& table : wavejit::tests::golden_tables())
    std::ranges::copy(table.specs(), std::back_inserter(specs));
  return specs;
}

// The specs of a table, or the one that the text is; none: neither.
std::vector<families::KernelSpec> specs_of(std::string_view text) {
  const auto tables = wavejit::tests::golden_tables();
  const auto named = std::ranges::find(tables, text, &wavejit::tests::GoldenTable::name);
  if (named != tables.end()) return named->specs();
  const auto spec = families::parse_spec(text);
  if (spec) return {*spec};
  std::fprintf(stderr, "'%s' is no table and no spec: %s\n", std::string(text).c_str(), spec.error().c_str());
  return {};
}

int print_digests(const std::vector<families::KernelSpec>& specs) {
  int failed = 0;
  for (const families::KernelSpec& spec : specs) {
    const wavejit::tests::CompiledKernel kernel = wavejit::tests::compile_kernel(spec);
    if (kernel.error.empty()) {
      const std::vector<std::byte> code = code_and_descriptor(kernel.code_object);
      std::printf("%s: %016llx %zu bytes\n", spec.text().c_str(), static_cast<unsigned long long>(digest_of(code)),
                  code.size());
    } else {
      std::printf("%s: %s\n", spec.text().c_str(), kernel.error.c_str());
      failed = 1;
    }
  }
  return failed;
}

// Every compile computes: nothing between the spec and LLVM remembers.
int print_times(const std::vector<families::KernelSpec>& specs) {
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
  const std::span words(arguments + 1, static_cast<std::size_t>(count - 1));
  const std::string_view first = words.empty() ? "" : words.front();
  const bool digests = first == "digests";
  const bool times = first == "times";
  std::vector<families::KernelSpec> specs;
  for (const char* text : words.subspan(digests || times ? 1 : 0)) {
    const auto named = specs_of(text);
    if (named.empty()) return 2;
    std::ranges::copy(named, std::back_inserter(specs));
  }
  if (specs.empty() && !digests) return std::fprintf(stderr, "facts of what? A table or specs\n"), 2;
  if (digests) return print_digests(specs.empty() ? every_spec() : specs);
  if (times) return print_times(specs);
  for (const auto& spec : specs) std::puts(wavejit::tests::facts_line(spec).c_str());
}
