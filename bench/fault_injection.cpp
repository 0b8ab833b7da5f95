// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Puts faults into results of attention and prints which of them the judge sees; docs/fault-injection.md is its output.
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

constexpr std::string_view introduction = R"(# Which faults the judge sees

Made by `./dev bench faults`; a test compares it. Every result that `wavejit run --check`, `wavejit sweep` and the tests look at goes to one judge
(tools/judge.h). Here faults are put into results, and the judge says what it sees. Faults that a result need not show, such as a part that is read
before its workgroup released it, are the simulated GPU's to find ([simulated-gpu.md](simulated-gpu.md#how-the-checks-are-tested)).

## What is allowed

Everything is held against its own exact value from float64 on the stored inputs. Nothing depends on another row. u is the unit roundoff of the
storage type: 2⁻¹¹ for fp16, 2⁻⁸ for bf16. p are softmax weights, v values, s scores.

| | may differ by | why |
|---|---|---|
| element of O | half an ulp of O there + w · Σ p·\|v\| + 1e-5 | O is rounded once, each weight once; 1e-5 is for float32 |
| row of O, RMS | 1.7 × what is expected of that row | expected: √((Σ half ulp² + w² · max(Σ p²·\|v\|², \|O\|²)) / 3) over the row, divided by the root of its length |
| row of O, cosine | an error of that length at right angles | it follows from the RMS; the table of `sweep` prints it because others publish it |
| LSE | 1e-5 + half an ulp of float32 there + 2⁻²⁰ · Σ p·\|s\| | a score is a sum of many products in float32 |
| LSE of a row without keys | nothing: −∞ | |

Two terms are there because true results need them:

* **w = u + 2⁻²⁰ · Σ p·\|s\|**, not u alone, and the same term for LSE: 16 roundings of float32. A score is a sum of as many products as the head has dimensions, and
  is rounded as often. Scores of a hundred (scale 3, D = 128) were seen off by 3·10⁻⁵, scores of six hundred
  (q and k 16 times as wide) by 3·10⁻⁴, which is more than half of u in fp16. Of scores of ten the term is a fiftieth of it.
  Of a weight it is a half at most, whatever the scores: more would admit the zeros of a row that sees nothing.
* **\|O\|² beside Σ p²·\|v\|²**. Weights of different size round independently: their errors add up as Σ p²·\|v\|² says. Keys whose scores are equal have
  equal weights with one and the same error: it moves O along with their values.

What is NaN or infinite must be so on both sides. It is counted, and told beside the verdict. A result in which nothing finite was compared does not pass.
Rows with a score of 2²⁸ and beyond (|s| · log2 e, without modifiers) are promised nothing: they are counted, told, and not compared.

## How faults are made

Results come from the simulated GPU. A row of them is replaced by the row that a kernel with the fault would give: computed in float64 with every rounding to the storage type
that the kernel makes, of the weights of each tile of 64 keys and of O. The same computation without a fault gives what the simulated GPU gave, in four fifths of the elements and more to the bit (of split keys half), and passes in every row below. Faults of a tile are put into
the tile whose weight is nearest to the average: not the one that shows most. All but the last column are judged by O alone, without LSE: a lost key would show there at once.
A fault that changes no bit of a row is not counted for that row.
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
      "\n## Seen\n\nOf rows that have the fault alone, how many are flagged. In every case of the table a fault in 64 "
      "neighbouring rows is flagged.\n\n";
  text += results(good);
  text +=
      "\n## Up to which length\n\n"
      "One head, D = 64, 32 rows, no mask. The first number: up to this many keys half of the rows that have the fault alone are\n"
      "flagged, or more. The second: up to this many at least one of the 32 is, so that a fault in a tile of rows shows. Lengths tried:\n"
      "powers of two plus one, 65 to 32,769; \"all\": every one of them. A lost key is seen in the rows that it weighs in.\n\n";
  text += lengths();
  if (!good) return 2;
  return wavejit::bench::check_or_print(text, count == 3 ? values[2] : nullptr, "./dev bench faults");
}
