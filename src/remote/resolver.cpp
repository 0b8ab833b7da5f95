// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote/resolver.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "system/blocked_signals.h"

namespace wavejit::remote {

namespace {

constexpr std::size_t max_addresses = 4;  // guess: a name with more has nothing better behind them

// 0 or getaddrinfo's error.
int look_up(const std::string& host, const std::string& port, int flags, std::vector<Address>& found) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &list);
  if (error != 0) return error;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr && found.size() < max_addresses; one = one->ai_next) {
    if (one->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address& address = found.emplace_back();
    std::memcpy(&address.bytes, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
  }
  return 0;
}

}  // namespace

// Shared with the thread that asks, which may outlive the resolver.
struct Resolver::State {
  std::string host;
  std::string port;
  std::mutex mutex;
  std::condition_variable answered;
  bool asking = false;
  int error = 0;
  std::vector<Address> found;

  // An exception would end the host.
  static void ask(const std::shared_ptr<State>& state) noexcept {
    std::vector<Address> found;
    int error = 0;
    try {
      error = look_up(state->host, state->port, 0, found);
    } catch (const std::exception&) {
      found.clear();
      error = EAI_MEMORY;
    }
    const std::scoped_lock lock(state->mutex);
    state->found = std::move(found);
    state->error = error;
    state->asking = false;
    state->answered.notify_all();
  }

  // With the mutex held.
  static bool start(const std::shared_ptr<State>& state) {
    const system::BlockedSignals blocked;
    try {
      std::thread([state] { ask(state); }).detach();
      state->asking = true;
    } catch (const std::exception&) {
      state->asking = false;
    }
    return state->asking;
  }
};

Resolver::Resolver(std::string host, int port) : state_(std::make_shared<State>()) {
  state_->host = std::move(host);
  state_->port = std::to_string(port);
}

Result<std::vector<Address>> Resolver::addresses(const Deadline& deadline, const Interruption& interruption) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  // An address needs no asking.
  if (state.found.empty() && !state.asking) (void)look_up(state.host, state.port, AI_NUMERICHOST, state.found);
  if (state.found.empty()) {
    if (!state.asking && !State::start(state_)) return fault("no thread to resolve the name " + state.host + " with");
    while (state.asking && !interruption.is_set() && Clock::now() < deadline.at) {
      constexpr std::chrono::milliseconds look_up_from_time_to_time{20};
      state.answered.wait_until(lock, std::min(deadline.at, Clock::now() + look_up_from_time_to_time));
    }
    if (state.asking) {
      if (auto good = in_time(deadline, interruption, "resolving the name " + state.host); !good)
        return std::unexpected(std::move(good.error()));
    }
  }
  if (state.found.empty()) {
    return fault("the name " + state.host +
                 " leads nowhere: " + (state.error != 0 ? ::gai_strerror(state.error) : "no address"));
  }
  return state.found;
}

void Resolver::forget() {
  const std::scoped_lock lock(state_->mutex);
  state_->found.clear();
}

}  // namespace wavejit::remote
