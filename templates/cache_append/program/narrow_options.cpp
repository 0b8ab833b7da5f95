// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/program/narrow_options.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "tools/engine_options.h"
#include "tools/npy.h"

namespace wavejit::cache_append::program {
namespace {

using tools::ExitCode;
using tools::failed;
using tools::Result;

struct Format {
  std::string_view name;
  wavejit_dtype dtype;
};
constexpr std::array<Format, 5> formats = {{{"e4m3", WAVEJIT_E4M3},
                                            {"e5m2", WAVEJIT_E5M2},
                                            {"e4m3_fnuz", WAVEJIT_E4M3_FNUZ},
                                            {"e5m2_fnuz", WAVEJIT_E5M2_FNUZ},
                                            {"i8", WAVEJIT_INT8}}};

Result<void> wrong(const std::string& text) { return failed(ExitCode::usage, text); }

}  // namespace

void NarrowOptions::add_to(CLI::App& command) {
  std::vector<std::string> names = {"none"};
  for (const Format& format : formats) names.emplace_back(format.name);
  tools::add_choice(
      command, "--cache-dtype", format_, names,
      "the cache has 8 bits; files of keys and values get the numbers that stand there, which count in their scales")
      ->capture_default_str();
  command.add_flag("--token-scales", token_scales_, "each head of a token has a scale of its own, which is found");
  tools::add_choice(command, "--row-scales", row_scales_, {"none", "128", "64"},
                    "rows of latent attention: k is the rope, v the latent, with a scale for each 128 or 64 dims")
      ->capture_default_str();
}

Result<void> NarrowOptions::check(const ScaleFiles& files, const Said& said) const {
  const bool rows = row_scales_ != "none";
  const bool given = !files.given[0].empty() || !files.given[1].empty();
  const bool written = !files.written[0].empty() || !files.written[1].empty();
  if (format_ == "none") {
    const char* option = token_scales_               ? "--token-scales"
                         : rows                      ? "--row-scales"
                         : !files.given[0].empty()   ? "--k-scale"
                         : given                     ? "--v-scale"
                         : !files.written[0].empty() ? "--k-scale-out"
                         : written                   ? "--v-scale-out"
                                                     : nullptr;
    if (option == nullptr) return {};
    return wrong(fmt::format("{} needs --cache-dtype e4m3, e5m2, e4m3_fnuz, e5m2_fnuz or i8", option));
  }
  if (rows) {
    if (token_scales_ || given || !files.written[0].empty())
      return wrong(fmt::format("--row-scales {}: rows have scales of their own; --v-scale-out is accepted beside it",
                               row_scales_));
    const LatentRow& row = latent_row(row_scales_ == "128" ? Scales::tiles : Scales::exponents);
    if (said.heads != 1 || said.key_dims != rope_dims || said.value_dims != row.latent_dims)
      return wrong(fmt::format("--row-scales {}: k has {} heads of {} dims, v {}; 1 head of {} and {} is accepted",
                               row_scales_, said.heads, said.key_dims, said.value_dims, rope_dims, row.latent_dims));
    return {};
  }
  if (token_scales_ && given) return wrong("--token-scales: scales are found; --k-scale and --v-scale are for others");
  if (!token_scales_ && written)
    return wrong(fmt::format("--{} needs --token-scales or --row-scales: other scales are given",
                             written_scales[files.written[0].empty() ? 1 : 0]));
  if (said.value_dims == 0 && (!files.given[1].empty() || !files.written[1].empty()))
    return wrong(fmt::format("--{} needs --v FILE.npy", files.given[1].empty() ? written_scales[1] : given_scales[1]));
  return {};
}

Result<void> NarrowOptions::read(const ScaleFiles& files, Appended& all) const {
  Said& said = all.said;
  if (auto good = check(files, said); !good || format_ == "none") return good;
  for (const Format& format : formats)
    if (format.name == format_) said.cache = format.dtype;
  said.scales = row_scales_ == "128"  ? Scales::tiles
                : row_scales_ == "64" ? Scales::exponents
                : token_scales_       ? Scales::tokens
                                      : Scales::heads;
  for (const std::size_t side : {0, 1}) {
    const std::string& path = files.given[side];
    if (path.empty()) continue;
    const auto scales = tools::read_npy_vector(given_scales[side], path);
    if (!scales) return std::unexpected(scales.error());
    const auto count = static_cast<std::int64_t>(scales->values.size());
    if (scales->shape.size() != 1 || (count != 1 && count != said.heads))
      return failed(ExitCode::file, fmt::format("--{} {}: it has {} numbers; 1 and {}, one for each head, are accepted",
                                                given_scales[side], path, count, said.heads));
    for (const float scale : scales->values)
      if (!std::isfinite(scale) || scale <= 0)
        return failed(ExitCode::file, fmt::format("--{} {}: it has {}; finite numbers above 0 are accepted",
                                                  given_scales[side], path, scale));
    for (std::int64_t head = 0; head < said.heads; ++head)
      all.given_scales[side].push_back(scales->values[count == 1 ? 0 : static_cast<std::size_t>(head)]);
  }
  return {};
}

}  // namespace wavejit::cache_append::program
