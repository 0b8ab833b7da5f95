// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arrays of a case: made, filled, marked, and the fences around them looked at.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "templates/attention/program/block_lists.h"
#include "templates/attention/program/cache_bytes.h"
#include "templates/attention_forward/program/device_case.h"

namespace wavejit::attention_forward::program {

namespace {

// The most rows by which a tile may stand beyond the last one.
constexpr std::int64_t margin_rows = 256;
constexpr std::size_t staging_bytes = std::size_t{8} << 20;

std::vector<std::int32_t> in_32_bits(const std::vector<std::int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

std::vector<std::int32_t> starts_of(const std::vector<Sequence>& sequences, std::int64_t Sequence::* length) {
  std::vector<std::int32_t> starts = {0};
  for (const Sequence& sequence : sequences)
    starts.push_back(starts.back() + static_cast<std::int32_t>(sequence.*length));
  return starts;
}

// Which token of the problem stands at a place in memory, and its number in its sequence; −1: none that counts.
struct Token {
  std::int64_t number = 0;
  std::int64_t position = -1;
};

std::vector<Token> tokens_in_memory(const Experiment& problem, const std::vector<Sequence>& sequences,
                                    const PageTable& pages, bool of_queries, std::int64_t places) {
  std::vector<Token> tokens(static_cast<std::size_t>(places));
  const bool paged = !of_queries && problem.paged();
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const std::int64_t first = of_queries ? sequences[b].first_query : sequences[b].first_key;
    for (std::int64_t i = 0; i < (of_queries ? sequences[b].queries : sequences[b].keys); ++i) {
      std::int64_t place = first + i;
      if (paged) {
        const std::int64_t slot = sequences[b].padding + i;
        const std::int64_t column = static_cast<std::int64_t>(b) * pages.columns + slot / problem.page_size;
        place = pages.entries[static_cast<std::size_t>(column)] * problem.page_size + slot % problem.page_size;
      }
      tokens[static_cast<std::size_t>(place)] = {.number = first + i, .position = i};
    }
  }
  return tokens;
}

// A scale for each token of each kv head, as K lies, and NaN where no token is.
std::vector<float> token_scales_of(const Experiment& problem, Operand operand) {
  Placement placement = stored(problem, keys_of(problem));
  placement.head_dim = 1;
  const auto tokens = tokens_in_memory(problem, sequences_of(problem), page_table_of(problem), false,
                                       placement.batch * placement.length);
  std::vector<float> scales(static_cast<std::size_t>(placement.elements()), std::numeric_limits<float>::quiet_NaN());
  for (std::size_t at = 0; at < tokens.size(); ++at)
    for (std::int64_t head = 0; head < placement.heads && tokens[at].position >= 0; ++head)
      scales[static_cast<std::size_t>(placement.offset(static_cast<std::int64_t>(at), head))] =
          token_scale_of(problem, operand, tokens[at].number, head);
  return scales;
}

// A slot is a key's place in the cache: in its page, or, of dense keys, in the rows of all sequences.
struct BothLists {
  KeyLists first, second;
};
// Slots of the second cache are counted from its end.
BothLists key_lists_of(const Experiment& problem) {
  if (list_words(problem.text).top_k == 0) return {};
  const std::vector<Sequence> sequences = sequences_of(problem);
  const PageTable pages = page_table_of(problem);
  const std::int64_t slots = problem.paged() ? pages.pages * problem.page_size : problem.batch * problem.key_length;
  const auto slot_of = [&](std::int64_t sequence, std::int64_t key) {
    if (!problem.paged()) return sequences[static_cast<std::size_t>(sequence)].first_key + key;
    const std::int64_t column = (sequence * pages.columns) + (key / problem.page_size);
    return (pages.entries[static_cast<std::size_t>(column)] * problem.page_size) + (key % problem.page_size);
  };
  return {.first = make_key_lists(problem, slots, slot_of),
          .second = make_second_lists(problem, slots, [&](std::int64_t sequence, std::int64_t key) {
            return slots - 1 - slot_of(sequence, key);
          })};
}

// Q of f32 that is rounded to what it is made of: a little less than half a step away, up and down in turn.
std::vector<float> unrounded(HalfType type, std::span<const std::uint16_t> elements) {
  const float off = type == HalfType::bf16 ? 0x1.fp-10F : 0x1.fp-13F;  // of the number
  std::vector<float> floats(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const float value = decode(type, elements[i]);
    const float moved = value * (i % 2 == 0 ? 1 + off : 1 - off);
    floats[i] = encode(type, static_cast<double>(moved)) == elements[i] ? moved : value;
  }
  return floats;
}

// A byte for each row and key of a bool mask.
std::vector<std::uint8_t> shown_keys_of(const Experiment& problem) {
  const BiasPlacement mask = bool_mask_of(problem);
  std::vector<std::uint8_t> shown(static_cast<std::size_t>(mask.elements()), 1);
  on_all_cores(static_cast<std::size_t>(mask.batches * mask.heads * mask.rows), [&](std::size_t row) {
    const auto number = static_cast<std::int64_t>(row);
    for (std::int64_t key = 0; key < mask.columns; ++key)
      shown[static_cast<std::size_t>((number * mask.row_stride) + key)] =
          is_shown(problem, number, key) ? static_cast<std::uint8_t>(1 + (key % 255)) : std::uint8_t{0};
  });
  return shown;
}

// A head of a page, from rows of `dim` elements to units of 8 dims (K) or of 8 keys (V).
void vectorise(std::span<std::uint16_t> head, std::size_t dim, bool of_keys, std::int32_t layout) {
  constexpr std::size_t unit = 8;
  const std::vector<std::uint16_t> rows(head.begin(), head.end());
  const std::size_t keys = rows.size() / dim;
  for (std::size_t key = 0; key < keys; ++key) {
    for (std::size_t c = 0; c < dim; ++c) {
      const std::size_t at = of_keys                              ? c / unit * keys * unit + key * unit + c % unit
                             : layout == WAVEJIT_PAGES_VECTORISED ? c * keys + key
                                                                  : key / unit * dim * unit + c * unit + key % unit;
      head[at] = rows[key * dim + c];
    }
  }
}

}  // namespace

Result<void> DeviceCase::fill_with_mark(const DeviceArray& memory, std::size_t first, std::size_t bytes, int byte) {
  const std::vector<char> marks(std::min(bytes, staging_bytes), static_cast<char>(byte));
  for (std::size_t done = 0; done < bytes; done += marks.size()) {
    if (auto copied = memory.copy_in(marks.data(), first + done, std::min(marks.size(), bytes - done)); !copied)
      return copied;
  }
  return {};
}

Result<DeviceCase::Tensor> DeviceCase::make(wavejit_engine* engine, const Placement& placement, std::size_t element) {
  // A multiple of every alignment that is asked for.
  const std::size_t row = static_cast<std::size_t>(std::max(placement.stride_of_token(), placement.head_dim)) * element;
  const std::size_t margin = placement.rows() == 0 ? 256 : (margin_rows * row + 255) / 256 * 256;
  auto memory = DeviceArray::allocate(engine, static_cast<std::size_t>(placement.elements()) * element + 2 * margin);
  if (!memory) return std::unexpected(memory.error());
  return Tensor{.placement = placement, .element = element, .margin = margin, .memory = std::move(*memory)};
}

Result<void> DeviceCase::fill_margins(const Tensor& tensor, int byte) {
  if (auto before = fill_with_mark(tensor.memory, 0, tensor.margin, byte); !before) return before;
  return fill_with_mark(tensor.memory, tensor.margin + tensor.bytes(), tensor.margin, byte);
}

// A head at a time: its rows are made, and stand as columns. Its dims are few, its rows may be many.
Result<void> DeviceCase::fill_transposed(const Tensor& tensor, Operand operand, const Inputs& inputs) const {
  const Placement& placement = tensor.placement;
  const auto tokens =
      tokens_in_memory(problem_, sequences_, pages_, operand == Operand::q, placement.batch * placement.length);
  const auto dim = static_cast<std::size_t>(placement.head_dim);
  const auto length = static_cast<std::size_t>(placement.length);
  const auto fill_as = [&]<typename Element>(Element nothing) -> Result<void> {
    std::vector<Element> columns(length * dim);
    for (std::int64_t batch = 0; batch < placement.batch; ++batch)
      for (std::int64_t head = 0; head < placement.heads; ++head) {
        constexpr std::size_t chunk = 1024;
        on_all_cores((length + chunk - 1) / chunk, [&](std::size_t part) {
          std::vector<Element> row(dim);
          for (std::size_t at = part * chunk; at < std::min(length, (part + 1) * chunk); ++at) {
            const Token& token = tokens[(static_cast<std::size_t>(batch) * length) + at];
            if (token.position < 0) {
              std::ranges::fill(row, nothing);
            } else {
              inputs.fill(operand, token.number * placement.heads + head, token.position, std::span(row));
            }
            for (std::size_t c = 0; c < dim; ++c) columns[(c * length) + at] = row[c];
          }
        });
        const auto first = static_cast<std::size_t>(placement.offset(batch * placement.length, head));
        if (auto copied = tensor.memory.copy_in(columns.data(), tensor.margin + (first * tensor.element),
                                                columns.size() * tensor.element);
            !copied)
          return copied;
      }
    return {};
  };
  constexpr std::uint8_t foreign_integer = 0x93;
  return tensor.element == 1 ? fill_as(foreign_integer) : fill_as(marked_element);
}

Result<void> DeviceCase::fill(const Tensor& tensor, Operand operand, const Inputs& inputs, bool turned) const {
  const auto byte_type = tools::byte_type_of(problem_.cache_dtype);
  constexpr std::uint8_t foreign_integer = 0x93;  // integers have no NaN
  const std::uint8_t nan_byte = byte_type ? tools::nan_of(*byte_type) : foreign_integer;
  if (auto margins = fill_margins(tensor, tensor.element == 1 ? nan_byte : mark); !margins) return margins;
  const Placement& placement = tensor.placement;
  if (placement.rows() == 0) return {};
  if (placement.transposed) return fill_transposed(tensor, operand, inputs);
  auto tokens =
      tokens_in_memory(problem_, sequences_, pages_, operand == Operand::q, placement.batch * placement.length);
  if (turned) std::ranges::reverse(tokens);
  const auto dim = static_cast<std::size_t>(placement.head_dim);
  const auto rows = static_cast<std::size_t>(placement.rows());
  const auto layout = operand == Operand::q ? static_cast<std::int32_t>(WAVEJIT_PAGES_OF_ROWS) : problem_.page_layout;
  // Whole heads of pages.
  const auto granule = static_cast<std::size_t>(layout == WAVEJIT_PAGES_OF_ROWS ? 1 : placement.length);
  const bool in_bytes = tensor.element == 1;
  const std::size_t rows_at_once = std::max<std::size_t>(staging_bytes / (dim * 2) / granule, 1) * granule;
  std::vector<std::uint16_t> staging(std::min(rows, rows_at_once) * dim);
  // Elements of 8 bits, two in an element of the other.
  const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t*>(staging.data()), in_bytes ? staging.size() : 0);
  for (std::size_t first = 0; first < rows; first += rows_at_once) {
    const std::size_t count = std::min(rows_at_once, rows - first);
    constexpr std::size_t chunk = 1024;
    on_all_cores((count + chunk - 1) / chunk, [&](std::size_t part) {
      for (std::size_t i = part * chunk; i < std::min(count, (part + 1) * chunk); ++i) {
        const auto place = static_cast<std::int64_t>(first + i);  // in memory
        const std::int64_t in_batch = place % (placement.length * placement.heads);
        const std::int64_t batch = place / (placement.length * placement.heads);
        const std::int64_t at = batch * placement.length +
                                (placement.head_first ? in_batch % placement.length : in_batch / placement.heads);
        const std::int64_t head = placement.head_first ? in_batch / placement.length : in_batch % placement.heads;
        const Token& token = tokens[static_cast<std::size_t>(at)];
        if (in_bytes) {
          const auto row = bytes.subspan(i * dim, dim);
          if (token.position < 0) {
            std::ranges::fill(row, nan_byte);
          } else {
            inputs.fill(operand, token.number * placement.heads + head, token.position, row);
          }
          continue;
        }
        const auto row = std::span(staging).subspan(i * dim, dim);
        if (token.position < 0) {
          std::ranges::fill(row, marked_element);
        } else {
          inputs.fill(operand, token.number * placement.heads + head, token.position, row);
        }
      }
    });
    if (layout != WAVEJIT_PAGES_OF_ROWS) {
      on_all_cores(count / granule, [&](std::size_t head) {
        vectorise(std::span(staging).subspan(head * granule * dim, granule * dim), dim, operand == Operand::k, layout);
      });
    }
    const std::size_t element = tensor.element;
    const bool wide = element == sizeof(float);
    const std::vector<float> floats =
        wide ? unrounded(problem_.type, std::span(staging).first(count * dim)) : std::vector<float>();
    const void* from = wide ? static_cast<const void*>(floats.data()) : staging.data();
    if (auto copied = tensor.memory.copy_in(from, tensor.margin + (first * dim * element), count * dim * element);
        !copied)
      return copied;
  }
  return {};
}

