// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small serving engine on wavejit: README.md in this folder says how to read it. main starts one process a rank,
// waits for all of them and sums up what they tell.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "attention.h"
#include "decode_step.h"
#include "group.h"
#include "model.h"
#include "options.h"
#include "rank.h"

namespace serving {

namespace {

std::span<RankReport> make_reports(int ranks) {
  void* memory = ::mmap(nullptr, static_cast<std::size_t>(ranks) * sizeof(RankReport), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("serving_engine: memory for reports");
    std::exit(3);
  }
  return {new (memory) RankReport[static_cast<std::size_t>(ranks)](), static_cast<std::size_t>(ranks)};
}

int run_rank(const Options& options, const Model& model, Group& group, int rank, RankReport& report) {
  try {
    serve(options, model, group, rank, report);
    report.ended = true;
    return 0;
  } catch (const std::exception& failure) {
    std::snprintf(report.failure.data(), report.failure.size(), "%s", failure.what());
    group.fail();
    return 1;
  }
}

// Engines do not survive a fork: processes are made first, each makes its own.
void run_ranks(const Options& options, const Model& model, std::span<RankReport> reports) {
  Group group(options.ranks, static_cast<std::size_t>(limits.tokens_per_step) * model.shape.query_heads *
                                 model.shape.head_dim / options.ranks);
  int started = 0;
  for (; started < options.ranks; ++started) {
    const pid_t child = ::fork();
    if (child < 0) {
      std::perror("serving_engine: fork");
      group.fail();
      break;
    }
    if (child > 0) continue;
    const int code = run_rank(options, model, group, started, reports[started]);
    std::fflush(stdout);
    ::_exit(code);
  }
  for (; started > 0; --started) {
    int status = 0;
    if (::wait(&status) < 0 || status != 0) group.fail();  // also of one that was killed
  }
}

void print_stalls(std::span<const RankReport> reports) {
  std::printf("\nstalls, ms over all ranks       preparing    serving    longest\n");
  for (std::size_t cause = 0; cause < causes; ++cause) {
    Stall sums[2] = {};
    std::uint64_t longest = 0;
    for (const RankReport& report : reports) {
      for (std::size_t phase = 0; phase < 2; ++phase) {
        sums[phase].nanoseconds += report.stalls.stalls[phase][cause].nanoseconds;
        longest = std::max(longest, report.stalls.stalls[phase][cause].longest);
      }
    }
    std::printf("  %-28s %10.2f %10.2f %10.2f\n", cause_names[cause], 1e-6 * static_cast<double>(sums[0].nanoseconds),
                1e-6 * static_cast<double>(sums[1].nanoseconds), 1e-6 * static_cast<double>(longest));
  }
}

void print_cache(std::span<const RankReport> reports) {
  using Counter = std::uint64_t wavejit_statistics::*;
  constexpr std::pair<const char*, Counter> counters[] = {
      {"calls", &wavejit_statistics::calls},
      {"prepared", &wavejit_statistics::prepared},
      {"in memory", &wavejit_statistics::memory_hits},
      {"from disk", &wavejit_statistics::disk_hits},
      {"misses", &wavejit_statistics::misses},
      {"compiled", &wavejit_statistics::compiled},
      {"refused", &wavejit_statistics::refused_sealed},
      {"published", &wavejit_statistics::published},
      {"layer hits", &wavejit_statistics::layer_hits},
      {"user hits", &wavejit_statistics::user_hits},
      {"lock waits", &wavejit_statistics::lock_waits},
      {"faults", &wavejit_statistics::cache_io_faults},
  };
  std::printf("\ncache, over all ranks:");
  for (std::size_t i = 0; i < std::size(counters); ++i) {
    std::uint64_t sum = 0;
    for (const RankReport& report : reports) sum += report.statistics.*counters[i].second;
    std::printf("%s %s %llu", i == 0 ? "" : ",", counters[i].first, static_cast<unsigned long long>(sum));
  }
  std::printf("\n");
}

bool print_summary(std::span<const RankReport> reports) {
  const RankReport& first = reports.front();
  std::uint64_t wrong = 0;
  std::uint64_t changed = 0;
  std::uint64_t reordered = 0;
  for (const RankReport& report : reports) {
    wrong = std::max(wrong, report.wrong_tokens);  // each rank answers all of them
    changed += report.changed_logits;
    reordered += report.changed_rows;
  }
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("\ntokens: %llu of %llu equal to the reference; largest error of a logit %.4f, smallest margin %.4f\n",
              number(first.tokens - std::min(first.tokens, wrong)), number(first.tokens), first.largest_error,
              first.smallest_margin);
  std::printf("logits: %016llx, a digest of their bits\n", number(first.logit_digest));
  std::printf("alone: %llu requests once more, each alone: %s\n", number(first.alone_requests),
              changed == 0 ? "the same bits of logits" : "OTHER bits of logits");
  std::printf("orders: %llu others of arrival: %s\n", number(first.other_orders),
              reordered == 0 ? "the same tokens and bits of logits" : "OTHER tokens or bits of logits");
  std::printf("pages: %d of %d keys, %llu taken from requests that begin alike, %llu preemptions\n", limits.pages,
              page_size, number(first.shared_pages), number(first.preemptions));
  std::printf("steps: %llu in %llu ms, %llu of them with prompts and answers in one batch, up to %llu rows\n",
              number(first.steps), number(first.milliseconds), number(first.mixed_steps), number(first.most_rows));
  print_stalls(reports);
  print_cache(reports);
  return wrong == 0 && changed == 0 && reordered == 0;
}

int main_of(const Options& options) {
  const Model model = make_model({}, options.seed);
  if (options.print_list) {
    for (const std::string& line : kernel_lines(heads_of_a_rank(model.shape, options.ranks), limits))
      std::printf("%s\n", line.c_str());
    return 0;
  }
  if (options.decode_step != 0) {
    try {
      return report_decode_step(options, model.shape);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "serving_engine: %s\n", failure.what());
      return 3;
    }
  }
  const std::span<RankReport> reports = make_reports(options.ranks);
  run_ranks(options, model, reports);
  int failed = 0;
  for (int rank = 0; rank < options.ranks; ++rank) {
    if (reports[rank].ended) continue;
    ++failed;
    const char* failure = reports[rank].failure.data();
    std::fprintf(stderr, "serving_engine: rank %d: %s\n", rank, *failure != '\0' ? failure : "it was killed");
  }
  if (failed > 0) return 3;
  return print_summary(reports) ? 0 : 1;
}

}  // namespace

}  // namespace serving

int main(int count, char** words) { return serving::main_of(serving::read_options(count, words)); }
