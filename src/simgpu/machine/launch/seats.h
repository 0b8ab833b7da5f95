// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two seats beside a launch. A checker sits with one workgroup at a time and steps its waves: it looks for faults, and
// knows what time it is where waves run abreast. A keeper sits with the whole launch and times it. The machine runs
// without either; who sits there is decided above it (simgpu/seats.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simgpu/process/config.h"

namespace wavejit::simgpu {

class Observer;
struct Launch;
struct Wave;
struct Workgroup;

// Whether launches with these settings want checkers: something is checked, or memory's results arrive late.
bool wants_checker(const Settings& settings);

// Belongs to one host thread, which runs one workgroup after another.
class Checker {
 public:
  Checker() = default;
  virtual ~Checker() = default;
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // Called after the waves have their first registers. `observer`: the observer of this workgroup, or null.
  virtual void prepare(Launch& launch, Workgroup& workgroup, std::uint64_t seed, Observer* observer) = 0;
  // Runs up to `instructions` instructions of a wave.
  virtual void run_slice(Wave& wave, std::int64_t instructions) = 0;
  // Everybody who still runs stands at a barrier, and passes it now.
  virtual void barrier() = 0;
  // Under the schedule `timed`: the place of the wave that issues next.
  virtual std::size_t next_by_time(std::span<Wave* const> ready) = 0;
};

// What the checkers of a launch's workgroups have in common.
class SharedByCheckers {
 public:
  SharedByCheckers() = default;
  virtual ~SharedByCheckers() = default;
  SharedByCheckers(const SharedByCheckers&) = delete;
  SharedByCheckers& operator=(const SharedByCheckers&) = delete;

  // All workgroups have run. What was put aside until then is found or forgotten.
  virtual void finish(Launch& launch) = 0;
};

// The time keeper of one launch. Made before its workgroups run.
class Keeper {
 public:
  Keeper() = default;
  virtual ~Keeper() = default;
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Sees the sampled workgroups; null when the launch cannot be timed, which `finish` says.
  virtual Observer* recorder() = 0;
  // Linear ids of the workgroups that run when nobody asks for results: the sample, or none for all of them.
  virtual std::span<const std::uint64_t> needed() const = 0;
  // Whether the workgroups run one after the other, so that one may depend on those that ran before it.
  virtual bool in_turn() const = 0;
  // More of them, each time those have run, until there are none: for work that differs from workgroup to workgroup.
  // Linear ids that run next, some of them again.
  virtual std::vector<std::uint64_t> widen() = 0;
  // After the workgroups have run: times them, tells the launch and keeps the result.
  virtual void finish() = 0;
};

std::unique_ptr<Checker> seat_checker();
// Null: nothing. `several_threads` run workgroups of the launch.
std::shared_ptr<SharedByCheckers> shared_by_checkers(const Launch& launch, bool several_threads);
// Null when nobody asks for time. Workgroups first, first + step, … run, `count` of them.
std::unique_ptr<Keeper> seat_keeper(Launch& launch, std::uint64_t first, std::uint64_t step, std::uint64_t count);

}  // namespace wavejit::simgpu
