// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of value_rows.txt: a call in the words of problem descriptors (docs/problem-descriptors.md), and what only tests
// say of it. The library's parser reads the first part, because its grammar is what is meant; values, layouts and
// answers are those of tests/support, which share nothing with the program's.
//
//   (fp16|bf16) d64 (causal|) b2 q33 k65 h4/1 lse : padded spread=3
//
// Parentheses hold alternatives, and a line is a row for each choice. Behind the colon stand words of the tests. Those behind
// [Section] are of all its rows, each of which is a test of SiblingRows then, not of ValueRows:
//
//   on=gfx950,gfx1201        the targets; gfx942 and gfx950 if nothing is said
//   generic_only[=<target>]  no other pipeline has a kernel for it; without the word, one must have
//   kernel=<word>,!<word>    of the name of a kernel that runs, or of none
//   one_engine               on the engine that chooses, not on every pipeline
//   pinned=<pipeline>,<word> on an engine with these words for a pipeline; or_refused: it may have no kernel
//   one_schedule             one of the wave schedules, by turns
//   bits_alone               no float64, which takes longer than the calls: other rows have it
//   beside=<name>,<name>     calls of value_beside.h that must have the same bits
//   padded                   gaps between the heads of Q, K, V and O, with NaN in those of the inputs
//   spread=, bias_spread=    of normal numbers; 1
//   bias=<name>              numbers of value_biases.h in place of normal ones
//   scores=<name>[:<x>]      numbers of Q and K by value_scores.h
//   mask=<name>              a bool mask of value_masks.h
//   whole=<x>, form=<word>,… the share of whole blocks in lists; noise, ragged, no_counts
//   lists_of=1, h, b, bh     whose lists they are; 1
//   sink=<x>                 of the first head; 0.5. Each other head has half more than the one before
//   prefix=<n>               causal=<n> without causal
//   dense_keys, dense_queries  the other tensors are packed
//   counted=<n,…>            key lengths of packed keys
//   first_keys=<n,…>         left padding of dense keys beside packed queries
//   in_turn, list, tight, at_border  of pages (support/paged_cache.h)
//   total=<n>                pages of the cache
//   own_workspace            partial results in fenced memory of the caller's
//   odd=<q,k,v,o>            rows of these begin anywhere: odd distances, behind an odd number of elements
//   q_scales=, k_scales=     of Q and K in int8: tensor, heads, tokens; none. K's of tokens are cache_scales=token
//   numbers=<name>           of a cache's scales: any, either_sign (any, some of K's negative), negative (powers of two,
//                            all of K's negative); powers of two. Of q_scales: either_sign
#pragma once

#include <string>
#include <vector>

#include "support/attention_run.h"
#include "support/worded_rows.h"

namespace wavejit::tests {

struct ValueRow : WordedRow {
  bool is_generic_only() const {
    return target == "gfx1201" ||
           (says("generic_only") && (word("generic_only").empty() || word("generic_only") == target));
  }
};

inline void PrintTo(const ValueRow& row, std::ostream* out) { PrintTo(static_cast<const WordedRow&>(row), out); }

// Rows of a text, on each of their targets. Throws what is wrong with it, with the line.
std::vector<ValueRow> value_rows_of(const std::string& text);
// Rows of value_rows.txt, those below `[section]`, and those below sections with words.
std::vector<ValueRow> all_value_rows();
std::vector<ValueRow> value_rows(const std::string& section);
std::vector<ValueRow> sibling_rows();

AttentionCase case_of(const ValueRow& row);

}  // namespace wavejit::tests
