// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/workgroup_order.h"

#include <algorithm>

namespace wavejit::simgpu::checks {
namespace {

// Waves that poll many places keep one note for all of them.
constexpr std::size_t most_roots = 64;

}  // namespace

void WorkgroupOrder::prepare(LaunchOrder* launch, std::uint64_t workgroup, unsigned waves, bool stores_write_through) {
  launch_ = launch;
  stores_write_through_ = stores_write_through;
  workgroup_ = static_cast<std::uint32_t>(workgroup);
  waves_.resize(waves);
  for (WaveOrder& wave : waves_) {
    wave.written_back.assign(waves, no_access);
    wave.observed = nullptr;
    wave.acquired = nullptr;
  }
}

void WorkgroupOrder::begin_write_back(unsigned wave, const State& state, OrderTicket& ticket) {
  ticket.kind = OrderTicket::Kind::writes_back;
  ticket.covers.assign(state.safe.size(), state.before_barrier);
  ticket.covers[wave] = state.last;
}

void WorkgroupOrder::begin_access(unsigned wave, const Effects& effects, const Instruction& instruction,
                                  const LaneAddresses& lanes, AccessId id, const State& state,
                                  OrderTicket& ticket) const {
  ticket.kind = OrderTicket::Kind::synchronises;
  ticket.chains = effects.atomic;
  ticket.returns = effects.atomic ? instruction.destination_count != 0 : effects.loads;
  ticket.places.clear();
  ticket.found.clear();
  ticket.left = no_release;
  constexpr std::uint64_t dword = 4;
  for_active_lanes(lanes.lanes, [&](unsigned lane) {
    const std::uint64_t end = lanes.first[lane] + lanes.available[lane];
    for (std::uint64_t at = lanes.first[lane] & ~(dword - 1); at < end; at += dword) ticket.places.push_back(at);
  });
  ticket.release = {};
  if (!effects.stores) return;
  auto extents = std::make_shared<Extents>();
  extents->performed.assign(state.safe.begin(), state.safe.end());
  extents->performed[wave] = (state.oldest == no_access ? id : state.oldest) - 1;
  extents->written_back = waves_[wave].written_back;
  for (std::size_t i = 0; i < extents->performed.size(); ++i) {
    extents->performed[i] = std::max(extents->performed[i], extents->written_back[i]);
  }
  ticket.release = {.workgroup = workgroup_, .wave = wave, .self = id, .extents = std::move(extents), .before = {}};
  if (const Known& seen = waves_[wave].observed) ticket.release.before = seen->roots();
}

WorkgroupOrder::Known WorkgroupOrder::with(const Known& known, std::vector<ReleaseId> more) const {
  if (known != nullptr) more.insert(more.end(), known->roots().begin(), known->roots().end());
  std::ranges::sort(more);
  const auto again = std::ranges::unique(more);
  more.erase(again.begin(), again.end());
  if (known != nullptr && more == known->roots()) return known;
  if (more.size() > most_roots) {
    const ReleaseId all = launch_->join(more);
    if (all != no_release) more = {all};
  }
  return std::make_shared<Knowledge>(std::move(more));
}

void WorkgroupOrder::complete(unsigned wave, OrderTicket& ticket) {
  WaveOrder& order = waves_[wave];
  if (ticket.kind == OrderTicket::Kind::writes_back) {
    for (std::size_t i = 0; i < ticket.covers.size(); ++i) {
      order.written_back[i] = std::max(order.written_back[i], ticket.covers[i]);
    }
  } else if (ticket.kind == OrderTicket::Kind::synchronises && ticket.returns && !ticket.found.empty()) {
    order.observed = with(order.observed, std::move(ticket.found));
  }
  ticket.kind = OrderTicket::Kind::none;
}

void WorkgroupOrder::barrier() {
  const auto make_common = [&](Known WaveOrder::* part) {
    Known all = waves_.front().*part;
    for (const WaveOrder& wave : waves_) {
      if (wave.*part != nullptr && wave.*part != all) all = with(all, (wave.*part)->roots());
    }
    for (WaveOrder& wave : waves_) wave.*part = all;
  };
  make_common(&WaveOrder::observed);
  make_common(&WaveOrder::acquired);
  std::vector<AccessId>& common = waves_.front().written_back;
  for (const WaveOrder& wave : waves_) {
    for (std::size_t i = 0; i < common.size(); ++i) common[i] = std::max(common[i], wave.written_back[i]);
  }
  for (WaveOrder& wave : waves_) {
    if (&wave != &waves_.front()) wave.written_back = common;
  }
}

bool WorkgroupOrder::covers(const Known& known, const Other& other, bool& heard_of) const {
  if (known == nullptr) return false;
  launch_->complete(*known);
  const Knowledge::Of* of = known->of(other.workgroup);
  if (of == nullptr) return false;
  heard_of = true;
  const auto reaches = [&](const std::vector<AccessId>& extent) {
    return other.wave < extent.size() && extent[other.wave] >= other.id;
  };
  if (other.is_plain_write && !stores_write_through_) return reaches(of->written_back);
  return reaches(of->performed) || of->atomics.contains(Knowledge::atomic(other.wave, other.id));
}

WorkgroupOrder::Missing WorkgroupOrder::missing(unsigned wave, const Other& other, bool reads_plainly) const {
  if (!follows()) return Missing::everything;
  bool heard_of = false;
  if (!covers(waves_[wave].observed, other, heard_of)) return heard_of ? Missing::release : Missing::everything;
  if (!reads_plainly || covers(waves_[wave].acquired, other, heard_of)) return Missing::nothing;
  return Missing::acquire;
}

}  // namespace wavejit::simgpu::checks
