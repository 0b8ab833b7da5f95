#include "templates/attention_forward/program/modifier_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/engine_options.h"

namespace wavejit::attention_forward::program {

namespace {

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_prefix(const std::string& text) {
  const auto value = parse<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<std::pair<std::int32_t, std::int32_t>> parse_window(const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) return std::nullopt;
  const auto left = parse<std::int32_t>(std::string_view(text).substr(0, comma));
  const auto right = parse<std::int32_t>(std::string_view(text).substr(comma + 1));
  if (!left || !right || *left < -1 || *right < -1) return std::nullopt;
  return std::pair(*left, *right);
}

std::optional<float> parse_softcap(const std::string& text) {
  const auto value = parse<float>(text);
  return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
}

// auto: the engine's choice.
std::optional<std::int32_t> parse_splits(const std::string& text) {
  if (text == "auto") return 0;
  const auto value = parse<std::int32_t>(text);
  return value && *value >= 1 ? value : std::nullopt;
}

template <typename Parse>
void add_parsed(CLI::App& command, const std::string& name, std::string& value, const std::string& type_name,
                const std::string& help, Parse parse_text, const std::string& accepted) {
  limit(command.add_option(name, value, help), type_name, [parse_text, accepted](const std::string& given) {
    return parse_text(given) ? std::string() : fmt::format("'{}' is not accepted; {}", given, accepted);
  });
}

Result<void> check_vector(const char* field, const std::string& path, const Vector& vector, std::int64_t batch,
                          std::int64_t heads, bool of_batch) {
  const bool right = vector.shape.back() == heads &&
                     (vector.shape.size() == 1 || (of_batch && (vector.shape[0] == batch || vector.shape[0] == 1)));
  if (right) return {};
  return failed(ExitCode::file,
                fmt::format("--{} {}: its shape is [{}{}]; [{}]{} accepted", field, path,
                            vector.shape.size() == 2 ? fmt::format("{}, ", vector.shape[0]) : "", vector.shape.back(),
                            heads, of_batch ? fmt::format(" and [{}, {}] are", batch, heads) : " is"));
}

wavejit_tensor slopes_tensor(const DeviceArray& memory, std::int64_t batches, std::int64_t heads) {
  return wavejit_dense_tensor(memory.data(), WAVEJIT_FP32, batches, heads, 1, 1);
}

std::int64_t rows_of(const Vector& vector) { return vector.shape.size() == 2 ? vector.shape[0] : 1; }

Result<DeviceArray> copied(wavejit_engine* engine, const void* data, std::size_t bytes) {
  auto memory = DeviceArray::allocate(engine, bytes);
  if (!memory) return memory;
  if (auto done = memory->copy_in(data); !done) return std::unexpected(done.error());
  return memory;
}

}  // namespace

void Modifiers::add_options(CLI::App& command) {
  command.add_flag("--causal", causal_, "a query sees no later key; the last query sees all (aligned bottom-right)");
  add_parsed(command, "--causal-prefix", prefix_, "N", "causal, with N keys before the first query's own", parse_prefix,
             "numbers of keys are, from 0");
  add_parsed(command, "--window", window_, "LEFT,RIGHT",
             "keys that a query sees before and after its own place; -1: no limit", parse_window,
             "two numbers from -1 are, as 1023,0");
  add_parsed(command, "--softcap", softcap_, "X", "scores become X * tanh(score / X)", parse_softcap,
             "finite numbers above 0 are");
  command
      .add_option("--bias", bias_path_,
                  "added to the scores [batch or 1, heads or 1, length of queries, length of keys], rounded to --dtype")
      ->type_name("FILE.npy");
  command.add_option("--alibi", alibi_path_, "ALiBi slopes [heads] or [batch, heads], float32")->type_name("FILE.npy");
  command.add_option("--sink", sink_path_, "one more logit for every head [heads], float32")->type_name("FILE.npy");
  add_parsed(command, "--splits", splits_, "N|auto", "cut the keys into so many parts that are computed side by side",
             parse_splits, "numbers from 1 are, and auto");
}

Result<void> Modifiers::read(HalfType type, const Shape& queries, const Shape& keys) {
  if (!bias_path_.empty()) {
    auto bias = read_npy("bias", bias_path_, type);
    if (!bias) return std::unexpected(bias.error());
    const Shape& shape = bias->shape;
    if ((shape[0] != 1 && shape[0] != queries[0]) || (shape[1] != 1 && shape[1] != queries[2]) ||
        shape[2] != queries[1] || shape[3] != keys[1]) {
      return failed(ExitCode::file,
                    fmt::format("--bias {}: its shape is {}; [{} or 1, {} or 1, {}, {}] is accepted", bias_path_,
                                to_text(shape), queries[0], queries[2], queries[1], keys[1]));
    }
    bias_.emplace(std::move(*bias));
  }
  if (!alibi_path_.empty()) {
    auto slopes = read_npy_vector("alibi", alibi_path_);
    if (!slopes) return std::unexpected(slopes.error());
    if (auto right = check_vector("alibi", alibi_path_, *slopes, queries[0], queries[2], true); !right) return right;
    alibi_.emplace(std::move(*slopes));
  }
  if (!sink_path_.empty()) {
    auto sinks = read_npy_vector("sink", sink_path_);
    if (!sinks) return std::unexpected(sinks.error());
    if (auto right = check_vector("sink", sink_path_, *sinks, queries[0], queries[2], false); !right) return right;
    sink_.emplace(std::move(*sinks));
  }
  return {};
}

Result<ModifiersOnDevice> Modifiers::copy_to(wavejit_engine* engine) const {
  ModifiersOnDevice arrays;
  if (bias_) {
    // Rows begin at multiples of 8 elements, whatever the number of keys.
    const auto columns = static_cast<std::size_t>(bias_->shape[3]);
    const std::size_t stride = (columns + 7) / 8 * 8;
    arrays.bias_row_stride = static_cast<std::int64_t>(stride);
    const std::size_t rows = columns == 0 ? 0 : bias_->values.size() / columns;
    std::vector<std::uint16_t> padded(rows * stride);
    for (std::size_t row = 0; row < rows; ++row)
      std::copy_n(&bias_->values[row * columns], columns, &padded[row * stride]);
    auto memory = copied(engine, padded.data(), padded.size() * 2);
    if (!memory) return std::unexpected(memory.error());
    arrays.bias.emplace(std::move(*memory));
  }
  for (const auto& [vector, memory] : {std::pair(&alibi_, &arrays.alibi), std::pair(&sink_, &arrays.sink)}) {
    if (!*vector) continue;
    auto made = copied(engine, (*vector)->values.data(), (*vector)->values.size() * sizeof(float));
    if (!made) return std::unexpected(made.error());
    memory->emplace(std::move(*made));
  }
  return arrays;
}

void Modifiers::describe(wavejit_attention_forward_arguments& call, const ModifiersOnDevice& arrays) const {
  if (causal_ || !prefix_.empty()) call.mask |= WAVEJIT_MASK_CAUSAL;
  if (const auto prefix = parse_prefix(prefix_)) {
    call.mask |= WAVEJIT_MASK_PREFIX;
    call.causal_prefix = *prefix;
  }
  if (const auto window = parse_window(window_)) {
    call.mask |= WAVEJIT_MASK_WINDOW;
    call.window_left = window->first;
    call.window_right = window->second;
  }
  call.softcap = parse_softcap(softcap_).value_or(0.0F);
  call.splits = parse_splits(splits_).value_or(0);
  if (arrays.bias) {
    const Shape& shape = bias_->shape;
    call.bias = wavejit_dense_tensor(arrays.bias->data(), WAVEJIT_DTYPE_NONE, shape[0], shape[1], shape[2],
                                     arrays.bias_row_stride);
    call.bias.dtype = call.q.dtype;
    call.bias.sizes[3] = shape[3];
  }
  if (arrays.alibi) call.alibi = slopes_tensor(*arrays.alibi, rows_of(*alibi_), alibi_->shape.back());
  if (arrays.sink) call.sink = slopes_tensor(*arrays.sink, 1, sink_->shape.back());
}

void Modifiers::describe(AttentionProblem& problem) const {
  problem.causal = causal_ || !prefix_.empty();
  problem.causal_prefix = parse_prefix(prefix_);
  if (const auto window = parse_window(window_)) {
    problem.window = true;
    problem.window_left = window->first;
    problem.window_right = window->second;
  }
  problem.softcap = parse_softcap(softcap_).value_or(0.0F);
  if (bias_) problem.bias = &*bias_;
  if (alibi_) problem.slopes = alibi_->values;
  if (sink_) problem.sinks = sink_->values;
}

}  // namespace wavejit::attention_forward::program