Result<DeviceArray> DeviceCase::make_bias(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs) {
  const BiasPlacement bias = bias_of(problem);
  const std::size_t element = problem.bias_fp32 ? sizeof(float) : sizeof(std::uint16_t);
  auto memory = DeviceArray::allocate(engine, static_cast<std::size_t>(bias.elements()) * element);
  if (!memory) return memory;
  const std::int64_t rows = bias.batches * bias.heads * bias.rows;
  const std::size_t row_bytes = static_cast<std::size_t>(bias.row_stride) * element;
  const auto at_once = static_cast<std::int64_t>(std::max<std::size_t>(staging_bytes / (row_bytes + 1), 1));
  for (std::int64_t first = 0; first < rows; first += at_once) {
    const auto count = static_cast<std::size_t>(std::min(at_once, rows - first));
    // Padding is NaN: no key may meet it.
    std::vector<std::uint16_t> staging(count * row_bytes / sizeof(std::uint16_t), marked_element);
    auto* bytes = reinterpret_cast<unsigned char*>(staging.data());
    on_all_cores(count, [&](std::size_t i) {
      for (std::int64_t key = 0; key < bias.columns; ++key) {
        unsigned char* to = bytes + (i * row_bytes) + (static_cast<std::size_t>(key) * element);
        const float value = bias_element(problem, inputs, first + static_cast<std::int64_t>(i), key);
        const std::uint16_t rounded = encode(problem.type, static_cast<double>(value));
        std::memcpy(to, problem.bias_fp32 ? static_cast<const void*>(&value) : &rounded, element);
      }
    });
    if (auto copied = memory->copy_in(staging.data(), static_cast<std::size_t>(first) * row_bytes, count * row_bytes);
        !copied)
      return std::unexpected(copied.error());
  }
  return memory;
}

