// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run` out of rows: a family says which files there are, what shapes they may have, how its call is filled in
// and how its answer is checked. Options of files, reading, memory, repeats and the files of the answer are alike:
//
//   constexpr FileRow inputs[] = {{"scores", "scores [batch, heads, rows, keys]"}};
//   constexpr FileRow outputs[] = {{"lse", "the log-sum-exp [batch, heads, rows], float32"}};
//   class Run final : public ArrayRunOf<wavejit_…_arguments, WAVEJIT_…, wavejit_…> {
//     Run() : ArrayRunOf(inputs, outputs) {}
//     read_arrays: the inputs, then say(output(0), type, shape) of what the call writes
//     fill: the call's fields, with memory of the inputs; outputs have theirs
//     check: numbers(output(0)) against float64
//   };
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/call_memory.h"
#include "tools/empty_call.h"
#include "tools/family.h"
#include "tools/npy.h"
#include "tools/stored_numbers.h"

namespace wavejit::tools {

struct FileRow {
  const char* field;  // its option without dashes: "lse"
  const char* help;
  bool required = true;
  bool several = false;  // an input of one file or more, in Input::paths
};

// "[2, 3, 5]"
std::string text_of(std::span<const std::int64_t> shape);
std::unexpected<Failure> bad_shape(const std::string& field, const std::string& path,
                                   std::span<const std::int64_t> shape, const std::string& accepted);

// Four dimensions as the device gets them, rounded to a type, and the same as numbers.
struct StoredArray {
  Shape shape{};
  std::vector<std::byte> bytes;
  std::vector<float> values;
};
Result<StoredArray> read_stored(const std::string& field, const std::string& path, const std::string& type,
                                std::vector<std::string>& notes);

// A file of exactly this shape, by one of npy.h's ways to read numbers.
template <typename Read>
Result<std::vector<float>> read_shaped(Read read, const std::string& field, const std::string& path,
                                       std::span<const std::int64_t> shape) {
  auto array = read(field, path);
  if (!array) return std::unexpected(array.error());
  if (!std::ranges::equal(array->shape, shape)) return bad_shape(field, path, array->shape, text_of(shape));
  return std::move(array->values);
}

class ArrayRun : public ArrayCall {
 public:
  void add_options(CLI::App& command) final;
  Result<void> read(std::vector<std::string>& notes) final;
  std::vector<NamedFile> inputs() const final;
  std::vector<NamedFile> outputs() const final;
  Result<void> prepare(wavejit_engine* engine) final;
  void release() final { memory_.reset(); }
  Result<void> launch(wavejit_call_report* report) final;
  Result<bool> fetch() final;
  std::vector<OutputArray> answers() const final;

 protected:
  ArrayRun(std::span<const FileRow> inputs, std::span<const FileRow> outputs);

  struct Input {
    const FileRow* row;
    std::string path;                // empty: not given
    std::vector<std::string> paths;  // of a row of several
    Array array;                     // by read_halves
    bool given() const { return !path.empty(); }
  };
  struct Output {
    const FileRow* row;
    std::string path;      // empty: nobody wants the file
    bool written = false;  // the call writes it, though nobody may want the file
    std::int32_t type = WAVEJIT_FP32;
    std::vector<std::int64_t> shape;
    std::int64_t stride = 0;              // elements in memory from row to row: its last size, or more
    std::uint8_t fill = 0xFF;             // what its bytes are before the first call
    std::span<const std::byte> before{};  // what it begins with in every call
    std::size_t all_bytes = 0;            // of its memory, if more stands there than its numbers
    void* memory = nullptr;
    std::vector<std::byte> bytes;  // the answer, as the device has it

    bool asked() const { return !path.empty(); }
    std::size_t columns() const { return static_cast<std::size_t>(shape.back()); }
    std::size_t rows() const;
    std::size_t size() const {
      return all_bytes != 0 ? all_bytes : rows() * static_cast<std::size_t>(stride) * bytes_of_type(type);
    }
    // Missing sizes behind its own are 1.
    wavejit_tensor tensor() const;
  };

  // ---- What a family says ----
  virtual void add_own(CLI::App& /*command*/) {}
  virtual std::vector<NamedFile> own_inputs() const { return {}; }
  virtual Result<void> read_arrays(std::vector<std::string>& notes) = 0;
  // The call, with what it reads in `memory`, whose first failure is looked for behind it.
  virtual void place(CallMemory& memory) = 0;
  virtual Result<void> run_call(wavejit_engine* engine, wavejit_call_report* report) = 0;
  // For people and float64: without what stands between rows.
  virtual std::vector<float> numbers(const Output& output) const;

  // ---- What it is said with ----
  Input& input(std::size_t i) { return inputs_[i]; }
  const Input& input(std::size_t i) const { return inputs_[i]; }
  Output& output(std::size_t i) { return outputs_[i]; }
  const Output& output(std::size_t i) const { return outputs_[i]; }
  std::span<const Output> all_outputs() const { return outputs_; }
  // The call writes it.
  static void say(Output& output, std::int32_t type, std::vector<std::int64_t> shape);

  // The first inputs of four dimensions, those that are given, rounded to `type`. Every header is read before any
  // element: a wrong last file is told at once. `accepted`: "", or which shapes input `i` may have.
  using ShapeRule = std::function<std::string(std::size_t i, std::span<const Shape> shapes)>;
  Result<void> read_halves(std::size_t count, HalfType type, const ShapeRule& accepted,
                           std::vector<std::string>& notes);
  static wavejit_tensor placed(CallMemory& memory, const Array& array, HalfType type);

 private:
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  wavejit_engine* engine_ = nullptr;
  std::optional<CallMemory> memory_;
  bool fetched_ = false;
};

// With the struct of the family's call, and the function that launches it.
template <typename Call, wavejit_family family, auto launch_call>
class ArrayRunOf : public ArrayRun {
 protected:
  using ArrayRun::ArrayRun;
  virtual void fill(Call& call, CallMemory& memory) = 0;
  const Call& call() const { return call_; }

 private:
  void place(CallMemory& memory) final {
    call_ = empty_call<Call>(family);
    fill(call_, memory);
  }
  Result<void> run_call(wavejit_engine* engine, wavejit_call_report* report) final {
    call_.head.report = report;
    return checked(launch_call(engine, &call_, nullptr));
  }

  Call call_{};
};

}  // namespace wavejit::tools
