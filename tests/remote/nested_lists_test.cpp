// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A server that answers with lists inside lists: a reader of the protocol that makes all of them frees them by
// recursion, so that a server without our key could end every process that asks it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "remote/store.h"
#include "test_servers.h"

namespace wavejit::remote {
namespace {

using ::testing::HasSubstr;
using tests::JunkServer;
using Command = std::function<std::optional<Failure>(Store& store)>;

constexpr std::size_t most_bytes = 1 << 20;

std::string lists_in_lists(int depth) {
  std::string answer;
  for (int i = 0; i < depth; ++i) answer += "*1\r\n";
  return answer + ":1\r\n";
}

Name asked_name() { return {.digest = {}, .target_id = "gfx950", .entry_format = 1}; }

std::optional<Failure> failure_of(const auto& result) {
  return result ? std::nullopt : std::optional<Failure>(result.error());
}

// Hosts make threads whose stacks are smaller still.
void on_a_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes{};
  ASSERT_EQ(::pthread_attr_init(&attributes), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&attributes, std::size_t{1} << 20), 0);
  std::function<void()> own = work;
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    (*static_cast<std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, &attributes, run, &own), 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
}

void expect_garbage(const std::string& answer, const Command& command) {
  on_a_small_stack([&] {
    const JunkServer server(JunkServer::answering(answer));
    Server at;
    at.host = "127.0.0.1";
    at.port = server.port();
    at.connect_timeout = at.answer_timeout = std::chrono::seconds(20);
    at.max_entry_bytes = most_bytes;
    Store store(at, *Seal::make(std::vector<unsigned char>(32, 1)));
    const std::optional<Failure> failure = command(store);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->status, WAVEJIT_REMOTE_DAMAGED) << failure->what;
    EXPECT_THAT(failure->what, HasSubstr("lists inside one another"));
  });
}

TEST(NestedListsTest, AreGarbageToEveryCommand) {
  const Command list = [](Store& store) {
    return failure_of(store.list(1, [](const Name& /*name*/) { return true; }));
  };
  const std::string deep = lists_in_lists(200'000);
  expect_garbage(deep, [](Store& store) { return failure_of(store.fetch(asked_name())); });
  expect_garbage(deep,
                 [](Store& store) { return failure_of(store.keep(asked_name(), std::vector<unsigned char>{1})); });
  expect_garbage(deep, [](Store& store) { return failure_of(store.ask()); });
  expect_garbage(deep, list);
  // SCAN answers with a list in a list, and so deep is the limit.
  expect_garbage("*2\r\n$1\r\n0\r\n" + lists_in_lists(2), list);
}

}  // namespace
}  // namespace wavejit::remote
