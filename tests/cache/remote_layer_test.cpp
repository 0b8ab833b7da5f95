// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The remote layer of a cache over a store that does what a test says: what is published where, what a failure costs,
// that the counters add up, and that nothing holds the end of a cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "cache/transfer.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;

// A server in memory. `outcome`, when set, answers instead.
class MemoryStore : public RemoteStore {
 public:
  using Name = std::pair<std::string, std::array<std::uint8_t, 32>>;

  std::expected<std::vector<std::byte>, RemoteFailure> fetch(const Digest& digest,
                                                             const std::string& target_id) override {
    ++fetches;
    if (auto failure = what_goes_wrong(reading)) return std::unexpected(*failure);
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find({target_id, digest.bytes});
    if (found == entries_.end()) return std::unexpected(RemoteFailure{RemoteProblem::absent, "not there"});
    return found->second;
  }
  std::expected<void, RemoteFailure> keep(const Digest& digest, const std::string& target_id,
                                          std::span<const std::byte> entry) override {
    ++keeps;
    if (auto failure = what_goes_wrong(writing)) return std::unexpected(*failure);
    const std::scoped_lock lock(mutex_);
    entries_[{target_id, digest.bytes}] = {entry.begin(), entry.end()};
    return {};
  }
  std::expected<void, RemoteFailure> ask() override {
    ++asks;
    if (auto failure = what_goes_wrong(reading)) return std::unexpected(*failure);
    return {};
  }
  std::expected<void, RemoteFailure> list(const std::function<bool(const Digest&, const std::string&)>& name) override {
    const std::scoped_lock lock(mutex_);
    for (const auto& [key, entry] : entries_)
      if (!name(Digest{.bytes = key.second}, key.first)) break;
    return {};
  }
  void interrupt() override {
    const std::scoped_lock lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }

  void put(const Key& key, std::vector<std::byte> entry) {
    const std::scoped_lock lock(mutex_);
    entries_[{key.target_id(), key.digest().bytes}] = std::move(entry);
  }
  std::size_t size() {
    const std::scoped_lock lock(mutex_);
    return entries_.size();
  }

  enum class Way : std::uint8_t { good, down, garbage, stuck };
  std::atomic<Way> reading{Way::good};
  std::atomic<Way> writing{Way::good};
  std::atomic<int> fetches{0};
  std::atomic<int> keeps{0};
  std::atomic<int> asks{0};

 private:
  std::optional<RemoteFailure> what_goes_wrong(const std::atomic<Way>& way) {
    switch (way.load()) {
      case Way::good:
        return std::nullopt;
      case Way::down:
        return RemoteFailure{RemoteProblem::fault, "nobody answers"};
      case Way::garbage:
        return RemoteFailure{RemoteProblem::damaged, "that is no entry"};
      case Way::stuck:
        break;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return interrupted_; });
    return RemoteFailure{RemoteProblem::fault, "interrupted"};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false;
  std::map<Name, std::vector<std::byte>> entries_;
};

using Way = MemoryStore::Way;

class RemoteLayerTest : public ::testing::Test {
 protected:
  CacheOptions options(const std::string& folder = "one") {
    CacheOptions options;
    options.layers = {{.name = "user", .root = scratch_ / folder, .writable = true}};
    options.on_event = [this](const Event& event) {
      const std::scoped_lock lock(mutex_);
      events_.push_back(event);
    };
    options.remote.store = store_;
    options.remote.name = "redis://test:6379/0";
    options.remote.pauses = {.first_nanoseconds = 10'000'000, .longest_nanoseconds = 40'000'000};
    return options;
  }

  static CounterValues counted(const Cache& cache) {
    const CounterValues c = cache.counters();
    EXPECT_EQ(c.lookups, c.hits + c.misses);
    EXPECT_EQ(c.hits, c.layer_hits + c.user_hits + c.memory_hits + c.remote_hits);
    EXPECT_EQ(c.publishes, c.published + c.publish_failures + c.publishes_skipped);
    EXPECT_EQ(c.remote_lookups,
              c.remote_hits + c.remote_misses + c.remote_damaged + c.remote_faults + c.remote_skipped);
    EXPECT_LE(c.remote_published + c.remote_publish_failures + c.remote_dropped, c.remote_publishes);
    return c;
  }

