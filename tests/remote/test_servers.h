// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Servers for the tests of the remote layer, all on loopback: the real one of the distribution, and one that answers
// what a test says.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/scratch_directory.h"

namespace wavejit::tests {

// A key file as people make them.
inline std::string write_key(const std::string& path, unsigned seed = 1, int mode = 0600) {
  std::string digits;
  for (unsigned i = 0; i < 64; ++i) digits += "0123456789abcdef"[(i * 7 + seed) % 16];
  std::ofstream(path) << digits << "\n";
  ::chmod(path.c_str(), static_cast<mode_t>(mode));
  return path;
}

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket that listens on a free port of loopback.
inline std::pair<int, int> listening_socket(int backlog) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (socket < 0 || ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(socket, backlog) != 0 || ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no socket on loopback");
  return {socket, ntohs(address.sin_port)};
}

inline bool can_connect(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return connected;
}

inline bool can_connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  path.copy(static_cast<char*>(address.sun_path), path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return connected;
}

// valkey-server or redis-server, nothing kept, ended with the object. WAVEJIT_REDIS_SERVER is its path, or empty.
class RedisServer {
 public:
  explicit RedisServer(std::vector<std::string> settings = {}) : settings_(std::move(settings)) {
    // Somebody else may take the port between our look and the server's start.
    for (int attempt = 0; attempt < 5; ++attempt) {
      const auto [socket, port] = listening_socket(1);
      ::close(socket);
      port_ = port;
      if (try_to_start()) return;
    }
    throw std::runtime_error("the server does not start");
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer() { stop(); }

  int port() const { return port_; }
  std::string address(const std::string& login = "", int database = 0) const {
    return "redis://" + login + "127.0.0.1:" + std::to_string(port_) + "/" + std::to_string(database);
  }
  std::string socket_path() const { return folder_ / "socket"; }

  // On the port that it had.
  void start() {
    if (!try_to_start()) throw std::runtime_error("the server does not start on port " + std::to_string(port_));
  }

  void stop() {
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  // Answers nothing, but the kernel goes on taking connections and bytes for it.
  void freeze() const { ::kill(process_, SIGSTOP); }
  void thaw() const { ::kill(process_, SIGCONT); }

 private:
  bool try_to_start() {
    // It makes its Unix socket when it has the port: a connection alone might be to whoever took that. The file is
    // there a moment before anybody listens to it.
    std::filesystem::remove(socket_path());
    std::vector<std::string> words = {WAVEJIT_REDIS_SERVER,
                                      "--port",
                                      std::to_string(port_),
                                      "--bind",
                                      "127.0.0.1",
                                      "--save",
                                      "",
                                      "--appendonly",
                                      "no",
                                      "--dir",
                                      folder_ / "",
                                      "--logfile",
                                      folder_ / "log",
                                      "--unixsocket",
                                      socket_path()};
    words.insert(words.end(), settings_.begin(), settings_.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int nowhere = ::open("/dev/null", O_RDWR);
      ::dup2(nowhere, STDOUT_FILENO);
      ::dup2(nowhere, STDERR_FILENO);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    process_ = child;
    for (int i = 0; i < 1000; ++i) {
      if (::waitpid(process_, nullptr, WNOHANG) == process_) {
        process_ = -1;  // the number may be anybody's now
        return false;
      }
      if (can_connect(socket_path()) && can_connect(port_)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    stop();
    return false;
  }

  ScratchDirectory folder_;
  std::vector<std::string> settings_;
  int port_ = 0;
  pid_t process_ = -1;
};

// Takes connections and does with each what the test says, until the socket is closed under it.
class JunkServer {
 public:
  using Behaviour = std::function<void(int socket)>;

  explicit JunkServer(Behaviour behaviour) : behaviour_(std::move(behaviour)) {
    const auto [socket, port] = listening_socket(16);
    socket_ = socket;
    port_ = port;
    acceptor_ = std::jthread([this] { take(); });
  }
  JunkServer(const JunkServer&) = delete;
  JunkServer& operator=(const JunkServer&) = delete;
  ~JunkServer() {
    {
      const std::scoped_lock lock(mutex_);
      ending_ = true;
      for (const int one : connections_)
        if (one >= 0) ::shutdown(one, SHUT_RDWR);
    }
    ::shutdown(socket_, SHUT_RDWR);
    acceptor_.join();
    for (std::jthread& worker : workers_) worker.join();
    ::close(socket_);
  }

  int port() const { return port_; }
  int connections() {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(connections_.size());
  }

  // False: the other end is gone.
  static bool say(int socket, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Waits for something to be asked. False: the other end is gone.
  static bool hear(int socket) {
    char block[65536];
    return ::recv(socket, block, sizeof block, 0) > 0;
  }
  static Behaviour answering(std::string text) {
    return [text = std::move(text)](int socket) {
      while (hear(socket) && say(socket, text)) {
      }
    };
  }
  static Behaviour silent() {
    return [](int socket) {
      while (hear(socket)) {
      }
    };
  }

 private:
  void take() {
    for (;;) {
      const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::scoped_lock lock(mutex_);
      if (connection < 0 || ending_) {
        if (connection >= 0) ::close(connection);
        return;
      }
      connections_.push_back(connection);
      workers_.emplace_back([this, connection] {
        behaviour_(connection);
        const std::scoped_lock closing(mutex_);
        ::close(connection);
        std::ranges::replace(connections_, connection, -1);
      });
    }
  }

  Behaviour behaviour_;
  int socket_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  bool ending_ = false;
  std::vector<int> connections_;
  std::vector<std::jthread> workers_;
  std::jthread acceptor_;
};

}  // namespace wavejit::tests
