// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The one symbol of libwavejit_remote.so: a versioned table of C functions.
 *
 * libwavejit.so opens the library when a remote layer is configured and not otherwise, asks
 * wavejit_remote_table(WAVEJIT_REMOTE_ABI) and calls through the table. hiredis and libcrypto live behind it, static
 * and hidden: a host's own copies of either are never met.
 *
 * Entries are bytes here; what they say is the cache's to check. Every entry is sealed with a key that both ends know,
 * over its name and all of its bytes (seal.h). Somebody who can write to the server can take entries away, but can
 * neither make one nor pass one off as another.
 *
 * Thread safety: every function may be called from any thread. Nothing waits longer than the times of the options say.
 */
#ifndef WAVEJIT_REMOTE_API_H
#define WAVEJIT_REMOTE_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WAVEJIT_REMOTE_ABI 2

typedef struct wavejit_remote_store wavejit_remote_store;

enum wavejit_remote_status {
  WAVEJIT_REMOTE_OK = 0,
  WAVEJIT_REMOTE_ABSENT = 1,  /* the server answers and has no such entry */
  WAVEJIT_REMOTE_DAMAGED = 2, /* an answer that is no entry of this name under this key */
  WAVEJIT_REMOTE_FAULT = 3    /* no answer in time, or a refusal */
};

struct wavejit_remote_options {
  size_t size;
  const char* host;        /* a name or an address; null with a socket path */
  const char* socket_path; /* of a Unix socket; null with a host */
  const char* user;        /* null: the server's default user */
  const char* password;    /* null: none is sent */
  const char* authorities; /* of TLS, which host's certificate must be of: a PEM file; "": the system's; null: no TLS */
  int32_t port;
  int32_t database;
  const unsigned char* key; /* of the seal; copied */
  size_t key_bytes;
  uint32_t connect_timeout_ms; /* until a connection may be used: name, connection, TLS, AUTH and SELECT */
  uint32_t answer_timeout_ms;  /* from the command's first byte to the answer's last */
  uint64_t max_entry_bytes;    /* larger answers are damaged ones and not read to their end */
};

struct wavejit_remote_name {
  size_t size;
  const unsigned char* digest; /* 32 bytes */
  const char* target_id;
  uint32_t entry_format;
  uint32_t reserved;
};

struct wavejit_remote_result {
  size_t size;
  int32_t status; /* enum wavejit_remote_status */
  int32_t reserved;
  char detail[256];     /* one line for people unless the status is OK */
  unsigned char* bytes; /* of fetch: back by release() */
  size_t byte_count;
};

/* `digest` (32 bytes) and `target_id` are valid during the call; 0 ends the listing. */
typedef int32_t (*wavejit_remote_list_callback)(void* context, const unsigned char* digest, const char* target_id);

struct wavejit_remote_table {
  uint32_t abi;
  uint32_t reserved;
  /* Null on failure, with the reason in `error` (cut to error_capacity). Connects to nothing yet. */
  wavejit_remote_store* (*create)(const struct wavejit_remote_options* options, char* error, size_t error_capacity);
  /* No call may be under way. */
  void (*destroy)(wavejit_remote_store* store);
  /* Which key a store seals with: 16 hexadecimal digits that tell nothing of it. Entries of other keys are not seen. */
  const char* (*key_id)(const wavejit_remote_store* store);
  /* All fill *result, which goes back to release(). */
  void (*fetch)(wavejit_remote_store* store, const struct wavejit_remote_name* name,
                struct wavejit_remote_result* result);
  void (*keep)(wavejit_remote_store* store, const struct wavejit_remote_name* name, const unsigned char* bytes,
               size_t byte_count, struct wavejit_remote_result* result);
  void (*ask)(wavejit_remote_store* store, struct wavejit_remote_result* result);
  /* Every entry's name of this key and format. */
  void (*list)(wavejit_remote_store* store, uint32_t entry_format, wavejit_remote_list_callback name, void* context,
               struct wavejit_remote_result* result);
  void (*release)(struct wavejit_remote_result* result);
  /* From now on every call ends at once with a fault, those under way too. For the end of a process. */
  void (*interrupt)(wavejit_remote_store* store);
};

typedef const struct wavejit_remote_table* (*wavejit_remote_table_function)(uint32_t abi);

/* Null when the library does not speak `abi`. */
__attribute__((visibility("default"))) const struct wavejit_remote_table* wavejit_remote_table(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
