// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_merge/program/array_call.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention_merge/program/reference.h"
#include "tools/all_cores.h"
#include "tools/device_array.h"
#include "tools/engine_options.h"
#include "tools/npy.h"
#include "tools/stored_numbers.h"

namespace wavejit::attention_merge::program {
namespace {

using namespace tools;
using tools::Result;

double half_unit(std::int32_t type, double magnitude) {
  if (const auto half = half_of(type)) return half_ulp(*half, magnitude);
  return (std::fabs(magnitude) * 0x1p-24) + 0x1p-150;
}

// What f32 leaves of a weight below its LSE: as many roundings of it as the checker of attention allows a score.
double error_of_weights(double largest_lse) { return score_roundings * 0x1p-24 * (1 + largest_lse); }

struct Part {
  std::vector<std::byte> o_bytes;  // as the device gets them
  std::vector<float> o;            // the same, as numbers: [batch, tokens, heads, dims]
  std::vector<float> lse;          // [batch, heads, tokens]
};

class MergeCall : public ArrayCall {
 public:
  void add_options(CLI::App& command) override {
    command.add_option("--o", o_files_, "O of each part [batch, tokens, heads, dims], one to eight files")
        ->required()
        ->type_name("FILE.npy");
    command.add_option("--lse", lse_files_, "LSE of each part [batch, heads, tokens], in the same order")
        ->required()
        ->type_name("FILE.npy");
    command.add_option("--out", out_file_, "the merged O, shaped as a part's, float32")->type_name("FILE.npy");
    command.add_option("--out-lse", out_lse_file_, "the merged LSE [batch, heads, tokens], float32")
        ->type_name("FILE.npy");
    add_choice(command, "--dtype", parts_type_, {"fp32", "fp16", "bf16"}, "of the parts' O, which are rounded to it")
        ->capture_default_str();
    add_choice(command, "--result", type_, {"fp32", "fp16", "bf16"},
               "what the kernel rounds O to: fp32, or --dtype, or any with --dtype fp32")
        ->capture_default_str();
  }

  Result<void> read(std::vector<std::string>& notes) override {
    if (out_file_.empty())
      return failed(ExitCode::usage, "nothing is asked for; --out FILE.npy is accepted, and --out-lse FILE.npy");
    if (o_files_.size() > WAVEJIT_MAX_ATTENTION_PARTS || o_files_.size() != lse_files_.size())
      return failed(ExitCode::usage, fmt::format("--o has {} files and --lse {}; 1 to {} of both are accepted",
                                                 o_files_.size(), lse_files_.size(), WAVEJIT_MAX_ATTENTION_PARTS));
    std::uint64_t became_infinite = 0;
    for (std::size_t number = 0; number < o_files_.size(); ++number) {
      auto o = read_npy_floats("o", o_files_[number]);
      if (!o) return std::unexpected(o.error());
      auto lse = read_npy_row_numbers("lse", lse_files_[number]);
      if (!lse) return std::unexpected(lse.error());
      if (number == 0) shape_ = o->shape;
      if (std::ranges::any_of(o->shape, [](std::int64_t size) { return size < 1; }) || o->shape != shape_)
        return failed(ExitCode::file,
                      fmt::format("--o {}: its shape is {}; {} is accepted", o_files_[number], tools::to_text(o->shape),
                                  number == 0 ? "[batch, tokens, heads, dims], each at least 1,"
                                              : fmt::format("{}, that of the first part,", tools::to_text(shape_))));
      if (lse->shape != lse_shape())
        return failed(ExitCode::file,
                      fmt::format("--lse {}: its shape is not [{}, {}, {}], [batch, heads, tokens] of --o {}",
                                  lse_files_[number], shape_[0], shape_[2], shape_[1], o_files_[number]));
      Part part{.o_bytes = stored(o->values, type_named(parts_type_)), .o = {}, .lse = std::move(lse->values)};
      part.o = numbers(part.o_bytes, type_named(parts_type_));
      for (std::size_t i = 0; i < part.o.size(); ++i)
        became_infinite += std::isfinite(o->values[i]) && !std::isfinite(part.o[i]) ? 1 : 0;
      parts_.push_back(std::move(part));
    }
    if (became_infinite > 0)
      notes.push_back(
          fmt::format("o has {} values beyond the range of {}; they became infinite", became_infinite, parts_type_));
    return {};
  }

