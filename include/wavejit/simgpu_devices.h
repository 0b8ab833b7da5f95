// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/* wavejit/simgpu_devices.h: how simulated devices are written. libwavejit_simgpu.so has it, and libdtif.so, which
 * stands beneath AMD's runtime.
 */
#ifndef WAVEJIT_SIMGPU_DEVICES_H
#define WAVEJIT_SIMGPU_DEVICES_H

#include "simgpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether `devices` names simulated devices as WAVEJIT_SIM_TARGET takes them: "gfx950", "gfx950x2", "gfx942@6x38x2".
 * Returns 0 when it does. Otherwise the length of a text that says what is accepted, which is copied to `text` with a
 * final 0, cut to `capacity`. Opens nothing. */
WAVEJIT_SIMGPU_API size_t wavejit_simgpu_devices_problem(const char* devices, char* text, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
