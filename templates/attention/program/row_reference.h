// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The exact answer of a problem, row by row as they are asked for: computed once, whatever the number of pipelines and
// schedules that are compared with it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "templates/attention/program/experiment.h"
#include "templates/attention/program/inputs.h"
#include "templates/attention/program/key_lists.h"
#include "templates/attention/program/modifiers.h"
#include "templates/attention/program/rows.h"

namespace wavejit::attention::program {

// What the kernels of a problem round weights to.
StorageFormat weight_format(const Experiment& problem);

// As ExactRows has them.
struct ReferenceRow {
  std::vector<double> output;
  std::vector<double> magnitude;
  double spread = 0;
  double score = 0;
  double lse = 0;
  double largest = 0;
  double mass = 0;
};

class Reference {
 public:
  // Both must stay.
  Reference(const Experiment& problem, const Inputs& inputs);

  // Computes those of the rows that are not there yet, on all cores.
  void want(const Rows& rows);
  const ReferenceRow& at(const HeadOfSequence& head, std::int64_t row) const { return exact_.at(head).at(row); }

  // Values of the modifiers that are given a number a head, chosen logits among them.
  const HeadValues& head_values() const { return head_values_; }

 private:
  void compute(std::int64_t sequence, std::int64_t kv_head, const Rows& missing, bool parallel);
  ScoreRules rules(std::int64_t sequence, std::int64_t head) const;
  ExactRows attend(std::int64_t sequence, std::int64_t head, const std::vector<std::int64_t>& rows,
                   const std::vector<float>& k, const std::vector<float>& v) const;
  std::vector<float> rows_of(Operand operand, const Placement& placement, std::int64_t first, std::int64_t count,
                             std::int64_t head) const;
  // Logits of a modifier, one a head. In a row in the middle the logit takes a quarter of the weight in even heads and
  // nine tenths in odd ones: a sink that were left out shows.
  std::vector<float> choose_logits();

  const Experiment& problem_;
  const Inputs& inputs_;
  std::vector<Sequence> sequences_;
  KeyLists key_lists_;
  HeadValues head_values_;
  std::map<HeadOfSequence, std::map<std::int64_t, ReferenceRow>> exact_;
};

}  // namespace wavejit::attention::program
