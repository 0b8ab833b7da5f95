// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A problem as the sweep takes it: what a descriptor says, read by its family's own parser, and where its rows lie.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/program/reference.h"
#include "tools/exit_code.h"
#include "tools/half.h"

namespace wavejit::attention {
struct DescribedModifier;
struct MaskWords;
}  // namespace wavejit::attention

namespace wavejit::attention::program {

class Inputs;

// What stands behind `key` in a line up to the next word, as "2048" behind " top_k="; empty: the line does not have it.
std::string_view word_behind(const std::string& line, std::string_view key);

// What a descriptor says about a modifier: an extent, or a number. With neither the modifier is absent.
struct ToldModifier {
  Extent extent = Extent::none;
  float number = 0;
};

// Packed: sequences one behind the other. Paged: keys in pages; queries are packed if they have lengths, else bshd.
enum class ArrayLayout : std::uint8_t { bshd, bhsd, packed, paged };

struct Experiment {
  std::string text;  // canonical
  HalfType type = HalfType::fp16;
  std::int64_t batch = 1;
  std::int64_t query_length = 1;  // of packed sequences: the longest
  std::int64_t key_length = 1;
  std::int64_t query_heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim_qk = 64;
  std::int64_t head_dim_v = 64;
  wavejit_masking mask = {};  // without flags:
  bool causal_flags = false;  // every second sequence has no diagonal
  bool lse = false;
  // In memory the rows of the tensor are contiguous, in place of the dims of a row.
  bool trans_q = false;
  bool trans_k = false;
  bool trans_v = false;
  bool trans_o = false;
  bool output_fp32 = false;   // O in f32, not in `type`
  bool query_fp32 = false;    // Q in f32: its numbers are not numbers of `type`, and kernels round them to these
  bool bias_fp32 = false;     // the bias in f32, in the same way
  bool bias_by_tile = false;  // the bias hides keys or is 0, as a bool mask of its extent would be
  ArrayLayout layout = ArrayLayout::bshd;
  std::int64_t page_size = 0;  // of keys in pages
  bool page_heads_first = false;
  std::int32_t page_layout = WAVEJIT_PAGES_OF_ROWS;
  std::vector<std::int64_t> query_lengths;  // one a sequence, or empty: all alike
  std::vector<std::int64_t> key_lengths;
  std::int64_t total_keys = 0;           // the most that all sequences have together; 0: not said
  std::vector<std::int64_t> first_keys;  // left padding, one a sequence, or empty: none
  // The type of K and V in memory; 0: `type`. `cache_scales`: for which extent 8-bit caches have scales of their own.
  std::int32_t cache_dtype = WAVEJIT_DTYPE_NONE;
  bool byte_queries = false;  // Q, K and V are all in 8 bits; `type` is then the type of O
  Extent cache_scales = Extent::none;
  // Q and K are int8, with scales by token and head, or by head alone. half_scores: scores are rounded to fp16, without
  // scales.
  bool integers = false;
  bool half_scores = false;
  float scale = 1;
  std::array<ToldModifier, modifier_count> modifiers = {};
  // Lists of key blocks, one for each head and block of rows (block_lists.h makes them); list_rows 0: none.
  Extent bool_mask = Extent::none;  // bool_masks.h makes it
  std::int64_t list_rows = 0;
  std::int64_t list_keys = 0;
  std::int64_t list_percent = 0;
  std::uint32_t hints = 0;  // flags of the call that hints.def lists
  std::int32_t splits = 0;  // 0: the engine's choice
  std::uint64_t seed = 0;
  std::string inputs;

