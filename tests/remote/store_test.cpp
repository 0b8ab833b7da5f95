// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The store against the real server, and against servers that are none.
#include "remote/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/un.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "test_servers.h"

namespace wavejit::remote {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::JunkServer;
using tests::RedisServer;
using Bytes = std::vector<unsigned char>;

constexpr std::size_t max_entry = 1 << 20;

Server server_at(int port, std::chrono::milliseconds timeout = 20s) {
  Server server;
  server.host = "127.0.0.1";
  server.port = port;
  server.connect_timeout = timeout;
  server.answer_timeout = timeout;
  server.max_entry_bytes = max_entry;
  return server;
}

Seal seal_of(unsigned char byte = 1) { return *Seal::make(Bytes(32, byte)); }

Name nth_name(unsigned char number, const std::string& target = "gfx950") {
  Name name{.digest = {}, .target_id = target, .entry_format = 1};
  name.digest.fill(number);
  return name;
}

Bytes sample_entry(std::size_t size = 70'000) {
  Bytes entry(size);
  for (std::size_t i = 0; i < size; ++i) entry[i] = static_cast<unsigned char>(i * 31 >> 3);
  return entry;
}

// What an operator, or an intruder, can do there.
class Hand {
 public:
  explicit Hand(int port) : context_(::redisConnect("127.0.0.1", port)) {}
  Hand(const Hand&) = delete;
  Hand& operator=(const Hand&) = delete;
  ~Hand() { ::redisFree(context_); }

  Reply ask(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      lengths.push_back(word.size());
    }
    return Reply(static_cast<redisReply*>(
        ::redisCommandArgv(context_, static_cast<int>(texts.size()), texts.data(), lengths.data())));
  }
  std::vector<std::string> keys() {
    std::vector<std::string> keys;
    const Reply reply = ask({"KEYS", "*"});
    for (std::size_t i = 0; i < reply->elements; ++i) keys.emplace_back(reply->element[i]->str, reply->element[i]->len);
    return keys;
  }
  std::string value(const std::string& key) {
    const Reply reply = ask({"GET", key});
    return {reply->str, reply->len};
  }

 private:
  redisContext* context_;
};

TEST(RealServerTest, GivesBackWhatItWasGiven) {
  const RedisServer server;
  Store writer(server_at(server.port()), seal_of());
  Store reader(server_at(server.port()), seal_of());
  ASSERT_TRUE(writer.ask());
  const auto before = reader.fetch(nth_name(1));
  ASSERT_FALSE(before);
  EXPECT_EQ(before.error().status, WAVEJIT_REMOTE_ABSENT);
  ASSERT_TRUE(writer.keep(nth_name(1), sample_entry()));
  ASSERT_TRUE(writer.keep(nth_name(2), {}));
  const auto after = reader.fetch(nth_name(1));
  ASSERT_TRUE(after) << after.error().what;
  EXPECT_EQ(*after, sample_entry());
  EXPECT_EQ(*reader.fetch(nth_name(2)), Bytes());
  EXPECT_EQ(reader.fetch(nth_name(1, "gfx942")).error().status, WAVEJIT_REMOTE_ABSENT);
  ASSERT_TRUE(writer.keep(nth_name(1), Bytes{1})) << "the last one counts";
  EXPECT_EQ(*reader.fetch(nth_name(1)), Bytes{1});
}

TEST(RealServerTest, WhatAnIntruderWritesIsDamaged) {
  const RedisServer server;
  Store store(server_at(server.port()), seal_of());
  const Bytes entry = sample_entry(300);
  ASSERT_TRUE(store.keep(nth_name(1), entry));
  Hand hand(server.port());
  const std::string key = hand.keys().at(0);
  const std::string good = hand.value(key);
  ASSERT_EQ(good.size(), entry.size() + sealed_header_bytes);
  const auto expect_damaged = [&](const std::string& value, const std::string& what) {
    hand.ask({"SET", key, value});
    const auto fetched = store.fetch(nth_name(1));
    ASSERT_FALSE(fetched) << what;
    EXPECT_EQ(fetched.error().status, WAVEJIT_REMOTE_DAMAGED) << what << ": " << fetched.error().what;
    EXPECT_THAT(fetched.error().what, HasSubstr(key));
  };
  for (std::size_t length = 0; length < good.size(); length += 7)
    expect_damaged(good.substr(0, length), "cut at " + std::to_string(length));
  for (std::size_t at = 0; at < good.size(); at += 5) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    expect_damaged(bad, "flipped in byte " + std::to_string(at));
  }
  expect_damaged(good + "x", "longer");
  hand.ask({"SET", key, good});
  EXPECT_EQ(*store.fetch(nth_name(1)), entry) << "put back as it was";
}

