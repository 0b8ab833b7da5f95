// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// invariance: whether bits show how sequences were batched, cut and walked.
#include "tools/invariance/invariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/device_array.h"
#include "tools/engine_options.h"
#include "tools/families.h"
#include "tools/progress.h"
#include "tools/row_file.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

// What --longest may be: 131,072 keys of a sequence are 128 MB.
constexpr std::uint64_t most_longest = 131072;
constexpr std::uint64_t most_sequences = 4096;

struct Arguments {
  EngineOptions engine;
  std::string family;
  std::vector<std::string> dimensions;
  std::string pairs = "500";
  std::string seed = "1";
  std::string first_batch = "0";
  std::string sequences = "64";
  std::string longest = "3000";
  std::string csv;
  bool list_dimensions = false;
};

std::optional<std::uint64_t> parse_count(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

struct Asked {
  std::string name;
  const Invariance* family = nullptr;
};
// Those that have something to ask.
std::vector<Asked> asked_families() {
  std::vector<Asked> asked;
  for (const Family* family : all_families())
    if (const Invariance* invariance = family->invariance())
      asked.push_back({.name = std::string(family->name()), .family = invariance});
  return asked;
}

struct Outcome {
  const Invariance* family = nullptr;
  InvarianceDimension dimension;
  std::uint64_t wanted = 0;  // pairs
  std::uint64_t pairs = 0;
  std::uint64_t differences = 0;
  std::uint64_t failed = 0;        // calls that did not compile
  std::uint64_t before_batch = 0;  // pairs
  std::uint64_t without = 0;       // batches since its last pair
};

// The engines of a run, by what they pin.
class Engines {
 public:
  explicit Engines(const Arguments& arguments) : arguments_(arguments) {}

  Result<wavejit_engine*> with(const std::string& pipeline) {
    if (const auto found = engines_.find(pipeline); found != engines_.end()) return found->second.get();
    wavejit_engine_options options = arguments_.engine.options();
    if (!pipeline.empty()) options.pipeline = pipeline.c_str();
    wavejit_engine* engine = nullptr;
    if (auto created = checked(wavejit_engine_create(&options, &engine)); !created) {
      // A pipeline that the target does not have is no reason to stop.
      if (pipeline.empty()) return std::unexpected(created.error());
      engine = nullptr;
    }
    engines_[pipeline].reset(engine);
    return engine;
  }

 private:
  const Arguments& arguments_;
  std::map<std::string, std::unique_ptr<wavejit_engine, DestroyEngine>> engines_;
};

std::string told(const FirstDifference& first) {
  const std::string dim = first.dim < 0 ? std::string() : fmt::format(", dim {}", first.dim);
  return fmt::format("{} of token {}, head {}{}: {} and {}", first.tensor, first.token, first.head, dim, first.before,
                     first.after);
}

std::string in_brackets(const std::string& text) { return text.empty() ? text : fmt::format(" ({})", text); }

std::string csv_row(const Pair& pair) {
  const std::string tail =
      pair.difference
          ? fmt::format("{},{},{},{},{},{}", pair.difference->tensor, pair.difference->token, pair.difference->head,
                        pair.difference->dim, pair.difference->before, pair.difference->after)
          : ",,,,,";
  if (!pair.failure.empty()) {
    std::string failure = pair.failure;
    std::ranges::replace(failure, '"', '\'');
    return fmt::format("{},{},,\"{}\",\"{}\",failed,{}\n", pair.dimension, pair.batch, failure, pair.change, tail);
  }
  return fmt::format("{},{},{},\"{}\",\"{}\",{},{}\n", pair.dimension, pair.batch, pair.sequence, pair.descriptor,
                     pair.change, pair.difference ? "differs" : "same", tail);
}

Result<std::vector<Asked>> chosen_families(const Arguments& arguments) {
  std::vector<Asked> all = asked_families();
  if (all.empty()) return failed(ExitCode::unsupported, "no family of this program has dimensions to ask");
  if (arguments.family.empty()) return all;
  std::string names;
  for (const Asked& one : all) {
    if (one.name == arguments.family) return std::vector{one};
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return failed(ExitCode::usage, fmt::format("--family {}: {} are accepted", arguments.family, names));
}

Result<std::vector<Outcome>> chosen_dimensions(const Arguments& arguments, const std::vector<Asked>& families) {
  std::vector<Outcome> chosen;
  std::string names;
  for (const Asked& asked : families)
    for (const InvarianceDimension& dimension : asked.family->dimensions()) {
      names += (names.empty() ? "" : ", ") + dimension.name;
      const bool named = std::ranges::find(arguments.dimensions, dimension.name) != arguments.dimensions.end();
      if (named || (arguments.dimensions.empty() && !dimension.control))
        chosen.push_back({.family = asked.family, .dimension = dimension});
    }
  for (const std::string& name : arguments.dimensions)
    if (std::ranges::none_of(chosen, [&](const Outcome& one) { return one.dimension.name == name; }))
      return failed(ExitCode::usage, fmt::format("--dimension {}: {} are accepted", name, names));
  for (const Outcome& one : chosen)
    if (!arguments.dimensions.empty() && !one.dimension.not_yet.empty())
      return failed(ExitCode::unsupported,
                    fmt::format("--dimension {}: not yet, {}", one.dimension.name, one.dimension.not_yet));
  return chosen;
}

// A dimension that finds nothing to change in this many batches has nothing here.
constexpr std::uint64_t batches_without_a_pair = 50;

// One run of the command: batches until every dimension has its pairs, and what came of it.
class Asking {
 public:
  Asking(const Arguments& arguments, std::vector<Asked> families, std::vector<Outcome> outcomes)
      : arguments_(arguments),
        families_(std::move(families)),
        outcomes_(std::move(outcomes)),
        engines_(arguments),
        seed_(*parse_count(arguments.seed)) {
    for (Outcome& outcome : outcomes_)
      outcome.wanted = std::max<std::uint64_t>(*parse_count(arguments.pairs) / outcome.dimension.one_in, 1);
  }

  Result<ExitCode> run() {
    if (auto opened = open_csv(); !opened) return std::unexpected(opened.error());
    const auto engine = engines_.with({});
    if (!engine) return std::unexpected(engine.error());
    // A target may lack kernels of some families: dimensions that nobody named are left out where it has none.
    const bool has_all = std::ranges::contains(known_targets(), std::string(wavejit_engine_target(*engine)));
    leaves_out_ = !has_all && arguments_.dimensions.empty();
    if (auto done = ask_batches(); !done) return std::unexpected(done.error());
    print_dimensions();
    return sum_up(*engine);
  }

 private:
  Result<void> open_csv() {
    if (arguments_.csv.empty()) return {};
    auto file = RowFile::open("csv", arguments_.csv);
    if (!file) return std::unexpected(file.error());
    csv_.emplace(std::move(*file));
    return csv_->write("dimension,batch,sequence,descriptor,change,result,tensor,token,head,dim,before,after\n");
  }

  static bool wants_more(const Outcome& outcome) {
    return outcome.dimension.not_yet.empty() && outcome.pairs < outcome.wanted &&
           outcome.without < batches_without_a_pair;
  }
  bool is_refused(const Outcome& outcome) const {
    return outcome.pairs == 0 && outcome.failed == 0 &&
           (leaves_out_ || (outcome.dimension.of_some_targets && arguments_.dimensions.empty()));
  }

  Result<void> ask_batches() {
    for (const Outcome& outcome : outcomes_)
      if (wants_more(outcome)) total_ += outcome.wanted;
    Progress progress("pairs");
    for (std::uint64_t batch = *parse_count(arguments_.first_batch); std::ranges::any_of(outcomes_, wants_more);
         ++batch) {
      InvarianceRequest request = {.dimensions = {},
                                   .seed = seed_,
                                   .batch = batch,
                                   .sequences = static_cast<std::int64_t>(*parse_count(arguments_.sequences)),
                                   .longest = static_cast<std::int64_t>(*parse_count(arguments_.longest))};
      for (const Asked& of : families_)
        if (auto asked = ask_family(of, request, progress); !asked) return asked;
      if (!written_) return std::unexpected(written_.error());
      for (Outcome& outcome : outcomes_)
        outcome.without = outcome.pairs == outcome.before_batch ? outcome.without + 1 : 0;
    }
    return {};
  }

  Result<void> ask_family(const Asked& of, InvarianceRequest& request, Progress& progress) {
    request.dimensions.clear();
    for (Outcome& outcome : outcomes_) {
      if (outcome.family != of.family) continue;
      outcome.before_batch = outcome.pairs;
      if (wants_more(outcome)) request.dimensions.push_back(outcome.dimension.name);
    }
    if (request.dimensions.empty()) return {};
    auto ran = of.family->run(
        request, [&](const std::string& pipeline) { return engines_.with(pipeline); },
        [&](const Pair& pair) { take(pair, progress); });
    if (!ran && leaves_out_ && ran.error().code == ExitCode::unsupported) return {};
    return ran;
  }

  void take(const Pair& pair, Progress& progress) {
    Outcome& outcome =
        *std::ranges::find_if(outcomes_, [&](const Outcome& one) { return one.dimension.name == pair.dimension; });
    if (!pair.failure.empty()) {
      write(pair);
      const std::string event = ++outcome.failed == 1
                                    ? fmt::format("{}: a call of batch {} does not compile{}: {}", pair.dimension,
                                                  pair.batch, in_brackets(pair.change), pair.failure)
                                    : std::string();
      progress.update(done_, total_, event, !event.empty());
      return;
    }
    if (outcome.pairs == outcome.wanted) return;
    ++outcome.pairs;
    write(pair);
    std::string event;
    if (pair.difference && ++outcome.differences == 1)
      event = fmt::format(
          "{}: {}: {} ({})\n  {}\n  again: wavejit invariance{} --dimension {} --seed {} --first-batch {} "
          "--sequences {} --longest {} --pairs {}",
          pair.dimension, pair.descriptor, told(*pair.difference), pair.change, outcome.dimension.changes,
          arguments_.engine.given_words(), pair.dimension, seed_, pair.batch, arguments_.sequences, arguments_.longest,
          outcome.pairs - outcome.before_batch);
    progress.update(++done_, total_, event, !event.empty());
  }

  void write(const Pair& pair) {
    if (csv_ && written_) written_ = csv_->write(csv_row(pair));
  }

  void print_dimensions() const {
    constexpr auto row = "{:<17}  {:>9}  {:>11}  {}\n";
    fmt::print(row, "dimension", "pairs", "differences", "what changes");
    for (const Outcome& outcome : outcomes_) {
      const InvarianceDimension& of = outcome.dimension;
      if (is_refused(outcome))
        fmt::print(row, of.name, "-", "-", "no such kernel on this device");
      else if (!of.not_yet.empty())
        fmt::print(row, of.name, "-", "-", "not yet: " + of.not_yet);
      else
        fmt::print(row, of.name, outcome.pairs, outcome.differences,
                   of.changes + (outcome.failed == 0 ? "" : fmt::format("; {} calls did not compile", outcome.failed)));
    }
  }

  Result<ExitCode> sum_up(wavejit_engine* engine) const {
    std::uint64_t differences = 0;
    std::uint64_t pairs = 0;
    std::uint64_t not_compiled = 0;  // calls
    for (const Outcome& outcome : outcomes_) {
      pairs += outcome.pairs;
      differences += outcome.differences;
      not_compiled += outcome.failed;
    }
    std::string names;
    for (const Asked& of : families_)
      if (std::ranges::contains(outcomes_, of.family, &Outcome::family)) names += (names.empty() ? "" : ", ") + of.name;
    fmt::print("{} on {}, seed {}: {}\n", names, wavejit_engine_device_name(engine), seed_,
               (differences == 0 ? fmt::format("of {} pairs no bit differs", pairs)
                                 : fmt::format("{} of {} pairs differ", differences, pairs)) +
                   (not_compiled == 0 ? "" : fmt::format(", and {} calls did not compile", not_compiled)));
    if (differences == 0 && not_compiled != 0)
      return failed(ExitCode::compile_failed, fmt::format("{}: {} calls did not compile", names, not_compiled));
    // Fewer pairs are no answer, and none at all even less.
    if (pairs == 0 && arguments_.dimensions.empty())
      return failed(ExitCode::unsupported, fmt::format("{}: no pair; {} batches on this device have nothing to compare",
                                                       names, batches_without_a_pair));
    for (const Outcome& outcome : outcomes_)
      if (outcome.dimension.not_yet.empty() && outcome.pairs < outcome.wanted && !is_refused(outcome))
        return failed(ExitCode::unsupported,
                      fmt::format("--dimension {}: {} pairs of {}; {} batches on this device have nothing to compare",
                                  outcome.dimension.name, outcome.pairs, outcome.wanted, batches_without_a_pair));
    return differences == 0 ? ExitCode::ok : ExitCode::check_failed;
  }

  const Arguments& arguments_;
  std::vector<Asked> families_;
  std::vector<Outcome> outcomes_;
  Engines engines_;
  std::uint64_t seed_;
  std::optional<RowFile> csv_;
  Result<void> written_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  bool leaves_out_ = false;
};

Result<ExitCode> ask(const Arguments& arguments) {
  auto families = chosen_families(arguments);
  if (!families) return std::unexpected(families.error());
  auto outcomes = chosen_dimensions(arguments, *families);
  if (!outcomes) return std::unexpected(outcomes.error());
  return Asking(arguments, *std::move(families), *std::move(outcomes)).run();
}

Result<ExitCode> list_dimensions(const Arguments& arguments) {
  const auto families = chosen_families(arguments);
  if (!families) return std::unexpected(families.error());
  for (const Asked& asked : *families) {
    fmt::print("Dimensions of {}\n", asked.name);
    for (const InvarianceDimension& dimension : asked.family->dimensions())
      fmt::print("  {:<17}  {}\n", dimension.name,
                 dimension.not_yet.empty() ? dimension.changes : "not yet: " + dimension.not_yet);
  }
  return ExitCode::ok;
}

CLI::Option* count(CLI::App& command, const std::string& name, std::string& value, const std::string& help,
                   std::uint64_t least = 0, std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  return limit(command.add_option(name, value, help)->capture_default_str(), "N", [=](const std::string& given) {
    const auto number = parse_count(given);
    return number && *number >= least && *number <= most
               ? std::string()
               : fmt::format("'{}' is not accepted; whole numbers from {} to {} are", given, least, most);
  });
}

}  // namespace

void add_invariance(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("invariance", "Ask whether bits show how sequences were batched, cut and walked");
  command->add_option("--family", arguments->family, "ask only this family's dimensions")->type_name("NAME");
  command
      ->add_option("--dimension", arguments->dimensions,
                   "what changes between two runs; may be given several times (default: all but controls)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  count(*command, "--pairs", arguments->pairs, "of runs to compare, of each dimension", 1, 1U << 30U);
  count(*command, "--seed", arguments->seed, "what batches are drawn from");
  count(*command, "--first-batch", arguments->first_batch, "where in the seed's batches to begin");
  count(*command, "--sequences", arguments->sequences, "of a batch", 1, most_sequences);
  count(*command, "--longest", arguments->longest, "keys of the longest sequences", 1, most_longest);
  command->add_option("--csv", arguments->csv, "write every pair to a file, row by row")->type_name("FILE.csv");
  arguments->engine.add_device(*command);
  arguments->engine.add_cache(*command);
  arguments->engine.add_compiler(*command, false);
  arguments->engine.add_log_level(*command);
  command->add_flag("--list-dimensions", arguments->list_dimensions,
                    "say what each dimension changes, and run nothing");
  command->footer(fmt::format(
      "Mixed batches are drawn from the seed and run; then each sequence runs again with one thing changed. A pair is\n"
      "all that one sequence gets in both runs, compared bit by bit. Exit code 1: a pair differs;\n"
      "5: a kernel did not compile. docs/invariance.md\n"
      "No descriptor is taken: what a dimension changes is the shape itself (lengths, pages, splits, heads, types), so a batch\n"
      "that had one shape would leave most of them nothing to change. --family, --dimension, --sequences and --longest choose.\n\n"
      "Examples\n"
      "  wavejit invariance --device sim:{}\n"
      "  wavejit invariance --device sim:{} --dimension splits --pairs 20000 --longest 70000 --csv pairs.csv",
      example_targets().last, example_targets().first));
  command->callback([&chosen, arguments] {
    chosen = [arguments] { return arguments->list_dimensions ? list_dimensions(*arguments) : ask(*arguments); };
  });
}

}  // namespace wavejit::tools
