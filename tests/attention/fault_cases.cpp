// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attention/fault_cases.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <numbers>
#include <set>
#include <span>

#include "attention/modified.h"
#include "support/compared_rows.h"

namespace wavejit::tests {
namespace {

using tools::Checker;

constexpr int tile_rows = 64;
constexpr int rows_at_length = 32;

AttentionCase packed_sequences(Storage storage) {
  AttentionCase which = make_case(storage, 1, 65 + 70 + 129, 1025 + 300 + 129, 1, 1, 64, true, 904);
  which.inputs.batch = 3;
  which.inputs.query_length = 129;
  which.inputs.key_length = 1025;
  which.inputs.query_starts = {0, 65, 135, 264};
  which.inputs.key_starts = {0, 1025, 1325, 1454};
  return which;
}

// One row of a case, before the checker.
struct RowOfCase {
  int sequence;
  int row;
  int head;
};

class Injection {
 public:
  Injection(const AttentionCase& which, const AttentionAnswer& exact) : which_(which), exact_(exact) {}

  void compare(Checker& checker, const RowOfCase& at, const ComputedRow& row, bool with_lse) const {
    check_row(checker, which_.inputs, exact_, at.sequence, at.row, at.head,
              {.output = row.output, .lse = with_lse ? std::optional(row.lse) : std::nullopt});
  }

  bool flagged(const RowOfCase& at, const ComputedRow& row, bool with_lse) const {
    Checker checker(format_of(which_.storage));
    compare(checker, at, row, with_lse);
    return !checker.comparison().passed();
  }

 private:
  const AttentionCase& which_;
  const AttentionAnswer& exact_;
};

std::string text_of(const RowOfCase& at) {
  return std::format("sequence {}, row {}, head {}", at.sequence, at.row, at.head);
}

// Rows without a fault have the bits that the simulated GPU gave, but for elements at which float32 rounds otherwise
// than float64. Empty: at least four fifths of some rows; half where keys are split, as each part has its own maximum.
std::string unlike(const AttentionCase& which, const AttentionOutput& output) {
  const AttentionInputs& in = which.inputs;
  const auto dim = static_cast<std::size_t>(in.value_dim());
  std::size_t alike = 0;
  std::size_t all = 0;
  for (int i = 0; i < in.queries(0); i += 7) {
    const EmulatedRow row(which.storage, in, 0, i, 0);
    if (!row.sees_keys()) continue;
    const ComputedRow computed = row.with(Fault::none);
    for (std::size_t c = 0; c < dim; ++c) {
      ++all;
      const float simulated = from_storage(which.storage, output.o[in.row_of_output(0, i, 0) * dim + c]);
      if (computed.output[c] == simulated) ++alike;
    }
  }
  if (which.splits > 1 ? 2 * alike >= all : 5 * alike >= 4 * all) return {};
  return std::format("of {} elements {} only are those of the simulated GPU", all, alike);
}

// The rows of one tile, each with each fault alone and all of them together.
std::string inject_into_tile(const AttentionCase& which, const AttentionAnswer& exact,
                             const std::vector<RowOfCase>& rows, SeenFaults& seen) {
  const Injection injection(which, exact);
  std::vector<EmulatedRow> emulated;
  for (const RowOfCase& at : rows) {
    emulated.emplace_back(which.storage, which.inputs, at.sequence, at.row, at.head);
    if (!emulated.back().sees_keys()) continue;
    if (injection.flagged(at, emulated.back().with(Fault::none), true))
      return std::format("a row without a fault is flagged: {}", text_of(at));
  }
  std::string unseen;
  for (std::size_t f = 0; f < faults.size(); ++f) {
    const bool of_lse = faults[f] == Fault::lse_shifted;
    Checker whole(format_of(which.storage));
    bool changed = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!emulated[i].sees_keys()) continue;
      const EmulatedRow& neighbour = emulated[i + 1 < rows.size() ? i + 1 : i - 1];
      const ComputedRow row =
          faults[f] == Fault::neighbours_row ? neighbour.with(Fault::none) : emulated[i].with(faults[f]);
      injection.compare(whole, rows[i], row, of_lse);
      const ComputedRow good = emulated[i].with(Fault::none);
      if (of_lse ? row.lse == good.lse : row.output == good.output) continue;
      changed = true;
      ++seen[f].changed;
      if (injection.flagged(rows[i], row, of_lse)) ++seen[f].rows;
    }
    if (changed && whole.comparison().passed() && unseen.empty()) {
      unseen =
          std::format("{} in the {} rows from {} is not seen", to_text(faults[f]), rows.size(), text_of(rows.front()));
    }
  }
  return unseen;
}

}  // namespace

