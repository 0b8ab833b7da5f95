// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "layers.h"
#include "reference.h"

namespace serving {

namespace {

// Computes one step's batch: the decoder around Attention.
class Decoder {
 public:
  Decoder(const Model& model, Attention& attention, Group& group, int rank, StallLedger& ledger)
      : model_(model),
        heads_(heads_of_a_rank(model.shape, group.ranks())),
        attention_(attention),
        group_(group),
        rank_(rank),
        ledger_(ledger) {}

  // The logits after each piece's last token.
  std::vector<std::vector<float>> run(const std::vector<Piece>& pieces, const std::vector<Sequence>& sequences) {
    std::vector<Row<float>> hidden;
    for (const Piece& piece : pieces)
      for (int i = piece.first; i < piece.first + piece.count; ++i)
        hidden.push_back(embed<float>(model_, sequences[piece.sequence].tokens[i], i));
    attention_.begin_step(pieces, sequences);
    for (int layer = 0; layer < model_.shape.layers; ++layer) run_layer(layer, hidden);

    std::vector<std::vector<float>> logits;
    logits.reserve(pieces.size());
    std::size_t end = 0;
    for (const Piece& piece : pieces) logits.push_back(logits_of(model_, hidden[(end += piece.count) - 1]));
    return logits;
  }

 private:
  // This rank's heads of a projection, appended as the device wants it.
  void project(const Matrix& matrix, int heads, const Row<float>& x, std::vector<Half>& rows) const {
    const int count = heads * heads_.head_dim;
    for (const float value : multiply(matrix, x, rank_ * count, count)) rows.push_back(to_half(value));
  }

  void run_layer(int index, std::vector<Row<float>>& hidden) {
    const Layer& layer = model_.layers[index];
    std::vector<Half> queries;
    std::vector<Half> keys;
    std::vector<Half> values;
    for (const Row<float>& row : hidden) {
      const Row<float> x = normalised(row);
      project(layer.query, heads_.query_heads, x, queries);
      project(layer.key, heads_.kv_heads, x, keys);
      project(layer.value, heads_.kv_heads, x, values);
    }
    std::uint64_t waited = 0;
    const std::vector<Half> all = group_.gather(rank_, attention_.attend(index, queries, keys, values), waited);
    if (group_.ranks() > 1) ledger_.add(Cause::other_rank, waited);
    // Every rank adds up all heads in the same order: the number of ranks does not show in the answer.
    const std::size_t of_a_rank = static_cast<std::size_t>(heads_.query_heads) * heads_.head_dim;
    for (std::size_t row = 0; row < hidden.size(); ++row) {
      Row<float> attended;
      for (int rank = 0; rank < group_.ranks(); ++rank) {
        const Half* from = all.data() + (rank * hidden.size() + row) * of_a_rank;
        for (std::size_t i = 0; i < of_a_rank; ++i) attended.push_back(from_half(from[i]));
      }
      finish_layer(layer, attended, hidden[row]);
    }
  }

  const Model& model_;
  HeadShape heads_;
  Attention& attention_;
  Group& group_;
  int rank_;
  StallLedger& ledger_;
};

std::vector<Sequence> serve_all(Decoder& decoder, std::vector<Request> requests, RankReport* report) {
  Scheduler scheduler(limits, std::move(requests));
  while (!scheduler.done()) {
    const std::vector<Piece> pieces = scheduler.next_step();
    if (pieces.empty()) continue;
    if (report != nullptr) {
      std::uint64_t rows = 0;
      bool prompts = false;
      bool answers = false;
      for (const Piece& piece : pieces) {
        rows += static_cast<std::uint64_t>(piece.count);
        (scheduler.sequences()[piece.sequence].answered() > 0 ? answers : prompts) = true;
      }
      ++report->steps;
      report->mixed_steps += prompts && answers ? 1 : 0;
      report->most_rows = std::max(report->most_rows, rows);
    }
    const auto logits = decoder.run(pieces, scheduler.sequences());
    for (std::size_t i = 0; i < pieces.size(); ++i) scheduler.finish(pieces[i], logits[i]);
  }
  if (report != nullptr) {
    report->shared_pages = scheduler.shared_pages();
    report->preemptions = scheduler.preemptions();
  }
  return scheduler.sequences();
}

// The same requests, with others before and beside them: another batch at each step, other pages, other preemptions.
void serve_in_other_orders(Decoder& decoder, const std::vector<Request>& requests, const std::vector<Sequence>& crowd,
                           RankReport& report) {
  std::vector<std::size_t> order(requests.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  for (const int steps_between : {0, 1, 3}) {
    std::vector<Request> others;
    for (const std::size_t i : order) {
      others.push_back(requests[i]);
      others.back().arrival_step = static_cast<int>(others.size() - 1) * steps_between;
    }
    const std::vector<Sequence> served = serve_all(decoder, others, nullptr);
    ++report.other_orders;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Sequence& before = crowd[order[i]];
      for (std::size_t token = 0; token < before.logits.size(); ++token)
        report.changed_rows += served[i].logits[token] == before.logits[token] ? 0 : 1;
      report.changed_rows += served[i].tokens == before.tokens ? 0 : 1;
    }
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2), order.end());
  }
}

