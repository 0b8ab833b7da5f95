// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The one symbol of libwavejit_codegen.so: a versioned table of C functions.
 *
 * libwavejit.so opens the library at the first miss, asks wavejit_codegen_table(WAVEJIT_CODEGEN_ABI) and calls through
 * the table. LLVM lives behind it, static and hidden; no LLVM type, exception or allocation crosses this boundary.
 *
 * Thread safety: every function may be called from any thread; compiles of different specs run in parallel, compiles of
 * the same spec inside one service happen once.
 */
#ifndef WAVEJIT_CODEGEN_API_H
#define WAVEJIT_CODEGEN_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WAVEJIT_CODEGEN_ABI 2

typedef struct wavejit_codegen_service wavejit_codegen_service;

enum wavejit_codegen_status {
  WAVEJIT_CODEGEN_OK = 0,
  WAVEJIT_CODEGEN_UNSUPPORTED = 1, /* the spec cannot be built for the target; nothing was emitted */
  WAVEJIT_CODEGEN_INVALID = 2,     /* the spec text does not parse */
  WAVEJIT_CODEGEN_CRASHED = 3,     /* the compiler aborted, crashed or ran out of time; contained */
  WAVEJIT_CODEGEN_REJECTED = 4, /* the output did not pass inspection: unknown encoding, spill, read across a barrier */
  WAVEJIT_CODEGEN_UNAVAILABLE = 5, /* the lowering asked for is not on this machine (no comgr) */
  WAVEJIT_CODEGEN_INTERNAL = 6
};

enum wavejit_codegen_containment {
  WAVEJIT_CODEGEN_INPROCESS =
      0, /* fatal errors of LLVM are caught; specs with lowering=comgr run isolated all the same */
  WAVEJIT_CODEGEN_ISOLATED = 1, /* every compile is a wavejit-compile process */
  WAVEJIT_CODEGEN_INSIDE = 2    /* for wavejit-compile itself: it is the isolated process */
};

struct wavejit_codegen_options {
  size_t size;
  int32_t containment;          /* enum wavejit_codegen_containment */
  uint32_t time_limit_ms;       /* isolated compiles are killed after this; 0 = 60,000 */
  const char* compiler_program; /* path of wavejit-compile for isolated compiles; null = beside this library */
};

/* Facts read back from the code object's own metadata and from its disassembly. */
struct wavejit_codegen_facts {
  size_t size;
  char kernel_name[256];
  uint32_t kernarg_bytes;
  uint32_t lds_bytes;
  uint32_t private_bytes;
  uint32_t vgprs;
  uint32_t agprs;
  uint32_t sgprs;
  uint32_t vgpr_spills;
  uint32_t sgpr_spills;
  uint32_t threads;
  uint32_t instructions;        /* machine instructions of the kernel */
  uint32_t matrix_instructions; /* v_mfma… / v_wmma… */
  uint32_t exp_instructions;    /* v_exp_f32 */
  uint32_t lds_dma_instructions;
  uint32_t barriers;
};

struct wavejit_codegen_result {
  size_t size;
  int32_t status;     /* enum wavejit_codegen_status */
  const char* detail; /* one line for people; never null */
  const unsigned char* code_object;
  size_t code_object_bytes;
  struct wavejit_codegen_facts facts;
  uint64_t emit_ns;    /* IR built */
  uint64_t lower_ns;   /* IR to relocatable object */
  uint64_t link_ns;    /* relocatable to loadable code object */
  uint64_t inspect_ns; /* disassembled and checked */
  void* owner;         /* released by release() */
};

struct wavejit_codegen_table {
  uint32_t abi;
  uint32_t reserved;
  /* Hash over the sources that kernels of a family come from ("attention_forward"), part of their keys; null for a
   * family that this library does not have. */
  const char* (*generator_id)(const char* family);
  const char* llvm_version; /* "22.1.8" */
  /* Null on failure, with the reason in `error` (cut to error_capacity). */
  wavejit_codegen_service* (*create)(const struct wavejit_codegen_options* options, char* error, size_t error_capacity);
  void (*destroy)(wavejit_codegen_service* service);
  /* Compiles the kernel that `spec_text` names (families::KernelSpec::text). Always fills *result, which the caller
   * hands to release() when done with its bytes. */
  void (*compile)(wavejit_codegen_service* service, const char* spec_text, struct wavejit_codegen_result* result);
  void (*release)(struct wavejit_codegen_result* result);
  /* The emitted IR as text, for people and tests; the same statuses. */
  void (*emit_ir)(wavejit_codegen_service* service, const char* spec_text, struct wavejit_codegen_result* result);
  /* Disassembly of a code object, one instruction a line; the text is in code_object / code_object_bytes of *result. */
  void (*disassemble)(wavejit_codegen_service* service, const unsigned char* code_object, size_t bytes,
                      struct wavejit_codegen_result* result);
  /* Identity of a lowering for the key: "llvm=22.1.8", or comgr's version and build; null when it is not available. */
  const char* (*lowering_identity)(const char* lowering);
  /* Compiles IR text (LLVM's assembly) as if a template had emitted it: the same lowering, link and inspection. For
   * tests and experiments; the runtime never calls it. */
  void (*compile_ir)(wavejit_codegen_service* service, const char* target, const char* lowering, const char* ir_text,
                     struct wavejit_codegen_result* result);
};

typedef const struct wavejit_codegen_table* (*wavejit_codegen_table_function)(uint32_t abi);

/* Null when the library does not speak `abi`. */
__attribute__((visibility("default"))) const struct wavejit_codegen_table* wavejit_codegen_table(uint32_t abi);

#ifdef __cplusplus
}
#endif
#endif
