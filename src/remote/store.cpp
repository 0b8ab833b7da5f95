// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote/store.h"

#include <array>
#include <charconv>
#include <utility>

#include "remote/hex.h"

namespace wavejit::remote {

namespace {

constexpr std::size_t max_idle_connections = 4;  // guess: more threads than that seldom miss at once
constexpr AnswerLimits short_answer = {.bytes = 4096};
constexpr AnswerLimits list_answer = {.bytes = std::size_t{1} << 20, .lists = 2};  // a cursor beside a list of names
constexpr int max_list_steps = 1'000'000;

std::string where(const Server& server) {
  if (server.host.empty()) return server.socket_path;
  const bool bare = server.host.find(':') == std::string::npos;
  return (bare ? server.host : "[" + server.host + "]") + ":" + std::to_string(server.port);
}

std::string_view text_of(const redisReply& reply) { return {reply.str, reply.len}; }

std::unexpected<Failure> unexpected_answer(const std::string& where, std::string_view command) {
  return damaged(where + " answers " + std::string(command) + " with something else than what that answers");
}

bool is_status(const redisReply& reply, std::string_view text) {
  return reply.type == REDIS_REPLY_STATUS && text_of(reply) == text;
}

// An error's first word, if it is one of the usual ones. Nothing else of the answer to a password is repeated: a server
// that does not know AUTH echoes its arguments.
std::string_view code_of(const redisReply& error) {
  for (const std::string_view code : {"WRONGPASS", "NOPERM", "NOAUTH", "ERR", "DENIED", "LOADING", "BUSY"}) {
    const std::string_view text = text_of(error);
    if (text == code || (text.starts_with(code) && text[code.size()] == ' ')) return code;
  }
  return "its words are not repeated";
}

bool parse_hex(std::string_view text, std::span<unsigned char> bytes) {
  if (text.size() != bytes.size() * 2) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto [end, error] = std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, bytes[i], 16);
    if (error != std::errc{} || end != text.data() + 2 * i + 2) return false;
  }
  return true;
}

}  // namespace

Store::Store(Server server, Seal seal)
    : server_(std::move(server)),
      where_(where(server_)),
      seal_(std::move(seal)),
      resolver_(server_.host, server_.port) {}

// "wavejit:<seal format>:<key id>:<entry format>:<target id>:<digest>". The key's id keeps fleets with different keys,
// and a fleet that changes its key, out of each other's way.
std::string Store::prefix_of(std::uint32_t entry_format) const {
  return "wavejit:" + std::to_string(seal_format) + ":" + seal_.key_id() + ":" + std::to_string(entry_format) + ":";
}

std::string Store::key_of(const Name& name) const {
  return prefix_of(name.entry_format) + name.target_id + ":" + hex_of(name.digest);
}

Result<void> Store::greet(Connection& connection, const Deadline& deadline) {
  if (server_.password) {
    std::vector<std::string_view> words = {"AUTH"};
    if (server_.user) words.emplace_back(*server_.user);
    words.emplace_back(*server_.password);
    auto reply = connection.exchange(words, short_answer, deadline, interruption_);
    if (!reply) return std::unexpected(std::move(reply.error()));
    if ((*reply)->type == REDIS_REPLY_ERROR) return fault(where_ + " refuses AUTH: " + std::string(code_of(**reply)));
    if (!is_status(**reply, "OK")) return unexpected_answer(where_, "AUTH");
  }
  if (server_.database != 0) {
    const std::string number = std::to_string(server_.database);
    const std::array<std::string_view, 2> words = {"SELECT", number};
    auto reply = connection.command(words, short_answer, deadline, interruption_);
    if (!reply) return std::unexpected(std::move(reply.error()));
    if (!is_status(**reply, "OK")) return unexpected_answer(where_, "SELECT");
  }
  return {};
}

Result<Connection> Store::connect() {
  const Deadline deadline = Deadline::in(server_.connect_timeout);
  Result<Connection> connection = fault(where_ + " has no address");
  if (server_.host.empty()) {
    connection = Connection::to_socket(server_.socket_path, deadline, interruption_);
  } else {
    const auto addresses = resolver_.addresses(deadline, interruption_);
    if (!addresses) return std::unexpected(addresses.error());
    // Each its share of the time that is left.
    for (std::size_t i = 0; i < addresses->size() && !connection; ++i) {
      const auto left = deadline.at - Clock::now();
      const Deadline share = {.at = Clock::now() + left / static_cast<long>(addresses->size() - i),
                              .span = deadline.span};
      connection = Connection::to((*addresses)[i], where_, share, interruption_);
    }
    if (!connection) resolver_.forget();
  }
  if (!connection) return connection;
  if (server_.trust) {
    auto tls = Tls::to(*server_.trust, server_.host, where_);
    if (!tls) return std::unexpected(std::move(tls.error()));
    if (auto secured = connection->secure(*std::move(tls), deadline, interruption_); !secured)
      return std::unexpected(std::move(secured.error()));
  }
  auto greeted = greet(*connection, deadline);
  if (!greeted) return std::unexpected(std::move(greeted.error()));
  return connection;
}

