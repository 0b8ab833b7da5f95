// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// libwavejit_codegen.so brings its own LLVM and shows nothing of it.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class SharedLibrary {
 public:
  explicit SharedLibrary(const char* path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    bytes_.resize(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    file.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    std::memcpy(&header_, bytes_.data(), sizeof header_);
    sections_ = table<Elf64_Shdr>(header_.e_shoff, header_.e_shnum);
  }

  // Names that other libraries can bind to.
  std::vector<std::string> exports() const {
    std::vector<std::string> names;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_DYNSYM) continue;
      for (const Elf64_Sym& symbol : table<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
        if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
        names.emplace_back(bytes_.data() + sections_[section.sh_link].sh_offset + symbol.st_name);
      }
    }
    return names;
  }

  std::vector<std::string> needed() const {
    std::vector<std::string> names;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_DYNAMIC) continue;
      for (const Elf64_Dyn& entry : table<Elf64_Dyn>(section.sh_offset, section.sh_size / sizeof(Elf64_Dyn))) {
        if (entry.d_tag == DT_NEEDED)
          names.emplace_back(bytes_.data() + sections_[section.sh_link].sh_offset + entry.d_un.d_val);
      }
    }
    return names;
  }

 private:
  template <typename T>
  std::vector<T> table(std::size_t offset, std::size_t count) const {
    std::vector<T> entries(count);
    std::memcpy(entries.data(), bytes_.data() + offset, count * sizeof(T));
    return entries;
  }

  std::vector<char> bytes_;
  Elf64_Ehdr header_ = {};
  std::vector<Elf64_Shdr> sections_;
};

TEST(Exports, OneSymbolAndNoLlvm) {
  const SharedLibrary library(WAVEJIT_CODEGEN_LIBRARY);
  EXPECT_THAT(library.exports(), ElementsAre("wavejit_codegen_table"));
  EXPECT_FALSE(library.needed().empty());
  for (const std::string& name : library.needed()) {
    EXPECT_THAT(name, Not(HasSubstr("LLVM")));
    EXPECT_THAT(name, Not(HasSubstr("lld")));
    EXPECT_THAT(name, Not(HasSubstr("comgr")));
  }
}

}  // namespace
