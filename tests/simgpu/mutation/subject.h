// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A shipped kernel, the problems that it is run on under all checks, and what it gives when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "families/kernel/kernel_spec.h"
#include "redundant.h"
#include "templates/attention_forward/kernel/combine/spec.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::tests {

struct SubjectProblem {
  int queries = 1;  // packed: of the longest sequence
  int keys = 1;
  // NOLINTBEGIN(readability-redundant-member-init): with them, a problem names only what it has
  std::vector<std::int32_t> query_starts = {};  // empty: dense, one sequence
  std::vector<std::int32_t> key_starts = {};
  std::vector<std::int32_t> key_lengths = {};
  // NOLINTEND(readability-redundant-member-init)
  int query_heads = 2;
  int dies = 1;  // that heads are spread over
  int runs = 0;  // that the chunks of keys are shared among; 0: one a chunk
  bool sink = false;
  bool wants_lse = true;  // of the kernel that merges; others write what their spec says
  bool zero_scale = false;
  bool wrong = false;  // the arrays say what cannot be: there is no exact answer

  int batch() const;
  int query_rows() const;  // of the tensors
  int key_rows() const;
};

class Subject {
 public:
  // `kernels` run one after the other: a kernel alone, or one that splits keys and the one that merges.
  Subject(std::vector<families::KernelSpec> kernels, std::vector<SubjectProblem> problems);
  ~Subject();
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  // Empty: compiled, silent under all checks on every problem, and within the bounds of float64.
  const std::string& problem() const { return problem_; }
  const std::vector<std::byte>& code_object(std::size_t kernel) const { return code_objects_[kernel]; }
  // Offsets of the instructions that any wave ran on any problem.
  const std::set<std::uint32_t>& visited(std::size_t kernel) const { return visited_[kernel]; }

  // With another code object in place of one kernel, on one problem after another until something shows.
  Outcome run(std::size_t kernel, const std::vector<std::byte>& code_object) const;

 private:
  struct Data;
  struct Ran;
  struct Replacement {
    std::size_t kernel;
    const std::vector<std::byte>* code_object;
  };
  Ran run_problem(const Data& data, const Replacement* replacement,
                  std::vector<std::set<std::uint32_t>>* visited) const;

  static bool differs(const Data& data, const Ran& ran);

  std::vector<families::KernelSpec> kernels_;
  std::vector<std::vector<std::byte>> code_objects_;
  std::vector<std::unique_ptr<Data>> data_;
  std::vector<std::set<std::uint32_t>> visited_;
  std::string problem_;
};

}  // namespace wavejit::tests
