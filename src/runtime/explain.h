// What would happen, without doing it: the route of a descriptor, its key, whether it is on disk, and why each other
// route was refused. And what this version supports, from its own tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/codegen_library.h"
#include "runtime/config.h"
#include "runtime/failure.h"

namespace wavejit::runtime {

// `target` empty: the target of the configured device, which only a simulated one tells without being opened.
Result<std::vector<std::string>> explain(const Config& config, std::string_view descriptor, std::string_view target,
                                         CodegenLibrary& codegen);
std::vector<std::string> supported();

}  // namespace wavejit::runtime
