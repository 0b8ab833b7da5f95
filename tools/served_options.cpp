// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/served_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>

#include "tools/engine_options.h"

namespace wavejit::tools {
namespace {

// 0: it is none.
std::int64_t number_of(const std::string& given) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  return error == std::errc{} && end == given.data() + given.size() ? number : 0;
}

}  // namespace

ServedOptions add_served(CLI::App& command, ServedModel& served) {
  CLI::Option* ranks = limit(
      command.add_option("--tp", served.tensor_parallel, "with --model: how many ranks share its heads (default: 1)"),
      "RANKS", [](const std::string& given) {
        const std::int64_t number = number_of(given);
        return number >= 1 && number <= 1024 ? std::string()
                                             : fmt::format("'{}' is not accepted; 1 to 1024 are", given);
      });
  CLI::Option* page =
      limit(command.add_option("--page", served.page,
                               "with --model: keys of a page of the cache, 1 or a multiple of 16 (default: 16)"),
            "KEYS", [](const std::string& given) {
              const std::int64_t number = number_of(given);
              return number == 1 || (number > 0 && number % 16 == 0 && number <= 8192)
                         ? std::string()
                         : fmt::format("'{}' is not accepted; 1 and multiples of 16 up to 8192 are", given);
            });
  return {.ranks = ranks, .page = page};
}

}  // namespace wavejit::tools
