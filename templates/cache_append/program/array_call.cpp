// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/program/array_call.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/program/option_texts.h"
#include "templates/cache_append/program/appended.h"
#include "templates/cache_append/program/narrow_options.h"
#include "templates/cache_append/program/narrow_output.h"
#include "tools/array_run.h"
#include "tools/engine_options.h"
#include "tools/npy.h"

namespace wavejit::cache_append::program {
namespace {

using namespace tools;
using attention::program::add_parsed;
using attention::program::parse_number;
using tools::Result;

// K, V and Q, and what comes of them.
constexpr std::size_t sides = 3;
// The first three of both are those of the sides.
enum InputRows : std::size_t { slots_file = sides, positions_file, k_scale, v_scale };
constexpr FileRow input_rows[] = {
    {.field = "k", .help = "new keys [batch, tokens, kv heads, dims]"},
    {.field = "v", .help = "their values, the same but for the dims", .required = false},
    {.field = "q", .help = "queries to be turned, the same but for the heads", .required = false},
    {.field = "slots",
     .help =
         "of each token, int32, int64 or whole float32; what is no slot of the cache writes nothing (default: 0, 1, "
         "2 …)",
     .required = false},
    {.field = "positions",
     .help = "of each token, the same, for --rotary (default: 0, 1, 2 … in each sequence)",
     .required = false},
    {.field = given_scales[0],
     .help = "scales of k in 8 bits, one number or one for each head (default: 1)",
     .required = false},
    {.field = given_scales[1], .help = "scales of v, the same", .required = false},
};
enum OutputRows : std::size_t { k_scale_out = sides, v_scale_out };
constexpr FileRow output_rows[] = {
    {.field = "k-cache", .help = "keys behind the call [pages, page size, kv heads, dims], float32", .required = false},
    {.field = "v-cache", .help = "values, the same", .required = false},
    {.field = "q-out", .help = "turned queries, float32", .required = false},
    {.field = written_scales[0],
     .help = "scales that were found [pages, page size, kv heads], float32",
     .required = false},
    {.field = written_scales[1],
     .help = "those of values, the same; of rows of latent attention [pages, page size, scales of a row]",
     .required = false},
};

// A cache of more is a mistake in a file of slots.
constexpr std::int64_t most_slots = std::int64_t{1} << 24U;

std::optional<std::int64_t> parse_size(const std::string& text) {
  const auto size = parse_number<std::int64_t>(text);
  return size && *size >= 1 && *size <= most_slots ? size : std::nullopt;
}
std::optional<float> parse_base(const std::string& text) {
  const auto base = parse_number<float>(text);
  return base && std::isfinite(*base) && *base > 1 ? base : std::nullopt;
}

std::string accepted_shape(std::size_t side, std::span<const Shape> shapes) {
  const Shape& shape = shapes[side];
  const Shape& keys = shapes[0];
  const bool empty = std::ranges::min(shape) < 1;
  if (side == 0) return empty ? "[batch, tokens, kv heads, dims], each at least 1," : "";
  const bool same = shape[0] == keys[0] && shape[1] == keys[1];
  if (side == 1)
    return !empty && same && shape[2] == keys[2] ? "" : fmt::format("[{}, {}, {}, dims]", keys[0], keys[1], keys[2]);
  return !empty && same && shape[3] == keys[3] ? "" : fmt::format("[{}, {}, heads, {}]", keys[0], keys[1], keys[3]);
}

class AppendRun final : public ArrayRunOf<wavejit_cache_append_arguments, WAVEJIT_CACHE_APPEND, wavejit_cache_append> {
 public:
  AppendRun() : ArrayRunOf(input_rows, output_rows) {}

 private:
  void add_own(CLI::App& command) override {
    add_parsed(command, "--page", page_, "KEYS", "keys of a page (default: 16)", parse_size,
               "numbers from 1 to 16777216 are");
    add_parsed(command, "--pages", pages_, "COUNT", "of the cache (default: as many as the slots name)", parse_size,
               "numbers from 1 to 16777216 are");
    add_choice(command, "--rotary", rotary_, {"none", "halves", "interleaved"}, "how keys and queries are turned")
        ->capture_default_str();
    add_parsed(command, "--rotary-dim", rotary_dim_, "DIMS", "dims that are turned (default: all)", parse_size,
               "multiples of 16 are");
    add_parsed(command, "--rotary-base", rotary_base_, "NUMBER", "base of the angles (default: 10000)", parse_base,
               "finite numbers above 1 are");
    add_choice(command, "--dtype", dtype_, {"fp16", "bf16"}, "the kernel's type; inputs are rounded to it")
        ->capture_default_str();
    narrow_options_.add_to(command);
  }