TEST(RealServerTest, AMovedEntryIsDamaged) {
  const RedisServer server;
  Store store(server_at(server.port()), seal_of());
  ASSERT_TRUE(store.keep(nth_name(1), sample_entry()));
  Hand hand(server.port());
  const std::string from = hand.keys().at(0);
  const std::string value = hand.value(from);
  std::string other_digest = from;
  other_digest.replace(from.size() - 64, 64, std::string(64, '2'));
  std::string other_target = from;
  other_target.replace(from.find("gfx950"), 6, "gfx942");
  for (const std::string& to : {other_digest, other_target}) ASSERT_STREQ(hand.ask({"SET", to, value})->str, "OK");
  Name moved = nth_name(0x22);
  EXPECT_EQ(store.fetch(moved).error().status, WAVEJIT_REMOTE_DAMAGED);
  EXPECT_EQ(store.fetch(nth_name(1, "gfx942")).error().status, WAVEJIT_REMOTE_DAMAGED);
}

TEST(RealServerTest, AnotherKeysEntriesAreNotSeenAndNotBelieved) {
  const RedisServer server;
  Store store(server_at(server.port()), seal_of(1));
  Store other(server_at(server.port()), seal_of(2));
  ASSERT_TRUE(other.keep(nth_name(1), sample_entry()));
  EXPECT_EQ(store.fetch(nth_name(1)).error().status, WAVEJIT_REMOTE_ABSENT);
  Hand hand(server.port());
  std::string name = hand.keys().at(0);
  const std::string value = hand.value(name);
  name.replace(name.find(other.key_id()), other.key_id().size(), store.key_id());
  hand.ask({"SET", name, value});
  EXPECT_EQ(store.fetch(nth_name(1)).error().status, WAVEJIT_REMOTE_DAMAGED);
}

TEST(RealServerTest, PasswordsUsersAndDatabases) {
  const RedisServer server({"--requirepass", "secret word", "--user", "reader", "on", ">reading", "~*", "+get", "+ping",
                            "+select", "+auth"});
  const auto ask_as = [&](std::optional<std::string> user, std::optional<std::string> password) {
    Server at = server_at(server.port());
    at.user = std::move(user);
    at.password = std::move(password);
    at.database = 3;
    return Store(std::move(at), seal_of()).ask();
  };
  EXPECT_TRUE(ask_as({}, "secret word"));
  EXPECT_TRUE(ask_as("reader", "reading"));
  const auto none = ask_as({}, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().status, WAVEJIT_REMOTE_FAULT);
  EXPECT_THAT(none.error().what, HasSubstr("NOAUTH"));
  const auto wrong = ask_as({}, "guessed");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().what, HasSubstr("refuses AUTH: WRONGPASS"));

  Server at = server_at(server.port());
  at.password = "secret word";
  at.database = 3;
  Store writer(at, seal_of());
  ASSERT_TRUE(writer.keep(nth_name(1), sample_entry()));
  at.database = 4;
  EXPECT_EQ(Store(at, seal_of()).fetch(nth_name(1)).error().status, WAVEJIT_REMOTE_ABSENT);
  at.database = 3;
  at.user = "reader";
  at.password = "reading";
  Store reader(at, seal_of());
  const auto refused = reader.keep(nth_name(2), sample_entry());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("NOPERM"));
  EXPECT_TRUE(reader.fetch(nth_name(1))) << "a refusal leaves the connection usable";
  at.database = 10'000'000;
  EXPECT_THAT(Store(at, seal_of()).ask().error().what, HasSubstr("refuses"));
}

