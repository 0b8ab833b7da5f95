// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/attention_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "templates/attention/program/cache_bytes.h"
#include "templates/attention/program/inputs.h"
#include "templates/attention/program/key_lists.h"
#include "templates/attention/program/row_reference.h"
#include "templates/attention/program/sampling.h"
#include "templates/attention/program/written_rows.h"
#include "templates/attention_forward/kernel/spec.h"
#include "templates/attention_forward/program/device_case.h"

namespace wavejit::attention_forward::program {

namespace {

// Whether a workgroup is a tile of one head in the grid's order: not where keys are split or long and short queries are
// mixed, which takes launches whose workgroups do not correspond, nor where heads are packed.
bool workgroups_are_tiles(const ForwardKernel& spec) {
  return spec.split_keys == 0 && !spec.shares_call() && !spec.packed_heads;
}

// The whole, chosen workgroups, or views: calls of some rows each.
struct AttentionPlan : Plan {
  std::vector<View> views;
  std::int64_t tile_rows = 0;
  bool pairs = false;  // of tiles in a workgroup
};

class AttentionWritten : public Written {
 public:
  AttentionWritten(Rows numbers, WrittenRows bits) : rows_(std::move(numbers)), bits_(std::move(bits)) {}

  const Rows& rows() const { return rows_; }
  const WrittenRows& bits() const { return bits_; }

  bool same_as(const Written& other) const override {
    return bits_ == static_cast<const AttentionWritten&>(other).bits_;
  }

  std::string difference(const Written& other) const override {
    const WrittenRows& others = static_cast<const AttentionWritten&>(other).bits_;
    for (const auto& [head, rows] : bits_) {
      const auto found = others.find(head);
      if (found == others.end()) continue;
      for (const auto& [row, bits] : rows) {
        const auto same = found->second.find(row);
        if (same != found->second.end() && !(same->second == bits))
          return fmt::format("sequence {}, head {}, row {}", head.sequence, head.head, row);
      }
    }
    return {};
  }

 private:
  Rows rows_;
  WrittenRows bits_;
};

const AttentionPlan& own(const Plan& plan) { return static_cast<const AttentionPlan&>(plan); }

class AttentionCase : public Case {
 public:
  explicit AttentionCase(const Experiment& problem)
      : problem_(problem),
        inputs_(inputs_of(problem)),
        work_(multiplications(problem)),
        has_lists_(problem.list_rows != 0 || list_words(problem.text).top_k != 0) {}

  std::uint64_t device_bytes() const override { return program::device_bytes(problem_); }

  Result<void> prepare(wavejit_engine* engine) override {
    reference_.emplace(problem_, inputs_);
    auto device = DeviceCase::prepare(engine, problem_, inputs_, reference_->head_values());
    if (!device) return std::unexpected(device.error());
    device_.emplace(std::move(*device));
    return {};
  }

  Result<void> run(wavejit_engine* engine, wavejit_call_report* report) override {
    ran_least_ = false;
    return device_->run(engine, report);
  }

  std::int64_t rows() const override { return queries_of(problem_).rows(); }
  Result<std::uint64_t> workspace_bytes(wavejit_engine* engine) const override {
    return device_->workspace_bytes(engine);
  }

  std::uint64_t race_shadow_bytes(const Plan& plan) const override {
    const AttentionPlan& of = own(plan);
    if (of.workgroups.total != 0)
      return program::race_shadow_bytes(problem_, of.workgroups.count, of.pairs ? 2 * of.tile_rows : of.tile_rows);
    std::int64_t rows = 0;
    for (const View& view : of.views) rows = std::max(rows, view.rows * problem_.group());
    return program::race_shadow_bytes(problem_, of.views.size(), rows);
  }

