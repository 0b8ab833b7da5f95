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
#include "tools/device_array.h"
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
constexpr const char* source_names[sides] = {"k", "v", "q"};
constexpr const char* target_names[sides] = {"k-cache", "v-cache", "q-out"};

// Where a call of 8 bits has its scales of K and V, and what it writes, among its memories.
constexpr std::size_t narrow_scales = (2 * sides) + 2;
constexpr std::size_t narrow_output = narrow_scales + 2;
constexpr std::size_t narrow_memories = 3;

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

class AppendCall : public ArrayCall {
 public:
  void add_options(CLI::App& command) override {
    const auto file = [&](const std::string& name, std::string& value, const std::string& help) {
      return command.add_option(name, value, help)->type_name("FILE.npy");
    };
    file("--k", source_files_[0], "new keys [batch, tokens, kv heads, dims]")->required();
    file("--v", source_files_[1], "their values, the same but for the dims");
    file("--q", source_files_[2], "queries to be turned, the same but for the heads");
    file(
        "--slots", slots_file_,
        "of each token, int32, int64 or whole float32; what is no slot of the cache writes nothing (default: 0, 1, 2 …)");
    file("--positions", positions_file_, "of each token, the same, for --rotary (default: 0, 1, 2 … in each sequence)");
    file("--k-cache", target_files_[0], "keys behind the call [pages, page size, kv heads, dims], float32");
    file("--v-cache", target_files_[1], "values, the same");
    file("--q-out", target_files_[2], "turned queries, float32");
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

  Result<void> read(std::vector<std::string>& notes) override {
    for (std::size_t side = 0; side < sides; ++side) {
      if (target_files_[side].empty() || !source_files_[side].empty()) continue;
      return failed(ExitCode::usage, fmt::format("--{} needs --{} FILE.npy", target_names[side], source_names[side]));
    }
    if (outputs().empty())
      return failed(ExitCode::usage,
                    "nothing is asked for; --k-cache FILE.npy, --v-cache FILE.npy and --q-out FILE.npy are accepted");
    const HalfType type = *parse_half_type(dtype_);
    all_->sources.resize(sides);
    for (std::size_t side = 0; side < sides; ++side)
      if (auto taken = read_source(side, type, notes); !taken) return taken;
    Said& said = all_->said;
    said.type = type == HalfType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
    said.batch = shapes_[0][0];
    said.tokens = shapes_[0][1];
    said.heads = shapes_[0][2];
    said.query_heads = shapes_[2][2];
    said.key_dims = shapes_[0][3];
    said.value_dims = shapes_[1][3];
    said.page_size = parse_size(page_).value_or(16);
    said.table_type = WAVEJIT_DTYPE_NONE;
    if (rotary_ != "none") {
      said.rotary = rotary_ == "halves" ? WAVEJIT_ROTARY_HALVES : WAVEJIT_ROTARY_INTERLEAVED;
      said.rotary_dims = parse_size(rotary_dim_).value_or(said.key_dims);
      said.base = static_cast<double>(parse_base(rotary_base_).value_or(static_cast<float>(base_of_angles)));
    }
    if (auto taken = narrow_options_.read(*all_); !taken) return taken;
    if (auto taken = read_slots(); !taken) return taken;
    if (auto taken = read_positions(); !taken) return taken;
    said.told_pages = slot_count_ / said.page_size;
    if (said.cache == WAVEJIT_DTYPE_NONE) return {};
    for (std::size_t side = 0; side < sides; ++side)
      all_->targets.push_back({.layout = {Order::nhd, target_shape(side)}, .first = 0});
    narrow_.emplace(all_);
    return {};
  }

  std::vector<NamedFile> inputs() const override {
    std::vector<NamedFile> files;
    for (std::size_t side = 0; side < sides; ++side)
      if (given(side)) files.push_back({source_names[side], source_files_[side]});
    if (!slots_file_.empty()) files.push_back({"slots", slots_file_});
    if (!positions_file_.empty()) files.push_back({"positions", positions_file_});
    narrow_options_.add_inputs(files);
    return files;
  }
  std::vector<NamedFile> outputs() const override {
    std::vector<NamedFile> files;
    for (std::size_t side = 0; side < sides; ++side)
      if (!target_files_[side].empty()) files.push_back({target_names[side], target_files_[side]});
    narrow_options_.add_outputs(files);
    return files;
  }

  Result<void> prepare(wavejit_engine* engine) override {
    engine_ = engine;
    memory_.reserve((2 * sides) + 2 + narrow_memories);
    const auto take = [&](const void* host, std::size_t bytes) -> Result<void> {
      auto array = DeviceArray::allocate(engine, bytes);
      if (!array) return std::unexpected(array.error());
      memory_.push_back(std::move(*array));
      return memory_.back().copy_in(host);
    };
    for (std::size_t side = 0; side < sides; ++side)
      if (auto taken = take(halves_[side].data(), halves_[side].size() * 2); !taken) return taken;
    for (std::size_t side = 0; side < sides; ++side) {
      const std::vector<std::uint16_t> zeros(elements_of_target(side));
      if (auto taken = take(zeros.data(), zeros.size() * 2); !taken) return taken;
    }
    if (auto taken = take(all_->slots.data(), all_->slots.size() * sizeof(std::int64_t)); !taken) return taken;
    if (auto taken = take(all_->positions.data(), all_->positions.size() * sizeof(std::int32_t)); !taken) return taken;
    if (!narrow_) return {};
    for (const std::size_t side : {0, 1}) {
      const std::vector<float>& scales = narrow_->given(side);
      if (auto taken = take(scales.data(), scales.size() * sizeof(float)); !taken) return taken;
    }
    const std::vector<std::byte> zeros(static_cast<std::size_t>(narrow_->bytes()));
    return take(zeros.data(), zeros.size());
  }
  void release() override { memory_.clear(); }

  Result<void> launch(wavejit_call_report* report) override {
    const Said& said = all_->said;
    wavejit_cache_append_arguments call{};
    call.head.size = sizeof call;
    call.head.family = WAVEJIT_CACHE_APPEND;
    wavejit_tensor* sources[] = {&call.k, &call.v, &call.q};
    wavejit_tensor* targets[] = {&call.k_cache, &call.v_cache, &call.q_out};
    for (std::size_t side = 0; side < sides; ++side) {
      if (!given(side)) continue;
      *sources[side] = tensor(memory_[side], shapes_[side]);
      *targets[side] = tensor(memory_[sides + side], target_shape(side));
    }
    if (narrow_)
      narrow_->place(call, memory_[narrow_output].data(), memory_[narrow_scales].data(),
                     memory_[narrow_scales + 1].data());
    call.slots = memory_[2 * sides].data();
    call.slot_bytes = sizeof(std::int64_t);
    call.rotary = said.rotary;
    if (said.rotary != WAVEJIT_ROTARY_NONE) {
      call.rotary_dim = static_cast<std::int32_t>(said.rotary_dims);
      call.rotary_base = static_cast<float>(said.base);
      call.positions = memory_[(2 * sides) + 1].data();
      call.position_bytes = sizeof(std::int32_t);
    }
    call.head.report = report;
    return checked(wavejit_cache_append(engine_, &call, nullptr));
  }

  Result<bool> fetch() override {
    if (narrow_) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(narrow_->bytes()));
      if (auto copied = memory_[narrow_output].copy_out(bytes.data()); !copied) return std::unexpected(copied.error());
      if (fetched_) return bytes == bytes_;
      bytes_ = std::move(bytes);
      fetched_ = true;
      return true;
    }
    std::vector<std::uint16_t> written[sides];
    for (std::size_t side = 0; side < sides; ++side) {
      written[side].resize(elements_of_target(side));
      if (auto copied = memory_[sides + side].copy_out(written[side].data()); !copied)
        return std::unexpected(copied.error());
    }
    if (fetched_) return std::ranges::equal(written, written_);
    std::ranges::move(written, written_);
    fetched_ = true;
    return true;
  }

  // What nobody wrote is 0 as before.
  Comparison check() const override {
    if (narrow_) return narrow_->comparison(bytes_);
    BoundChecker checker;
    for (std::size_t side = 0; side < sides; ++side) {
      if (!given(side)) continue;
      const Shape shape = target_shape(side);
      const std::vector<float> numbers = numbers_of(side);
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
                    std::span(numbers).subspan(static_cast<std::size_t>(row) * dims, dims));
      }
    }
    return checker.comparison();
  }

  std::vector<OutputArray> answers() const override {
    std::vector<OutputArray> arrays;
    for (std::size_t side = 0; side < sides; ++side) {
      if (target_files_[side].empty()) continue;
      const Shape shape = target_shape(side);
      arrays.push_back({npy_bytes(numbers_of(side), shape), tools::to_text(shape)});
    }
    for (const std::size_t side : {0, 1}) {
      if (narrow_options_.written_scales(side).empty()) continue;
      const Shape slots = target_shape(side);
      const std::vector<std::int64_t> shape = {slots[0], slots[1], narrow_->scales_of_slot()};
      arrays.push_back(
          {npy_bytes(narrow_->scales(bytes_, side), shape), fmt::format("[{}, {}, {}]", shape[0], shape[1], shape[2])});
    }
    return arrays;
  }

 private:
  bool given(std::size_t side) const { return !source_files_[side].empty(); }
  Shape target_shape(std::size_t side) const {
    return side == 2
               ? shapes_[2]
               : Shape{slot_count_ / all_->said.page_size, all_->said.page_size, shapes_[side][2], shapes_[side][3]};
  }
  std::size_t elements_of_target(std::size_t side) const {
    return given(side) && !narrow_ ? static_cast<std::size_t>(element_count(target_shape(side))) : 0;
  }
  std::vector<float> numbers_of(std::size_t side) const {
    if (narrow_) return narrow_->numbers(bytes_, side);
    std::vector<float> numbers(written_[side].size());
    std::ranges::transform(written_[side], numbers.begin(),
                           [&](std::uint16_t bits) { return decode(all_->said.half(), bits); });
    return numbers;
  }
  wavejit_tensor tensor(const DeviceArray& memory, const Shape& shape) const {
    return wavejit_dense_tensor(memory.data(), static_cast<wavejit_dtype>(all_->said.type), shape[0], shape[1],
                                shape[2], shape[3]);
  }

  Result<void> read_source(std::size_t side, HalfType type, std::vector<std::string>& notes) {
    if (!given(side)) return {};
    auto array = read_npy(source_names[side], source_files_[side], type);
    if (!array) return std::unexpected(array.error());
    const Shape& shape = array->shape;
    const Shape& keys = shapes_[0];
    const bool empty = std::ranges::any_of(shape, [](std::int64_t size) { return size < 1; });
    const bool other = side > 0 && (shape[0] != keys[0] || shape[1] != keys[1] ||
                                    (side == 1 ? shape[2] != keys[2] : shape[3] != keys[3]));
    if (empty || other)
      return failed(ExitCode::file,
                    fmt::format("--{} {}: its shape is {}; {} is accepted", source_names[side], source_files_[side],
                                tools::to_text(shape),
                                side == 0   ? std::string("[batch, tokens, kv heads, dims], each at least 1,")
                                : side == 1 ? fmt::format("[{}, {}, {}, dims]", keys[0], keys[1], keys[2])
                                            : fmt::format("[{}, {}, heads, {}]", keys[0], keys[1], keys[3])));
    if (array->became_infinite > 0)
      notes.push_back(fmt::format("{} has {} values beyond the range of {}; they became infinite", source_names[side],
                                  array->became_infinite, dtype_));
    shapes_[side] = shape;
    halves_[side] = std::move(array->values);
    for (const std::uint16_t bits : halves_[side]) all_->sources[side].push_back(decode(type, bits));
    return {};
  }

  // A whole number for each token. `first` gives the numbers if there is no file.
  template <typename First>
  Result<std::vector<std::int64_t>> token_numbers(const std::string& field, const std::string& path, First first) {
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
    auto slots = token_numbers("slots", slots_file_, [](std::int64_t token) { return token; });
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
                                                  slots_file_, owner, token, slot));
      owner = token;
    }
    return {};
  }

  Result<void> read_positions() {
    if (all_->said.rotary == WAVEJIT_ROTARY_NONE) {
      if (positions_file_.empty()) return {};
      return failed(ExitCode::usage, "--positions needs --rotary halves or interleaved");
    }
    const auto positions =
        token_numbers("positions", positions_file_, [&](std::int64_t token) { return token % all_->said.tokens; });
    if (!positions) return std::unexpected(positions.error());
    for (const std::int64_t position : *positions) all_->positions.push_back(static_cast<std::int32_t>(position));
    return {};
  }

  std::string source_files_[sides];
  std::string target_files_[sides];
  std::string slots_file_;
  std::string positions_file_;
  std::string page_;
  std::string pages_;
  std::string rotary_ = "none";
  std::string rotary_dim_;
  std::string rotary_base_;
  std::string dtype_ = "fp16";

  wavejit_engine* engine_ = nullptr;
  Shape shapes_[sides] = {};
  std::vector<std::uint16_t> halves_[sides];  // as the device gets them
  std::shared_ptr<Appended> all_ = std::make_shared<Appended>();
  NarrowOptions narrow_options_;
  std::optional<NarrowOutput> narrow_;  // of a cache of 8 bits: its scales, and Q, too, stand in one memory
  std::int64_t slot_count_ = 0;
  std::vector<DeviceArray> memory_;  // sources, targets, slots, positions, and of 8 bits scales and all that is written
  bool fetched_ = false;
  std::vector<std::uint16_t> written_[sides];
  std::vector<std::byte> bytes_;  // of 8 bits
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<AppendCall>(); }

}  // namespace wavejit::cache_append::program