  std::vector<std::string> told(Event::Kind kind) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> texts;
    for (const Event& event : events_)
      if (event.kind == kind) texts.push_back(event.what);
    return texts;
  }

  static std::vector<std::byte> entry_of(const Key& key, std::uint32_t seed = 1) {
    const auto code = sample_code(3000, seed);
    return *serialise(
        {.key_text = key.text(), .target_id = key.target_id(), .kernels = sample_kernels(), .code_object = code});
  }
  static PublishResult publish(Cache& cache, const Key& key) {
    const auto code = sample_code(3000);
    return cache.publish(key, {.kernels = sample_kernels(), .code_object = code});
  }
  // Until `cache` asks the store again, as it does from time to time while a server is down.
  static void ask_until(Cache& cache, const std::function<bool()>& enough) {
    for (int i = 0; i < 2000 && !enough(); ++i) {
      static_cast<void>(cache.lookup(sample_key(" until")));
      std::this_thread::sleep_for(5ms);
    }
    EXPECT_TRUE(enough());
  }

  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  ScratchDirectory scratch_;
  std::mutex mutex_;
  std::vector<Event> events_;
};

TEST_F(RemoteLayerTest, WhatOneMachineCompilesTheNextOneFetchesAndKeeps) {
  Cache one(options("one"));
  EXPECT_FALSE(one.lookup(sample_key()));
  EXPECT_TRUE(publish(one, sample_key()).published);
  EXPECT_TRUE(one.flush_remote(10 * nanoseconds_per_second));
  const CounterValues first = counted(one);
  EXPECT_EQ(first.remote_misses, 1U);
  EXPECT_EQ(first.remote_publishes, 1U);
  EXPECT_EQ(first.remote_published, 1U);

  Cache two(options("two"));
  const auto hit = two.lookup(sample_key());
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->layer(), "remote");
  EXPECT_TRUE(hit->on_disk());
  EXPECT_TRUE(same_bytes(hit->entry().code_object, sample_code(3000)));
  CounterValues second = counted(two);
  EXPECT_EQ(second.remote_hits, 1U);
  EXPECT_EQ(second.published, 1U) << "in the user's folder";
  EXPECT_EQ(second.remote_publishes, 0U) << "not sent back to where it came from";
  EXPECT_EQ(read_bytes(path_of(scratch_ / "one", sample_key())), read_bytes(path_of(scratch_ / "two", sample_key())));

  store_->reading = Way::down;
  Cache next_process(options("two"));
  EXPECT_EQ(next_process.lookup(sample_key())->layer(), "user");
  EXPECT_EQ(store_->fetches, 2);
}

TEST_F(RemoteLayerTest, AnEntryIsCheckedAsOneFromDisk) {
  const Key key = sample_key();
  const auto good = entry_of(key);
  std::vector<std::vector<std::byte>> bad = {{}, {good.begin(), good.end() - 1}, entry_of(sample_key(" other"))};
  bad.push_back(good);
  bad.back()[good.size() / 2] ^= std::byte{1};
  bad.push_back(entry_of(Key(key.text(), "gfx942")));
  std::uint64_t damaged = 0;
  for (const auto& entry : bad) {
    store_->put(key, entry);
    Cache cache(options());
    EXPECT_FALSE(cache.lookup(key));
    EXPECT_EQ(counted(cache).remote_damaged, 1U);
    EXPECT_EQ(told(Event::Kind::damaged).size(), ++damaged);
    EXPECT_TRUE(files_below(scratch_ / "one").entries.empty()) << "nothing bad is kept";
    EXPECT_FALSE(cache.lookup(key)) << "in the pause";
    EXPECT_EQ(counted(cache).remote_skipped, 1U);
  }
  EXPECT_THAT(told(Event::Kind::damaged), Contains(HasSubstr("entry of another key")));
}

