// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/doctor/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "tools/doctor/sums.h"

namespace wavejit::tools::doctor {
namespace {

using Words = std::span<const std::uint32_t>;

std::string hex(std::uint32_t word) { return fmt::format("{:08x}", word); }

// Words that a report carries of an answer that is not the simulated one.
constexpr std::size_t most_words_told = 256;

nlohmann::json hex_words(Words words) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::uint32_t word : words.first(std::min(words.size(), most_words_told))) list.push_back(hex(word));
  return list;
}

// FNV-1a: enough to see that two answers are one.
std::string digest(Words words) {
  std::uint64_t state = 0xcbf29ce484222325;
  for (const std::uint32_t word : words)
    for (unsigned byte = 0; byte < sizeof word; ++byte) state = (state ^ ((word >> (8 * byte)) & 255U)) * 0x100000001b3;
  return fmt::format("{:016x}", state);
}

void compare_with_simulated(Finding& finding, const Probe& probe, Words answer, Words simulated) {
  finding.data["digest"] = digest(answer);
  if (simulated.empty()) {
    finding.status = Status::told;
    finding.text = "answer " + digest(answer) + "; no simulated GPU here to hold it against";
    finding.data["answer"] = hex_words(answer);
    return;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < answer.size(); ++i) count += answer[i] != simulated[i] ? 1U : 0U;
  finding.data["words"] = answer.size();
  finding.data["words_that_differ"] = count;
  if (count == 0) {
    finding.status = Status::as_expected;
    finding.text = fmt::format("{} words as the simulated GPU has them", answer.size());
    return;
  }
  const auto first = static_cast<std::size_t>(std::ranges::mismatch(answer, simulated).in1 - answer.begin());
  finding.status = Status::differs;
  finding.text = fmt::format("{} of {} words differ from the simulated GPU's; first: lane {}, word {}: {}, not {}",
                             count, answer.size(), first / probe.output_words, first % probe.output_words,
                             hex(answer[first]), hex(simulated[first]));
  finding.data["answer"] = hex_words(answer);
  finding.data["simulated"] = hex_words(simulated);
}

// ---- ulps -----------------------------------------------------------------------------------------------------------

struct Function {
  std::string_view name;
  double (*exact)(double);
};
constexpr std::array<Function, 5> functions = {{
    {"exp2", [](double x) { return std::exp2(x); }},
    {"log2", [](double x) { return std::log2(x); }},
    {"reciprocal", [](double x) { return 1 / x; }},
    {"reciprocal_root", [](double x) { return 1 / std::sqrt(x); }},
    {"root", [](double x) { return std::sqrt(x); }},
}};
constexpr double documented_ulps = 1;
constexpr double simulated_ulps = 0.51;  // src/simgpu/machine/numerics: at most
constexpr int lowest_normal = -126;
constexpr int fraction_bits = 23;

void check_ulps(Finding& finding, const Function& function, Words words, Words answer) {
  double worst = 0;
  std::uint32_t worst_word = 0;
  std::size_t compared = 0;
  std::size_t beyond_simulated = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const double exact = function.exact(std::bit_cast<float>(words[i]));
    // Denormal numbers in or out are the mode's business, and infinite ones nobody's.
    const bool normal = std::isnormal(std::bit_cast<float>(words[i])) && std::isnormal(static_cast<float>(exact));
    if (!normal) continue;
    ++compared;
    const auto result = static_cast<double>(std::bit_cast<float>(answer[i]));
    const double ulp = std::ldexp(1, std::max(std::ilogb(exact), lowest_normal) - fraction_bits);
    const double off = std::isfinite(result) ? std::abs(result - exact) / ulp : std::numeric_limits<double>::max();
    if (off > simulated_ulps) ++beyond_simulated;
    if (off <= worst) continue;
    worst = off;
    worst_word = words[i];
  }
  finding.data["compared"] = compared;
  finding.data["beyond_simulated"] = beyond_simulated;
  finding.data["most_ulps"] = worst;
  finding.data["most_ulps_at"] = hex(worst_word);
  finding.data["digest"] = digest(answer);
  finding.status = worst > documented_ulps ? Status::failed
                   : beyond_simulated > 0  ? Status::differs
                                           : Status::as_expected;
  finding.text = fmt::format("at most {:.3f} ulp, at {}; {} of {} by more than 0.51", worst, hex(worst_word),
                             beyond_simulated, compared);
}

// ---- Dies -----------------------------------------------------------------------------------------------------------

void check_round(Finding& finding, const Probe& probe, Words answer) {
  std::vector<std::uint32_t> dies;
  dies.reserve(probe.workgroups);
  for (unsigned workgroup = 0; workgroup < probe.workgroups; ++workgroup)
    dies.push_back(answer[std::size_t{64} * workgroup * probe.output_words]);
  const auto again = std::find(dies.begin() + 1, dies.end(), dies.front());
  const auto round = static_cast<std::size_t>(again - dies.begin());
  bool in_turn = true;
  for (std::size_t i = round; i < dies.size(); ++i) in_turn = in_turn && dies[i] == dies[i - round];
  finding.data["dies"] = dies;
  finding.status = in_turn ? Status::as_expected : Status::differs;
  finding.text = in_turn ? fmt::format("workgroups go round {} {}", round, round == 1 ? "die" : "dies")
                         : "workgroups do not go round the dies; the report has where each went";
}

