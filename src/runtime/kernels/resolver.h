// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The cold and the warm path: from a shape that the kernel table does not have to kernels that it has.
//
// The verbs, from outside in: resolve makes a shape's kernels be there and counts what it took; route_and_load asks the
// family which they are; load_once gets one of them, whoever asks; fetch_or_compile does that work. For a shape and for
// a kernel alike one thread works while others that need it wait (work_once); different ones proceed in parallel. A
// compile that failed is remembered: the same call fails at once instead of compiling again.
//
// Kernels of one shape compile side by side: from its first compile on, helpers take the others (side_by_side.h). A
// thread holds one kernel at a time and waits for other threads' only while it holds none, so that shapes which share
// kernels in any order never wait in a circle.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "families/call/family.h"
#include "runtime/kernels/kernel_source.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/kernels/launch_trail.h"
#include "runtime/kernels/side_by_side.h"
#include "runtime/kernels/statistics.h"
#include "runtime/libraries/hip_library.h"

namespace wavejit::runtime {

// Never changes once it is loaded, but for its mark.
struct LoadedKernel {
  families::KernelSpec spec;
  std::string spec_text;
  std::string key;
  hip_abi::hipFunction_t function = nullptr;
  hip_abi::hipModule_t module = nullptr;
  // HIP may keep pointing into the image that a module was loaded from.
  std::vector<std::byte> code_object;
  mutable LaunchTrail::Mark mark;
};

// Those of a shape, in the order in which a call launches them. Never changes once it stands in the table.
struct LoadedKernels {
  families::Shape shape;
  std::vector<const LoadedKernel*> kernels;
  std::vector<const families::KernelSpec*> specs;  // theirs, as a call's plan takes them

  // What the call is counted by and reported with.
  const LoadedKernel& first() const { return *kernels.front(); }
};

// How a shape came to have its kernels, or why it has none.
struct Resolution {
  Result<const LoadedKernels*> kernels = fail(WAVEJIT_OUT_OF_MEMORY, {});
  // The origin; if there are several kernels, the one that took most. WAVEJIT_ORIGIN_MEMORY if another thread did the
  // work.
  wavejit_origin origin = WAVEJIT_ORIGIN_NONE;
  // The first kernel of the route; empty if there is none, or nobody asked for it.
  families::KernelSpec first = {};  // NOLINT(readability-redundant-member-init): for initializers
  // This thread or a helper of its looked on disk or compiled, whatever came of it: the phases have times, and there is
  // something to tell.
  bool worked = false;
  // The phases of all kernels added up, whichever thread worked. resolve()'s own are what the caller waited.
  Phases work = {};  // NOLINT(readability-redundant-member-init): for initializers
};

class Resolver {
 public:
  Resolver(const HipDevice& device, const targets::Target& target, const families::Toggles& toggles,
           KernelSource& source, Logger& logger, Statistics& statistics);
  ~Resolver();  // unloads the modules
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  const LoadedKernels* find(const families::Shape& shape) const noexcept { return table_.find(shape); }
  // To `phases` it adds what the caller waited: of kernels that were made side by side, those of the thread that took
  // longest.
  Resolution resolve(const families::Shape& shape, Phases& phases, Helpers& helpers);
  // What resolve() would answer at once, since it failed before and would again.
  std::optional<Failure> known_failure(const families::Shape& shape);

  LaunchTrail& trail() noexcept { return trail_; }
  // What an error is told as that HIP gives for work of earlier calls: with the kernels of this engine that may be it.
  // `refused`: whose launch got the error, if one did. AMD's HIP may begin a kernel and answer its launch with the
  // kernel's own fault (docs/simulated-gpu.md, "Where AMD's HIP answers otherwise").
  Failure earlier_kernel_failed(hip_abi::hipError_t error, const LoadedKernel* refused = nullptr);

 private:
  // What became of one kernel. `counted`: as what a call counts it. A kernel that HIP does not load was still found on
  // disk or compiled, and counts so.
  enum class Counted : std::uint8_t { memory, disk, compiled, failed };
  struct KernelOutcome {
    Result<const LoadedKernel*> kernel = fail(WAVEJIT_OUT_OF_MEMORY, {});
    Counted counted = Counted::failed;
    bool worked = false;
  };
  // All kernels of a shape; `counted` by the first of them.
  struct ShapeOutcome {
    Resolution resolution;
    Counted counted = Counted::failed;
  };
  static KernelOutcome without_work(KernelOutcome outcome);
  static ShapeOutcome without_work(ShapeOutcome outcome);

  template <typename Outcome>
  struct Flight {
    bool done = false;
    Outcome outcome;  // until the work has ended: out of memory, which is what an interrupted one leaves
  };
  struct ShapeHash {
    std::size_t operator()(const families::Shape& shape) const {
      return std::hash<std::uint64_t>()(shape.code) ^ std::hash<const void*>()(shape.family);
    }
  };
  // What is under way, by name.
  template <typename Name, typename Outcome, typename Hash = std::hash<Name>>
  struct Flights {
    std::unordered_map<Name, std::shared_ptr<Flight<Outcome>>, Hash> under_way;
    std::unordered_map<Name, Failure, Hash> failures;  // that would come again
  };
  template <typename Where, typename Name, typename Outcome>
  class Landing;

  // Does `work`, unless it failed before or another thread is at it; then waits for that thread. `lock` is that of
  // mutex_.
  template <typename Outcome, typename Where, typename Name, typename Work>
  Outcome work_once(std::unique_lock<std::mutex> lock, Where& flights, const Name& name, Work work);

  // One of a shape's kernels, and who made it.
  struct Made {
    KernelOutcome outcome;
    Phases phases;
    std::size_t worker = 0;
  };
  // Called when a kernel is nowhere: from here on it takes long.
  using BeforeCompile = std::function<void()>;

  ShapeOutcome route_and_load(const families::Shape& shape, Phases& phases, Helpers& helpers);
  // As many as the route has; a kernel that nobody began has Counted::failed.
  std::vector<Made> make_all(const families::Route& route, Helpers& helpers, Phases& waited);
  KernelOutcome load_once(const families::KernelSpec& spec, Phases& phases, const BeforeCompile& before_compile);
  KernelOutcome fetch_or_compile(const families::KernelSpec& spec, Phases& phases, const BeforeCompile& before_compile);

  // The error of HIP, if it refused.
  hip_abi::hipError_t load(LoadedKernel& kernel, KernelBinary binary, Phases& phases);
  void reject(const LoadedKernel& kernel, const cache::Key& key, std::size_t layer, hip_abi::hipError_t error);
  Failure load_failure(const LoadedKernel& kernel, hip_abi::hipError_t error);
  const LoadedKernel* keep(std::unique_ptr<LoadedKernel> kernel, Counted from);
  void count(const ShapeOutcome& outcome);

  const HipDevice& device_;
  const targets::Target& target_;
  const families::Toggles& toggles_;
  KernelSource& source_;
  Logger& logger_;
  Statistics& statistics_;

  KernelTable table_;
  LaunchTrail trail_;
  std::mutex mutex_;
  std::condition_variable landed_;
  // Several shapes may lead to one kernel.
  Flights<families::Shape, ShapeOutcome, ShapeHash> shapes_;
  Flights<std::string, KernelOutcome> specs_;
  std::vector<std::unique_ptr<LoadedKernel>> kernels_;
  std::vector<std::unique_ptr<LoadedKernels>> resolved_;
};

}  // namespace wavejit::runtime