std::optional<Connection> Store::idle_connection() {
  const std::scoped_lock lock(mutex_);
  // The last one is the youngest.
  if (!idle_.empty() && Clock::now() - idle_.back().since > server_.longest_idle) idle_.clear();
  if (idle_.empty()) return std::nullopt;
  std::optional<Connection> connection(std::move(idle_.back().connection));
  idle_.pop_back();
  return connection;
}

void Store::keep_idle(Connection connection) {
  const std::scoped_lock lock(mutex_);
  if (idle_.size() < max_idle_connections)
    idle_.push_back({.connection = std::move(connection), .since = Clock::now()});
}

Result<Reply> Store::command(std::span<const std::string_view> words, const AnswerLimits& most) {
  const Clock::time_point start = Clock::now();
  if (auto kept = idle_connection()) {
    auto reply = kept->command(words, most, Deadline::in(server_.answer_timeout), interruption_);
    if (kept->usable()) {
      keep_idle(*std::move(kept));
      return reply;
    }
    // What ended this one ended those that lay beside it: the server started anew, or the way to it is gone.
    {
      const std::scoped_lock lock(mutex_);
      idle_.clear();
    }
    // Servers close connections that were idle for long; one without an answer in time has had its time.
    if (!reply.error().closed) return reply;
  }
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  auto fresh = connect();
  if (!fresh) return std::unexpected(std::move(fresh.error()));
  const Deadline rest = {.at = Clock::now() + server_.answer_timeout - spent, .span = server_.answer_timeout};
  auto reply = fresh->command(words, most, rest, interruption_);
  if (fresh->usable()) keep_idle(*std::move(fresh));
  return reply;
}

Result<std::vector<unsigned char>> Store::fetch(const Name& name) {
  const std::string key = key_of(name);
  const std::array<std::string_view, 2> words = {"GET", key};
  const auto reply = command(words, {.bytes = server_.max_entry_bytes + sealed_header_bytes});
  if (!reply) return std::unexpected(reply.error());
  if ((*reply)->type == REDIS_REPLY_NIL)
    return std::unexpected(Failure{.status = WAVEJIT_REMOTE_ABSENT, .what = "not there"});
  if ((*reply)->type != REDIS_REPLY_STRING) return unexpected_answer(where_, "GET");
  const std::string_view text = text_of(**reply);
  const auto entry = seal_.open(name, {reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  if (!entry) return std::unexpected(Failure{.status = entry.error().status, .what = key + ": " + entry.error().what});
  return std::vector<unsigned char>(entry->begin(), entry->end());
}

Result<void> Store::keep(const Name& name, std::span<const unsigned char> entry) {
  const auto header = seal_.header_of(name, entry);
  if (!header) return std::unexpected(header.error());
  std::string value;
  value.reserve(header->size() + entry.size());
  value.append(reinterpret_cast<const char*>(header->data()), header->size());
  value.append(reinterpret_cast<const char*>(entry.data()), entry.size());
  const std::string key = key_of(name);
  const std::array<std::string_view, 3> words = {"SET", key, value};
  const auto reply = command(words, short_answer);
  if (!reply) return std::unexpected(reply.error());
  if (!is_status(**reply, "OK")) return unexpected_answer(where_, "SET");
  return {};
}

Result<void> Store::ask() {
  const std::array<std::string_view, 1> words = {"PING"};
  const auto reply = command(words, short_answer);
  if (!reply) return std::unexpected(reply.error());
  if (!is_status(**reply, "PONG")) return unexpected_answer(where_, "PING");
  return {};
}

Result<void> Store::list(std::uint32_t entry_format, const std::function<bool(const Name&)>& name) {
  const std::string prefix = prefix_of(entry_format);
  const std::string pattern = prefix + "*";  // no character of a prefix means anything in a pattern
  std::string cursor = "0";
  for (int step = 0; step < max_list_steps; ++step) {
    const std::array<std::string_view, 6> words = {"SCAN", cursor, "MATCH", pattern, "COUNT", "500"};
    const auto reply = command(words, list_answer);
    if (!reply) return std::unexpected(reply.error());
    const redisReply& answer = **reply;
    if (answer.type != REDIS_REPLY_ARRAY || answer.elements != 2 || answer.element[0]->type != REDIS_REPLY_STRING ||
        answer.element[1]->type != REDIS_REPLY_ARRAY)
      return unexpected_answer(where_, "SCAN");
    for (std::size_t i = 0; i < answer.element[1]->elements; ++i) {
      const redisReply& element = *answer.element[1]->element[i];
      if (element.type != REDIS_REPLY_STRING) return unexpected_answer(where_, "SCAN");
      std::string_view text = text_of(element);
      if (!text.starts_with(prefix)) continue;
      text.remove_prefix(prefix.size());
      const std::size_t colon = text.rfind(':');  // target ids may hold colons
      if (colon == std::string_view::npos) continue;
      Name found{.digest = {}, .target_id = std::string(text.substr(0, colon)), .entry_format = entry_format};
      if (parse_hex(text.substr(colon + 1), found.digest) && !name(found)) return {};
    }
    cursor = text_of(*answer.element[0]);
    if (cursor == "0") return {};
  }
  return damaged(where_ + " comes to no end listing its keys");
}

}  // namespace wavejit::remote
