// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* wavejit.h as a C99 program meets it: compiles with -pedantic, null pointers are statuses, numbers are what they were.
 */
#include <stdio.h>
#include <string.h>
#include <wavejit/prebuild.h>
#include <wavejit/simgpu.h>
#include <wavejit/wavejit.h>

static int failures = 0;

static void expect(int condition, const char* what) {
  if (condition) return;
  ++failures;
  fprintf(stderr, "FAIL: %s (last detail: %s)\n", what, wavejit_last_detail());
}

static void count_line(void* context, const char* line) {
  if (line[0] != '\0') ++*(int*)context;
}

static void count_kernel(void* context, const struct wavejit_kernel_text* kernel) {
  if (kernel->size >= sizeof *kernel && kernel->text[0] != 0) ++*(int*)context;
}

static void never(void* context, const struct wavejit_cache_entry* entry) {
  (void)context;
  (void)entry;
}

static void* never_allocate(void* context, size_t bytes, struct ihipStream_t* stream) {
  (void)bytes;
  (void)stream;
  return context;
}

#define DETAIL_HAS(text) (strstr(wavejit_last_detail(), text) != NULL)

int main(void) {
  struct wavejit_engine_options options;
  wavejit_engine* engine = (wavejit_engine*)&options;
  struct wavejit_attention_forward_arguments call;
  struct wavejit_statistics statistics;
  struct wavejit_tensor tensor;
  void* memory = &options;
  struct wavejit_prebuild_arguments prebuild = {0};
  struct wavejit_kernel_text_arguments kernel_text = {0};
  const char* descriptors[2] = {"attention_forward fp16 b1 q1 k1 h1 d64", NULL};
  size_t json_length = 0;
  int lines = 0;

  memset(&options, 0, sizeof options);
  memset(&call, 0, sizeof call);
  memset(&statistics, 0, sizeof statistics);

  /* The ABI: these numbers and sizes never change. */
  expect(WAVEJIT_OK == 0 && WAVEJIT_INVALID_ARGUMENT == 1 && WAVEJIT_UNSUPPORTED == 2 && WAVEJIT_NO_DEVICE == 3,
         "statuses 0 to 3");
  expect(WAVEJIT_COMPILE_FAILED == 4 && WAVEJIT_NO_COMPILER == 5 && WAVEJIT_LAUNCH_FAILED == 6, "statuses 4 to 6");
  expect(WAVEJIT_OUT_OF_MEMORY == 7 && WAVEJIT_IO_ERROR == 8 && WAVEJIT_NOT_FOUND == 9, "statuses 7 to 9");
  expect(WAVEJIT_DEVICE_ERROR == 10 && WAVEJIT_INTERNAL == 11, "statuses 10 and 11");
  expect(WAVEJIT_NOT_READY == 12 && WAVEJIT_SEALED == 13, "statuses 12 and 13");
  expect(sizeof(struct wavejit_tensor) == 80, "size of wavejit_tensor");
  expect(offsetof(struct wavejit_call_head, family) == 8 && sizeof(struct wavejit_call_head) == 24, "a call's head");
  expect(offsetof(struct wavejit_attention_forward_arguments, q) == 24, "tensors behind the head");
  expect(WAVEJIT_ATTENTION_FORWARD == 1 && WAVEJIT_ATTENTION_BACKWARD == 2 && WAVEJIT_ATTENTION_LATENT == 3 &&
             WAVEJIT_ATTENTION_MERGE == 4 && WAVEJIT_SOFTMAX_LSE == 5 && WAVEJIT_SPARSE_INDEXER == 6 &&
             WAVEJIT_CACHE_APPEND == 7,
         "families");
  expect(sizeof(struct wavejit_call_report) >= 664, "size of wavejit_call_report");

  expect(strlen(wavejit_version()) >= 5, "version");
  for (int status = -1; status < 20; ++status) {
    expect(wavejit_status_text((wavejit_status)status) != NULL, "every status has a text");
  }
  expect(strcmp(wavejit_last_detail(), "") == 0, "no detail before the first failure");

  expect(wavejit_engine_create(NULL, NULL) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("engine = null"), "engine null");
  expect(wavejit_engine_create(&options, &engine) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("options.size = 0"),
         "options without size");
  expect(engine == NULL, "a failed create leaves null");
  options.size = sizeof options;
  options.device = "sim:gfx1";
  expect(wavejit_engine_create(&options, &engine) == WAVEJIT_NO_DEVICE && DETAIL_HAS("sim:gfx1"), "unknown target");
  options.device = NULL;
  options.cache_mode = "sometimes";
  expect(wavejit_engine_create(&options, &engine) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("options.cache_mode"),
         "unknown cache mode");
  options.cache_mode = "off";

  wavejit_engine_destroy(NULL);
  expect(strcmp(wavejit_engine_target(NULL), "") == 0, "target of null");
  expect(strcmp(wavejit_engine_device_name(NULL), "") == 0, "device name of null");
  expect(wavejit_attention_forward(NULL, &call, NULL) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("engine = null"),
         "call without an engine");
  expect(wavejit_call_supported(NULL, &call.head) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("engine = null"),
         "a question without an engine");
  expect(wavejit_device_allocate(NULL, 8, &memory) == WAVEJIT_INVALID_ARGUMENT, "allocate without an engine");
  expect(wavejit_device_free(NULL, NULL) == WAVEJIT_INVALID_ARGUMENT, "free without an engine");
  expect(wavejit_device_copy_in(NULL, NULL, NULL, 8) == WAVEJIT_INVALID_ARGUMENT, "copy in without an engine");
  expect(wavejit_device_copy_out(NULL, NULL, NULL, 8) == WAVEJIT_INVALID_ARGUMENT, "copy out without an engine");
  expect(wavejit_device_synchronize(NULL) == WAVEJIT_INVALID_ARGUMENT, "synchronize without an engine");
  expect(wavejit_engine_statistics(NULL, &statistics) == WAVEJIT_INVALID_ARGUMENT, "statistics without an engine");

  expect(wavejit_prepare(NULL, descriptors, 1, 0, NULL, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT,
         "prepare without an engine");
  expect(wavejit_engine_seal(NULL, 1) == WAVEJIT_INVALID_ARGUMENT, "seal without an engine");
  expect(wavejit_engine_statistics_json(NULL, NULL, 0, &json_length) == WAVEJIT_INVALID_ARGUMENT,
         "JSON without an engine");
  options.allocate = never_allocate;
  expect(
      wavejit_engine_create(&options, &engine) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("both allocate and release"),
      "an allocator by half");
  options.allocate = NULL;

  expect(wavejit_supported(NULL, NULL) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("line = null"), "no callback");
  expect(wavejit_supported(count_line, &lines) == WAVEJIT_OK && lines >= 2, "supported");
  lines = 0;
  expect(wavejit_targets(NULL, NULL) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("line = null"), "targets: no callback");
  expect(wavejit_targets(count_line, &lines) == WAVEJIT_OK && lines >= 2, "targets");
  expect(wavejit_kernel_texts(&options, NULL, count_kernel, &lines) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("arguments = null"),
         "kernel texts without arguments");
  kernel_text.size = sizeof kernel_text - 8;
  expect(wavejit_kernel_texts(&options, &kernel_text, count_kernel, &lines) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("arguments.size"),
         "kernel texts with another struct");
  kernel_text.size = sizeof kernel_text;
  expect(wavejit_kernel_texts(&options, &kernel_text, count_kernel, &lines) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("arguments.descriptor = null"),
         "kernel texts without a descriptor");
  kernel_text.descriptor = descriptors[0];
  kernel_text.target = "gfx942";
  expect(wavejit_kernel_texts(&options, &kernel_text, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("kernel = null"),
         "kernel texts without a callback");
  kernel_text.form = 2;
  expect(wavejit_kernel_texts(&options, &kernel_text, count_kernel, &lines) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("arguments.form = 2"),
         "an unknown form");
  kernel_text.form = WAVEJIT_KERNEL_IR;
  kernel_text.target = "gfx1";
  expect(wavejit_kernel_texts(&options, &kernel_text, count_kernel, &lines) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("gfx1"),
         "kernel texts for an unknown target");
  expect(wavejit_explain(&options, NULL, NULL, count_line, &lines) == WAVEJIT_INVALID_ARGUMENT, "no descriptor");
  lines = 0;
  expect(wavejit_explain(&options, descriptors[0], "gfx942", count_line, &lines) == WAVEJIT_OK && lines >= 6,
         "explain");
  expect(
      wavejit_explain(&options, "attention_forward\nfp16", "gfx942", count_line, &lines) == WAVEJIT_INVALID_ARGUMENT &&
          strchr(wavejit_last_detail(), '\n') == NULL,
      "details are one line");
  expect(wavejit_prebuild(&options, descriptors, 2, "gfx942", 0, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("descriptors[1] = null"),
         "a null descriptor");
  expect(wavejit_prebuild(&options, descriptors, 1, NULL, 0, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("targets = null"),
         "no targets");
  expect(wavejit_prebuild(&options, descriptors, 1, "gfx942", 0, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("cache_mode = off"),
         "prebuild without a cache");
  prebuild.size = sizeof prebuild;
  prebuild.descriptors = descriptors;
  prebuild.count = 1;
  expect(
      wavejit_prebuild_list(&options, NULL, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("arguments = null"),
      "prebuild of no arguments");
  expect(wavejit_prebuild_list(&options, &prebuild, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("arguments.targets = null"),
         "prebuild of a list without targets");
  prebuild.targets = "gfx942";
  prebuild.mode = 3;
  expect(wavejit_prebuild_list(&options, &prebuild, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("arguments.mode = 3"),
         "a mode that is none");
  prebuild.mode = WAVEJIT_PREBUILD_COMPILE;
  prebuild.shard = 1;
  expect(wavejit_prebuild_list(&options, &prebuild, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("cache_mode = off"),
         "prebuild of a list without a cache");
  prebuild.mode = WAVEJIT_PREBUILD_VERIFY;
  expect(wavejit_prebuild_list(&options, &prebuild, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("shards = 0"),
         "a part of nothing");
  prebuild.size = 8;
  expect(wavejit_prebuild_list(&options, &prebuild, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT &&
             DETAIL_HAS("arguments.size = 8"),
         "arguments of a wrong size");
  expect(wavejit_cache_visit(&options, NULL, NULL) == WAVEJIT_INVALID_ARGUMENT, "visit without a callback");
  expect(wavejit_cache_visit(&options, never, NULL) == WAVEJIT_INVALID_ARGUMENT && DETAIL_HAS("cache_mode = off"),
         "visit without a cache");

  tensor = wavejit_dense_tensor(memory, WAVEJIT_BF16, 2, 3, 4, 64);
  expect(tensor.strides[0] == 768 && tensor.strides[1] == 256 && tensor.strides[2] == 64 && tensor.strides[3] == 1,
         "dense strides");
  if (failures == 0) puts("the C interface keeps its word");
  return failures != 0;
}
