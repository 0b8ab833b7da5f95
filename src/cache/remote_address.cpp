// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/remote_address.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace wavejit::cache {

namespace {

constexpr std::string_view tcp_scheme = "redis://";
constexpr std::string_view tls_scheme = "rediss://";
constexpr std::string_view clear_password = "?password=clear";
constexpr std::string_view socket_scheme = "unix://";
constexpr int max_database = 1'000'000;
constexpr std::size_t max_socket_path = 107;  // sockaddr_un's, without its end

std::optional<int> number_below(std::string_view text, int limit) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0 || value >= limit)
    return std::nullopt;
  return value;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned char byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
    if (error != std::errc{} || end != text.data() + i + 3 || byte == 0) return std::nullopt;
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

bool is_host(std::string_view text) {
  constexpr std::size_t longest_name = 253;
  return !text.empty() && text.size() <= longest_name && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
           c == '_' || c == ':' || c == '%';  // the last two of addresses in brackets: fe80::1%eth0
  });
}

// By its text alone: no name is looked up before it is needed.
bool is_this_machine(std::string_view host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && std::ranges::all_of(host, [](char c) {
                                                    return (c >= '0' && c <= '9') || c == '.';
                                                  }));
}

std::unexpected<std::string> wrong(std::string what) { return std::unexpected(std::move(what)); }

std::expected<RemoteAddress, std::string> parse_socket(std::string_view path) {
  if (!path.starts_with('/') || path.size() > max_socket_path)
    return wrong("the socket's path is not absolute or longer than " + std::to_string(max_socket_path) + " bytes");
  RemoteAddress address;
  address.socket_path = path;
  return address;
}

std::optional<std::string> parse_login(std::string_view login, RemoteAddress& address) {
  const std::size_t colon = login.find(':');
  if (colon == std::string_view::npos) return "a user without a password";
  auto user = percent_decoded(login.substr(0, colon));
  auto password = percent_decoded(login.substr(colon + 1));
  if (!user || !password || password->empty()) return "the password is empty or wrongly percent-encoded";
  if (!user->empty()) address.user = *std::move(user);
  address.password = *std::move(password);
  return std::nullopt;
}

}  // namespace

std::expected<RemoteAddress, std::string> parse_remote(std::string_view text) {
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; }))
    return wrong("it holds a blank or a control character");
  if (text.starts_with(socket_scheme)) return parse_socket(text.substr(socket_scheme.size()));
  RemoteAddress address;
  address.tls = text.starts_with(tls_scheme);
  if (!address.tls && !text.starts_with(tcp_scheme))
    return wrong("it begins neither with redis:// nor with rediss:// nor with unix://");
  text.remove_prefix(address.tls ? tls_scheme.size() : tcp_scheme.size());
  if (text.ends_with(clear_password)) {
    if (address.tls)
      return wrong("TLS sends no password in clear, and " + std::string(clear_password) + " asks for it");
    address.clear_password = true;
    text.remove_suffix(clear_password.size());
  }
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    if (auto problem = parse_login(text.substr(0, at), address)) return wrong(*std::move(problem));
    text.remove_prefix(at + 1);
  }
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto database = digits.empty() ? 0 : number_below(digits, max_database);
    if (!database) return wrong("the database behind the host is no number");
    address.database = *database;
    text = text.substr(0, slash);
  }
  std::string_view port;
  if (text.starts_with('[')) {  // an IPv6 address
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return wrong("a bracket of the host is not closed");
    address.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    address.host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (!is_host(address.host)) return wrong("there is no host, or it is no name and no address");
  if (!port.empty()) {
    const auto number = port.front() == ':' ? number_below(port.substr(1), 65536) : std::nullopt;
    if (number.value_or(0) == 0) return wrong("the port is no number from 1 to 65535");
    address.port = *number;
  }
  if (address.password && !address.tls && !address.clear_password && !is_this_machine(address.host)) {
    return wrong("the password would travel in clear to another machine; rediss:// encrypts it, and " +
                 std::string(clear_password) + " at the end lets it");
  }
  return address;
}

std::string to_text(const RemoteAddress& address) {
  if (address.host.empty()) return std::string(socket_scheme) + address.socket_path;
  std::string text(address.tls ? tls_scheme : tcp_scheme);
  if (address.password) text += address.user.value_or("") + ":***@";
  text += address.host.contains(':') ? "[" + address.host + "]" : address.host;
  text += ":" + std::to_string(address.port) + "/" + std::to_string(address.database);
  return text + (address.clear_password ? std::string(clear_password) : "");
}

}  // namespace wavejit::cache
