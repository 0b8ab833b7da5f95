// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_merge as the program's tools know it (tools/family.h): a descriptor → parts, the call, float64. A row of
// the answer is a row of O; with `lse` its LSE stands behind it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention/call/data_type.h"
#include "templates/attention/program/experiment.h"
#include "templates/attention_merge/call/descriptor.h"
#include "templates/attention_merge/kernel/arguments.h"
#include "templates/attention_merge/program/array_call.h"
#include "templates/attention_merge/program/invariance.h"
#include "templates/attention_merge/program/reference.h"
#include "tools/array_problem.h"
#include "tools/canonical_line.h"
#include "tools/empty_call.h"
#include "tools/stored_numbers.h"

namespace wavejit::attention_merge::program {
namespace {

using namespace tools;
using tools::bytes_of;
using tools::Result;

// With `empty`: every such row of a part saw no key.
constexpr std::size_t rows_of_an_empty_one = 5;
// What a read LSE says of no key, for all words that the parts and their sums may have.
constexpr float no_key = -1e30F;

struct Said {
  std::string text;
  std::int32_t parts_type = WAVEJIT_BF16;
  std::int32_t type = WAVEJIT_BF16;  // of the result
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t dims = 0;
  std::size_t count = 0;
  bool stacked = false;
  bool lse = false;
  bool empty = false;
  std::uint64_t seed = 1;

  std::int64_t rows() const { return batch * tokens * heads; }
};

Said said_of(const ProblemDescriptor& from, std::string text) {
  return {.text = std::move(text),
          .parts_type = attention::told_type(from.parts),
          .type = attention::told_type(from.out),
          .batch = from.batch,
          .tokens = from.tokens,
          .heads = from.heads,
          .dims = from.dims,
          .count = static_cast<std::size_t>(from.count),
          .stacked = from.stacked,
          .lse = from.lse,
          .empty = from.empty,
          .seed = attention::program::number_in(from.seed, std::uint64_t{1})};
}

// Parts, one behind the other: [part][row][dim] and [part][row]. A row is [batch][token][head].
struct Parts {
  Said said;
  std::vector<float> o;  // as the type has it
  std::vector<float> lse;