Result<DeviceCase::Extra> DeviceCase::make_extra(wavejit_engine* engine, const Experiment& problem,
                                                 const Inputs& inputs, const HeadValues& head_values) {
  const std::vector<Sequence> sequences = sequences_of(problem);
  Extra extra{.memory = CallMemory(engine)};
  CallMemory& memory = extra.memory;
  if (problem.packed_queries()) extra.query_starts = memory.in(starts_of(sequences, &Sequence::queries));
  if (problem.packed_keys()) {
    extra.key_starts = memory.in(starts_of(sequences, &Sequence::keys));
  } else if (problem.paged() || !problem.key_lengths.empty()) {
    std::vector<std::int32_t> lengths;
    lengths.reserve(sequences.size());
    for (const Sequence& sequence : sequences) lengths.push_back(static_cast<std::int32_t>(sequence.keys));
    extra.key_lengths = memory.in(lengths);
  }
  extra.first_keys = memory.in(in_32_bits(problem.first_keys));
  extra.block_table = memory.in(page_table_of(problem).entries);
  std::vector<std::uint8_t> causal_flags;
  if (problem.causal_flags)
    for (const Sequence& sequence : sequences) causal_flags.push_back(sequence.has_diagonal ? 1 : 0);
  extra.causal_flags = memory.in(causal_flags);
  extra.bool_mask = memory.in(shown_keys_of(problem));
  const ListArrays blocks = lists_of(problem);
  extra.list_counts = memory.in(blocks.counts);
  extra.list_indices = memory.in(blocks.indices);
  extra.list_row_blocks = blocks.row_blocks;
  extra.list_capacity = blocks.capacity;
  const auto [first, second] = key_lists_of(problem);
  for (const auto& [list, from] : {std::pair{&extra.key_list, &first}, {&extra.second_list, &second}}) {
    list->indices = memory.in(from->indices);
    list->counts = memory.in(from->counts);
    list->top_k = from->top_k;
  }
  extra.key_list.heads = first.heads;
  extra.key_list.slots = first.slots ? 1 : 0;
  const auto scales_of = [&](Operand operand) {
    return problem.integers         ? integer_scales_of(problem, operand)
           : problem.token_scales() ? token_scales_of(problem, operand)
                                    : cache_scales_of(problem, operand);
  };
  extra.q_scale =
      memory.in(problem.integers ? integer_scales_of(problem, Operand::q) : cache_scales_of(problem, Operand::q));
  extra.k_scale = memory.in(scales_of(Operand::k));
  if (!problem.integers) extra.v_scale = memory.in(scales_of(Operand::v));
  for (const ProgramModifier& row : program_modifiers()) {
    if (row.given == Given::number || !problem.has(row.modifier)) continue;
    const std::size_t i = index_of(row.modifier);
    // A null tensor would be a call without the modifier, which no result of a timed call shows.
    if (row.given == Given::heads && head_values[i].empty())
      return failed(ExitCode::internal, "a modifier of the problem was given no numbers of heads");
    extra.modifiers[i] =
        row.given == Given::scores ? memory.hold(make_bias(engine, problem, inputs)) : memory.in(head_values[i]);
  }
  if (!memory.good()) return std::unexpected(memory.good().error());
  return extra;
}

