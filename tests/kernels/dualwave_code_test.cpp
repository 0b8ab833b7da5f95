// The machine code of the dual-wave kernels against the schedule it was emitted from: every wait, every DMA, every
// barrier, every change of priority, and no wait besides. An automatic wait before LDS reads would mean that the table
// waits too late for its own wave (and then for others, too).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/codegen_api.h"
#include "kernels/facts.h"
#include "templates/attention_forward/call/ladders.h"
#include "templates/attention_forward/emit/dualwave_schedule.h"

namespace wavejit::tests {
namespace {

using namespace attention_forward::dualwave;
using attention_forward::KernelSpec;
using attention_forward::Pipeline;

std::string machine_code(const KernelSpec& spec) {
  const struct wavejit_codegen_table* table = wavejit_codegen_table(WAVEJIT_CODEGEN_ABI);
  wavejit_codegen_options options{};
  options.size = sizeof options;
  std::array<char, 256> error{};
  wavejit_codegen_service* service = table->create(&options, error.data(), error.size());
  if (service == nullptr) return error.data();
  wavejit_codegen_result kernel{};
  kernel.size = sizeof kernel;
  kernel.facts.size = sizeof kernel.facts;
  table->compile(service, to_text(spec).c_str(), &kernel);
  wavejit_codegen_result listing{};
  listing.size = sizeof listing;
  listing.facts.size = sizeof listing.facts;
  table->disassemble(service, kernel.code_object, kernel.code_object_bytes, &listing);
  std::string text(reinterpret_cast<const char*>(listing.code_object), listing.code_object_bytes);
  table->release(&kernel);
  table->release(&listing);
  table->destroy(service);
  return text;
}

// The clusters as they stand in the code: the steady state twice in the loop and once behind it.
std::vector<Cluster> clusters_in_code() {
  std::vector<Cluster> all;
  for (const auto& table : {start(), prologue(), steady(), steady(), steady(), drain()})
    all.insert(all.end(), table.begin(), table.end());
  return all;
}

std::vector<KernelSpec> dualwave_specs() {
  std::vector<KernelSpec> specs;
  for (const KernelSpec& spec : all_kernel_specs())
    if (spec.pipeline == Pipeline::dualwave && spec.lse && !spec.has(attention_forward::Modifier::bias))
      specs.push_back(spec);  // a bias waits, too
  // Ladders leave all of that where it is, also the one that fetches behind its reads.
  for (const attention_forward::Ladder& ladder : attention_forward::ladders(Pipeline::dualwave)) {
    if (ladder.name == attention_forward::standard_ladder) continue;
    specs.push_back(
        {.pipeline = Pipeline::dualwave, .tile_queries = 256, .target = "gfx950", .ladder = std::string(ladder.name)});
  }
  return specs;
}

TEST(DualWaveCode, WaitsFetchesAndMeetsAsTheTableSays) {
  ASSERT_FALSE(dualwave_specs().empty());
  for (const KernelSpec& spec : dualwave_specs()) {
    SCOPED_TRACE(to_text(spec));
    const int transfers = spec.head_dim_qk / 64;  // DMA instructions of a wave for one tile of K or V
    // The drain reads a buffer that is known at run time only; before that the compiler waits for every transfer.
    std::vector<int> waits = {0};
    int fetches = 0;
    int raised = 0;
    for (const Cluster& cluster : clusters_in_code()) {
      if (cluster.batches_in_flight >= 0) waits.push_back(cluster.batches_in_flight * transfers);
      fetches += static_cast<int>(
          std::ranges::count_if(cluster.fetch, [](const Tile& tile) { return tile.stream != Stream::none; }));
      raised += cluster.raised_priority ? 1 : 0;
    }

    std::vector<int> seen_waits;
    int seen_fetches = 0;
    int seen_barriers = 0;
    int seen_priorities = 0;
    std::istringstream lines(machine_code(spec));
    const std::regex vmcnt(R"(vmcnt\((\d+)\))");
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (line.contains("s_waitcnt") && std::regex_search(line, match, vmcnt))
        seen_waits.push_back(std::stoi(match[1]));
      if (line.contains("buffer_load_dwordx4") && line.ends_with(" lds")) ++seen_fetches;
      if (line.contains("s_barrier")) ++seen_barriers;
      if (line.contains("s_setprio")) ++seen_priorities;
    }
    std::ranges::sort(waits);
    std::ranges::sort(seen_waits);
    EXPECT_EQ(seen_waits, waits);
    EXPECT_EQ(seen_fetches, fetches * transfers);
    EXPECT_EQ(seen_barriers, std::ssize(clusters_in_code()) + 2)
        << "one a cluster, one opens the stagger, one closes it";
    EXPECT_EQ(seen_priorities, 2 * raised);
  }
}

}  // namespace
}  // namespace wavejit::tests
