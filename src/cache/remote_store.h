// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a remote layer asks of the server behind it. The real one is libwavejit_remote.so's; tests bring their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/digest.h"

namespace wavejit::cache {

enum class RemoteProblem : std::uint8_t {
  absent,
  damaged,  // an answer that is not what was asked for: garbage, a wrong seal, another entry
  fault     // no answer in time, or a refusal
};

struct RemoteFailure {
  RemoteProblem problem;
  std::string what;
};

// Safe from any thread; every call ends within the times that the store was made with.
class RemoteStore {
 public:
  RemoteStore() = default;
  RemoteStore(const RemoteStore&) = delete;
  RemoteStore& operator=(const RemoteStore&) = delete;
  virtual ~RemoteStore() = default;

  // An entry whose seal fits this name.
  virtual std::expected<std::vector<std::byte>, RemoteFailure> fetch(const Digest& digest,
                                                                     const std::string& target_id) = 0;
  virtual std::expected<void, RemoteFailure> keep(const Digest& digest, const std::string& target_id,
                                                  std::span<const std::byte> entry) = 0;
  virtual std::expected<void, RemoteFailure> ask() = 0;
  // Every entry's name, until it answers false.
  virtual std::expected<void, RemoteFailure> list(
      const std::function<bool(const Digest& digest, const std::string& target_id)>& name) = 0;
  // From now on every call ends at once with a fault, those under way too.
  virtual void interrupt() = 0;
};

}  // namespace wavejit::cache