TEST_F(RemoteLayerTest, AServerThatIsDownIsAskedOnceAndSaidOnce) {
  store_->reading = Way::down;
  store_->writing = Way::down;
  Cache cache(options());
  publish(cache, sample_key(" compiled here"));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(cache.lookup(sample_key(std::to_string(i))));
  EXPECT_LE(store_->fetches, 1) << "calls wait once";
  ask_until(cache, [&] { return store_->asks >= 4; });
  EXPECT_EQ(store_->fetches, 1) << "it is the layer's thread that asks whether it is back";
  EXPECT_EQ(counted(cache).remote_faults, 1U);
  EXPECT_GE(counted(cache).remote_skipped, 99U);
  const auto outages = told(Event::Kind::remote_outage);
  ASSERT_EQ(outages.size(), 1U);
  EXPECT_THAT(outages[0], HasSubstr("redis://test:6379/0"));
  EXPECT_THAT(outages[0], HasSubstr("nobody answers"));
  EXPECT_THAT(outages[0], HasSubstr("said once"));

  store_->reading = Way::good;
  store_->put(sample_key(" late"), entry_of(sample_key(" late")));
  ask_until(cache, [&] { return counted(cache).remote_misses > 0; });
  EXPECT_TRUE(cache.lookup(sample_key(" late"))) << "it is asked again once it answers";
  EXPECT_THAT(told(Event::Kind::remote), Contains(HasSubstr("answers again")));
}

TEST_F(RemoteLayerTest, GarbageIsACountedMissThenAPause) {
  store_->reading = Way::garbage;
  auto patient = options();
  patient.remote.pauses.first_nanoseconds = 60 * nanoseconds_per_second;  // longer than ten lookups take anywhere
  patient.remote.pauses.longest_nanoseconds = 60 * nanoseconds_per_second;
  Cache cache(patient);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(cache.lookup(sample_key()));
  EXPECT_EQ(store_->fetches, 1);
  const CounterValues counters = counted(cache);
  EXPECT_EQ(counters.remote_damaged, 1U);
  EXPECT_EQ(counters.remote_skipped, 9U);
  EXPECT_EQ(told(Event::Kind::damaged).size(), 1U);
}

TEST_F(RemoteLayerTest, AServerThatRefusesWritesStillAnswersReads) {
  store_->writing = Way::down;
  store_->put(sample_key(), entry_of(sample_key()));
  Cache cache(options());
  EXPECT_TRUE(publish(cache, sample_key(" new")).published);
  EXPECT_FALSE(cache.flush_remote(10 * nanoseconds_per_second)) << "an outage is not waited for";
  EXPECT_TRUE(cache.lookup(sample_key()));
  const CounterValues counters = counted(cache);
  EXPECT_EQ(counters.remote_publish_failures, 1U);
  EXPECT_EQ(counters.remote_hits, 1U);
  // What comes later waits in the queue for the end of the pause.
  store_->writing = Way::good;
  EXPECT_TRUE(publish(cache, sample_key(" later")).published);
  for (int i = 0; i < 2000 && store_->size() < 2; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(store_->size(), 2U);
}

TEST_F(RemoteLayerTest, WhatDoesNotFitIsDroppedAndCounted) {
  store_->writing = Way::stuck;
  auto small = options();
  small.remote.queue_entries = 3;
  small.remote.farewell_nanoseconds = 10 * nanoseconds_per_millisecond;
  std::optional<Cache> cache(std::in_place, small);
  ASSERT_TRUE(publish(*cache, sample_key(" first")).published);
  for (int i = 0; i < 2000 && store_->keeps == 0; ++i) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(publish(*cache, sample_key(std::to_string(i))).published) << "on disk all the same";
  const CounterValues counters = counted(*cache);
  EXPECT_EQ(counters.remote_publishes, 11U);
  EXPECT_EQ(counters.remote_dropped, 7U) << "one under way, three in the queue";
  EXPECT_EQ(store_->keeps, 1);
}

TEST_F(RemoteLayerTest, BytesBoundTheQueueToo) {
  store_->writing = Way::stuck;
  auto small = options();
  small.remote.queue_bytes = 5000;
  Cache cache(small);
  ASSERT_TRUE(publish(cache, sample_key(" first")).published);
  for (int i = 0; i < 2000 && store_->keeps == 0; ++i) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 3; ++i) publish(cache, sample_key(std::to_string(i)));
  EXPECT_EQ(counted(cache).remote_dropped, 2U);
  store_->interrupt();
}

