// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/experiment_arrays.h"

#include <cmath>
#include <limits>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

#include "templates/attention/program/inputs.h"
#include "templates/attention_backward/call/descriptor.h"
#include "templates/attention_backward/call/sums.h"
#include "tools/all_cores.h"
#include "tools/array_problem.h"
#include "tools/canonical_line.h"

namespace wavejit::attention_backward::program {
namespace {

using attention::Modifier;
using attention::program::Experiment;
using attention::program::Inputs;
using attention::program::Operand;
using attention::program::Placement;
using attention::program::Sequence;
using tools::decode;
using tools::encode;
using tools::HalfType;

std::vector<std::uint16_t> filled(const Inputs& inputs, Operand operand, const Placement& placement) {
  std::vector<std::uint16_t> elements(static_cast<std::size_t>(placement.elements()));
  for (std::int64_t token = 0; token < placement.batch * placement.length; ++token)
    for (std::int64_t head = 0; head < placement.heads; ++head)
      inputs.fill(operand, (token * placement.heads) + head, token % placement.length,
                  std::span(elements).subspan(static_cast<std::size_t>(placement.offset(token, head)),
                                              static_cast<std::size_t>(placement.head_dim)));
  return elements;
}

// Appends a row as numbers.
void append(std::vector<double>& to, HalfType type, const std::vector<std::uint16_t>& from, const Placement& placement,
            std::int64_t token, std::int64_t head) {
  const auto first = static_cast<std::size_t>(placement.offset(token, head));
  for (std::size_t d = 0; d < static_cast<std::size_t>(placement.head_dim); ++d)
    to.push_back(static_cast<double>(decode(type, from[first + d])));
}

// How the tensors lie: v and its gradient, o and dO may have other dims than q and k.
struct Places {
  explicit Places(const Experiment& of)
      : queries(attention::program::queries_of(of)),
        keys(attention::program::keys_of(of)),
        values(attention::program::values_of(of)),
        outputs(attention::program::outputs_of(of)) {}
  Placement queries, keys, values, outputs;
};

// One sequence and kv head of the arrays.
struct Part {
  std::size_t sequence;
  std::int64_t kv_head;
};

Operands operands_of(const Arrays& arrays, const Sequence& sequence, const Part& part, const Places& places) {
  const auto& [queries, keys, values, of_outputs] = places;
  const Experiment& experiment = arrays.experiment;
  Operands of;
  of.rows = sequence.queries;
  of.keys = sequence.keys;
  of.dims_qk = experiment.head_dim_qk;
  of.dims_v = experiment.head_dim_v;
  of.dq_unscaled = (arrays.sums_behind & WAVEJIT_SUMS_OF_DQ) != 0;
  of.dk_unscaled = (arrays.sums_behind & WAVEJIT_SUMS_OF_DK_DV) != 0;
  const std::int64_t group = experiment.group();
  for (std::int64_t in_group = 0; in_group < group; ++in_group) {
    const std::int64_t head = (part.kv_head * group) + in_group;
    auto rules = attention::program::rules_of(experiment, sequence);
    rules.softcap = static_cast<double>(experiment.of(Modifier::softcap).number);
    if (!arrays.slopes.empty()) {
      const bool by_batch = arrays.slopes.size() > static_cast<std::size_t>(experiment.query_heads);
      const std::int64_t batch = by_batch ? static_cast<std::int64_t>(part.sequence) : 0;
      rules.slope =
          static_cast<double>(arrays.slopes[static_cast<std::size_t>((batch * experiment.query_heads) + head)]);
    }
    if (!arrays.sinks.empty()) rules.sink = static_cast<double>(arrays.sinks[static_cast<std::size_t>(head)]);
    of.rules.push_back(rules);
    const attention::program::BiasPlacement bias = attention::program::bias_of(experiment);
    for (std::int64_t row = 0; !arrays.bias.empty() && row < sequence.queries; ++row) {
      const auto first = static_cast<std::size_t>(
          bias.row(experiment, static_cast<std::int64_t>(part.sequence), sequence, head, row) * bias.row_stride);
      for (std::size_t key = 0; key < static_cast<std::size_t>(sequence.keys); ++key)
        of.bias.push_back(static_cast<double>(arrays.bias[first + key]));
    }
    for (std::int64_t row = 0; row < sequence.queries; ++row) {
      append(of.q, experiment.type, arrays.q, queries, sequence.first_query + row, head);
      append(of.d_o, experiment.type, arrays.d_o, of_outputs, sequence.first_query + row, head);
      if (arrays.with_d_lse)
        of.d_lse.push_back(static_cast<double>(arrays.d_lse[number_at(queries, sequence.first_query + row, head)]));
    }
  }
  if (arrays.estimated)
    for (std::int64_t head = part.kv_head * group; head < (part.kv_head + 1) * group; ++head)
      for (std::int64_t token = sequence.first_query; token < sequence.first_query + sequence.queries; ++token) {
        append(of.given.o, experiment.type, arrays.o, of_outputs, token, head);
        of.given.lse.push_back(static_cast<double>(arrays.lse[number_at(queries, token, head)]));
      }
  for (std::int64_t key = 0; key < sequence.keys; ++key) {
    append(of.k, experiment.type, arrays.k, keys, sequence.first_key + key, part.kv_head);
    append(of.v, experiment.type, arrays.v, values, sequence.first_key + key, part.kv_head);
  }
  return of;
}

// Outputs of a row, in every form in which a call may get them.
void put_outputs(Arrays& arrays, const Places& places, std::int64_t token, std::int64_t head, const Operands& operands,
                 const Outputs& outputs, std::int64_t row) {
  const Experiment& of = arrays.experiment;
  const std::size_t number = number_at(places.queries, token, head);
  arrays.lse[number] = static_cast<float>(outputs.lse[static_cast<std::size_t>(row)]);
  double delta = 0;
  for (std::int64_t d = 0; d < of.head_dim_v; ++d) {
    const auto from = static_cast<std::size_t>((row * of.head_dim_v) + d);
    const auto to = static_cast<std::size_t>(places.outputs.offset(token, head) + d);
    arrays.o[to] = encode(of.type, outputs.o[from]);
    if (!arrays.o_fp32.empty()) arrays.o_fp32[to] = static_cast<float>(outputs.o[from]);
    delta += outputs.o[from] * operands.d_o[from];
  }
  if (!arrays.delta.empty()) arrays.delta[number] = static_cast<float>(delta);
}

void put(Gradient& to, const Placement& placement, std::int64_t token, std::int64_t head, const Gradient& from,
         std::int64_t row) {
  const auto first = static_cast<std::size_t>(placement.offset(token, head));
  const auto dims = static_cast<std::size_t>(placement.head_dim);
  for (std::size_t d = 0; d < dims; ++d) {
    to.values[first + d] = from.values[(static_cast<std::size_t>(row) * dims) + d];
    to.magnitudes[first + d] = from.magnitudes[(static_cast<std::size_t>(row) * dims) + d];
  }
}

// LSE of rows whose scores are as good as normal with a variance of one.
void estimate_outputs(Arrays& arrays, const std::vector<Sequence>& sequences, const Places& places) {
  const Experiment& of = arrays.experiment;
  const Placement& queries = places.queries;
  arrays.o = filled(Inputs(of.type, "normal", of.seed + 0x51ED270B), Operand::q, places.outputs);
  for (const Sequence& sequence : sequences) {
    const auto rules = attention::program::rules_of(of, sequence);
    for (std::int64_t row = 0; row < sequence.queries; ++row) {
      const auto [first, end] = attention::program::visible_keys(rules, row, sequence.keys);
      const auto keys = static_cast<float>(end - first);
      const float lse = keys > 0 ? std::log(keys) + 0.5F : -std::numeric_limits<float>::infinity();
      for (std::int64_t head = 0; head < queries.heads; ++head)
        arrays.lse[number_at(queries, sequence.first_query + row, head)] = lse;
    }
  }
}

// Sums of calls before, which get the factor that this call's terms get.
void begin_at(Gradient& gradient, const std::vector<float>& before, double factor) {
  for (std::size_t i = 0; i < before.size(); ++i) gradient.values[i] += factor * static_cast<double>(before[i]);
}

Gradient zeros(const Placement& placement) {
  const auto count = static_cast<std::size_t>(placement.elements());
  return {.values = std::vector<double>(count), .magnitudes = std::vector<double>(count)};
}

// Each kv head of each sequence, on all cores.
template <typename Work>
void for_each_part(const Experiment& of, const Work& work) {
  const std::vector<Sequence> sequences = attention::program::sequences_of(of);
  tools::on_all_cores(sequences.size() * static_cast<std::size_t>(of.kv_heads), [&](std::size_t i) {
    const Part part = {.sequence = i / static_cast<std::size_t>(of.kv_heads),
                       .kv_head = static_cast<std::int64_t>(i) % of.kv_heads};
    work(part, sequences[part.sequence]);
  });
}

// Calls `work` for a part's query heads, row by row: number in the part, token, head.
template <typename Work>
void for_each_row(const Experiment& of, const Part& part, const Sequence& sequence, const Work& work) {
  for (std::int64_t in_group = 0; in_group < of.group(); ++in_group)
    for (std::int64_t row = 0; row < sequence.queries; ++row)
      work((in_group * sequence.queries) + row, sequence.first_query + row, (part.kv_head * of.group()) + in_group);
}

}  // namespace

void read_words(Arrays& arrays) {
  const Experiment& of = arrays.experiment;
  arrays.with_d_lse = of.says("d_lse");
  arrays.d_bias_fp32 = of.says("d_bias=fp32");
  arrays.with_d_bias = arrays.d_bias_fp32 || of.says("d_bias");
  const auto sums_said = [&](std::string_view key) {
    return sums_of_text(attention::program::word_behind(of.text, key)).value_or(0);
  };
  arrays.sums_before = sums_said(" sums_before=");
  arrays.sums_behind = sums_said(" sums_behind=");
}

void compute_outputs(Arrays& arrays) {
  const Experiment& of = arrays.experiment;
  const Places places(of);
  for_each_part(of, [&](const Part& part, const Sequence& sequence) {
    const Operands operands = operands_of(arrays, sequence, part, places);
    const Outputs outputs = forward(operands);
    for_each_row(of, part, sequence, [&](std::int64_t number, std::int64_t token, std::int64_t head) {
      put_outputs(arrays, places, token, head, operands, outputs, number);
    });
  });
}

Gradients exact_gradients(const Arrays& arrays) {
  const Experiment& of = arrays.experiment;
  const Places places(of);
  const std::size_t heads = arrays.sinks.size() * static_cast<std::size_t>(of.batch);
  Gradients exact = {.dq = zeros(places.queries),
                     .dk = zeros(places.keys),
                     .dv = zeros(places.values),
                     .d_sink = {.values = std::vector<double>(heads), .magnitudes = std::vector<double>(heads)},
                     .d_bias = {}};
  const attention::program::BiasPlacement bias = attention::program::bias_of(of);
  if (arrays.with_d_bias) {
    exact.d_bias.values.resize(static_cast<std::size_t>(bias.elements()));
    exact.d_bias.magnitudes.resize(exact.d_bias.values.size());
  }
  // The elements after the last key of a row are never written.
  for (std::size_t i = 0; i < exact.d_bias.values.size(); ++i)
    if (static_cast<std::int64_t>(i) % bias.row_stride >= bias.columns)
      exact.d_bias.values[i] = std::numeric_limits<double>::quiet_NaN();
  std::mutex shared;  // what broadcasts: several parts add to one element
  for_each_part(of, [&](const Part& part, const Sequence& sequence) {
    const Gradients gradients = backward(operands_of(arrays, sequence, part, places));
    for_each_row(of, part, sequence, [&](std::int64_t number, std::int64_t token, std::int64_t head) {
      put(exact.dq, places.queries, token, head, gradients.dq, number);
    });
    for (std::int64_t in_group = 0; heads > 0 && in_group < of.group(); ++in_group) {
      const std::size_t to =
          (part.sequence * arrays.sinks.size()) + static_cast<std::size_t>((part.kv_head * of.group()) + in_group);
      exact.d_sink.values[to] = gradients.d_sink.values[static_cast<std::size_t>(in_group)];
      exact.d_sink.magnitudes[to] = gradients.d_sink.magnitudes[static_cast<std::size_t>(in_group)];
    }
    if (arrays.with_d_bias) {
      const std::lock_guard lock(shared);
      for (std::int64_t in_group = 0; in_group < of.group(); ++in_group)
        for (std::int64_t row = 0; row < sequence.queries; ++row) {
          const std::int64_t head = (part.kv_head * of.group()) + in_group;
          const auto to = static_cast<std::size_t>(
              bias.row(of, static_cast<std::int64_t>(part.sequence), sequence, head, row) * bias.row_stride);
          const auto from = static_cast<std::size_t>(((in_group * sequence.queries) + row) * sequence.keys);
          for (std::size_t key = 0; key < static_cast<std::size_t>(sequence.keys); ++key) {
            exact.d_bias.values[to + key] += gradients.d_bias.values[from + key];
            exact.d_bias.magnitudes[to + key] += gradients.d_bias.magnitudes[from + key];
          }
        }
    }
    for (std::int64_t key = 0; key < sequence.keys; ++key) {
      put(exact.dk, places.keys, sequence.first_key + key, part.kv_head, gradients.dk, key);
      put(exact.dv, places.values, sequence.first_key + key, part.kv_head, gradients.dv, key);
    }
  });
  const auto scale = static_cast<double>(of.scale);
  begin_at(exact.dq, arrays.dq_before, (arrays.sums_behind & WAVEJIT_SUMS_OF_DQ) != 0 ? 1 : scale);
  begin_at(exact.dk, arrays.dk_before, (arrays.sums_behind & WAVEJIT_SUMS_OF_DK_DV) != 0 ? 1 : scale);
  begin_at(exact.dv, arrays.dv_before, 1);
  return exact;
}

// Bounds from rounding P and dS twice (their own and o's stand in the magnitude) and the gradient once if it is
// rounded; f32 sums, those of calls before among them, and exponents cost far less than the storage type's last bit.
std::vector<double> bounds_of(const Arrays& arrays, const Gradient& gradient, std::size_t first, std::size_t count) {
  const double unit = arrays.experiment.type == HalfType::bf16 ? 1.0 / 256 : 1.0 / 2048;
  const double smallest = arrays.experiment.type == HalfType::bf16 ? 1e-30 : 1e-7;
  std::vector<double> bounds(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double magnitude = gradient.magnitudes[first + i];
    const double value = std::fabs(gradient.values[first + i]);
    const double of_output = arrays.experiment.output_fp32 ? 0 : unit * value;
    bounds[i] = (1.1 * unit * magnitude) + of_output + (2e-6 * (magnitude + value)) + smallest;
  }
  return bounds;
}

std::vector<std::byte> bias_bytes(const Arrays& arrays) {
  if (arrays.experiment.bias_fp32) {
    const auto bytes = std::as_bytes(std::span(arrays.bias));
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::uint16_t> elements;
  elements.reserve(arrays.bias.size());
  for (const float element : arrays.bias)
    elements.push_back(encode(arrays.experiment.type, static_cast<double>(element)));
  const auto bytes = std::as_bytes(std::span(elements));
  return {bytes.begin(), bytes.end()};
}

std::size_t number_at(const attention::program::Placement& queries, std::int64_t token, std::int64_t head) {
  const std::int64_t batch = token / queries.length;
  return static_cast<std::size_t>((((batch * queries.heads) + head) * queries.length) + (token % queries.length));
}

std::uint64_t Arrays::multiplications() const {
  return static_cast<std::uint64_t>(attention::program::multiplications(experiment) * 3.5);
}

namespace {

Experiment experiment_of(const ProblemDescriptor& from, std::string text) {
  Experiment to = attention::program::experiment_with(from, std::move(text));
  to.type = from.asked.dtype == DataType::bf16 ? HalfType::bf16 : HalfType::fp16;
  to.output_fp32 = from.asked.gradients_fp32;
  to.bias_fp32 = from.asked.bias_fp32;
  to.layout = from.layout == Layout::bhsd     ? attention::program::ArrayLayout::bhsd
              : from.layout == Layout::packed ? attention::program::ArrayLayout::packed
                                              : attention::program::ArrayLayout::bshd;
  to.query_heads = from.query_heads;
  to.kv_heads = from.kv_heads;
  to.head_dim_qk = from.asked.head_dim_qk;
  to.head_dim_v = from.asked.head_dim_v;
  // The generator draws sinks where their gradient is wanted.
  to.modifiers[static_cast<std::size_t>(Modifier::sink)].extent =
      from.d_sink ? attention::Extent::one : attention::Extent::none;
  to.lse = true;
  to.scale = attention::program::number_in(
      from.scale, static_cast<float>(1 / std::sqrt(static_cast<double>(from.asked.head_dim_qk))));
  return to;
}

}  // namespace

tools::Result<Experiment> parse_problem(const std::string& descriptor) {
  return tools::parsed_into(descriptor, parse_descriptor, experiment_of);
}

tools::Result<Arrays> make_arrays(const std::string& descriptor, bool with_gradients, MadeOutputs outputs) {
  auto experiment = parse_problem(descriptor);
  if (!experiment) return std::unexpected(experiment.error());
  Arrays arrays;
  arrays.experiment = *std::move(experiment);
  const Experiment& of = arrays.experiment;
  read_words(arrays);
  const Places places(of);
  const std::vector<Sequence> sequences = attention::program::sequences_of(of);
  const Inputs inputs(of.type, of.inputs, of.seed);
  const Inputs of_outputs(of.type, "normal", of.seed + 0x9E3779B9);
  arrays.q = filled(inputs, Operand::q, places.queries);
  arrays.k = filled(inputs, Operand::k, places.keys);
  arrays.v = filled(inputs, Operand::v, places.values);
  arrays.d_o = filled(of_outputs, Operand::q, places.outputs);
  arrays.estimated =
      outputs == MadeOutputs::estimated || attention::program::multiplications(of) > most_exact_multiplications;
  arrays.lse.resize(static_cast<std::size_t>(places.queries.rows()));
  if (arrays.with_d_lse) {
    for (std::size_t i = 0; i < arrays.lse.size(); ++i)
      arrays.d_lse.push_back(decode(of.type, arrays.d_o[i % arrays.d_o.size()]));
  }
  for (std::int64_t batch = 0; of.has(Modifier::alibi) && batch < of.batches_of(Modifier::alibi); ++batch)
    for (std::int64_t head = 0; head < of.query_heads; ++head)
      arrays.slopes.push_back(inputs.slope(batch, head, of.query_heads));
  const attention::program::BiasPlacement bias = attention::program::bias_of(of);
  arrays.bias.resize(static_cast<std::size_t>(bias.elements()));
  for (std::int64_t i = 0; i < bias.elements(); ++i)
    arrays.bias[static_cast<std::size_t>(i)] =
        attention::program::bias_element(of, inputs, i / bias.row_stride, i % bias.row_stride);
  static_cast<attention::program::SequenceArrays&>(arrays) = attention::program::sequence_arrays_of(of);
  if (of.says("delta")) arrays.delta.resize(arrays.lse.size());
  if (of.says("o=fp32")) arrays.o_fp32.resize(arrays.d_o.size());
  const auto before = [&](std::vector<float>& to, std::uint32_t sums, const Placement& placement, std::uint64_t which) {
    if ((arrays.sums_before & sums) != 0)
      to = tools::seeded_values(of.seed + which, static_cast<std::size_t>(placement.elements()));
  };
  before(arrays.dq_before, WAVEJIT_SUMS_OF_DQ, places.queries, 1);
  before(arrays.dk_before, WAVEJIT_SUMS_OF_DK_DV, places.keys, 2);
  before(arrays.dv_before, WAVEJIT_SUMS_OF_DK_DV, places.values, 3);
  // Some above most scores of a row, some below.
  for (std::int64_t head = 0; of.says("d_sink") && head < of.query_heads; ++head)
    arrays.sinks.push_back(static_cast<float>((head * 7 % 5) - 1));
  if (arrays.estimated)
    estimate_outputs(arrays, sequences, places);
  else
    arrays.o.resize(arrays.d_o.size());
  if (!arrays.estimated) compute_outputs(arrays);
  if (with_gradients) arrays.exact = exact_gradients(arrays);
  return arrays;
}

}  // namespace wavejit::attention_backward::program
