// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/merge_costs.h"

#include <string>

namespace wavejit::attention {

std::string describe_merge(Launches said, bool merged, const std::optional<MergeCosts>& costs,
                           const PartsToMerge& parts) {
  const std::string where =
      merged ? "merged in the same launch, by the last workgroup to arrive: " : "merged in a second launch: ";
  if (said != Launches::planned) return where + "the call says so";
  if (!costs) return where + "a workgroup has more rows than one of them merges faster";
  const MergeCycles cycles = cycles_of(*costs, parts);
  if (merged)
    return where + std::to_string(cycles.one) + " cycles predicted beyond the walk, " + std::to_string(cycles.two) +
           " in two launches";
  return where + std::to_string(cycles.two) + " cycles predicted beyond the walk, " + std::to_string(cycles.one) +
         " in one" + (cycles.one < cycles.two ? ": too little less" : "");
}

}  // namespace wavejit::attention
