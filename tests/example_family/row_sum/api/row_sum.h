// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* The C interface of row_sum, which adds up each row of a matrix. A family of the product has its functions in
 * include/wavejit/wavejit.h. */
#ifndef WAVEJIT_ROW_SUM_H
#define WAVEJIT_ROW_SUM_H

#include "wavejit/wavejit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Beside those of enum wavejit_family. */
enum { WAVEJIT_ROW_SUM = 100 };

struct wavejit_row_sum_arguments {
  struct wavejit_call_head head;
  const void* input; /* device memory, [rows][columns] */
  void* output;      /* device memory, float [rows] */
  int64_t rows;
  int64_t columns;  /* a multiple of 4 */
  int32_t dtype;    /* of the input: WAVEJIT_FP32 or WAVEJIT_FP16 */
  int32_t reserved; /* 0 */
};

WAVEJIT_API wavejit_status wavejit_row_sum(wavejit_engine* engine, const struct wavejit_row_sum_arguments* arguments,
                                           struct ihipStream_t* stream);

#ifdef __cplusplus
}
#endif
#endif
