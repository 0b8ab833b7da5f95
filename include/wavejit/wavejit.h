// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* clang-format off */
/* wavejit/wavejit.h: attention kernels for AMD GPUs, emitted at the first call that needs them.
 *
 * A complete program (C99; error checks after the first are left out):
 *
 *   #include <stdio.h>
 *   #include <wavejit/wavejit.h>
 *
 *   int main(void) {
 *     struct wavejit_engine_options options = {.size = sizeof options, .device = "sim:gfx950"};
 *     wavejit_engine* engine = NULL;
 *     if (wavejit_engine_create(&options, &engine) != WAVEJIT_OK) return fprintf(stderr, "%s\n", wavejit_last_detail()), 1;
 *     void* memory[4];                                    // q, k, v, o: [1, 256, 8, 128] in fp16
 *     for (int i = 0; i < 4; ++i) wavejit_device_allocate(engine, 256 * 8 * 128 * 2, &memory[i]);
 *     struct wavejit_attention_forward_arguments call = {  // scale 0: 1 / sqrt(128)
 *         .head = {.size = sizeof call, .family = WAVEJIT_ATTENTION_FORWARD}};
 *     struct wavejit_tensor* tensors[4] = {&call.q, &call.k, &call.v, &call.o};
 *     for (int i = 0; i < 4; ++i) *tensors[i] = wavejit_dense_tensor(memory[i], WAVEJIT_FP16, 1, 256, 8, 128);
 *     if (wavejit_attention_forward(engine, &call, NULL) != WAVEJIT_OK) fprintf(stderr, "%s\n", wavejit_last_detail());
 *     wavejit_device_synchronize(engine);
 *     wavejit_engine_destroy(engine);
 *   }
 *
 * Conventions
 *   Statuses   Every function that can fail returns wavejit_status; numbers are stable for ever. The sentence that names
 *              the field, the value and what would be accepted is wavejit_last_detail(), per thread.
 *   Sizes      Structs begin with their size as the caller compiled it: set `.size = sizeof x` and zero the rest. Calls
 *              begin with a head, which also names their family. A field that is zero means "the default".
 *   Threads    An engine may be used from any thread at once. Destroying it while calls are under way is the caller's bug.
 *   Streams    `stream` is a hipStream_t (struct ihipStream_t*) of the engine's device; NULL is the default stream of the
 *              engine's device, whatever device is current. Calls launch asynchronously; device memory must stay valid
 *              until the stream has passed the launch. The calling thread's current device is left as it was.
 *   Cost       A call whose kernel is loaded takes no lock, makes no system call and allocates nothing
 *              (one that splits keys: when the caller gives the workspace, docs/split-keys.md; one that merges in one
 *              launch: but for the first behind captures that took half of the engine's reserve of counters. That one
 *              allocates another reserve, clears it and waits for it).
 */
/* clang-format on */
#ifndef WAVEJIT_WAVEJIT_H
#define WAVEJIT_WAVEJIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WAVEJIT_API __attribute__((visibility("default")))
#else
#define WAVEJIT_API
#endif

struct ihipStream_t; /* HIP's stream; hipStream_t is a pointer to it */

typedef struct wavejit_engine wavejit_engine;

/* ---- Statuses ---------------------------------------------------------------------------------------------------- */

typedef enum wavejit_status {
  WAVEJIT_OK = 0,
  WAVEJIT_INVALID_ARGUMENT = 1, /* a field of the call cannot be right, whatever the device */
  WAVEJIT_UNSUPPORTED = 2,      /* right, but no kernel of this version and target does it */
  WAVEJIT_NO_DEVICE = 3,        /* the device asked for is not there */
  WAVEJIT_COMPILE_FAILED = 4,   /* the compiler refused, crashed (contained) or ran out of time */
  WAVEJIT_NO_COMPILER = 5,      /* the kernel is not in the cache and libwavejit_codegen.so cannot be loaded */
  WAVEJIT_LAUNCH_FAILED = 6,    /* HIP refused to load or launch; the detail has HIP's error */
  WAVEJIT_OUT_OF_MEMORY = 7,
  WAVEJIT_IO_ERROR = 8, /* a file named by the caller; the cache never fails a call */
  WAVEJIT_NOT_FOUND = 9,
  WAVEJIT_DEVICE_ERROR = 10, /* a HIP call other than a launch failed, or an earlier kernel did; the detail names it */
  WAVEJIT_INTERNAL = 11,
  WAVEJIT_NOT_READY = 12, /* the kernel is not loaded and cannot be now: the stream is being captured, or the call's
                             flags have WAVEJIT_NO_COMPILE (docs/serving.md) */
  WAVEJIT_SEALED = 13     /* the kernel is not loaded and the engine is sealed; the detail has the line to prebuild */
} wavejit_status;

/* "invalid argument", …; never null. */
WAVEJIT_API const char* wavejit_status_text(wavejit_status status);
/* One line about the last failure of a wavejit function on this thread; "" if there was none. Valid until this
 * thread's next call. */
WAVEJIT_API const char* wavejit_last_detail(void);
/* "0.1.0" */
WAVEJIT_API const char* wavejit_version(void);

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

typedef enum wavejit_dtype {
  WAVEJIT_DTYPE_NONE = 0,
  WAVEJIT_FP16 = 1,
  WAVEJIT_BF16 = 2,
  WAVEJIT_FP32 = 3,
  /* 8 bits: sign, exponent of 4 or 5, mantissa of 3 or 2. What frameworks call float8_e4m3fn
   * and float8_e5m2, which gfx950 reads; and float8_e4m3fnuz and float8_e5m2fnuz, which gfx942 reads. A byte of the
   * latter is half of what it is in the former, and 0x80 is NaN. */
  WAVEJIT_E4M3 = 4,
  WAVEJIT_E5M2 = 5,
  WAVEJIT_E4M3_FNUZ = 6,
  WAVEJIT_E5M2_FNUZ = 7,
  WAVEJIT_INT8 = 8 /* two's complement */
} wavejit_dtype;

/* A tensor in device memory. Logical order is always [batch, length, heads, head dim], whatever the strides say about
 * where things lie (BSHD, BHSD and anything between). Strides are in elements. The last stride is 1; the others are
 * positive multiples of 8, or, of what attention only reads, 0: what all batches, rows or heads share lies there once.
 * `data` is 16-byte aligned. One batch slice, of packed tensors one sequence, must span less than 4 GiB (256 rows of tile
 * overrun included); the tensor may be larger. The stride of a dimension with one element is never used and may be anything.
 * wavejit_attention_forward takes more: see there. */
struct wavejit_tensor {
  void* data;
  int32_t dtype;    /* enum wavejit_dtype */
  int32_t reserved; /* 0. Calls are compared byte by byte, so they have no padding of the compiler's */
  int64_t sizes[4];
  int64_t strides[4];
};

/* A text for people or for wavejit itself, one line of it: `line` is valid during the call only. */
typedef void (*wavejit_line_callback)(void* context, const char* line);

/* ---- Engine ------------------------------------------------------------------------------------------------------ */

typedef enum wavejit_origin {
  WAVEJIT_ORIGIN_NONE = 0,
  WAVEJIT_ORIGIN_MEMORY = 1,
  WAVEJIT_ORIGIN_DISK = 2,
  WAVEJIT_ORIGIN_COMPILED = 3
} wavejit_origin;

/* A kernel that an engine had to fetch or compile: what a serving engine's monitor wants to hear of. Texts are valid
 * during the callback only. */
struct wavejit_compile_event {
  size_t size;
  const char* descriptor;  /* the problem that asked for it: a line for `wavejit prebuild` */
  const char* kernel_spec; /* canonical text */
  const char* key;         /* digest of the key text, hex; "" when there is none */
  int32_t origin;          /* enum wavejit_origin: DISK, COMPILED; NONE when it failed */
  int32_t status;          /* WAVEJIT_OK, or what the call answered */
  const char* detail;      /* null, or why it failed */
  uint64_t thread;         /* the kernel's id of the thread that did the work (gettid), on which the callback runs */
  uint64_t route_ns;       /* phases as in wavejit_call_report */
  uint64_t lookup_ns;
  uint64_t emit_ns;
  uint64_t lower_ns;
  uint64_t link_ns;
  uint64_t inspect_ns;
  uint64_t publish_ns;
  uint64_t load_ns;
};
/* Called after the work, on the thread that did it, before the call that needed the kernel launches; from several
 * threads at once when several work. No lock is held: every function of this header may be called, also on the same
 * engine; a miss inside a callback is told by a nested callback. While it runs, its own call waits and no other. What
 * it throws is dropped, with a log line. */
typedef void (*wavejit_compile_callback)(void* context, const struct wavejit_compile_event* event);

/* Device memory for workspaces from the caller instead of hipMalloc: at least `bytes`, aligned to 256, of the engine's
 * device; null: there is none. `stream` is that of the call which needs it. Called by a
 * call that splits keys without a workspace of its own, when the engine's is missing or too small; from any thread;
 * never while the stream is captured. No lock is held in either function. */
typedef void* (*wavejit_allocate_callback)(void* context, size_t bytes, struct ihipStream_t* stream);
/* Takes back what the other gave; the work that used it may still be in its stream. */
typedef void (*wavejit_release_callback)(void* context, void* memory, size_t bytes, struct ihipStream_t* stream);

typedef enum wavejit_log_level {
  WAVEJIT_LOG_ERROR = 1,
  WAVEJIT_LOG_WARNING = 2,
  WAVEJIT_LOG_INFO = 3,
  WAVEJIT_LOG_DEBUG = 4
} wavejit_log_level;
/* A log line without its end, of a level that log_level lets through; `line` is valid during the call only. From any
 * thread, and from several at once. It must not call functions of this library. */
typedef void (*wavejit_log_callback)(void* context, int32_t level, const char* line);