Result<DeviceCase> DeviceCase::prepare_unfilled(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                                const HeadValues& head_values) {
  // LSE: [B, Hq, Sq], packed [Hq, total].
  Placement of_lse = queries_of(problem);
  of_lse.head_dim = 1;
  of_lse.head_first = true;
  if (!problem.lse) of_lse.heads = 0;
  auto q = make(engine, queries_of(problem), problem.query_bytes());
  auto k = make(engine, stored(problem, keys_of(problem)), problem.key_bytes());
  auto v = make(engine, stored(problem, values_of(problem)), problem.value_bytes());
  const bool second = second_list_words(problem.text).top_k != 0;
  const auto of_second = [&](Placement placement) {
    if (!second) placement.heads = 0;
    return placement;
  };
  auto second_k = make(engine, of_second(stored(problem, keys_of(problem))), problem.key_bytes());
  auto second_v = make(engine, of_second(stored(problem, values_of(problem))), problem.value_bytes());
  auto o = make(engine, outputs_of(problem), problem.output_bytes());
  auto lse = make(engine, of_lse, 4);
  for (const auto* tensor : {&q, &k, &v, &second_k, &second_v, &o, &lse})
    if (!*tensor) return std::unexpected(tensor->error());
  auto extra = make_extra(engine, problem, inputs, head_values);
  if (!extra) return std::unexpected(extra.error());
  return DeviceCase(problem, std::move(*q), std::move(*k), std::move(*v),
                    {.k = std::move(*second_k), .v = std::move(*second_v)}, std::move(*o), std::move(*lse),
                    std::move(*extra));
}