// A server that does not know AUTH repeats what it was told.
TEST(RealServerTest, ARefusalOfThePasswordNeverRepeatsIt) {
  const std::string password = "tell-nobody-3719";
  const auto refusal_of = [&](int port) {
    Server at = server_at(port);
    at.password = password;
    const auto asked = Store(std::move(at), seal_of()).ask();
    return asked ? std::string("it answers") : asked.error().what;
  };
  const RedisServer server({"--rename-command", "AUTH", ""});
  Hand hand(server.port());
  const Reply plain = hand.ask({"AUTH", password});
  ASSERT_THAT(plain->str, HasSubstr(password)) << "what this test is about";
  EXPECT_THAT(refusal_of(server.port()), AllOf(HasSubstr("refuses AUTH: ERR"), Not(HasSubstr(password))));
  for (const std::string& words : {"ERR no command 'AUTH " + password + "'", password, password + " is wrong"}) {
    const JunkServer echo(JunkServer::answering("-" + words + "\r\n"));
    EXPECT_THAT(refusal_of(echo.port()), AllOf(HasSubstr("refuses AUTH"), Not(HasSubstr(password)))) << words;
  }
}

TEST(RealServerTest, OverAUnixSocket) {
  const RedisServer server;
  Server at = server_at(0);
  at.host.clear();
  at.socket_path = server.socket_path();
  Store store(at, seal_of());
  ASSERT_TRUE(store.keep(nth_name(1), sample_entry()));
  EXPECT_EQ(*store.fetch(nth_name(1)), sample_entry());
  at.socket_path += "-not-there";
  EXPECT_THAT(Store(at, seal_of()).ask().error().what, HasSubstr("No such file"));
}

TEST(RealServerTest, AStringIsExpectedAndAListIsARefusal) {
  const RedisServer server;
  Store store(server_at(server.port()), seal_of());
  ASSERT_TRUE(store.keep(nth_name(1), sample_entry()));
  Hand hand(server.port());
  const std::string key = hand.keys().at(0);
  hand.ask({"DEL", key});
  hand.ask({"RPUSH", key, "x"});
  const auto fetched = store.fetch(nth_name(1));
  ASSERT_FALSE(fetched);
  EXPECT_THAT(fetched.error().what, HasSubstr("WRONGTYPE"));
}

TEST(RealServerTest, ALargerValueThanAnyEntryIsNotReadToItsEnd) {
  const RedisServer server;
  Store store(server_at(server.port()), seal_of());
  ASSERT_TRUE(store.keep(nth_name(1), Bytes{1}));
  Hand hand(server.port());
  hand.ask({"SET", hand.keys().at(0), std::string(max_entry * 3, 'x')});
  const auto fetched = store.fetch(nth_name(1));
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().status, WAVEJIT_REMOTE_DAMAGED);
  EXPECT_THAT(fetched.error().what, HasSubstr("more than"));
  EXPECT_TRUE(store.ask()) << "on another connection";
}

TEST(RealServerTest, ARestartCostsNoAnswer) {
  RedisServer server;
  Store store(server_at(server.port()), seal_of());
  ASSERT_TRUE(store.keep(nth_name(1), sample_entry()));
  server.stop();
  const auto down = store.fetch(nth_name(1));
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().status, WAVEJIT_REMOTE_FAULT);
  EXPECT_THAT(down.error().what, HasSubstr("Connection refused"));
  server.start();
  ASSERT_TRUE(store.keep(nth_name(1), sample_entry()));
  server.stop();
  server.start();
  // The kept connection is dead; the store notices and takes a new one.
  EXPECT_EQ(store.fetch(nth_name(1)).error().status, WAVEJIT_REMOTE_ABSENT);
}

TEST(RealServerTest, AFullServerRefusesWritesAndAnswersReads) {
  const RedisServer server({"--maxmemory", "1mb", "--maxmemory-policy", "noeviction"});
  Store store(server_at(server.port()), seal_of());
  Result<void> kept;
  for (unsigned char i = 0; i < 60 && kept; ++i) kept = store.keep(nth_name(i), sample_entry());
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().what, HasSubstr("OOM"));
  EXPECT_EQ(store.fetch(nth_name(200)).error().status, WAVEJIT_REMOTE_ABSENT);
}