  // Whether the line has `word`, as "delta" or "o=fp32".
  bool says(std::string_view word) const { return (text + ' ').contains(' ' + std::string(word) + ' '); }
  bool has_bytes() const { return cache_dtype != WAVEJIT_DTYPE_NONE; }
  std::size_t key_bytes() const { return has_bytes() || integers ? 1 : 2; }  // of an element
  std::size_t value_bytes() const { return has_bytes() ? 1 : 2; }
  std::size_t query_bytes() const { return byte_queries || integers ? 1 : query_fp32 ? 4 : 2; }
  std::int64_t scale_batches() const {
    return cache_scales == Extent::batch || cache_scales == Extent::batch_and_head ? batch : 1;
  }
  std::int64_t scale_heads() const {
    return cache_scales == Extent::head || cache_scales == Extent::batch_and_head ? kv_heads : 1;
  }
  bool token_scales() const { return cache_scales == Extent::token_and_head; }
  std::size_t output_bytes() const { return output_fp32 ? 4 : 2; }  // of an element
  std::int64_t group() const { return query_heads / kv_heads; }
  bool paged() const { return layout == ArrayLayout::paged; }
  bool packed_keys() const { return layout == ArrayLayout::packed; }
  bool packed_queries() const { return packed_keys() || (paged() && !query_lengths.empty()); }
  const ToldModifier& of(Modifier one) const { return modifiers[static_cast<std::size_t>(one)]; }
  bool has(Modifier one) const { return of(one).extent != Extent::none || of(one).number != 0; }
  // Batches and heads for which a modifier's tensor has values of their own.
  std::int64_t batches_of(Modifier one) const {
    return of(one).extent == Extent::batch || of(one).extent == Extent::batch_and_head ? batch : 1;
  }
  std::int64_t heads_of(Modifier one) const {
    return of(one).extent == Extent::head || of(one).extent == Extent::batch_and_head ? query_heads : 1;
  }
};

// What the descriptors of several families say alike.
void take_mask(const MaskWords& words, Experiment& to);
void take_modifiers(const std::array<DescribedModifier, modifier_count>& words, Experiment& to);
// For descriptors without numbers: paddings of no round size, as far as dense rows leave room.
std::vector<std::int64_t> drawn_first_keys(const Experiment& problem);
// A number as a descriptor writes it; `otherwise` where it says none.
template <typename Number>
Number number_in(std::string_view text, Number otherwise) {
  Number value{};
  return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{} ? value : otherwise;
}
// An experiment of what all of them say alike.
template <typename Descriptor>
Experiment experiment_with(const Descriptor& from, std::string text) {
  Experiment to;
  to.text = std::move(text);
  to.batch = from.batch;
  to.query_length = from.query_length;
  to.key_length = from.key_length;
  to.query_lengths = from.query_lengths;
  to.key_lengths = from.key_lengths;
  take_mask(from.mask, to);
  take_modifiers(from.modifiers, to);
  to.seed = number_in(from.seed, std::uint64_t{1});
  to.inputs = "normal";
  return to;
}
// Refuses inputs that no generator makes.
Result<Experiment> with_known_inputs(Experiment problem);

// One entry of the batch: where its rows begin on the tensors' token axis, how many there are, and how many count.
struct Sequence {
  std::int64_t first_query = 0;
  std::int64_t queries = 0;
  std::int64_t first_key = 0;  // without left padding, of keys in pages
  std::int64_t keys = 0;
  std::int64_t padding = 0;  // rows or slots before key 0
  bool has_diagonal = true;  // as its flag says
};
std::vector<Sequence> sequences_of(const Experiment& problem);
// Where sequences begin, or how many of their keys count, as device memory has it; empty: the call says nothing of it.
struct SequenceArrays {
  std::vector<std::int32_t> query_starts, key_starts, key_lengths;
};
SequenceArrays sequence_arrays_of(const Experiment& problem);

// What scale and mask make of a sequence's scores.
ScoreRules rules_of(const Experiment& problem, const Sequence& sequence);

// How one tensor lies in memory, in elements: all rows of all heads, with nothing between them. Token numbers go on
// from one entry of the batch to the next.
struct Placement {
  std::int64_t batch = 1;
  std::int64_t length = 1;
  std::int64_t heads = 1;
  std::int64_t head_dim = 1;
  bool head_first = false;
  bool transposed = false;  // [batch][head][dim][token]