TEST_F(RemoteLayerTest, TheEndOfACacheIsBoundedWhateverTheServerDoes) {
  for (const Way way : {Way::stuck, Way::down, Way::good}) {
    store_ = std::make_shared<MemoryStore>();
    store_->writing = way;
    store_->reading = way == Way::good ? Way::good : Way::down;
    const auto start = std::chrono::steady_clock::now();
    {
      auto patient = options();
      if (way == Way::good) patient.remote.farewell_nanoseconds = 5 * nanoseconds_per_second;
      Cache cache(patient);
      for (int i = 0; i < 20; ++i) publish(cache, sample_key(std::to_string(i)));
      static_cast<void>(cache.lookup(sample_key(" no")));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
    if (way == Way::good) EXPECT_EQ(store_->size(), 20U) << "what can be sent in time is";
  }
}

// What the end had no time for is dropped; that says nothing about the server.
TEST_F(RemoteLayerTest, AnEndInTheMiddleOfADeliveryIsNoOutage) {
  store_->writing = Way::stuck;
  Counters counters;
  std::atomic<int> told{0};
  RemoteOptions remote = options().remote;
  remote.farewell_nanoseconds = 20 * nanoseconds_per_millisecond;
  {
    RemoteLayer layer(posix_io(), remote, counters, [&](RemoteNews, const std::string&) { ++told; });
    for (int i = 0; i < 3; ++i) layer.keep_later(sample_key().digest(), "gfx950", entry_of(sample_key()));
    for (int i = 0; i < 2000 && store_->keeps == 0; ++i) std::this_thread::sleep_for(1ms);
    ASSERT_EQ(store_->keeps, 1);
  }
  EXPECT_EQ(told, 0);
  EXPECT_EQ(counters.remote_publish_failures, 0U);
  EXPECT_EQ(counters.remote_dropped, 3U);
  EXPECT_EQ(counters.remote_publishes, 3U);
}

TEST_F(RemoteLayerTest, AnEndInTheMiddleOfAProbeIsNoOutage) {
  store_->reading = Way::garbage;
  Counters counters;
  std::atomic<int> outages{0};
  RemoteOptions remote = options().remote;
  remote.farewell_nanoseconds = 20 * nanoseconds_per_millisecond;
  {
    RemoteLayer layer(posix_io(), remote, counters,
                      [&](RemoteNews news, const std::string&) { outages += news == RemoteNews::outage ? 1 : 0; });
    const auto look = [&] { return layer.fetch(sample_key().digest(), "gfx950", [](auto) { return std::nullopt; }); };
    EXPECT_FALSE(look());
    store_->reading = Way::stuck;
    for (int i = 0; i < 2000 && store_->asks == 0; ++i) {
      EXPECT_FALSE(look());
      std::this_thread::sleep_for(1ms);
    }
    ASSERT_EQ(store_->asks, 1);
  }
  EXPECT_EQ(outages, 0);
}

TEST_F(RemoteLayerTest, NothingIsWrittenInReadOnlyModeAndNothingAskedWhenOff) {
  store_->put(sample_key(), entry_of(sample_key()));
  MemoryLayer memory(1 << 20);
  auto read_only = options();
  read_only.mode = Mode::read_only;
  read_only.memory = &memory;
  {
    Cache cache(read_only);
    const auto hit = cache.lookup(sample_key());
    ASSERT_TRUE(hit);
    EXPECT_FALSE(hit->on_disk());
    publish(cache, sample_key(" new"));
    EXPECT_TRUE(cache.lookup(sample_key())) << "from memory";
    const CounterValues counters = counted(cache);
    EXPECT_EQ(counters.memory_hits, 1U);
    EXPECT_EQ(counters.remote_publishes, 0U);
    EXPECT_EQ(counters.publishes_skipped, 2U);
  }
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "one"));
  auto off = options();
  off.mode = Mode::off;
  Cache cache(off);
  EXPECT_FALSE(cache.lookup(sample_key()));
  publish(cache, sample_key());
  EXPECT_EQ(counted(cache).remote_lookups, 0U);
  EXPECT_EQ(store_->fetches, 1);
}

