// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/libraries/remote_library.h"

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "cache/entry.h"
#include "cache/remote_key.h"
#include "remote/remote_api.h"
#include "runtime/settings/shared_object.h"

namespace wavejit::runtime {
namespace {

constexpr const char* remote_library_name = "libwavejit_remote.so";
constexpr std::int64_t nanoseconds_per_millisecond = 1'000'000;

// A function of the same name hides the struct.
using RemoteTable = struct ::wavejit_remote_table;

class LibraryStore : public cache::RemoteStore {
 public:
  LibraryStore(const RemoteTable* table, wavejit_remote_store* store) : table_(table), store_(store) {}
  LibraryStore(const LibraryStore&) = delete;
  LibraryStore& operator=(const LibraryStore&) = delete;
  ~LibraryStore() override { table_->destroy(store_); }

  std::expected<std::vector<std::byte>, cache::RemoteFailure> fetch(const cache::Digest& digest,
                                                                    const std::string& target_id) override {
    Answer answer(table_);
    const wavejit_remote_name name = name_of(digest, target_id);
    table_->fetch(store_, &name, &answer.raw);
    if (answer.raw.status != WAVEJIT_REMOTE_OK) return std::unexpected(answer.failure());
    const auto* bytes = reinterpret_cast<const std::byte*>(answer.raw.bytes);
    return std::vector<std::byte>(bytes, bytes + answer.raw.byte_count);
  }

  std::expected<void, cache::RemoteFailure> keep(const cache::Digest& digest, const std::string& target_id,
                                                 std::span<const std::byte> entry) override {
    Answer answer(table_);
    const wavejit_remote_name name = name_of(digest, target_id);
    table_->keep(store_, &name, reinterpret_cast<const unsigned char*>(entry.data()), entry.size(), &answer.raw);
    return answer.outcome();
  }

  std::expected<void, cache::RemoteFailure> ask() override {
    Answer answer(table_);
    table_->ask(store_, &answer.raw);
    return answer.outcome();
  }

  std::expected<void, cache::RemoteFailure> list(
      const std::function<bool(const cache::Digest&, const std::string&)>& name) override {
    using Name = std::function<bool(const cache::Digest&, const std::string&)>;
    Answer answer(table_);
    table_->list(
        store_, cache::entry_format_version,
        [](void* context, const unsigned char* digest, const char* target_id) -> std::int32_t {
          cache::Digest own;
          std::memcpy(own.bytes.data(), digest, own.bytes.size());
          return (*static_cast<const Name*>(context))(own, target_id) ? 1 : 0;
        },
        const_cast<Name*>(&name), &answer.raw);
    return answer.outcome();
  }

  void interrupt() override { table_->interrupt(store_); }

 private:
  struct Answer {
    explicit Answer(const RemoteTable* from) : table(from) { raw.size = sizeof raw; }
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;
    ~Answer() { table->release(&raw); }

    cache::RemoteFailure failure() const {
      const auto problem = raw.status == WAVEJIT_REMOTE_ABSENT    ? cache::RemoteProblem::absent
                           : raw.status == WAVEJIT_REMOTE_DAMAGED ? cache::RemoteProblem::damaged
                                                                  : cache::RemoteProblem::fault;
      return {.problem = problem, .what = raw.detail};
    }
    std::expected<void, cache::RemoteFailure> outcome() const {
      if (raw.status == WAVEJIT_REMOTE_OK) return {};
      return std::unexpected(failure());
    }

    const RemoteTable* table;
    wavejit_remote_result raw{};
  };

  static wavejit_remote_name name_of(const cache::Digest& digest, const std::string& target_id) {
    return {.size = sizeof(wavejit_remote_name),
            .digest = digest.bytes.data(),
            .target_id = target_id.c_str(),
            .entry_format = cache::entry_format_version,
            .reserved = 0};
  }

  const RemoteTable* table_;
  wavejit_remote_store* store_;
};

std::expected<const RemoteTable*, std::string> open_remote_table() {
  const auto library = open_beside(remote_library_name);
  if (!library) {
    return std::unexpected("its library cannot be loaded (" + library.error() + "); accepted: " + remote_library_name +
                           " beside libwavejit.so");
  }
  const auto get = function_of<wavejit_remote_table_function>(*library, "wavejit_remote_table");
  const RemoteTable* table = get != nullptr ? get(WAVEJIT_REMOTE_ABI) : nullptr;
  if (table == nullptr || table->abi != WAVEJIT_REMOTE_ABI) {
    return std::unexpected(std::string(remote_library_name) + " does not speak version " +
                           std::to_string(WAVEJIT_REMOTE_ABI) +
                           " of our interface; accepted: the one installed with this libwavejit.so");
  }
  return table;
}

std::unexpected<std::string> not_used(const cache::RemoteAddress& address, const std::string& why) {
  return std::unexpected("the remote layer " + cache::to_text(address) + " is not used: " + why);
}

const char* text_of(const std::optional<std::string>& text) { return text ? text->c_str() : nullptr; }

}  // namespace

std::expected<cache::RemoteOptions, std::string> open_remote(const Config& config) {
  if (!config.cache_remote.value) return cache::RemoteOptions{};
  const cache::RemoteAddress& address = *config.cache_remote.value;
  const std::string& key_file = config.cache_remote_key_file.value;
  if (key_file.empty()) {
    return not_used(address,
                    "there is no key to check its entries with (WAVEJIT_CACHE_REMOTE_KEY_FILE). Whoever can write to "
                    "that server could otherwise run code on this machine's GPUs; accepted: " +
                        std::string(cache::accepted_remote_keys));
  }
  auto key = cache::read_remote_key(cache::posix_io(), key_file);
  if (!key) {
    return not_used(address, "the key in " + key.error() + "; accepted: " + std::string(cache::accepted_remote_keys));
  }
  const auto table = open_remote_table();
  if (!table) {
    ::explicit_bzero(key->data(), key->size());
    return not_used(address, table.error());
  }
  const bool by_name = !address.host.empty();
  const wavejit_remote_options options = {
      .size = sizeof options,
      .host = by_name ? address.host.c_str() : nullptr,
      .socket_path = by_name ? nullptr : address.socket_path.c_str(),
      .user = text_of(address.user),
      .password = text_of(address.password),
      .authorities = address.tls ? config.cache_remote_authorities.value.c_str() : nullptr,
      .port = address.port,
      .database = address.database,
      .key = key->data(),
      .key_bytes = key->size(),
      .connect_timeout_ms =
          static_cast<std::uint32_t>(config.cache_remote_connect_timeout.value / nanoseconds_per_millisecond),
      .answer_timeout_ms = static_cast<std::uint32_t>(config.cache_remote_timeout.value / nanoseconds_per_millisecond),
      .max_entry_bytes = cache::max_entry_bytes};
  std::array<char, 256> error{};
  wavejit_remote_store* store = (*table)->create(&options, error.data(), error.size());
  ::explicit_bzero(key->data(), key->size());
  if (store == nullptr) return not_used(address, error.data());
  cache::RemoteOptions remote;
  remote.name = cache::to_text(address) + " (key " + (*table)->key_id(store) + ")";
  remote.store = std::make_shared<LibraryStore>(*table, store);
  return remote;
}

cache::RemoteOptions open_remote_or_warn(const Config& config, Logger& logger) {
  auto remote = open_remote(config);
  if (remote) return *std::move(remote);
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::scoped_lock lock(mutex);
  if (told.insert(remote.error()).second) logger.write(LogLevel::warning, "cache: " + remote.error());
  return {};
}

}  // namespace wavejit::runtime
