// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>

namespace wavejit::remote {

namespace {

constexpr std::size_t max_elements = 4096;     // of an answer that is a list; hiredis allocates them at once
constexpr std::size_t protocol_bytes = 65536;  // around what an answer holds; lists of names are shorter
constexpr char tls_alert = 0x15;
constexpr int too_deep = -1;  // of an answer's lists, in place of how many may stand inside one another

// "$<length>\r\n" at the beginning of an answer: a length that is not going to be waited for.
bool announces_more_than(std::string_view begin, std::size_t max_bytes) {
  if (!begin.starts_with('$')) return false;
  begin.remove_prefix(1);
  unsigned long long length = 0;
  const auto [end, error] = std::from_chars(begin.data(), begin.data() + begin.size(), length);
  if (error == std::errc::result_out_of_range) return true;
  // The number is whole only when something follows it.
  return error == std::errc{} && end != begin.data() + begin.size() && length > max_bytes;
}

const redisReplyObjectFunctions& functions_of_hiredis() {
  static const redisReplyObjectFunctions functions = [] {
    redisReader* reader = ::redisReaderCreate();
    if (reader == nullptr) throw std::bad_alloc();
    const redisReplyObjectFunctions own = *reader->fn;
    ::redisReaderFree(reader);
    return own;
  }();
  return functions;
}

// hiredis makes lists inside lists as deep as a server writes them, and frees them by as many calls of a function by
// itself: a megabyte of them is the end of a thread's stack. A list that is too deep is not made.
void* make_list(const redisReadTask* task, std::size_t elements) {
  int& most = *static_cast<int*>(task->privdata);
  int depth = 1;
  for (const redisReadTask* outer = task->parent; outer != nullptr; outer = outer->parent) ++depth;
  if (depth <= most) return functions_of_hiredis().createArray(task, elements);
  most = too_deep;
  return nullptr;
}

redisReader* make_reader() {
  static redisReplyObjectFunctions functions = [] {
    redisReplyObjectFunctions all = functions_of_hiredis();
    all.createArray = make_list;
    return all;
  }();
  return ::redisReaderCreateWithFunctions(&functions);
}

}  // namespace

std::string harmless(std::string_view text) {
  constexpr std::size_t enough = 160;
  std::string line(text.substr(0, enough));
  std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c < 0; }, '?');
  return line;
}

Connection::Connection(system::FileDescriptor socket, std::string name)
    : socket_(std::move(socket)),
      name_(std::move(name)),
      most_lists_(std::make_unique<int>(1)),
      reader_(make_reader()) {
  if (reader_ == nullptr) throw std::bad_alloc();
  reader_->maxelements = max_elements;
  reader_->privdata = most_lists_.get();
}

Result<Connection> Connection::connect(const sockaddr* address, socklen_t size, const std::string& name,
                                       const Deadline& deadline, const Interruption& interruption) {
  system::FileDescriptor socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fault("no socket for " + name + ": " + errno_text(errno));
  if (address->sa_family != AF_UNIX) {
    const int on = 1;
    (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  const std::string doing = "connecting to " + name;
  const auto attempt = [&] { return ::connect(socket.get(), address, size) == 0 ? 0 : errno; };
  int refusal = attempt();
  // A Unix socket whose queue is full does not say when there is room.
  while (refusal == EAGAIN && address->sa_family == AF_UNIX) {
    constexpr std::chrono::milliseconds a_moment{5};
    std::ignore = wait_for(-1, 0, {.at = std::min(deadline.at, Clock::now() + a_moment), .span = deadline.span},
                           interruption, doing);
    if (auto good = in_time(deadline, interruption, doing); !good) return std::unexpected(std::move(good.error()));
    refusal = attempt();
  }
  if (refusal != 0) {
    if (refusal != EINPROGRESS && refusal != EINTR) return fault(name + " does not answer: " + errno_text(refusal));
    auto ready = wait_for(socket.get(), POLLOUT, deadline, interruption, doing);
    if (!ready) return std::unexpected(std::move(ready.error()));
    int error = 0;
    socklen_t error_size = sizeof error;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) error = errno;
    if (error != 0) return fault(name + " does not answer: " + errno_text(error));
  }
  return Connection(std::move(socket), name);
}

Result<Connection> Connection::to(const Address& address, const std::string& name, const Deadline& deadline,
                                  const Interruption& interruption) {
  return connect(reinterpret_cast<const sockaddr*>(&address.bytes), address.size, name, deadline, interruption);
}

Result<Connection> Connection::to_socket(const std::string& path, const Deadline& deadline,
                                         const Interruption& interruption) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fault("the socket's path is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return connect(reinterpret_cast<const sockaddr*>(&address), sizeof address, path, deadline, interruption);
}

Result<void> Connection::secure(Tls tls, const Deadline& deadline, const Interruption& interruption) {
  std::array<char, 16384> block;
  for (;;) {
    auto done = tls.shake_hands();
    // Also the alert that says what was wrong with the server's half.
    auto sent = send_plain(tls.outgoing(), deadline, interruption);
    if (!done) return std::unexpected(std::move(done.error()));
    if (!sent) return sent;
    if (*done) break;
    auto count = receive_plain(block, deadline, interruption);
    if (!count) return std::unexpected(std::move(count.error()));
    if (*count == 0) return fault(name_ + " closed the connection instead of speaking TLS");
    if (auto taken = tls.incoming(std::span(block).first(*count)); !taken) return taken;
  }
  tls_ = std::move(tls);
  return {};
}

Result<void> Connection::send(std::span<const char> bytes, const Deadline& deadline, const Interruption& interruption) {
  if (!tls_) return send_plain(bytes, deadline, interruption);
  if (auto written = tls_->write(bytes); !written) return written;
  return send_plain(tls_->outgoing(), deadline, interruption);
}

Result<void> Connection::send_plain(std::span<const char> bytes, const Deadline& deadline,
                                    const Interruption& interruption) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      const bool closed = errno == EPIPE || errno == ECONNRESET;
      return std::unexpected(
          Failure{.status = WAVEJIT_REMOTE_FAULT, .what = name_ + ": " + errno_text(errno), .closed = closed});
    }
    auto ready = wait_for(socket_.get(), POLLOUT, deadline, interruption, "sending to " + name_);
    if (!ready) return ready;
  }
  return {};
}

