// From a problem to a kernel: a pure function of the problem's shape, the target and the toggles. No environment, no
// clock, no device; the same question has the same answer everywhere, and the answer says why not the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/failure.h"
#include "runtime/problem.h"
#include "targets/targets.h"
#include "templates/attention_forward/call/parameters.h"
#include "templates/attention_forward/call/spec.h"

namespace wavejit::runtime {

// What a caller may force.
struct Toggles {
  std::optional<attention_forward::OutputStore> output_store = std::nullopt;  // nothing: the target's own
  attention_forward::Lowering lowering = attention_forward::Lowering::llvm;
  std::optional<attention_forward::Pipeline> pipeline = std::nullopt;  // nothing: by target and query length
  // Of the dual-wave pipeline; others have neither.
  bool stagger = true;
  bool raised_priority = true;
  // What a developer pins (config.h); 0, empty: what the template prefers.
  int tile_queries = 0;
  std::string ladder = {};  // NOLINT(readability-redundant-member-init): as above, for initializers

  bool pins() const { return pipeline.has_value() || tile_queries != 0 || !ladder.empty(); }
};

struct Refusal {
  std::string route;  // "generic 128x64, permlane O store"
  std::string reason;
};

struct Route {
  attention_forward::KernelSpec spec;
  attention_forward::Resources resources;
  std::vector<Refusal> refused;
};

// WAVEJIT_UNSUPPORTED with the reason when no route is left.
Result<Route> choose_route(const AttentionShape& shape, const targets::Target& target, const Toggles& toggles);

// "generic 128x64, 4 waves, scalar O store"
std::string describe(const Route& route);

// Every shape that has a kernel on the target with these toggles, in the order in which people list them.
std::vector<AttentionShape> supported_shapes(const targets::Target& target, const Toggles& toggles);
// The words of a shape, as descriptors have them: "fp16 d128 causal lse".
std::string to_text(const AttentionShape& shape);

}  // namespace wavejit::runtime