  Result<void> read_arrays(std::vector<std::string>& notes) override {
    for (std::size_t side = 0; side < sides; ++side)
      if (output(side).asked() && !given(side))
        return failed(ExitCode::usage,
                      fmt::format("--{} needs --{} FILE.npy", output(side).row->field, input(side).row->field));
    const HalfType type = *parse_half_type(dtype_);
    if (auto read = read_halves(sides, type, accepted_shape, notes); !read) return read;
    all_->sources.resize(sides);
    for (std::size_t side = 0; side < sides; ++side)
      for (const std::uint16_t bits : input(side).array.values) all_->sources[side].push_back(decode(type, bits));
    Said& said = all_->said;
    said.type = type_of(type);
    said.batch = shape_of(0)[0];
    said.tokens = shape_of(0)[1];
    said.heads = shape_of(0)[2];
    said.query_heads = shape_of(2)[2];
    said.key_dims = shape_of(0)[3];
    said.value_dims = shape_of(1)[3];
    said.page_size = parse_size(page_).value_or(16);
    said.table_type = WAVEJIT_DTYPE_NONE;
    if (rotary_ != "none") {
      said.rotary = rotary_ == "halves" ? WAVEJIT_ROTARY_HALVES : WAVEJIT_ROTARY_INTERLEAVED;
      said.rotary_dims = parse_size(rotary_dim_).value_or(said.key_dims);
      said.base = static_cast<double>(parse_base(rotary_base_).value_or(static_cast<float>(base_of_angles)));
    }
    const ScaleFiles scales = {.given = {input(k_scale).path, input(v_scale).path},
                               .written = {output(k_scale_out).path, output(v_scale_out).path}};
    if (auto taken = narrow_options_.read(scales, *all_); !taken) return taken;
    if (auto taken = read_slots(); !taken) return taken;
    if (auto taken = read_positions(); !taken) return taken;
    said.told_pages = slot_count_ / said.page_size;
    say_outputs();
    return {};
  }

  void fill(wavejit_cache_append_arguments& call, CallMemory& memory) override {
    const Said& said = all_->said;
    wavejit_tensor* sources[] = {&call.k, &call.v, &call.q};
    wavejit_tensor* targets[] = {&call.k_cache, &call.v_cache, &call.q_out};
    for (std::size_t side = 0; side < sides; ++side) {
      if (!given(side)) continue;
      *sources[side] = placed(memory, input(side).array, said.half());
      if (!narrow_) *targets[side] = output(side).tensor();
    }
    if (narrow_) narrow_->place(call, output(0).memory, memory.in(narrow_->given(0)), memory.in(narrow_->given(1)));
    call.slots = memory.in(all_->slots);
    call.slot_bytes = sizeof(std::int64_t);
    call.rotary = said.rotary;
    if (said.rotary == WAVEJIT_ROTARY_NONE) return;
    call.rotary_dim = static_cast<std::int32_t>(said.rotary_dims);
    call.rotary_base = static_cast<float>(said.base);
    call.positions = memory.in(all_->positions);
    call.position_bytes = sizeof(std::int32_t);
  }

  // What nobody wrote is 0 as before.
  Comparison check() const override {
    if (narrow_) return narrow_->comparison(output(0).bytes);
    BoundChecker checker;
    for (std::size_t side = 0; side < sides; ++side) {
      if (!given(side)) continue;
      const Shape shape = target_shape(side);
      const std::vector<float> values = numbers(output(side));
      const auto dims = static_cast<std::size_t>(shape[3]);
      for (std::int64_t row = 0; row < shape[0] * shape[1] * shape[2]; ++row) {
        const std::int64_t place = row / shape[2];
        const std::int64_t token = side == 2 ? place : all_->owners[static_cast<std::size_t>(place)];
        std::vector<double> exact(dims);
        std::vector<double> bounds(dims);
        for (std::size_t dim = 0; token >= 0 && dim < dims; ++dim) {
          const Turned turned = all_->of(side, token, row % shape[2], static_cast<std::int64_t>(dim));
          exact[dim] = turned.value;
          bounds[dim] = all_->allowed(turned);
        }
        checker.row({.sequence = place / shape[1], .token = place % shape[1], .head = row % shape[2]}, exact, bounds,
                    std::span(values).subspan(static_cast<std::size_t>(row) * dims, dims));
      }
    }
    return checker.comparison();
  }

  // All that is written in 8 bits stands in the memory of the first output, one behind the other.
  std::vector<float> numbers(const Output& of) const override {
    if (!narrow_) return ArrayRun::numbers(of);
    const auto i = static_cast<std::size_t>(&of - &output(0));
    return i < sides ? narrow_->numbers(output(0).bytes, i) : narrow_->scales(output(0).bytes, i - sides);
  }