// ---- Sums -----------------------------------------------------------------------------------------------------------

struct MatrixShape {
  unsigned rows = 32;      // and columns
  unsigned k_of_lane = 8;  // consecutive k that a lane holds
  Factor (*factor)(std::uint16_t) = nullptr;
  unsigned k() const { return k_of_lane * 64 / rows; }
  unsigned factor_words() const { return k_of_lane / 2; }
};

// docs/isa.md, "Matrix instructions": row of the result that register r of a lane holds.
unsigned row_of(const MatrixShape& shape, unsigned lane, unsigned r) {
  const unsigned group = lane / shape.rows;
  return shape.rows == 32 ? (8 * (r / 4)) + (4 * group) + (r % 4) : (4 * group) + r;
}

// The factors of a row of A (which = 0) or a column of B (which = 1), in the order of k.
void factors_of(const MatrixShape& shape, const Probe& probe, Words of_workgroup, unsigned row, unsigned which,
                std::span<Factor> out) {
  for (unsigned k = 0; k < shape.k(); ++k) {
    const unsigned lane = row + (shape.rows * (k / shape.k_of_lane));
    const unsigned place = k % shape.k_of_lane;
    const std::uint32_t word =
        of_workgroup[(std::size_t{lane} * probe.input_words) + (which * shape.factor_words()) + (place / 2)];
    out[k] = shape.factor(static_cast<std::uint16_t>(word >> (16 * (place % 2))));
  }
}

bool same(float a, std::uint32_t bits) {
  return std::bit_cast<std::uint32_t>(a) == bits || (a == 0 && (bits & 0x7fffffffU) == 0);
}

void check_sums(Finding& finding, const Probe& probe, const MatrixShape& shape, Words words, Words answer) {
  const auto models = sum_models();
  std::vector<std::size_t> wrong(models.size());
  std::array<Factor, 64> a{};
  std::array<Factor, 64> b{};
  const unsigned k = shape.k();
  for (unsigned workgroup = 0; workgroup < probe.workgroups; ++workgroup) {
    const Words inputs = words.subspan(std::size_t{64} * workgroup * probe.input_words, 64 * probe.input_words);
    for (unsigned lane = 0; lane < 64; ++lane) {
      factors_of(shape, probe, inputs, lane % shape.rows, 1, b);
      for (unsigned r = 0; r < probe.output_words; ++r) {
        factors_of(shape, probe, inputs, row_of(shape, lane, r), 0, a);
        const float c =
            std::bit_cast<float>(inputs[(std::size_t{lane} * probe.input_words) + (2 * shape.factor_words()) + r]);
        const std::uint32_t got = answer[(((std::size_t{workgroup} * 64) + lane) * probe.output_words) + r];
        for (std::size_t m = 0; m < models.size(); ++m)
          if (!same(models[m].add_up(std::span(a).first(k), std::span(b).first(k), c), got)) ++wrong[m];
      }
    }
  }
  std::string fits;
  nlohmann::json tried = nlohmann::json::object();
  for (std::size_t m = 0; m < models.size(); ++m) {
    tried[std::string(models[m].name)] = wrong[m];
    if (wrong[m] == 0) fits += (fits.empty() ? "" : "; ") + std::string(models[m].name);
  }
  finding.data["sums_that_differ_by_model"] = tried;
  const auto nearest = static_cast<std::size_t>(std::ranges::min_element(wrong) - wrong.begin());
  finding.text += fits.empty() ? fmt::format(". No model fits; nearest, with {} of {} sums apart: {}", wrong[nearest],
                                             answer.size(), models[nearest].name)
                               : ". Fits: " + fits;
}

// "sums bf16 32 8"
MatrixShape shape_of(std::string_view check) {
  MatrixShape shape;
  shape.factor = check.starts_with("sums bf16") ? factor_of_bf16 : factor_of_f16;
  const std::size_t last = check.rfind(' ');
  const std::size_t before = check.rfind(' ', last - 1);
  std::from_chars(check.data() + before + 1, check.data() + last, shape.rows);
  std::from_chars(check.data() + last + 1, check.data() + check.size(), shape.k_of_lane);
  return shape;
}

}  // namespace

std::string_view to_text(Status status) {
  switch (status) {
    case Status::as_expected:
      return "as expected";
    case Status::differs:
      return "DIFFERS";
    case Status::failed:
      return "FAILED";
    case Status::told:
      return "told";
    case Status::skipped:
      break;
  }
  return "skipped";
}

Finding finding_of(const Probe& probe) {
  Finding finding;
  finding.name = probe.name;
  finding.settles = probe.settles;
  finding.risk = probe.risk;
  return finding;
}

Finding check(const Probe& probe, Words words, Words answer, Words simulated) {
  Finding finding = finding_of(probe);
  constexpr std::string_view ulps = "ulps ";
  if (probe.check.starts_with(ulps)) {
    const auto* function = std::ranges::find(functions, probe.check.substr(ulps.size()), &Function::name);
    if (function != functions.end()) check_ulps(finding, *function, words, answer);
    return finding;
  }
  if (probe.check == "round") {
    check_round(finding, probe, answer);
    return finding;
  }
  compare_with_simulated(finding, probe, answer, simulated);
  if (probe.check.starts_with("sums ")) check_sums(finding, probe, shape_of(probe.check), words, answer);
  return finding;
}

}  // namespace wavejit::tools::doctor
