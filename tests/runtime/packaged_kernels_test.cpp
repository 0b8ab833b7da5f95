// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that were installed with the library: found without configuration, left out where a cache is to stand on its
// own, and told of once when they are another version's. (Where the archive is looked for, tests/package asks of a real
// installation.)
#include "runtime/settings/packaged_kernels.h"

#include <algorithm>

#include "cache/transfer.h"
#include "runtime/offline/cache_commands.h"
#include "runtime/offline/prebuild.h"
#include "runtime_fixture.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

class PackagedKernelsTest : public RuntimeTest {
 protected:
  // All of gfx950 in an archive, by another user's cache.
  void package() {
    runtime::Config config = config_;
    config.cache_directory.value = elsewhere_.path() + "/cache";
    const runtime::PrebuildRequest everything{
        .descriptors = {}, .everything = true, .targets = "gfx950", .jobs = 1, .output = archive(), .archive = true};
    const auto built = runtime::prebuild(config, everything, *codegen_, [](const auto&) {});
    ASSERT_TRUE(built) << built.error().detail;
    config_.packaged_archive = archive();
    reset_fake_codegen();
  }

  // An archive with one kernel that an earlier version of the family made.
  void package_of_other_version(const std::string& spec) {
    cache::CacheOptions options;
    options.layers = {{.name = "user", .root = elsewhere_.path() + "/old", .writable = true}};
    cache::Cache old(std::move(options));
    const cache::Key key(spec + " generator=00000000 llvm=21.1.0", "gfx950");
    const std::vector<std::byte> code(64);
    ASSERT_TRUE(old.publish(key, {.kernels = {{.name = "kernel", .threads = 256}}, .code_object = code}).published);
    const auto packed = cache::pack_keys(old, archive(), {key});
    ASSERT_TRUE(packed) << packed.error();
    config_.packaged_archive = archive();
  }

  std::string archive() const { return elsewhere_.path() + "/kernels.wavejit-archive"; }
  std::ptrdiff_t warnings() const {
    return std::ranges::count_if(log_, [](const std::string& line) { return line.contains("the packaged kernels "); });
  }

  ScratchDirectory elsewhere_;
};

TEST_F(PackagedKernelsTest, FirstCallOfAFreshInstallIsADiskHit) {
  package();
  const auto engine = make_engine();
  const auto call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  const auto statistics = statistics_of(*engine);
  EXPECT_EQ(statistics.disk_hits, 1U);
  EXPECT_EQ(statistics.layer_hits, 1U);
  EXPECT_EQ(statistics.compiled, 0U);
  EXPECT_EQ(fake_codegen().compiles, 0U);
  EXPECT_TRUE(cache_files().empty()) << "nothing is copied into the user's folder";
}

TEST_F(PackagedKernelsTest, WhatIsNotPackagedIsCompiledWithoutAWord) {
  package();
  const auto engine = make_engine();
  auto call = good_call();
  call.modifiers.softcap = 30.0F;
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(statistics_of(*engine).compiled, 1U);
  EXPECT_EQ(warnings(), 0);
}

TEST_F(PackagedKernelsTest, CanBeSwitchedOff) {
  package();
  config_.cache_packaged.value = false;
  const auto engine = make_engine();
  const auto call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(statistics_of(*engine).compiled, 1U);
}

TEST_F(PackagedKernelsTest, AnotherVersionIsToldOnce) {
  package_of_other_version("attention_forward fp16 d64");
  for (int i = 0; i < 2; ++i) {
    const auto engine = make_engine();
    for (const std::int64_t queries : {1, 64, 255}) {
      const auto call = good_call(2, queries);
      ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
    }
  }
  ASSERT_EQ(warnings(), 1);
  const auto line =
      std::ranges::find_if(log_, [](const std::string& one) { return one.contains("the packaged kernels "); });
  EXPECT_THAT(*line, HasSubstr("warning: cache: the packaged kernels " + archive() +
                               " are of generator=00000000 llvm=21.1.0; this library is generator="));
  EXPECT_THAT(*line, HasSubstr("accepted: the package wavejit-kernels of this version"));
}

TEST_F(PackagedKernelsTest, AnotherFamilysVersionSaysNothing) {
  package_of_other_version("row_sum fp32");
  const auto engine = make_engine();
  const auto call = good_call();
  ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  EXPECT_EQ(warnings(), 0);
}

TEST_F(PackagedKernelsTest, AnArchiveThatIsGoneIsOneWarning) {
  config_.packaged_archive = archive();
  const auto engine = make_engine();
  for (const std::int64_t queries : {1, 64, 255}) {
    const auto call = good_call(2, queries);
    ASSERT_TRUE(ForwardCalls::run(*engine, &call, nullptr));
  }
  EXPECT_EQ(std::ranges::count_if(log_, [&](const std::string& line) { return line.contains(archive()); }), 1);
}

// What is built or packed here must do where no packages are.
TEST_F(PackagedKernelsTest, WhatIsBuiltStandsOnItsOwn) {
  package();
  const runtime::PrebuildRequest one{
      .descriptors = {"attention_forward fp16 b1 q1 k1 h1 d64"}, .targets = "gfx950", .jobs = 1};
  ASSERT_TRUE(runtime::prebuild(config_, one, *codegen_, [](const auto&) {}));
  EXPECT_EQ(fake_codegen().compiles, 2U);
  EXPECT_EQ(cache_files().size(), 2U);
  runtime::CacheCopy copy;
  copy.to = elsewhere_.path() + "/own.wavejit-archive";
  copy.archive = true;
  const auto packed = runtime::copy_cache(config_, copy);
  ASSERT_TRUE(packed) << packed.error().detail;
  EXPECT_EQ(packed->copied, 2U);
  const auto layers = runtime::describe_cache(config_);
  ASSERT_TRUE(layers);
  ASSERT_EQ(layers->size(), 2U);
  EXPECT_EQ(layers->front().name, "packaged");
  EXPECT_GE(layers->front().entries, 32U);
}

}  // namespace
}  // namespace wavejit::tests
