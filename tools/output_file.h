// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file that appears whole or not at all: written under a temporary name beside its place, renamed at the end. Opened
// before any work is done, so that an output that cannot be written costs nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/exit_code.h"

namespace wavejit::tools {

class OutputFile {
 public:
  // `field` names the option in errors: "out".
  static Result<OutputFile> open(const std::string& field, const std::string& path);

  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // without commit(): nothing is left

  const std::string& path() const { return path_; }
  Result<void> write(std::string_view bytes);
  Result<void> commit();
  // All of it: written and in its place.
  Result<void> finish(std::string_view bytes);

 private:
  OutputFile() = default;
  std::unexpected<Failure> cannot(std::string_view verb) const;

  std::string field_;
  std::string path_;       // after symbolic links
  std::string temporary_;  // empty once renamed
  int file_ = -1;
  int slot_ = -1;  // where the signal handler finds the temporary's name
};

// None where no path is given.
Result<std::optional<OutputFile>> open_if_named(const std::string& field, const std::string& path);

}  // namespace wavejit::tools
