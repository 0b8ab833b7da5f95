// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache_append as the program's tools know it (tools/family.h): a descriptor → tokens, slots, the call, float64. The
// output is K's cache, V's and the turned Q one behind the other, a row of it eight elements of memory.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/program/cache_formats.h"
#include "templates/cache_append/call/descriptor.h"
#include "templates/cache_append/program/appended.h"
#include "templates/cache_append/program/array_call.h"
#include "templates/cache_append/program/invariance.h"
#include "templates/cache_append/program/narrow_output.h"
#include "tools/canonical_line.h"
#include "tools/empty_call.h"

namespace wavejit::cache_append::program {
namespace {

using namespace tools;
using tools::Result;

constexpr std::int64_t columns = 8;

// Where each input stands among the problem's.
enum Input : std::size_t { keys, values, queries, slots, positions, cosines, sines, k_scales, v_scales };

wavejit_cache_append_arguments call_of(const Appended& all, const NarrowOutput* narrow, std::span<void* const> inputs,
                                       void* output) {
  const Said& said = all.said;
  auto call = tools::empty_call<wavejit_cache_append_arguments>(WAVEJIT_CACHE_APPEND);
  wavejit_tensor* sources[] = {&call.k, &call.v, &call.q};
  wavejit_tensor* targets[] = {&call.k_cache, &call.v_cache, &call.q_out};
  for (std::size_t side = 0; side < 3; ++side) {
    if (all.sources[side].empty()) continue;
    *sources[side] = all.sources_placed[side].tensor(inputs[side], said.type);
    *targets[side] = all.targets[side].tensor(output, said.type);
  }
  if (narrow != nullptr) narrow->place(call, output, inputs[k_scales], inputs[v_scales]);
  call.slots = inputs[slots];
  call.slot_bytes = sizeof(std::int64_t);
  call.page_layout = said.page_layout;
  call.rotary = said.rotary;
  if (said.rotary == WAVEJIT_ROTARY_NONE) return call;
  call.rotary_dim = static_cast<std::int32_t>(said.rotary_dims);
  call.positions = inputs[positions];
  call.position_bytes = sizeof(std::int32_t);
  if (said.table_type == WAVEJIT_DTYPE_NONE) {
    call.rotary_base = static_cast<float>(said.base);
    return call;
  }
  for (const auto& [table, input] : {std::pair{&call.cos, cosines}, {&call.sin, sines}})
    *table = wavejit_dense_tensor(inputs[input], static_cast<wavejit_dtype>(said.table_type), 1, table_rows, 1,
                                  said.rotary_dims / 2);
  return call;
}

ArrayProblem narrow(const std::shared_ptr<Appended>& all, ArrayProblem problem) {
  const auto output = std::make_shared<NarrowOutput>(all);
  problem.type = std::nullopt;
  problem.bytes_of_row = NarrowOutput::row_bytes;
  problem.rows = output->rows();
  problem.before = output->before();
  for (const std::size_t side : {0, 1})
    problem.inputs.push_back(output->given(side).empty() ? std::vector<std::byte>(columns)
                                                         : tools::bytes_of(output->given(side)));
  problem.read = [output](std::span<const std::byte> row, std::int64_t number, std::int64_t column) {
    return output->read(row, number, column);
  };
  set_call(
      problem,
      [all, output](std::span<void* const> inputs, void* memory) {
        return call_of(*all, output.get(), inputs, memory);
      },
      wavejit_cache_append);
  const auto row_of = [output](std::int64_t row, bool bound) {
    std::vector<double> numbers;
    for (std::int64_t column = 0; column < columns; ++column) {
      const NarrowOutput::Answer answer = output->answer(row, column);
      numbers.push_back(bound ? answer.bound : answer.value);
    }
    return numbers;
  };
  problem.exact = [row_of](std::int64_t row) { return row_of(row, false); };
  problem.bounds = [row_of](std::int64_t row) { return row_of(row, true); };
  return problem;
}

ArrayProblem problem_of(const Said& said) {
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
  problem.inputs.push_back(tools::bytes_of(all->slots));
  problem.inputs.push_back(all->positions.empty() ? std::vector<std::byte>(columns) : tools::bytes_of(all->positions));
  problem.inputs.push_back(all->cosines.empty() ? std::vector<std::byte>(columns) : table_bytes(said, all->cosines));
  problem.inputs.push_back(all->sines.empty() ? std::vector<std::byte>(columns) : table_bytes(said, all->sines));
  if (said.cache != WAVEJIT_DTYPE_NONE) return narrow(all, std::move(problem));
  // Slots of nobody keep what they have: zeros.
  std::int64_t begin = 0;
  for (std::int64_t element = 0; element <= elements; ++element) {
    if (element < elements && all->owner(element).token < 0) continue;
    if (element > begin)
      problem.before.emplace_back(static_cast<std::size_t>(begin * 2),
                                  std::vector<std::byte>(static_cast<std::size_t>((element - begin) * 2)));
    begin = element + 1;
  }
  set_call(
      problem, [all](std::span<void* const> inputs, void* output) { return call_of(*all, nullptr, inputs, output); },
      wavejit_cache_append);
  problem.exact = [all](std::int64_t row) {
    std::vector<double> exact;
    exact.reserve(columns);
    for (std::int64_t column = 0; column < columns; ++column) exact.push_back(all->at((row * columns) + column).value);
    return exact;
  };
  problem.bounds = [all](std::int64_t row) {
    std::vector<double> bounds;
    bounds.reserve(columns);
    for (std::int64_t column = 0; column < columns; ++column)
      bounds.push_back(all->allowed(all->at((row * columns) + column)));
    return bounds;
  };
  return problem;
}

class CacheAppend : public Family {
 public:
  std::string_view name() const override { return "cache_append"; }
  std::string_view grammar() const override {
    return "cache_append <fp16|bf16> b<batch> q<tokens> h<kv heads> d<dims>[/<dims of V>] "
           "page=<keys>[:nhd|hnd|vectorised|vectorised_keys] [queries=<heads>] [rotary=<halves|interleaved>[:<dims>]] "
           "[angles=<bf16|fp16|fp32|base>] [no_values] [elements=<source,keys,values,queries>] "
           "[cache=<e4m3|e5m2|e4m3_fnuz|e5m2_fnuz|i8>] [cache_scales=<h|token>] [row_scales=<128|64>] [holes] [seed=<n>]";
  }
  std::string_view example() const override { return "cache_append bf16 b1 q512 h8 d128 page=16 rotary=halves"; }
  std::vector<std::string> listed() const override {
    return {
        "cache_append bf16 b1 q37 h8 d128 page=16 holes",
        "cache_append fp16 b3 q5 h2 d64/128 page=32:hnd holes seed=2",
        "cache_append bf16 b5 q1 h3 d96 page=1 queries=7 rotary=halves holes seed=3",
        "cache_append bf16 b2 q9 h1 d128 page=64 queries=5 rotary=interleaved:64 angles=bf16 seed=4",
        "cache_append fp16 b1 q40 h4 d80 page=16 rotary=halves:32 angles=base holes seed=5",
        "cache_append bf16 b1 q33 h2 d128 page=16:vectorised rotary=halves holes seed=6",
        "cache_append bf16 b1 q33 h2 d128/64 page=32:vectorised_keys holes seed=7",
        ("cache_append bf16 b2 q7 h2 d40 page=24 queries=3 rotary=interleaved:16 angles=fp16 "
         "elements=source,keys,values,queries holes seed=8"),
        "cache_append fp16 b1 q19 h1 d64 page=64 no_values holes seed=9",
        "cache_append bf16 b1 q37 h3 d128/64 page=16 cache=i8 cache_scales=h holes seed=10",
        ("cache_append fp16 b2 q9 h5 d96 page=16:hnd queries=3 rotary=halves cache=i8 cache_scales=token holes seed=11")};
  }