/* Null or zero fields take the environment's value, then the default; a field that is set wins over the environment. */
struct wavejit_engine_options {
  size_t size;
  const char* device; /* "hip" (default), "hip:<ordinal>", "sim:<target>[x<N>[:<ordinal>]]"     WAVEJIT_DEVICE */
  const char*
      cache_directory;      /* default $XDG_CACHE_HOME/wavejit, else ~/.cache/wavejit              WAVEJIT_CACHE_DIR */
  const char* cache_mode;   /* "off" (refused beside cache_layers), "ro", "rw" (default)               WAVEJIT_CACHE */
  const char* lowering;     /* "llvm" (default), "comgr"                                            WAVEJIT_LOWERING */
  const char* compile;      /* "inprocess" (default), "isolated"                                     WAVEJIT_COMPILE */
  const char* log_level;    /* "off", "error", "warning" (default), "info", "debug"                WAVEJIT_LOG_LEVEL */
  const char* pipeline;     /* "auto" (default), "generic", "dualwave", "interleaved"; behind it words for developers
                               (docs/environment.md): "dualwave stagger=off"                    WAVEJIT_PIPELINE */
  const char* kv_splits;    /* "auto" (default) or a number: of calls that do not say             WAVEJIT_KV_SPLITS */
  const char* cache_layers; /* read-only folders and archives, with ':' between, asked first   WAVEJIT_CACHE_LAYERS */
  const char* cache_limit;  /* of cache_directory: "1GiB" (default), "512MiB", "none"           WAVEJIT_CACHE_LIMIT */
  const char* cache_lock_wait; /* milliseconds for a process that compiles the same: "10000"  WAVEJIT_CACHE_LOCK_WAIT */
  const char* miss_log; /* a file that gains a line a kernel that was not there; default none  WAVEJIT_MISS_LOG */
  wavejit_compile_callback on_compile; /* null: nobody is told */
  void* on_compile_context;
  wavejit_allocate_callback allocate; /* null: hipMalloc; both or neither */
  wavejit_release_callback release;
  void* allocator_context;
  const char* cache_remote; /* what a fleet shares: "rediss://[[user]:password@]host[:port][/db]" (TLS), "redis://…"
                               with the same, "unix:///path" of a socket; needs a key WAVEJIT_CACHE_REMOTE */
  const char* cache_remote_key_file;        /* its key, in hexadecimal            WAVEJIT_CACHE_REMOTE_KEY_FILE */
  const char* cache_remote_connect_timeout; /* milliseconds: "200"         WAVEJIT_CACHE_REMOTE_CONNECT_TIMEOUT */
  const char* cache_remote_timeout;         /* the same, for one answer: "500"     WAVEJIT_CACHE_REMOTE_TIMEOUT */
  wavejit_log_callback on_log;              /* null: lines go to standard error */
  void* on_log_context;
  const char* cache_packaged; /* "on" (default): kernels that were installed with this library are asked behind
                                 cache_layers; "off"                                        WAVEJIT_CACHE_PACKAGED */
  const char* cache_remote_authorities; /* of rediss://: a PEM file of certificates that count; default the system's
                                                                             WAVEJIT_CACHE_REMOTE_AUTHORITIES */
};

WAVEJIT_API wavejit_status wavejit_engine_create(const struct wavejit_engine_options* options, wavejit_engine** engine);
/* Null is allowed. Loaded kernels are unloaded; the stream's work must have ended. */
WAVEJIT_API void wavejit_engine_destroy(wavejit_engine* engine);
/* Waits for the device and gives back the engine's own workspaces, also those that were outgrown; calls make new ones
 * when they need them. For an engine that has been idle, or that shares the device with others; not while a stream of
 * the device is captured. */
WAVEJIT_API wavejit_status wavejit_engine_trim(wavejit_engine* engine);
/* "gfx950" and a name for people; valid as long as the engine. */
WAVEJIT_API const char* wavejit_engine_target(const wavejit_engine* engine);
WAVEJIT_API const char* wavejit_engine_device_name(const wavejit_engine* engine);

/* ---- The call ---------------------------------------------------------------------------------------------------- */

/* Bits. Row i of a sequence stands at key i + Sk - Sq, its diagonal (aligned bottom-right: the last row at the last
 * key); with PREFIX at key i + causal_prefix. */
typedef enum wavejit_mask {
  WAVEJIT_MASK_NONE = 0,
  WAVEJIT_MASK_CAUSAL = 1, /* a row sees the keys up to its diagonal */
  WAVEJIT_MASK_WINDOW = 2, /* a row sees the keys from diagonal - window_left to diagonal + window_right */
  WAVEJIT_MASK_PREFIX = 4, /* the diagonal begins at key causal_prefix: that many keys precede row 0's own */
  WAVEJIT_MASK_CHUNKED = 8 /* with CAUSAL, without WINDOW, of attention_forward: positions are cut into chunks of
                              local_chunk keys, and a row sees the keys of its diagonal's chunk only */
} wavejit_mask;

/* How a head's part of a page is laid out (wavejit_attention_forward_arguments has the strides). */
typedef enum wavejit_page_layout {
  WAVEJIT_PAGES_OF_ROWS = 0,        /* a key's dims side by side: NHD, HND, pools of tokens */
  WAVEJIT_PAGES_VECTORISED = 1,     /* K by 8 dims, V by dims: its keys side by side */
  WAVEJIT_PAGES_VECTORISED_KEYS = 2 /* K by 8 dims, V by 8 keys */
} wavejit_page_layout;

/* Where scores of WAVEJIT_INT8 are rounded. */
typedef enum wavejit_score_rounding {
  WAVEJIT_SCORES_IN_FP32 = 0,
  WAVEJIT_SCORES_IN_FP16 = 1 /* as rocMLIR has them: scale · score + bias in fp32, rounded to fp16, then the softmax */
} wavejit_score_rounding;

/* Where rows of a latent cache have scales of their own (docs/low-precision.md). Two layouts have rows of 584 bytes:
 * exponents after each row, or after the whole page. Only the second is supported, and this word confirms it. */
typedef enum wavejit_row_scales {
  WAVEJIT_ROWS_AS_TYPED = 0,        /* of 656 bytes: in the rows, which nothing else can be */
  WAVEJIT_SCALES_IN_ROWS = 1,       /* of 656 bytes: four of fp32 between latent and rope */
  WAVEJIT_EXPONENTS_BEHIND_ROWS = 2 /* of 584 bytes: 576 of each row of a page, then 8 of E8M0 for each */
} wavejit_row_scales;

/* Bits of wavejit_call_head::flags. */
typedef enum wavejit_call_flags {
  /* Debugging: copy query_starts, key_starts, key_lengths, first_keys, table_starts, the live entries of block_table
   * and lists of blocks to the host before the launch and refuse what they must not be (descending, beyond the tensors,
   * longer than the maxima, no page of the cache). Waits for the stream. Without it nothing is copied, and wrong values
   * give wrong results but never an access outside the tensors. */
  WAVEJIT_CHECK_LENGTHS = 1,
  /* With lists of key blocks, a hint, which shows in no bit: neighbouring lists share most of their blocks. */
  WAVEJIT_LISTS_ALIKE = 2,
  /* `scale` is 0 and means it: every key has the same weight. Without it a scale of 0 is the default. */
  WAVEJIT_SCALE_IS_ZERO = 4,
  /* A call whose kernel is not loaded answers WAVEJIT_NOT_READY: nothing is looked for on disk or compiled, and the
   * caller can use another kernel. WAVEJIT_UNSUPPORTED and failures that are known stay what they are. */
  WAVEJIT_NO_COMPILE = 8,
  /* With WAVEJIT_NO_COMPILE: a thread of the engine meanwhile fetches or compiles the kernel and loads it, as
   * wavejit_prepare would, so that a later call finds it. One kernel at a time; destroying the engine waits for the
   * one that is under way. */
  WAVEJIT_COMPILE_BEHIND = 16,
  /* Keys that are split leave parts, which must be merged. WAVEJIT_ONE_LAUNCH: the last workgroup to arrive merges them.
   * WAVEJIT_TWO_LAUNCHES: a second launch does. Neither: wavejit chooses, and explain shows which. No bit depends on it.
   * Both flags together are refused. Where keys are not split, caches have 8 bits, or a call has lists of two caches,
   * they change nothing. Workgroups count
   * their arrivals in memory of the engine. A call that is captured has counters of its own as long as the engine
   * lives, so that its graph may be replayed beside all others; where none are left (the reserve of 65,536 is filled up
   * at the next call that is not captured) two launches merge. Replays of one graph share a workspace, as calls that
   * are given the same do, and counters: one must not begin before the other has ended, even over the same inputs. Each
   * would merge what the other has counted and nobody has stored yet. attention_latent has these flags, and
   * attention_forward, which merges in one launch only where heads of a kv head are packed (docs/split-keys.md). */
  WAVEJIT_ONE_LAUNCH = 32,
  WAVEJIT_TWO_LAUNCHES = 64,
  /* For attention_forward: the bias is a mask, most of which hides or is open. Tiles of 64 keys of which a block of 64
   * rows has nothing but −inf are not walked, those of nothing but 0 are walked without it, others have it added; no
   * bit depends on it, where V is finite. Two launches more, which read the bias once on the device and make walks of
   * it in the workspace; keys are not split. Of up to 32 rows, whose keys may be, the flag changes nothing. With
   * `bias`, dense or packed keys of 16 bits; beside lists, pages, first_keys, local chunks and causal_flags
   * WAVEJIT_UNSUPPORTED (docs/sparse.md). */
  WAVEJIT_BIAS_BY_TILE = 128
} wavejit_call_flags;

/* What a call did, filled when the caller asks for it. Phases that did not happen are 0. A call of several kernels has
 * spec and key of its first: of one that splits keys, the kernel that walks them ("… split=1024 …"). The origin is the
 * latest of all in the order below. Kernels are made side by side: the phases are those of the thread that took
 * longest, so that together they are what the caller waited. */
struct wavejit_call_report {
  size_t size;
  char kernel_spec[512]; /* canonical text */
  char key[65];          /* digest of the key text, hex */
  int32_t origin;        /* enum wavejit_origin: where the kernel came from */
  uint64_t route_ns;
  uint64_t lookup_ns; /* cache: find, read, verify */
  uint64_t emit_ns;
  uint64_t lower_ns;
  uint64_t link_ns;
  uint64_t inspect_ns;
  uint64_t publish_ns;
  uint64_t load_ns; /* HIP module load */
  uint64_t launch_ns;
};

/* ---- Parts of calls ------------------------------------------------------------------------------------------------
 * Every call is a struct of its family, made of the parts below, which mean in each family what they mean here. A part
 * has fields that some family's calls do not have: they stay 0, and anything else in them (in a tensor: its data) is
 * refused by name. Zero is the default of every field. Refusals name fields as Python does: mask is mask.bits, sequences
 * is sequences.count, key_indices and key_counts are key_list's, second_indices and second_top_k are second_list's. */

typedef enum wavejit_family {
  WAVEJIT_FAMILY_NONE = 0,
  WAVEJIT_ATTENTION_FORWARD = 1,
  WAVEJIT_ATTENTION_BACKWARD = 2,
  WAVEJIT_ATTENTION_LATENT = 3,
  WAVEJIT_ATTENTION_MERGE = 4,
  WAVEJIT_SOFTMAX_LSE = 5,
  WAVEJIT_SPARSE_INDEXER = 6,
  WAVEJIT_CACHE_APPEND = 7
} wavejit_family;

/* How every call begins. A call of attention_forward, for example:
 *
 *   struct wavejit_attention_forward_arguments call = {
 *       .head = {.size = sizeof call, .family = WAVEJIT_ATTENTION_FORWARD}};
 */
struct wavejit_call_head {
  size_t size;                        /* of the whole struct of the call */
  int32_t family;                     /* enum wavejit_family: whose struct it is */
  uint32_t flags;                     /* enum wavejit_call_flags */
  struct wavejit_call_report* report; /* null: not wanted */
};

/* Which keys a row sees. Causal rows with a sliding window of 4,096 keys, for example:
 *
 *   call.mask.bits = WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW;
 *   call.mask.window_left = 4095;
 */
