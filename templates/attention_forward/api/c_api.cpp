// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/api/calls.h"

namespace wavejit::attention_forward {

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_ATTENTION_FORWARD);

}  // namespace wavejit::attention_forward

extern "C" wavejit_status wavejit_attention_forward(wavejit_engine* engine,
                                                    const wavejit_attention_forward_arguments* arguments,
                                                    ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::attention_forward::Calls>(engine, arguments, stream);
}
