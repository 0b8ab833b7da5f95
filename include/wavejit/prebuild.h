// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* clang-format off */
/* wavejit/prebuild.h: kernels ahead of time, for lists of problems; on any machine, with neither a GPU nor HIP.
 *
 *   const char* lines[] = {"attention_forward bf16 b1 q4096 k4096 h64/8 d128 causal",   // problem descriptors, as a miss
 *                          "attention_forward bf16 b64 q1 k8192 h64/8 d128"};           // log has them
 *   struct wavejit_prebuild_arguments list = {.size = sizeof list, .descriptors = lines, .count = 2, .targets = "gfx950",
 *                                             .output = "served.wavejit-archive", .archive = 1};
 *   if (wavejit_prebuild_list(NULL, &list, NULL, NULL) != WAVEJIT_OK) fprintf(stderr, "%s\n", wavejit_last_detail());
 *
 * `wavejit prebuild` is a face over this. docs/prebuild.md has the whole story; wavejit.h the conventions, and
 * wavejit_prebuild for a few lines into the cache. */
/* clang-format on */
#ifndef WAVEJIT_PREBUILD_H
#define WAVEJIT_PREBUILD_H

#include "wavejit/wavejit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wavejit_prebuild_mode {
  WAVEJIT_PREBUILD_COMPILE = 0,
  /* Compiles and writes nothing: WAVEJIT_OK only if everything is there. Of each kernel: the entry as before every load
   * (owner, checksum, key text, target) and its code object (an ELF file of that target that has the kernel). */
  WAVEJIT_PREBUILD_VERIFY = 1,
  /* The same, and each is loaded on the device that the options name. */
  WAVEJIT_PREBUILD_VERIFY_ON_DEVICE = 2
} wavejit_prebuild_mode;

struct wavejit_prebuild_arguments {
  size_t size;
  const char* const* descriptors; /* null: all that wavejit_prebuild compiles without them */
  size_t count;
  const char* targets; /* separated by commas, or "all"; null with VERIFY_ON_DEVICE: the device's */
  int32_t mode;        /* enum wavejit_prebuild_mode */
  int32_t jobs;        /* compiles at a time; 0: all cores */
  int32_t shard;       /* part 1 … shards of the kernels; both 0: all. A kernel is in the same part, whatever list
                          leads to it */
  int32_t shards;
  const char* output; /* null: the cache that the options name. Else a folder into which everything needed is copied
                         from there, once it is; when verifying: only it is looked at */
  int32_t archive;    /* not 0: `output` is one archive, written when nothing was refused or failed, and then replaced
                         as a whole */
};

/* Texts are valid during the callback only. */
struct wavejit_prebuild_list_progress {
  size_t size;
  uint64_t done; /* kernels finished, in whatever way */
  uint64_t total;
  uint64_t compiled;
  uint64_t copied;  /* into an output that is a folder: from the cache, which had them */
  uint64_t present; /* already there; when verifying: there and good */
  uint64_t failed;
  uint64_t refused;        /* lines that lead to no kernel, counted once a target; told before the first kernel */
  const char* kernel_spec; /* the one that just finished; null at the start and for a refused line */
  const char* failure;     /* null, or why it failed */
  const char* descriptor;  /* null, or a refused line, with `failure` */
  uint64_t line;           /* its index */
  const char* target;      /* null: it is no descriptor; else the target that has no kernel for it */
};
/* Called from worker threads, one call at a time. */
typedef void (*wavejit_prebuild_list_callback)(void* context, const struct wavejit_prebuild_list_progress* progress);

/* Compiles what the lines need into the cache, and from there into `output` if given; or looks whether it is there. A
 * line without a kernel is told and leaves the others alone, and so does a kernel that fails. The status is that of the
 * first kernel that failed (WAVEJIT_IO_ERROR: the disk did), else that of the first line that was refused;
 * WAVEJIT_NOT_FOUND when verifying finds a kernel missing or broken. What is there already is not compiled again, and
 * several processes at once share the work. `options` may be null. */
WAVEJIT_API wavejit_status wavejit_prebuild_list(const struct wavejit_engine_options* options,
                                                 const struct wavejit_prebuild_arguments* arguments,
                                                 wavejit_prebuild_list_callback progress, void* context);

#ifdef __cplusplus
}
#endif
#endif
