#include "runtime/prebuild_plan.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "cache/digest.h"
#include "runtime/descriptor.h"
#include "runtime/engine.h"
#include "runtime/route.h"
#include "runtime/splits.h"
#include "targets/targets.h"
#include "templates/attention_combine/call/spec.h"

namespace wavejit::runtime {
namespace {

using families::KernelSpec;

constexpr int max_shards = 1'000'000;

Result<std::vector<const targets::Target*>> parse_targets(std::string_view text) {
  std::vector<const targets::Target*> chosen;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, comma);
    const targets::Target* target = targets::find_target(name);
    if (target == nullptr) {
      return fail(WAVEJIT_INVALID_ARGUMENT,
                  "targets: \"" + std::string(name) + "\" is not known; accepted: " + targets::known_targets());
    }
    if (std::ranges::find(chosen, target) == chosen.end()) chosen.push_back(target);
    if (comma == text.size()) return chosen;
    text.remove_prefix(comma + 1);
  }
}

// What calls without modifiers can reach: short queries and long ones, and split keys where the engine's own number of
// splits says so.
std::vector<AttentionShape> everything(const targets::Target& target, const Config& config) {
  std::vector<AttentionShape> shapes;
  for (AttentionShape shape : supported_shapes(target, toggles_of(config))) {
    // What queries of every length lead to.
    for (const auto rows : attention_forward::all_query_rows) {
      shape.query_rows = rows;
      shapes.push_back(shape);
      if (config.kv_splits.value.value_or(1) > 1) shapes.push_back(shape.of_split_kernel());
    }
  }
  return shapes;
}

// The kernels of one list, each once.
class Gatherer {
 public:
  Gatherer(const Config& config, const PrebuildRequest& request)
      : config_(config), toggles_(toggles_of(config)), shard_(request.shard), shards_(request.shards) {}

  Result<void> add(const AttentionShape& shape, const targets::Target& target) {
    auto route = choose_route(shape, target, toggles_);
    if (!route) return std::unexpected(std::move(route.error()));
    if (shape.split) add(attention_combine::combine_of(route->spec));
    add(std::move(route->spec));
    return {};
  }

  Result<void> add(const AttentionProblem& problem, const targets::Target& target) {
    const auto plan = plan_splits(problem, target, config_.kv_splits.value);
    if (!plan) return std::unexpected(plan.error());
    return add(kernel_shape(problem, *plan), target);
  }

  std::vector<KernelSpec> take() { return std::move(specs_); }
  bool found() const { return !seen_.empty(); }

 private:
  void add(KernelSpec spec) {
    const std::string text = families::to_text(spec);
    if (seen_.insert(text).second && is_ours(text)) specs_.push_back(std::move(spec));
  }

  // By the kernel alone, so that machines with different lists agree on who makes it.
  bool is_ours(const std::string& text) const {
    std::uint64_t number = 0;
    const cache::Digest digest = cache::digest_of(text);
    for (const std::uint8_t byte : std::span(digest.bytes).first<8>()) number = number << 8U | byte;
    return number % static_cast<std::uint64_t>(shards_) == static_cast<std::uint64_t>(shard_ - 1);
  }

  const Config& config_;
  Toggles toggles_;
  int shard_;
  int shards_;
  std::vector<KernelSpec> specs_;
  std::set<std::string> seen_;
};

}  // namespace

Result<PrebuildPlan> plan_prebuild(const Config& config, const PrebuildRequest& request) {
  auto chosen = parse_targets(request.targets);
  if (!chosen) return std::unexpected(std::move(chosen.error()));
  if (request.shards < 1 || request.shards > max_shards || request.shard < 1 || request.shard > request.shards) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "shard = " + std::to_string(request.shard) +
                                              " of shards = " + std::to_string(request.shards) +
                                              "; accepted: 1 to shards, of up to " + std::to_string(max_shards));
  }
  PrebuildPlan plan;
  std::vector<std::pair<std::size_t, AttentionProblem>> problems;
  for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
    if (auto descriptor = parse_descriptor(request.descriptors[i])) {
      problems.emplace_back(i, problem_of(*descriptor));
    } else {
      plan.refused.push_back({.line = i, .target = {}, .why = std::move(descriptor.error())});
    }
  }
  Gatherer gatherer(config, request);
  for (const targets::Target* target : *chosen) {
    if (request.everything) {
      for (const AttentionShape& shape : everything(*target, config)) {
        if (auto added = gatherer.add(shape, *target); !added) return std::unexpected(std::move(added.error()));
      }
    }
    for (const auto& [line, problem] : problems) {
      auto added = gatherer.add(problem, *target);
      if (!added)
        plan.refused.push_back({.line = line, .target = std::string(target->id), .why = std::move(added.error())});
    }
  }
  if (!gatherer.found() && plan.refused.empty()) {
    return fail(WAVEJIT_UNSUPPORTED, "no kernel to build for targets " + std::string(request.targets) +
                                         " with these settings; accepted: what `wavejit supported` lists");
  }
  plan.specs = gatherer.take();
  return plan;
}

}  // namespace wavejit::runtime