  std::vector<NamedFile> inputs() const override {
    std::vector<NamedFile> files;
    files.reserve(o_files_.size() + lse_files_.size());
    for (const std::string& file : o_files_) files.push_back({"o", file});
    for (const std::string& file : lse_files_) files.push_back({"lse", file});
    return files;
  }
  std::vector<NamedFile> outputs() const override {
    std::vector<NamedFile> files = {{"out", out_file_}};
    if (with_lse()) files.push_back({"out-lse", out_lse_file_});
    return files;
  }

  Result<void> prepare(wavejit_engine* engine) override {
    engine_ = engine;
    const auto take = [&](std::size_t bytes, const void* host) -> Result<void> {
      auto array = DeviceArray::allocate(engine, bytes);
      if (!array) return std::unexpected(array.error());
      memory_.push_back(std::move(*array));
      return host == nullptr ? Result<void>{} : memory_.back().copy_in(host);
    };
    memory_.reserve((2 * parts_.size()) + 2);
    for (const Part& part : parts_) {
      if (auto taken = take(part.o_bytes.size(), part.o_bytes.data()); !taken) return taken;
      if (auto taken = take(part.lse.size() * sizeof(float), part.lse.data()); !taken) return taken;
    }
    if (auto taken = take(out_bytes(), nullptr); !taken) return taken;
    return take(with_lse() ? rows() * sizeof(float) : 0, nullptr);
  }
  void release() override { memory_.clear(); }

  Result<void> launch(wavejit_call_report* report) override {
    wavejit_attention_merge_arguments call{};
    call.head.size = sizeof call;
    call.head.family = WAVEJIT_ATTENTION_MERGE;
    call.part_count = static_cast<std::int32_t>(parts_.size());
    for (std::size_t number = 0; number < parts_.size(); ++number) {
      call.parts[number].o = o_tensor(memory_[2 * number], parts_type_);
      call.parts[number].lse = lse_tensor(memory_[(2 * number) + 1]);
    }
    call.o = o_tensor(out_memory(), type_);
    if (with_lse()) call.lse = lse_tensor(memory_.back());
    call.head.report = report;
    return checked(wavejit_attention_merge(engine_, &call, nullptr));
  }

  Result<bool> fetch() override {
    std::vector<std::byte> out(out_bytes());
    std::vector<float> lse(with_lse() ? rows() : 0);
    if (auto copied = out_memory().copy_out(out.data()); !copied) return std::unexpected(copied.error());
    if (auto copied = memory_.back().copy_out(lse.data()); !copied) return std::unexpected(copied.error());
    if (fetched_) return out == out_ && std::memcmp(lse.data(), lse_.data(), lse.size() * sizeof(float)) == 0;
    out_ = std::move(out);
    lse_ = std::move(lse);
    fetched_ = true;
    return true;
  }

  // The LSE is compared as one more element behind those of its row.
  Comparison check() const override {
    std::vector<MergedRow> exact(rows());
    std::vector<std::vector<double>> bounds(rows());
    on_all_cores(rows(), [&](std::size_t row) { judge_by(row, exact[row], bounds[row]); });
    const std::vector<float> out = numbers(out_, type_named(type_));
    BoundChecker checker;
    for (std::size_t row = 0; row < rows(); ++row) {
      const std::span<const float> merged_o = std::span(out).subspan(row * dims(), dims());
      std::vector<float> result(merged_o.begin(), merged_o.end());
      if (with_lse()) {
        result.push_back(lse_[lse_place(row)]);
        exact[row].o.push_back(exact[row].lse);
      }
      const auto number = static_cast<std::int64_t>(row);
      checker.row({.sequence = number / (shape_[1] * shape_[2]),
                   .token = number / shape_[2] % shape_[1],
                   .head = number % shape_[2]},
                  exact[row].o, bounds[row], result);
    }
    return checker.comparison();
  }

