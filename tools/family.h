// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the program's tools ask of a kernel family. A family answers in its own folder, templates/<family>/program/:
// nothing else in tools/ knows it. docs/adding-a-family.md walks through an example.
//
// To add one:
//   1. templates/<family>/program/ derives a class from Family and defines `const tools::Family& family()` in the
//      namespace wavejit::<family>::program. It may include the family's call/ half, include/ and headers of tools/.
//   2. program/CMakeLists.txt makes it the library wavejit_<family>_program.
// The word in WAVEJIT_FAMILIES (the project's CMakeLists.txt) that registers the family with the runtime registers it
// here, too.
//
// What a family must answer, and for which command:
//
//   parse     a descriptor → a Problem            sweep, profile, compare, tune
//   Problem   → a Case: arrays, call, compare       sweep, profile, compare, tune
//   listed    the problems of `sweep` by default  sweep (may be empty)
//   examined  small and long calls of every route doctor (may be empty)
//   run       arrays from files → files           run   (may be null: `run` then says that it cannot)
//   tuning    parameters, candidates, defaults    tune  (may be null)
//   invariance  batches in which one thing changes  invariance (may be null)
//   schedule  a kernel's schedule as text         explain --isa (may be empty)
//   step_names  which row of it code is           profile (may be none)
//
// A family whose call has some inputs and one output writes only an ArrayProblem (array_problem.h), which is a Problem
// and a Case already. `explain`, `prebuild`, `supported` and `cache` ask the library alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/checker.h"
#include "tools/exit_code.h"
#include "tools/served_model.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's own name
class App;
}

namespace wavejit::tools {

class Tuning;      // tuning.h
class Invariance;  // invariance/invariance.h
struct Variant;    // variants/variants.h
class Variants;

// The one of its kind.
template <typename Type>
const Type& only() {
  static const Type one;
  return one;
}

// ---- A problem and its case -----------------------------------------------------------------------------------------

// Workgroups first, first + step, … of a launch, as the simulated GPU counts them. `total` 0: all of them.
struct Workgroups {
  std::uint64_t first = 0;
  std::uint64_t step = 1;
  std::uint64_t count = 0;
  std::uint64_t total = 0;
};

// The part of a problem that runs. The default: all of it. A family derives its own where it can run less.
struct Plan {
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  virtual ~Plan() = default;

  Workgroups workgroups;       // of the only launch
  std::string text = "whole";  // for reports: "5 of 65536 workgroups"
};

// What one run has written: rows, and their bits.
class Written {
 public:
  Written() = default;
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  virtual ~Written() = default;

  // The same rows with the same bits. `other` is of the same case.
  virtual bool same_as(const Written& other) const = 0;
  // The first row that both have and whose bits differ: "sequence 0, head 3, row 7"; "": none.
  virtual std::string difference(const Written& other) const = 0;
};

// A problem on a device: its arrays, filled from the descriptor's seed, its call, and a comparison with the exact answer.
// Order of calls: prepare once; then any number of runs, each after erase where what it writes is read.
class Case {
 public:
  Case() = default;
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  virtual ~Case() = default;

  // Memory of the device that prepare takes.
  virtual std::uint64_t device_bytes() const = 0;
  virtual Result<void> prepare(wavejit_engine* engine) = 0;
  // Launches the whole call and waits. `engine` may be another one on the same device; `report` may be null.
  virtual Result<void> run(wavejit_engine* engine, wavejit_call_report* report) = 0;

  // From here on for `sweep` only.

  // Rows of the whole answer.
  virtual std::int64_t rows() const = 0;
  // What the call takes beside the arrays. Where it takes any, workgroups read what others have written.
  virtual Result<std::uint64_t> workspace_bytes(wavejit_engine* /*engine*/) const { return 0; }
  // What the simulated GPU's check of races takes beside the arrays: 40 bytes a dword that the plan touches.
  virtual std::uint64_t race_shadow_bytes(const Plan& /*plan*/) const { return device_bytes() / 4 * 40; }

  // What to run with a kernel of this spec when a sample of about `limit` multiplications is enough. `limit` may be
  // infinite: the whole.
  virtual std::unique_ptr<Plan> plan(const std::string& /*kernel_spec*/, double /*limit*/) const {
    return std::make_unique<Plan>();
  }
  // Runs a plan of this case; its workgroups have been chosen on the simulated GPU.
  virtual Result<void> run_plan(wavejit_engine* engine, const Plan& /*plan*/) { return run(engine, nullptr); }
  // The least that can run with every workgroup of a launch; for kernels whose workgroups need one another.
  virtual Result<void> run_least(wavejit_engine* engine, double /*limit*/, wavejit_call_report* report) {
    return run(engine, report);
  }
  // Whether kernels of these two specs must give the same bits.
  virtual bool same_bits(const std::string& /*kernel_spec*/, const std::string& /*other*/) const { return true; }

  // Marks the outputs as not written.
  virtual Result<void> erase() = 0;
  virtual Result<std::unique_ptr<Written>> written() const = 0;
  // "", or what is wrong with the set of rows that a plan of `workgroups` workgroups wrote.
  virtual std::string missing(const Written& written, const Plan& plan, std::uint64_t workgroups) const = 0;
  // "" or what was written outside the outputs.
  virtual Result<std::string> broken_fence() const = 0;
  // Compares with the exact answer, in float64: all of what was written, or rows worth about `limit` multiplications.
  virtual Comparison compare(const Written& written, double limit) = 0;
};

// A descriptor that was understood.
class Problem {
 public:
  Problem() = default;
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;
  virtual ~Problem() = default;

