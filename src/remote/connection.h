// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One connection to a Redis-protocol server. hiredis writes commands and reads answers; the socket is ours, because
// hiredis's own waits are bounded a read at a time (a server that drips bytes would hold a call for ever), its sockets
// are inherited by children, and its writes raise SIGPIPE in the host.
#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remote/failure.h"
#include "remote/resolver.h"
#include "remote/tls.h"
#include "system/file_descriptor.h"

namespace wavejit::remote {

struct FreeReply {
  void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

// What an answer may have, and beyond which nothing is built of it.
struct AnswerLimits {
  std::size_t bytes = 0;  // of what it holds
  int lists = 1;          // inside one another
};

class Connection {
 public:
  static Result<Connection> to(const Address& address, const std::string& name, const Deadline& deadline,
                               const Interruption& interruption);
  static Result<Connection> to_socket(const std::string& path, const Deadline& deadline,
                                      const Interruption& interruption);

  // From here on in TLS.
  Result<void> secure(Tls tls, const Deadline& deadline, const Interruption& interruption);

  // The answer, whatever it is; a failure ends the connection.
  Result<Reply> exchange(std::span<const std::string_view> words, const AnswerLimits& most, const Deadline& deadline,
                         const Interruption& interruption);
  // The answer; an error that the server answers ("-NOPERM …") is a fault with its words and leaves the connection
  // usable, everything else ends it.
  Result<Reply> command(std::span<const std::string_view> words, const AnswerLimits& most, const Deadline& deadline,
                        const Interruption& interruption);
  bool usable() const { return usable_; }

 private:
  Connection(system::FileDescriptor socket, std::string name);
  static Result<Connection> connect(const sockaddr* address, socklen_t size, const std::string& name,
                                    const Deadline& deadline, const Interruption& interruption);
  Result<void> send(std::span<const char> bytes, const Deadline& deadline, const Interruption& interruption);
  Result<void> send_plain(std::span<const char> bytes, const Deadline& deadline, const Interruption& interruption);
  // How many bytes; 0: the other end has closed.
  Result<std::size_t> receive_some(std::span<char> bytes, const Deadline& deadline, const Interruption& interruption);
  Result<std::size_t> receive_plain(std::span<char> bytes, const Deadline& deadline, const Interruption& interruption);
  Result<Reply> receive(const AnswerLimits& most, const Deadline& deadline, const Interruption& interruption);

  struct FreeReader {
    void operator()(redisReader* reader) const { ::redisReaderFree(reader); }
  };

  system::FileDescriptor socket_;
  std::string name_;
  std::unique_ptr<int> most_lists_;  // AnswerLimits::lists, where the reader finds it
  std::unique_ptr<redisReader, FreeReader> reader_;
  std::optional<Tls> tls_;
  bool usable_ = true;
};

// What a server says, fit for one line of a log.
std::string harmless(std::string_view text);

}  // namespace wavejit::remote
