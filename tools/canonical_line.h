// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem descriptor as the library writes it, and as a family's own parser reads it.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "tools/exit_code.h"

namespace wavejit::tools {

// Canonical, or why the library refuses it (wavejit_describe).
Result<std::string> canonical_line(const std::string& descriptor);

// What a family's `parse` makes of a descriptor that the library takes. `text` becomes the canonical line.
template <typename Parse>
auto parsed_line(const std::string& descriptor, std::string& text, Parse parse)
    -> Result<typename std::invoke_result_t<Parse, std::string_view>::value_type> {
  auto line = canonical_line(descriptor);
  if (!line) return std::unexpected(line.error());
  text = *std::move(line);
  auto parsed = parse(text);
  if (!parsed) return failed(ExitCode::internal, text + ": " + parsed.error().detail);
  return *std::move(parsed);
}

// What a family makes of it and of the canonical line.
template <typename Parse, typename Make>
auto parsed_into(const std::string& descriptor, Parse parse, Make make)
    -> Result<decltype(make(*parse(std::string_view()), std::string()))> {
  std::string text;
  const auto parsed = parsed_line(descriptor, text, parse);
  if (!parsed) return std::unexpected(parsed.error());
  return make(*parsed, std::move(text));
}

}  // namespace wavejit::tools
