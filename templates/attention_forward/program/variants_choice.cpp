// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The questions of `wavejit choose`, and which family answers them.
#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "templates/attention_forward/program/attention_choice.h"
#include "templates/attention_forward/program/block_list_choice.h"
#include "templates/attention_forward/program/choice_code.h"
#include "templates/attention_forward/program/indexer_choice.h"
#include "templates/attention_forward/program/latent_choice.h"
#include "templates/attention_forward/program/variants.h"
#include "templates/attention_forward/program/vocabulary.h"

namespace wavejit::attention_forward::program {
namespace {

using choice::has_eight_bits;
using choice::has_key_lists;
using choice::is_decode;
using choice::is_paged;
using choice::said;

std::function<std::string(const std::string&)> count() {
  return [](const std::string& text) {
    return choice::number(text) ? std::string() : fmt::format("'{}' is not accepted; whole numbers from 1 are", text);
  };
}

std::string problem_of_heads(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto query = choice::number(text.substr(0, slash));
  const auto kv = slash == std::string::npos ? query : choice::number(text.substr(slash + 1));
  if (query && kv && *query % *kv == 0) return {};
  return fmt::format("'{}' is not accepted; query heads, or query heads/kv heads that divide them, are: 32 or 32/8",
                     text);
}

// What is wrong with a mask that only attention_forward has, and that does not go with lists.
std::string problem_of_mask(const Answers& answers) {
  const bool chunked = said(answers, "mask", "chunked");
  if (!chunked && !said(answers, "mask", "flags")) return {};
  const bool keys = has_key_lists(answers);
  const char* who = is_indexer(answers)                        ? "the indexer"
                    : is_latent(answers)                       ? "latent attention"
                    : keys || said(answers, "lists", "blocks") ? "lists"
                                                               : nullptr;
  if (who == nullptr) return {};
  const bool windows = is_indexer(answers) || (!is_latent(answers) && !keys);
  return fmt::format("--mask {}: with {} there are no {}; all, causal{} are accepted", answers.at("mask"), who,
                     chunked ? "local chunks" : "flags of sequences", windows ? ", window" : "");
}

}  // namespace

std::vector<Question> choice_questions() {
  const auto not_decode = [](const Answers& answers) { return !is_decode(answers); };
  const auto not_latent = [](const Answers& answers) { return !is_latent(answers); };
  std::vector<Question> questions = {
      {.name = "use",
       .text = "What is computed: a prompt, one new row of each sequence, or which keys rows are to attend to?",
       .usual = "prefill",
       .accepted = {"prefill", "decode", "indexer"}},
      {.name = "keys",
       .text =
           "Have keys and values tensors of their own, or are values the first columns of keys (latent attention, MLA)?",
       .usual = "apart",
       .accepted = {"apart", "latent"}},
      {.name = "cache", .text = "Where do keys and values lie?", .usual = "dense", .accepted = {"dense", "paged"}},
      {.name = "page-size",
       .text = "Keys of a page (1, or a multiple of 16)",
       .usual = "16",
       .accepted = {},
       .problem =
           [](const std::string& text) {
             const auto size = choice::number(text);
             return size && (*size == 1 || *size % 16 == 0)
                        ? std::string()
                        : fmt::format("'{}' is not accepted; 1 and multiples of 16 are", text);
           },
       .is_asked = is_paged},
      {.name = "lengths",
       .text = "Lengths: all alike, one sequence after the other (packed), or padded on the right?",
       .usual = "equal",
       .accepted = {"equal", "packed", "padded"},
       .problem = nullptr,
       .is_asked =
           [](const Answers& answers) { return !is_decode(answers) && !is_paged(answers) && !is_latent(answers); }},
      {.name = "batch", .text = "How many sequences?", .usual = "2", .accepted = {}, .problem = count()},
      {.name = "query-length",
       .text = "Query rows of the longest sequence",
       .usual = "512",
       .accepted = {},
       .problem = count(),
       .is_asked = not_decode},
      {.name = "key-length",
       .text = "Keys of the longest sequence",
       .usual = "512",
       .accepted = {},
       .problem = count()},
      {.name = "heads",
       .text = "Query heads/kv heads",
       .usual = "16/4",
       .accepted = {},
       .problem = problem_of_heads,
       .is_asked = not_latent},
      {.name = "head-dim",
       .text = "Head dim (a multiple of 8 up to 256, or 192/128: keys/values)",
       .usual = "128",
       .accepted = {},
       .problem =
           [](const std::string& text) {
             const auto dim = choice::number(text);
             return text == "192/128" || (dim && *dim != 0 && *dim % 8 == 0 && *dim <= 256)
                        ? std::string()
                        : fmt::format("'{}' is not accepted; multiples of 8 up to 256 and 192/128 are", text);
           },
       .is_asked = not_latent},
      {.name = "dtype", .text = "Data type", .usual = "bf16", .accepted = {"bf16", "fp16"}},
      {.name = "q-dtype",
       .text = "Have queries 16 bits, or are they in 8 with their keys: e4m3 with values of e4m3, too (gfx950), i8 "
               "beside values of 16 bits?",
       .usual = "as-output",
       .accepted = {"as-output", "e4m3", std::string(choice::integers)},
       .problem = nullptr,
       .is_asked = not_latent},
      {.name = "kv-dtype",
       .text = "Do keys and values have the queries' type, or 8 bits (gfx942 has the FNUZ forms)?",
       .usual = "as-queries",
       .accepted = {"as-queries", "e4m3", "e5m2", "e4m3_fnuz", "e5m2_fnuz", std::string(choice::integers)},
       .problem = nullptr,
       .is_asked = [](const Answers& answers) { return !is_latent(answers) && !choice::has_byte_queries(answers); }},
      {.name = "kv-scales",
       .text =
           "Scales of what is in 8 bits: none, one for all, or for kv heads (h), sequences (b), both, or each token "
           "of each head?",
       .usual = "1",
       .accepted = {"none", "1", "h", "b", "bh", std::string(choice::of_tokens)},
       .problem = nullptr,
       .is_asked = has_eight_bits},
      {.name = "mask",
       .text = "What does a row see: all keys, those up to its own, a window of these, those of its local chunk (Llama "
               "4), or does each sequence say whether it is causal (flags)?",
       .usual = "causal",
       .accepted = {"all", "causal", "window", "chunked", "flags"},
       .problem = nullptr,
       .is_asked = not_decode},
      {.name = "window",
       .text = "How many keys before its own?",
       .usual = "1023",
       .accepted = {},
       .problem = count(),
       .is_asked = [](const Answers& answers) { return said(answers, "mask", "window"); }},
      {.name = "local-chunk",
       .text = "Keys of a local chunk",
       .usual = "8192",
       .accepted = {},
       .problem = count(),
       .is_asked = [](const Answers& answers) { return said(answers, "mask", "chunked"); }},
      {.name = "lists",
       .text =
           "Does a row see all keys that the mask shows, those that a list of its own names (top-k), or blocks that "
           "a list names for each block of rows?",
       .usual = "none",
       .accepted = {"none", "keys", "blocks"}},
      {.name = "top-k",
       .text = "Entries of a list",
       .usual = "2048",
       .accepted = {},
       .problem = count(),
       .is_asked = has_key_lists},
      block_question(),
      {.name = "lse", .text = "The log-sum-exp of each row, too?", .usual = "no", .accepted = {"no", "yes"}},
  };
  for (Question& question : latent_questions()) questions.push_back(std::move(question));
  add_indexer_questions(questions);
  return questions;
}

Result<ChosenCall> chosen_call(const Answers& answers) {
  if (const std::string problem = problem_of_mask(answers); !problem.empty()) return failed(ExitCode::usage, problem);
  if (is_indexer(answers)) return indexer_call(answers);
  if (is_latent(answers)) return latent_call(answers);
  const choice::AttentionChoice call = choice::choice_of(answers);
  if (const std::string problem = choice::problem_of(call, answers); !problem.empty())
    return failed(ExitCode::usage, problem);
  return ChosenCall{.variant = call.variant,
                    .descriptor = choice::descriptor_of(call, answers),
                    .cpp = choice::cpp_of(call, answers),
                    .python = choice::python_of(call, answers),
                    .pytorch = choice::pytorch_of(call, answers)};
}

}  // namespace wavejit::attention_forward::program
