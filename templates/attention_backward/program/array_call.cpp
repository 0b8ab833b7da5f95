// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/array_call.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "templates/attention/program/mask_options.h"
#include "templates/attention/program/option_texts.h"
#include "templates/attention_backward/program/device_call.h"
#include "tools/device_array.h"
#include "tools/npy.h"

namespace wavejit::attention_backward::program {
namespace {

using namespace tools;
using attention::Extent;
using attention::Modifier;
using attention::program::add_parsed;
using attention::program::MaskOptions;
using attention::program::parse_number;
using attention::program::ToldModifier;

std::optional<float> parse_finite(const std::string& text) {
  const auto value = parse_number<float>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}
std::optional<float> parse_positive(const std::string& text) {
  const auto value = parse_finite(text);
  return value && *value > 0 ? value : std::nullopt;
}

struct Files {
  std::string q, k, v, o, d_o, lse, d_lse, alibi;
  std::string dq, dk, dv;
};

std::unexpected<Failure> bad_shape(const char* field, const std::string& path, const std::string& shape,
                                   const std::string& accepted) {
  return failed(ExitCode::file, fmt::format("--{} {}: its shape is {}; {} is accepted", field, path, shape, accepted));
}
std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

// A gradient as the device has it.
struct Answer {
  const char* option;
  const std::string* path;  // empty: nobody wants it
  Shape shape{};
  std::vector<std::byte> bytes = {};
};

class GradientsCall : public ArrayCall {
 public:
  void add_options(CLI::App& command) override {
    const auto file = [&](const char* name, std::string& path, const char* help, bool required = true) {
      CLI::Option* option = command.add_option(name, path, help)->type_name("FILE.npy");
      if (required) option->required();
    };
    file("--q", files_.q, "queries [batch, length, heads, head dim]");
    file("--k", files_.k, "keys [batch, length, kv heads, head dim]");
    file("--v", files_.v, "values, shaped as the keys; their head dim may be another");
    file("--o", files_.o, "what the forward call gave, shaped as the queries with the values' head dim");
    file("--lse", files_.lse, "its log-sum-exp [batch, heads, length], float32");
    file("--do", files_.d_o, "the gradient of O, shaped as it");
    file("--d-lse", files_.d_lse, "the gradient of the log-sum-exp, shaped as it, float32", false);
    file("--dq", files_.dq, "the gradient of the queries, shaped as they are, float32", false);
    file("--dk", files_.dk, "the gradient of the keys, summed over the query heads of a kv head", false);
    file("--dv", files_.dv, "the gradient of the values, summed in the same way", false);
    mask_.add_to(command, "query");
    add_parsed(command, "--softcap", softcap_, "X", "as in the forward call", parse_positive,
               "finite numbers above 0 are");
    file("--alibi", files_.alibi, "slopes as in the forward call [heads] or [batch, heads], float32", false);
    add_parsed(command, "--scale", scale_, "NUMBER", "as in the forward call (default: 1 / sqrt(head dim))",
               parse_finite, "finite numbers are, as 0.125");
    add_choice(command, "--dtype", dtype_, {"fp16", "bf16"}, "the kernels' type; inputs are rounded to it")
        ->capture_default_str();
    command.add_flag("--gradients-fp32", arrays_.experiment.output_fp32,
                     "the kernels write gradients in fp32 and do not round them to --dtype");
  }