  std::size_t elements() const { return static_cast<std::size_t>(said.rows() * said.dims); }
  std::vector<std::byte> o_bytes(std::size_t first, std::size_t count) const {
    return stored({o.begin() + static_cast<std::ptrdiff_t>(first * elements()),
                   o.begin() + static_cast<std::ptrdiff_t>((first + count) * elements())},
                  said.parts_type);
  }
  std::vector<std::byte> lse_bytes(std::size_t first, std::size_t count) const {
    const auto rows = static_cast<std::size_t>(said.rows());
    return bytes_of(std::vector<float>(lse.begin() + static_cast<std::ptrdiff_t>(first * rows),
                                       lse.begin() + static_cast<std::ptrdiff_t>((first + count) * rows)));
  }
  MergedRow exact(std::int64_t row) const {
    std::vector<PartRow> parts;
    for (std::size_t part = 0; part < said.count; ++part) {
      const std::size_t at = (part * static_cast<std::size_t>(said.rows())) + static_cast<std::size_t>(row);
      const auto dims = static_cast<std::size_t>(said.dims);
      parts.push_back({.o = std::span(o).subspan(at * dims, dims), .lse = static_cast<double>(lse[at])});
    }
    return merged(parts);
  }
};

std::shared_ptr<Parts> make_parts(const Said& said) {
  auto parts = std::make_shared<Parts>();
  parts->said = said;
  const auto rows = static_cast<std::size_t>(said.rows()) * said.count;
  parts->o = seeded_values(said.seed, rows * static_cast<std::size_t>(said.dims));
  if (const auto half = half_of(said.parts_type))
    for (float& value : parts->o) value = decode(*half, encode(*half, static_cast<double>(value)));
  // Parts of some weight, and parts of nearly none.
  parts->lse = seeded_values(said.seed + 1, rows);
  for (std::size_t at = 0; at < rows; ++at) {
    parts->lse[at] *= 6;
    if (said.empty && at % rows_of_an_empty_one == 0) parts->lse[at] = -std::numeric_limits<float>::infinity();
  }
  return parts;
}

// Rows of `row` elements of O, which begin at `o`, and of `lse_row` numbers of LSE.
wavejit_tensor o_tensor(const Said& said, void* o, std::int32_t type, std::int64_t row) {
  wavejit_tensor tensor =
      wavejit_dense_tensor(o, static_cast<wavejit_dtype>(type), said.batch, said.tokens, said.heads, said.dims);
  const std::int64_t strides[] = {said.tokens * said.heads * row, said.heads * row, row, 1};
  std::ranges::copy(strides, tensor.strides);
  return tensor;
}
wavejit_tensor lse_tensor(const Said& said, void* lse, std::int64_t row) {
  wavejit_tensor tensor = wavejit_dense_tensor(lse, WAVEJIT_FP32, said.batch, said.heads, said.tokens, 1);
  const std::int64_t strides[] = {said.tokens * said.heads * row, row, said.heads * row, 1};
  std::ranges::copy(strides, tensor.strides);
  return tensor;
}

// Elements of O's type that a row of the output has: with LSE eight more, the first of which hold it.
std::int64_t output_row(const Said& said) { return said.dims + (said.lse ? dims_of_lane : 0); }

wavejit_attention_merge_arguments call_of(const Said& said, std::span<void* const> inputs, void* output) {
  auto call = tools::empty_call<wavejit_attention_merge_arguments>(WAVEJIT_ATTENTION_MERGE);
  call.part_count = said.stacked ? 1 : static_cast<std::int32_t>(said.count);
  for (std::size_t i = 0; i < static_cast<std::size_t>(call.part_count); ++i) {
    wavejit_attention_part& part = call.parts[i];
    part.o = o_tensor(said, inputs[2 * i], said.parts_type, said.dims);
    part.lse = lse_tensor(said, inputs[(2 * i) + 1], 1);
    if (!said.stacked) continue;
    part.count = static_cast<std::int64_t>(said.count);
    part.o_stride = said.rows() * said.dims;
    part.lse_stride = said.rows();
  }
  const std::int64_t row = output_row(said);
  const auto element = static_cast<std::int64_t>(bytes_of_type(said.type));
  call.o = o_tensor(said, output, said.type, row);
  if (said.lse)
    call.lse = lse_tensor(said, static_cast<char*>(output) + (said.dims * element),
                          row * element / static_cast<std::int64_t>(sizeof(float)));
  return call;
}

float told_lse(double lse) { return std::isinf(lse) ? no_key : static_cast<float>(lse); }

// Rows that hold O and, behind it, LSE.
void judge_lse(ArrayProblem& problem, const std::shared_ptr<Parts>& parts) {
  const Said& said = parts->said;
  const std::size_t element = bytes_of_type(said.type);
  const auto dims = static_cast<std::size_t>(said.dims);
  problem.bytes_of_row = static_cast<std::size_t>(output_row(said)) * element;
  problem.columns = said.dims + 1;
  problem.type = std::nullopt;
  // Nobody writes what fills the row up.
  for (std::int64_t row = 0; row < said.rows(); ++row) {
    const std::size_t from = (dims * element) + sizeof(float);
    problem.before.emplace_back((static_cast<std::size_t>(row) * problem.bytes_of_row) + from,
                                std::vector<std::byte>(problem.bytes_of_row - from));
  }
  problem.read = [said, dims, element](std::span<const std::byte> row, std::int64_t /*number*/, std::int64_t column) {
    const auto at = static_cast<std::size_t>(column);
    if (at < dims && element == 2) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, row.data() + (at * 2), 2);
      return decode(*half_of(said.type), bits);
    }
    float number = 0;
    std::memcpy(&number, row.data() + (at * element), sizeof number);
    return at == dims ? told_lse(static_cast<double>(number)) : number;
  };
}

