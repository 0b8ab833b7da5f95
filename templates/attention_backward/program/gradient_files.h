// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The files of `wavejit run attention_backward`: the options that name them, and what a call reads from them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "templates/attention/program/mask_options.h"
#include "templates/attention_backward/program/experiment_arrays.h"
#include "tools/family.h"
#include "tools/npy.h"

namespace wavejit::attention_backward::program {

std::string text_of(const std::vector<std::int64_t>& shape);

class GradientFiles {
 public:
  struct Paths {
    std::string q, k, v, o, d_o, lse, d_lse, alibi, sink, bias;
    std::string dq_before, dk_before, dv_before;
    std::string dq, dk, dv, d_sink, d_bias;
  };
  struct Shapes {
    tools::Shape queries{}, keys{}, values{};
  };

  void add_options(CLI::App& command);
  // What the options say, and every input. A wrong last file is told before an element of the first is read.
  tools::Result<void> read(std::vector<std::string>& notes);

  const Paths& paths() const { return files_; }
  const Shapes& shapes() const { return shapes_; }
  const Arrays& arrays() const { return arrays_; }
  std::vector<tools::NamedFile> inputs() const;
  std::vector<tools::NamedFile> outputs() const;

 private:
  tools::Result<void> read_sums_asked();
  tools::Result<void> read_tensors(std::vector<std::string>& notes);
  tools::Result<void> read_row_numbers(const char* field, const std::string& path, std::vector<float>& to) const;
  void describe();
  tools::Result<void> read_slopes();
  tools::Result<void> read_sinks();
  tools::Result<void> read_bias();
  attention::program::ToldModifier& told(attention::Modifier modifier) {
    return arrays_.experiment.modifiers[static_cast<std::size_t>(modifier)];
  }

  Paths files_;
  attention::program::MaskOptions mask_;
  std::string softcap_;
  std::string sums_behind_;
  std::string scale_;
  std::string dtype_ = "fp16";
  Shapes shapes_;
  Arrays arrays_;
};

}  // namespace wavejit::attention_backward::program
