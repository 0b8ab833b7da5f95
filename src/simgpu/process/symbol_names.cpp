// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/process/symbol_names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace wavejit::simgpu {

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  int status = 0;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status));
  return status == 0 && text != nullptr ? std::string(text.get()) : symbol;
}

std::string short_name(const std::string& symbol) {
  const std::string whole = demangled(symbol);
  if (whole == symbol) return symbol;
  // The parameters begin at the first parenthesis outside of template arguments that has anything before it; what
  // stands before the last space ahead of it is the result.
  std::size_t begin = 0;
  std::size_t end = whole.size();
  int depth = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const char c = whole[i];
    const std::string_view before = std::string_view(whole).substr(begin, i - begin);
    const bool is_call_operator = before.ends_with("operator");
    const bool opens_parameters =
        c == '(' && depth == 0 && !before.empty() && !before.ends_with("::") && !is_call_operator;
    if (opens_parameters) {
      end = i;
      break;
    }
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
    if (c == ' ' && depth == 0) begin = i + 1;
  }
  return whole.substr(begin, end - begin);
}

}  // namespace wavejit::simgpu