TEST(RealServerTest, ListsTheNamesOfItsKeyAndFormat) {
  const RedisServer server;
  Store store(server_at(server.port()), seal_of(1));
  Store other(server_at(server.port()), seal_of(2));
  std::set<std::pair<std::string, unsigned char>> wanted;
  for (unsigned char i = 0; i < 200; ++i) {
    const std::string target = i % 2 == 0 ? "gfx950" : "gfx942:sramecc+";
    ASSERT_TRUE(store.keep(nth_name(i, target), Bytes{i}));
    wanted.emplace(target, i);
  }
  ASSERT_TRUE(other.keep(nth_name(1), Bytes{1}));
  Hand(server.port()).ask({"SET", "somebody:else", "x"});
  std::set<std::pair<std::string, unsigned char>> found;
  ASSERT_TRUE(
      store.list(1, [&](const Name& name) { return found.emplace(name.target_id, name.digest[0]).second || true; }));
  EXPECT_EQ(found, wanted);
  found.clear();
  ASSERT_TRUE(store.list(2, [&](const Name& name) { return found.emplace(name.target_id, name.digest[0]).second; }));
  EXPECT_TRUE(found.empty());
}

TEST(RealServerTest, EightThreadsShareAStore) {
  const RedisServer server;
  Store store(server_at(server.port(), 20s), seal_of());
  std::vector<std::jthread> threads;
  std::atomic<int> wrong{0};
  for (unsigned char thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (unsigned char i = 0; i < 25; ++i) {
        const Bytes entry(1000U + thread, i);
        const Name name = nth_name(static_cast<unsigned char>(thread * 25 + i));
        if (!store.keep(name, entry)) ++wrong;
        const auto fetched = store.fetch(name);
        if (!fetched || *fetched != entry) ++wrong;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(RealServerTest, AFrozenServerIsAFaultInTime) {
  const RedisServer server;
  Server at = server_at(server.port());
  at.answer_timeout = 150ms;
  Store store(at, seal_of());
  // A server that has just started, on a busy machine, may need longer than that.
  bool answered = false;
  for (int i = 0; i < 100 && !answered; ++i) answered = store.ask().has_value();
  ASSERT_TRUE(answered);
  server.freeze();
  const auto start = Clock::now();
  const auto fetched = store.fetch(nth_name(1));
  const auto taken = Clock::now() - start;
  server.thaw();
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().status, WAVEJIT_REMOTE_FAULT);
  EXPECT_THAT(fetched.error().what, HasSubstr("longer than 150 ms"));
  EXPECT_GE(taken, 150ms);
  EXPECT_LT(taken, 10s);
}

struct Junk {
  const char* name;
  std::string answer;
  wavejit_remote_status status;
  const char* what;
};

// `deep` of these inside one another.
std::string nested(int deep, std::string_view one) {
  std::string all;
  for (int i = 0; i < deep; ++i) all += one;
  return all + ":1\r\n";
}

class JunkTest : public ::testing::TestWithParam<Junk> {};

TEST_P(JunkTest, IsAMissWithAReason) {
  JunkServer server(JunkServer::answering(GetParam().answer));
  Store store(server_at(server.port()), seal_of());
  for (int i = 0; i < 2; ++i) {
    const auto start = Clock::now();
    const auto fetched = store.fetch(nth_name(1));
    ASSERT_FALSE(fetched);
    EXPECT_EQ(fetched.error().status, GetParam().status) << fetched.error().what;
    EXPECT_THAT(fetched.error().what, HasSubstr(GetParam().what));
    EXPECT_LT(Clock::now() - start, 10s) << "known at once, not by the time limit";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Answers, JunkTest,
    ::testing::Values(
        Junk{"Http", "HTTP/1.1 400 Bad Request\r\n\r\n", WAVEJIT_REMOTE_DAMAGED, "does not speak the Redis protocol"},
        Junk{"Tls", std::string("\x15\x03\x01\x00\x02\x02\x46", 7), WAVEJIT_REMOTE_DAMAGED, "speaks TLS"},
        Junk{"Zeros", std::string(4096, '\0'), WAVEJIT_REMOTE_DAMAGED, "does not speak"},
        Junk{"HugeLength", "$4294967296\r\n", WAVEJIT_REMOTE_DAMAGED, "more than"},
        Junk{"LengthOfTwentyDigits", "$99999999999999999999\r\n", WAVEJIT_REMOTE_DAMAGED, "more than"},
        Junk{"NegativeLength", "$-77\r\n", WAVEJIT_REMOTE_DAMAGED, "does not speak"},
        Junk{"HugeList", "*2147483647\r\n", WAVEJIT_REMOTE_DAMAGED, "does not speak"},
        Junk{"ListInAList", "*2\r\n+a\r\n*1\r\n+b\r\n", WAVEJIT_REMOTE_DAMAGED, "lists inside one another"},
        Junk{"ListsInLists", nested(200'000, "*1\r\n"), WAVEJIT_REMOTE_DAMAGED, "lists inside one another"},
        Junk{"MapsInMaps", nested(100'000, "%1\r\n+k\r\n"), WAVEJIT_REMOTE_DAMAGED, "lists inside one another"},
        Junk{"SetsInSets", nested(200'000, "~1\r\n"), WAVEJIT_REMOTE_DAMAGED, "lists inside one another"},
        Junk{"PushesInPushes", nested(200'000, ">1\r\n"), WAVEJIT_REMOTE_DAMAGED, "lists inside one another"},
        Junk{"EndlessStatus", "+" + std::string(max_entry + 200'000, 'x'), WAVEJIT_REMOTE_DAMAGED, "more than"},
        Junk{"NumberForAString", ":7\r\n", WAVEJIT_REMOTE_DAMAGED, "something else"},
        Junk{"StatusForAString", "+OK\r\n", WAVEJIT_REMOTE_DAMAGED, "something else"},
        Junk{"ListForAString", "*2\r\n+a\r\n+b\r\n", WAVEJIT_REMOTE_DAMAGED, "something else"},
        Junk{"TwoAnswers", "$1\r\nx\r\n$1\r\ny\r\n", WAVEJIT_REMOTE_DAMAGED, "more than it was asked"},
        Junk{"ShortString", "$3\r\nabc\r\n", WAVEJIT_REMOTE_DAMAGED, "fewer than a seal"},
        Junk{"ErrorWithControlCharacters", "-ERR \x1b[31mred\r\n", WAVEJIT_REMOTE_FAULT, "refuses: ERR ?[31mred"},
        Junk{"Cluster", "-MOVED 3999 10.0.0.1:6381\r\n", WAVEJIT_REMOTE_FAULT, "MOVED"}),
    [](const ::testing::TestParamInfo<Junk>& info) { return std::string(info.param.name); });

TEST(StrangeServerTest, OneThatClosesIsAFault) {
  JunkServer server([](int socket) { JunkServer::hear(socket); });
  Store store(server_at(server.port()), seal_of());
  const auto fetched = store.fetch(nth_name(1));
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().status, WAVEJIT_REMOTE_FAULT);
  EXPECT_THAT(fetched.error().what, HasSubstr("closed the connection"));
}

// send(2) to a closed connection raises SIGPIPE, which ends a process, unless it is told not to.
TEST(StrangeServerTest, OneThatClosesInTheMiddleOfAnEntryRaisesNoSignal) {
  JunkServer server([](int socket) {
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    JunkServer::hear(socket);
  });
  Store store(server_at(server.port()), seal_of());
  for (int i = 0; i < 20; ++i) {
    const auto kept = store.keep(nth_name(1), sample_entry(std::size_t{8} << 20));
    ASSERT_FALSE(kept);
    EXPECT_EQ(kept.error().status, WAVEJIT_REMOTE_FAULT);
  }
}

TEST(StrangeServerTest, OneThatIsSilentIsAFaultInTime) {
  JunkServer server(JunkServer::silent());
  Store store(server_at(server.port(), 100ms), seal_of());
  const auto start = Clock::now();
  const auto fetched = store.fetch(nth_name(1));
  ASSERT_FALSE(fetched);
  EXPECT_THAT(fetched.error().what, HasSubstr("longer than 100 ms"));
  EXPECT_LT(Clock::now() - start, 10s);
}

// Each byte comes in time; all of them together do not.
TEST(StrangeServerTest, OneThatDripsIsAFaultInTime) {
  JunkServer server([](int socket) {
    if (!JunkServer::hear(socket)) return;
    JunkServer::say(socket, "$5000\r\n");
    for (int i = 0; i < 2000 && JunkServer::say(socket, "x"); ++i) {
      std::this_thread::sleep_for(20ms);
    }
  });
  Store store(server_at(server.port(), 200ms), seal_of());
  const auto start = Clock::now();
  const auto fetched = store.fetch(nth_name(1));
  ASSERT_FALSE(fetched);
  EXPECT_EQ(fetched.error().status, WAVEJIT_REMOTE_FAULT);
  EXPECT_LT(Clock::now() - start, 10s);
}

// A full queue of connections: the kernel drops what comes, as a host behind a firewall does.
TEST(StrangeServerTest, OneThatTakesNoConnectionIsAFaultInTime) {
  const auto [socket, port] = tests::listening_socket(0);
  std::vector<int> waiting;
  for (int i = 0; i < 4; ++i) {
    const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const sockaddr_in address = tests::loopback(port);
    (void)::connect(one, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    waiting.push_back(one);
  }
  Store store(server_at(port, 150ms), seal_of());
  const auto start = Clock::now();
  const auto answer = store.ask();
  EXPECT_LT(Clock::now() - start, 10s);
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().what, HasSubstr("longer than 150 ms"));
  for (const int one : waiting) ::close(one);
  ::close(socket);
}

TEST(StrangeServerTest, ANameThatLeadsNowhereIsAFaultInTime) {
  Server at = server_at(6379, 300ms);
  at.host = "no-such-host.invalid";
  Store store(at, seal_of());
  const auto start = Clock::now();
  const auto answer = store.ask();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().status, WAVEJIT_REMOTE_FAULT);
  EXPECT_THAT(answer.error().what, HasSubstr("no-such-host.invalid"));
  EXPECT_LT(Clock::now() - start, 10s);
}

TEST(StrangeServerTest, AnInterruptionEndsWhatIsUnderWay) {
  JunkServer server(JunkServer::silent());
  Store store(server_at(server.port(), 60s), seal_of());
  const auto start = Clock::now();
  std::jthread later([&] {
    std::this_thread::sleep_for(50ms);
    store.interrupt();
  });
  const auto fetched = store.fetch(nth_name(1));
  ASSERT_FALSE(fetched);
  EXPECT_THAT(fetched.error().what, HasSubstr("interrupted"));
  EXPECT_FALSE(store.ask()) << "and all that follows";
  EXPECT_LT(Clock::now() - start, 10s);
}

// Connections that are kept: the first `count` have answered once and stand there when this returns.
void keep_connections(Store& store, int count) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&] { EXPECT_TRUE(store.ask()); });
}

// A peer that vanished without a word, as behind a firewall that forgot its connections.
TEST(StrangeServerTest, KeptConnectionsThatFellSilentCostOneAnswer) {
  std::atomic<int> heard{0};
  JunkServer server([&](int socket) {
    if (!JunkServer::hear(socket)) return;
    const bool first = ++heard <= 3;
    while (first && heard < 3) std::this_thread::sleep_for(1ms);  // all three are open at once
    do {
      JunkServer::say(socket, "+PONG\r\n");
    } while (JunkServer::hear(socket) && !first);
    JunkServer::hear(socket);
  });
  Server at = server_at(server.port());
  at.answer_timeout = 2s;
  Store store(at, seal_of());
  keep_connections(store, 3);
  ASSERT_EQ(server.connections(), 3);
  const auto silent = store.ask();
  ASSERT_FALSE(silent);
  EXPECT_THAT(silent.error().what, HasSubstr("longer than 2000 ms"));
  EXPECT_TRUE(store.ask()) << "on a new connection: what one of them met the others would too";
}

TEST(StrangeServerTest, AKeptConnectionThatWasClosedIsReplacedAtOnce) {
  std::atomic<int> heard{0};
  std::atomic<int> asked_again{0};
  JunkServer server([&](int socket) {
    if (!JunkServer::hear(socket)) return;
    const bool first = ++heard <= 3;
    while (first && heard < 3) std::this_thread::sleep_for(1ms);
    do {
      JunkServer::say(socket, "+PONG\r\n");
      if (!JunkServer::hear(socket)) return;
    } while (!first);
    ++asked_again;
  });
  {
    Store store(server_at(server.port()), seal_of());
    keep_connections(store, 3);
    ASSERT_EQ(server.connections(), 3);
    EXPECT_TRUE(store.ask());
    EXPECT_EQ(server.connections(), 4) << "one new one";
    EXPECT_TRUE(store.ask());
    EXPECT_EQ(server.connections(), 4) << "which is kept";
  }
  EXPECT_EQ(asked_again, 1) << "the other two are not tried one by one";
}

TEST(StrangeServerTest, AConnectionThatWasIdleForLongIsNotUsedAgain) {
  JunkServer server(JunkServer::answering("+PONG\r\n"));
  Server at = server_at(server.port());
  at.longest_idle = 20ms;
  Store store(at, seal_of());
  ASSERT_TRUE(store.ask());
  std::this_thread::sleep_for(60ms);
  ASSERT_TRUE(store.ask());
  EXPECT_EQ(server.connections(), 2);
}

// A Unix socket with a full queue says so at once; a stream of questions makes that a moment's matter.
class FullQueue {
 public:
  explicit FullQueue(std::string path) : path_(std::move(path)), listener_(socket_at(::bind)) {
    if (::listen(listener_, 0) != 0) throw std::runtime_error("no socket at " + path_);
    const timeval patience = {.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    waiting_ = socket_at(::connect);
  }
  FullQueue(const FullQueue&) = delete;
  FullQueue& operator=(const FullQueue&) = delete;
  ~FullQueue() {
    ::close(waiting_);
    ::close(listener_);
  }

  // Lets in who waits, or who comes within ten seconds.
  int accept() const { return ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  int socket_at(int (*call)(int, const sockaddr*, socklen_t)) const {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    if (call(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("no socket at " + path_);
    return socket;
  }

  std::string path_;
  int listener_;
  int waiting_ = -1;
};

TEST(StrangeServerTest, AFullQueueOfAUnixSocketIsWaitedForInTime) {
  const tests::ScratchDirectory scratch;
  const FullQueue server(scratch / "socket");
  Server at = server_at(0, 150ms);
  at.host.clear();
  at.socket_path = scratch / "socket";
  const auto start = Clock::now();
  const auto full = Store(at, seal_of()).ask();
  ASSERT_FALSE(full);
  EXPECT_THAT(full.error().what, HasSubstr("longer than 150 ms"));
  EXPECT_GE(Clock::now() - start, 150ms);
  at.connect_timeout = 20s;
  at.answer_timeout = 20s;
  Store store(at, seal_of());
  std::jthread later([&] {
    std::this_thread::sleep_for(50ms);
    ::close(server.accept());
    const int connection = server.accept();
    if (JunkServer::hear(connection)) JunkServer::say(connection, "+PONG\r\n");
    ::close(connection);
  });
  const auto asked = store.ask();
  EXPECT_TRUE(asked) << asked.error().what;
}

// A process may have no descriptor left to wake a wait with.
TEST(InterruptionTest, EndsAWaitWithoutADescriptorToo) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Interruption interruption;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_LT(interruption.descriptor(), 0);
  const auto [silent, port] = tests::listening_socket(1);
  std::jthread later([&] {
    std::this_thread::sleep_for(50ms);
    interruption.set();
  });
  const auto start = Clock::now();
  const auto waited = wait_for(silent, POLLIN, Deadline::in(15s), interruption, "waiting");
  ::close(silent);
  ASSERT_FALSE(waited);
  EXPECT_THAT(waited.error().what, HasSubstr("interrupted"));
  EXPECT_LT(Clock::now() - start, 10s);
}

TEST(StrangeServerTest, AnInterruptionEndsTheResolutionOfAName) {
  Server at = server_at(6379, 60s);
  at.host = "no-such-host.invalid";
  Store store(at, seal_of());
  store.interrupt();
  const auto answer = store.ask();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().what, HasSubstr("interrupted"));
}

// "socket:[inode]" by descriptor.
std::map<std::string, int> open_sockets() {
  std::map<std::string, int> sockets;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(one.path(), gone).string();
    if (what.starts_with("socket:")) sockets.emplace(what, std::stoi(one.path().filename()));
  }
  return sockets;
}

TEST(StrangeServerTest, SocketsAreNotInheritedByChildren) {
  const auto before = open_sockets();  // where a test's output goes may be one
  JunkServer server(JunkServer::answering("+PONG\r\n"));
  Store store(server_at(server.port()), seal_of());
  ASSERT_TRUE(store.ask());
  int ours = 0;
  for (const auto& [what, number] : open_sockets()) {
    if (before.contains(what)) continue;
    ++ours;
    EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0) << what;
  }
  EXPECT_GE(ours, 3) << "the server's, and both ends of the connection";
}

}  // namespace
}  // namespace wavejit::remote