Result<std::size_t> Connection::receive_plain(std::span<char> bytes, const Deadline& deadline,
                                              const Interruption& interruption) {
  const std::string doing = "the answer of " + name_;
  for (;;) {
    // Also of a server that always has one more byte.
    if (auto good = in_time(deadline, interruption, doing); !good) return std::unexpected(std::move(good.error()));
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      return std::unexpected(Failure{
          .status = WAVEJIT_REMOTE_FAULT, .what = name_ + ": " + errno_text(errno), .closed = errno == ECONNRESET});
    }
    auto ready = wait_for(socket_.get(), POLLIN, deadline, interruption, doing);
    if (!ready) return std::unexpected(std::move(ready.error()));
  }
}

Result<std::size_t> Connection::receive_some(std::span<char> bytes, const Deadline& deadline,
                                             const Interruption& interruption) {
  if (!tls_) return receive_plain(bytes, deadline, interruption);
  for (;;) {
    auto count = tls_->read(bytes);
    if (!count) return std::unexpected(std::move(count.error()));
    // A renewed key is answered, too.
    if (auto sent = send_plain(tls_->outgoing(), deadline, interruption); !sent)
      return std::unexpected(std::move(sent.error()));
    if (*count) return **count;
    std::array<char, 16384> block;
    auto received = receive_plain(block, deadline, interruption);
    if (!received || *received == 0) return received;
    if (auto taken = tls_->incoming(std::span(block).first(*received)); !taken)
      return std::unexpected(std::move(taken.error()));
  }
}

Result<Reply> Connection::receive(const AnswerLimits& most, const Deadline& deadline,
                                  const Interruption& interruption) {
  *most_lists_ = most.lists;
  std::array<char, 65536> block;
  std::size_t received = 0;
  std::string begin;
  for (;;) {
    auto count = receive_some(block, deadline, interruption);
    if (!count) {
      count.error().closed = count.error().closed && received == 0;
      return std::unexpected(std::move(count.error()));
    }
    if (*count == 0) {
      return std::unexpected(Failure{.status = WAVEJIT_REMOTE_FAULT,
                                     .what = name_ + " closed the connection instead of answering",
                                     .closed = received == 0});
    }
    const std::string_view bytes(block.data(), *count);
    if (received == 0 && !tls_ && bytes.front() == tls_alert)
      return damaged(name_ + " speaks TLS; accepted: rediss:// in the address, or a port without TLS");
    received += bytes.size();
    if (begin.size() < 32) begin += bytes.substr(0, 32);
    if (received > most.bytes + protocol_bytes || announces_more_than(begin, most.bytes))
      return damaged(name_ + " answers more than " + std::to_string(most.bytes) + " bytes, more than any entry has");
    void* reply = nullptr;
    if (::redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK ||
        ::redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
      if (*most_lists_ == too_deep)
        return damaged(name_ + " answers with lists inside one another, deeper than any answer has them");
      return damaged(name_ + " does not speak the Redis protocol: " + harmless(reader_->errstr));
    }
    if (reply != nullptr) {
      Reply answer(static_cast<redisReply*>(reply));
      // One command, one answer: more than that would be the next command's.
      if (reader_->pos != reader_->len) return damaged(name_ + " answers more than it was asked");
      return answer;
    }
  }
}

Result<Reply> Connection::exchange(std::span<const std::string_view> words, const AnswerLimits& most,
                                   const Deadline& deadline, const Interruption& interruption) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* formatted = nullptr;
  const auto length =
      ::redisFormatCommandArgv(&formatted, static_cast<int>(texts.size()), texts.data(), lengths.data());
  if (length < 0) return fault("out of memory for a command to " + name_);
  const std::unique_ptr<char, decltype(&::redisFreeCommand)> owner(formatted, &::redisFreeCommand);
  usable_ = false;  // until there is a whole answer
  auto sent = send({formatted, static_cast<std::size_t>(length)}, deadline, interruption);
  if (!sent) return std::unexpected(std::move(sent.error()));
  auto reply = receive(most, deadline, interruption);
  usable_ = reply.has_value();
  return reply;
}

Result<Reply> Connection::command(std::span<const std::string_view> words, const AnswerLimits& most,
                                  const Deadline& deadline, const Interruption& interruption) {
  auto reply = exchange(words, most, deadline, interruption);
  if (reply && (*reply)->type == REDIS_REPLY_ERROR)
    return fault(name_ + " refuses: " + harmless({(*reply)->str, (*reply)->len}));
  return reply;
}

}  // namespace wavejit::remote
