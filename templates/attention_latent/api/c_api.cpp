// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/api/calls.h"

namespace wavejit::attention_latent {

extern const runtime::CallFunctions call_functions = runtime::functions_of<Calls>(WAVEJIT_ATTENTION_LATENT);

}  // namespace wavejit::attention_latent

extern "C" wavejit_status wavejit_attention_latent(wavejit_engine* engine,
                                                   const wavejit_attention_latent_arguments* arguments,
                                                   ihipStream_t* stream) {
  return wavejit::runtime::run_call<wavejit::attention_latent::Calls>(engine, arguments, stream);
}
