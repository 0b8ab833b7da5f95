// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes templates/attention_forward/kernel/room.inc: what fits into registers.
//
//   kernel_room <target>                         the names of its lines
//   kernel_room <target> <file> [<part>/<parts>] measures the lines that the file does not have and adds them to it; or
//                                                a part of them, for several processes with a file each
//   kernel_room print <file>…                    the table of what the files have
//
// A run that was interrupted goes on where it was.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "codegen/generator_id.h"
#include "kernels/room_lines.h"
#include "targets/targets.h"

namespace {

using wavejit::tests::RoomKernels;

// A line's name, and its row of the table.
std::map<std::string, std::string> rows_of(const std::string& path) {
  std::map<std::string, std::string> rows;
  std::ifstream file(path);
  for (std::string row; std::getline(file, row);)
    if (row.starts_with("{\"") && row.ends_with("}},")) rows.emplace(row.substr(2, row.find('"', 2) - 2), row);
  return rows;
}

std::string row_of(const RoomKernels& kernels) {
  const wavejit::tests::RoomTexts texts = wavejit::tests::measure_room(kernels);
  std::string row = "{\"" + kernels.line + "\", {";
  for (std::size_t i = 0; i < texts.size(); ++i) row += (i == 0 ? "\"" : ", \"") + texts[i] + '"';
  return row + "}},";
}

int print(const std::map<std::string, std::string>& rows) {
  std::puts(
      "// Made by `kernel_room`, from what LLVM compiled (room.h says what lines and cells are); a test compares. Of\n"
      "// each line: whole rows, parts, and parts that are merged.");
  std::printf("{\"LLVM\", {\"%s\", \"\", \"\"}},\n", std::string(wavejit::codegen::llvm_version()).c_str());
  for (const auto& [line, row] : rows) std::puts(row.c_str());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const std::string first = words.empty() ? "" : words.front();
  std::map<std::string, std::string> rows;
  for (std::size_t i = 1; i < words.size(); ++i) rows.merge(rows_of(words[i]));
  if (first == "print") return print(rows);
  const wavejit::targets::Target* const target = wavejit::targets::find_target(first);
  if (target == nullptr) return std::fprintf(stderr, "lines of what? A target, or print\n"), 2;
  const std::vector<RoomKernels> all = wavejit::tests::all_room_kernels(*target);
  if (words.size() == 1) {
    for (const RoomKernels& kernels : all) std::puts(kernels.line.c_str());
    return 0;
  }
  const std::string share = words.size() > 2 ? words[2] : "0/1";
  const std::size_t part = std::strtoul(share.c_str(), nullptr, 10);
  const std::size_t parts = std::max(1UL, std::strtoul(share.substr(share.find('/') + 1).c_str(), nullptr, 10));
  std::ofstream file(words[1], std::ios::app);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % parts == part % parts && !rows.contains(all[i].line)) file << row_of(all[i]) << '\n' << std::flush;
}
