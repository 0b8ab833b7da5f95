// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Engine::statistics_json: the counters for machines, and what each kernel cost to get.
#include <nlohmann/json.hpp>

#include "runtime/call/engine.h"

namespace wavejit::runtime {
namespace {

const char* origin_text(wavejit_origin origin) {
  switch (origin) {
    case WAVEJIT_ORIGIN_MEMORY:
      return "memory";
    case WAVEJIT_ORIGIN_DISK:
      return "disk";
    case WAVEJIT_ORIGIN_COMPILED:
      return "compiled";
    default:
      return "none";
  }
}

}  // namespace

std::string Engine::statistics_json() const {
  wavejit_statistics counters{};
  fill(counters);
  nlohmann::ordered_json json = {
      {"target", target_id_},
      {"device", device_.name},
      {"sealed", sealed()},
      {"calls", counters.calls},
      {"prepared", counters.prepared},
      {"memory_hits", counters.memory_hits},
      {"disk_hits", counters.disk_hits},
      {"misses", counters.misses},
      {"compiled", counters.compiled},
      {"compile_failures", counters.compile_failures},
      {"refused_sealed", counters.refused_sealed},
      {"refused_capturing", counters.refused_capturing},
      {"refused_no_compile", counters.refused_no_compile},
      {"refused_unsupported", counters.refused_unsupported},
      {"published", counters.published},
      {"publish_failures", counters.publish_failures},
      {"damaged_entries", counters.damaged_entries},
      {"cache_io_faults", counters.cache_io_faults},
      {"loader_rejections", counters.loader_rejections},
      {"remote_lookups", counters.remote_lookups},
      {"remote_hits", counters.remote_hits},
      {"remote_misses", counters.remote_misses},
      {"remote_damaged", counters.remote_damaged},
      {"remote_faults", counters.remote_faults},
      {"remote_skipped", counters.remote_skipped},
      {"remote_publishes", counters.remote_publishes},
      {"remote_published", counters.remote_published},
      {"remote_publish_failures", counters.remote_publish_failures},
      {"remote_dropped", counters.remote_dropped},
      {"compile_ns", counters.compile_ns},
      {"load_ns", counters.load_ns},
      {"kernels", nlohmann::ordered_json::array()},
  };
  for (const KernelRecord& record : records_.all()) {
    const Phases& phases = record.phases;
    json["kernels"].push_back({{"kernel_spec", record.spec_text},
                               {"key", record.key},
                               {"descriptor", record.descriptor},
                               {"origin", origin_text(record.origin)},
                               {"thread", record.thread},
                               {"route_ns", phases.route_ns},
                               {"lookup_ns", phases.lookup_ns},
                               {"emit_ns", phases.emit_ns},
                               {"lower_ns", phases.lower_ns},
                               {"link_ns", phases.link_ns},
                               {"inspect_ns", phases.inspect_ns},
                               {"publish_ns", phases.publish_ns},
                               {"load_ns", phases.load_ns}});
  }
  // A device's name is not ours to vouch for: what is no UTF-8 is replaced, never thrown at.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace wavejit::runtime
