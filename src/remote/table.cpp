// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C table over the store: structs checked, exceptions stopped.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "remote/remote_api.h"
#include "remote/store.h"

struct wavejit_remote_store {
  wavejit::remote::Store store;
};

namespace wavejit::remote {
namespace {

void copy_text(char* to, std::size_t capacity, std::string_view text) {
  if (capacity == 0) return;
  const std::size_t length = std::min(capacity - 1, text.size());
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

wavejit_remote_store* create(const wavejit_remote_options* options, char* error, std::size_t error_capacity) {
  try {
    if (options->size != sizeof *options) {
      copy_text(error, error_capacity, "options.size is not that of this version");
      return nullptr;
    }
    auto seal = Seal::make({options->key, options->key_bytes});
    if (!seal) {
      copy_text(error, error_capacity, seal.error());
      return nullptr;
    }
    const auto text = [](const char* one) { return std::string(one != nullptr ? one : ""); };
    Server server = {.host = text(options->host),
                     .port = options->port,
                     .socket_path = text(options->socket_path),
                     .user = {},
                     .password = {},
                     .database = options->database,
                     .trust = {},
                     .connect_timeout = std::chrono::milliseconds(options->connect_timeout_ms),
                     .answer_timeout = std::chrono::milliseconds(options->answer_timeout_ms),
                     .max_entry_bytes = options->max_entry_bytes};
    if (options->authorities != nullptr) {
      auto trust = Trust::of(options->authorities);
      if (!trust) {
        copy_text(error, error_capacity, trust.error());
        return nullptr;
      }
      server.trust = *std::move(trust);
    }
    if (options->user != nullptr) server.user = options->user;
    if (options->password != nullptr) server.password = options->password;
    return new wavejit_remote_store{.store = Store(std::move(server), *std::move(seal))};
  } catch (const std::exception& failure) {
    copy_text(error, error_capacity, failure.what());
    return nullptr;
  }
}

void destroy(wavejit_remote_store* store) { delete store; }

const char* key_id(const wavejit_remote_store* store) { return store->store.key_id().c_str(); }

Name name_of(const wavejit_remote_name& name) {
  Name own{.digest = {}, .target_id = name.target_id, .entry_format = name.entry_format};
  std::copy_n(name.digest, own.digest.size(), own.digest.begin());
  return own;
}

void answer(wavejit_remote_result& result, wavejit_remote_status status, std::string_view detail) {
  result.status = status;
  copy_text(result.detail, sizeof result.detail, detail);
}

template <typename Work>
void guarded(wavejit_remote_result* result, Work work) {
  result->bytes = nullptr;
  result->byte_count = 0;
  answer(*result, WAVEJIT_REMOTE_OK, "");
  try {
    const Result<void> done = work();
    if (!done) answer(*result, done.error().status, done.error().what);
  } catch (const std::exception& failure) {
    answer(*result, WAVEJIT_REMOTE_FAULT, failure.what());
  }
}

void fetch(wavejit_remote_store* store, const wavejit_remote_name* name, wavejit_remote_result* result) {
  guarded(result, [&]() -> Result<void> {
    const auto entry = store->store.fetch(name_of(*name));
    if (!entry) return std::unexpected(entry.error());
    auto* bytes = static_cast<unsigned char*>(std::malloc(std::max<std::size_t>(entry->size(), 1)));
    if (bytes == nullptr) return fault("out of memory");
    std::ranges::copy(*entry, bytes);
    result->bytes = bytes;
    result->byte_count = entry->size();
    return {};
  });
}

void keep(wavejit_remote_store* store, const wavejit_remote_name* name, const unsigned char* bytes,
          std::size_t byte_count, wavejit_remote_result* result) {
  guarded(result, [&] { return store->store.keep(name_of(*name), {bytes, byte_count}); });
}

void ask(wavejit_remote_store* store, wavejit_remote_result* result) {
  guarded(result, [&] { return store->store.ask(); });
}

void list(wavejit_remote_store* store, std::uint32_t entry_format, wavejit_remote_list_callback callback, void* context,
          wavejit_remote_result* result) {
  guarded(result, [&] {
    return store->store.list(entry_format, [&](const Name& name) {
      return callback(context, name.digest.data(), name.target_id.c_str()) != 0;
    });
  });
}

void release(wavejit_remote_result* result) {
  std::free(result->bytes);
  result->bytes = nullptr;
  result->byte_count = 0;
}

void interrupt(wavejit_remote_store* store) { store->store.interrupt(); }

}  // namespace
}  // namespace wavejit::remote

extern "C" const struct wavejit_remote_table* wavejit_remote_table(std::uint32_t abi) {
  using namespace wavejit::remote;
  static const struct wavejit_remote_table functions = {.abi = WAVEJIT_REMOTE_ABI,
                                                        .reserved = 0,
                                                        .create = create,
                                                        .destroy = destroy,
                                                        .key_id = key_id,
                                                        .fetch = fetch,
                                                        .keep = keep,
                                                        .ask = ask,
                                                        .list = list,
                                                        .release = release,
                                                        .interrupt = interrupt};
  return abi == WAVEJIT_REMOTE_ABI ? &functions : nullptr;
}