  bool given(std::size_t side) const { return input(side).given(); }
  const Shape& shape_of(std::size_t side) const { return input(side).array.shape; }
  Shape target_shape(std::size_t side) const {
    const Shape& shape = shape_of(side);
    const std::int64_t page = all_->said.page_size;
    return side == 2 ? shape : Shape{slot_count_ / page, page, shape[2], shape[3]};
  }

  void say_outputs() {
    const Said& said = all_->said;
    for (std::size_t side = 0; side < sides; ++side) {
      const Shape shape = target_shape(side);
      if (given(side)) say(output(side), said.type, {shape.begin(), shape.end()});
      output(side).fill = 0;
    }
    if (said.cache == WAVEJIT_DTYPE_NONE) return;
    for (std::size_t side = 0; side < sides; ++side) {
      all_->targets.push_back({.layout = {Order::nhd, target_shape(side)}, .first = 0});
      output(side).written = side == 0;
    }
    narrow_.emplace(all_);
    output(0).all_bytes = static_cast<std::size_t>(narrow_->bytes());
    for (const std::size_t side : {0, 1})
      output(sides + side).shape = {said.told_pages, said.page_size, narrow_->scales_of_slot()};
  }

  // A whole number for each token. `first` gives the numbers if there is no file.
  template <typename First>
  Result<std::vector<std::int64_t>> token_numbers(InputRows file, First first) {
    const std::string field = input(file).row->field;
    const std::string& path = input(file).path;
    std::vector<std::int64_t> whole;
    const std::int64_t tokens = all_->said.all_tokens();
    if (path.empty()) {
      for (std::int64_t token = 0; token < tokens; ++token) whole.push_back(first(token));
      return whole;
    }
    auto numbers = read_npy_whole_numbers(field, path);
    if (!numbers) return std::unexpected(numbers.error());
    whole = std::move(numbers->values);
    const auto beyond =
        std::ranges::find_if(whole, [](std::int64_t number) { return number > most_slots || number < -most_slots; });
    if (beyond != whole.end())
      return failed(ExitCode::file,
                    fmt::format("--{} {}: it has {}; whole numbers to 16777216 are accepted", field, path, *beyond));
    if (std::ssize(whole) != tokens)
      return failed(ExitCode::file, fmt::format("--{} {}: it has {} numbers; {} are accepted, one for each token",
                                                field, path, whole.size(), tokens));
    return whole;
  }

  Result<void> read_slots() {
    auto slots = token_numbers(slots_file, [](std::int64_t token) { return token; });
    if (!slots) return std::unexpected(slots.error());
    all_->slots = std::move(*slots);
    const std::int64_t page = all_->said.page_size;
    const std::int64_t named = std::max<std::int64_t>(std::ranges::max(all_->slots) + 1, 1);
    slot_count_ = parse_size(pages_).value_or((named + page - 1) / page) * page;
    all_->owners.assign(static_cast<std::size_t>(slot_count_), -1);
    for (std::int64_t token = 0; token < std::ssize(all_->slots); ++token) {
      const std::int64_t slot = all_->slots[static_cast<std::size_t>(token)];
      if (slot < 0 || slot >= slot_count_) continue;
      std::int64_t& owner = all_->owners[static_cast<std::size_t>(slot)];
      if (owner >= 0)
        return failed(ExitCode::file, fmt::format("--slots {}: tokens {} and {} both have slot {}; "
                                                  "slots of their own are accepted",
                                                  input(slots_file).path, owner, token, slot));
      owner = token;
    }
    return {};
  }

  Result<void> read_positions() {
    if (all_->said.rotary == WAVEJIT_ROTARY_NONE) {
      if (!input(positions_file).given()) return {};
      return failed(ExitCode::usage, "--positions needs --rotary halves or interleaved");
    }
    const auto positions = token_numbers(positions_file, [&](std::int64_t token) { return token % all_->said.tokens; });
    if (!positions) return std::unexpected(positions.error());
    if (const auto below = std::ranges::find_if(*positions, [](std::int64_t position) { return position < 0; });
        below != positions->end())
      return failed(ExitCode::file, fmt::format("--positions {}: it has {}; whole numbers from 0 are accepted",
                                                input(positions_file).path, *below));
    for (const std::int64_t position : *positions) all_->positions.push_back(static_cast<std::int32_t>(position));
    return {};
  }

  std::string page_;
  std::string pages_;
  std::string rotary_ = "none";
  std::string rotary_dim_;
  std::string rotary_base_;
  std::string dtype_ = "fp16";

  std::shared_ptr<Appended> all_ = std::make_shared<Appended>();
  NarrowOptions narrow_options_;
  std::optional<NarrowOutput> narrow_;  // of a cache of 8 bits
  std::int64_t slot_count_ = 0;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<AppendRun>(); }

}  // namespace wavejit::cache_append::program
