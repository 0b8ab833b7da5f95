// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/run/turns.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/run/workgroup.h"

namespace wavejit::simgpu {
namespace {

// Where workgroups wait for each other a turn is short. Before others are thought of it is a second or two, or ends
// when a workgroup has slept for long.
constexpr std::int64_t short_turn = 20'000;
constexpr std::int64_t long_turn = std::int64_t{1} << 24;
// A workgroup that takes turns keeps its registers and LDS.
constexpr std::size_t most_waiting = 64;

}  // namespace

bool run_in_turns(Launch& launch, WorkgroupRunner& runner, std::uint64_t first, const WorkerPool::Take& take,
                  const std::function<std::uint64_t(std::uint64_t)>& id_of) {
  const auto runs = [&](std::uint64_t workgroup) {
    return !launch.is_stopped() && (launch.cooperative ? !launch.failed() : launch.runs(workgroup));
  };
  if (!runs(id_of(first))) return false;
  std::vector<std::unique_ptr<WorkgroupRunner>> others;
  std::vector<WorkgroupRunner*> running = {&runner};
  runner.begin(launch, id_of(first));
  while (!running.empty()) {
    const std::int64_t instructions = launch.cooperative || !others.empty() ? short_turn : long_turn;
    std::erase_if(running, [&](WorkgroupRunner* one) {
      const bool is_over = !runs(one->workgroup()) || one->advance(instructions);
      if (is_over) one->finish();
      return is_over;
    });
    // As many again: a thread must not take all before the next one is awake.
    const std::size_t most = launch.cooperative ? ~std::size_t{0} : most_waiting;
    for (std::size_t more = running.size(); more > 0 && running.size() < most; --more) {
      const auto next = take();
      if (!next) break;
      if (!runs(id_of(*next))) return false;
      others.push_back(std::make_unique<WorkgroupRunner>());
      others.back()->begin(launch, id_of(*next));
      running.push_back(others.back().get());
    }
  }
  return runs(id_of(first));
}

}  // namespace wavejit::simgpu