const std::vector<FaultCase>& fault_cases() {
  static const std::vector<FaultCase> cases = {
      {"full", "gfx950", [](Storage s) { return make_case(s, 1, 64, 1025, 2, 1, 128, false, 901); }},
      {"causal", "gfx942", [](Storage s) { return make_case(s, 1, 1025, 1025, 1, 1, 64, true, 902); }},
      {"ragged", "gfx950", [](Storage s) { return make_case(s, 2, 77, 777, 2, 1, 64, false, 903); }},
      {"packed, causal", "gfx942", packed_sequences},
      {"split keys", "gfx950",
       [](Storage s) {
         AttentionCase which = make_case(s, 1, 64, 1025, 2, 1, 128, false, 905);
         which.splits = 4;
         return which;
       }},
      {"window", "gfx942",
       [](Storage s) {
         AttentionCase which = make_case(s, 1, 300, 1025, 1, 1, 64, false, 906);
         which.inputs.window = true;
         which.inputs.window_left = 500;
         which.inputs.window_right = 3;
         return which;
       }},
      {"bias", "gfx950",
       [](Storage s) {
         AttentionCase which = make_case(s, 1, 64, 1025, 1, 1, 64, false, 907);
         add_bias(which, 1, 1, 1, 908);
         return which;
       }},
      {"ALiBi, sink", "gfx942",
       [](Storage s) {
         AttentionCase which = make_case(s, 1, 70, 1025, 2, 1, 64, true, 909);
         add_alibi(which, 1);
         add_sink(which, 3);
         return which;
       }},
      {"softcap", "gfx950",
       [](Storage s) {
         AttentionCase which = make_case(s, 1, 64, 1025, 1, 1, 64, false, 910, 2);
         which.inputs.softcap = 5;
         return which;
       }},
  };
  return cases;
}

FaultResult inject(const FaultCase& which, Storage storage) {
  FaultResult result;
  const AttentionCase made = which.make(storage);
  const AttentionAnswer exact = attention_reference(made.inputs);
  {
    const Engine engine(which.target);
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    const AttentionOutput output = run_attention(engine.get(), made);
    result.wrong = output.status == WAVEJIT_OK ? compare_rows(made, exact, output).wrong() : output.detail;
    if (result.wrong.empty()) result.wrong = unlike(made, output);
    if (!result.wrong.empty()) return result;
  }
  const AttentionInputs& in = made.inputs;
  for (int b = 0; b < in.batch; ++b) {
    for (int h = 0; h < in.query_heads; ++h) {
      // The first whole tile, the last, and one between.
      const int tiles = std::max(in.queries(b) / tile_rows, 1);
      for (const int tile : std::set{0, tiles / 2, tiles - 1}) {
        std::vector<RowOfCase> rows;
        for (int i = tile * tile_rows; i < (tile + 1) * tile_rows; ++i)
          rows.push_back({.sequence = b, .row = i, .head = h});
        result.wrong = inject_into_tile(made, exact, rows, result.seen);
        if (!result.wrong.empty()) return result;
      }
    }
  }
  return result;
}

SeenFaults inject_at_length(Storage storage, int keys, bool uniform) {
  AttentionCase which = make_case(storage, 1, rows_at_length, keys, 1, 1, 64, false, 920);
  if (uniform) {
    // From normal numbers by their distribution function: uniform in (−1, 1).
    for (const auto field : {&AttentionInputs::q, &AttentionInputs::k, &AttentionInputs::v}) {
      for (float& x : which.inputs.*field)
        x = from_storage(storage, to_storage(storage, std::erf(x / std::numbers::sqrt2)));
    }
  }
  const AttentionAnswer exact = attention_reference(which.inputs);
  std::vector<RowOfCase> rows;
  for (int i = 0; i < rows_at_length; ++i) rows.push_back({.sequence = 0, .row = i, .head = 0});
  SeenFaults seen{};
  static_cast<void>(inject_into_tile(which, exact, rows, seen));
  return seen;
}

}  // namespace wavejit::tests