struct wavejit_masking {
  int32_t bits;          /* enum wavejit_mask */
  int32_t window_left;   /* ≥ 0, or −1 for no limit; with WAVEJIT_MASK_WINDOW only */
  int32_t window_right;  /* likewise; with WAVEJIT_MASK_CAUSAL too no key beyond the diagonal is seen */
  int32_t local_chunk;   /* 1 … 2^30; with WAVEJIT_MASK_CHUNKED only */
  int64_t causal_prefix; /* 0 … Sk; with WAVEJIT_MASK_PREFIX only */
  /* Device memory, [B], bool or int8; with WAVEJIT_MASK_CAUSAL alone or beside PREFIX. Rows of a sequence whose byte is
   * 0 have no diagonal: they see all keys. Bits are those of calls of their own. Null: all have one. */
  const uint8_t* causal_flags;
};

/* What becomes of scores, in this order, before the mask (x = scale · q·k):
 *   softcap  x ← softcap · tanh(x / softcap), up to 32,768: of a larger one fp32 would lose x, and it is refused
 *   bias     x ← x + bias[b, h, i, j]: dtype of q or fp32, sizes [B or 1, Hq or 1, Sq, Sk]; packed: [1, Hq or 1, total,
 *            max_key_length]. Strides multiples of 8 or 0, Sk rounded up to one readable in every row; −inf hides a
 *            key, and a finite number never does (in bf16 and fp32 what is beyond ±2.353e38 counts as that: a row of
 *            nothing but the least number has the mean of V, and a key with the greatest all of its row's weight);
 *            +inf and NaN make their row NaN; what stands at hidden keys and in the padding does not matter
 *   score_rounding  beside q and k of WAVEJIT_INT8, without softcap and alibi: x is rounded to fp16
 *   alibi    x ← x − slope · |j − diagonal(i)|: fp32 slopes, [B or 1, Hq, 1, 1], the Hq of one batch side by side;
 *            slopes beyond ±2^96, infinite ones too, count as that: the nearest key that the row sees has all of its
 *            weight, or the farthest one below −2^96
 *   sink     one more logit a row, which takes its share of the softmax and has no value: fp32, [1, Hq, 1, 1],
 *            contiguous. LSE includes it: a row that sees no key has LSE = sink and O = 0, and so has every
 *            row beside a sink that is far above its scores, inf too; −inf is none
 */
struct wavejit_modifiers {
  float scale;                /* any finite value; 0: 1 / sqrt(D), unless WAVEJIT_SCALE_IS_ZERO is in flags */
  float softcap;              /* up to 32,768; 0: none */
  int64_t score_rounding;     /* enum wavejit_score_rounding */
  struct wavejit_tensor bias; /* data null: none; likewise of alibi, sink and bool_mask */
  struct wavejit_tensor alibi;
  struct wavejit_tensor sink;
  struct wavejit_tensor bool_mask; /* bytes: see wavejit_attention_forward_arguments */
};

/* How many sequences there are and how long they are. Packed queries, for example, 3 sequences of up to 512 rows:
 *
 *   call.sequences.query_starts = starts;   // device memory, int32 [4]
 *   call.sequences.count = 3;
 *   call.sequences.max_query_length = 512;
 */
struct wavejit_sequences {
  const int32_t* query_starts; /* device memory, [count + 1], from 0, ascending; null: dense */
  const int32_t* key_starts;   /* likewise for k and v */
  const int32_t* key_lengths;  /* device memory, [B]: how many keys of each sequence count, from its first; null: all */
  const int32_t* first_keys;   /* device memory, [B]: left padding, where key 0 of a sequence stands; null: at the
                                  first row or slot. Not beside key_starts */
  int64_t count;               /* B when queries or keys are packed; else 0 or B */
  int64_t max_query_length;    /* of packed queries: the longest sequence, which spans less than 4 GiB; else 0 */
  int64_t max_key_length;      /* of packed keys, likewise, and of keys in pages: the longest sequence; else 0 */
  /* A hint, which shows in no bit: the keys of all sequences together are this many at most. 0: nobody said. With
   * count · max_key_length all may be as long as the longest, and keys are cut as for dense ones. */
  int64_t max_total_keys;
};

/* Keys in pages: the block table (wavejit_attention_forward says how pages lie). Device memory, int32. */
struct wavejit_pages {
  const int32_t* block_table;  /* [B, table_columns], or all sequences' pages one after the other; null: dense keys */
  const int32_t* table_starts; /* [B + 1]: sequence b's pages are block_table[table_starts[b] … [b + 1] − 1]; null:
                                  row b of the table */
  int64_t table_columns;       /* entries of a row, or of the whole list */
  int64_t table_row_stride;    /* elements from row to row; 0: table_columns; 0 with table_starts */
  int64_t page_layout;         /* enum wavejit_page_layout; 0 without block_table */
};

/* A list of keys for each query (docs/sparse.md), as wavejit_sparse_indexer writes it. A query sees the keys that its
 * list names, each as often as it is named. An entry that names no key which mask and lengths show (−1, too) counts for
 * nothing, wherever it stands. indices null: no lists, and the rest is 0. */
struct wavejit_key_list {
  const int32_t* indices; /* device memory, [B · Sq, heads, top_k]; packed queries: [rows of q, …] */
  const int32_t* counts;  /* device memory, [B · Sq, heads]: entries that count; null: all */
  int64_t top_k;          /* 1 … 2^20 */
  int64_t row_stride;     /* in entries, from query to query; 0: heads · top_k */
  int64_t slots; /* 0: an entry is a key's number in its sequence, and block_table says where that stands. 1: it
                             is a slot of the cache, page · page size + key, of k and v [pages, page size, Hkv, D];
                             without block_table, lengths, starts and mask. A page size of 0: there are no slots */
  int64_t heads; /* lists of a query: Hkv, one for each kv head; 0 and 1: all heads have the same */
};

/* Lists of key blocks (docs/sparse.md), of attention_forward. Device memory, int32. Rows of a block of list_rows rows
 * see the blocks of list_keys keys that their list names, and of these what the mask shows. Both lists null: all keys. */
struct wavejit_block_lists {
  const int32_t* list_counts;  /* [list_batches][list_heads][list_row_blocks]: how many entries of a list count */
  const int32_t* list_indices; /* [list_batches][list_heads][list_row_blocks][list_capacity]: numbers of blocks of keys,
                                  ascending; with list_starts all lists one after the other */
  const int32_t* list_starts;  /* in place of list_counts: [list_batches · list_heads · list_row_blocks + 1],
                                  ascending */
  const int32_t* full_counts;  /* the three fields above, of blocks that rows see whole, whatever the mask says */
  const int32_t* full_indices;
  const int32_t* full_starts;
  int64_t list_row_blocks; /* of a head: ceil(longest query / list_rows), or more */
  int64_t list_capacity;   /* entries that a list has room for; with list_starts of all lists together */
  int64_t full_capacity;
  int32_t list_rows;    /* 64 or 128 */
  int32_t list_keys;    /* 64 or 128 */
  int32_t list_batches; /* B, or 1: all sequences have the same lists */
  int32_t list_heads;   /* Hq, Hkv, or 1: all heads have the same */
};

/* Scales of tensors of 8 bits, fp32 in device memory; the families say what sizes they have. data null: 1. */
struct wavejit_scales {
  struct wavejit_tensor k_scale;
  struct wavejit_tensor v_scale;
  struct wavejit_tensor q_scale;
  int32_t token_scales; /* 1: each token of each kv head has scales of its own (docs/low-precision.md) */
  int32_t row_scales;   /* enum wavejit_row_scales, of latent caches */
};

/* The scale of an o of 8 bits: WAVEJIT_E4M3, WAVEJIT_INT8, and WAVEJIT_E4M3_FNUZ on gfx942, with strides that are
 * multiples of 16. Each element is O in fp32 · (1 / o_scale), two roundings in fp32, rounded to the nearest number of
 * the type, of two the even one; beyond its largest (448, 127 and -128, 240) it is that one. NaN stays NaN, in
 * WAVEJIT_INT8 it is 0. Beside another o all is 0. */
struct wavejit_output_scale {
  const float* o_scale; /* fp32 in device memory, one number, read when the call runs. The host does not see it: 0 makes
                           O the largest number with O's sign, or NaN where O is 0, a negative one turns signs, NaN
                           makes NaN */
  float o_scale_value;  /* the same as a number, where o_scale is null: finite, at least 2^-126 and at most 2^126 */
  int32_t unused;       /* 0 */
};

/* Into how many runs keys are cut, and device memory for what the kernels of a call leave each other. */
struct wavejit_split {
  int64_t splits;         /* ≥ 1; 0: wavejit chooses (attention_forward: as the engine's kv_splits says) */
  void* workspace;        /* aligned to 256 bytes; null: the engine's own */
  size_t workspace_bytes; /* of `workspace`; wavejit_call_workspace says what is of use */
};

/* ---- attention_forward -------------------------------------------------------------------------------------------- */

