// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every fault at every call: what both fault tests run their operations under.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <tuple>

#include "faulty_io.h"

namespace wavejit::cache {

struct Fault {
  const char* name;
  FaultyIo::Kind kind;
  int code;
};

inline constexpr Fault faults[] = {
    {"ENOSPC", FaultyIo::Kind::error, ENOSPC},
    {"EDQUOT", FaultyIo::Kind::error, EDQUOT},
    {"EIO", FaultyIo::Kind::error, EIO},
    {"ESTALE", FaultyIo::Kind::error, ESTALE},
    {"EINTR", FaultyIo::Kind::error, EINTR},
    {"EROFS", FaultyIo::Kind::error, EROFS},
    {"EACCES", FaultyIo::Kind::error, EACCES},
    {"EMFILE", FaultyIo::Kind::error, EMFILE},
    {"ENOENT", FaultyIo::Kind::error, ENOENT},
    {"EEXIST", FaultyIo::Kind::error, EEXIST},
    {"EBUSY", FaultyIo::Kind::error, EBUSY},
    {"EXDEV", FaultyIo::Kind::error, EXDEV},
    {"EWOULDBLOCK", FaultyIo::Kind::error, EWOULDBLOCK},
    {"one byte", FaultyIo::Kind::one_byte, 0},
    {"nothing", FaultyIo::Kind::nothing, 0},
};

// The fault, and whether it stays from its first call on.
class EveryCall : public ::testing::TestWithParam<std::tuple<Fault, bool>> {
 protected:
  // Runs `operation(io, n)` for n = 1, 2, … until it makes fewer than n calls.
  template <typename Operation>
  void for_every_call(Operation operation) {
    const auto& [fault, sticky] = GetParam();
    for (int n = 1;; ++n) {
      SCOPED_TRACE(std::string(fault.name) + (sticky ? " from call " : " at call ") + std::to_string(n));
      FaultyIo io(fault.kind, fault.code, n, sticky);
      operation(io, n);
      ASSERT_FALSE(HasFatalFailure());
      if (io.calls() < n) return;
      ASSERT_LT(n, 100'000) << "the loop must end";
    }
  }
};

}  // namespace wavejit::cache
