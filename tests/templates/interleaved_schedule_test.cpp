// The interleaved schedule as a model: all waves may stand anywhere between two barriers, so within one step nothing
// may read what the step writes; loads leave and reach their registers in order; each tile's arithmetic comes in order.
#include "templates/attention_forward/emit/interleaved_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace wavejit::attention_forward::interleaved {
namespace {

struct At {
  Step step;
  int tile = 0;
};

std::vector<At> walk_of(int tiles) {
  std::vector<At> walk;
  const auto add = [&](std::span<const Step> steps, int tile) {
    for (const Step& step : steps) walk.push_back({step, tile});
  };
  add(start(), 0);
  add(prologue(), -1);
  for (int tile = 0; tile < tiles - 1; ++tile) add(steady(), tile);
  add(drain(), tiles - 1);
  return walk;
}

constexpr int nothing = -1;

class Model {
 public:
  explicit Model(int tiles) : tiles_(tiles) {}

  // Empty, or the first thing that goes wrong.
  std::string run(const std::vector<At>& walk) {
    for (const auto& [step, tile] : walk) {
      where_ = std::string(step.name) + " of tile " + std::to_string(tile);
      take(step, tile);
      if (!fault_.empty()) return fault_;
    }
    where_ = "the end";
    require(outputs_ == tiles_, "tiles are missing in O");
    return fault_;
  }

 private:
  void require(bool holds, const std::string& what) {
    if (!holds && fault_.empty()) fault_ = where_ + ": " + what;
  }
  static std::size_t of(Stream stream) { return stream == Stream::keys ? 0 : 1; }

  void take(const Step& step, int tile) {
    const Stream read = step.product == Product::scores   ? Stream::keys
                        : step.product == Product::output ? Stream::values
                                                          : Stream::none;
    if (step.fetch.stream != Stream::none) {
      const int wanted = tile + step.fetch.ahead;
      require(wanted < tiles_ || step.fetch.may_be_past_the_end, "fetches a tile past the end");
      require(registers_[of(step.fetch.stream)] == nothing, "fetches into registers that are not written yet");
      registers_[of(step.fetch.stream)] = wanted;
    }
    if (step.write.stream != Stream::none) {
      require(step.write.stream != read, "writes what other waves still read");
      require(registers_[of(step.write.stream)] == tile + step.write.ahead, "writes another tile than it fetched");
      registers_[of(step.write.stream)] = nothing;
    }
    if (step.product == Product::scores) {
      require(lds_[0] == tile + 1, "multiplies other keys");
      require(scores_ == tile && begun_ == tile, "scores of the tile before are still needed");
    }
    if (step.softmax == Softmax::finish) {
      require(begun_ == tile && finished_ == tile - 1, "finishes weights that are not begun");
      finished_ = tile;
    }
    if (step.product == Product::output) {
      require(lds_[1] == tile, "multiplies other values");
      require(finished_ == tile && outputs_ == tile, "weights are not packed, or O is not at this tile");
      outputs_ = tile + 1;
    }
    if (step.softmax == Softmax::begin) {
      require(scores_ == tile + 1 && begun_ == tile, "begins without scores");
      require(outputs_ == tile + 1 && finished_ == tile, "rescales O or l before they hold the tile before");
      begun_ = tile + 1;
    }
    if (step.product == Product::scores) scores_ = tile + 1;
    // The barrier.
    if (step.write.stream != Stream::none) lds_[of(step.write.stream)] = tile + step.write.ahead;
  }

  int tiles_;
  std::string where_;
  std::string fault_;
  std::array<int, 2> registers_ = {nothing, nothing};  // K, V
  std::array<int, 2> lds_ = {nothing, nothing};
  int scores_ = -1;
  int begun_ = -1;
  int finished_ = -1;
  int outputs_ = 0;
};

TEST(InterleavedSchedule, ReadsWholeTilesAndOverwritesNoneThatIsRead) {
  for (int tiles = 1; tiles <= 12; ++tiles) EXPECT_EQ(Model(tiles).run(walk_of(tiles)), "") << tiles << " tiles";
}

// The model must see what it is there for.
TEST(InterleavedSchedule, AnEarlierWriteOrFetchIsSeen) {
  constexpr int tiles = 5;
  const auto changed = [&](auto change) {
    std::vector<At> walk = walk_of(tiles);
    for (At& at : walk) change(at.step);
    return Model(tiles).run(walk);
  };
  // K(t + 2) while K(t + 1) is read.
  EXPECT_NE(changed([](Step& step) {
              if (step.product == Product::scores) std::swap(step.write, step.fetch);
            }),
            "");
  EXPECT_NE(changed([](Step& step) { step.fetch.may_be_past_the_end = false; }), "");
  EXPECT_NE(changed([](Step& step) {
              if (step.product == Product::output) step.fetch.ahead += 1;
            }),
            "");
}

}  // namespace
}  // namespace wavejit::attention_forward::interleaved
