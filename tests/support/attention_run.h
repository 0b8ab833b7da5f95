// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One attention case, from float arrays through the public C interface on a simulated device and back.
//
// Every tensor lies in device memory inside a fence: rows beyond the sequence end, gaps between heads and the space
// around the tensor hold NaN, so that a kernel that lets padding in shows it, and O's surroundings hold a pattern that
// must survive.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/attention_reference.h"
#include "support/paged_cache.h"
#include "support/storage_types.h"
#include "support/tensor_layouts.h"
#include "tools/checker.h"
#include "wavejit/simgpu.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {

// Lists of keys as the call gives them (docs/sparse.md).
struct GivenKeyLists {
  std::int64_t top_k = 0;
  std::int64_t heads = 1;  // lists of a query
  bool slots = false;
  std::vector<std::int32_t> indices;
  std::vector<std::int32_t> counts;  // empty: none
  std::int64_t row_stride = 0;
};

// K and V of 8 bits. The case's inputs are what they count for: bytes times scales, exactly.
struct StoredBytes {
  wavejit_dtype type = WAVEJIT_E4M3;
  int batches = 1;  // of the scales: 1, or the case's
  int heads = 1;
  std::vector<float> k_scale = {};  // [batches][heads], or empty: none
  std::vector<float> v_scale = {};
  bool tokens = false;  // they are [key rows][kv heads], of keys in pages behind the data of each page
  // Q is bytes, too, all of them with this scale.
  bool queries = false;
  float q_scale = 1;
};

// Scales of rows of Q or K: [batches][tokens][heads], each 1 or what the tensor has. Empty: none.
struct RowScales {
  int batches = 1;
  int tokens = 1;
  int heads = 1;
  std::vector<float> numbers = {};  // NOLINT(readability-redundant-member-init)
};
// Q and K as integers of 8 bits. The case's inputs are what they count for: integers times scales, exactly.
struct StoredIntegers {
  RowScales q = {};
  RowScales k = {};
  bool half_scores = false;
};

struct AttentionCase {
  Storage storage = Storage::fp16;
  AttentionInputs inputs;
  Layout layout = Layout::bshd;
  bool lse = true;
  bool output_fp32 = false;  // O in f32, not in `storage`
  // O in 8 bits of this type, and its scale, as a number or in device memory.
  std::optional<wavejit_dtype> output_bytes = std::nullopt;
  float output_scale = 0x1p-4F;
  bool output_scale_in_memory = false;
  // Q in f32: these numbers, which the call rounds to those of the inputs. Empty: none.
  std::vector<float> wide_q = {};  // NOLINT(readability-redundant-member-init)
  bool bias_fp32 = false;          // the same of the bias
  bool bias_by_tile = false;
  // What the device gets in place of the inputs' own starts: for arrays that are wrong.
  std::optional<std::vector<std::int32_t>> query_starts;
  std::optional<std::vector<std::int32_t>> key_starts;
  std::optional<std::vector<std::int32_t>> told_key_lengths = {};  // NOLINT(readability-redundant-member-init)
  std::optional<std::vector<std::int32_t>> told_first_keys = {};   // NOLINT(readability-redundant-member-init)
  int splits = 0;
  // Left padding: this many rows (slots in pages) of NaN before the keys of each sequence. Dense keys have key lengths
  // then, which the device gets only if they do not end with the tensor.
  std::vector<std::int32_t> first_keys = {};  // NOLINT(readability-redundant-member-init)
  // Keys stand in pages; the inputs have key lengths then.
  std::optional<Pages> pages = {};  // NOLINT(readability-redundant-member-init)
  // For calls that split keys: partial results in memory of the engine's, not in fenced memory of ours that holds NaN.
  bool engine_workspace = false;
  // Fenced memory also for a call that leaves splits to the engine. `withheld_workspace`: how many bytes fewer than the
  // engine asked for the call gives it.
  bool own_workspace = false;
  std::size_t withheld_workspace = 0;
  // For keys in pages: what the call says of the longest sequence. 0: what it has.
  std::int64_t told_longest_keys = 0;
  // How the call gives the inputs' lists, and the flags that it has beside its own.
  ListForm list_form = {};
  std::optional<GivenKeyLists> key_lists = {};  // NOLINT(readability-redundant-member-init)
  std::uint32_t flags = 0;
  std::optional<StoredBytes> bytes = {};        // NOLINT(readability-redundant-member-init)
  ScatteredTensors scattered = {};              // NOLINT(readability-redundant-member-init)
  std::optional<StoredIntegers> integers = {};  // NOLINT(readability-redundant-member-init)
};

// Inputs rounded to the storage type, normal with the given spread, from a seed.
AttentionCase make_case(Storage storage, int batch, int query_length, int key_length, int query_heads, int kv_heads,
                        int head_dim, bool causal, std::uint64_t seed, double spread = 1.0, int head_dim_v = 0);

// The case with K and V rounded to bytes under these scales.
AttentionCase stored_in_bytes(AttentionCase which, StoredBytes bytes);
// The same values in the storage type, without bytes: of scales that are powers of two.
inline AttentionCase widened(AttentionCase which) {
  which.bytes.reset();
  return which;
}

// The case with Q and K rounded to integers under these scales, from −128 to 127.
AttentionCase stored_in_integers(AttentionCase which, StoredIntegers integers);

struct AttentionOutput {
  wavejit_status status = WAVEJIT_OK;
  std::string detail;
  // [query batches][query rows][query heads][head dim], storage bits; of f32 two words an element, low one first; of 8
  // bits a byte a word.
  std::vector<std::uint16_t> o;
  std::vector<float> lse;    // [query batches][query heads][query rows]
  bool fence_intact = true;  // nothing outside the described elements of O and LSE was written
  std::string reports;       // what the simulated GPU found wrong
  std::string kernel_spec;   // what ran
  // What a call with a workspace of its own left there, as 16-bit words.
  std::vector<std::uint16_t> workspace = {};  // NOLINT(readability-redundant-member-init)
};

// What an element of O in 8 bits must be: of the number in f32.
std::uint16_t output_byte(const AttentionCase& which, float number);
// O of a call that had it in f32.
std::vector<float> output_in_fp32(const AttentionOutput& output);

// `change`: what the call has otherwise.
using ChangeForwardCall = std::function<void(wavejit_attention_forward_arguments&)>;
AttentionOutput run_attention(wavejit_engine* engine, const AttentionCase& which, const ChangeForwardCall& change = {});

// An engine on one simulated device, closed at the end of the scope. Without a directory its kernels come from what the
// build's tests keep (support/kept.h), or are compiled.
class Engine {
 public:
  explicit Engine(const std::string& target, const char* cache_directory = nullptr, const char* pipeline = nullptr,
                  const char* lowering = nullptr);
  // Everything but the device and the cache.
  Engine(const std::string& target, wavejit_engine_options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  wavejit_engine* get() const { return engine_; }

 private:
  wavejit_engine* engine_ = nullptr;
};

// Sets the wave schedule of launches that follow. The reverse one runs with every check on and results that arrive as
// late as they may: what a check finds does not depend on who runs first, so one schedule of a case is enough. Programs
// in tests/attention begin with checks on.
void set_schedule(wavejit_simgpu_schedule schedule, std::uint64_t seed);

// Leaves on all checks that are on, but for this one, from now on.
void leave_out(wavejit_simgpu_check check);

// What the program's commands ask, over every row of the case.
tools::Comparison compare_rows(const AttentionCase& which, const AttentionAnswer& exact, const AttentionOutput& output);

}  // namespace wavejit::tests
