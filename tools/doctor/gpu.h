// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A device under examination: an engine on it, and HIP's own functions for what the engine has no word for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/device_array.h"
#include "tools/doctor/probe.h"
#include "tools/exit_code.h"

namespace wavejit::tools::doctor {

class Gpu {
 public:
  static Result<Gpu> open(const wavejit_engine_options& options);

  wavejit_engine* engine() const { return engine_.get(); }
  bool simulated() const { return simulated_; }
  // The answer's words, lane after lane.
  Result<std::vector<std::uint32_t>> run(const Probe& probe, std::span<const std::uint32_t> words) const;
  // By HIP's number; nothing if this HIP does not know it.
  std::optional<int> attribute(int number) const;
  // Whether it still does what it is asked for: a fault may have ended it.
  bool answers() const;
  // Milliseconds between two events around `work`, on the default stream.
  template <typename Work>
  Result<float> time(Work work) const {
    auto events = begin();
    if (!events) return std::unexpected(events.error());
    if (auto done = work(); !done) return std::unexpected(done.error());
    return end(*events);
  }

 private:
  using Events = std::array<void*, 2>;
  Result<Events> begin() const;
  Result<float> end(const Events& events) const;
  template <typename Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
  void* symbol(const char* name) const;
  // Empty, or which function answered what.
  Result<void> hip(const char* function, int error) const;
  Result<void> make_current() const;

  std::unique_ptr<wavejit_engine, DestroyEngine> engine_;
  void* library_ = nullptr;
  bool simulated_ = false;
  int ordinal_ = 0;
};

}  // namespace wavejit::tools::doctor