/* O = softmax(scale · Q·Kᵀ + mask) · V for every batch and head; LSE = ln Σ exp(scale · q·k + mask).
 *   q [B, Sq, Hq, D], k [B, Sk, Hkv, D], v [B, Sk, Hkv, Dv], o [B, Sq, Hq, Dv]: one dtype, fp16 or bf16; `wavejit
 *   supported` lists the head dims. o may be fp32: what is rounded otherwise, not rounded. o may be of 8 bits, beside
 *   output_scale. k and v may both be of one type of 8 bits, int8 too, with strides that are multiples of 16: they are
 *   widened exactly (docs/low-precision.md)
 *   q and k may both be int8 beside v of fp16 or bf16, which then is o's type, too
 *   q may be fp32: it is rounded once, to nearest, to the type of k and v; beside k and v of 8 bits to that of o, which
 *   is bf16 where o is fp32. Its dims stand side by side
 *   strides: where dims of a row do not stand side by side, as in [B, H, D, S], or rows begin at no multiple of 16
 *   bytes, any positive ones of which that of length or that of head dim is 1; `data` is then aligned to an element,
 *   and a batch slice spans less than 2 GiB. Each of q, k, v and o by itself, dense or packed, of 16 bits (o also of
 *   32, q and k also int8): bits are those of other strides. Elements are moved one by one, which takes longer; no
 *   pages, no lists
 *   Hq a multiple of Hkv: query head h reads kv head h / (Hq / Hkv)
 *   Sq ≥ 1, Sk ≥ 0, equal or not; causal: row i sees keys 0 … i + Sk − Sq
 *   lse: data null for none; else fp32 aligned to 4 bytes, sizes [B, Hq, Sq, 1], stride of Sq 1, those of B and Hq any
 *   that keep elements apart; natural logarithm
 *   a row that sees no key gives O = 0 and LSE = −inf
 *   o and lse share memory with no other tensor; k and v may be null when Sk is 0
 * Bytes of o and lse outside the described elements are never touched. Nothing is launched when a status is not
 * WAVEJIT_OK; only when HIP refuses the second kernel of a call that splits keys, the first one writes the workspace.
 *
 * Packed sequences: with query_starts, q and o are [1, total, Hq, D] and sequence b owns rows query_starts[b] …
 * query_starts[b + 1] − 1 (lse [1, Hq, total, 1]); with key_starts, k and v are [1, total, Hkv, D] in the same way.
 * Either may be packed and the other dense. B is sequences.count; Sq and Sk are each sequence's own, and the longest of
 * them stands in max_query_length and max_key_length, because the host sizes the launch and never reads device memory.
 * Sequences without queries or without keys are allowed. With max_key_length = 0 none has a key, whatever k holds: O is
 * 0 and LSE −inf. Rows of o and lse that are no sequence's, behind the last start, are not written: they hold what the
 * caller's memory held. Whoever hands them on clears them first, as wavejit's Python does where it makes the outputs.
 *
 * Keys in pages (a paged cache): with block_table, k is [pages, page size, Hkv, D] and v [pages, page size, Hkv, Dv],
 * with any strides: a page may be [keys, heads, dim] (NHD) or [heads, keys, dim] (HND), and pages of K and V may stand
 * in turn in one tensor. Key n of sequence b is key n mod page size of page block_table[b][n / page size]. key_lengths
 * says how many keys a sequence has, max_key_length the longest; table_columns must reach that far. A page size is 1
 * (a pool of tokens) or a multiple of 16 up to 8,192. Entries past a sequence's length are never read and may be
 * garbage, as may keys past it; an entry that is no page of the cache counts as its first or last. Queries are dense or
 * packed (then B is sequences.count). The cache may be larger than 4 GiB. Results are those of dense keys, bit by bit. Two
 * sequences that decode from a cache of 4,096 pages of 16 keys, [pages, 2, 16, 8, 128], K and V in turn:
 *
 *   call.q = wavejit_dense_tensor(q, WAVEJIT_BF16, 2, 1, 64, 128);
 *   call.o = wavejit_dense_tensor(o, WAVEJIT_BF16, 2, 1, 64, 128);
 *   call.k = call.v = wavejit_dense_tensor(cache, WAVEJIT_BF16, 4096, 16, 8, 128);
 *   call.k.strides[0] = call.v.strides[0] = 2 * 16 * 8 * 128;
 *   call.v.data = (uint16_t*)cache + 16 * 8 * 128;
 *   call.pages.block_table = table;           // device memory, int32 [2][512]
 *   call.pages.table_columns = 512;
 *   call.sequences.key_lengths = lengths;     // device memory, int32 [2]
 *   call.sequences.max_key_length = 8192;     // 512 pages
 *
 * Vectorised pages (pages.page_layout): 16 bytes are 8 dims of one key of K and 8 keys of one dim of V, as engines lay a
 * cache out for one load a lane. Sizes are those of other pages, the strides of page and head are the caller's, and a
 * head's part of a page has nothing between its elements. Strides 1 and 3 say how it lies, and must:
 *
 *   page_layout                    a head of a page                       strides[1]   strides[3]
 *   both, k                        [D / 8][page size][8 dims]             8            1
 *   WAVEJIT_PAGES_VECTORISED       v: [Dv][page size]                     1            page size
 *   WAVEJIT_PAGES_VECTORISED_KEYS  v: [page size / 8][Dv][8 keys]         1            8
 *
 * A multiple of 16 keys, no first_keys. The cache above, with pages [8, 128, 16] of V:
 *
 *   call.pages.page_layout = WAVEJIT_PAGES_VECTORISED;
 *   call.k.strides[2] = call.v.strides[2] = 16 * 128;
 *   call.k.strides[1] = 8;
 *   call.v.strides[1] = 1;
 *   call.v.strides[3] = 16;
 *
 * Left padding: with first_keys, key 0 of sequence b stands at row first_keys[b] of k and v, in pages at slot
 * first_keys[b]. What stands before it is never read, and may be NaN. A dense sequence ends with its tensor, or after
 * key_lengths[b] keys; in pages key_lengths counts from key 0, too, and table_columns must reach to the last of them.
 * Masks and modifiers count keys from key 0. Results are those of the same keys without padding, bit by bit.
 *
 * Scores: without modifiers |scale · q·k · log2 e| of visible keys stays below 2^28 = 2.7e8. Beyond it all
 * weights of a row are too large or too small by one power of two, which leaves fp16 from there on, and bf16 and fp32
 * from 2^31 on: O of the row is then off by percents, 0, infinity or NaN, and LSE from 2^31 on infinite. Other rows
 * keep their bits. fp32 tells such scores apart by 32 only: no model has them. Gradients need far smaller ones
 * (attention_backward).
 *
 * NaN and infinity in a row of q reach that row, and in a row of k the rows that see it. In a row of v whose key some
 * row of the sequence sees they may reach every row of the sequence, whether it sees the key or not: a tile is
 * multiplied whole, and 0 · NaN is NaN. Which rows depends on the kernel: what is said about bits does not hold for
 * them. A key that no row of the sequence sees in this call reaches nothing: one in front of the window (or the
 * local chunk) of the sequence's first row, one behind the last row's diagonal and window_right. So pages behind a
 * sliding window may be freed, and their entries may name any page. Exceptions, where such a value may reach rows: block
 * lists and bool masks; keys that a bias hides; under WAVEJIT_MASK_CAUSAL with WAVEJIT_MASK_PREFIX and no window, keys
 * behind the last row of a packed sequence with fewer than max_query_length rows, or of any sequence beside
 * causal_flags. What stands beyond a sequence's keys, in front of them
 * (first_keys) or in other sequences reaches nothing. docs/invariance.md shows it ("hidden").
 *
 * A length in key_lengths that is larger than the rows of k (in pages: than max_key_length) shows no more keys, and
 * nothing outside is read. Diagonals stand where the length puts them: of four causal rows told 51 keys, of which 48
 * are there, the first stands at key 47, and all see 48.
 *
 * Split keys: with splits = n > 1 the keys of every sequence are cut into n runs of whole chunks of 1,024 keys,
 * computed side by side and merged in one fixed order; a long context with few queries then fills the machine. n is a
 * hint: no bit of a result depends on it. splits = 0 means what kv_splits says; its "auto" fills the device for up to
 * 32 query rows, and is 1 for more; of packed queries, short ones among long ones have runs of their own. Runs that the
 * longest sequence cannot fill are not launched: n' = min(n, ceil(Sk / 1,024)).
 *
 * The workspace holds (Dv + 4) · 4 bytes for every row, query head and chunk: B · Sq · Hq · ceil(Sk / 1,024) ·
 * (Dv + 4) · 4, with total in place of B · Sq for packed queries, or less where only the short ones are split. Beyond
 * 256 MiB sequences go in rounds, some at a time: those of dense queries, and packed ones of up to 32 rows, each
 * with the records of the longest. wavejit_call_workspace says how much is of use. A caller's may be
 * smaller than that: splits = 0 then takes more rounds, and leaves keys whole that fit in none, packed ones that would
 * have gone at once, too; splits > 1 is refused, with both sizes. It is written and read on the stream, from the call
 * on until the stream has come to its end. Null: the engine's own, one for each stream that splits keys, kept until the
 * engine is destroyed. Then a stream may be destroyed only when its work has ended. Captured without a workspace of the
 * caller's, a call does not split. docs/split-keys.md has the reasons. */
struct wavejit_attention_forward_arguments {
  struct wavejit_call_head head; /* .family = WAVEJIT_ATTENTION_FORWARD */
  struct wavejit_tensor q;
  struct wavejit_tensor k;
  struct wavejit_tensor v;
  struct wavejit_tensor o;
  struct wavejit_tensor lse;
  /* A second list of each query over a second cache (a window beside compressed keys), whose keys count beside those of
   * the first. Beside key_list.slots = 1. data null: none, and second_list is 0. */
  struct wavejit_tensor second_k; /* [pages, page size, Hkv, D]: k's type, page size, heads and head dim */
  struct wavejit_tensor second_v; /* v's, with as many pages */
  struct wavejit_masking mask;
  /* modifiers.bool_mask: a byte for each row and key, WAVEJIT_INT8 (bool and uint8 are the same bytes). Sizes [B or 1,
   * Hq or 1, Sq, Sk], packed queries: [1, Hq or 1, total, longest keys]. Strides are any from 0 on, 0 broadcasts; that
   * of Sk is 1. A row sees the keys whose byte is not 0, of those that mask and lengths show. Tiles of keys that no row
   * of a block of 64 sees are not walked, others are multiplied whole. Two launches more, which read it on the device
   * and make walks of it, as of lists of key blocks, in the workspace; keys are not split. Up to 32 rows under one mask
   * for all heads, dense keys: their keys are split instead, in one launch more. Cannot be combined with bias (put −inf
   * there instead), lists, local chunks or causal_flags. data null: none */
  struct wavejit_modifiers modifiers;
  struct wavejit_sequences sequences;
  struct wavejit_pages pages;
  struct wavejit_block_lists blocks;
  struct wavejit_key_list key_list; /* not beside block lists, a window, first_keys, vectorised pages, bias and alibi */
  struct wavejit_key_list second_list; /* its slots are second_k's; slots and heads: those of key_list, or 0 */
  /* Scales of a cache of 8 bits (k and v of WAVEJIT_E4M3 or its like, WAVEJIT_INT8; docs/low-precision.md):
   *   k_scale, v_scale  [B or 1, 1, Hkv or 1, 1], any strides. A key counts k_scale times, a value v_scale times what
   *                     its bytes say
   *   q_scale           beside q, k and v all of WAVEJIT_E4M3 (gfx950, head dims 128 and 256), whose o is of bf16, fp16
   *                     or fp32: sizes as those of k_scale. Weights are rounded to 8 bits then. Beside q and k of
   *                     WAVEJIT_INT8 and v of 16 bits: [Bq or 1, Sq or 1, Hq or 1, 1] beside q's own sizes, any strides,
   *                     and k_scale [Bk or 1, 1, Hkv or 1, 1], or of tokens. A score is scale · q_scale · k_scale times
   *                     the sum of products, which is exact
   *   token_scales      1 beside caches of 8 bits and beside q and k of WAVEJIT_INT8. k_scale and v_scale, both given,
   *                     then are as k and v lie, [Bk or 1, Sk, Hkv or 1, 1], of keys in pages [pages, page size, Hkv or
   *                     1, 1]; any strides, so that they may stand behind the data of each page. Beside q of
   *                     WAVEJIT_INT8 there is no v_scale */
  struct wavejit_scales scales;
  struct wavejit_split split;
  struct wavejit_output_scale output_scale;
};

WAVEJIT_API wavejit_status wavejit_attention_forward(wavejit_engine* engine,
                                                     const struct wavejit_attention_forward_arguments* arguments,
                                                     struct ihipStream_t* stream);

/* ---- attention_backward -------------------------------------------------------------------------------------------
 */

/* Bits: whose sums a call of wavejit_attention_backward continues, or leaves for a later call. */
enum wavejit_gradient_sums { WAVEJIT_SUMS_OF_DQ = 1, WAVEJIT_SUMS_OF_DK_DV = 2 };