TEST_F(RemoteLayerTest, ADiskThatIsFullStopsNeitherReadingNorWriting) {
  class FullDisk : public PassingIo {
   public:
    IoResult<std::size_t> write(int /*file*/, const void* /*bytes*/, std::size_t /*size*/) override {
      return std::unexpected(ENOSPC);
    }
  } io;
  store_->put(sample_key(), entry_of(sample_key()));
  auto full = options();
  full.io = &io;
  Cache cache(full);
  const auto hit = cache.lookup(sample_key());
  ASSERT_TRUE(hit);
  EXPECT_FALSE(hit->on_disk());
  EXPECT_FALSE(publish(cache, sample_key(" new")).published);
  EXPECT_TRUE(cache.flush_remote(10 * nanoseconds_per_second));
  EXPECT_EQ(store_->size(), 2U);
  EXPECT_EQ(counted(cache).publish_failures, 2U);
}

// An entry that passed every check and that the driver refuses all the same.
TEST_F(RemoteLayerTest, ARefusedEntryIsDroppedFromTheFolderItWasPutInto) {
  store_->put(sample_key(), entry_of(sample_key()));
  Cache cache(options());
  const auto hit = cache.lookup(sample_key());
  ASSERT_TRUE(hit);
  ASSERT_EQ(files_below(scratch_ / "one").entries.size(), 1U);
  EXPECT_TRUE(cache.drop(sample_key(), hit->layer_index()));
  EXPECT_TRUE(files_below(scratch_ / "one").entries.empty());
  EXPECT_FALSE(cache.lookup(sample_key(), hit->layer_index() + 1)) << "nothing lies behind it";
  EXPECT_EQ(store_->fetches, 1);
}

TEST_F(RemoteLayerTest, ALookAtWhatItHasPublishesNothing) {
  store_->put(sample_key(), entry_of(sample_key()));
  Cache cache(options());
  EXPECT_TRUE(cache.remote_has(sample_key()));
  EXPECT_FALSE(cache.remote_has(sample_key(" other")));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "one"));
}

TEST_F(RemoteLayerTest, EntriesArePushedAndPulled) {
  Cache from = open_cache(scratch_ / "from");
  for (int i = 0; i < 5; ++i) publish(from, sample_key(std::to_string(i)));
  const auto pushed = push_entries(from, *store_, {"gfx950"});
  ASSERT_TRUE(pushed);
  EXPECT_EQ(pushed->copied, 5U);
  EXPECT_EQ(push_entries(from, *store_, {"gfx942"})->copied, 0U);
  store_->put(sample_key(" lie"), entry_of(sample_key(" truth")));
  Cache to = open_cache(scratch_ / "to");
  publish(to, sample_key("0"));
  const auto pulled = pull_entries(*store_, to, {});
  ASSERT_TRUE(pulled);
  EXPECT_EQ(pulled->copied, 4U);
  EXPECT_EQ(pulled->present, 1U);
  EXPECT_EQ(pulled->damaged, 1U);
  EXPECT_EQ(files_below(scratch_ / "to").entries.size(), 5U);
  const int fetches = store_->fetches;
  EXPECT_EQ(fetches, 6 - 1) << "one was there";
  const auto again = pull_entries(*store_, to, {});
  ASSERT_TRUE(again);
  EXPECT_EQ(again->present, 5U);
  EXPECT_EQ(store_->fetches, fetches + 1) << "what is there is not transferred, only the lie";
  // One that was damaged on disk is.
  write_bytes(path_of(scratch_ / "to", sample_key("1")), sample_code(100));
  EXPECT_EQ(pull_entries(*store_, to, {})->copied, 1U);
  EXPECT_TRUE(to.lookup(sample_key("1")));
  store_->writing = Way::down;
  EXPECT_THAT(push_entries(from, *store_, {}).error(), HasSubstr("nobody answers"));
}

