// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/array_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace wavejit::tools {

namespace {

void note_infinite(std::vector<std::string>& notes, const std::string& field, std::uint64_t count,
                   const std::string& type) {
  if (count > 0)
    notes.push_back(fmt::format("{} has {} values beyond the range of {}; they became infinite", field, count, type));
}

// `into`: a path, or paths.
template <typename Into>
void add_file(CLI::App& command, const FileRow& row, Into& into) {
  CLI::Option* option = command.add_option(fmt::format("--{}", row.field), into, row.help)->type_name("FILE.npy");
  if (row.required) option->required();
}

}  // namespace

std::string text_of(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::unexpected<Failure> bad_shape(const std::string& field, const std::string& path,
                                   std::span<const std::int64_t> shape, const std::string& accepted) {
  return failed(ExitCode::file,
                fmt::format("--{} {}: its shape is {}; {} is accepted", field, path, text_of(shape), accepted));
}

Result<StoredArray> read_stored(const std::string& field, const std::string& path, const std::string& type,
                                std::vector<std::string>& notes) {
  auto read = read_npy_floats(field, path);
  if (!read) return std::unexpected(read.error());
  const std::int32_t dtype = type_named(type);
  StoredArray array{.shape = read->shape, .bytes = stored(read->values, dtype), .values = {}};
  array.values = tools::numbers(array.bytes, dtype);
  std::uint64_t became_infinite = 0;
  for (std::size_t i = 0; i < array.values.size(); ++i)
    became_infinite += std::isfinite(read->values[i]) && !std::isfinite(array.values[i]) ? 1 : 0;
  note_infinite(notes, field, became_infinite, type);
  return array;
}

std::size_t ArrayRun::Output::rows() const {
  std::int64_t count = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) count *= shape[i];
  return static_cast<std::size_t>(count);
}

wavejit_tensor ArrayRun::Output::tensor() const {
  const auto size = [&](std::size_t i) { return i < shape.size() ? shape[i] : 1; };
  return wavejit_dense_tensor(memory, static_cast<wavejit_dtype>(type), size(0), size(1), size(2), size(3));
}

ArrayRun::ArrayRun(std::span<const FileRow> inputs, std::span<const FileRow> outputs) {
  for (const FileRow& row : inputs) inputs_.push_back({.row = &row, .path = {}, .paths = {}, .array = {}});
  for (const FileRow& row : outputs) outputs_.push_back({.row = &row, .path = {}, .shape = {}, .bytes = {}});
}

void ArrayRun::add_options(CLI::App& command) {
  for (Input& input : inputs_)
    if (input.row->several)
      add_file(command, *input.row, input.paths);
    else
      add_file(command, *input.row, input.path);
  for (Output& output : outputs_) add_file(command, *output.row, output.path);
  add_own(command);
}

Result<void> ArrayRun::read(std::vector<std::string>& notes) {
  if (std::ranges::none_of(outputs_, &Output::asked)) {
    std::string options;
    for (const Output& output : outputs_)
      options += fmt::format("{}--{}",
                             &output == &outputs_.front()  ? ""
                             : &output == &outputs_.back() ? " and "
                                                           : ", ",
                             output.row->field);
    return failed(ExitCode::usage,
                  fmt::format("nothing is asked for; {} FILE.npy are accepted, or some of them", options));
  }
  return read_arrays(notes);
}

std::vector<NamedFile> ArrayRun::inputs() const {
  std::vector<NamedFile> files;
  for (const Input& input : inputs_) {
    if (input.given()) files.push_back({input.row->field, input.path});
    for (const std::string& path : input.paths) files.push_back({input.row->field, path});
  }
  for (NamedFile& file : own_inputs()) files.push_back(std::move(file));
  return files;
}

std::vector<NamedFile> ArrayRun::outputs() const {
  std::vector<NamedFile> files;
  for (const Output& output : outputs_)
    if (output.asked()) files.push_back({output.row->field, output.path});
  return files;
}

Result<void> ArrayRun::prepare(wavejit_engine* engine) {
  engine_ = engine;
  CallMemory& memory = memory_.emplace(engine);
  for (Output& output : outputs_)
    if (output.written) output.memory = memory.out(output.size(), output.fill);
  place(memory);
  return memory.good();
}

Result<void> ArrayRun::launch(wavejit_call_report* report) {
  for (const Output& output : outputs_)
    if (!output.before.empty())
      if (auto copied =
              checked(wavejit_device_copy_in(engine_, output.memory, output.before.data(), output.before.size()));
          !copied)
        return copied;
  return run_call(engine_, report);
}

Result<bool> ArrayRun::fetch() {
  bool same = true;
  for (Output& output : outputs_) {
    if (!output.written) continue;
    auto bytes = memory_->back<std::byte>(output.memory, output.size());
    if (!memory_->good()) return std::unexpected(memory_->good().error());
    same = same && (!fetched_ || bytes == output.bytes);
    if (!fetched_) output.bytes = std::move(bytes);
  }
  fetched_ = true;
  return same;
}

std::vector<OutputArray> ArrayRun::answers() const {
  std::vector<OutputArray> arrays;
  for (const Output& output : outputs_)
    if (output.asked()) arrays.push_back({npy_bytes(numbers(output), output.shape), text_of(output.shape)});
  return arrays;
}

std::vector<float> ArrayRun::numbers(const Output& output) const {
  if (!output.written) return {};
  std::vector<float> values = tools::numbers(output.bytes, output.type);
  const std::size_t columns = output.columns();
  const auto stride = static_cast<std::size_t>(output.stride);
  if (stride == columns) return values;
  for (std::size_t row = 1; row < output.rows(); ++row)
    std::copy_n(&values[row * stride], columns, &values[row * columns]);
  values.resize(output.rows() * columns);
  return values;
}

void ArrayRun::say(Output& output, std::int32_t type, std::vector<std::int64_t> shape) {
  output.written = true;
  output.type = type;
  output.stride = shape.back();
  output.shape = std::move(shape);
}

Result<void> ArrayRun::read_halves(std::size_t count, HalfType type, const ShapeRule& accepted,
                                   std::vector<std::string>& notes) {
  std::vector<Shape> shapes(count);
  const std::span<Input> files = std::span(inputs_).first(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!files[i].given()) continue;
    const auto header = read_npy_header(files[i].row->field, files[i].path);
    if (!header) return std::unexpected(header.error());
    shapes[i] = header->shape;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!files[i].given()) continue;
    if (const std::string other = accepted(i, shapes); !other.empty())
      return bad_shape(files[i].row->field, files[i].path, shapes[i], other);
  }
  for (Input& file : files) {
    if (!file.given()) continue;
    auto read = read_npy(file.row->field, file.path, type);
    if (!read) return std::unexpected(read.error());
    file.array = std::move(*read);
    note_infinite(notes, file.row->field, file.array.became_infinite, std::string(to_text(type)));
  }
  return {};
}

wavejit_tensor ArrayRun::placed(CallMemory& memory, const Array& array, HalfType type) {
  const Shape& shape = array.shape;
  void* data = array.values.empty() ? memory.out(0) : memory.in(array.values);
  return wavejit_dense_tensor(data, static_cast<wavejit_dtype>(type_of(type)), shape[0], shape[1], shape[2], shape[3]);
}

}  // namespace wavejit::tools