/* Gradients of wavejit_attention_forward: dq, dk and dv from q, k, v, o, LSE and the gradient of o. Two launches or
 * more, no atomic additions: the bits of a row do not depend on the batch, on its place in it, on padding or packing
 * (docs/canonical-arithmetic.md, "Backward").
 *   q, d_o, dq     [B, Sq, Hq, D]: fp16 or bf16, strides as in the forward call
 *   k, v, dk, dv   [B, Sk, Hkv, D]: the same; dq, dk and dv either all of q's type or all fp32
 *   o              [B, Sq, Hq, D of v]: q's type or fp32
 *   lse            [B, Hq, Sq, 1]: what the forward call wrote, fp32, stride of Sq 1. With sinks it has them in it, and
 *                  dq, dk and dv need nothing else of them
 *   d_lse          the gradient of lse, shaped as it; data null: none
 *   delta          shaped as lse: the sum of d_o · o of each row, in place of o, whose data is null then
 *   sink, d_sink   the sinks of the forward call, and their gradient [B, Hq, 1, 1], fp32, of each sequence by itself:
 *                  the sum over a batch is the caller's. d_sink.data null: not wanted
 *   bias, d_bias   the bias of the forward call, and its gradient with the same sizes, q's type or fp32, the sum over
 *                  what it broadcasts. d_bias.data null: not wanted
 *   sums_before,   for calls that share a gradient, of pieces of the queries (dk, dv) or of the keys (dq). It is fp32
 *   sums_behind    and holds sums without the scale between them. Each call's terms go behind those that are there,
 *                  and the last call, without sums_behind, puts the scale
 *
 * Mask, windows, prefix, packed and dense lengths, alibi and softcap say what they said in the forward call. Gradients
 * of grouped heads are added up in fp32. Weights are made anew from lse, whose last bit is 6e-8 of it: gradients have
 * what docs/backward.md promises while |lse| is below 10,000 in bf16 and 1,000 in fp16, lose digits above, and mean
 * nothing from 1e7 on. Rows that see no key, keys that no row sees and keys beyond key_lengths get
 * zeros. Rows of packed tensors that belong to no sequence are not written. Outputs share memory with no other tensor.
 *
 *   struct wavejit_attention_backward_arguments call = {
 *       .head = {.size = sizeof call, .family = WAVEJIT_ATTENTION_BACKWARD}, .mask = {.bits = WAVEJIT_MASK_CAUSAL}};
 *   struct wavejit_tensor* rows[4] = {&call.q, &call.o, &call.d_o, &call.dq};        // [1, 256, 64, 128]
 *   for (int i = 0; i < 4; ++i) *rows[i] = wavejit_dense_tensor(of_rows[i], WAVEJIT_BF16, 1, 256, 64, 128);
 *   struct wavejit_tensor* keys[4] = {&call.k, &call.v, &call.dk, &call.dv};         // [1, 256, 8, 128]
 *   for (int i = 0; i < 4; ++i) *keys[i] = wavejit_dense_tensor(of_keys[i], WAVEJIT_BF16, 1, 256, 8, 128);
 *   call.lse = wavejit_dense_tensor(lse, WAVEJIT_FP32, 1, 64, 256, 1);
 *   if (wavejit_attention_backward(engine, &call, stream) != WAVEJIT_OK) fprintf(stderr, "%s\n", wavejit_last_detail());
 */
struct wavejit_attention_backward_arguments {
  struct wavejit_call_head head; /* .family = WAVEJIT_ATTENTION_BACKWARD */
  struct wavejit_tensor q;
  struct wavejit_tensor k;
  struct wavejit_tensor v;
  struct wavejit_tensor o;
  struct wavejit_tensor d_o;
  struct wavejit_tensor lse;
  struct wavejit_tensor d_lse; /* data null: none; likewise of those that follow but dq, dk and dv */
  struct wavejit_tensor dq;
  struct wavejit_tensor dk;
  struct wavejit_tensor dv;
  struct wavejit_tensor d_sink;
  struct wavejit_tensor delta;
  struct wavejit_tensor d_bias;
  struct wavejit_masking mask;
  struct wavejit_modifiers modifiers; /* no bool_mask, no score_rounding; a scale as in the forward call */
  struct wavejit_sequences sequences; /* no first_keys, no max_total_keys */
  struct wavejit_split
      split;            /* no splits. The workspace has one fp32 a row of q and head, and sums of runs of rows where
                                 a sequence has several (docs/backward.md) */
  uint32_t sums_before; /* enum wavejit_gradient_sums, bits; 0: gradients are written, whatever was there */
  uint32_t sums_behind; /* bits likewise; 0: gradients are finished */
};

WAVEJIT_API wavejit_status wavejit_attention_backward(wavejit_engine* engine,
                                                      const struct wavejit_attention_backward_arguments* arguments,
                                                      struct ihipStream_t* stream);
/* ---- attention_latent ---------------------------------------------------------------------------------------------
 */

/* Attention whose keys and values are one tensor: V is the first Dv columns of K (multi-head latent attention,
 * absorbed: DeepSeek V2, V3 and V3.2, Kimi K2, GLM-5). All query heads read the one kv head.
 * O = softmax(scale · Q·Kᵀ + mask) · V.
 *
 *   q            [B, Sq, H, D], k [B, Sk, 1, D], o [B, Sq, H, Dv]: fp16 or bf16, all of one type; k may have 8 bits.
 *                (D, Dv) is (576, 512), (512, 512) or (320, 256). H is 1 to 128; no number of heads is padded or refused
 *   q_rope       [B, Sq, H, 64], and k_rope [B, Sk, 1, 64]: the D − Dv columns behind the first Dv, where q and k have
 *                only those. Data null: q and k have all D columns. Each of the two may be apart by itself
 *   lse          [B, H, Sq, 1]: fp32, natural logarithm, sinks included. Data null: none
 *   scale        the model's: 1 / sqrt(192) for 128 + 64 dims before absorption, times YaRN's factor. There is no
 *                default, since no width of this call tells it: 0 is refused without WAVEJIT_SCALE_IS_ZERO
 *   mask         none, causal, causal with a prefix. Queries may be packed (query_starts), keys too (key_starts)
 *   block_table  k is [pages, page size, 1, D] and, apart, k_rope [pages, page size, 1, 64] with the same table. Page
 *                sizes, table, CSR and lengths: see wavejit_attention_forward
 *   sink         fp32 [1, H, 1, 1], and softcap: see wavejit_attention_forward
 *
 * Decode, several rows a sequence (speculative decoding), pieces of a prompt and whole prompts are one arithmetic. Which
 * of them a call is, its batch, pages, heads of a workgroup and splits show in no bit (docs/canonical-arithmetic.md).
 * One decode step over a cache in pages of 64, for example:
 *
 *   struct wavejit_attention_latent_arguments call = {
 *       .head = {.size = sizeof call, .family = WAVEJIT_ATTENTION_LATENT}, .modifiers = {.scale = 0.0721688F}};
 *   call.q = wavejit_dense_tensor(q, WAVEJIT_BF16, 64, 1, 128, 576);
 *   call.k = wavejit_dense_tensor(cache, WAVEJIT_BF16, pages, 64, 1, 576);
 *   call.o = wavejit_dense_tensor(o, WAVEJIT_BF16, 64, 1, 128, 512);
 *   call.pages.block_table = table;                  // int32 [64, 128]
 *   call.pages.table_columns = 128;
 *   call.sequences.key_lengths = lengths;            // int32 [64]
 *   call.sequences.max_key_length = 8192;
 *   if (wavejit_attention_latent(engine, &call, stream) != WAVEJIT_OK) fprintf(stderr, "%s\n", wavejit_last_detail());
 */
struct wavejit_attention_latent_arguments {
  struct wavejit_call_head head; /* .family = WAVEJIT_ATTENTION_LATENT; flags without those of lists and biases */
  struct wavejit_tensor q;
  struct wavejit_tensor q_rope;
  struct wavejit_tensor k;
  struct wavejit_tensor k_rope;
  struct wavejit_tensor o;
  struct wavejit_tensor lse;
  /* A second list of each query over a second cache (a window beside compressed keys), whose keys count beside those of
   * the first. Beside key_list.slots = 1, with k in one tensor. data null: none, and second_list is 0. */
  struct wavejit_tensor second_k;      /* [pages, page size, 1, D]: k's type, page size and columns */
  struct wavejit_masking mask;         /* no window, no local chunks, no causal_flags */
  struct wavejit_modifiers modifiers;  /* scale, softcap and sink */
  struct wavejit_sequences sequences;  /* no first_keys */
  struct wavejit_pages pages;          /* with key_lengths; no page_layout */
  struct wavejit_key_list key_list;    /* of one list a query: heads 0 or 1 */
  struct wavejit_key_list second_list; /* its slots are second_k's; slots: that of key_list, or 0 */
  /* The scale of a cache of 8 bits (k, k_rope and second_k of WAVEJIT_E4M3, WAVEJIT_INT8 and their like beside q of 16
   * bits; docs/low-precision.md) is k_scale alone, [B or 1, 1, 1, 1]: keys and values are so many times what their bytes
   * say. Rows with scales of their own, FlashMLA's, are k [.., 656] of WAVEJIT_E4M3 or its FNUZ form beside q of 576 in
   * bf16 and o of 512: 512 of 8 bits, an fp32 for each 128 of them, 64 of the rope in bf16; second_k likewise. Those of
   * DeepSeek V4 are k [.., 584] beside q and o of 512 in bf16, with strides[1] of 584 and row_scales of
   * WAVEJIT_EXPONENTS_BEHIND_ROWS: a page, or a sequence, begins with rows of 448 of 8 bits and 64 of the rope in bf16,
   * behind which are 8 bytes for each row, E8M0 for each 64 of the 448. */
  struct wavejit_scales scales;
  struct wavejit_split split; /* splits 0: as many as fill the device */
};

WAVEJIT_API wavejit_status wavejit_attention_latent(wavejit_engine* engine,
                                                    const struct wavejit_attention_latent_arguments* arguments,
                                                    struct ihipStream_t* stream);
/* ---- softmax_lse --------------------------------------------------------------------------------------------------
 */

/* weights = softmax(scale · scores + mask) along the keys, LSE = ln Σ exp(scale · scores + mask): the softmax of
 * wavejit_attention_forward by itself, in its arithmetic and in its order. Where the scores are those that attention
 * computes, LSE has attention's bits.
 *   scores [B, H, Sq, Sk]: fp32, fp16 or bf16, not scaled; Sq and Sk from 1 to 2^28
 *   weights: the same sizes, fp32, fp16 or bf16, whatever the scores are; data null: none
 *   lse: data null: none; else fp32, sizes [B, H, Sq, 1], stride of Sq 1
 * Strides are in elements; the last is 1, rows do not overlap and lie less than 2^31 bytes apart, the others are
 * positive. `data` is aligned to an element. 16-bit tensors whose rows begin at whole dwords and have an even number of
 * keys are moved 16 bytes a lane, others an element at a time. A row that sees no key has weights 0 and LSE −inf; a key
 * that a row does not see has weight 0, and what its score is does not matter. The outputs share memory with no other
 * tensor. Bytes outside the described elements are never touched.
 *
 *   struct wavejit_softmax_lse_arguments call = {{sizeof call, WAVEJIT_SOFTMAX_LSE}};
 *   call.scores = wavejit_dense_tensor(scores, WAVEJIT_FP32, 1, 8, 128, 5000);      // [B, H, Sq, Sk]
 *   call.weights = wavejit_dense_tensor(weights, WAVEJIT_BF16, 1, 8, 128, 5000);
 *   call.scale = 0.125F;
 *   if (wavejit_softmax_lse(engine, &call, stream) != WAVEJIT_OK) fprintf(stderr, "%s\n", wavejit_last_detail());
 */
