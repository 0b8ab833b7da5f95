// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names to addresses without waiting longer than a deadline: getaddrinfo(3) knows none, so it runs in a thread that may
// be left behind.
#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "remote/failure.h"

namespace wavejit::remote {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

class Resolver {
 public:
  Resolver(std::string host, int port);

  Result<std::vector<Address>> addresses(const Deadline& deadline, const Interruption& interruption);
  // Nobody answered there: the next caller asks anew.
  void forget();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace wavejit::remote
