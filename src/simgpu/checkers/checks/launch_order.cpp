// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/launch_order.h"

#include <algorithm>

namespace wavejit::simgpu::checks {
namespace {

void raise(std::vector<AccessId>& known, const std::vector<AccessId>& by) {
  if (known.size() < by.size()) known.resize(by.size(), no_access);
  for (std::size_t wave = 0; wave < by.size(); ++wave) known[wave] = std::max(known[wave], by[wave]);
}

}  // namespace

const Knowledge::Of* Knowledge::of(std::uint32_t workgroup) const {
  const auto found = of_.find(workgroup);
  return found == of_.end() ? nullptr : &found->second;
}

ReleaseId LaunchOrder::add(Release release) {
  if (releases_.size() >= most_releases) return no_release;
  releases_.push_back(std::move(release));
  return static_cast<ReleaseId>(releases_.size());
}

ReleaseId LaunchOrder::join(std::vector<ReleaseId> notes) {
  const std::scoped_lock lock(mutex_);
  return add({.before = std::move(notes)});
}

ReleaseId LaunchOrder::pass_notes(std::span<const std::uint64_t> places, Release* release, bool chains,
                                  std::vector<ReleaseId>& found) {
  const ReleaseId mine = release == nullptr ? no_release : add(std::move(*release));
  // Lanes that share a place find each other's.
  ReleaseId joined = no_release;
  ReleaseId joined_with = no_release;
  for (const std::uint64_t place : places) {
    const auto note = notes_.find(place);
    const ReleaseId before = note == notes_.end() ? no_release : note->second;
    if (before != no_release && before != mine && before != joined && (release == nullptr || chains)) {
      if (found.empty() || found.back() != before) found.push_back(before);
    }
    if (mine == no_release || before == mine || (before != no_release && before == joined)) continue;
    ReleaseId next = mine;
    if (chains && before != no_release) {
      if (before != joined_with) {
        joined = add({.before = {mine, before}});
        joined_with = before;
      }
      next = joined;
    }
    notes_[place] = next;
  }
  return mine;
}

void LaunchOrder::complete(Knowledge& knowledge) {
  if (knowledge.is_complete_) return;
  const std::scoped_lock lock(mutex_);
  knowledge.is_complete_ = true;
  std::vector<ReleaseId> open = knowledge.roots_;
  std::unordered_set<ReleaseId> seen(open.begin(), open.end());
  while (!open.empty()) {
    const Release& release = releases_[open.back() - 1];
    open.pop_back();
    for (const ReleaseId before : release.before) {
      if (before != no_release && seen.insert(before).second) open.push_back(before);
    }
    if (release.workgroup == 0) continue;
    Knowledge::Of& of = knowledge.of_[release.workgroup];
    raise(of.performed, release.extents->performed);
    raise(of.written_back, release.extents->written_back);
    of.atomics.insert(Knowledge::atomic(release.wave, release.self));
  }
}

}  // namespace wavejit::simgpu::checks