  Result<void> read(std::vector<std::string>& notes) override {
    if (outputs().empty())
      return failed(ExitCode::usage,
                    "nothing is asked for; --dq, --dk and --dv FILE.npy are accepted, or some of them");
    attention::program::Experiment& of = arrays_.experiment;
    of.type = *parse_half_type(dtype_);
    Shape queries{};
    Shape keys{};
    Shape values{};
    // Headers before elements: a wrong last file is told at once.
    for (const auto& [field, path, shape] : {std::tuple("q", &files_.q, &queries), std::tuple("k", &files_.k, &keys),
                                             std::tuple("v", &files_.v, &values)}) {
      const auto header = read_npy_header(field, *path);
      if (!header) return std::unexpected(header.error());
      *shape = header->shape;
    }
    if (std::ranges::min(queries) < 1)
      return bad_shape("q", files_.q, to_text(queries), "[batch, length, heads, head dim], each at least 1,");
    if (keys[0] != queries[0] || keys[3] != queries[3] || keys[1] < 1 || keys[2] < 1 || queries[2] % keys[2] != 0)
      return bad_shape(
          "k", files_.k, to_text(keys),
          fmt::format("[{}, length, a number of heads that divides {}, {}]", queries[0], queries[2], queries[3]));
    Shape of_values = keys;
    of_values[3] = std::max<std::int64_t>(values[3], 1);
    Shape outputs = queries;
    outputs[3] = of_values[3];
    struct Input {
      const char* field;
      const std::string* path;
      const Shape* shape;
      std::vector<std::uint16_t>* values;
    };
    const std::array<Input, 5> inputs = {{{"q", &files_.q, &queries, &arrays_.q},
                                          {"k", &files_.k, &keys, &arrays_.k},
                                          {"v", &files_.v, &of_values, &arrays_.v},
                                          {"o", &files_.o, &outputs, &arrays_.o},
                                          {"do", &files_.d_o, &outputs, &arrays_.d_o}}};
    for (const Input& input : inputs) {
      const auto header = read_npy_header(input.field, *input.path);
      if (!header) return std::unexpected(header.error());
      if (header->shape != *input.shape)
        return bad_shape(input.field, *input.path, to_text(header->shape), to_text(*input.shape));
    }
    for (const Input& input : inputs) {
      auto array = read_npy(input.field, *input.path, of.type);
      if (!array) return std::unexpected(array.error());
      if (array->became_infinite > 0)
        notes.push_back(fmt::format("{} has {} values beyond the range of {}; they became infinite", input.field,
                                    array->became_infinite, to_text(of.type)));
      *input.values = std::move(array->values);
    }
    if (auto read = read_row_numbers("lse", files_.lse, queries, arrays_.lse); !read) return read;
    arrays_.with_d_lse = !files_.d_lse.empty();
    if (arrays_.with_d_lse)
      if (auto read = read_row_numbers("d-lse", files_.d_lse, queries, arrays_.d_lse); !read) return read;
    describe(queries, keys, of_values[3]);
    if (auto read = read_slopes(); !read) return read;
    arrays_.estimated = true;  // o and LSE are whatever the files say
    answers_ = {Answer{"dq", &files_.dq, queries}, Answer{"dk", &files_.dk, keys}, Answer{"dv", &files_.dv, of_values}};
    return {};
  }

  std::vector<NamedFile> inputs() const override {
    return named({{"q", files_.q},
                  {"k", files_.k},
                  {"v", files_.v},
                  {"o", files_.o},
                  {"lse", files_.lse},
                  {"do", files_.d_o},
                  {"d-lse", files_.d_lse},
                  {"alibi", files_.alibi}});
  }
  std::vector<NamedFile> outputs() const override {
    return named({{"dq", files_.dq}, {"dk", files_.dk}, {"dv", files_.dv}});
  }

  Result<void> prepare(wavejit_engine* engine) override {
    engine_ = engine;
    Result<void> good;
    const auto put = [&](const void* values, std::size_t bytes) -> void* {
      auto memory = DeviceArray::allocate(engine, bytes);
      if (!memory) {
        good = std::unexpected(memory.error());
        return nullptr;
      }
      if (values != nullptr)
        if (auto copied = memory->copy_in(values); !copied) good = std::unexpected(copied.error());
      memory_.push_back(std::move(*memory));
      return memory_.back().data();
    };
    const auto input = [&](const auto& values) {
      return values.empty() ? nullptr : put(values.data(), values.size() * sizeof values[0]);
    };
    pointers_ = {.q = input(arrays_.q),
                 .k = input(arrays_.k),
                 .v = input(arrays_.v),
                 .o = input(arrays_.o),
                 .d_o = input(arrays_.d_o),
                 .lse = input(arrays_.lse),
                 .d_lse = input(arrays_.d_lse),
                 .slopes = input(arrays_.slopes)};
    for (const auto& [answer, pointer] :
         {std::pair(&answers_[0], &pointers_.dq), std::pair(&answers_[1], &pointers_.dk),
          std::pair(&answers_[2], &pointers_.dv)})
      *pointer = put(nullptr, bytes_of(*answer));
    return good;
  }
  void release() override { memory_.clear(); }

  Result<void> launch(wavejit_call_report* report) override {
    wavejit_attention_backward_arguments call = call_of(arrays_, pointers_);
    call.report = report;
    return checked(wavejit_attention_backward(engine_, &call, nullptr));
  }

  Result<bool> fetch() override {
    bool same = true;
    for (const auto& [answer, pointer] : {std::pair(&answers_[0], pointers_.dq), std::pair(&answers_[1], pointers_.dk),
                                          std::pair(&answers_[2], pointers_.dv)}) {
      std::vector<std::byte> bytes(bytes_of(*answer));
      if (auto copied = checked(wavejit_device_copy_out(engine_, bytes.data(), pointer, bytes.size())); !copied)
        return std::unexpected(copied.error());
      same = same && (!fetched_ || bytes == answer->bytes);
      if (!fetched_) answer->bytes = std::move(bytes);
    }
    fetched_ = true;
    return same;
  }

