// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts faults into results of attention and prints which of them the checker sees; docs/fault-injection.md is its output.
//
//   wavejit_fault_injection                    the page
//   wavejit_fault_injection --check <file>     exit 1 when the file differs
//
// Exit 2: a true result was flagged, or a fault in a whole tile of rows was not.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "attention/fault_cases.h"
#include "check_or_print.h"

namespace {

using wavejit::tests::AttentionCase;
using wavejit::tests::Fault;
using wavejit::tests::FaultCase;
using wavejit::tests::faults;
using wavejit::tests::Seen;
using wavejit::tests::Storage;

constexpr std::string_view introduction = R"(# Which faults the checker sees

Made by `./dev bench faults`; a test compares it. `wavejit run --check`, `wavejit sweep` and the tests give their results to one checker
(tools/checker.h). This page puts faults into results and shows which of them the checker flags. Some faults need not change a result, such as a part
that is read before its workgroup released it. The simulated GPU finds those ([simulated-gpu.md](simulated-gpu.md#how-the-checks-are-tested)).

## What is allowed

Every element of O and every LSE is compared with its exact value, computed in float64 from the stored inputs. What a row may differ by depends on no
other row. In the table, u is the unit roundoff of the storage type (2⁻¹¹ for fp16, 2⁻⁸ for bf16), p are softmax weights, v values and s scores.

| | may differ by | why |
|---|---|---|
| element of O | half an ulp of O there + w · Σ p·\|v\| + 1e-5 | O is rounded once, each weight once; 1e-5 is for float32 |
| row of O, RMS | 1.7 × what is expected of that row | expected: √((Σ half ulp² + w² · max(Σ p²·\|v\|², \|O\|²)) / 3) over the row, divided by the root of its length |
| row of O, cosine | what an error of that RMS at right angles to the row makes | it follows from the RMS; the table of `sweep` prints it because others publish it |
| LSE | 1e-5 + half an ulp of float32 there + 2⁻²⁰ · Σ p·\|s\| | a score is a sum of many products in float32 |
| LSE of a row without keys | nothing: −∞ | |

Correct results would be flagged without two of these terms:

* **w = u + 2⁻²⁰ · Σ p·\|s\|**, not u alone, and the same term for LSE: 16 roundings of float32. A score is a sum of as many products as the head has dimensions, and
  is rounded as often. Scores around 100 (scale 3, D = 128) were off by 3·10⁻⁵, and scores around 600
  (q and k 16 times as wide) by 3·10⁻⁴, which is more than half of u in fp16. For scores around 10 the term is a fiftieth of u in fp16.
  It is never more than half of a weight, however large the scores are: more would let zeros pass, which is what a row that sees no keys gives.
* **\|O\|² beside Σ p²·\|v\|²**. Weights of different sizes round independently, and their errors add up to Σ p²·\|v\|². Keys with equal scores have
  equal weights, which all have the same rounding error. Such errors do not cancel: they scale O.

A value that is NaN or infinite on one side must be so on the other. The checker counts such values and prints the count beside its verdict. A result
without any finite value to compare does not pass. Nothing is promised of rows with a score of 2²⁸ or more (|s| · log2 e, where no modifier changes
scores): the checker counts them, prints the count, and does not compare them.

## How faults are made

Results come from the simulated GPU. One row at a time is replaced by the row that a kernel with the fault would give. That row is computed in float64
and rounded to the storage type wherever the kernel rounds: the weights of each tile of 64 keys, and O. Without a fault, this computation agrees with the
simulated GPU to the bit in at least four fifths of the elements (in half of them with split keys), and the checker passes it in every row below.
A fault of a tile is put into the tile whose weight is nearest to the average, not into the tile where it would show most. All columns but the last are
judged by O alone, without LSE, where a lost key would show at once. A fault that changes no bit of a row is not counted for that row.
)";

std::string storage_text(Storage storage) { return storage == Storage::fp16 ? "fp16" : "bf16"; }

std::string header(std::string_view first) {
  std::string text = fmt::format("| {} | |", first);
  for (const Fault fault : faults) text += fmt::format(" {} |", to_text(fault));
  text += "\n|---|---|";
  for (std::size_t i = 0; i < faults.size(); ++i) text += "---|";
  return text + "\n";
}

std::string cell(const Seen& seen) {
  if (seen.changed == 0) return "-";
  if (seen.rows == seen.changed) return "every row";
  return fmt::format("{:.0f} % of rows", 100.0 * seen.rows / seen.changed);
}

// Every case on the simulated GPU, up to 1,025 keys.
std::string results(bool& good) {
  std::string text = header("case, up to 1,025 keys");
  for (const FaultCase& one : wavejit::tests::fault_cases()) {
    for (const Storage storage : {Storage::fp16, Storage::bf16}) {
      const wavejit::tests::FaultResult result = wavejit::tests::inject(one, storage);
      if (!result.wrong.empty()) {
        good = false;
        fmt::print(stderr, "{} {}: {}\n", one.name, storage_text(storage), result.wrong);
      }
      text += fmt::format("| {} | {} |", one.name, storage_text(storage));
      for (const Seen& seen : result.seen) text += fmt::format(" {} |", cell(seen));
      text += "\n";
    }
  }
  return text;
}

constexpr std::array steps = {65, 129, 257, 513, 1025, 2049, 4097, 8193, 16385, 32769};

// Up to which length something was so at every length tried.
struct Length {
  int longest = 0;
  bool ended = false;

  void tried(int keys, bool is_so) {
    ended = ended || !is_so;
    if (!ended) longest = keys;
  }
  std::string text() const {
    if (!ended) return "all";
    return longest == 0 ? "none" : fmt::format("{}", longest);
  }
};

// How long a sequence may be: rows as above, without the simulated GPU.
std::string lengths() {
  std::string text = header("inputs");
  for (const bool uniform : {false, true}) {
    for (const Storage storage : {Storage::fp16, Storage::bf16}) {
      std::array<Length, faults.size()> half{};
      std::array<Length, faults.size()> any{};
      for (const int keys : steps) {
        const auto seen = wavejit::tests::inject_at_length(storage, keys, uniform);
        for (std::size_t i = 0; i < faults.size(); ++i) {
          half[i].tried(keys, 2 * seen[i].rows >= seen[i].changed);
          any[i].tried(keys, seen[i].rows > 0);
        }
      }
      text += fmt::format("| {} | {} |", uniform ? "uniform" : "normal", storage_text(storage));
      for (std::size_t i = 0; i < faults.size(); ++i) text += fmt::format(" {}, {} |", half[i].text(), any[i].text());
      text += "\n";
    }
  }
  return text;
}

}  // namespace

int main(int count, char** values) {
  if (count != 1 && (count != 3 || std::string_view(values[1]) != "--check")) {
    fmt::print(stderr, "usage: {} [--check <file>]\n", values[0]);
    return 2;
  }
  bool good = true;
  std::string text(introduction);
  text +=
      "\n## Seen\n\nHow many rows are flagged if one row has the fault and the others do not. A fault in 64 neighbouring rows is "
      "flagged in every case of the table.\n\n";
  text += results(good);
  text +=
      "\n## Up to which length\n\n"
      "One head, D = 64, 32 rows, no mask. First number: the most keys with which at least half of the rows are flagged, each of which has\n"
      "the fault alone. Second number: the most keys with which at least one of the 32 rows is flagged, so that a fault in a tile of rows shows.\n"
      "Tried were powers of two plus one, from 65 to 32,769 keys; \"all\" means each of them. Rows in which the lost key has weight show it.\n\n";
  text += lengths();
  if (!good) return 2;
  return wavejit::bench::check_or_print(text, count == 3 ? values[2] : nullptr, "./dev bench faults");
}