  std::unique_ptr<Plan> plan(const std::string& kernel_spec, double limit) const override {
    auto plan = std::make_unique<AttentionPlan>();
    // Rows cannot leave their blocks, nor the lists of theirs: lists go whole.
    if (work_ <= limit || has_lists_) return plan;
    const auto spec = parse_spec(kernel_spec);
    if (ran_least_ || !spec || !workgroups_are_tiles(*spec)) {
      plan->views = choose_views(problem_, limit);
      plan->text = fmt::format("{} run{} of up to 256 rows of a kv head", plan->views.size(),
                               plan->views.size() == 1 ? "" : "s");
      return plan;
    }
    plan->tile_rows = spec->tile_queries;
    plan->pairs = spec->paired_tiles;
    const Workgroups chosen = choose_workgroups(problem_, plan->tile_rows, limit, plan->pairs);
    if (chosen.count == chosen.total) return plan;
    plan->workgroups = chosen;
    plan->text = fmt::format("{} of {} workgroups", chosen.count, chosen.total);
    return plan;
  }

  Result<void> run_plan(wavejit_engine* engine, const Plan& plan) override {
    if (own(plan).views.empty()) return device_->run(engine, nullptr);
    for (const View& view : own(plan).views)
      if (auto ran = device_->run(engine, view, nullptr); !ran) return ran;
    return {};
  }

  // The whole takes several launches, of which a part of it may need one.
  Result<void> run_least(wavejit_engine* engine, double limit, wavejit_call_report* report) override {
    ran_least_ = true;
    return work_ <= limit || has_lists_ ? device_->run(engine, report)
                                        : device_->run(engine, choose_views(problem_, limit).front(), report);
  }

  // Pipelines compute the same bits, also where one of them splits the keys (docs/canonical-arithmetic.md).
  bool same_bits(const std::string& /*kernel_spec*/, const std::string& /*other*/) const override { return true; }

  Result<void> erase() override { return device_->erase(); }

  Result<std::unique_ptr<Written>> written() const override {
    auto rows = device_->written();
    if (!rows) return std::unexpected(rows.error());
    auto bits = device_->read(*rows);
    if (!bits) return std::unexpected(bits.error());
    return std::make_unique<AttentionWritten>(std::move(*rows), std::move(*bits));
  }

  // Every row that the plan runs, and no other.
  std::string missing(const Written& written, const Plan& plan, std::uint64_t workgroups) const override {
    const AttentionPlan& of = own(plan);
    const Rows& rows = static_cast<const AttentionWritten&>(written).rows();
    if (of.workgroups.total != 0) {
      std::int64_t tiles = 0;
      const std::string partial = partial_tile(problem_, rows, of.tile_rows, tiles);
      if (!partial.empty()) return "a workgroup wrote some of its rows only: " + partial;
      // Packed sequences are shorter than the grid.
      const std::uint64_t owned = of.pairs ? tiles_of(problem_, of.workgroups, of.tile_rows, true) : workgroups;
      const bool all = std::cmp_equal(tiles, owned) || (problem_.packed_queries() && std::cmp_less(tiles, owned));
      return all && (!of.pairs || workgroups == of.workgroups.count)
                 ? std::string()
                 : fmt::format("{} workgroups ran and wrote {} of {} tiles", workgroups, tiles, owned);
    }
    const Rows expected = of.views.empty() ? all_rows(problem_) : rows_of(problem_, of.views);
    if (rows == expected) return {};
    return fmt::format("{} rows were written instead of {}", count_of(rows), count_of(expected));
  }

  Result<std::string> broken_fence() const override { return device_->broken_fence(); }

  Comparison compare(const Written& written, double limit) override {
    const auto& got = static_cast<const AttentionWritten&>(written);
    const Rows compared = choose_rows(problem_, got.rows(), limit);
    reference_->want(compared);
    return program::compare_rows(problem_, *reference_, compared, got.bits());
  }

 private:
  const Experiment& problem_;
  Inputs inputs_;
  double work_;  // multiplications of the whole
  bool has_lists_;
  bool ran_least_ = false;  // the last time that the case was run
  std::optional<Reference> reference_;
  std::optional<DeviceCase> device_;
};

}  // namespace

std::unique_ptr<Case> ParsedProblem::make_case() const { return std::make_unique<AttentionCase>(problem_); }

}  // namespace wavejit::attention_forward::program
