// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel family is to the runtime and to its tools. No LLVM, no HIP.
//
// A family answers three kinds of question. Of a line of text: what does it ask for, which kernels is that, and what is
// worth saying about it (DescribedProblem, Family)? Of a shape, which is everything of a call that changes code: which
// kernels, and why not others (Route)? Of a call under way: what is launched, with which arguments and memory (Call,
// LaunchPlan)? docs/adding-a-family.md walks through them with an example.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "boards/board.h"
#include "families/call/failure.h"
#include "families/kernel/kernel_spec.h"
#include "families/kernel/toggles.h"
#include "targets/targets.h"
#include "wavejit/wavejit.h"

namespace wavejit::families {

class Family;

// Everything of a call that changes code, as one number of its family's own: what the kernel table is asked with.
struct Shape {
  const Family* family = nullptr;
  std::uint64_t code = 0;  // never 0 in a shape of a call
  bool operator==(const Shape&) const = default;
};

// A kernel that a call launches.
struct RoutedKernel {
  std::string label;  // "spec" of the first, which the call is counted by; what others are for: "combine"
  KernelSpec spec;
};

struct Refusal {
  std::string kernel;  // "generic 128x64, permlane O store"
  std::string reason;
};

// The kernels of a shape. A call launches them in this order, unless its plan says otherwise.
struct Route {
  std::vector<RoutedKernel> kernels;
};

// Why these, and why not others. For people only, so that no call waits for it.
struct Explanation {
  std::string description;  // "generic 128x64, 4 waves, scalar O store"
  std::string cost;         // "34048 bytes of LDS, up to 256 VGPRs, 4 workgroups per CU"
  std::vector<Refusal> refused;
};

// ---- A call under way -----------------------------------------------------------------------------------------------

// The most kernels that one call launches.
inline constexpr std::size_t max_launches = 4;

// Workgroups of a launch.
struct Grid {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

struct Launch {
  std::uint32_t grid_x = 1;  // workgroups
  std::uint32_t grid_y = 1;
  std::uint32_t grid_z = 1;
  std::uint32_t threads = 1;  // of a workgroup
  std::uint32_t dynamic_lds_bytes = 0;
  void* arguments = nullptr;  // stands in the call, and stays there until all is launched
  std::size_t argument_bytes = 0;
  std::uint32_t kernel = 0;  // of the route, which kernel: LaunchPlan::add says it
};

// One launch a kernel of the route, in the order in which they go: the route's, or another where the first kernel,
// which a call is counted by, needs what a later one makes.
struct LaunchPlan {
  std::array<Launch, max_launches> launches{};
  std::size_t count = 0;
  void add(const Launch& launch) { add(launch, count); }
  void add(const Launch& launch, std::size_t kernel) {
    launches[count] = launch;
    launches[count++].kernel = static_cast<std::uint32_t>(kernel);
  }
  // Workgroups of `threads` threads, with a struct of arguments that stands in the call.
  template <typename Arguments>
  void add(const Grid& grid, int threads, Arguments& arguments) {
    add({.grid_x = grid.x,
         .grid_y = grid.y,
         .grid_z = grid.z,
         .threads = static_cast<std::uint32_t>(threads),
         .arguments = &arguments,
         .argument_bytes = sizeof arguments});
  }
};

// How a family reads what a caller left in device memory; the stream has come to rest.
class DeviceMemory {
 public:
  // The error is the device's own sentence.
  virtual std::expected<void, std::string> read(void* host, const void* device, std::size_t bytes) = 0;

 protected:
  ~DeviceMemory() = default;
};

// For refusals of a call whose workspace is not to be had.
struct WorkspaceWords {
  std::string reason;    // "splits = 4"
  std::string captured;  // why a call needs one: "keys are split (4 splits)"
  std::string instead;   // "fewer splits"
};

// A checked call, on the stack of its C function: what the engine asks on the way to a launch. Hot: nothing here
// allocates unless its comment says so.
class Call {
 public:
  const Shape& shape() const { return shape_; }

  std::uint64_t workspace_bytes = 0;  // of device memory that its kernels need beside its tensors
  // A call whose workspace would be too large goes in rounds: each is planned and launched by itself, one behind the
  // other on the stream, over the same workspace. `plan` asks which it is.
  std::uint32_t rounds = 1;
  std::uint32_t round = 0;
  void* workspace = nullptr;  // the caller's; null: the engine's own
  // Counters by which workgroups find out which of them arrives last, 32 bits each. The engine owns them: they are zero
  // before and after each launch, and no launch that may run at the same time shares them.
  std::uint32_t arrivals = 0;             // how many the call needs
  void* arrival_counters = nullptr;       // where they are; set before `plan` is called
  wavejit_call_report* report = nullptr;  // null: not wanted
  bool judges_device_memory = false;      // a debug mode: what stands in device memory is read and judged first

  using Kernels = std::span<const KernelSpec* const>;
  // The launches of `kernels`, which are the route's for this call's shape. `memory` has workspace_bytes bytes.
  virtual Result<void> plan(Kernels kernels, const void* memory, LaunchPlan& plan) = 0;