  std::vector<OutputArray> answers() const override {
    std::vector<OutputArray> arrays = {{npy_bytes(numbers(out_, type_named(type_)), shape_), tools::to_text(shape_)}};
    if (with_lse())
      arrays.push_back({npy_bytes(lse_, lse_shape()), fmt::format("[{}, {}, {}]", shape_[0], shape_[2], shape_[1])});
    return arrays;
  }

 private:
  bool with_lse() const { return !out_lse_file_.empty(); }
  std::size_t rows() const { return static_cast<std::size_t>(shape_[0] * shape_[1] * shape_[2]); }
  std::size_t dims() const { return static_cast<std::size_t>(shape_[3]); }
  std::size_t out_bytes() const { return rows() * dims() * bytes_of_type(type_named(type_)); }
  const DeviceArray& out_memory() const { return memory_[memory_.size() - 2]; }
  std::vector<std::int64_t> lse_shape() const { return {shape_[0], shape_[2], shape_[1]}; }
  // The place of a row [batch][token][head] in [batch][head][token].
  std::size_t lse_place(std::size_t row) const {
    const auto tokens = static_cast<std::size_t>(shape_[1]);
    const auto heads = static_cast<std::size_t>(shape_[2]);
    return (((row / (tokens * heads)) * heads + (row % heads)) * tokens) + (row / heads % tokens);
  }

  void judge_by(std::size_t row, MergedRow& exact, std::vector<double>& bounds) const {
    std::vector<PartRow> of_row;
    double largest = 0;
    for (const Part& part : parts_) {
      const double lse = static_cast<double>(part.lse[lse_place(row)]);
      of_row.push_back({.o = std::span(part.o).subspan(row * dims(), dims()), .lse = lse});
      if (std::isfinite(lse)) largest = std::max(largest, std::fabs(lse));
    }
    exact = merged(of_row);
    const double of_weights = error_of_weights(largest);
    for (std::size_t dim = 0; dim < dims(); ++dim) {
      double magnitude = 0;
      for (const PartRow& part : of_row)
        if (const double weight = std::exp(part.lse - exact.lse); weight > 0)
          magnitude += weight * std::fabs(static_cast<double>(part.o[dim]));
      const double of_sum = of_weights * magnitude;
      bounds.push_back(of_sum + half_unit(type_named(type_), std::fabs(exact.o[dim]) + of_sum));
    }
    if (with_lse()) bounds.push_back(of_weights);
  }

  wavejit_tensor o_tensor(const DeviceArray& memory, const std::string& type) const {
    return wavejit_dense_tensor(memory.data(), static_cast<wavejit_dtype>(type_named(type)), shape_[0], shape_[1],
                                shape_[2], shape_[3]);
  }
  wavejit_tensor lse_tensor(const DeviceArray& memory) const {
    return wavejit_dense_tensor(memory.data(), WAVEJIT_FP32, shape_[0], shape_[2], shape_[1], 1);
  }

  std::vector<std::string> o_files_;
  std::vector<std::string> lse_files_;
  std::string out_file_;
  std::string out_lse_file_;
  std::string parts_type_ = "fp32";
  std::string type_ = "fp32";

  wavejit_engine* engine_ = nullptr;
  Shape shape_{};
  std::vector<Part> parts_;
  std::vector<DeviceArray> memory_;  // O and LSE of each part, then the result's
  bool fetched_ = false;
  std::vector<std::byte> out_;
  std::vector<float> lse_;
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<MergeCall>(); }

}  // namespace wavejit::attention_merge::program
