// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file that gains whole rows while a long command runs: what was done is there to read, and stays, whatever becomes
// of the command.
#pragma once

#include <string>
#include <string_view>

#include "tools/exit_code.h"

namespace wavejit::tools {

class RowFile {
 public:
  // `field` names the option in errors: "csv". An existing file begins anew.
  static Result<RowFile> open(const std::string& field, const std::string& path);

  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  RowFile(RowFile&& other) noexcept;
  RowFile& operator=(RowFile&&) = delete;
  ~RowFile();

  // `row` ends with its newline. A row that did not fit (a full disk) is taken back.
  Result<void> write(std::string_view row);

 private:
  RowFile() = default;
  std::unexpected<Failure> cannot(std::string_view verb) const;

  std::string field_;
  std::string path_;
  int file_ = -1;
};

}  // namespace wavejit::tools