TEST_F(RemoteLayerTest, APushThatFailsReadsNoFurther) {
  class CountingOpens : public PassingIo {
   public:
    IoResult<int> open(const std::string& path, int flags, std::uint32_t mode) override {
      opens += path.ends_with(entry_suffix) ? 1 : 0;
      return PassingIo::open(path, flags, mode);
    }
    int opens = 0;
  } io;
  Cache from = open_cache(scratch_ / "from", Mode::read_write, &io);
  for (int i = 0; i < 5; ++i) publish(from, sample_key(std::to_string(i)));
  store_->writing = Way::down;
  io.opens = 0;
  EXPECT_FALSE(push_entries(from, *store_, {}));
  EXPECT_EQ(io.opens, 1);
}

// A child has neither the thread nor the right to the connections: there the layer is off, and ends without a wait.
TEST_F(RemoteLayerTest, AForkedChildLeavesItAlone) {
  store_->put(sample_key(), entry_of(sample_key()));
  auto cache = std::make_unique<Cache>(options());
  publish(*cache, sample_key(" new"));
  EXPECT_TRUE(cache->flush_remote(10 * nanoseconds_per_second));
  const int before = store_->fetches;
  const pid_t child = ::fork();
  if (child == 0) {
    bool good = !cache->lookup(sample_key(" not there"));
    good = good && store_->fetches == before && cache->counters().remote_skipped == 1;
    publish(*cache, sample_key(" of the child"));
    good = good && cache->counters().remote_dropped == 1;
    cache.reset();
    ::_exit(good ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(cache->lookup(sample_key()));
}

TEST_F(RemoteLayerTest, EightThreadsAndAServerThatComesAndGoes) {
  std::atomic<bool> done{false};
  {
    Cache cache(options());
    std::jthread weather([&] {
      for (int i = 0; !done; ++i) {
        store_->reading = i % 3 == 1 ? Way::down : i % 3 == 2 ? Way::garbage : Way::good;
        store_->writing = i % 2 == 1 ? Way::down : Way::good;
        std::this_thread::sleep_for(3ms);
      }
    });
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 60; ++i) {
          const Key key = sample_key(std::to_string((thread * 17 + i) % 40));
          if (!cache.lookup(key)) publish(cache, key);
        }
      });
    }
    threads.clear();
    done = true;
    counted(cache);
  }
  EXPECT_GT(store_->fetches, 0);
}

TEST(BreakerTest, PausesGrowWithJitterAndEnd) {
  Breaker breaker({.first_nanoseconds = 1000, .longest_nanoseconds = 6000});
  auto ticket = breaker.admit();
  ASSERT_TRUE(ticket);
  std::int64_t now = 0;
  const std::int64_t bounds[][2] = {{500, 1000}, {1000, 2000}, {2000, 4000}, {3000, 6000}, {3000, 6000}};
  for (const auto& [least, most] : bounds) {
    const auto pause = breaker.failed(*ticket, now, 0x123456789abcdefULL);
    ASSERT_TRUE(pause);
    EXPECT_GE(*pause, least);
    EXPECT_LE(*pause, most);
    EXPECT_FALSE(breaker.failed(*ticket, now, 1)) << "one failure of a crowd counts";
    EXPECT_FALSE(breaker.admit());
    EXPECT_FALSE(breaker.wants_probe(now + *pause - 1));
    EXPECT_EQ(breaker.left(now), *pause);
    now += *pause;
    EXPECT_TRUE(breaker.wants_probe(now));
    ticket = breaker.probe(now);
    ASSERT_TRUE(ticket);
    EXPECT_FALSE(breaker.probe(now)) << "one at a time";
    EXPECT_FALSE(breaker.wants_probe(now));
  }
  EXPECT_TRUE(breaker.succeeded(*ticket));
  EXPECT_TRUE(breaker.admit());
  EXPECT_EQ(breaker.left(now), 0);
  EXPECT_LE(*breaker.failed(*breaker.admit(), now, 500), 1000) << "the first pause again";
}

TEST(BreakerTest, JitterSpreadsPauses) {
  std::set<std::int64_t> pauses;
  for (std::uint64_t bits = 0; bits < 50; ++bits) {
    Breaker breaker({.first_nanoseconds = 1'000'000, .longest_nanoseconds = 2'000'000});
    pauses.insert(*breaker.failed(*breaker.admit(), 0, bits * 7919));
  }
  EXPECT_GT(pauses.size(), 40U);
}

}  // namespace
}  // namespace wavejit::cache
