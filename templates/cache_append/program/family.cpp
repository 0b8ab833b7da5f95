// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache_append as the program's tools know it (tools/family.h): a descriptor → tokens, slots, the call, float64. The
// output is K's cache, V's and the turned Q one behind the other, a row of it eight elements of memory.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "templates/cache_append/program/layout.h"
#include "templates/cache_append/program/reference.h"
#include "tools/array_problem.h"

namespace wavejit::cache_append::program {
namespace {

using namespace tools;
using Order = RowLayout::Order;

constexpr std::int64_t columns = 8;
constexpr double base_of_angles = 10000;
constexpr std::int64_t table_rows = 4096;
// With `holes`: every such token has no slot.
constexpr std::int64_t tokens_of_a_hole = 13;

std::string_view word_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(" " + std::string(key));
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + 1 + key.size();
  return text.substr(begin, text.find(' ', begin) - begin);
}

// What the library says of a descriptor; what struct wavejit_problem has no field for stands in the canonical text.
struct Said {
  std::string text;
  std::int32_t type = WAVEJIT_BF16;
  std::int64_t batch = 0;
  std::int64_t tokens = 0;  // of a batch
  std::int64_t heads = 0;
  std::int64_t query_heads = 0;
  std::int64_t key_dims = 0;
  std::int64_t value_dims = 0;
  std::int64_t page_size = 0;
  std::int32_t page_layout = WAVEJIT_PAGES_OF_ROWS;
  bool heads_first = false;
  std::int32_t rotary = WAVEJIT_ROTARY_NONE;
  std::int64_t rotary_dims = 0;
  std::int32_t table_type = WAVEJIT_FP32;  // WAVEJIT_DTYPE_NONE: a base
  std::string elements;
  bool holes = false;
  std::uint64_t seed = 1;

  HalfType half() const { return type == WAVEJIT_BF16 ? HalfType::bf16 : HalfType::fp16; }
  std::int64_t all_tokens() const { return batch * tokens; }
  // A quarter of the pages more than the tokens fill.
  std::int64_t pages() const { return std::max<std::int64_t>((all_tokens() + page_size - 1) / page_size * 5 / 4, 1); }
  bool apart(std::string_view tensor) const { return elements.find(tensor) != std::string::npos; }
};

void take(void* to, const wavejit_problem* told) {
  Said& said = *static_cast<Said*>(to);
  said.text = told->text;
  said.type = told->dtype;
  said.batch = told->batch;
  said.tokens = told->query_length;
  said.heads = told->kv_heads;
  said.query_heads = told->query_heads;
  said.key_dims = told->head_dim_qk;
  said.value_dims = told->head_dim_v;
  said.page_size = told->page_size;
  said.page_layout = told->page_layout;
  said.heads_first = told->page_heads_first != 0;
  const std::string_view rotary = word_behind(said.text, "rotary=");
  if (!rotary.empty()) {
    said.rotary = rotary.starts_with("halves") ? WAVEJIT_ROTARY_HALVES : WAVEJIT_ROTARY_INTERLEAVED;
    said.rotary_dims = said.key_dims;
    const std::size_t colon = rotary.find(':');
    if (colon != std::string_view::npos)
      std::from_chars(rotary.data() + colon + 1, rotary.data() + rotary.size(), said.rotary_dims);
  }
  const std::string_view angles = word_behind(said.text, "angles=");
  said.table_type = angles == "base"   ? WAVEJIT_DTYPE_NONE
                    : angles == "bf16" ? WAVEJIT_BF16
                    : angles == "fp16" ? WAVEJIT_FP16
                                       : WAVEJIT_FP32;
  said.elements = word_behind(said.text, "elements=");
  said.holes = (said.text + " ").find(" holes ") != std::string::npos;
  if (told->seed >= 0) said.seed = static_cast<std::uint64_t>(told->seed);
}

// A tensor of the call: where its elements lie, and in which input, or at which element of the output.
struct Placed {
  RowLayout layout;
  std::int64_t first = 0;
  wavejit_tensor tensor(void* memory, std::int32_t type) const {
    wavejit_tensor tensor{};
    tensor.data = static_cast<char*>(memory) + (first * 2);
    tensor.dtype = type;
    std::ranges::copy(layout.sizes(), tensor.sizes);
    std::ranges::copy(layout.strides(), tensor.strides);
    return tensor;
  }
};

// The whole problem: what is appended, and where to.
struct Appended {
  Said said;
  std::vector<std::vector<float>> sources;  // K, V, Q: [token][head][dim], numbers of the type
  std::vector<Placed> sources_placed;
  std::vector<Placed> targets;
  std::vector<std::int64_t> slots;  // of tokens
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> owners;  // of slots: the token, or −1
  std::vector<float> cosines;        // [position][pair]
  std::vector<float> sines;