  virtual const std::string& text() const = 0;  // canonical
  // What `sweep --up-to-keys` and `--beyond-keys` compare; 0: the family has no keys.
  virtual std::int64_t keys() const { return 0; }
  // The problem must outlive it.
  virtual std::unique_ptr<Case> make_case() const = 0;
};

// ---- run ------------------------------------------------------------------------------------------------------------

// A file that the command line names.
struct NamedFile {
  std::string field;  // its option without dashes: "lse"
  std::string path;
};

// One array of the answer, in host memory.
struct OutputArray {
  std::string bytes;  // of the .npy file
  std::string shape;  // for people: "[1, 256, 8, 128]"
};

// `wavejit run`: one call on a user's arrays. Order of calls: as they stand here. What is alike in every family, and how a
// family says the rest, stands in array_run.h.
class ArrayCall {
 public:
  ArrayCall() = default;
  ArrayCall(const ArrayCall&) = delete;
  ArrayCall& operator=(const ArrayCall&) = delete;
  virtual ~ArrayCall() = default;

  // Its own options: input and output files, what modifies the call, the type. The rest is the command's.
  virtual void add_options(CLI::App& command) = 0;

  // Reads the inputs before any device is opened. `notes` gains what a user should know.
  virtual Result<void> read(std::vector<std::string>& notes) = 0;
  virtual std::vector<NamedFile> inputs() const = 0;
  // Those that were asked for, in the order of answers().
  virtual std::vector<NamedFile> outputs() const = 0;

  // Arrays onto the device. They must be gone before the engine: release() does it.
  virtual Result<void> prepare(wavejit_engine* engine) = 0;
  virtual void release() = 0;
  // Without waiting. `report` may be null.
  virtual Result<void> launch(wavejit_call_report* report) = 0;
  // The outputs to the host; the first time they are kept as the answer. True: the same bits as the kept ones.
  virtual Result<bool> fetch() = 0;
  // The kept answer against float64.
  virtual Comparison check() const = 0;
  virtual std::vector<OutputArray> answers() const = 0;
};

// ---- The family -----------------------------------------------------------------------------------------------------

// What `prebuild --kv` makes of keys and values.
enum class EightBits : std::uint8_t { floats, integers };

// What stands in a kernel's code up to a barrier, counted.
struct CodeStretch {
  unsigned matrix = 0;
  unsigned matrix_from_zero = 0;  // of them: a product begins
  unsigned transcendental = 0;
  unsigned lds_reads = 0;
};

class Family {
 public:
  Family() = default;
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  virtual ~Family() = default;

  // The first word of its descriptors: "row_sum".
  virtual std::string_view name() const = 0;
  // Help texts: the usual words of a descriptor, and a whole one that every target can do.
  virtual std::string_view grammar() const = 0;
  virtual std::string_view example() const = 0;
  // Examples of `wavejit run <family> …`, a line each; empty: `run` cannot do it.
  virtual std::vector<std::string> run_examples() const { return {}; }

  // `explain --isa`: what a kernel of this spec does when, for people, in whole lines; empty: nothing to tell.
  virtual std::string schedule(const std::string& /*kernel_spec*/) const { return {}; }

  // `profile`: a name for each stretch of `kernel`, a launch's symbol, in the order of addresses: "scores: QK, softmax". An
  // empty one where the schedule does not tell it; none where it tells nothing.
  virtual std::vector<std::string> step_names(const std::string& /*kernel_spec*/, std::string_view /*kernel*/,
                                              std::span<const CodeStretch> /*stretches*/) const {
    return {};
  }

  // `prebuild --kv fp8`, `int8`: a descriptor with its keys and values in 8 bits, the target's e4m3 or integers; as it
  // is where there is no such thing.
  virtual std::string with_8_bit_cache(const std::string& descriptor, std::string_view /*target*/,
                                       EightBits /*kind*/) const {
    return descriptor;
  }
  // `prebuild --kv fp8_ds_mla`: the same in rows that have scales of their own, where there are such.
  virtual std::string with_8_bit_rows(const std::string& descriptor, std::string_view target) const {
    return with_8_bit_cache(descriptor, target, EightBits::floats);
  }

  // `prebuild --model`: descriptors of what an engine calls of this family that serves the model.
  virtual std::vector<std::string> serving_lines(const ServedModel& /*served*/) const { return {}; }

  // Why a setting of the command line, or a word of its pipeline ("stagger"), means nothing to a kernel of this spec:
  // "only pipeline=dualwave has it". Empty: it does, or the family does not know it.
  virtual std::string without_setting(const std::string& /*kernel_spec*/, std::string_view /*name*/) const {
    return {};
  }

  // ExitCode::unsupported: the library knows such problems and does not do this one.
  virtual Result<std::unique_ptr<Problem>> parse(const std::string& descriptor) const = 0;
  // Descriptors that `wavejit sweep` runs when none are given.
  virtual std::vector<std::string> listed() const { return {}; }
  // Small descriptors, the smallest first, that together reach every route and modifier: `wavejit doctor` runs them on
  // every pipeline. And calls of a millisecond or more, which it times.
  virtual std::vector<std::string> examined() const { return {}; }
  virtual std::vector<std::string> examined_for_time() const { return {}; }
  virtual std::unique_ptr<ArrayCall> make_call() const { return nullptr; }
  virtual const Tuning* tuning() const { return nullptr; }
  virtual const Invariance* invariance() const { return nullptr; }
  // For `wavejit variants`: what people ask the family for by name; and of one family the page that has them all.
  virtual std::span<const Variant> variant_rows() const { return {}; }
  virtual const Variants* variants() const { return nullptr; }
};

}  // namespace wavejit::tools
