// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// TLS of one connection, bytes in and bytes out: libssl works on memory, and the socket with its waits stays ours
// (connection.h says why; hiredis's own TLS would write to the socket itself and raise SIGPIPE in the host).
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "remote/failure.h"

struct ssl_st;
struct ssl_ctx_st;
struct ossl_lib_ctx_st;

namespace wavejit::remote {

// The certificates that are trusted. Safe from any thread.
class Trust {
 public:
  // `authorities`: a PEM file; empty: the system's.
  static std::expected<std::shared_ptr<const Trust>, std::string> of(const std::string& authorities);

 private:
  friend class Tls;
  struct FreeLibrary {
    void operator()(ossl_lib_ctx_st* library) const;
  };
  struct FreeContext {
    void operator()(ssl_ctx_st* context) const;
  };

  // A library context of our own, as in seal.cpp. The other one uses it.
  std::unique_ptr<ossl_lib_ctx_st, FreeLibrary> library_;
  std::unique_ptr<ssl_ctx_st, FreeContext> context_;
};

class Tls {
 public:
  // To a server whose certificate must be of `host`, a name or an address.
  static Result<Tls> to(const Trust& trust, const std::string& host, const std::string& where);

  // True when it is done; else the server's bytes are missing. What is outgoing must be sent either way.
  Result<bool> shake_hands();
  Result<void> write(std::span<const char> bytes);
  // How many bytes; 0: the server has closed. Nothing: its bytes are missing.
  Result<std::optional<std::size_t>> read(std::span<char> bytes);

  // What is to be sent, at most once.
  std::vector<char> outgoing();
  Result<void> incoming(std::span<const char> bytes);

 private:
  struct Free {
    void operator()(ssl_st* connection) const;
  };

  Tls(std::unique_ptr<ssl_st, Free> connection, std::string where)
      : connection_(std::move(connection)), where_(std::move(where)) {}
  std::unexpected<Failure> failure(const char* doing) const;

  std::unique_ptr<ssl_st, Free> connection_;
  std::string where_;  // for people
};

}  // namespace wavejit::remote
