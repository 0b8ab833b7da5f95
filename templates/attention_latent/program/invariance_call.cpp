// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/invariance_call.h"

#include <algorithm>
#include <utility>

#include "templates/attention/program/tensor_parts.h"
#include "templates/attention_latent/program/invariance_bytes.h"
#include "tools/call_memory.h"
#include "tools/empty_call.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_latent::program {
namespace {

using tools::CallMemory;
using tools::checked;
using tools::Result;
using Call = wavejit_attention_latent_arguments;

struct Queries : attention::program::PackedQueries {
  std::vector<std::uint16_t> q_rope;  // empty: not apart
};

Queries queries_of(const Batch& batch, std::span<const RowsOf> pieces, bool apart) {
  Queries queries = {attention::program::packed_queries(batch, pieces, batch.heads * batch.dims), {}};
  if (!apart) return queries;
  const std::vector<std::uint16_t> all = std::exchange(queries.q, {});
  for (auto head = all.begin(); head != all.end(); head += batch.dims) {
    queries.q.insert(queries.q.end(), head, head + batch.dims_v);
    queries.q_rope.insert(queries.q_rope.end(), head + batch.dims_v, head + batch.dims);
  }
  return queries;
}

// The tensors' shape: [sequences][rows] of dense queries, else all rows as one.
struct Rows {
  std::int64_t batch = 1;
  std::int64_t length = 1;
};

Call call_of(CallMemory& memory, const Batch& batch, const Rows& rows, const Way& way, const Queries& queries,
             const KeyMemory& keys) {
  const auto type = static_cast<wavejit_dtype>(tools::type_of(batch.type));
  const std::int64_t rope = batch.dims - batch.dims_v;
  auto call = tools::empty_call<Call>(WAVEJIT_ATTENTION_LATENT);
  call.q = wavejit_dense_tensor(memory.in(queries.q), type, rows.batch, rows.length, batch.heads,
                                way.queries_apart ? batch.dims_v : batch.dims);
  call.k = wavejit_dense_tensor(memory.in(keys.k), type, keys.outer, keys.inner, 1,
                                way.keys.apart ? batch.dims_v : batch.dims);
  if (way.queries_apart)
    call.q_rope = wavejit_dense_tensor(memory.in(queries.q_rope), type, rows.batch, rows.length, batch.heads, rope);
  if (way.keys.apart) call.k_rope = wavejit_dense_tensor(memory.in(keys.k_rope), type, keys.outer, keys.inner, 1, rope);
  // Any number does, as long as it is the same.
  call.modifiers.scale = 0.05F;
  if (batch.causal) call.mask.bits = WAVEJIT_MASK_CAUSAL;
  if (!way.dense_queries) queries.describe(call, memory);
  keys.describe(call, memory, way.keys.rows_behind);
  call.modifiers.sink = attention::program::head_numbers(memory, batch.sink);
  call.modifiers.softcap = batch.softcap;
  call.split.splits = way.splits;
  call.head.flags |= way.flags;
  return call;
}

void give_bytes(Call& call, CallMemory& memory, const Batch& batch, const KeyMemory& keys, const Way& way,
                const std::string& target) {
  const ByteKeyMemory bytes = in_bytes(batch, keys, way.keys.apart, target, way.doubled_scales);
  call.k = wavejit_dense_tensor(memory.in(bytes.k), bytes.format, keys.outer, keys.inner, 1, bytes.columns);
  if (way.keys.apart)
    call.k_rope = wavejit_dense_tensor(memory.in(bytes.k_rope), bytes.format, keys.outer, keys.inner, 1,
                                       batch.dims - batch.dims_v);
  if (batch.byte_rows == ByteRows::raised) call.scales.row_scales = WAVEJIT_EXPONENTS_BEHIND_ROWS;
  if (!bytes.k_scale.empty())
    call.scales.k_scale = wavejit_dense_tensor(memory.in(bytes.k_scale), WAVEJIT_FP32, 1, 1, 1, 1);
}

// The same call of some heads.
Call of_heads(Call call, const attention::program::Stretch& heads) {
  for (wavejit_tensor* tensor : {&call.q, &call.q_rope, &call.o})
    cut(*tensor, attention::program::rows_first.heads, heads);
  for (wavejit_tensor* tensor : {&call.lse, &call.modifiers.sink})
    cut(*tensor, attention::program::heads_first.heads, heads);
  return call;
}

}  // namespace

Result<std::optional<std::vector<Answer>>> run_pieces(wavejit_engine* engine, const Batch& batch,
                                                      std::span<const RowsOf> pieces, const Way& way) {
  const Queries queries = queries_of(batch, pieces, way.queries_apart);
  const KeyMemory keys = place_keys(batch, pieces, way.keys);
  const std::int64_t rows = queries.rows();
  const Rows shape = way.dense_queries ? Rows{.batch = std::ssize(pieces), .length = queries.longest}
                                       : Rows{.batch = 1, .length = rows};
  CallMemory memory(engine);
  const attention::program::RowOutputs outputs(memory, batch.answer_shape(), rows);
  Call call = call_of(memory, batch, shape, way, queries, keys);
  if (way.eight_bits) give_bytes(call, memory, batch, keys, way, wavejit_engine_target(engine));
  outputs.describe(call, shape.batch, shape.length);
  if (way.rounds > 1) {
    memory.keep(checked(wavejit_call_workspace(engine, &call.head, &call.split.workspace_bytes)));
    call.split.workspace_bytes /= way.rounds;
    if (call.split.workspace_bytes != 0) call.split.workspace = memory.out(call.split.workspace_bytes);
  }
  if (!memory.good()) return std::unexpected(memory.good().error());
  std::vector<std::int64_t> ends = way.head_ends;
  if (ends.empty()) ends = {batch.heads};
  for (std::size_t part = 0; part < ends.size(); ++part) {
    const std::int64_t first = part == 0 ? 0 : ends[part - 1];
    const Call one = of_heads(call, {.first = first, .count = ends[part] - first});
    const auto ran = tools::supported(wavejit_attention_latent(engine, &one, nullptr));
    if (!ran) return std::unexpected(ran.error());
    if (!*ran) return std::optional<std::vector<Answer>>();
  }
  return outputs.read(engine, memory, queries.starts);
}

}  // namespace wavejit::attention_latent::program
