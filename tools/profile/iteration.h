// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One turn of the loop in which a kernel spends its time, out of a timeline: what the page draws.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace wavejit::tools {

// `timeline`: Chrome's trace format as the simulated GPU gives it. The turn is one of the loop that jumped back most
// often, from one visit of its head by the first wave to the next; "is_iteration" is false where there is none, and the
// piece is then the timeline's beginning. Times count from the piece's first cycle:
//
//   {"is_iteration", "first", "cycles", "matrix_busy",
//    "kinds": [name…], "causes": [name…], "texts": [[offset, text]…],
//    "lanes": [{"name", "simd", "pipe": true, "spans": [[start, cycles, text]…]} or
//              {"name", "simd", "workgroup", "issued": [[start, cycles, kind, text]…], "waits": [[start, cycles,
//              cause]…],
//               "barriers": [arrival…]}],
//    "releases": [{"at", "workgroup"}…]}   when a barrier opened
//
// Null for a timeline without instructions.
nlohmann::json steady_iteration(const std::string& timeline);

}  // namespace wavejit::tools