struct wavejit_softmax_lse_arguments {
  struct wavejit_call_head head; /* .family = WAVEJIT_SOFTMAX_LSE; flags without those of lists, biases and launches */
  struct wavejit_tensor scores;
  struct wavejit_tensor weights;
  struct wavejit_tensor lse;
  struct wavejit_masking mask; /* rows stand as in wavejit_attention_forward; no local chunks, no causal_flags */
  const int32_t* key_lengths;  /* device memory, [B]: how many keys count, from the first; null: all */
  float scale;                 /* any finite value; 0: 1, unless WAVEJIT_SCALE_IS_ZERO is in flags */
  uint32_t reserved;           /* 0: calls are compared byte by byte, so they have no padding of the compiler's */
};

WAVEJIT_API wavejit_status wavejit_softmax_lse(wavejit_engine* engine,
                                               const struct wavejit_softmax_lse_arguments* arguments,
                                               struct ihipStream_t* stream);
/* ---- sparse_indexer -----------------------------------------------------------------------------------------------
 */

/* The indexer of sparse attention: which keys each query row is to attend to.
 *
 *   score[b, i, j] = key_scale[b, j] · Σ over heads h of relu(queries[b, i, h] · keys[b, j]) · weights[b, i, h]
 *   indices[b, i]  = the top_k keys j of the row with the largest scores, ascending by j; −1 behind the last
 *
 * Of equal scores the lower key is chosen; NaN counts as larger than every number, −0 as 0. Scores are f32 sums in one
 * order (docs/canonical-arithmetic.md), so the same row has the same list whatever the batch, the pages and the grid.
 *   queries     [B, Sq, H, 128], H from 1 to 128: fp16, bf16, e4m3 (gfx950), e4m3_fnuz (gfx942). data null: `scores` is
 *               read, and nothing is multiplied
 *   keys        [B, Sk, 1, 128], the type of the queries; with block_table [pages, page size, 1, 128]
 *   weights     [B, Sq, H, 1], fp32, stride of H 1
 *   key_scales  fp32 [B, Sk, 1, 1], with block_table [pages, page size, 1, 1]; data null: 1. Pages may hold keys and
 *               scales side by side: each tensor has its own strides
 *   scores      fp32 [B, Sq, 1, Sk], stride of Sk 1: written, −∞ where the row does not see the key. data null: scores
 *               stay in the workspace. Without queries they are read, and −∞ is a key that the row does not see
 *   indices     int32 [B · Sq, top_k], rows indices_row_stride apart; null with top_k = 0, which asks for scores only
 *   values      the scores of the list, −∞ behind it, rows as indices; null: not wanted
 *   counts      [B · Sq], how many keys the list has; null: not wanted
 *
 * A row sees the keys that mask, key_lengths, key_begins and key_ends all let it see. A key that it does not see shows
 * in nothing and is in no list. It is not read, unless it lies between keys that the row and its three neighbours see.
 * A length beyond the keys that there are shows no more keys; diagonals stand where it puts them.
 * Outputs share memory with no other tensor. An example, one decode step over a cache in pages of 64:
 *
 *   struct wavejit_sparse_indexer_arguments call = {{sizeof call, WAVEJIT_SPARSE_INDEXER}};
 *   call.queries = wavejit_dense_tensor(q, WAVEJIT_BF16, 48, 1, 64, 128);
 *   call.keys = wavejit_dense_tensor(cache, WAVEJIT_BF16, pages, 64, 1, 128);
 *   call.weights = wavejit_dense_tensor(w, WAVEJIT_FP32, 48, 1, 64, 1);
 *   call.pages.block_table = table;                  // int32 [48, 2048]
 *   call.pages.table_columns = 2048;
 *   call.key_lengths = lengths;                      // int32 [48]
 *   call.max_key_length = 131072;
 *   call.indices = list;                             // int32 [48, 2048]
 *   call.top_k = 2048;
 *   if (wavejit_sparse_indexer(engine, &call, stream) != WAVEJIT_OK)
 *     fprintf(stderr, "%s\n", wavejit_last_detail());
 */
struct wavejit_sparse_indexer_arguments {
  struct wavejit_call_head head; /* .family = WAVEJIT_SPARSE_INDEXER; flags: WAVEJIT_CHECK_LENGTHS, _NO_COMPILE,
                                    _COMPILE_BEHIND */
  struct wavejit_tensor queries;
  struct wavejit_tensor keys;
  struct wavejit_tensor weights;
  struct wavejit_tensor key_scales;
  struct wavejit_tensor scores;
  int32_t* indices;
  float* values;
  int32_t* counts;
  int64_t indices_row_stride;  /* of indices and values, in elements; 0: top_k */
  int64_t top_k;               /* 0 … 2^20; more than a row sees is allowed */
  struct wavejit_masking mask; /* rows stand as in wavejit_attention_forward; no local chunks, no causal_flags */
  const int32_t* key_lengths;  /* device memory, [B]: how many keys count, from the first; null: all */
  const int32_t* key_begins;   /* device memory, [B · Sq]: the row's first key; null: key 0 */
  const int32_t* key_ends;     /* likewise, behind its last key; null: the sequence's end */
  int64_t max_key_length;      /* Sk of keys in pages; 0 of dense ones */
  struct wavejit_pages pages;  /* no page_layout */
  struct wavejit_split split;  /* no splits. The workspace has scores that no tensor takes; with less than
                                 wavejit_call_workspace says, rows go in rounds */
};

WAVEJIT_API wavejit_status wavejit_sparse_indexer(wavejit_engine* engine,
                                                  const struct wavejit_sparse_indexer_arguments* arguments,
                                                  struct ihipStream_t* stream);
/* ---- cache_append -------------------------------------------------------------------------------------------------
 */

/* Which two dims rotary embedding turns together. */
typedef enum wavejit_rotary {
  WAVEJIT_ROTARY_NONE = 0,
  WAVEJIT_ROTARY_HALVES = 1,     /* d and d + rotary_dim / 2: GPT-NeoX, Llama */
  WAVEJIT_ROTARY_INTERLEAVED = 2 /* 2d and 2d + 1: GPT-J */
} wavejit_rotary;

/* New keys and values into a cache, with rotary embedding on the way.
 *
 *   k_cache[slot / page size][slot mod page size][h] = turned(k[b, s, h])        slot = slots[b · S + s]
 *   v_cache[slot / page size][slot mod page size][h] = v[b, s, h]
 *   q_out[b, s, h] = turned(q[b, s, h])
 *
 *   k            [B, S, Hkv, D], v [B, S, Hkv, Dv]: fp16 or bf16, any positive strides. v.data null: there is no v
 *   k_cache      [pages, page size, Hkv, D], v_cache [pages, page size, Hkv, Dv]: their type, or one of 8 bits (below),
 *                any positive strides: a page may be [keys, heads, dim] (NHD) or [heads, keys, dim] (HND), and K and V
 *                may stand in turn. page_layout describes vectorised pages, as in wavejit_attention_forward. A dense
 *                cache [batch, keys, heads, dim] is a cache whose page is a sequence
 *   slots        device memory, [B · S] numbers of 4 or 8 bytes. A number that is no slot of the cache, such as −1
 *                or one beyond 2^31: nothing is written for the token. Two tokens with one slot: one of them stands there, or parts of both
 *   q            [B, S, Hq, Dq], and q_out: k's type; q.data null: no queries are turned. Both may be the same memory.
 *                Tokens without a slot are turned, too
 *   positions    numbers of 4 or 8 bytes, one for each token, beside the slots
 *   cos          [1, positions, 1, rotary_dim / 2], and sin: fp32, fp16 or bf16, the last stride 1. The tables' rows are
 *                the positions; a position beyond them has cosines and sines of 0. One table [positions, rotary_dim],
 *                cosines before sines, is two tensors with its row stride
 *   rotary_base  without tables: pair i turns by position · rotary_base^(−2i / rotary_dim), positions 0 to 2^31 − 1
 *
 * Rotary embedding turns the first rotary_dim dims of each head, pairs (x, y) of them: x · cos − y · sin,
 * y · cos + x · sin, in f32 with one rounding at the end (docs/cache-append.md).
 *
 * D, Dv and Dq are multiples of 8 up to 512, rotary_dim is a multiple of 16 up to 256 and to D. Nothing outside the
 * rows that are named is written. The caches, scales that are written and q_out share memory with nothing else, slots
 * and positions included, except for q_out and q.
 *
 *   struct wavejit_cache_append_arguments call = {{sizeof call, WAVEJIT_CACHE_APPEND}};
 *   call.k = wavejit_dense_tensor(k, WAVEJIT_BF16, 1, tokens, 8, 128);
 *   call.v = wavejit_dense_tensor(v, WAVEJIT_BF16, 1, tokens, 8, 128);
 *   call.k_cache = wavejit_dense_tensor(k_pages, WAVEJIT_BF16, 4096, 16, 8, 128);
 *   call.v_cache = wavejit_dense_tensor(v_pages, WAVEJIT_BF16, 4096, 16, 8, 128);
 *   call.slots = slot_mapping;                       // device memory, int64 [tokens]
 *   call.slot_bytes = 8;
 *   if (wavejit_cache_append(engine, &call, stream) != WAVEJIT_OK)
 *     fprintf(stderr, "%s\n", wavejit_last_detail());
 */
struct wavejit_cache_append_arguments {
  struct wavejit_call_head head; /* .family = WAVEJIT_CACHE_APPEND; flags: WAVEJIT_NO_COMPILE, _COMPILE_BEHIND */
  struct wavejit_tensor k;
  struct wavejit_tensor v;
  struct wavejit_tensor k_cache;
  struct wavejit_tensor v_cache;
  struct wavejit_tensor q;
  struct wavejit_tensor q_out;
  struct wavejit_tensor cos;
  struct wavejit_tensor sin;
  const void* slots;
  const void* positions;
  int32_t slot_bytes;     /* of a number of slots: 4 or 8; 0: 4 */
  int32_t position_bytes; /* of a number of positions, likewise */
  int32_t rotary;         /* enum wavejit_rotary */
  int32_t rotary_dim;     /* 0 with WAVEJIT_ROTARY_NONE */
  float rotary_base;      /* 0: tables */
  int32_t page_layout;    /* enum wavejit_page_layout */
  /* Scales of a cache of 8 bits (no q_scale, no row_scales). A number x is stored as the byte that is next to x / scale
   * (one division in f32, ties to even), beyond the type's range as its greatest number; NaN stays NaN, in integers it
   * is -128. K is rounded to its own type first where it is turned. fp32 in device memory, any positive strides.
   *   token_scales 0: read, [1, 1, Hkv or 1, 1]: a finite number between 2^-100 and 2^100; data null: 1
   *   token_scales 1: written, [pages, page size, Hkv, 1]: max(greatest |x| of the token's head / the type's greatest
   *                   number, 10^-6)
   * Rows that have their own, of attention_latent: k_cache of [pages, page size, 1, 656 or 584] of WAVEJIT_E4M3 (its
   * FNUZ form on gfx942), no v_cache, k the rope [B, S, 1, 64], v the latent [B, S, 1, 512 or 448], both bf16, no
   * scales (docs/cache-append.md#caches-of-8-bits). */
  struct wavejit_scales scales;
};

