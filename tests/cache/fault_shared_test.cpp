// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every system call of what processes share fails, in every way, once and from then on: turns, sweeps, archives and
// packing. A fault costs work, never an answer: no wrong bytes, no exception, no wait beyond the one allowed.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "cache/archive.h"
#include "cache/cache.h"
#include "cache/transfer.h"
#include "cache_test_support.h"
#include "every_call.h"

namespace wavejit::cache {
namespace {

class SharedFaultTest : public EveryCall {
 protected:
  bool harmless() const {
    const auto& [fault, sticky] = GetParam();
    return !sticky && (fault.code == EINTR || fault.kind == FaultyIo::Kind::one_byte);
  }

  PassingIo quick_;  // syncs nothing
  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "cache";
  std::string archive_ = scratch_ / "archive";
  Key key_ = sample_key();
  std::vector<std::byte> code_ = sample_code(150);
  std::vector<KernelFacts> kernels_ = {{.name = "k"}};
};

// The whole cold path of a process among others: lookup, turn, publish, end of turn.
TEST_P(SharedFaultTest, ColdPathWithATurn) {
  for_every_call([&](FaultyIo& io, int n) {
    std::filesystem::remove_all(root_);
    {
      Cache cache({.layers = {{.name = "user", .root = root_, .writable = true}},
                   .io = &io,
                   .lock_wait_nanoseconds = 2 * nanoseconds_per_millisecond});
      ASSERT_FALSE(cache.lookup(key_));
      bool published = false;
      {
        const Turn turn = cache.take_turn(key_);
        ASSERT_FALSE(turn.hit);
        published = cache.publish(key_, {.kernels = kernels_, .code_object = code_}).published;
      }
      const CounterValues c = cache.counters();
      ASSERT_EQ(c.turns, 1U);
      ASSERT_EQ(c.turns, c.turns_taken + c.turns_answered + c.turns_timed_out + c.turns_unlocked);
      ASSERT_EQ(c.lookups, c.hits + c.misses);
      ASSERT_EQ(c.publishes, c.published + c.publish_failures + c.publishes_skipped);
      ASSERT_EQ(c.published, published ? 1U : 0U);
      if (harmless() || io.calls() < n) ASSERT_TRUE(published && c.turns_taken == 1);
    }
    // Whatever is left, the next process works.
    Cache next({.layers = {{.name = "user", .root = root_, .writable = true}},
                .lock_wait_nanoseconds = 1000 * nanoseconds_per_millisecond});
    const Turn turn = next.take_turn(key_);
    ASSERT_TRUE(turn.exclusive() || turn.hit);
    ASSERT_EQ(next.counters().turns_waited, 0U) << "nobody holds anything";
    if (turn.hit) ASSERT_TRUE(same_bytes(turn.hit->entry().code_object, code_));
  });
}

TEST_P(SharedFaultTest, Sweep) {
  const auto keys = [](int i) { return sample_key(std::to_string(i)); };
  for_every_call([&](FaultyIo& io, int n) {
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(open_cache(root_, Mode::read_write, &quick_)
                      .publish(keys(i), {.kernels = kernels_, .code_object = code_})
                      .published);
    Cache cache(
        {.layers = {{.name = "user", .root = root_, .writable = true}}, .io = &io, .minimum_age_nanoseconds = 0});
    const auto result = cache.sweep(1);
    const std::uint64_t left = files_below(root_).entries.size();
    ASSERT_EQ(result.evicted + left, 4U) << "what is counted is gone, what is not is there";
    ASSERT_EQ(cache.counters().evicted, result.evicted);
    if (!result.reason.empty()) ASSERT_EQ(result.evicted, 0U);
    // (A file that is said to be gone is somebody else's eviction.)
    if (left != 0 && result.complete && std::get<0>(GetParam()).code != ENOENT)
      ASSERT_GT(result.failures + (4 - result.entries), 0U);
    if (harmless() || io.calls() < n) ASSERT_TRUE(result.complete && result.evicted == 4 && result.failures == 0);
    for (int i = 0; i < 4; ++i) {
      if (const auto hit = open_cache(root_).lookup(keys(i))) ASSERT_TRUE(same_bytes(hit->entry().code_object, code_));
    }
  });
}

TEST_P(SharedFaultTest, LookupInAnArchive) {
  Cache source = open_cache(root_, Mode::read_write, &quick_);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(source.publish(sample_key(std::to_string(i)), {.kernels = kernels_, .code_object = code_}).published);
  ASSERT_TRUE(pack_entries(source, archive_, {}));
  for_every_call([&](FaultyIo& io, int n) {
    Cache cache({.layers = {{.name = "image", .root = archive_, .writable = false}}, .io = &io});
    for (int i = 0; i < 3; ++i) {
      const auto hit = cache.lookup(sample_key(std::to_string(i)));
      if (hit) ASSERT_TRUE(same_bytes(hit->entry().code_object, code_));
      if (harmless() || io.calls() < n) ASSERT_TRUE(hit);
    }
    const CounterValues c = cache.counters();
    ASSERT_EQ(c.lookups, 3U);
    ASSERT_EQ(c.layer_hits, c.hits);
    ASSERT_EQ(c.hits + c.misses, 3U);
    ASSERT_EQ(c.absent + c.damaged + c.refused + c.read_faults, c.misses);
  });
}

TEST_P(SharedFaultTest, PackReplacesWholeArchivesOnly) {
  Cache source = open_cache(root_, Mode::read_write, &quick_);
  ASSERT_TRUE(source.publish(key_, {.kernels = kernels_, .code_object = code_}).published);
  const auto older = sample_code(321, 5);
  for_every_call([&](FaultyIo& io, int n) {
    write_bytes(archive_, older);
    Cache cache = open_cache(root_, Mode::read_write, &io);
    const auto packed = pack_entries(cache, archive_, {});
    const auto now = read_bytes(archive_);
    if (packed) {
      const auto records = parse_archive(now);
      ASSERT_TRUE(records) << records.error();
      ASSERT_EQ(records->size(), packed->copied);
      ASSERT_LE(packed->copied + packed->damaged, 1U);
    } else {
      ASSERT_TRUE(same_bytes(now, older)) << packed.error();
      ASSERT_FALSE(packed.error().empty());
    }
    if (harmless() || io.calls() < n) ASSERT_TRUE(packed && packed->copied == 1);
    if (!std::get<1>(GetParam())) ASSERT_TRUE(files_below(scratch_.path()).temporaries.empty());
    for (const auto& found : std::filesystem::directory_iterator(scratch_.path())) {
      if (found.path().filename().string().starts_with(temporary_prefix)) std::filesystem::remove(found.path());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, SharedFaultTest, ::testing::Combine(::testing::ValuesIn(faults), ::testing::Bool()),
                         [](const auto& param) {
                           std::string name = std::get<0>(param.param).name;
                           std::erase(name, ' ');
                           return name + (std::get<1>(param.param) ? "FromThenOn" : "Once");
                         });

}  // namespace
}  // namespace wavejit::cache