  std::vector<std::string> run_examples() const override {
    return {"cache_append --k k.npy --v v.npy --q q.npy --rotary halves --k-cache keys.npy --q-out turned.npy --check",
            "cache_append --k k.npy --slots slots.npy --page 64 --k-cache keys.npy --device sim:gfx950",
            "cache_append --k k.npy --v v.npy --cache-dtype i8 --token-scales --k-cache keys.npy --k-scale-out "
            "scales.npy --device sim:gfx950"};
  }
  std::unique_ptr<ArrayCall> make_call() const override { return make_array_call(); }
  const Invariance* invariance() const override { return &append_invariance(); }

  std::vector<std::string> serving_lines(const ServedModel& served) const override {
    const auto& latent = served.config.latent;
    if (latent && latent->rope == 0) return {};
    const auto line = [&](const std::string& rows) {
      return "cache_append " + served.config.dtype + " b1 q1 h" + rows + " page=" + std::to_string(served.page);
    };
    if (latent) return {line("1 d" + std::to_string(latent->rope) + "/" + std::to_string(latent->rank))};
    std::vector<std::string> lines;
    for (const tools::LayerKind& kind : served.config.layers) {
      std::string of_kind = line(std::to_string(served.kv_heads(kind)) + " d" + std::to_string(kind.head_dim));
      if (!std::ranges::contains(lines, of_kind)) lines.push_back(std::move(of_kind));
    }
    return lines;
  }
  // By a number for each head, which the caller has.
  std::string with_8_bit_cache(const std::string& descriptor, std::string_view target, EightBits kind) const override {
    if (descriptor.contains(" cache=") || descriptor.contains(":vectorised")) return descriptor;
    const std::string format = kind == EightBits::integers ? "i8" : attention::program::e4m3_of(target);
    return format.empty() ? descriptor : descriptor + " cache=" + format + " cache_scales=h";
  }
  // The same call for a rope of 64 dims and a latent of 512, in bf16.
  std::string with_8_bit_rows(const std::string& descriptor, std::string_view target) const override {
    const std::string format = attention::program::e4m3_of(target);
    const bool rows =
        descriptor.contains(" bf16 ") && descriptor.contains(" h1 d64/512 ") && !descriptor.contains(" cache=");
    return rows && !format.empty() ? descriptor + " cache=" + format + " row_scales=128"
                                   : with_8_bit_cache(descriptor, target, EightBits::floats);
  }

  Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const override {
    return parsed_problem(descriptor, parse_descriptor, said_of, problem_of);
  }
};

}  // namespace

const tools::Family& family() { return tools::only<CacheAppend>(); }

}  // namespace wavejit::cache_append::program