ArrayProblem problem_of(const Said& said) {
  const std::shared_ptr<Parts> parts = make_parts(said);
  ArrayProblem problem;
  problem.text = said.text;
  problem.type = half_of(said.type);
  problem.rows = said.rows();
  problem.columns = said.dims;
  const std::size_t of_tensor = said.stacked ? said.count : 1;
  for (std::size_t first = 0; first < said.count; first += of_tensor) {
    problem.inputs.push_back(parts->o_bytes(first, of_tensor));
    problem.inputs.push_back(parts->lse_bytes(first, of_tensor));
  }
  if (said.lse) judge_lse(problem, parts);
  set_call(
      problem, [said](std::span<void* const> inputs, void* output) { return call_of(said, inputs, output); },
      wavejit_attention_merge);
  problem.exact = [parts](std::int64_t row) {
    MergedRow exact = parts->exact(row);
    if (parts->said.lse) exact.o.push_back(static_cast<double>(told_lse(exact.lse)));
    return std::move(exact.o);
  };
  // O is below 1, and LSE below 16: f32 statistics cost a few of their last bits, O's type half of its own.
  constexpr double of_statistics = 4e-6;
  problem.allowed = of_statistics + (said.type == WAVEJIT_BF16   ? 1.0 / 512
                                     : said.type == WAVEJIT_FP16 ? 1.0 / 4096
                                                                 : 0);
  return problem;
}

class AttentionMerge : public Family {
 public:
  std::string_view name() const override { return "attention_merge"; }
  std::string_view grammar() const override {
    return "attention_merge <bf16|fp16|fp32> b<batch> q<tokens> h<heads> d<dims> parts=<n> [out=<bf16|fp16|fp32|e4m3|e4m3_fnuz|i8>] "
           "[stacked] [lse] [empty] [seed=<n>]";
  }
  std::string_view example() const override { return "attention_merge bf16 b64 q1 h64 d128 parts=2 lse"; }
  std::vector<std::string> listed() const override {
    return {"attention_merge bf16 b2 q5 h3 d128 parts=2 lse empty",
            "attention_merge fp16 b1 q9 h7 d80 parts=3 out=fp32 lse empty seed=2",
            "attention_merge fp32 b3 q1 h5 d64 parts=8 out=bf16 stacked lse empty seed=3",
            "attention_merge fp32 b1 q6 h1 d512 parts=8 seed=4",
            "attention_merge bf16 b1 q3 h2 d40 parts=12 stacked seed=5"};
  }

  std::vector<std::string> run_examples() const override {
    return {"attention_merge --o o0.npy o1.npy --lse lse0.npy lse1.npy --out o.npy --out-lse lse.npy --check"};
  }
  std::unique_ptr<ArrayCall> make_call() const override { return make_array_call(); }
  const Invariance* invariance() const override { return &merge_invariance(); }

  // Pieces of a latent context, expanded one after the other.
  std::vector<std::string> serving_lines(const ServedModel& served) const override {
    if (!served.config.latent) return {};
    return {"attention_merge " + served.config.dtype + " b1 q" + std::to_string(rows_of_step) + " h" +
            std::to_string(served.heads()) + " d" + std::to_string(served.config.latent->value_dims) + " parts=2 lse"};
  }

  Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const override {
    std::string text;
    const auto parsed = parsed_line(descriptor, text, parse_descriptor);
    if (!parsed) return std::unexpected(parsed.error());
    if (is_narrow(parsed->out))
      return failed(ExitCode::unsupported, "out=" + std::string(families::name_in(output_types, parsed->out)) +
                                               ": this command makes no result in 8 bits, whose scale no word says; "
                                               "accepted: out=bf16, out=fp16, out=fp32");
    return make_problem(problem_of(said_of(*parsed, std::move(text))));
  }
};

}  // namespace

const tools::Family& family() { return tools::only<AttentionMerge>(); }

}  // namespace wavejit::attention_merge::program
