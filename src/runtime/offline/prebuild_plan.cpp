// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/offline/prebuild_plan.h"

#include <algorithm>
#include <memory>
#include <ranges>
#include <set>
#include <span>
#include <utility>

#include "boards/board.h"
#include "boards/known_products.h"
#include "cache/digest.h"
#include "families/call/family.h"
#include "targets/targets.h"

namespace wavejit::runtime {
namespace {

using families::KernelSpec;

constexpr int max_shards = 1'000'000;
constexpr std::string_view every_target = "all";

Result<std::vector<const boards::Board*>> parse_targets(std::string_view text) {
  std::vector<const boards::Board*> chosen;
  if (text == every_target) {
    for (const boards::Board& target : boards::complete_products()) chosen.push_back(&target);
    return chosen;
  }
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = text.substr(0, comma);
    const boards::Board* target = boards::find_product(name);
    if (target == nullptr) {
      return fail(WAVEJIT_INVALID_ARGUMENT, "targets: \"" + std::string(name) + "\" " + boards::why_no_board(name) +
                                                "; accepted: " + std::string(every_target) + ", or any of " +
                                                boards::known_products());
    }
    if (std::ranges::find(chosen, target) == chosen.end()) chosen.push_back(target);
    if (comma == text.size()) return chosen;
    text.remove_prefix(comma + 1);
  }
}

// The kernels of one list, each once.
class Gatherer {
 public:
  Gatherer(const Config& config, const PrebuildRequest& request)
      : toggles_(toggles_of(config)), shard_(request.shard), shards_(request.shards) {}

  Result<void> add(const families::Shape& shape, const targets::Target& target) {
    auto route = shape.family->route(shape, target, toggles_);
    if (!route) return std::unexpected(std::move(route.error()));
    // The first kernel last: who finds it finds the others, too.
    for (const families::RoutedKernel& kernel : route->kernels | std::views::reverse) add(kernel.spec);
    return {};
  }

  Result<void> add(const families::DescribedProblem& problem, const boards::Board& target) {
    const auto shape = problem.shape(target, toggles_);
    if (!shape) return std::unexpected(shape.error());
    return add(*shape, target);
  }

  const families::Toggles& toggles() const { return toggles_; }
  std::vector<KernelSpec> take() { return std::move(specs_); }
  bool found() const { return !seen_.empty(); }

 private:
  void add(KernelSpec spec) {
    const std::string text = spec.text();
    if (seen_.insert(text).second && is_ours(text)) specs_.push_back(std::move(spec));
  }

  // By the kernel alone, so that machines with different lists agree on who makes it.
  bool is_ours(const std::string& text) const {
    std::uint64_t number = 0;
    const cache::Digest digest = cache::digest_of(text);
    for (const std::uint8_t byte : std::span(digest.bytes).first<8>()) number = number << 8U | byte;
    return number % static_cast<std::uint64_t>(shards_) == static_cast<std::uint64_t>(shard_ - 1);
  }

  families::Toggles toggles_;
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
  using Problems = std::vector<std::unique_ptr<families::DescribedProblem>>;
  std::vector<std::pair<std::size_t, Problems>> lines;
  for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
    if (auto problems = families::parse_problems(request.descriptors[i])) {
      lines.emplace_back(i, *std::move(problems));
    } else {
      plan.refused.push_back({.line = i, .target = {}, .why = std::move(problems.error())});
    }
  }
  Gatherer gatherer(config, request);
  for (const boards::Board* target : *chosen) {
    if (request.everything) {
      for (const families::Family* family : families::registered()) {
        if (family->lacks(*target)) continue;
        for (const families::Shape& shape : family->every_shape(*target, gatherer.toggles())) {
          if (auto added = gatherer.add(shape, *target); !added) return std::unexpected(std::move(added.error()));
        }
      }
    }
    for (const auto& [line, problems] : lines) {
      Result<void> added;
      for (const auto& problem : problems) {
        if (auto one = gatherer.add(*problem, *target); !one && added) added = std::move(one);
      }
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