Result<DeviceCase> DeviceCase::prepare(wavejit_engine* engine, const Experiment& problem, const Inputs& inputs,
                                       const HeadValues& head_values) {
  auto made = prepare_unfilled(engine, problem, inputs, head_values);
  if (!made) return made;
  if (auto filled = made->fill(made->q_, Operand::q, inputs); !filled) return std::unexpected(filled.error());
  if (auto filled = made->fill(made->k_, Operand::k, inputs); !filled) return std::unexpected(filled.error());
  if (auto filled = made->fill(made->v_, Operand::v, inputs); !filled) return std::unexpected(filled.error());
  if (auto filled = made->fill(made->second_.k, Operand::k, inputs, true); !filled)
    return std::unexpected(filled.error());
  if (auto filled = made->fill(made->second_.v, Operand::v, inputs, true); !filled)
    return std::unexpected(filled.error());
  return made;
}

Result<void> DeviceCase::erase() {
  if (auto done = fill_with_mark(o_.memory, 0, o_.bytes() + 2 * o_.margin); !done) return done;
  return fill_with_mark(lse_.memory, 0, lse_.bytes() + 2 * lse_.margin);
}

Result<std::string> DeviceCase::broken_fence() const {
  for (const auto& [name, tensor] : {std::pair("o", &o_), std::pair("lse", &lse_)}) {
    for (const bool behind : {false, true}) {
      std::vector<unsigned char> margin(tensor->margin);
      const std::size_t from = behind ? tensor->margin + tensor->bytes() : 0;
      if (auto copied = tensor->memory.copy_out(margin.data(), from, margin.size()); !copied)
        return std::unexpected(copied.error());
      const auto touched = std::ranges::find_if(margin, [](unsigned char byte) { return byte != mark; });
      if (touched == margin.end()) continue;
      const auto at = static_cast<std::size_t>(touched - margin.begin());
      return behind ? fmt::format("byte {} behind {} was written", at, name)
                    : fmt::format("byte {} before {} was written", margin.size() - at, name);
    }
  }
  return std::string();
}

}  // namespace wavejit::attention_forward::program
