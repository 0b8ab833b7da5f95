// What `wavejit run --cycles` tells: the simulated GPU's prediction of the time a launch takes, for people.
#pragma once

#include <string>

namespace wavejit::tools {

// `lines`: one JSON object for each launch, as wavejit_simgpu_take_cycles gives them. The same lines as one JSON array
// are what programs get.
std::string cycles_text(const std::string& lines);

}  // namespace wavejit::tools
