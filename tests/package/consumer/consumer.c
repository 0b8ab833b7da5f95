// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* One attention call from C99, on the installed package. With all keys equal the answer is the mean of V: here 1. */
#include <stdio.h>
#include <wavejit/wavejit.h>

enum { length = 64, head_dim = 64, elements = length * head_dim };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, wavejit_last_detail());
  return 1;
}

int main(void) {
  static uint16_t zeros[elements];
  static uint16_t ones[elements];
  static uint16_t answer[elements];
  for (int i = 0; i < elements; ++i) ones[i] = 0x3C00; /* 1.0 in fp16 */

  struct wavejit_engine_options options = {0};
  options.size = sizeof options;
  options.device = "sim:gfx950";
  wavejit_engine* engine = NULL;
  if (wavejit_engine_create(&options, &engine) != WAVEJIT_OK) return fail("engine");

  void* memory[4];
  for (int i = 0; i < 4; ++i) {
    if (wavejit_device_allocate(engine, sizeof zeros, &memory[i]) != WAVEJIT_OK) return fail("allocate");
    if (wavejit_device_copy_in(engine, memory[i], i == 2 ? ones : zeros, sizeof zeros) != WAVEJIT_OK)
      return fail("copy in");
  }
  struct wavejit_attention_forward_arguments call = {
      .head = {.size = sizeof call, .family = WAVEJIT_ATTENTION_FORWARD}};
  call.q = wavejit_dense_tensor(memory[0], WAVEJIT_FP16, 1, length, 1, head_dim);
  call.k = wavejit_dense_tensor(memory[1], WAVEJIT_FP16, 1, length, 1, head_dim);
  call.v = wavejit_dense_tensor(memory[2], WAVEJIT_FP16, 1, length, 1, head_dim);
  call.o = wavejit_dense_tensor(memory[3], WAVEJIT_FP16, 1, length, 1, head_dim);
  call.modifiers.scale = 0.125F;
  if (wavejit_attention_forward(engine, &call, NULL) != WAVEJIT_OK) return fail("attention");
  if (wavejit_device_synchronize(engine) != WAVEJIT_OK) return fail("synchronize");
  if (wavejit_device_copy_out(engine, answer, memory[3], sizeof answer) != WAVEJIT_OK) return fail("copy out");
  for (int i = 0; i < elements; ++i) {
    if (answer[i] != 0x3C00) {
      fprintf(stderr, "element %d is %04x\n", i, answer[i]);
      return 1;
    }
  }
  for (int i = 0; i < 4; ++i) {
    if (wavejit_device_free(engine, memory[i]) != WAVEJIT_OK) return fail("free");
  }
  wavejit_engine_destroy(engine);
  puts("consumer: right answer");
  return 0;
}
