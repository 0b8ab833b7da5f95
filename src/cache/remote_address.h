// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// "redis://user:password@host:6379/0" as values: where a remote layer is.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace wavejit::cache {

struct RemoteAddress {
  std::string host;  // empty: socket_path counts
  int port = 6379;
  std::string socket_path;
  std::optional<std::string> user;
  std::optional<std::string> password;
  int database = 0;
  bool tls = false;             // rediss://
  bool clear_password = false;  // "?password=clear": the password may travel to another machine as it is

  bool operator==(const RemoteAddress&) const = default;
};

// User and password are percent-encoded where they hold one of ":/@%". The error says what is wrong, never the text
// itself: it may hold a password.
std::expected<RemoteAddress, std::string> parse_remote(std::string_view text);
// For logs and people: "redis://user:***@host:6379/0".
std::string to_text(const RemoteAddress& address);

}  // namespace wavejit::cache
