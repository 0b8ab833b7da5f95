// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How the structs of wavejit.h and prebuild.h grew that are no family's call: families/call/struct_size.h has the rule.
#pragma once

#include <array>
#include <cstddef>

#include "families/call/struct_size.h"
#include "wavejit/prebuild.h"
#include "wavejit/wavejit.h"

namespace wavejit::families {

template <>
struct Versions<wavejit_engine_options> {
  static constexpr std::array earlier = {
      offsetof(wavejit_engine_options, pipeline),     offsetof(wavejit_engine_options, lazy_rescale),
      offsetof(wavejit_engine_options, cache_layers), offsetof(wavejit_engine_options, cache_remote),
      offsetof(wavejit_engine_options, on_log),       offsetof(wavejit_engine_options, cache_packaged)};
};

template <>
struct Versions<wavejit_statistics> {
  static constexpr std::array earlier = {offsetof(wavejit_statistics, layer_hits),
                                         offsetof(wavejit_statistics, remote_lookups),
                                         offsetof(wavejit_statistics, refused_no_compile)};
};

template <>
struct Versions<wavejit_kernel_text_arguments> : OneVersion {};
template <>
struct Versions<wavejit_prebuild_arguments> : OneVersion {};
template <>
struct Versions<wavejit_cache_copy_arguments> : OneVersion {};
template <>
struct Versions<wavejit_cache_copy_result> : OneVersion {};
template <>
struct Versions<wavejit_cache_sweep_result> : OneVersion {};

}  // namespace wavejit::families