  std::int64_t dims(std::size_t side) const { return side == 1 ? said.value_dims : said.key_dims; }
  std::int64_t heads(std::size_t side) const { return side == 2 ? said.query_heads : said.heads; }

  // Of an element of the output.
  struct Owner {
    std::size_t side;
    Index index;
    std::int64_t token;  // −1: it is nobody's
  };
  Owner owner(std::int64_t element) const;
  Turned at(std::int64_t element) const;
  double allowed(const Turned& exact) const;
};

Appended::Owner Appended::owner(std::int64_t element) const {
  std::size_t side = targets.size() - 1;
  while (targets[side].first > element) --side;
  const Index index = targets[side].layout.index_of(element - targets[side].first);
  if (side == 2) return {side, index, (index[0] * said.tokens) + index[1]};
  return {side, index, owners[static_cast<std::size_t>((index[0] * said.page_size) + index[1])]};
}

Turned Appended::at(std::int64_t element) const {
  const auto [side, index, token] = owner(element);
  if (token < 0) return {.value = 0, .magnitude = 0, .turned = false};
  const auto all = static_cast<std::size_t>(dims(side));
  const auto row = static_cast<std::size_t>((token * heads(side)) + index[2]);
  const std::span<const float> head = std::span(sources[side]).subspan(row * all, all);
  const std::int64_t turns = side == 1 ? 0 : said.rotary_dims;
  const std::int64_t position = positions.empty() ? 0 : positions[static_cast<std::size_t>(token)];
  return turned(head, index[3], turns, said.rotary == WAVEJIT_ROTARY_INTERLEAVED, [&](std::int64_t pair) -> Angle {
    if (said.table_type == WAVEJIT_DTYPE_NONE) return angle_of_base(position, base_of_angles, pair, turns);
    const auto place = static_cast<std::size_t>((position * turns / 2) + pair);
    return {.cosine = static_cast<double>(cosines[place]), .sine = static_cast<double>(sines[place])};
  });
}

double Appended::allowed(const Turned& exact) const {
  if (!exact.turned) return 0;
  // Half a unit of the type, two roundings of f32 before; of a base, the sines of the hardware.
  const double half = said.half() == HalfType::bf16 ? 0x1p-8 : 0x1p-11;
  const double smallest = said.half() == HalfType::bf16 ? 0x1p-134 : 0x1p-25;
  const double before = said.table_type == WAVEJIT_DTYPE_NONE ? 0x1p-19 : 0x1p-22;
  return (half * std::fabs(exact.value)) + smallest + (before * 1.01 * exact.magnitude);
}

std::shared_ptr<Appended> make_appended(const Said& said) {
  auto all = std::make_shared<Appended>();
  all->said = said;
  const std::int64_t tokens = said.all_tokens();
  const bool by_units = said.page_layout != WAVEJIT_PAGES_OF_ROWS;
  const Order rows = said.heads_first ? Order::hnd : Order::nhd;
  const Order keys = by_units ? Order::keys_in_units : said.apart("keys") ? Order::dims_apart : rows;
  const Order values = said.page_layout == WAVEJIT_PAGES_VECTORISED        ? Order::values_by_dims
                       : said.page_layout == WAVEJIT_PAGES_VECTORISED_KEYS ? Order::values_by_keys
                       : said.apart("values")                              ? Order::dims_apart
                                                                           : rows;
  std::int64_t first = 0;
  for (std::size_t side = 0; side < 3; ++side) {
    const std::int64_t dims = all->dims(side);
    const std::int64_t heads = all->heads(side);
    const Index source = {said.batch, said.tokens, heads, dims};
    const bool none = dims == 0 || heads == 0;
    const Index cache = {said.pages(), said.page_size, heads, dims};
    all->sources_placed.push_back({RowLayout(said.apart("source") ? Order::dims_apart : Order::nhd, source)});
    const Order order = side == 0 ? keys : side == 1 ? values : said.apart("queries") ? Order::dims_apart : Order::nhd;
    all->targets.push_back({RowLayout(order, side == 2 ? source : cache), first});
    auto numbers = seeded_values(said.seed + side, none ? 0 : static_cast<std::size_t>(tokens * heads * dims));
    for (float& number : numbers) number = decode(said.half(), encode(said.half(), static_cast<double>(number) * 4));
    all->sources.push_back(std::move(numbers));
    if (!none) first += all->targets.back().layout.count();
  }

  // Pages in another order, tokens of a page side by side: as an engine's tables have them.
  std::int64_t step = (said.pages() / 2) + 1;
  while (std::gcd(step, said.pages()) != 1) ++step;
  all->owners.assign(static_cast<std::size_t>(said.pages() * said.page_size), -1);
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t page = token / said.page_size * step % said.pages();
    const bool hole = said.holes && token % tokens_of_a_hole == tokens_of_a_hole - 1;
    all->slots.push_back(hole ? -1 : (page * said.page_size) + (token % said.page_size));
    if (!hole) all->owners[static_cast<std::size_t>(all->slots.back())] = token;
  }
  if (said.rotary == WAVEJIT_ROTARY_NONE) return all;
  for (std::int64_t token = 0; token < tokens; ++token)
    all->positions.push_back(static_cast<std::int32_t>((token * 7 + 5) % table_rows));
  if (said.table_type == WAVEJIT_DTYPE_NONE) return all;
  for (std::int64_t position = 0; position < table_rows; ++position)
    for (std::int64_t pair = 0; pair < said.rotary_dims / 2; ++pair) {
      const Angle angle = angle_of_base(position, base_of_angles, pair, said.rotary_dims);
      const auto rounded = [&](double value) {
        if (said.table_type == WAVEJIT_FP32) return static_cast<float>(value);
        const HalfType type = said.table_type == WAVEJIT_BF16 ? HalfType::bf16 : HalfType::fp16;
        return decode(type, encode(type, value));
      };
      all->cosines.push_back(rounded(angle.cosine));
      all->sines.push_back(rounded(angle.sine));
    }
  return all;
}