void compare(const Model& model, int index, const Sequence& sequence, bool tell, RankReport& report) {
  const ReferenceAnswer expected = reference_answer(model, sequence.request);
  const std::vector<int> answer(sequence.tokens.begin() + static_cast<std::ptrdiff_t>(sequence.request.prompt.size()),
                                sequence.tokens.end());
  report.smallest_margin = std::min(report.smallest_margin, expected.smallest_margin);
  report.tokens += answer.size();
  std::string text;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const bool right = answer[i] == expected.tokens[i];
    report.wrong_tokens += right ? 0 : 1;
    text += " " + std::to_string(answer[i]) + (right ? "" : " (not " + std::to_string(expected.tokens[i]) + ")");
    for (std::size_t j = 0; j < sequence.logits[i].size(); ++j) {
      const float logit = sequence.logits[i][j];
      report.largest_error = std::max(report.largest_error, std::fabs(logit - expected.logits[i][j]));
      report.logit_digest = (report.logit_digest ^ std::bit_cast<std::uint32_t>(logit)) * 0x100000001b3;  // FNV-1a's
    }
  }
  if (tell)
    std::printf("request %d, prompt of %zu:%s  %s\n", index, sequence.request.prompt.size(), text.c_str(),
                answer == expected.tokens ? "equal to reference" : "NOT equal to reference");
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("--list " + path + ": cannot open it");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line.front() != '#') lines.push_back(line);
  return lines;
}

}  // namespace

HeadShape heads_of_a_rank(const ModelShape& shape, int ranks) {
  return {.layers = shape.layers,
          .query_heads = shape.query_heads / ranks,
          .kv_heads = shape.kv_heads / ranks,
          .head_dim = shape.head_dim,
          .longest = shape.longest};
}

void serve(const Options& options, const Model& model, Group& group, int rank, RankReport& report) {
  StallLedger ledger;
  wavejit::EngineOptions engine_options;
  const std::string simulated = "sim:" + options.target + "x" + std::to_string(group.ranks());
  engine_options.device = (options.hip ? "hip" : simulated) + ":" + std::to_string(rank);
  engine_options.cache_directory = options.cache_directory;
  engine_options.cache_layers = options.archive;
  if (!options.archive.empty()) engine_options.cache_mode = "ro";
  engine_options.miss_log = options.miss_log;
  engine_options.on_compile = StallLedger::on_compile;
  engine_options.on_compile_context = &ledger;
  wavejit::Engine engine(engine_options);
  ledger.watch(engine.get());

  // Before requests: everything that they will need, or as much as this process was told of.
  const HeadShape heads = heads_of_a_rank(model.shape, group.ranks());
  if (options.prepare) {
    const auto lines = options.list.empty() ? kernel_lines(heads, limits) : lines_of(options.list);
    engine.prepare(lines);
  }
  if (options.seal) engine.seal();

  // Requests come and go.
  Attention attention(engine, heads, limits);
  Decoder decoder(model, attention, group, rank, ledger);
  const std::vector<Request> requests = make_requests(model.shape, options.requests, options.seed);
  ledger.phase(Phase::serving);
  const auto began = std::chrono::steady_clock::now();
  const std::vector<Sequence> crowd = serve_all(decoder, requests, &report);
  report.milliseconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count());
  report.stalls = ledger.table();

  // What they got is right, and a request gets the same bits when nobody else is there and its prompt comes whole.
  report.smallest_margin = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < crowd.size(); ++i) compare(model, static_cast<int>(i), crowd[i], rank == 0, report);
  for (std::size_t i = 0; i < crowd.size() && i < 2; ++i) {
    const std::vector<Sequence> alone = serve_all(decoder, {requests[i]}, nullptr);
    ++report.alone_requests;
    for (int token = 0; token < requests[i].new_tokens; ++token)
      report.changed_logits += alone[0].logits[token] == crowd[i].logits[token] ? 0 : 1;
  }
  serve_in_other_orders(decoder, requests, crowd, report);
  report.statistics = engine.statistics();
}

}  // namespace serving
