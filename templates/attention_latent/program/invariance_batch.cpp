// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/invariance_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "templates/attention_latent/program/invariance_bytes.h"

namespace wavejit::attention_latent::program {
namespace {

// Numbers of heads of models at their tensor-parallel sizes, and few and odd ones. By turns.
constexpr std::array<std::int64_t, 16> head_counts = {16, 8, 12, 1, 20, 128, 4, 24, 3, 16, 48, 2, 32, 96, 8, 64};

struct Widths {
  std::int64_t qk;
  std::int64_t v;
};
constexpr std::array<Widths, 4> widths = {{{576, 512}, {512, 512}, {576, 512}, {320, 256}}};

// What a kernel is compiled for goes by the batch's number, so that few batches reach all of it.
template <typename Element, std::size_t count>
Element in_turn(const std::array<Element, count>& all, std::uint64_t number) {
  return all[static_cast<std::size_t>(number % count)];
}

}  // namespace

std::string Batch::descriptor(const DrawnSequence& of) const {
  std::string text =
      fmt::format("attention_latent {} b1 q{} k{} h{} d{}", to_text(type), of.rows, of.keys, heads, dims);
  if (dims_v != dims) text += fmt::format("/{}", dims_v);
  if (causal) text += " causal";
  text += " lse";
  if (byte_rows != ByteRows::none) text += " " + cache_text(*this);
  if (!sink.empty()) text += " sink";
  if (softcap != 0) text += fmt::format(" softcap={}", softcap);
  return text;
}

Batch draw_batch(const tools::InvarianceRequest& request) {
  Draws draws(request.seed, request.batch);
  Batch batch;
  batch.number = request.batch;
  batch.type = request.batch % 3 == 1 ? tools::HalfType::fp16 : tools::HalfType::bf16;
  batch.dims = in_turn(widths, request.batch).qk;
  batch.dims_v = in_turn(widths, request.batch).v;
  batch.heads = in_turn(head_counts, request.batch);
  batch.causal = request.batch % 5 != 3;
  if (request.batch % 7 == 2) batch.softcap = 20;
  if (draws.one_in(3)) batch.sink = attention::program::drawn_numbers(draws, batch.heads, 4.0F);
  // A workgroup has 32 or 64 rows, a row being a head of a query: most sequences have one or two of them.
  constexpr std::int64_t usual_rows = 40;
  const std::int64_t most_rows = std::clamp<std::int64_t>(usual_rows / batch.heads, 1, 8);
  for (std::int64_t i = 0; i < request.sequences; ++i) {
    DrawnSequence one;
    // One of each batch, and one in 50, passes the border of a chunk of 1,024 keys.
    const bool is_long = i == 0 || draws.one_in(50);
    one.rows = 1 + draws.below(is_long ? 1 : most_rows);
    const bool passes_a_tile = draws.one_in(3);
    one.keys = !is_long           ? 1 + draws.below(passes_a_tile ? 140 : 64)
               : draws.one_in(10) ? 1 + draws.below(request.longest)
                                  : 1025 + draws.below(600);
    one.keys = std::clamp<std::int64_t>(one.keys, 1, request.longest);
    batch.sequences.push_back(std::move(one));
  }
  // A piece of a prompt among them.
  if (request.sequences > 2) batch.sequences[1 + static_cast<std::size_t>(draws.below(request.sequences - 1))].rows = 9;
  for (DrawnSequence& one : batch.sequences) {
    one.q = attention::program::drawn_halves(batch.type, draws, one.rows * batch.heads * batch.dims);
    one.k = attention::program::drawn_halves(batch.type, draws, one.keys * batch.dims);
  }
  return batch;
}

}  // namespace wavejit::attention_latent::program