std::vector<std::byte> table_bytes(const Said& said, const std::vector<float>& values) {
  if (said.table_type == WAVEJIT_FP32) return bytes_of(values);
  const HalfType type = said.table_type == WAVEJIT_BF16 ? HalfType::bf16 : HalfType::fp16;
  std::vector<std::uint16_t> halves;
  halves.reserve(values.size());
  for (const float value : values) halves.push_back(encode(type, static_cast<double>(value)));
  return bytes_of(halves);
}

std::vector<std::byte> source_bytes(const Appended& all, std::size_t side) {
  const RowLayout& layout = all.sources_placed[side].layout;
  std::vector<std::uint16_t> halves(all.sources[side].size());
  const std::int64_t dims = all.dims(side);
  const std::int64_t heads = all.heads(side);
  for (std::size_t at = 0; at < halves.size(); ++at) {
    const auto element = static_cast<std::int64_t>(at);
    const std::int64_t token = element / (heads * dims);
    const Index index = {token / all.said.tokens, token % all.said.tokens, element / dims % heads, element % dims};
    halves[static_cast<std::size_t>(layout.place_of(index))] =
        encode(all.said.half(), static_cast<double>(all.sources[side][at]));
  }
  return bytes_of(halves);
}

// Where each input stands among the problem's.
enum Input : std::size_t { keys, values, queries, slots, positions, cosines, sines };

wavejit_cache_append_arguments call_of(const Appended& all, std::span<void* const> inputs, void* output) {
  const Said& said = all.said;
  wavejit_cache_append_arguments call{};
  call.size = sizeof call;
  wavejit_tensor* sources[] = {&call.k, &call.v, &call.q};
  wavejit_tensor* targets[] = {&call.k_cache, &call.v_cache, &call.q_out};
  for (std::size_t side = 0; side < 3; ++side) {
    if (all.sources[side].empty()) continue;
    *sources[side] = all.sources_placed[side].tensor(inputs[side], said.type);
    *targets[side] = all.targets[side].tensor(output, said.type);
  }
  call.slots = inputs[slots];
  call.slot_bytes = sizeof(std::int64_t);
  call.page_layout = said.page_layout;
  call.rotary = said.rotary;
  if (said.rotary == WAVEJIT_ROTARY_NONE) return call;
  call.rotary_dim = static_cast<std::int32_t>(said.rotary_dims);
  call.positions = inputs[positions];
  call.position_bytes = sizeof(std::int32_t);
  if (said.table_type == WAVEJIT_DTYPE_NONE) {
    call.rotary_base = static_cast<float>(base_of_angles);
    return call;
  }
  for (const auto& [table, input] : {std::pair{&call.cos, cosines}, {&call.sin, sines}}) {
    table->data = inputs[input];
    table->dtype = said.table_type;
    const Index sizes = {1, table_rows, 1, said.rotary_dims / 2};
    std::ranges::copy(sizes, table->sizes);
    const Index strides = {1, said.rotary_dims / 2, 1, 1};
    std::ranges::copy(strides, table->strides);
  }
  return call;
}