WAVEJIT_API wavejit_status wavejit_cache_append(wavejit_engine* engine,
                                                const struct wavejit_cache_append_arguments* arguments,
                                                struct ihipStream_t* stream);
/* ---- attention_merge ----------------------------------------------------------------------------------------------
 */

/* O and LSE of one part, or of `count` parts that stand at one distance from each other. */
struct wavejit_attention_part {
  struct wavejit_tensor o;
  struct wavejit_tensor lse;
  int64_t count;      /* 0: 1 */
  int64_t o_stride;   /* from part to part, in elements: a positive multiple of 8; with count above 1 */
  int64_t lse_stride; /* the same, positive */
};
#define WAVEJIT_MAX_ATTENTION_PARTS 8

/* Results of several calls over different keys of the same queries become that of one call over all of them: a prefix
 * that sequences share and what each has for itself, keys that stand on several devices.
 *
 *   lse = ln Σ exp(lse_i)                  o = Σ exp(lse_i − lse) · o_i           over all parts i
 *
 *   parts[i].o    [B, S, H, D], fp16, bf16 or fp32, all alike; D a multiple of 8 up to 512, the last stride 1, the
 *                 others positive multiples of 8, aligned to 16 bytes
 *   parts[i].lse  [B, H, S, 1], fp32, any positive strides: natural logarithms, as attention writes them
 *   o             the same sizes; the parts' type, or either of the two fp32; or 8 bits beside o_scale, as attention_forward
 *                 writes them: what the merged row in fp32 is scaled and rounded to
 *   lse           the same; data null: none
 *
 * Parts are merged from the first upward, in f32 (docs/canonical-arithmetic.md): other orders round otherwise, nothing
 * else shows in a row's bits. A part whose lse is −inf saw no key: it changes nothing, whatever its o is. Of a single
 * part that saw any, o and lse are what the call gives, to the bit (−0 becomes +0). A row without any key is 0, and its
 * lse −inf. Sinks belong into one of the parts. o and lse may stand where those of a part stand; else they share memory
 * with nothing.
 *
 *   struct wavejit_attention_merge_arguments call = {{sizeof call, WAVEJIT_ATTENTION_MERGE}};
 *   call.parts[0].o = wavejit_dense_tensor(o_prefix, WAVEJIT_BF16, 1, tokens, 64, 128);
 *   call.parts[0].lse = wavejit_dense_tensor(lse_prefix, WAVEJIT_FP32, 1, 64, tokens, 1);
 *   call.parts[1].o = wavejit_dense_tensor(o_own, WAVEJIT_BF16, 1, tokens, 64, 128);
 *   call.parts[1].lse = wavejit_dense_tensor(lse_own, WAVEJIT_FP32, 1, 64, tokens, 1);
 *   call.part_count = 2;
 *   call.o = call.parts[0].o;
 *   if (wavejit_attention_merge(engine, &call, stream) != WAVEJIT_OK) fprintf(stderr, "%s\n", wavejit_last_detail());
 */
struct wavejit_attention_merge_arguments {
  struct wavejit_call_head head; /* .family = WAVEJIT_ATTENTION_MERGE; flags: WAVEJIT_NO_COMPILE, _COMPILE_BEHIND */
  struct wavejit_attention_part parts[WAVEJIT_MAX_ATTENTION_PARTS];
  int64_t part_count; /* 1 … WAVEJIT_MAX_ATTENTION_PARTS */
  struct wavejit_tensor o;
  struct wavejit_tensor lse;
  struct wavejit_output_scale output_scale;
};

WAVEJIT_API wavejit_status wavejit_attention_merge(wavejit_engine* engine,
                                                   const struct wavejit_attention_merge_arguments* arguments,
                                                   struct ihipStream_t* stream);
/* ---- What can be asked of a call -----------------------------------------------------------------------------------
 * Each of these takes the head of a call of any family, checks the whole call as its launch would, and launches nothing.
 * A decode step that may not wait for a compiler, for example:
 *
 *   if (wavejit_call_ready(engine, &call.head) == WAVEJIT_OK)
 *     wavejit_attention_forward(engine, &call, stream);
 *   else
 *     run_the_other_kernel();
 */

/* What the call would answer, with the reason, when its kernel can be had: whether there is a kernel for it on this
 * target. Nothing is looked for on disk or compiled, and no device memory is read (WAVEJIT_CHECK_LENGTHS does that). */
WAVEJIT_API wavejit_status wavejit_call_supported(wavejit_engine* engine, const struct wavejit_call_head* call);

/* As wavejit_call_supported, and WAVEJIT_NOT_READY when the call's kernel is not loaded: the call would fetch or compile
 * it. */
WAVEJIT_API wavejit_status wavejit_call_ready(wavejit_engine* engine, const struct wavejit_call_head* call);

/* Fetches or compiles the call's kernels and loads them, with those that a capture of the call may need, as the first
 * call does. WAVEJIT_NO_COMPILE in its flags is not asked: whoever prepares may wait. Tensors need no memory behind their
 * addresses. */
WAVEJIT_API wavejit_status wavejit_call_prepare(wavejit_engine* engine, const struct wavejit_call_head* call);

/* The workspace that the call has use for, 0 if none. With splits = 0 attention_forward and attention_latent take a
 * smaller one for their splits, too: slower, with the same bits. */
WAVEJIT_API wavejit_status wavejit_call_workspace(wavejit_engine* engine, const struct wavejit_call_head* call,
                                                  size_t* bytes);

/* The call as a problem descriptor, for logs, wavejit_prepare and wavejit_prebuild: one line, valid during the callback
 * only. */
WAVEJIT_API wavejit_status wavejit_call_describe(wavejit_engine* engine, const struct wavejit_call_head* call,
                                                 wavejit_line_callback line, void* context);

/* ---- Serving: nothing compiles while requests wait ---------------------------------------------------------------
 * A serving engine prepares what it will need, seals, and captures its graphs:
 *
 *   const char* lines[] = {"attention_forward bf16 b1 q4096 k4096 h64/8 d128 causal lse",   // prefill
 *                          "attention_forward bf16 b64 q1 k8192 h64/8 d128 lse"};           // decode
 *   wavejit_status statuses[2];
 *   if (wavejit_prepare(engine, lines, 2, 0, statuses, NULL, NULL) != WAVEJIT_OK)
 *     fprintf(stderr, "%s\n", wavejit_last_detail());                    // names the first line that failed, and why
 *   wavejit_engine_seal(engine, 1);                                      // from here on nothing is compiled or read
 *
 * A call whose kernel is not loaded answers WAVEJIT_SEALED then, and WAVEJIT_NOT_READY when its stream is being
 * captured (the stream is not touched and the capture stays valid). A call whose kernel is loaded is captured like any
 * launch. docs/serving.md has the whole story. */

struct wavejit_prepare_progress {
  size_t size;
  uint64_t done; /* lines finished, in whatever way */
  uint64_t total;
  uint64_t compiled; /* lines by what became of them */
  uint64_t from_disk;
  uint64_t present; /* loaded already, or by another line of the same kernel */
  uint64_t failed;
  uint64_t line;          /* index of the line that just finished */
  const char* descriptor; /* the line itself; null at the start */
  int32_t status;         /* of that line */
  int32_t origin;         /* enum wavejit_origin, of that line */
  const char* failure;    /* null, or why it failed */
};
/* Called from worker threads, one call at a time. */
typedef void (*wavejit_prepare_callback)(void* context, const struct wavejit_prepare_progress* progress);

/* Compiles or fetches, loads and resolves on the engine's device what `descriptors` (count lines) need, `jobs` at a
 * time (0: all cores). A line that fails leaves the others alone. `statuses` (null, or count of them) gets the status
 * of each line; the function returns that of the first that failed. Several threads may prepare the same lines: every
 * kernel is made once. */
WAVEJIT_API wavejit_status wavejit_prepare(wavejit_engine* engine, const char* const* descriptors, size_t count,
                                           int32_t jobs, wavejit_status* statuses, wavejit_prepare_callback progress,
                                           void* context);

/* `sealed` not 0: from now on a call whose kernel is not loaded answers WAVEJIT_SEALED, and nothing is looked for on
 * disk or compiled. Work that other threads have begun comes to its end. 0: such calls fetch or compile again. */
WAVEJIT_API wavejit_status wavejit_engine_seal(wavejit_engine* engine, int32_t sealed);

/* ---- Device memory, for programs without HIP headers ----------------------------------------------------------------
 */

WAVEJIT_API wavejit_status wavejit_device_allocate(wavejit_engine* engine, size_t bytes, void** memory);
WAVEJIT_API wavejit_status wavejit_device_free(wavejit_engine* engine, void* memory);
WAVEJIT_API wavejit_status wavejit_device_copy_in(wavejit_engine* engine, void* device, const void* host, size_t bytes);
WAVEJIT_API wavejit_status wavejit_device_copy_out(wavejit_engine* engine, void* host, const void* device,
                                                   size_t bytes);
/* Waits for all work of the device; a kernel that failed shows here. */
WAVEJIT_API wavejit_status wavejit_device_synchronize(wavejit_engine* engine);

/* A dense [batch, length, heads, head dim] tensor (BSHD). */
static inline struct wavejit_tensor wavejit_dense_tensor(void* data, wavejit_dtype dtype, int64_t batch, int64_t length,
                                                         int64_t heads, int64_t head_dim) {
  struct wavejit_tensor tensor;
  tensor.data = data;
  tensor.dtype = (int32_t)dtype;
  tensor.reserved = 0;
  tensor.sizes[0] = batch;
  tensor.sizes[1] = length;
  tensor.sizes[2] = heads;
  tensor.sizes[3] = head_dim;
  tensor.strides[0] = length * heads * head_dim;
  tensor.strides[1] = heads * head_dim;
  tensor.strides[2] = head_dim;
  tensor.strides[3] = 1;
  return tensor;
}

/* ---- Explain, prebuild, cache ---------------------------------------------------------------------------------------
 * Texts are handed to a callback line by line: `line` is valid during the call only. Problem descriptors are the lines
 * that docs/problem-descriptors.md describes: "attention_forward fp16 b1 q1024 k8192 h64/8 d128 causal lse". */

