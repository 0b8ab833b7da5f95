// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A case's life: prepared, erased, run, and what it wrote read.
#include "templates/attention_forward/program/device_case.h"

#include <algorithm>
#include <utility>

#include "templates/attention/program/key_lists.h"
#include "tools/device_array.h"
#include "tools/empty_call.h"

namespace wavejit::attention_forward::program {

DeviceCase::DeviceCase(wavejit_engine* engine, const Experiment& problem)
    : engine_(engine),
      problem_(problem),
      sequences_(sequences_of(problem)),
      slots_(problem),
      memory_(engine),
      call_(empty_call<wavejit_attention_forward_arguments>(WAVEJIT_ATTENTION_FORWARD)) {
  const auto there = [](Placement placement, bool is_there) {
    if (!is_there) placement.heads = 0;
    return placement;
  };
  const bool second = second_list_words(problem.text).top_k != 0;
  const Placement keys = stored(problem, keys_of(problem));
  const Placement values = stored(problem, values_of(problem));
  // LSE: [B, Hq, Sq], packed [Hq, total].
  Placement of_lse = queries_of(problem);
  of_lse.head_dim = 1;
  of_lse.head_first = true;
  q_ = make(queries_of(problem), problem.query_bytes());
  k_ = make(keys, problem.key_bytes());
  v_ = make(values, problem.value_bytes());
  second_k_ = make(there(keys, second), problem.key_bytes());
  second_v_ = make(there(values, second), problem.value_bytes());
  o_ = make(outputs_of(problem), problem.output_bytes());
  lse_ = make(there(of_lse, problem.lse), sizeof(float));
}

DeviceCase::Tensor DeviceCase::make(const Placement& placement, std::size_t element) {
  // The most rows by which a tile may stand beyond the last one.
  constexpr std::size_t margin_rows = 256;
  // A multiple of every alignment that is asked for.
  constexpr std::size_t alignment = 256;
  const std::size_t row = static_cast<std::size_t>(std::max(placement.stride_of_token(), placement.head_dim)) * element;
  Tensor tensor = {.placement = placement, .element = element, .margin = alignment};
  if (placement.rows() != 0) tensor.margin = (margin_rows * row + alignment - 1) / alignment * alignment;
  tensor.memory =
      static_cast<char*>(memory_.hold(DeviceArray::allocate(engine_, tensor.bytes() + (2 * tensor.margin))));
  return tensor;
}

Result<DeviceCase> DeviceCase::prepare_unfilled(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                                const HeadValues& head_values) {
  DeviceCase made(engine, problem);
  made.describe_tensors();
  made.describe_sequences();
  made.describe_mask();
  made.describe_lists();
  made.describe_scales();
  made.describe_modifiers(inputs, head_values);
  if (!made.memory_.good()) return std::unexpected(made.memory_.good().error());
  return made;
}

Result<DeviceCase> DeviceCase::prepare(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                       const HeadValues& head_values) {
  auto made = prepare_unfilled(engine, problem, inputs, head_values);
  if (!made) return made;
  Result<void> filled = made->fill(made->q_, Operand::q, inputs);
  if (filled) filled = made->fill(made->k_, Operand::k, inputs);
  if (filled) filled = made->fill(made->v_, Operand::v, inputs);
  if (filled) filled = made->fill(made->second_k_, Operand::k, inputs, true);
  if (filled) filled = made->fill(made->second_v_, Operand::v, inputs, true);
  if (!filled) return std::unexpected(filled.error());
  return made;
}

Result<void> DeviceCase::erase() {
  for (const Tensor* tensor : {&o_, &lse_})
    if (auto done = fill_with_mark(tensor->memory, tensor->bytes() + (2 * tensor->margin)); !done) return done;
  return {};
}

Result<void> DeviceCase::launch(wavejit_engine* engine, wavejit_attention_forward_arguments call,
                                wavejit_call_report* report) const {
  call.head.report = report;  // this run's, and gone after it
  if (auto launched = checked(wavejit_attention_forward(engine, &call, nullptr)); !launched) return launched;
  return checked(wavejit_device_synchronize(engine));
}

Result<void> DeviceCase::run(wavejit_engine* engine, wavejit_call_report* report) {
  return launch(engine, call_, report);
}

Result<void> DeviceCase::run(wavejit_engine* engine, const View& view, wavejit_call_report* report) {
  return launch(engine, call_of(view), report);
}

Result<void> DeviceCase::start(wavejit_engine* engine, const Workspace& workspace, ihipStream_t* stream) const {
  wavejit_attention_forward_arguments call = call_;
  call.split.workspace = workspace.data;
  call.split.workspace_bytes = workspace.bytes;
  return checked(wavejit_attention_forward(engine, &call, stream));
}

Result<std::uint64_t> DeviceCase::workspace_bytes(wavejit_engine* engine) const {
  std::size_t bytes = 0;
  if (auto asked = checked(wavejit_call_workspace(engine, &call_.head, &bytes)); !asked)
    return std::unexpected(asked.error());
  return bytes;
}

template <typename Element>
Result<std::vector<Element>> DeviceCase::copy_of(const char* memory, std::size_t bytes) const {
  std::vector<Element> copy(bytes / sizeof(Element));
  if (copy.empty()) return copy;
  if (auto copied = checked(wavejit_device_copy_out(engine_, copy.data(), memory, bytes)); !copied)
    return std::unexpected(copied.error());
  return copy;
}

std::vector<std::uint16_t> DeviceCase::row_in(const std::vector<std::uint16_t>& outputs, std::int64_t token,
                                              std::int64_t head) const {
  const auto words = static_cast<std::int64_t>(o_.element / sizeof outputs.front());
  std::vector<std::uint16_t> row;
  row.reserve(static_cast<std::size_t>(words * problem_.head_dim_v));
  for (std::int64_t dim = 0; dim < problem_.head_dim_v; ++dim) {
    const std::int64_t at = o_.placement.offset(token, head) + (dim * o_.placement.stride_of_dim());
    row.insert(row.end(), outputs.begin() + (words * at), outputs.begin() + (words * (at + 1)));
  }
  return row;
}

Result<Rows> DeviceCase::written() const {
  const auto lse = copy_of<std::uint32_t>(lse_.memory + lse_.margin, lse_.bytes());
  if (!lse) return std::unexpected(lse.error());
  const auto output = copy_of<std::uint16_t>(o_.memory + o_.margin, problem_.lse ? 0 : o_.bytes());
  if (!output) return std::unexpected(output.error());
  const auto is_written = [&](std::int64_t token, std::int64_t head) {
    if (problem_.lse) return (*lse)[static_cast<std::size_t>(lse_.placement.offset(token, head))] != marked_lse;
    const std::vector<std::uint16_t> row = row_in(*output, token, head);
    return std::ranges::any_of(row, [](std::uint16_t bits) { return bits != marked_element; });
  };
  Rows rows;
  for (std::int64_t b = 0; b < problem_.batch; ++b) {
    const Sequence& sequence = sequences_[static_cast<std::size_t>(b)];
    for (std::int64_t head = 0; head < problem_.query_heads; ++head) {
      std::vector<std::int64_t> numbers;
      for (std::int64_t row = 0; row < sequence.queries; ++row)
        if (is_written(sequence.first_query + row, head)) numbers.push_back(row);
      if (!numbers.empty()) rows[{.sequence = b, .head = head}] = std::move(numbers);
    }
  }
  return rows;
}

Result<WrittenRows> DeviceCase::read(const Rows& rows) const {
  const auto lse = copy_of<float>(lse_.memory + lse_.margin, lse_.bytes());
  if (!lse) return std::unexpected(lse.error());
  // One copy of all of O if many of its rows are read, or if its rows are not contiguous.
  const bool all = 4 * count_of(rows) >= o_.placement.rows() || o_.placement.transposed;
  const auto whole = copy_of<std::uint16_t>(o_.memory + o_.margin, all ? o_.bytes() : 0);
  if (!whole) return std::unexpected(whole.error());
  const std::size_t row_bytes = static_cast<std::size_t>(problem_.head_dim_v) * o_.element;
  WrittenRows written;
  for (const auto& [head, numbers] : rows) {
    auto& of_head = written[head];
    for (const std::int64_t row : numbers) {
      const std::int64_t token = sequences_[static_cast<std::size_t>(head.sequence)].first_query + row;
      auto output = all ? Result<std::vector<std::uint16_t>>(row_in(*whole, token, head.head))
                        : copy_of<std::uint16_t>(o_.row(token, head.head), row_bytes);
      if (!output) return std::unexpected(output.error());
      WrittenRow& to = of_head[row];
      to.output = *std::move(output);
      if (problem_.lse) to.lse = (*lse)[static_cast<std::size_t>(lse_.placement.offset(token, head.head))];
    }
  }
  return written;
}

Result<std::string> DeviceCase::broken_fence() const {
  for (const auto& [name, tensor] : {std::pair("o", &o_), std::pair("lse", &lse_)}) {
    for (const bool behind : {false, true}) {
      const std::size_t from = behind ? tensor->margin + tensor->bytes() : 0;
      const auto margin = copy_of<unsigned char>(tensor->memory + from, tensor->margin);
      if (!margin) return std::unexpected(margin.error());
      const auto touched = std::ranges::find_if(*margin, [](unsigned char byte) { return byte != mark; });
      if (touched == margin->end()) continue;
      const auto at = static_cast<std::size_t>(touched - margin->begin());
      return behind ? fmt::format("byte {} behind {} was written", at, name)
                    : fmt::format("byte {} before {} was written", margin->size() - at, name);
    }
  }
  return std::string();
}

}  // namespace wavejit::attention_forward::program