class CacheAppend : public Family {
 public:
  std::string_view name() const override { return "cache_append"; }
  std::string_view grammar() const override {
    return "cache_append <fp16|bf16> b<batch> q<tokens> h<kv heads> d<dims>[/<dims of V>] "
           "page=<keys>[:nhd|hnd|vectorised|vectorised_keys] [queries=<heads>] "
           "[rotary=<halves|interleaved>[:<dims>]] [angles=<bf16|fp16|fp32|base>] [no_values] "
           "[elements=<source,keys,values,queries>] [holes] [seed=<n>]";
  }
  std::string_view example() const override { return "cache_append bf16 b1 q512 h8 d128 page=16 rotary=halves"; }
  std::vector<std::string> listed() const override {
    return {"cache_append bf16 b1 q37 h8 d128 page=16 holes",
            "cache_append fp16 b3 q5 h2 d64/128 page=32:hnd holes seed=2",
            "cache_append bf16 b5 q1 h3 d96 page=1 queries=7 rotary=halves holes seed=3",
            "cache_append bf16 b2 q9 h1 d128 page=64 queries=5 rotary=interleaved:64 angles=bf16 seed=4",
            "cache_append fp16 b1 q40 h4 d80 page=16 rotary=halves:32 angles=base holes seed=5",
            "cache_append bf16 b1 q33 h2 d128 page=16:vectorised rotary=halves holes seed=6",
            "cache_append bf16 b1 q33 h2 d128/64 page=32:vectorised_keys holes seed=7",
            ("cache_append bf16 b2 q7 h2 d40 page=24 queries=3 rotary=interleaved:16 angles=fp16 "
             "elements=source,keys,values,queries holes seed=8"),
            "cache_append fp16 b1 q19 h1 d64 page=64 no_values holes seed=9"};
  }

  Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const override {
    Said said;
    if (auto parsed = checked(wavejit_problem_parse(descriptor.c_str(), take, &said)); !parsed)
      return std::unexpected(parsed.error());
    const std::shared_ptr<Appended> all = make_appended(said);

    ArrayProblem problem;
    problem.text = said.text;
    problem.type = said.half();
    problem.columns = columns;
    std::int64_t elements = 0;
    for (std::size_t side = 0; side < 3; ++side) {
      // Memory of no bytes is none: an input that is not used has some.
      problem.inputs.push_back(all->sources[side].empty() ? std::vector<std::byte>(columns) : source_bytes(*all, side));
      if (!all->sources[side].empty()) elements += all->targets[side].layout.count();
    }
    problem.rows = elements / columns;
    problem.inputs.push_back(bytes_of(all->slots));
    problem.inputs.push_back(all->positions.empty() ? std::vector<std::byte>(columns) : bytes_of(all->positions));
    problem.inputs.push_back(all->cosines.empty() ? std::vector<std::byte>(columns) : table_bytes(said, all->cosines));
    problem.inputs.push_back(all->sines.empty() ? std::vector<std::byte>(columns) : table_bytes(said, all->sines));
    // Slots of nobody keep what they have: zeros.
    std::int64_t begin = 0;
    for (std::int64_t element = 0; element <= elements; ++element) {
      if (element < elements && all->owner(element).token < 0) continue;
      if (element > begin)
        problem.before.emplace_back(static_cast<std::size_t>(begin * 2),
                                    std::vector<std::byte>(static_cast<std::size_t>((element - begin) * 2)));
      begin = element + 1;
    }
    problem.launch = [all](wavejit_engine* engine, std::span<void* const> inputs, void* output,
                           wavejit_call_report* report) {
      wavejit_cache_append_arguments call = call_of(*all, inputs, output);
      call.report = report;
      return checked(wavejit_cache_append(engine, &call, nullptr));
    };
    problem.exact = [all](std::int64_t row) {
      std::vector<double> exact;
      exact.reserve(columns);
      for (std::int64_t column = 0; column < columns; ++column)
        exact.push_back(all->at((row * columns) + column).value);
      return exact;
    };
    problem.bounds = [all](std::int64_t row) {
      std::vector<double> bounds;
      bounds.reserve(columns);
      for (std::int64_t column = 0; column < columns; ++column)
        bounds.push_back(all->allowed(all->at((row * columns) + column)));
      return bounds;
    };
    return make_problem(std::move(problem));
  }
};

}  // namespace

const tools::Family& family() {
  static const CacheAppend only;
  return only;
}

}  // namespace wavejit::cache_append::program
