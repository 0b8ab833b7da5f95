// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A Problem for families whose call reads some arrays and writes one: the family fills in a struct, and sweep, profile,
// compare and tune work.
//
//   Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const override {
//     ArrayProblem problem{.text = descriptor, .rows = 8, .columns = 1};
//     problem.inputs = {bytes_of(seeded_values(seed, 8 * 64))};
//     problem.launch = [](wavejit_engine* engine, std::span<void* const> inputs, void* output,
//                         wavejit_call_report* report) { … checked(wavejit_row_sum(engine, &arguments, nullptr)); };
//     problem.exact = [](std::int64_t row) { return std::vector<double>{…}; };
//     problem.allowed = 1e-4;
//     return make_problem(std::move(problem));
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/canonical_line.h"
#include "tools/family.h"
#include "tools/half.h"

namespace wavejit::tools {

struct ArrayProblem {
  std::string text;  // canonical descriptor
  // Bytes of each input, as the device gets them, aligned to 256.
  std::vector<std::vector<std::byte>> inputs = {};
  // The output: rows × columns, nothing between them.
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::optional<HalfType> type = std::nullopt;  // of the output's elements; null: fp32
  // An output whose rows hold other things: how many bytes a row has, and what its columns are.
  std::size_t bytes_of_row = 0;
  std::function<float(std::span<const std::byte> row, std::int64_t number, std::int64_t column)> read = {};
  // What stands in the output before a run, for calls that go on with it: byte of the output, and the bytes there.
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> before = {};
  // Launches on the engine's default stream and does not wait. `report` may be null.
  std::function<Result<void>(wavejit_engine* engine, std::span<void* const> inputs, void* output,
                             wavejit_call_report* report)>
      launch = {};
  // What the call takes beside the arrays; empty: nothing. Where it takes any, its workgroups read what others have
  // written, and `sweep` never runs some of them alone while the simulated GPU checks.
  std::function<Result<std::uint64_t>(wavejit_engine* engine, std::span<void* const> inputs, void* output)>
      workspace_bytes = {};
  // A row of the answer in float64, from the same inputs. Called from several threads.
  std::function<std::vector<double>(std::int64_t row)> exact = {};
  double allowed = 0;  // the most that an element may be off
  // The same of each element of a row, in place of `allowed`; empty: all alike.
  std::function<std::vector<double>(std::int64_t row)> bounds = {};
};

std::unique_ptr<Problem> make_problem(ArrayProblem problem);

// A family's Family::parse: `said_of` makes numbers of what its `parse` says, `problem_of` arrays of those.
template <typename Parse, typename SaidOf, typename ProblemOf>
Result<std::unique_ptr<Problem>> parsed_problem(const std::string& descriptor, Parse parse, SaidOf said_of,
                                                ProblemOf problem_of) {
  auto said = parsed_into(descriptor, parse, said_of);
  if (!said) return std::unexpected(said.error());
  return make_problem(problem_of(*std::move(said)));
}

// `call_with(inputs, output)`: the struct of a call, which `run` launches (wavejit_…). Its workspace is asked of it, too.
template <typename CallWith, typename Run>
void set_call(ArrayProblem& problem, const CallWith& call_with, Run run) {
  problem.launch = [call_with, run](wavejit_engine* engine, std::span<void* const> inputs, void* output,
                                    wavejit_call_report* report) {
    auto call = call_with(inputs, output);
    call.head.report = report;
    return checked(run(engine, &call, nullptr));
  };
  problem.workspace_bytes = [call_with](wavejit_engine* engine, std::span<void* const> inputs,
                                        void* output) -> Result<std::uint64_t> {
    const auto call = call_with(inputs, output);
    std::size_t bytes = 0;
    if (auto asked = checked(wavejit_call_workspace(engine, &call.head, &bytes)); !asked)
      return std::unexpected(asked.error());
    return bytes;
  };
}

// A line that was understood. Its arrays may be gigabytes: `make` makes them when somebody runs it.
std::unique_ptr<Problem> make_lazy_problem(std::string text, std::int64_t keys,
                                           std::function<std::unique_ptr<Problem>()> make);

// The same of what a family's parser gives (`text` and `key_length`); `make` gets the text.
template <typename Parsed, typename Make>
Result<std::unique_ptr<Problem>> lazy_problem(const Result<Parsed>& parsed, Make make) {
  if (!parsed) return std::unexpected(parsed.error());
  return make_lazy_problem(parsed->text, parsed->key_length, [text = parsed->text, make] { return make(text); });
}

template <typename Element>
std::vector<std::byte> bytes_of(const std::vector<Element>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Inputs that a call finds by a member of `Pointers`. Memory of no bytes is none: what is empty has some, and no pointer.
template <typename Pointers>
class PointedInputs {
 public:
  template <typename Element>
  void add(ArrayProblem& problem, void* Pointers::* member, const std::vector<Element>& values) {
    if (!values.empty()) members_.emplace_back(member, problem.inputs.size());
    problem.inputs.push_back(values.empty() ? std::vector<std::byte>(sizeof(float)) : bytes_of(values));
  }
  // The same, and the array is gone before the next is copied: there may be gigabytes of them.
  template <typename Element>
  void take(ArrayProblem& problem, void* Pointers::* member, std::vector<Element>& values) {
    add(problem, member, values);
    values = {};
  }
  Pointers at(std::span<void* const> inputs) const {
    Pointers pointers;
    for (const auto& [member, index] : members_) pointers.*member = inputs[index];
    return pointers;
  }

 private:
  std::vector<std::pair<void* Pointers::*, std::size_t>> members_;
};

// Uniform in (−1, 1), the same for the same seed on every machine.
std::vector<float> seeded_values(std::uint64_t seed, std::size_t count);

}  // namespace wavejit::tools
