// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
// Where in the source an instruction comes from, for code objects that were compiled with -g: DWARF's line table, read
// by LLVM. Nothing of it is looked at before somebody asks.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wavejit::simgpu {

struct SourceLine {
  std::string file;  // as the compiler was given it, with its folder
  unsigned line = 0;

  // "reduce.hip:12"
  std::string text() const;
};

class SourceLines {
 public:
  // Null where the image has no line table. The image is copied.
  static std::unique_ptr<SourceLines> read(std::span<const std::byte> image);
  ~SourceLines();
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;

  // `address`: as linked. Nothing where the table says nothing. Thread-safe.
  std::optional<SourceLine> at(std::uint64_t address);

 private:
  struct Llvm;
  explicit SourceLines(std::unique_ptr<Llvm> llvm);
  std::mutex mutex_;
  std::unique_ptr<Llvm> llvm_;
};

}  // namespace wavejit::simgpu
