// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a server that is none answers to each command of the remote layer, over a real socket. The first connection gets
// the input; later ones are closed.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <thread>

#include "forge.h"
#include "remote/store.h"

namespace {

using namespace wavejit::remote;

class Impostor {
 public:
  Impostor() {
    path_ = "/tmp/wavejit-fuzz-redis-" + std::to_string(::getpid());
    ::unlink(path_.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    wavejit::fuzz::require(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                           ::listen(socket_, 64) == 0);
    std::atexit([] { ::unlink(path_.c_str()); });
    std::thread([this] { serve(); }).detach();
  }

  // To whoever connects next.
  void answer(std::span<const std::uint8_t> bytes) {
    bytes_ = bytes;
    wanted_.store(true, std::memory_order_release);
  }
  // Nobody reads the bytes any more.
  void rest() {
    wanted_.store(false);
    while (busy_.load()) std::this_thread::yield();
  }
  const std::string& path() const { return path_; }

 private:
  void serve() {
    for (;;) {
      const int connection = ::accept(socket_, nullptr, nullptr);
      if (connection < 0) continue;
      busy_.store(true);
      if (wanted_.exchange(false)) {
        char block[4096];
        (void)::recv(connection, block, sizeof block, 0);
        (void)::send(connection, bytes_.data(), bytes_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      }
      ::close(connection);
      busy_.store(false);
    }
  }

  static inline std::string path_;
  int socket_ = -1;
  std::span<const std::uint8_t> bytes_;
  std::atomic<bool> wanted_{false};
  std::atomic<bool> busy_{false};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Impostor server;
  if (size == 0) return 0;
  Server at;
  at.socket_path = server.path();
  at.connect_timeout = at.answer_timeout = std::chrono::milliseconds(2000);
  at.max_entry_bytes = 1U << 16U;
  Store store(at, *Seal::make(std::vector<unsigned char>(32, 7)));
  server.answer({data + 1, size - 1});
  const auto answered = [&]() -> Result<void> {
    switch (data[0] % 4) {
      case 0: {
        const auto entry = store.fetch({.digest = {}, .target_id = "gfx950", .entry_format = 1});
        wavejit::fuzz::require(!entry);  // nobody but us can seal one
        return std::unexpected(entry.error());
      }
      case 1:
        return store.keep({.digest = {}, .target_id = "gfx950", .entry_format = 1}, {});
      case 2:
        return store.ask();
      default:
        return store.list(1, [](const Name& name) {
          wavejit::fuzz::require(name.entry_format == 1);
          return true;
        });
    }
  }();
  wavejit::fuzz::require(answered || !answered.error().what.empty());
  server.rest();
  return 0;
}
