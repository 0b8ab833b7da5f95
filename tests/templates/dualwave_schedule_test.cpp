// The dual-wave schedule as a model: two groups of waves walk the table one cluster apart, DMA lands as late as the
// waits allow, and every read must find its tile whole, every DMA a buffer that nobody still reads. The simulated GPU
// delivers memory at once and cannot see a missing wait; this does.
#include "templates/attention_forward/emit/dualwave_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <vector>

namespace wavejit::attention_forward::dualwave {
namespace {

struct Step {
  Cluster cluster;
  int tile = 0;
};

std::vector<Step> steps_of(int tiles) {
  std::vector<Step> steps;
  const auto add = [&](std::span<const Cluster> clusters, int tile) {
    for (const Cluster& cluster : clusters) steps.push_back({cluster, tile});
  };
  add(start(), 0);
  add(prologue(), -1);
  for (int tile = 0; tile < tiles - 1; ++tile) add(steady(), tile);
  add(drain(), tiles - 1);
  return steps;
}

constexpr int never = -1;

struct Batch {
  Stream stream = Stream::none;
  int tile = 0;
  int awaited = never;  // the cluster whose wait retires it
};

// What stands in one LDS buffer.
struct Contents {
  int batch = never;      // index of the batch that went there last
  int last_read = never;  // cluster
};

// The latest cluster that all waves, of either group, have left when some wave is in cluster `n`. Cluster 0 is `start`,
// before the stagger opens.
int left_by_all(int n, bool stagger) { return stagger ? std::max(n - 2, 0) : n - 1; }

class Model {
 public:
  Model(int tiles, bool stagger) : tiles_(tiles), stagger_(stagger) {}

  // Empty, or the first thing that goes wrong.
  std::string run(const std::vector<Step>& steps) {
    for (std::size_t n = 0; n < steps.size() && fault_.empty(); ++n) {
      now_ = static_cast<int>(n);
      const auto& [cluster, tile] = steps[n];
      where_ =
          "cluster " + std::to_string(n) + " (" + std::string(cluster.name) + ", tile " + std::to_string(tile) + ")";
      if (cluster.is_memory()) {
        memory(cluster, tile);
      } else {
        compute(cluster, tile);
      }
    }
    where_ = "the end";
    require(in_flight_.empty(), "a DMA is still on its way");
    require(outputs_ == tiles_, "tiles are missing in O");
    return fault_;
  }

 private:
  void require(bool holds, const std::string& what) {
    if (!holds && fault_.empty()) fault_ = where_ + ": " + what;
  }
  Contents& buffer(Stream stream, int tile) {
    return contents_[stream == Stream::keys ? 0 : 1][static_cast<std::size_t>(tile) % 2];
  }

  void memory(const Cluster& cluster, int tile) {
    for (const Tile& fetch : cluster.fetch) {
      if (fetch.stream == Stream::none) continue;
      const int wanted = tile + fetch.ahead;
      require(wanted < tiles_ || fetch.may_be_past_the_end, "fetches a tile past the end");
      Contents& into = buffer(fetch.stream, wanted);
      require(into.last_read <= left_by_all(now_, stagger_), "overwrites what another wave may still read");
      batches_.push_back({fetch.stream, std::min(wanted, tiles_ - 1)});
      into.batch = static_cast<int>(batches_.size()) - 1;
      in_flight_.push_back(into.batch);
    }
    if (cluster.read.stream != Stream::none) {
      const int wanted = tile + cluster.read.ahead;
      Contents& from = buffer(cluster.read.stream, wanted);
      require(from.batch != never, "reads a buffer that was never filled");
      if (!fault_.empty()) return;
      const Batch& batch = batches_[static_cast<std::size_t>(from.batch)];
      require(batch.tile == wanted, "reads tile " + std::to_string(batch.tile) + " for " + std::to_string(wanted));
      require(batch.awaited != never && batch.awaited <= left_by_all(now_, stagger_),
              "reads what another wave may not have waited for");
      from.last_read = now_;
      read_ = {cluster.read.stream, wanted};
    }
    if (cluster.mask) {
      require(scores_ == tile + 1 && masked_ == tile, "masks scores that are not there or were masked");
      masked_ = tile + 1;
    }
    while (cluster.batches_in_flight >= 0 && std::ssize(in_flight_) > cluster.batches_in_flight) {
      batches_[static_cast<std::size_t>(in_flight_.front())].awaited = now_;
      in_flight_.pop_front();
    }
  }