/* The route of a problem: what was chosen, its key, whether it is on disk, and why each other route was refused.
 * `target` null: the target of WAVEJIT_DEVICE. No device is opened, nothing is compiled. */
WAVEJIT_API wavejit_status wavejit_explain(const struct wavejit_engine_options* options, const char* descriptor,
                                           const char* target, wavejit_line_callback line, void* context);

typedef enum wavejit_kernel_form {
  WAVEJIT_KERNEL_IR = 0, /* what the template emits: LLVM IR, before any pass of the compiler */
  WAVEJIT_KERNEL_ISA = 1 /* what the compiler made of it: an instruction a line, its offset in hexadecimal first */
} wavejit_kernel_form;
struct wavejit_kernel_text_arguments {
  size_t size;
  const char* descriptor;
  const char* target; /* null: the target of WAVEJIT_DEVICE */
  int32_t form;       /* enum wavejit_kernel_form */
};
struct wavejit_kernel_text {
  size_t size;
  const char* kernel_spec; /* canonical text */
  const char* text;        /* lines, each with its end */
};
/* `kernel` and what it points to are valid during the call only. */
typedef void (*wavejit_kernel_text_callback)(void* context, const struct wavejit_kernel_text* kernel);

/* The kernels of a problem, in the order in which they run, as text for people. The code generator makes them anew: no
 * device is opened and the cache is neither read nor written. The same statuses as a compile. */
WAVEJIT_API wavejit_status wavejit_kernel_texts(const struct wavejit_engine_options* options,
                                                const struct wavejit_kernel_text_arguments* arguments,
                                                wavejit_kernel_text_callback kernel, void* context);

/* Checks a descriptor without an engine, and hands over its canonical line: words in the order of the grammar, defaults
 * left out. WAVEJIT_INVALID_ARGUMENT: it is none; WAVEJIT_UNSUPPORTED: a word that this version does not do. The detail
 * names the word, its place and what is accepted. */
WAVEJIT_API wavejit_status wavejit_describe(const char* descriptor, wavejit_line_callback line, void* context);

/* The supported combinations, from the program's own tables. */
WAVEJIT_API wavejit_status wavejit_supported(wavejit_line_callback line, void* context);

/* The targets that all families have kernels for, a line each: "gfx942". Others are in wavejit_supported. */
WAVEJIT_API wavejit_status wavejit_targets(wavejit_line_callback line, void* context);

struct wavejit_prebuild_progress {
  size_t size;
  uint64_t done; /* kernels finished, in whatever way */
  uint64_t total;
  uint64_t compiled;
  uint64_t present; /* already in the cache */
  uint64_t failed;
  const char* kernel_spec; /* the one that just finished; null at the start */
  const char* failure;     /* null, or why it failed */
};
/* Called from worker threads, one call at a time. */
typedef void (*wavejit_prebuild_callback)(void* context, const struct wavejit_prebuild_progress* progress);

/* Compiles what `descriptors` (count lines; null: every combination without windows, modifiers and pages, and
 * gradients with windows) need for each of the comma-separated `targets` into the cache, `jobs` at a time (0: all
 * cores). Needs neither a GPU nor HIP. Returns the status of the first kernel that failed (WAVEJIT_COMPILE_FAILED;
 * WAVEJIT_IO_ERROR when the disk did). */
WAVEJIT_API wavejit_status wavejit_prebuild(const struct wavejit_engine_options* options,
                                            const char* const* descriptors, size_t count, const char* targets,
                                            int32_t jobs, wavejit_prebuild_callback progress, void* context);

/* One entry of the disk cache. */
struct wavejit_cache_entry {
  size_t size;
  const char* path;
  const char* key;      /* hex digest, from the file's name */
  const char* key_text; /* null when the entry is damaged */
  const char* target;
  const char* kernel_name;
  const char* damage; /* null when the entry is whole; else what is wrong */
  uint64_t file_bytes;
  uint64_t code_object_bytes;
  int64_t modified_unix_seconds;
  uint32_t vgprs;
  uint32_t lds_bytes;
  uint32_t kernarg_bytes;
  const char* layer; /* "user", or the path of a read-only layer */
};
typedef void (*wavejit_cache_callback)(void* context, const struct wavejit_cache_entry* entry);
/* Visits every entry of every layer, each verified (format, key text against name, checksum). A layer that cannot be
 * used is told as one damaged entry. */
WAVEJIT_API wavejit_status wavejit_cache_visit(const struct wavejit_engine_options* options,
                                               wavejit_cache_callback entry, void* context);

/* One layer, in the order in which they are asked; a remote one is last. */
struct wavejit_cache_layer {
  size_t size;
  const char* name; /* "user" for the cache's own folder, "remote", else the path */
  const char* path; /* of a remote one: its address without the password */
  int32_t writable;
  uint64_t entries; /* whole ones */
  uint64_t bytes;
  uint64_t damaged;
  uint64_t limit_bytes; /* of the writable one; 0: none */
  const char* state;    /* of a remote one: whether it answers, or why not; null of the others */
};
typedef void (*wavejit_cache_layer_callback)(void* context, const struct wavejit_cache_layer* layer);
WAVEJIT_API wavejit_status wavejit_cache_layers(const struct wavejit_engine_options* options,
                                                wavejit_cache_layer_callback layer, void* context);

struct wavejit_cache_sweep_result {
  size_t size;
  uint64_t entries; /* before it */
  uint64_t bytes;
  uint64_t evicted;
  uint64_t evicted_bytes;
  uint64_t leftovers_removed; /* temporary files and locks of processes that are no more */
  uint64_t failures;          /* files and folders that could not be read or removed */
};
/* Makes the cache's own folder keep its limit now, as happens in the background after a compile: what was used longest
 * ago goes first. `any_age` not 0: also what was published within the last minute. `result` may be null. */
WAVEJIT_API wavejit_status wavejit_cache_sweep(const struct wavejit_engine_options* options, int32_t any_age,
                                               struct wavejit_cache_sweep_result* result);

typedef enum wavejit_cache_remote {
  WAVEJIT_CACHE_NO_REMOTE = 0,
  WAVEJIT_CACHE_TO_REMOTE = 1,  /* the whole cache, with its layers, to the remote layer */
  WAVEJIT_CACHE_FROM_REMOTE = 2 /* what the remote layer has, to the cache's own folder */
} wavejit_cache_remote;

struct wavejit_cache_copy_arguments {
  size_t size;
  const char* from;    /* a folder or an archive; null: the cache that the options name, with its layers */
  const char* to;      /* a folder, or the archive to write; null: the cache's own folder */
  const char* targets; /* separated by commas; null: all */
  int32_t archive;     /* not 0: `to` is written as one archive */
  int32_t remote;      /* enum wavejit_cache_remote; `from` and `to` are null then */
};
struct wavejit_cache_copy_result {
  size_t size;
  uint64_t copied;
  uint64_t present; /* already there */
  uint64_t damaged; /* left behind */
  uint64_t failed;
  uint64_t bytes; /* of what was copied */
};
/* Copies entries between a cache, folders that serve as layers, and archives; each is verified on the way. Existing
 * entries are left alone, an existing archive is replaced when the new one is whole and has an entry. WAVEJIT_NOT_FOUND
 * if the source is not there, WAVEJIT_IO_ERROR if anything could not be read to its end or written, or if there is
 * nothing to put into an archive; `result`, which may be null, is filled all the same. */
WAVEJIT_API wavejit_status wavejit_cache_copy(const struct wavejit_engine_options* options,
                                              const struct wavejit_cache_copy_arguments* arguments,
                                              struct wavejit_cache_copy_result* result);

/* Counters of an engine. They add up: calls + prepared = memory_hits + disk_hits + misses,
 * misses = compiled + compile_failures + refused_sealed + refused_capturing + refused_no_compile + refused_unsupported.
 * A call that splits keys counts by the kernel that walks the keys. */
struct wavejit_statistics {
  size_t size;
  uint64_t calls; /* whose arguments were good */
  uint64_t memory_hits;
  uint64_t disk_hits;
  uint64_t misses;
  uint64_t compiled;
  uint64_t compile_failures;
  uint64_t published;
  uint64_t publish_failures;
  uint64_t damaged_entries;   /* found damaged, treated as misses */
  uint64_t cache_io_faults;   /* reads or writes that failed, treated as misses */
  uint64_t loader_rejections; /* HIP refused an entry; dropped and compiled once more */
  uint64_t layer_hits;        /* cache lookups that read-only layers served */
  uint64_t user_hits;         /* … the user's folder … */
  uint64_t cache_memory_hits; /* … and the memory that engines share when there is no disk */
  uint64_t lock_waits;        /* waits for a process that compiled the same kernel */
  uint64_t lock_timeouts;     /* of these, those that ended in a compile of our own */
  uint64_t evicted_entries;   /* by this engine's sweeps */
  uint64_t prepared;          /* kernels that wavejit_prepare, wavejit_call_prepare or COMPILE_BEHIND want */
  uint64_t refused_sealed;    /* calls that answered WAVEJIT_SEALED */
  uint64_t refused_capturing; /* calls that answered WAVEJIT_NOT_READY, since their stream was captured */
  uint64_t compile_ns;        /* time in the compiler and in the driver's loader, over all threads */
  uint64_t load_ns;
  /* The remote layer; its hits are among disk_hits.
   * remote_lookups = remote_hits + remote_misses + remote_damaged + remote_faults + remote_skipped,
   * remote_publishes = remote_published + remote_publish_failures + remote_dropped when none is on its way. */
  uint64_t remote_lookups;
  uint64_t remote_hits;
  uint64_t remote_misses;
  uint64_t remote_damaged; /* garbage, a wrong seal, another entry: treated as misses */
  uint64_t remote_faults;  /* no answer in time, or a refusal: treated as misses */
  uint64_t remote_skipped; /* not asked, in a pause after a failure: the same */
  uint64_t remote_publishes;
  uint64_t remote_published;
  uint64_t remote_publish_failures;
  uint64_t remote_dropped; /* the queue had no room, or the end no time */

  uint64_t refused_no_compile;  /* calls that answered WAVEJIT_NOT_READY, since they had WAVEJIT_NO_COMPILE */
  uint64_t refused_unsupported; /* calls and lines of wavejit_prepare that no kernel does */
};
WAVEJIT_API wavejit_status wavejit_engine_statistics(const wavejit_engine* engine,
                                                     struct wavejit_statistics* statistics);
/* The same as one JSON object, with target, device, whether the engine is sealed, and each kernel that was fetched or
 * compiled with its phases. Writes up to `capacity` bytes, the final NUL included (text null: none), and the length of
 * the whole text without it; WAVEJIT_INVALID_ARGUMENT when it does not fit. Two calls (the first with text null) may
 * race with a kernel that is being loaded: leave some room. */
WAVEJIT_API wavejit_status wavejit_engine_statistics_json(const wavejit_engine* engine, char* text, size_t capacity,
                                                          size_t* length);

#ifdef __cplusplus
}
#endif
#endif