  std::int64_t rows() const { return batch * length * heads; }
  std::int64_t elements() const { return rows() * head_dim; }
  std::int64_t stride_of_batch() const { return length * heads * head_dim; }
  std::int64_t stride_of_token() const { return transposed ? 1 : head_first ? head_dim : heads * head_dim; }
  std::int64_t stride_of_head() const { return transposed || head_first ? length * head_dim : head_dim; }
  std::int64_t stride_of_dim() const { return transposed ? length : 1; }
  std::int64_t offset(std::int64_t token, std::int64_t head) const {
    return token / length * stride_of_batch() + token % length * stride_of_token() + head * stride_of_head();
  }
};
Placement queries_of(const Experiment& problem);
Placement keys_of(const Experiment& problem);
Placement values_of(const Experiment& problem);
Placement outputs_of(const Experiment& problem);

// Keys in pages: which page of the cache holds which keys. The table has a row for each sequence. No page is used
// twice, pages are in random order, and one page is unused. Entries past a sequence's keys are garbage.
struct PageTable {
  std::int64_t pages = 0;  // of the cache
  std::int64_t columns = 0;
  std::vector<std::int32_t> entries;  // [batch][columns]
};
PageTable page_table_of(const Experiment& problem);
// How K and V lie in memory: for keys in pages, the entries of the batch are pages. `of_keys`: keys_of or values_of.
Placement stored(const Experiment& problem, const Placement& of_keys);

// Where the keys of sequences stand in K and V: slots of the cache's pages, or tokens.
class KeySlots {
 public:
  explicit KeySlots(const Experiment& problem);
  std::int64_t of(std::int64_t sequence, std::int64_t key) const;
  std::int64_t count() const { return count_; }  // of slots with keys and without
  const PageTable& table() const { return table_; }

 private:
  std::int64_t page_size_;  // 0: no pages
  std::int64_t count_;
  std::vector<Sequence> sequences_;
  PageTable table_;
};

// The bias array: [batches][heads][rows][row stride], rows being those of the queries' token axis within a batch.
struct BiasPlacement {
  std::int64_t batches = 0;
  std::int64_t heads = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;

  std::int64_t elements() const { return batches * heads * rows * row_stride; }
  // Row of the array for a row of a sequence.
  std::int64_t row(const Experiment& problem, std::int64_t batch, const Sequence& sequence, std::int64_t head,
                   std::int64_t row) const;
};
BiasPlacement bias_of(const Experiment& problem);
// The array of a bool mask, laid out in the same way; its rows begin at odd places.
BiasPlacement bool_mask_of(const Experiment& problem);
// An element of it.
bool is_shown(const Experiment& problem, std::int64_t row, std::int64_t column);
// An element as the array holds it: rounded to `type`, or in f32 a number that 16 bits cannot hold.
float bias_element(const Experiment& problem, const Inputs& inputs, std::int64_t row, std::int64_t column);

// Device memory that a run takes, without the workspace of split keys.
std::uint64_t device_bytes(const Experiment& problem);

// Multiplications of Q·Kᵀ and P·V for rows of a sequence, over the pairs that are not masked. The words of the problem
// are read once, because a list of problems has millions of rows.
class RowWork {
 public:
  RowWork(const Experiment& problem, const Sequence& sequence);
  double of(std::int64_t row) const;

 private:
  const Experiment& problem_;
  const Sequence& sequence_;
  ScoreRules rules_;
  BiasPlacement mask_;
  std::int64_t listed_ = 0;  // keys that a row's lists name, at most; 0: there are no lists
  double of_a_key_ = 0;
};
// Multiplications of all rows of all heads.
double multiplications(const Experiment& problem);

}  // namespace wavejit::attention::program