  // The state of the arithmetic: which tile has come how far.
  void compute(const Cluster& cluster, int tile) {
    if (cluster.softmax == Softmax::finish) {
      require(begun_ == tile && finished_ == tile - 1, "finishes weights that are not begun");
      finished_ = tile;
    }
    if (cluster.product == Product::output) {
      require(read_.stream == Stream::values && read_.ahead == tile, "multiplies other values");
      require(finished_ == tile && outputs_ == tile, "weights are not packed, or O is not at this tile");
      outputs_ = tile + 1;
    }
    if (cluster.softmax == Softmax::begin) {
      require(scores_ == tile + 1 && masked_ == tile + 1 && begun_ == tile, "begins without masked scores");
      require(outputs_ == tile + 1 && finished_ == tile, "rescales O or l before they hold the tile before");
      begun_ = tile + 1;
    }
    if (cluster.product == Product::scores) {
      require(read_.stream == Stream::keys && read_.ahead == tile + 1, "multiplies other keys");
      require(scores_ == tile && begun_ == tile, "scores of the tile before are still needed");
      scores_ = tile + 1;
    }
  }

  int tiles_;
  bool stagger_;
  int now_ = 0;
  std::string where_;
  std::string fault_;
  std::vector<Batch> batches_;
  std::deque<int> in_flight_;
  std::array<std::array<Contents, 2>, 2> contents_{};
  Tile read_;
  int scores_ = -1;
  int masked_ = -1;
  int begun_ = -1;
  int finished_ = -1;
  int outputs_ = 0;
};

TEST(DualWaveSchedule, ReadsWholeTilesAndOverwritesNoneThatIsRead) {
  for (int tiles = 1; tiles <= 12; ++tiles) {
    for (const bool stagger : {true, false}) {
      EXPECT_EQ(Model(tiles, stagger).run(steps_of(tiles)), "") << tiles << " tiles, stagger " << stagger;
    }
  }
}

// The model must see what it is there for: each wait and each distance of the table is needed.
TEST(DualWaveSchedule, ASofterWaitOrAnEarlierFetchIsSeen) {
  const auto fails = [](const std::vector<Step>& steps, int tiles) { return !Model(tiles, true).run(steps).empty(); };
  constexpr int tiles = 7;
  const std::vector<Step> good = steps_of(tiles);
  int waits = 0;
  for (std::size_t n = 0; n < good.size(); ++n) {
    if (good[n].cluster.batches_in_flight < 0) continue;
    std::vector<Step> softer = good;
    // The same row wherever it stands.
    for (Step& step : softer)
      if (step.cluster.name == good[n].cluster.name &&
          step.cluster.batches_in_flight == good[n].cluster.batches_in_flight)
        ++step.cluster.batches_in_flight;
    EXPECT_TRUE(fails(softer, tiles)) << "cluster " << n << " " << good[n].cluster.name;
    ++waits;
  }
  EXPECT_EQ(waits, 1 + 1 + 2 * (tiles - 1) + 2);

  // V(t + 1) two clusters earlier would meet the reads of V(t − 1).
  std::vector<Step> early = good;
  for (Step& step : early) {
    if (step.tile < 0) continue;
    if (step.cluster.name == "keys") step.cluster.fetch = {};
    if (step.cluster.name == "values" && step.cluster.mask) step.cluster.fetch[1] = {Stream::values, 2, true};
  }
  EXPECT_TRUE(fails(early, tiles));
}

}  // namespace
}  // namespace wavejit::attention_forward::dualwave