  Judgement check() const override {
    const Gradients exact = exact_gradients(arrays_);
    BoundJudge judge;
    for (const auto& [answer, gradient] :
         {std::pair(&answers_[0], &exact.dq), std::pair(&answers_[1], &exact.dk), std::pair(&answers_[2], &exact.dv)}) {
      const std::vector<float> values = numbers(*answer);
      const auto dims = static_cast<std::size_t>(answer->shape[3]);
      for (std::size_t at = 0; at < values.size(); at += dims) {
        const auto row = static_cast<std::int64_t>(at / dims);
        const std::vector<double> bounds = bounds_of(arrays_, *gradient, at, dims);
        judge.row({.sequence = row / (answer->shape[1] * answer->shape[2]),
                   .token = row / answer->shape[2] % answer->shape[1],
                   .head = row % answer->shape[2]},
                  std::span(gradient->values).subspan(at, dims), bounds, std::span(values).subspan(at, dims));
      }
    }
    return judge.judgement();
  }

  std::vector<OutputArray> answers() const override {
    std::vector<OutputArray> arrays;
    for (const Answer& answer : answers_)
      if (!answer.path->empty()) arrays.push_back({npy_bytes(numbers(answer), answer.shape), to_text(answer.shape)});
    return arrays;
  }

 private:
  static std::vector<NamedFile> named(std::vector<NamedFile> files) {
    std::erase_if(files, [](const NamedFile& file) { return file.path.empty(); });
    return files;
  }

  Result<void> read_row_numbers(const char* field, const std::string& path, const Shape& queries,
                                std::vector<float>& to) const {
    auto numbers = read_npy_row_numbers(field, path);
    if (!numbers) return std::unexpected(numbers.error());
    const std::vector<std::int64_t> wanted = {queries[0], queries[2], queries[1]};
    if (numbers->shape != wanted) return bad_shape(field, path, text_of(numbers->shape), text_of(wanted));
    to = std::move(numbers->values);
    return {};
  }

  void describe(const Shape& queries, const Shape& keys, std::int64_t value_dims) {
    attention::program::Experiment& of = arrays_.experiment;
    of.batch = queries[0];
    of.query_length = queries[1];
    of.key_length = keys[1];
    of.query_heads = queries[2];
    of.kv_heads = keys[2];
    of.head_dim_qk = queries[3];
    of.head_dim_v = value_dims;
    const attention::program::CallMask mask = mask_.given();
    of.mask = mask.bits;
    of.causal_prefix = mask.causal_prefix;
    of.window_left = mask.window_left;
    of.window_right = mask.window_right;
    of.scale = parse_finite(scale_).value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(queries[3]))));
    told(Modifier::softcap).number = parse_positive(softcap_).value_or(0.0F);
  }

  Result<void> read_slopes() {
    if (files_.alibi.empty()) return {};
    auto slopes = read_npy_vector("alibi", files_.alibi);
    if (!slopes) return std::unexpected(slopes.error());
    const attention::program::Experiment& of = arrays_.experiment;
    const bool by_batch = slopes->shape == std::vector{of.batch, of.query_heads};
    if (!by_batch && slopes->shape != std::vector{of.query_heads})
      return bad_shape("alibi", files_.alibi, text_of(slopes->shape),
                       fmt::format("[{}] or [{}, {}]", of.query_heads, of.batch, of.query_heads));
    told(Modifier::alibi).extent = by_batch ? Extent::batch_and_head : Extent::head;
    arrays_.slopes = std::move(slopes->values);
    return {};
  }

  ToldModifier& told(Modifier modifier) { return arrays_.experiment.modifiers[static_cast<std::size_t>(modifier)]; }
  std::size_t bytes_of(const Answer& answer) const {
    return static_cast<std::size_t>(element_count(answer.shape)) * arrays_.experiment.output_bytes();
  }
  std::vector<float> numbers(const Answer& answer) const {
    const std::size_t bytes = arrays_.experiment.output_bytes();
    std::vector<float> values(answer.bytes.size() / bytes);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &answer.bytes[i * bytes], bytes);
      values[i] = arrays_.experiment.output_fp32 ? std::bit_cast<float>(bits)
                                                 : decode(arrays_.experiment.type, static_cast<std::uint16_t>(bits));
    }
    return values;
  }

  Files files_;
  MaskOptions mask_;
  std::string softcap_;
  std::string scale_;
  std::string dtype_ = "fp16";

  Arrays arrays_;
  wavejit_engine* engine_ = nullptr;
  std::vector<DeviceArray> memory_;
  DevicePointers pointers_;
  bool fetched_ = false;
  std::array<Answer, 3> answers_{};
};

}  // namespace

std::unique_ptr<ArrayCall> make_array_call() { return std::make_unique<GradientsCall>(); }

}  // namespace wavejit::attention_backward::program