  // A call whose keys are split can be launched in three ways with equal bits (docs/split-keys.md): as it was planned;
  // with its keys whole, which needs no workspace; or with its parts merged by a second launch, which needs no counters.
  // The engine takes another way than the planned one when a capture has no workspace or no counters, and when kernels
  // are missing that may not be compiled now.
  enum class Way : std::uint8_t { planned, whole, two_launches };
  Way way = Way::planned;
  bool may_go_whole = false;      // the keys are split, and Way::whole is possible
  bool chose_to_split = false;    // the plan chose to split the keys; the caller did not ask for it
  bool chose_one_launch = false;  // the plan chose to merge in one launch; the caller did not ask for it
  // Plans the call again, and sets `way`. Only calls that may_go_whole are asked for `whole`, and only those with arrivals for
  // `two_launches`.
  virtual void take(Way /*way*/) {}

  // Whether the workspace that the caller brings is large enough, and nobody else's.
  virtual Result<void> check_workspace() const { return {}; }

  // Cold from here on; these allocate.
  // What a call wants when its kernels are not loaded.
  enum class WhenMissing : std::uint8_t { make_them, refuse, refuse_and_make_them_behind };
  virtual WhenMissing when_missing() const { return WhenMissing::make_them; }
  // The call as a problem descriptor: whole for logs, or with only what leads to its kernels.
  enum class Line : std::uint8_t { whole, of_kernels };
  virtual std::string descriptor(Line line) const = 0;
  virtual Result<void> judge(DeviceMemory& /*memory*/) const { return {}; }
  virtual WorkspaceWords workspace_words() const { return {}; }

 protected:
  explicit Call(Shape shape) : shape_(shape) {}
  ~Call() = default;
  Call(const Call&) = default;
  Call& operator=(const Call&) = default;

  Shape shape_;
};

// ---- A line of text -------------------------------------------------------------------------------------------------

// A row of `wavejit explain`.
struct Note {
  std::string label;
  std::string text;
};

// What a problem descriptor asks for.
class DescribedProblem {
 public:
  virtual ~DescribedProblem() = default;

  // Canonical: words in the grammar's order, defaults left out.
  virtual std::string text() const = 0;
  virtual Result<Shape> shape(const boards::Board& board, const Toggles& toggles) const = 0;
  // What else explain shows, behind the route.
  virtual std::vector<Note> notes(const boards::Board& /*board*/, const Toggles& /*toggles*/) const { return {}; }
  // For a line with ranges, or whose calls depend on more than the line says: problems that together reach every kernel
  // that any call of the line can reach. Empty: the line is one problem.
  virtual std::vector<std::unique_ptr<DescribedProblem>> of_single_lengths() const { return {}; }
  virtual bool has_range() const { return !of_single_lengths().empty(); }
};

class Family {
 public:
  virtual std::string_view name() const = 0;  // its folder's, and the first word of its descriptors

  // WAVEJIT_INVALID_ARGUMENT for what is no descriptor, WAVEJIT_UNSUPPORTED for words of the grammar that this version
  // does not do; both with the word, its position and what is accepted. The first word is the family's name.
  virtual Result<std::unique_ptr<DescribedProblem>> parse(std::string_view descriptor) const = 0;

  // A pure function: the same question has the same answer everywhere. WAVEJIT_UNSUPPORTED with the reason when no
  // route is left.
  virtual Result<Route> route(const Shape& shape, const targets::Target& target, const Toggles& toggles) const = 0;
  // Whether launches of such a shape count arrivals (Call::arrivals).
  virtual bool counts_arrivals(const Shape& /*shape*/) const { return false; }
  // The explanation of a shape that has a route.
  virtual Explanation explain(const Shape& shape, const targets::Target& target, const Toggles& toggles) const = 0;
  // The same refusal for a caller of the C ABI: with the field that stands in the way.
  virtual Failure name_field(const Shape& /*shape*/, const targets::Target& /*target*/, Failure failure) const {
    return failure;
  }

  // What `wavejit prebuild` makes without a list.
  virtual std::vector<Shape> every_shape(const targets::Target& target, const Toggles& toggles) const = 0;
  // Words of Toggles::pins. Whether this one is the family's and says what it should, and which words are:
  // "tile_queries=<rows>, ladder=<name>"; empty: the family has none.
  virtual bool takes_pin(std::string_view /*word*/) const { return false; }
  virtual std::string_view accepted_pins() const { return {}; }

  // Why none of its kernels stand on this target, in one sentence; nothing where some do. It is asked before any other
  // question about a target.
  virtual std::optional<std::string> lacks(const targets::Target& /*target*/) const { return std::nullopt; }

  // What `wavejit supported` prints of a target behind the family's name, and of all targets.
  virtual std::string supported(const targets::Target& target) const = 0;
  virtual std::vector<std::string> supported_everywhere() const { return {}; }

 protected:
  ~Family() = default;
};

// ---- All of them ----------------------------------------------------------------------------------------------------

// registry.cpp. In the order of WAVEJIT_FAMILIES (CMakeLists.txt).
std::span<const Family* const> registered();
// By the first word. A line with ranges of lengths is refused.
Result<std::unique_ptr<DescribedProblem>> parse_problem(std::string_view descriptor);
// Refuses a word among a caller's pins that no family takes, with what is accepted, or one that repeats another.
Result<void> check_pins(std::string_view pins);
// For what makes kernels ahead of calls: one problem, or those that a line with ranges stands for.
Result<std::vector<std::unique_ptr<DescribedProblem>>> parse_problems(std::string_view descriptor);

}  // namespace wavejit::families
