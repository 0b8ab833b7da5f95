// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sealed entries on a server: names, connections that are kept, bounded waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remote/connection.h"
#include "remote/failure.h"
#include "remote/resolver.h"
#include "remote/seal.h"
#include "remote/tls.h"

namespace wavejit::remote {

struct Server {
  std::string host;  // empty: a Unix socket
  int port = 0;
  std::string socket_path;
  std::optional<std::string> user;
  std::optional<std::string> password;
  int database = 0;
  std::shared_ptr<const Trust> trust;  // null: no TLS
  std::chrono::milliseconds connect_timeout{0};
  std::chrono::milliseconds answer_timeout{0};
  // Guess: what stands between us and the server (a firewall, an address translation) forgets silent connections, after
  // a few minutes at the least.
  std::chrono::milliseconds longest_idle = std::chrono::minutes(1);
  std::size_t max_entry_bytes = 0;
};

// Safe from any thread.
class Store {
 public:
  Store(Server server, Seal seal);

  const std::string& key_id() const { return seal_.key_id(); }
  Result<std::vector<unsigned char>> fetch(const Name& name);
  Result<void> keep(const Name& name, std::span<const unsigned char> entry);
  Result<void> ask();
  // Calls name() for every entry of this key and format until it answers false.
  Result<void> list(std::uint32_t entry_format, const std::function<bool(const Name&)>& name);
  void interrupt() { interruption_.set(); }

 private:
  struct Idle {
    Connection connection;
    Clock::time_point since;
  };

  Result<Connection> connect();
  Result<void> greet(Connection& connection, const Deadline& deadline);
  Result<Reply> command(std::span<const std::string_view> words, const AnswerLimits& most);
  std::optional<Connection> idle_connection();
  void keep_idle(Connection connection);
  std::string prefix_of(std::uint32_t entry_format) const;
  std::string key_of(const Name& name) const;

  const Server server_;
  const std::string where_;  // for people
  const Seal seal_;
  Resolver resolver_;
  Interruption interruption_;
  std::mutex mutex_;
  std::vector<Idle> idle_;  // in the order in which they were last used
};

}  // namespace wavejit::remote
